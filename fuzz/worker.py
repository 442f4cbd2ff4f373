"""The process that runs a target's cases, so that a crash, a hang or a flood of memory ends it and not the fuzzer.

`python -m fuzz.worker TARGET SEED FIRST CASES SECONDS PROGRESS [KEEP]`: writes the number of the case that runs, and of
the inputs so far, into the file PROGRESS; ends with 0 if all cases passed, with 1 and a traceback on stderr otherwise.
"""

from __future__ import annotations

import faulthandler
import mmap
import os
import struct
import sys
import time
from pathlib import Path

from fuzz.target import generator
from fuzz.targets import find

PROGRESS = struct.Struct("<QQ")  # case, inputs


def main(arguments: list[str]) -> None:
    name, seed, first, cases, seconds, progress, *keep = arguments
    faulthandler.enable()
    os.environ.pop("LD_PRELOAD", None)  # the compilers that a target starts do without
    with open(progress, "r+b") as file, mmap.mmap(file.fileno(), PROGRESS.size) as shared:
        case, inputs = int(first), 0
        PROGRESS.pack_into(shared, 0, case, inputs)
        target = find(name)(Path(keep[0]) if keep else None)
        deadline = time.monotonic() + float(seconds)
        try:
            while case < int(first) + int(cases) and time.monotonic() < deadline:
                PROGRESS.pack_into(shared, 0, case, inputs)
                inputs += target.case(generator(name, int(seed), case))
                case += 1
                PROGRESS.pack_into(shared, 0, case, inputs)
        finally:
            target.close()


if __name__ == "__main__":
    main(sys.argv[1:])

"""`python -m fuzz TARGET|all [--seed N] [--seconds S] [--case I]`: fuzz, and print what was found."""

from __future__ import annotations

import argparse
import random
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from fuzz.run import Outcome, run
from fuzz.targets import TARGETS, find


def main(argv: list[str] | None = None) -> int:
    """0: nothing found; 1: faults, each kept in a folder under --out."""
    parser = argparse.ArgumentParser(prog="python -m fuzz", description=__doc__)
    parser.add_argument("target", choices=["all", *TARGETS])
    parser.add_argument("--seed", type=int, help="default: a new one, printed")
    parser.add_argument("--seconds", type=float, default=60, help="of all targets together (default: 60)")
    parser.add_argument("--case", type=int, help="this case alone: reproduces a fault and saves its inputs")
    parser.add_argument("--cases", type=int, default=1 << 62, help="stop after so many cases")
    parser.add_argument("--jobs", type=int, default=1, help="targets that run at a time (default: 1)")
    parser.add_argument("--out", type=Path, default=Path("out/fuzz"))
    options = parser.parse_args(argv)
    seed = random.SystemRandom().randrange(1 << 32) if options.seed is None else options.seed
    print(f"seed {seed}", flush=True)
    names = list(TARGETS) if options.target == "all" else [options.target]
    shares = sum(find(name).share for name in names)

    def fuzz(name: str) -> Outcome:
        if options.case is not None:
            return run(name, seed, options.out, first=options.case, cases=1)
        seconds = options.seconds * min(options.jobs, len(names)) * find(name).share / shares
        return run(name, seed, options.out, seconds=seconds, cases=options.cases)

    found = 0
    with ThreadPoolExecutor(options.jobs) as pool:
        for outcome in pool.map(fuzz, names):
            found += len(outcome.faults)
            print(
                f"{outcome.target:10} {outcome.inputs:12,} inputs in {outcome.cases:8,} cases, "
                f"{outcome.seconds:7.1f} s, {len(outcome.faults)} faults",
                flush=True,
            )
            for fault in outcome.faults:
                print(f"  {fault.what}\n  python -m fuzz {outcome.target} --seed {seed} --case {fault.case}")
                print(f"  {fault.folder}", flush=True)
    return int(found > 0)


if __name__ == "__main__":
    sys.exit(main())

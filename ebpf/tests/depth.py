"""How long the tests against models run.

PLAIT_TEST_DEPTH multiplies the generated histories: 1 in CI, 100 for the long run (hours of one core).  With
sanitizers, which look at the code and not at what it decides, it is a tenth.
"""

from __future__ import annotations

import os

from ebpf.c_module import SANITIZE_VARIABLE


def deep(examples: int) -> int:
    sanitized = 10 if os.environ.get(SANITIZE_VARIABLE) else 1
    return max(1, examples * int(os.environ.get("PLAIT_TEST_DEPTH", "1")) // sanitized)

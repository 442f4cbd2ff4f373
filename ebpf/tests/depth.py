"""How long the tests against models run.

PLAIT_TEST_DEPTH multiplies the generated histories: 1 in CI, 100 for the long run (hours of one core).
"""

from __future__ import annotations

import os


def deep(examples: int) -> int:
    return examples * int(os.environ.get("PLAIT_TEST_DEPTH", "1"))

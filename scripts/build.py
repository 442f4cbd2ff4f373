"""Builds every part written in C; each part's build.py decides what is out of date."""

import importlib
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PARTS = ("engine", "rdma")


def main() -> None:
    sys.path.insert(0, str(ROOT))
    for part in PARTS:
        importlib.import_module(f"{part}.build").build(ROOT)


if __name__ == "__main__":
    main()

"""What every command waits for before it does anything."""

import subprocess
import sys

# Each takes a sizeable part of a second to import, and only some commands need it.
SLOW = ("finsy", "grpc", "igraph", "matplotlib", "numpy", "scapy", "fastswitch.codegen", "engine")


def test_the_command_line_starts_without_slow_modules() -> None:
    script = f"import sys, lab.cli; print(*[name for name in {SLOW!r} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", script], check=True, capture_output=True, text=True)
    assert done.stdout.split() == []

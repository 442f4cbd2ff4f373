"""Run in namespaces of its own by test_drop_in.py: `python -m tests.drop_in JSON FOLDER`.

Starts plait-switch as one starts simple_switch_grpc, with a program on the command line, and sends it frames.
"""

import os
import socket
import sys
import time
from pathlib import Path

from mininet_topos.system import end_children, last_lines, start_child
from ptf_tests.runner import COMMANDS, make_ports

FRAMES = [bytes([2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 8, 0, number]) + bytes(80 + number) for number in range(20)]


def main(program: str, folder: str) -> None:
    make_ports()
    flags = ["--device-id", "3", "-i", "1@sw1", "-i", "2@sw2", "--pcap", folder, "--log-file", f"{folder}/switch"]
    flags += ["--log-level", "info", program, "--", "--grpc-server-addr", "127.0.0.1:9559", "--cpu-port", "510"]
    output = Path(folder, "output")
    switch = start_child([*COMMANDS["plait"], *flags], output, os.environ)
    try:
        while "ready" not in output.read_text().splitlines():
            if switch.poll() is not None:
                sys.exit(last_lines(output))
            time.sleep(0.01)
        with socket.socket(socket.AF_PACKET, socket.SOCK_RAW) as wire:
            wire.bind(("ptf1", 0))
            for frame in FRAMES:
                wire.send(frame)
        capture = Path(folder, "sw1.pcap")
        while switch.poll() is None and capture.stat().st_size < 24 + sum(16 + len(frame) for frame in FRAMES):
            time.sleep(0.01)  # until all are written: the test that runs this has the time limit
    finally:
        end_children([switch])


if __name__ == "__main__":
    main(*sys.argv[1:])

"""`plait path` on a running laboratory: five switches' copies of a packet that a host sends again and again."""

import asyncio
import json
import signal
import subprocess
import sys
import time

from scapy.layers.inet import IP

from controller.tables import table_dump
from controller.targets import targets_of
from lab.config import LabConfig
from lab.emulation import Emulation
from mininet_topos.catalogue import choose
from ptf_tests.packets import write
from tests.conftest import PLAIT, ROOT, needs_root, plait

SENDER = """
import socket, sys, time
s = socket.socket(socket.AF_PACKET, socket.SOCK_RAW)
s.bind((sys.argv[1], 0))
while True:
    s.send(bytes.fromhex(sys.argv[2]))
    time.sleep(0.02)
"""


@needs_root
def test_the_path_of_a_packet_through_a_fat_tree() -> None:
    config = LabConfig.from_options(choose("fattree", {"k": 2}))
    with Emulation(config, lambda text: None) as lab:
        h1, h2 = lab.topology.hosts
        packet = write(h2.address, psn=7)
        packet[IP].src = h1.address
        del packet[IP].chksum
        sender = lab.network.get("h1").popen([sys.executable, "-c", SENDER, "h1-eth0", bytes(packet).hex()])
        try:
            found = plait("path", "h1", h2.address, "--psn", "7", "--count", "2", "--json")
            nothing = plait("path", "h1", "h2", "--psn", "8", "--wait", "100ms")
        finally:
            sender.kill()
            sender.communicate()
        assert found.returncode == 0, found.stderr
        for path in json.loads(found.stdout):
            assert path["complete"]
            assert path["packet"] == {
                "src": h1.address, "dst": h2.address, "sport": 50000, "opcode": 0x0A, "psn": 7
            }  # fmt: skip
            assert (path["source"], path["destination"]) == ("h1", "h2")
            layers = [lab.topology.node(hop["switch"]).layer for hop in path["hops"]]
            assert layers == ["edge", "agg", "core", "agg", "edge"]
        interrupted = subprocess.Popen([*PLAIT, "path", "h1", "h2", "--wait", "60s"], cwd=ROOT)
        target = targets_of(lab.topology)[-1]
        end = time.monotonic() + 20
        while len(asyncio.run(table_dump(target, "trace"))) == 1:  # its default only
            assert time.monotonic() < end
        interrupted.send_signal(signal.SIGINT)
        assert interrupted.wait(20) == 130
        assert (nothing.returncode, nothing.stderr) == (1, "plait: no chosen packet from h1 to h2 in 100ms.\n")
        for target in targets_of(lab.topology):
            (left,) = asyncio.run(table_dump(target, "trace"))
            assert (left.default, left.action) == (True, "NoAction()")
    ended = plait("path", "h1", "h2")
    assert (ended.returncode, "no laboratory is running" in ended.stderr) == (5, True)

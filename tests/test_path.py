"""`plait path` on a running laboratory: five switches' copies of a packet that a host sends again and again."""

import json
import sys

from scapy.layers.inet import IP

from lab.config import LabConfig
from lab.emulation import Emulation
from ptf_tests.packets import write
from tests.conftest import needs_root, plait

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
    config = LabConfig.from_options(
        kind="fattree", k=2, rate="100M", delay="50us", loss=0.0, links="memory", target="plait", program=None, seed=1
    )
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
        assert (nothing.returncode, nothing.stderr) == (1, "plait: no chosen packet from h1 to h2 in 100ms.\n")
        left = plait("table", "dump", "s1", "trace")
        assert left.stdout.splitlines()[1:] == ["ingress.depart.trace.trace  default  NoAction()"]
    ended = plait("path", "h1", "h2")
    assert (ended.returncode, "no laboratory is running" in ended.stderr) == (5, True)

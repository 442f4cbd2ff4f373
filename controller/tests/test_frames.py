"""LLDP and ARP against scapy's reading of them; whatever else arrives is no frame of ours, and no error."""

import struct
from ipaddress import IPv4Address

import pytest
from finsy.proto import p4r
from hypothesis import example, given
from hypothesis import strategies as st
from scapy.contrib.lldp import LLDPDU, LLDPDUChassisID, LLDPDUPortID
from scapy.layers.l2 import ARP, Ether

from controller.decisions import DecisionLog
from controller.frames import ArpRequest, Lldp, ether_type
from controller.neighborhood import Neighborhood
from controller.tests.test_live import PROGRAMS
from mininet_topos.tests.examples import dumbbell

MAC = "06:00:00:01:00:03"


@given(st.from_regex(r"[A-Za-z][A-Za-z0-9_]{0,31}", fullmatch=True), st.integers(1, 65535))
def test_lldp_is_what_scapy_reads(switch, port):
    frame = Lldp(switch, port).encode(MAC)
    read = Ether(frame)
    assert (read.dst, read.src, read.type) == ("01:80:c2:00:00:0e", MAC, 0x88CC)
    assert read[LLDPDUChassisID].id == switch.encode() and read[LLDPDUPortID].id == str(port).encode()
    assert [layer.__name__ for layer in read[LLDPDU].layers()][-1] == "LLDPDUEndOfLLDPDU"
    assert Lldp.decode(frame) == Lldp(switch, port)
    assert Lldp.decode(frame + bytes(20)) == Lldp(switch, port)  # padding to Ethernet's least length
    for length in range(len(frame) - 6):  # without the TTL and the end it still says where it was sent
        assert Lldp.decode(frame[:length]) is None


@pytest.mark.parametrize(
    "body",
    [
        b"",
        struct.pack("!H", 1 << 9 | 0x1FF) + b"\x07s1",  # longer than the frame
        b"\x02\x04\x04abc\x04\x02\x073",  # a chassis id of another kind: a MAC address
        b"\x02\x03\x07s1\x04\x03\x07x3",  # a port that is no number
        b"\x02\x03\x07s1\x04\x03\x07\xb2\xb3",
        b"\x02\x03\x07s1",
    ],
)
def test_other_peoples_lldp_is_none_of_ours(body):
    assert Lldp.decode(bytes(12) + b"\x88\xcc" + body) is None


def _request(**more):
    asked = ARP(op=1, hwsrc="02:00:00:00:00:01", psrc="10.0.1.2", hwdst="00:00:00:00:00:00", pdst="10.0.1.1", **more)
    return bytes(Ether(src="02:00:00:00:00:01", dst="ff:ff:ff:ff:ff:ff") / asked)


def test_an_arp_reply_is_what_scapy_reads():
    asked = ArpRequest.decode(_request() + bytes(18))
    assert (asked.sender, asked.target) == (IPv4Address("10.0.1.2"), IPv4Address("10.0.1.1"))
    reply = Ether(asked.reply(MAC))
    assert (reply.dst, reply.src, reply.type) == ("02:00:00:00:00:01", MAC, 0x0806)
    arp = reply[ARP]
    assert (arp.op, arp.hwsrc, arp.psrc) == (2, MAC, "10.0.1.1")
    assert (arp.hwdst, arp.pdst) == ("02:00:00:00:00:01", "10.0.1.2")


@pytest.mark.parametrize("frame", [_request()[:41], _request(hwtype=6), _request(ptype=0x86DD), b"", bytes(60)])
def test_other_arp_is_not_answered(frame):
    assert ArpRequest.decode(frame) is None


def test_replies_are_no_requests():
    reply = bytearray(_request())
    reply[21] = 2
    assert ArpRequest.decode(bytes(reply)) is None


@given(st.binary(max_size=80))
@example(bytes(12) + b"\x88\xcc" + b"\x02")
@example(bytes(12) + b"\x08\x06" + bytes(28))
def test_nothing_that_arrives_is_an_error(frame):
    ether_type(frame)
    Lldp.decode(frame)
    ArpRequest.decode(frame)


# --- who is answered ---


class _Session:
    name, primary, ports = "s1", True, {1: True}

    def __init__(self):
        self.sent = []

    async def send_packet(self, frame, metadata):
        self.sent.append((frame, metadata))


@pytest.fixture
async def asked(tmp_path):
    """Puts a frame into port 1 of s1 of the dumbbell; returns what is sent back."""
    import asyncio

    import finsy as fy

    p4front = pytest.importorskip("p4front.driver")
    schema = fy.P4Schema(p4front.compile_file(PROGRAMS["ecmp"]).p4info)
    log = DecisionLog(tmp_path / "log")
    session = _Session()
    neighborhood = Neighborhood(dumbbell(), {"s1": session}, schema, log)
    ids = {field.name: field.id for field in schema.controller_packet_metadata["packet_in"].metadata}

    async def ask(frame):
        metadata = [p4r.PacketMetadata(metadata_id=number, value=b"\x01") for number in ids.values()]
        neighborhood.packet(session, p4r.PacketIn(payload=frame, metadata=metadata))
        await asyncio.sleep(0)
        return session.sent

    yield ask
    log.close()


def _asks(target, sender="10.0.1.2"):
    return bytes(Ether(dst="ff:ff:ff:ff:ff:ff") / ARP(op=1, psrc=sender, pdst=target))


@pytest.mark.parametrize("target", ["10.0.1.1", "10.0.1.3", "10.0.2.2"])  # the gateway, a neighbour, a host elsewhere
async def test_known_addresses_are_answered_with_the_ports_mac(asked, target):
    ((frame, metadata),) = await asked(_asks(target))
    assert Ether(frame)[ARP].hwsrc == "06:00:00:01:00:01" and Ether(frame)[ARP].psrc == target
    assert metadata == {"egress_port": 1, "padding": 0}


@pytest.mark.parametrize("frame", [_asks("10.0.1.77"), _asks("10.0.1.2"), bytes(60)], ids=["unknown", "own", "noise"])
async def test_others_are_not_answered(asked, frame):
    assert await asked(frame) == []

"""The ICRC against scapy.contrib.roce, written by others, and against a packet that a real NIC sent."""

import subprocess
import sys

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scapy.layers.inet import IP, UDP
from scapy.layers.l2 import Ether
from scapy.packet import Raw

from wire.codes import BthOpcode
from wire.icrc import icrc, icrc_is_valid
from wire.layers import BTH

# scapy.contrib.roce binds UDP 4791 too, so it works in a process of its own: hex datagrams in, hex ICRCs out.
ORACLE = """
import sys
from scapy.layers.inet import IP
from scapy.contrib.roce import BTH
for line in sys.stdin:
    packet = IP(bytes.fromhex(line))
    packet[BTH].icrc = None
    print(bytes(packet)[-4:].hex(), flush=True)
"""


@pytest.fixture(scope="module")
def oracle():
    with subprocess.Popen(
        [sys.executable, "-c", ORACLE], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:

        def ask(datagram: bytes) -> bytes:
            process.stdin.write(datagram.hex() + "\n")
            process.stdin.flush()
            return bytes.fromhex(process.stdout.readline())

        yield ask
        process.stdin.close()


def datagram(payload: bytes = b"", **bth: int) -> bytes:
    ip = IP(src="10.0.0.1", dst="10.0.0.2", tos=2)
    return bytes(ip / UDP(sport=49152) / BTH(**bth) / Raw(payload))


@settings(max_examples=60, deadline=None)
@given(
    payload=st.binary(max_size=80),
    tos=st.integers(0, 255),
    ttl=st.integers(0, 255),
    udp_checksum=st.sampled_from([None, 0, 0x1234]),
    source_port=st.integers(0, 0xFFFF),
    opcode=st.sampled_from([BthOpcode.RC_SEND_ONLY, BthOpcode.RC_WRITE_MIDDLE, BthOpcode.RC_FETCH_ADD]),
    congestion=st.tuples(st.integers(0, 1), st.integers(0, 1), st.integers(0, 63)),
    psn=st.integers(0, (1 << 24) - 1),
)
def test_as_scapy_contrib(oracle, payload, tos, ttl, udp_checksum, source_port, opcode, congestion, psn):
    fecn, becn, reserved6 = congestion
    bth = BTH(opcode=opcode, psn=psn, dest_qpn=0x123456, fecn=fecn, becn=becn, reserved6=reserved6, ack_req=1)
    ip = IP(src="10.0.0.1", dst="10.1.0.2", tos=tos, ttl=ttl, id=7)
    built = bytes(ip / UDP(sport=source_port, chksum=udp_checksum) / bth / Raw(payload))
    assert built[-4:] == oracle(built)
    assert icrc_is_valid(built)


def test_a_connectx4_cnp():
    """Header fields and ICRC of a CNP captured from a ConnectX-4 Lx (published with scapy's regression tests)."""
    packet = (
        IP(src="10.0.17.1", dst="10.0.18.1", tos=0xC2, id=0x718C, flags="DF", ttl=64)
        / UDP(sport=0, dport=4791, chksum=0)
        / BTH(opcode=BthOpcode.CNP, becn=1, dest_qpn=0x118)
        / Raw(bytes(16))
    )
    assert bytes(packet)[-4:].hex() == "82fd002a"


@pytest.mark.parametrize("offset", [1, 8, 10, 11, 26, 27, 32])
def test_switches_may_change_masked_bytes(offset):
    changed = bytearray(datagram(b"payload!"))
    changed[offset] ^= 0xFF
    assert icrc_is_valid(bytes(changed))


@pytest.mark.parametrize("offset", [2, 4, 9, 12, 20, 24, 28, 33, 36, 39, 40, 47, 48, 51])
def test_any_other_byte_matters(offset):
    changed = bytearray(datagram(b"payload!"))
    changed[offset] ^= 0x01
    assert not icrc_is_valid(bytes(changed))


def test_ip_options_are_covered(oracle):
    options = IP(src="10.0.0.1", dst="10.0.0.2", options=[b"\x94\x04\x00\x00"])
    built = bytes(options / UDP() / BTH(psn=5) / Raw(b"abcd"))
    assert built[0] == 0x46 and icrc_is_valid(built) and built[-4:] == oracle(built)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "not an IPv4 header"),
        (b"\x65" + bytes(60), "not an IPv4 header"),
        (b"\x44" + bytes(60), "not an IPv4 header"),
        (b"\x45" + bytes(38), "39 bytes are too short for IPv4, UDP and BTH"),
        (b"\x4f" + bytes(60), "61 bytes are too short for IPv4, UDP and BTH"),
    ],
)
def test_no_datagram(data, message):
    with pytest.raises(ValueError, match=message):
        icrc(data)


def test_too_short_for_an_icrc():
    with pytest.raises(ValueError, match="3 bytes cannot hold an ICRC"):
        icrc_is_valid(b"\x45\x00\x00")


def test_without_ip_it_is_zero():
    assert bytes(BTH())[-4:] == bytes(4)
    assert bytes(Ether() / UDP() / BTH())[-4:] == bytes(4)

"""The scapy layers: bytes against hex written by hand from the IBTA layouts, dissection, and malformed packets."""

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scapy.config import conf
from scapy.layers.inet import IP, UDP
from scapy.layers.l2 import Ether
from scapy.packet import Packet, Raw

from wire import layers
from wire.codes import BthOpcode
from wire.layers import AETH, BTH, IETH, RETH, AtomicAckETH, AtomicETH, ImmDt, XAck, XData
from wire.rocev2 import EXTENSIONS

from .ibta import LAYOUTS

CLASSES = {
    **{"bth": BTH, "reth": RETH, "aeth": AETH, "immdt": ImmDt, "ieth": IETH},
    **{"atomic_eth": AtomicETH, "atomic_ack_eth": AtomicAckETH, "xdata": XData, "xack": XAck},
}
BELOW = Ether(dst="02:00:00:00:00:02", src="02:00:00:00:00:01") / IP(src="10.0.0.1", dst="10.0.0.2") / UDP(sport=49152)


@pytest.fixture(autouse=True)
def dissectors_raise(monkeypatch):
    """scapy hides a dissector's exception behind a Raw layer unless told not to."""
    monkeypatch.setattr(conf, "debug_dissector", True)


@pytest.mark.parametrize("name", CLASSES)
def test_fields(name):
    described = [(field.name, field.size) for field in CLASSES[name].fields_desc if field.name != "icrc"]
    assert described == LAYOUTS[name]


@pytest.mark.parametrize(
    ("packet", "expected"),
    [
        # opcode | S M pad version | P_Key | F B reserved | destination QP | A reserved | PSN | ICRC
        (BTH(opcode=0x0A), "0a 00 ffff 00 000000 00 000000 00000000"),
        (BTH(solicited=1, psn=0xFFFFFE), "00 80 ffff 00 000000 00 fffffe 00000000"),
        (BTH(mig_req=1, dest_qpn=0x123456), "00 40 ffff 00 123456 00 000000 00000000"),
        (BTH(pad_count=3, version=1, pkey=0x8001), "00 31 8001 00 000000 00 000000 00000000"),
        (BTH(fecn=1, extension=0x7F), "00 00 ffff 80 000000 7f 000000 00000000"),
        (BTH(becn=1, ack_req=1), "00 00 ffff 40 000000 80 000000 00000000"),
        (BTH(reserved6=0x3F, icrc=0x12345678), "00 00 ffff 3f 000000 00 000000 12345678"),
        (RETH(virtual_address=0x0102030405060708, rkey=0x090A0B0C, dma_length=0x0D0E0F10),
         "0102030405060708 090a0b0c 0d0e0f10"),
        (AETH(syndrome=0x1F, msn=0xABCDEF), "1f abcdef"),
        (ImmDt(immediate=0xDEADBEEF), "deadbeef"),
    ],
)  # fmt: skip
def test_bytes(packet, expected):
    assert bytes(packet) == bytes.fromhex(expected)


def sample(opcode: int, payload: bytes = b"payload.") -> Packet:
    packet = BELOW / BTH(opcode=opcode, dest_qpn=17, psn=0xFFFFFF)
    for header in EXTENSIONS[opcode]:
        packet /= CLASSES[header]()
    return packet / Raw(payload) if payload else packet


@pytest.mark.parametrize("payload", [b"", b"payload.", bytes(1024)])
@pytest.mark.parametrize("opcode", BthOpcode)
def test_round_trip(opcode, payload):
    packet = sample(opcode, payload)
    data = bytes(packet)
    dissected = Ether(data)
    expected = [Ether, IP, UDP, BTH, *(CLASSES[header] for header in EXTENSIONS[opcode]), *[Raw][: len(payload)]]
    assert dissected.layers() == expected
    assert dissected[BTH].opcode == opcode
    assert not payload or dissected[Raw].load == payload
    assert bytes(dissected) == data


def test_trailer_is_shown_and_kept():
    data = bytes(sample(BthOpcode.RC_SEND_ONLY))
    dissected = Ether(data)
    assert dissected[BTH].icrc == int.from_bytes(data[-4:], "big")
    dissected[BTH].icrc = 0xDEADBEEF
    assert bytes(dissected)[-4:].hex() == "deadbeef"


def test_trailer_is_computed_anew_when_deleted():
    data = bytes(sample(BthOpcode.RC_WRITE_ONLY))
    dissected = Ether(data)
    dissected[BTH].psn = 5
    assert bytes(dissected)[-4:] == data[-4:]
    del dissected[BTH].icrc
    assert bytes(dissected)[-4:] != data[-4:]
    dissected[BTH].psn = 0xFFFFFF
    assert bytes(dissected) == data


def test_link_padding_is_not_the_trailer():
    data = bytes(sample(BthOpcode.RC_ACKNOWLEDGE, b""))
    dissected = Ether(data + bytes(6) + b"fcs!")
    assert dissected[BTH].icrc == int.from_bytes(data[-4:], "big")


@pytest.mark.parametrize("source_port", [53, 4789, 4791, 65535])
def test_source_port_does_not_matter(source_port):
    """53 and 4789 are DNS and VXLAN to scapy."""
    packet = IP(src="10.0.0.1", dst="10.0.0.2") / UDP(sport=source_port) / BTH(psn=3)
    assert packet[UDP].dport == 4791
    assert IP(bytes(packet))[BTH].psn == 3


@pytest.mark.parametrize("length", range(16))
def test_too_short_for_a_bth_is_raw(length):
    dissected = IP(bytes(IP() / UDP(sport=1, dport=4791) / Raw(bytes(length))))
    assert BTH not in dissected


@pytest.mark.parametrize("opcode", [opcode for opcode in BthOpcode if EXTENSIONS[opcode]])
def test_too_short_for_its_extension_is_raw(opcode):
    first = CLASSES[EXTENSIONS[opcode][0]]
    data = bytes(BELOW / BTH(opcode=opcode) / Raw(bytes(first.header_bytes - 1)))
    dissected = Ether(data)
    assert dissected.layers() == [Ether, IP, UDP, BTH, Raw]
    assert bytes(dissected) == data


@pytest.mark.parametrize("opcode", [0x15, 0x20, 0x64, 0xFF])
def test_unknown_opcode_is_raw(opcode):
    dissected = Ether(bytes(BELOW / BTH(opcode=opcode) / Raw(bytes(40))))
    assert dissected.layers() == [Ether, IP, UDP, BTH, Raw]
    assert dissected[BTH].sprintf("%BTH.opcode%") == str(opcode)


@settings(max_examples=150, deadline=None)
@given(seed=st.integers(0, 1 << 32), opcode=st.sampled_from(list(BthOpcode)), cut=st.integers(0, 60))
def test_noise_dissects(seed, opcode, cut):
    """Cut and changed from the BTH on: what is below it is scapy's own affair."""
    rng = random.Random(seed)
    below = len(BELOW)
    data = bytearray(bytes(sample(opcode))[: below + cut])
    for _ in range(rng.randint(0, 4) if cut else 0):
        data[rng.randrange(below, len(data))] = rng.randrange(256)
    dissected = Ether(bytes(data))
    dissected.show2(dump=True)
    dissected.summary()


def test_extensions_are_layers():
    assert {header for chain in EXTENSIONS.values() for header in chain} <= set(CLASSES)


def test_all_layers_are_exported():
    assert set(layers.__all__) == {cls.__name__ for cls in CLASSES.values()}

"""The frames that the transmit engine builds, against scapy."""

from __future__ import annotations

import struct
from dataclasses import asdict, dataclass

from hypothesis import given, settings
from hypothesis import strategies as st

from ebpf import build as native
from ebpf.loader import ROOT
from ebpf.tests import packets as p
from rdma import build, config, protocol, session
from wire.codes import NicEvent

ffi, lib = build.ENGINE.load(ROOT)
ENDS = p.ENDS
FRAME_MIN = 74  # room for the longest reply: Ethernet, IPv4, UDP, BTH, a CNP's 16 bytes, ICRC

# IBTA vol. 1, tables 38 and 39: the headers of each opcode.
HEADERS: dict[int, tuple[str, ...]] = {
    **dict.fromkeys((0x00, 0x01, 0x02, 0x04), ()),  # SEND
    **dict.fromkeys((0x03, 0x05), ("immdt",)),
    **dict.fromkeys((0x16, 0x17), ("immdt",)),  # with invalidate: an IETH has the same shape
    **dict.fromkeys((0x06, 0x0A, 0x0C), ("reth",)),
    **dict.fromkeys((0x07, 0x08), ()),
    0x09: ("immdt",),
    0x0B: ("reth", "immdt"),
    **dict.fromkeys((0x0D, 0x0F, 0x10, 0x11), ("aeth",)),
    0x0E: (),
    0x12: ("aeth", "original"),
    **dict.fromkeys((0x13, 0x14), ("atomic",)),
}
WRITES = (0x06, 0x07, 0x08, 0x09, 0x0A, 0x0B)  # with Plait's extension, all of them have a RETH


@dataclass(frozen=True)
class Fields:
    psn: int
    va: int
    rkey: int
    dma_length: int
    swap_add: int
    compare: int
    immediate: int
    syndrome: int
    aeth_msn: int
    msn: int
    ipsn: int
    wqe_sn: int
    head: int
    retransmission: int
    synchronise: int
    last: int


def _fields() -> st.SearchStrategy[Fields]:
    widths = {
        **dict.fromkeys(("psn", "aeth_msn", "msn", "ipsn", "wqe_sn"), 24),
        **dict.fromkeys(("va", "swap_add", "compare"), 64),
        **dict.fromkeys(("rkey", "dma_length", "immediate", "head"), 32),
        "syndrome": 8,
        **dict.fromkeys(("retransmission", "synchronise", "last"), 1),
    }
    return st.builds(Fields, **{name: st.integers(0, (1 << bits) - 1) for name, bits in widths.items()})


def _header(name: str, f: Fields) -> bytes:
    if name == "reth":
        return p.reth(f.va, f.rkey, f.dma_length)
    if name == "aeth":
        return p.aeth(f.syndrome, f.aeth_msn)
    if name == "atomic":
        return struct.pack("!QIQQ", f.va, f.rkey, f.swap_add, f.compare)
    return struct.pack("!Q", f.swap_add) if name == "original" else struct.pack("!I", f.immediate)


def _xdata(f: Fields) -> bytes:
    """p4src/include/headers.p4: xdata_t."""
    flags = f.retransmission << 31 | f.synchronise << 30 | f.last << 29
    return struct.pack("!IIII", flags | f.msn, f.ipsn, f.wqe_sn, f.head)


def _ip(text: str) -> int:
    return int.from_bytes(bytes(map(int, text.split("."))), "big")


@settings(max_examples=120, deadline=None)
@given(
    opcode=st.sampled_from(sorted(HEADERS)),
    extended=st.booleans(),
    fields=_fields(),
    qpn=st.integers(1, (1 << 24) - 1),
    ask=st.booleans(),
    solicited=st.booleans(),
    dscp=st.integers(0, 63),
    body=st.binary(max_size=300) | st.just(bytes(1024)),
    port=st.integers(1, 65535),
)
def test_a_frame_is_scapys(
    opcode: int,
    extended: bool,
    fields: Fields,
    qpn: int,
    ask: bool,
    solicited: bool,
    dscp: int,
    body: bytes,
    port: int,
) -> None:
    path = ffi.new("struct rdma_qp_path *")
    path.remote_qpn, path.remote_ip, path.pkey = qpn, _ip(ENDS.dst_ip), 0xFFFF
    path.remote_mac = list(bytes.fromhex(ENDS.dst_mac.replace(":", "")))
    payload = ffi.from_buffer(body)
    packet = ffi.new("struct rdma_packet *", asdict(fields))
    packet.opcode, packet.ack_req, packet.solicited, packet.dscp = opcode, ask, solicited, dscp
    packet.extension, packet.source_port = int(extended), port
    packet.payload, packet.payload_length = payload, len(body)
    frame = ffi.new("uint8_t[4224]")
    mac = bytes.fromhex(ENDS.src_mac.replace(":", ""))
    size = lib.rdma_frame_example(path, mac, _ip(ENDS.src_ip), packet, frame, 4224)

    names = ("reth", *(name for name in HEADERS[opcode] if name != "reth")) if extended and opcode in WRITES else None
    headers = b"".join(_header(name, fields) for name in names or HEADERS[opcode])
    ecn = 0 if opcode == p.ACKNOWLEDGE else 2
    expected = p.frame(
        opcode,
        fields.psn,
        qpn,
        body,
        (_xdata(fields) if extended else b"") + headers,
        ends=p.with_ends(src_port=port),
        ackreq=int(ask),
        solicited=int(solicited),
        resv7=int(extended),
        ip={"tos": dscp << 2 | ecn},
    )
    assert bytes(ffi.buffer(frame, size)) == expected + bytes(max(0, FRAME_MIN - len(expected)))


def test_the_class_of_what_is_left() -> None:
    """Against the bounds that p4src/include/codes.p4 names: 1, 1.5, 2, 3, 4, 6, … units of 256 bytes."""
    bounds = [bound for octave in range(25) for bound in (2**octave, 1.5 * 2**octave)]
    edges = {int(bound * 256) + step for bound in bounds for step in (-256, -255, -1, 0, 1)}
    for left in sorted({1, 2, 1024, (1 << 31) - 1, *(edge for edge in edges if 0 < edge < 1 << 31)}):
        units = -(-left // 256)
        assert lib.rdma_remaining_class(left) == sum(bound <= units for bound in bounds), left
    assert lib.rdma_remaining_class(0) == 1  # a message without bytes


def test_both_languages_agree() -> None:
    """The few numbers that Python's side of the protocol shares with the NIC's header."""
    _, nic = native.NATIVE.load(ROOT)
    for name in ("LOCAL_WRITE", "REMOTE_WRITE", "REMOTE_READ", "REMOTE_ATOMIC"):
        assert getattr(protocol, name) == getattr(nic, f"NIC_ACCESS_{name}")
    assert nic.NIC_FETCH_MAX == protocol.RD_ATOMIC_MAX
    assert nic.NIC_BITMAP_SLOTS == config.SLOTS_MAX
    flags = (session._CREDITS, session._HOLD_LAST, session._SELECTIVE, session._CNP)
    assert flags == (nic.NIC_QP_CREDITS, nic.NIC_QP_HOLD_LAST, nic.NIC_QP_SELECTIVE, nic.NIC_QP_CNP)
    assert max(NicEvent) < nic.NIC_EVENT_SLOTS

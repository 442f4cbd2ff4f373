"""The frames that the transmit engine builds, against scapy."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from ebpf import build as native
from ebpf.loader import ROOT
from ebpf.tests import packets as p
from rdma import build, protocol
from wire.codes import NicEvent

ffi, lib = build.ENGINE.load(ROOT)
ENDS = p.ENDS
STARTS = (p.WRITE_FIRST, p.WRITE_ONLY)


def _ip(text: str) -> int:
    return int.from_bytes(bytes(map(int, text.split("."))), "big")


@settings(max_examples=60, deadline=None)
@given(
    opcode=st.sampled_from([p.WRITE_FIRST, p.WRITE_MIDDLE, p.WRITE_LAST, p.WRITE_ONLY]),
    psn=st.integers(0, (1 << 24) - 1),
    qpn=st.integers(1, (1 << 24) - 1),
    ask=st.booleans(),
    dscp=st.integers(0, 63),
    va=st.integers(0, (1 << 64) - 1),
    rkey=st.integers(0, (1 << 32) - 1),
    length=st.integers(0, (1 << 31) - 1),
    body=st.binary(max_size=300) | st.just(bytes(1024)),
    port=st.integers(1, 65535),
)
def test_a_frame_is_scapys(
    opcode: int, psn: int, qpn: int, ask: bool, dscp: int, va: int, rkey: int, length: int, body: bytes, port: int
) -> None:
    path = ffi.new("struct rdma_qp_path *")
    path.remote_qpn, path.remote_ip, path.udp_source_port, path.pkey = qpn, _ip(ENDS.dst_ip), port, 0xFFFF
    path.remote_mac = list(bytes.fromhex(ENDS.dst_mac.replace(":", "")))
    frame = ffi.new("uint8_t[4224]")
    size = lib.rdma_frame_example(
        *(path, bytes.fromhex(ENDS.src_mac.replace(":", "")), _ip(ENDS.src_ip), psn, opcode, ask, dscp),
        *(va, rkey, length),
        *(body, len(body), frame, 4224),
    )
    extension = p.reth(va, rkey, length) if opcode in STARTS else b""
    ends = p.with_ends(src_port=port)
    assert bytes(ffi.buffer(frame, size)) == p.frame(
        opcode, psn, qpn, body, extension, ends=ends, ackreq=int(ask), ip={"tos": dscp << 2 | 2}
    )


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
    assert (protocol.LOCAL_WRITE, protocol.REMOTE_WRITE, protocol.REMOTE_READ) == (
        nic.NIC_ACCESS_LOCAL_WRITE,
        nic.NIC_ACCESS_REMOTE_WRITE,
        nic.NIC_ACCESS_REMOTE_READ,
    )
    assert max(NicEvent) < nic.NIC_EVENT_SLOTS

"""What a decoded packet says."""

import pytest
from scapy.layers.inet import IP, TCP, UDP
from scapy.layers.l2 import Ether
from scapy.packet import Raw

from wire.codes import BthExtension, BthOpcode
from wire.decode import Aeth, Atomic, Data, Reth, Sack, decode, opcode_name, syndrome_meaning
from wire.layers import AETH, BTH, IETH, RETH, AtomicAckETH, AtomicETH, ImmDt, XAck, XData

BELOW = Ether() / IP(src="10.0.0.1", dst="10.0.0.2", tos=3, ttl=62) / UDP(sport=50000)


def test_write_with_immediate():
    bth = BTH(opcode=BthOpcode.RC_WRITE_ONLY_IMM, dest_qpn=17, psn=9, ack_req=1, pad_count=2)
    packet = BELOW / bth / RETH(virtual_address=0x7F00, rkey=5, dma_length=6) / ImmDt(immediate=1) / Raw(bytes(8))
    roce = decode(Ether(bytes(packet)))
    assert roce is not None
    assert (roce.src, roce.src_port, roce.dst, roce.dst_port) == ("10.0.0.1", 50000, "10.0.0.2", 4791)
    assert (roce.ecn, roce.ttl) == ("CE", 62)
    assert (roce.opcode_name, roce.dest_qpn, roce.psn, roce.ack_req) == ("RC_WRITE_ONLY_IMM", 17, 9, True)
    assert (roce.reth, roce.aeth, roce.immediate) == (Reth(0x7F00, 5, 6), None, 1)
    assert (roce.payload_bytes, roce.icrc) == (6, "ok")


def test_acknowledge():
    packet = BELOW / BTH(opcode=BthOpcode.RC_ACKNOWLEDGE) / AETH(syndrome=0x60, msn=3)
    roce = decode(Ether(bytes(packet)))
    assert roce is not None
    assert roce.aeth == Aeth(0x60, "NAK PSN_SEQUENCE_ERROR", 3)
    assert roce.payload_bytes == 0


def test_headers_of_our_own():
    bth = BTH(opcode=BthOpcode.RC_WRITE_MIDDLE, extension=BthExtension.DATA)
    own = XData(retransmission=1, last=1, msn=7, ipsn=3, wqe_sn=2, head=99)
    roce = decode(Ether(bytes(BELOW / bth / own / RETH(virtual_address=8, rkey=5, dma_length=6) / Raw(bytes(4)))))
    assert roce is not None
    assert (roce.data, roce.reth) == (Data(True, False, True, 7, 3, 2, 99), Reth(8, 5, 6))
    assert (roce.sack, roce.payload_bytes) == (None, 4)
    bth = BTH(opcode=BthOpcode.RC_READ_ACKNOWLEDGE, extension=BthExtension.ACK)
    for valid, psn in ((1, 12), (0, None)):
        roce = decode(Ether(bytes(BELOW / bth / XAck(sack_valid=valid, ece=1, sack_psn=12, path=50001) / AETH())))
        assert roce is not None
        assert roce.sack == Sack(psn, True, False, 50001)


def test_atomics_and_invalidation():
    compare = AtomicETH(virtual_address=16, rkey=5, swap_add=1, compare=2)
    roce = decode(Ether(bytes(BELOW / BTH(opcode=BthOpcode.RC_COMPARE_SWAP) / compare)))
    assert roce is not None and roce.atomic == Atomic(16, 5, 1, 2)
    answer = BTH(opcode=BthOpcode.RC_ATOMIC_ACKNOWLEDGE) / AETH() / AtomicAckETH(original_value=2)
    roce = decode(Ether(bytes(BELOW / answer)))
    assert roce is not None and roce.original == 2
    roce = decode(Ether(bytes(BELOW / BTH(opcode=BthOpcode.RC_SEND_ONLY_INVALIDATE) / IETH(rkey=77))))
    assert roce is not None and roce.invalidate == 77


@pytest.mark.parametrize("change", ["payload", "total_len"])
def test_bad_icrc(change):
    data = bytearray(bytes(BELOW / BTH() / Raw(b"abcd")))
    if change == "payload":
        data[-5] ^= 1
    else:
        data[16:18] = (24).to_bytes(2, "big")
    roce = decode(Ether(bytes(data)))
    assert roce is None or roce.icrc == "bad"


def test_cut_capture():
    data = bytes(BELOW / BTH() / Raw(bytes(100)))
    roce = decode(Ether(data[:80]))
    assert roce is not None
    assert (roce.icrc, roce.payload_bytes) == ("cut", 100)


@pytest.mark.parametrize("packet", [Ether() / IP() / TCP(), Ether(), BELOW / Raw(b"short"), BTH()])
def test_not_rocev2(packet):
    packet = type(packet)(bytes(packet))
    assert decode(packet) is None


@pytest.mark.parametrize(
    ("syndrome", "meaning"),
    [
        (0x1F, "ACK"),
        (0x05, "ACK credits 5"),
        (0x2E, "RNR_NAK timer 14"),
        (0x60, "NAK PSN_SEQUENCE_ERROR"),
        (0x62, "NAK REMOTE_ACCESS_ERROR"),
        (0x7F, "NAK code 31"),
        (0x40, "reserved 0x40"),
        (0x9F, "ACK"),
    ],
)
def test_syndromes(syndrome, meaning):
    assert syndrome_meaning(syndrome) == meaning


def test_opcodes():
    assert opcode_name(0x81) == "CNP"
    assert opcode_name(0x15) == "opcode_0x15"

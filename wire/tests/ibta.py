"""The layouts once more, written by hand from the standards: what the generated files are tested against."""

ETHERNET = [("dst_addr", 48), ("src_addr", 48), ("ether_type", 16)]
IPV4 = [
    ("version", 4), ("ihl", 4), ("dscp", 6), ("ecn", 2), ("total_len", 16),
    ("identification", 16), ("reserved", 1), ("do_not_fragment", 1), ("more_fragments", 1), ("frag_offset", 13),
    ("ttl", 8), ("protocol", 8), ("hdr_checksum", 16), ("src_addr", 32), ("dst_addr", 32),
]  # fmt: skip
UDP = [("src_port", 16), ("dst_port", 16), ("len", 16), ("checksum", 16)]
BTH = [
    ("opcode", 8), ("solicited", 1), ("mig_req", 1), ("pad_count", 2), ("version", 4), ("pkey", 16),
    ("fecn", 1), ("becn", 1), ("reserved6", 6), ("dest_qpn", 24), ("ack_req", 1), ("extension", 7), ("psn", 24),
]  # fmt: skip
RETH = [("virtual_address", 64), ("rkey", 32), ("dma_length", 32)]
AETH = [("syndrome", 8), ("msn", 24)]
IMMDT = [("immediate", 32)]
ATOMIC_ETH = [("virtual_address", 64), ("rkey", 32), ("swap_add", 64), ("compare", 64)]
ATOMIC_ACK_ETH = [("original_value", 64)]
IETH = [("rkey", 32)]
# Plait's own, from docs/wire.md.
XDATA = [
    ("retransmission", 1), ("synchronise", 1), ("last", 1), ("reserved_flags", 5), ("msn", 24), ("reserved_ipsn", 8),
    ("ipsn", 24), ("reserved_wqe", 8), ("wqe_sn", 24), ("head", 32),
]  # fmt: skip
XACK = [
    ("sack_valid", 1), ("ece", 1), ("retransmission", 1), ("reserved_flags", 5), ("sack_psn", 24), ("path", 16),
    ("reserved16", 16),
]  # fmt: skip

LAYOUTS = {
    "ethernet": ETHERNET, "ipv4": IPV4, "udp": UDP, "bth": BTH, "reth": RETH, "aeth": AETH, "immdt": IMMDT,
    "atomic_eth": ATOMIC_ETH, "atomic_ack_eth": ATOMIC_ACK_ETH, "ieth": IETH, "xdata": XDATA, "xack": XACK,
}  # fmt: skip


def pack(layout: list[tuple[str, int]], values: dict[str, int]) -> bytes:
    """The header as one big number, most significant field first."""
    number = total = 0
    for name, bits in layout:
        number = number << bits | values[name] & (1 << bits) - 1
        total += bits
    return number.to_bytes(total // 8, "big")


def unpack(layout: list[tuple[str, int]], data: bytes) -> dict[str, int]:
    bits = "".join(f"{byte:08b}" for byte in data)
    values, at = {}, 0
    for name, width in layout:
        values[name] = int(bits[at : at + width], 2)
        at += width
    return values

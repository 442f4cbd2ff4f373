"""Scapy layers of RoCEv2, bound on UDP port 4791.

Do not edit; generated from p4src/include/headers.p4 and p4src/include/codes.p4 by wire/generate.py.
"""

from scapy.fields import BitEnumField, BitField, XBitField

from wire import codes
from wire.rocev2 import ICRCField, RoceLayer, TransportLayer, bind, names

__all__ = ["AETH", "AtomicAckETH", "AtomicETH", "BTH", "IETH", "ImmDt", "RETH", "XAck", "XData"]


class BTH(TransportLayer):
    name = "BTH"
    header_name = "bth"
    header_bytes = codes.BTH_LEN
    fields_desc = [
        BitEnumField("opcode", 0, 8, names(codes.BthOpcode)),
        BitField("solicited", 0, 1),
        BitField("mig_req", 0, 1),
        BitField("pad_count", 0, 2),
        BitField("version", 0, 4),
        BitField("pkey", codes.ROCEV2_DEFAULT_PKEY, 16),
        BitField("fecn", 0, 1),
        BitField("becn", 0, 1),
        BitField("reserved6", 0, 6),
        BitField("dest_qpn", 0, 24),
        BitField("ack_req", 0, 1),
        BitEnumField("extension", 0, 7, names(codes.BthExtension)),
        BitField("psn", 0, 24),
        ICRCField("icrc"),
    ]


class RETH(RoceLayer):
    name = "RETH"
    header_name = "reth"
    header_bytes = codes.RETH_LEN
    fields_desc = [
        XBitField("virtual_address", 0, 64),
        BitField("rkey", 0, 32),
        BitField("dma_length", 0, 32),
    ]


class AETH(RoceLayer):
    name = "AETH"
    header_name = "aeth"
    header_bytes = codes.AETH_LEN
    fields_desc = [
        BitField("syndrome", 0, 8),
        BitField("msn", 0, 24),
    ]


class ImmDt(RoceLayer):
    name = "ImmDt"
    header_name = "immdt"
    header_bytes = codes.IMMDT_LEN
    fields_desc = [
        BitField("immediate", 0, 32),
    ]


class AtomicETH(RoceLayer):
    name = "AtomicETH"
    header_name = "atomic_eth"
    header_bytes = codes.ATOMIC_ETH_LEN
    fields_desc = [
        XBitField("virtual_address", 0, 64),
        BitField("rkey", 0, 32),
        XBitField("swap_add", 0, 64),
        XBitField("compare", 0, 64),
    ]


class AtomicAckETH(RoceLayer):
    name = "AtomicAckETH"
    header_name = "atomic_ack_eth"
    header_bytes = codes.ATOMIC_ACK_ETH_LEN
    fields_desc = [
        XBitField("original_value", 0, 64),
    ]


class IETH(RoceLayer):
    name = "IETH"
    header_name = "ieth"
    header_bytes = codes.IETH_LEN
    fields_desc = [
        BitField("rkey", 0, 32),
    ]


class XData(RoceLayer):
    name = "XData"
    header_name = "xdata"
    header_bytes = codes.XDATA_LEN
    fields_desc = [
        BitField("retransmission", 0, 1),
        BitField("synchronise", 0, 1),
        BitField("last", 0, 1),
        BitField("reserved_flags", 0, 5),
        BitField("msn", 0, 24),
        BitField("reserved_ipsn", 0, 8),
        BitField("ipsn", 0, 24),
        BitField("reserved_wqe", 0, 8),
        BitField("wqe_sn", 0, 24),
        BitField("head", 0, 32),
    ]


class XAck(RoceLayer):
    name = "XAck"
    header_name = "xack"
    header_bytes = codes.XACK_LEN
    fields_desc = [
        BitField("sack_valid", 0, 1),
        BitField("ece", 0, 1),
        BitField("retransmission", 0, 1),
        BitField("reserved_flags", 0, 5),
        BitField("sack_psn", 0, 24),
        BitField("path", 0, 16),
        BitField("reserved16", 0, 16),
    ]


bind(BTH)

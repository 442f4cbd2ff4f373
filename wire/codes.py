"""Constants and codes of the wire formats and of Plait's parts.

Do not edit; generated from p4src/include/headers.p4 and p4src/include/codes.p4 by wire/generate.py.
"""

from enum import IntEnum

MAC_ADDR_BITS = 48
MAC_ADDR_MASK = 0xffffffffffff
IPV4_ADDR_BITS = 32
IPV4_ADDR_MASK = 0xffffffff
L4_PORT_BITS = 16
L4_PORT_MASK = 0xffff
PSN_BITS = 24
PSN_MASK = 0xffffff
QPN_BITS = 24
QPN_MASK = 0xffffff
ROCEV2_UDP_PORT = 4791
ETHERNET_LEN = 14
IPV4_LEN = 20
UDP_LEN = 8
BTH_LEN = 12
RETH_LEN = 16
AETH_LEN = 4
IMMDT_LEN = 4
ROCEV2_DEFAULT_PKEY = 0xffff
ICRC_BYTES = 4
AETH_CREDITS_INVALID = 0x1f
REMAINING_UNIT_BYTES = 256
REMAINING_CLASSES = 64


class EtherType(IntEnum):
    IPV4 = 0x0800
    ARP = 0x0806
    MAC_CTRL = 0x8808


class IpProto(IntEnum):
    ICMP = 1
    TCP = 6
    UDP = 17


class Ecn(IntEnum):
    NOT_ECT = 0
    ECT_1 = 1
    ECT_0 = 2
    CE = 3


class BthOpcode(IntEnum):
    RC_SEND_FIRST = 0x00
    RC_SEND_MIDDLE = 0x01
    RC_SEND_LAST = 0x02
    RC_SEND_LAST_IMM = 0x03
    RC_SEND_ONLY = 0x04
    RC_SEND_ONLY_IMM = 0x05
    RC_WRITE_FIRST = 0x06
    RC_WRITE_MIDDLE = 0x07
    RC_WRITE_LAST = 0x08
    RC_WRITE_LAST_IMM = 0x09
    RC_WRITE_ONLY = 0x0a
    RC_WRITE_ONLY_IMM = 0x0b
    RC_READ_REQUEST = 0x0c
    RC_READ_RESPONSE_FIRST = 0x0d
    RC_READ_RESPONSE_MIDDLE = 0x0e
    RC_READ_RESPONSE_LAST = 0x0f
    RC_READ_RESPONSE_ONLY = 0x10
    RC_ACKNOWLEDGE = 0x11
    RC_ATOMIC_ACKNOWLEDGE = 0x12
    RC_COMPARE_SWAP = 0x13
    RC_FETCH_ADD = 0x14
    RC_SEND_LAST_INVALIDATE = 0x16
    RC_SEND_ONLY_INVALIDATE = 0x17
    CNP = 0x81


class AethKind(IntEnum):
    ACK = 0x00
    RNR_NAK = 0x20
    NAK = 0x60


class NakCode(IntEnum):
    PSN_SEQUENCE_ERROR = 0
    INVALID_REQUEST = 1
    REMOTE_ACCESS_ERROR = 2
    REMOTE_OPERATIONAL_ERROR = 3
    INVALID_RD_REQUEST = 4


class NicEvent(IntEnum):
    PASSED_TO_KERNEL = 0
    REQUEST_PLACED = 1
    REQUEST_DUPLICATE = 2
    REQUEST_SEQ_ERROR = 3
    ACK_RECEIVED = 4
    NAK_RECEIVED = 5
    ACK_STALE = 6
    DROP_TRUNCATED = 7
    DROP_BAD_HEADER = 8
    DROP_UNKNOWN_QP = 9
    DROP_WRONG_PEER = 10
    DROP_QP_STATE = 11
    DROP_BAD_OPCODE = 12
    NAK_OPCODE_SEQ = 13
    NAK_LENGTH = 14
    NAK_RKEY = 15
    NAK_BOUNDS = 16
    CNP_RECEIVED = 17


class QpState(IntEnum):
    RESET = 0
    INIT = 1
    RTR = 2
    RTS = 3
    SQE = 4
    ERROR = 5

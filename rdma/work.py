"""Work requests, completions and their numbers, named as in libibverbs; values are its own (infiniband/verbs.h)."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntFlag, StrEnum
from typing import Any

from rdma.protocol import (
    ATOMIC_BYTES,
    LOCAL_WRITE,
    MESSAGE_MAX,
    REMOTE_ATOMIC,
    REMOTE_READ,
    REMOTE_WRITE,
)


class VerbsError(Exception):
    """A call that cannot be served (`name` says why in a word), or no agent to serve it ("DISCONNECTED")."""

    def __init__(self, name: str, message: str) -> None:
        super().__init__(f"{message} [{name}]")
        self.name = name


class Access(IntFlag):
    """What may be done with a memory region (ibv_access_flags).  Local reads always may."""

    LOCAL_WRITE = LOCAL_WRITE
    REMOTE_WRITE = REMOTE_WRITE
    REMOTE_READ = REMOTE_READ
    REMOTE_ATOMIC = REMOTE_ATOMIC


class Opcode(StrEnum):
    """ibv_wr_opcode."""

    RDMA_WRITE = "RDMA_WRITE"
    RDMA_WRITE_WITH_IMM = "RDMA_WRITE_WITH_IMM"
    SEND = "SEND"
    SEND_WITH_IMM = "SEND_WITH_IMM"
    SEND_WITH_INV = "SEND_WITH_INV"
    RDMA_READ = "RDMA_READ"
    ATOMIC_CMP_AND_SWP = "ATOMIC_CMP_AND_SWP"
    ATOMIC_FETCH_AND_ADD = "ATOMIC_FETCH_AND_ADD"


class SendFlags(IntFlag):
    """ibv_send_flags, and SYNCHRONISE.

    FENCE: starts when all READs and atomics before it are complete.  SIGNALED: its success makes a completion; an error
    always does.  SOLICITED: sets the packet's bit, which asks the receiver for an event.  SYNCHRONISE: touches remote
    memory only after everything before it has (MP-RDMA, section 3.4); the other transports reach the same by waiting.
    """

    NONE = 0
    FENCE = 0x1
    SIGNALED = 0x2
    SOLICITED = 0x4
    SYNCHRONISE = 0x100


class WCOpcode(StrEnum):
    """ibv_wc_opcode."""

    SEND = "SEND"
    RDMA_WRITE = "RDMA_WRITE"
    RDMA_READ = "RDMA_READ"
    COMP_SWAP = "COMP_SWAP"
    FETCH_ADD = "FETCH_ADD"
    RECV = "RECV"
    RECV_RDMA_WITH_IMM = "RECV_RDMA_WITH_IMM"


class WCFlags(IntFlag):
    """ibv_wc_flags."""

    NONE = 0
    WITH_IMM = 2
    WITH_INV = 8


@dataclass(frozen=True, slots=True)
class WC:
    """A completion (ibv_wc).

    status: a name of ibv_wc_status without its prefix: SUCCESS, LOC_LEN_ERR, REM_ACCESS_ERR, WR_FLUSH_ERR, ...  Where
    it is not SUCCESS, only wr_id, qp_num and status mean something.
    byte_len: bytes of the message.
    imm_data: with WCFlags.WITH_IMM; 32 bits.  invalidated_rkey: with WCFlags.WITH_INV.
    """

    wr_id: int
    qp_num: int
    status: str
    opcode: WCOpcode
    byte_len: int
    wc_flags: WCFlags = WCFlags.NONE
    imm_data: int = 0

    @property
    def ok(self) -> bool:
        return self.status == "SUCCESS"

    @property
    def invalidated_rkey(self) -> int:
        return self.imm_data if self.wc_flags & WCFlags.WITH_INV else 0

    @classmethod
    def decode(cls, raw: dict[str, Any]) -> WC:
        values = {**raw, "opcode": WCOpcode(raw["opcode"]), "wc_flags": WCFlags(raw["wc_flags"])}
        return cls(**values)


@dataclass(frozen=True, slots=True)
class SGE:
    """`length` bytes at `addr` of the local region with `lkey` (ibv_sge).  A work request has one."""

    addr: int
    length: int
    lkey: int


NOTHING = SGE(0, 0, 0)  # of a message without bytes


def _check_length(length: int) -> None:
    if not 0 <= length <= MESSAGE_MAX:
        raise VerbsError("TOO_LONG", f"a message has at most {MESSAGE_MAX} bytes; split {length} into several")


@dataclass(frozen=True, slots=True)
class SendWR:
    """A request (ibv_send_wr).

    sg: what to send; for a READ or atomic, where the answer goes (an atomic's is 8 bytes, in the machine's byte order).
    remote_addr, rkey: of WRITEs, READs and atomics.
    imm_data: of the opcodes with immediate, 32 bits.  invalidate_rkey: of SEND_WITH_INV, a region of the receiver's.
    compare_add, swap: 64 bits; what to compare with and what to put there, or what to add.
    """

    wr_id: int = 0
    opcode: Opcode = Opcode.SEND
    sg: SGE = NOTHING
    remote_addr: int = 0
    rkey: int = 0
    imm_data: int = 0
    invalidate_rkey: int = 0
    compare_add: int = 0
    swap: int = 0
    send_flags: SendFlags = SendFlags.SIGNALED

    def encode(self) -> dict[str, Any]:
        _check_length(self.sg.length)
        if self.opcode in (Opcode.ATOMIC_CMP_AND_SWP, Opcode.ATOMIC_FETCH_AND_ADD):
            if self.sg.length != ATOMIC_BYTES:
                raise VerbsError("BAD_VALUE", f"an atomic's sg has {ATOMIC_BYTES} bytes, not {self.sg.length}")
            if self.remote_addr % ATOMIC_BYTES:
                raise VerbsError("BAD_VALUE", f"an atomic's remote_addr is a multiple of {ATOMIC_BYTES}")
        return {
            "wr_id": self.wr_id,
            "opcode": Opcode(self.opcode).value,
            "lkey": self.sg.lkey,
            "addr": self.sg.addr,
            "length": self.sg.length,
            "remote_addr": self.remote_addr,
            "rkey": self.rkey,
            "imm_data": self.invalidate_rkey if self.opcode == Opcode.SEND_WITH_INV else self.imm_data,
            "compare_add": self.compare_add,
            "swap": self.swap,
            "send_flags": int(self.send_flags),
        }


@dataclass(frozen=True, slots=True)
class RecvWR:
    """A receive (ibv_recv_wr): where a SEND's bytes go.  A WRITE with immediate takes one but not its memory."""

    wr_id: int = 0
    sg: SGE = NOTHING

    def encode(self) -> dict[str, Any]:
        _check_length(self.sg.length)
        return {"wr_id": self.wr_id, "lkey": self.sg.lkey, "addr": self.sg.addr, "length": self.sg.length}

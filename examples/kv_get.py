"""A key-value store whose GETs are one-sided READs: the server's processor does nothing for them.

The server's memory is a hash table of fixed slots, open addressing.  A client READs the slot that a key hashes to and,
while it holds another key, the next one.  Slots carry a checksum, since a READ may overtake a change of the server's.

    plait h1 .venv/bin/python examples/kv_get.py --keys 10000
    plait h2 .venv/bin/python examples/kv_get.py h1 --keys 10000 --gets 2000
"""

from __future__ import annotations

import random
import statistics
import struct
import time
import zlib
from collections.abc import Iterator
from dataclasses import dataclass

import exchange

from rdma.verbs import CQ, MR, QP, Access, Opcode, SendWR

KEY_BYTES, VALUE_BYTES = 16, 40
SLOT = struct.Struct(f"<II{KEY_BYTES}s{VALUE_BYTES}s")  # checksum of the rest, 1 if in use, key, value
WAIT_S = 10.0


def _slots(key: bytes, count: int) -> Iterator[int]:
    first = zlib.crc32(key)
    return ((first + step) % count for step in range(count))


class Table:
    """The server's side: fills the memory."""

    def __init__(self, memory: memoryview) -> None:
        self._memory = memory
        self._count = len(memory) // SLOT.size

    def put(self, key: bytes, value: bytes) -> None:
        for slot in _slots(key, self._count):
            at = slot * SLOT.size
            _, used, other, _ = SLOT.unpack_from(self._memory, at)
            if not used or other.rstrip(b"\0") == key:
                body = SLOT.pack(0, 1, key, value)[4:]
                self._memory[at : at + SLOT.size] = zlib.crc32(body).to_bytes(4, "little") + body
                return
        raise exchange.ExampleError("the table is full")


@dataclass
class Client:
    """GETs from a table at `addr` of the other side's memory."""

    qp: QP
    cq: CQ
    sink: MR
    addr: int
    rkey: int
    count: int
    reads: int = 0

    def _read(self, slot: int) -> tuple[int, bytes, bytes]:
        """In use, key, value; READ again while the checksum is not that of the rest."""
        remote = self.addr + slot * SLOT.size
        while True:
            self.qp.post_send(SendWR(slot, Opcode.RDMA_READ, self.sink.sge(), remote_addr=remote, rkey=self.rkey))
            (wc,) = self.cq.wait(WAIT_S) or [None]
            if wc is None or not wc.ok:
                raise exchange.ExampleError(f"a READ completed with {wc.status if wc else 'nothing'}")
            self.reads += 1
            checksum, used, key, value = SLOT.unpack(self.sink.buf)
            if not used or checksum == zlib.crc32(self.sink.buf[4:]):
                return used, key.rstrip(b"\0"), value.rstrip(b"\0")

    def get(self, key: bytes) -> bytes | None:
        for slot in _slots(key, self.count):
            used, found, value = self._read(slot)
            if not used:
                return None
            if found == key:
                return value
        return None


def _key(number: int) -> bytes:
    return f"key-{number}".encode()


def _value(number: int) -> bytes:
    return f"value of {number}".encode()


def serve(peer: exchange.Peer, device: exchange.Device, keys: int, transport: str | None) -> None:
    pd, cq = device.alloc_pd(), device.create_cq()
    slots = 2 * keys
    memory = pd.reg_mr(slots * SLOT.size, Access.LOCAL_WRITE | Access.REMOTE_READ)
    table = Table(memory.buf)
    for number in range(keys):
        table.put(_key(number), _value(number))
    exchange.connect(device, peer, [pd.create_qp(cq)], transport, addr=memory.addr, rkey=memory.rkey, slots=slots)
    peer.swap("done")
    print(f"served {keys} keys in {slots} slots of {SLOT.size} bytes")


def ask(peer: exchange.Peer, device: exchange.Device, keys: int, gets: int, transport: str | None) -> None:
    pd, cq = device.alloc_pd(), device.create_cq()
    sink = pd.reg_mr(SLOT.size, Access.LOCAL_WRITE)
    qp = pd.create_qp(cq)
    other = exchange.connect(device, peer, [qp], transport)
    client = Client(qp, cq, sink, other["addr"], other["rkey"], other["slots"])
    times = []
    for _ in range(gets):
        number = random.randrange(keys)
        begin = time.perf_counter()
        value = client.get(_key(number))
        times.append(1e6 * (time.perf_counter() - begin))
        if value != _value(number):
            raise exchange.ExampleError(f"key {number} has {value!r}, not {_value(number)!r}")
    if client.get(b"no such key") is not None:
        raise exchange.ExampleError("a key that nobody has put is there")
    peer.swap("done")
    print(f"{gets} GETs right, {client.reads / (gets + 1):.2f} READs a GET")
    print(f"{gets / sum(times) * 1e6:.0f} GETs/s, median {statistics.median(times):.1f} usec")


def main() -> None:
    parser = exchange.arguments("Key-value GETs by one-sided READ.", __doc__ or "")
    parser.add_argument("--keys", type=int, default=1000, help="that the server holds (%(default)s)")
    parser.add_argument("--gets", type=int, default=1000, help="by the client (%(default)s)")
    options = parser.parse_args()
    with exchange.open_device(options.device) as device:
        peer = exchange.Peer.meet(options.server, options.port)
        if options.server is None:
            serve(peer, device, options.keys, options.transport)
        else:
            ask(peer, device, options.keys, options.gets, options.transport)
        peer.close()


if __name__ == "__main__":
    exchange.run(main)

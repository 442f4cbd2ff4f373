"""Bandwidth of RDMA WRITEs, with the options and the table of perftest's ib_write_bw.

    plait h1 .venv/bin/python examples/write_bw.py
    plait h2 .venv/bin/python examples/write_bw.py h1 --size 65536 --iters 500 --qp 4 --tx-depth 16
"""

from __future__ import annotations

import argparse
import os
import time

import exchange

from rdma.verbs import CQ, QP, Access, Opcode, SendFlags, SendWR

MIB = 1 << 20
WAIT_S = 30.0
POST_MAX = 64  # requests in one call


def _options() -> argparse.Namespace:
    parser = exchange.arguments("RDMA WRITE bandwidth, one direction.", __doc__ or "")
    parser.add_argument("-s", "--size", type=int, default=65536, help="bytes of a message (%(default)s)")
    parser.add_argument("-n", "--iters", type=int, default=1000, help="messages of each queue pair (%(default)s)")
    parser.add_argument("-q", "--qp", type=int, default=1, help="queue pairs (%(default)s)")
    parser.add_argument("-t", "--tx-depth", type=int, default=128, help="messages in flight of each (%(default)s)")
    options = parser.parse_args()
    for name in ("size", "iters", "qp", "tx_depth"):
        if getattr(options, name) < 1:
            parser.error(f"--{name.replace('_', '-')} must be at least 1")
    return options


class Stream:
    """Messages of one queue pair: when each was posted and when it completed."""

    def __init__(self, qp: QP, request: SendWR, iterations: int, depth: int) -> None:
        self._qp, self._request = qp, request
        self._left, self._room = iterations, min(depth, iterations)
        self.posted: list[float] = []
        self.completed: list[float] = []

    def post(self) -> None:
        """As much as may be in flight."""
        while count := min(self._left, self._room, POST_MAX):
            self.posted += [time.perf_counter()] * count
            self._qp.post_send(*[self._request] * count)
            self._left -= count
            self._room -= count

    def complete(self, now: float) -> None:
        self.completed.append(now)
        self._room += 1

    def peak(self, depth: int) -> float:
        """Most messages a second over any `depth` in a row, from the first's posting to the last's completion."""
        depth = min(depth, len(self.completed))
        spans = (self.completed[i + depth - 1] - self.posted[i] for i in range(len(self.completed) - depth + 1))
        return depth / min(spans)


def drive(streams: dict[int, Stream], cq: CQ, messages: int) -> float:
    """Seconds from the first posting to the last completion."""
    begin = time.perf_counter()
    for stream in streams.values():
        stream.post()
    while messages:
        found = cq.wait(WAIT_S, num_entries=256)
        now = time.perf_counter()
        if not found:
            raise exchange.ExampleError(f"{messages} WRITEs did not complete in {WAIT_S:.0f} s")
        for wc in found:
            if not wc.ok:
                raise exchange.ExampleError(f"a WRITE completed with {wc.status}")
            streams[wc.qp_num].complete(now)
        messages -= len(found)
        for number in {wc.qp_num for wc in found}:
            streams[number].post()
    return time.perf_counter() - begin


def main() -> None:
    options = _options()
    sends = options.server is not None
    with exchange.open_device(options.device) as device:
        pd = device.alloc_pd()
        cq = device.create_cq(options.qp * options.tx_depth)
        memory = pd.reg_mr(options.size, Access.LOCAL_WRITE | Access.REMOTE_WRITE)
        qps = [pd.create_qp(cq, max_send_wr=options.tx_depth, max_recv_wr=1) for _ in range(options.qp)]
        if sends:
            memory.buf[:] = os.urandom(options.size)
        peer = exchange.Peer.meet(options.server, options.port)
        other = exchange.connect(
            device, peer, qps, options.transport, addr=memory.addr, rkey=memory.rkey, size=options.size
        )
        if other["size"] != options.size:
            raise exchange.ExampleError(f"--size is {options.size} here and {other['size']} there")
        if sends:
            to = {"remote_addr": other["addr"], "rkey": other["rkey"], "send_flags": SendFlags.SIGNALED}
            request = SendWR(0, Opcode.RDMA_WRITE, memory.sge(), **to)
            streams = {qp.qp_num: Stream(qp, request, options.iters, options.tx_depth) for qp in qps}
            seconds = drive(streams, cq, options.iters * options.qp)
        peer.swap("all is sent")
        theirs = peer.swap(exchange.digest(memory.buf))
        if theirs != exchange.digest(memory.buf):
            raise exchange.ExampleError("the memories differ")
        peer.close()
    if sends:
        rate = options.iters * options.qp / seconds
        peak = sum(stream.peak(options.tx_depth) for stream in streams.values())
        names = ("#bytes", "#iterations", "BW peak[MiB/sec]", "BW average[MiB/sec]", "MsgRate[Mpps]")
        print("{:>10} {:>12} {:>18} {:>20} {:>15}".format(*names))
        print(
            f"{options.size:10} {options.iters:12} {max(peak, rate) * options.size / MIB:18.2f} "
            f"{rate * options.size / MIB:20.2f} {rate / 1e6:15.6f}"
        )


if __name__ == "__main__":
    exchange.run(main)

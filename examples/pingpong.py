"""Ping-pong: a SEND there, a SEND back, over a reliable connection; prints the latency, half a round trip.

In a laboratory (plait launch ...), from two terminals:

    plait h1 .venv/bin/python examples/pingpong.py
    plait h2 .venv/bin/python examples/pingpong.py h1
"""

from __future__ import annotations

import statistics
import time

import exchange

from rdma.verbs import CQ, MR, QP, Access, Opcode, RecvWR, SendWR

WAIT_S = 10.0


def _take(cq: CQ, counts: dict[str, int]) -> None:
    """Counts what has completed since, or waits for something to."""
    found = cq.wait(WAIT_S)
    if not found:
        raise exchange.ExampleError(f"nothing completed in {WAIT_S:.0f} s")
    for wc in found:
        if not wc.ok:
            raise exchange.ExampleError(f"{wc.opcode} completed with {wc.status}")
        counts[wc.opcode] += 1


def play(qp: QP, cq: CQ, out: MR, back: MR, iterations: int, serves: bool) -> list[float]:
    """Seconds of each round trip; the side that does not serve waits for the first ball."""
    counts = {"SEND": 0, "RECV": 0}
    times = []
    for number in range(iterations):
        begin = time.perf_counter()
        if not serves:
            while counts["RECV"] <= number:
                _take(cq, counts)
            if bytes(back.buf) != bytes([number % 256]) * len(back.buf):
                raise exchange.ExampleError(f"message {number} is not what was sent")
        # The receive for the answer, before there can be one.
        qp.post_recv(RecvWR(number, back.sge()))
        out.buf[:] = bytes([number % 256]) * len(out.buf)
        qp.post_send(SendWR(number, Opcode.SEND, out.sge()))
        while serves and counts["RECV"] <= number:
            _take(cq, counts)
        while counts["SEND"] <= number:
            _take(cq, counts)
        times.append(time.perf_counter() - begin)
    return times


def main() -> None:
    parser = exchange.arguments("RC SEND/RECV ping-pong.", __doc__ or "")
    parser.add_argument("-s", "--size", type=int, default=64, help="bytes of a message (%(default)s)")
    parser.add_argument("-n", "--iters", type=int, default=1000, help="round trips (%(default)s)")
    options = parser.parse_args()
    with exchange.open_device(options.device) as device:
        pd, cq = device.alloc_pd(), device.create_cq()
        out, back = pd.reg_mr(options.size), pd.reg_mr(options.size, Access.LOCAL_WRITE)
        qp = pd.create_qp(cq)
        qp.post_recv(RecvWR(0, back.sge()))
        peer = exchange.Peer.meet(options.server, options.port)
        other = exchange.connect(device, peer, [qp], options.transport, size=options.size, iters=options.iters)
        if (other["size"], other["iters"]) != (options.size, options.iters):
            raise exchange.ExampleError("both sides need the same --size and --iters")
        times = play(qp, cq, out, back, options.iters, serves=options.server is not None)
        peer.swap("done")
        peer.close()
    half = sorted(1e6 * seconds / 2 for seconds in times)
    print(f"{'#bytes':>8} {'#iterations':>12} {'t_min[usec]':>12} {'t_typical':>12} {'t_avg':>12} {'99%':>12}")
    print(
        f"{options.size:8} {options.iters:12} {half[0]:12.1f} {statistics.median(half):12.1f} "
        f"{statistics.fmean(half):12.1f} {half[int(0.99 * (len(half) - 1))]:12.1f}"
    )


if __name__ == "__main__":
    exchange.run(main)

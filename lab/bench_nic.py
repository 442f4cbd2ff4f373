"""`plait bench nic`: cost of the XDP programs a packet, under BPF_PROG_RUN, and what goes from host to host."""

from collections.abc import Callable
from typing import Any

from ebpf import bench
from lab import bench_stream
from lab.doctor import require_laboratory

_CASES = {
    "in_order": "data in order",
    "acknowledged": "data in order, ACK asked",
    "out_of_order": "data out of order",
    "ack": "ACK to the sender",
}


def run(talk: Callable[[str], None], stream_bytes: int) -> dict[str, Any]:
    """{"empty_ns", "transports": {name: {"in_order_ns", "out_of_order_ns"}}, "stream": …}.

    See ebpf.bench for what the former include, lab.bench_stream for the latter.
    """
    require_laboratory()
    talk("XDP programs …")
    result = bench.run()
    talk("from host to host …")
    return {**result, "stream": bench_stream.run(talk, stream_bytes)}


def explain(result: dict[str, Any]) -> str:
    empty = result["empty_ns"]
    lines = [
        "XDP program under BPF_PROG_RUN, RDMA WRITE packets with 1,024 bytes of payload",
        f"  empty program                       {empty:7.1f} ns a packet",
    ]
    for name, costs in result["transports"].items():
        for case, meaning in _CASES.items():
            if (cost := costs.get(f"{case}_ns")) is not None:
                lines.append(f"  {name:<8} {meaning:<26} {cost:7.1f} ns a packet = {cost / empty:.1f} x empty")
    return "\n".join([*lines, bench_stream.explain(result["stream"])])

"""`plait bench nic`: cost of the XDP program a packet, under BPF_PROG_RUN."""

from typing import Any

from ebpf import bench
from lab.doctor import require_laboratory

_CASES = {
    "in_order": "in order, placed",
    "acknowledged": "in order, placed and ACKed",
    "out_of_order": "out of order, dropped",
}


def run() -> dict[str, Any]:
    """{"empty_ns", "transports": {name: {"in_order_ns", "out_of_order_ns"}}}: see ebpf.bench for what they include."""
    require_laboratory()
    return bench.run()


def explain(result: dict[str, Any]) -> str:
    empty = result["empty_ns"]
    lines = [
        "XDP program under BPF_PROG_RUN, RDMA WRITE packets with 1,024 bytes of payload",
        f"  empty program                {empty:7.1f} ns a packet",
    ]
    for name, costs in result["transports"].items():
        for case, meaning in _CASES.items():
            if (cost := costs.get(f"{case}_ns")) is not None:
                lines.append(f"  {name} {meaning:<24} {cost:7.1f} ns a packet = {cost / empty:.1f} x empty")
    return "\n".join(lines)

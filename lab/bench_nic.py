"""`plait bench nic`: cost of the XDP program a packet, under BPF_PROG_RUN."""

from typing import Any

from ebpf import bench


def run() -> dict[str, Any]:
    """{"empty_ns", "transports": {name: {"in_order_ns", "out_of_order_ns"}}}; nanoseconds a packet, 1 KB payloads."""
    return bench.run()


def explain(result: dict[str, Any]) -> str:
    empty = result["empty_ns"]
    lines = [
        "XDP program under BPF_PROG_RUN, RDMA WRITE packets of 1,024 bytes payload, placement and ACK included",
        f"  empty program            {empty:7.1f} ns a packet",
    ]
    for name, costs in result["transports"].items():
        for case in ("in_order", "out_of_order"):
            cost = costs[f"{case}_ns"]
            lines.append(f"  {name} {case.replace('_', ' '):<20} {cost:7.1f} ns a packet = {cost / empty:.1f} x empty")
    return "\n".join(lines)

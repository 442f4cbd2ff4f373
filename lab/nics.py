"""What hosts' NICs can run, as users name it; the agent (rdma/) checks values."""

from collections.abc import Mapping
from dataclasses import dataclass

TRANSPORTS = ("gbn", "irn", "mprdma", "eunomia", "ideal")

# Of a queue pair's settings (QueuePair.modify_rts), those that an experiment may choose.
NIC_SETTINGS = ("congestion_control", "selective_repeat", "hold_last", "bitmap_slots", "delta", "window_packets")


@dataclass(frozen=True, slots=True)
class HostNic:
    """What the hosts' NICs run: a transport, and its settings."""

    name: str
    transport: str
    settings: Mapping[str, int | str | bool]


GBN = HostNic("gbn", "gbn", {})

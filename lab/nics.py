"""What hosts' NICs can run, as users name it; the agent (rdma/) checks values."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from lab.errors import UsageError

TRANSPORTS = ("gbn", "irn", "mprdma", "eunomia", "ideal")

# Of a queue pair's settings, those that an experiment may choose: arguments of QueuePair.modify_rtr and modify_rts.
RTR_SETTINGS = ("congestion", "slots", "delta", "selective", "hold_last", "priority")
RTS_SETTINGS = ("window_packets", "initial_window", "probe_per_mille", "alpha_per_mille", "timeout_us")
NIC_SETTINGS = (*RTR_SETTINGS, *RTS_SETTINGS)


@dataclass(frozen=True, slots=True)
class HostNic:
    """What the hosts' NICs run: a transport, and its settings."""

    name: str
    transport: str
    settings: Mapping[str, int | str | bool]

    def rtr(self) -> dict[str, Any]:
        """Arguments of QueuePair.modify_rtr."""
        return {"transport": self.transport, **{k: v for k, v in self.settings.items() if k in RTR_SETTINGS}}

    def rts(self) -> dict[str, Any]:
        """Arguments of QueuePair.modify_rts."""
        return {k: v for k, v in self.settings.items() if k in RTS_SETTINGS}


def plain(transport: str) -> HostNic:
    """With the agent's defaults for everything."""
    return HostNic(transport, transport, {})


def parse_transports(text: str) -> tuple[str, ...]:
    """`irn`, or `irn,gbn`: the first is what queue pairs have that ask for none. UsageError names what is unknown."""
    names = tuple(dict.fromkeys(name.strip() for name in text.split(",")))
    for name in names:
        if name not in TRANSPORTS:
            raise UsageError(f"--nic {text!r}: no transport {name!r}; known are {', '.join(TRANSPORTS)}.")
    return names

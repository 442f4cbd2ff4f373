"""Where the P4Runtime servers of switches are."""

from dataclasses import dataclass

from controller import defaults
from mininet_topos.topology import Topology


@dataclass(frozen=True, slots=True)
class Target:
    """A switch as a P4Runtime client needs to know it; `address` is host:port."""

    name: str
    address: str
    device_id: int = 1


def targets_of(topology: Topology) -> tuple[Target, ...]:
    """The switches of a topology at the addresses that the laboratory gives them, in the topology's order."""
    return tuple(
        Target(switch.name, defaults.grpc_address(index), switch.device_id or 0)
        for index, switch in enumerate(topology.switches)
    )

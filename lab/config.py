"""What a laboratory is made of: validated options, and the topology they give."""

import dataclasses
from dataclasses import dataclass
from pathlib import Path

from lab import units
from lab.errors import UsageError
from lab.results import ROOT
from mininet_topos.fabric import PRIORITY_QUEUES
from mininet_topos.fattree import fattree
from mininet_topos.topology import Topology

TOPOLOGIES = ("fattree",)
TARGETS = ("plait", "bmv2")
LINKS = ("memory", "veth")
DEFAULT_PROGRAM = ROOT / "p4src" / "ecmp.p4"


def _known(option: str, value: str, known: tuple[str, ...]) -> None:
    if value not in known:
        raise UsageError(f"{option} {value!r}: known are {', '.join(known)}.")


@dataclass(frozen=True, slots=True)
class LabConfig:
    """Rates are bits per second, delays nanoseconds one way per link, loss a probability per packet and link."""

    kind: str
    k: int
    rate_bps: int
    delay_ns: int
    loss: float
    links: str
    target: str
    program: Path
    seed: int
    nic_memory_bytes: int
    priority_queues: int = PRIORITY_QUEUES

    @classmethod
    def from_options(
        cls,
        *,
        kind: str,
        k: int,
        rate: str,
        delay: str,
        loss: float,
        links: str,
        target: str,
        program: Path | None,
        seed: int,
        nic_memory_bytes: int = 1 << 20,
    ) -> "LabConfig":
        """From what a user wrote; UsageError names the option and why."""
        _known("topology", kind, TOPOLOGIES)
        _known("--target", target, TARGETS)
        _known("--links", links, LINKS)
        program = program or DEFAULT_PROGRAM
        if not program.is_file():
            raise UsageError(f"--program {program} is not a file.")
        if target == "bmv2" and loss:
            raise UsageError("--loss needs --target plait: BMv2 loses no packets on purpose, and this uses no netem.")
        return cls(
            kind, k, units.parse_rate(rate), units.parse_time(delay), loss, links, target, program, seed,
            nic_memory_bytes,
        )  # fmt: skip

    def with_memory(self, nic_memory_bytes: int) -> "LabConfig":
        return dataclasses.replace(self, nic_memory_bytes=nic_memory_bytes)

    def topology(self) -> Topology:
        """TopologyError, naming the field, where the parameters give none."""
        return fattree(self.k, self.rate_bps, self.delay_ns, loss=self.loss)

    def describe(self) -> dict[str, object]:
        """For results: every option under its name with its unit."""
        return {**dataclasses.asdict(self), "program": str(self.program)}

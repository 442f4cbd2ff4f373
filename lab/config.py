"""What a laboratory is made of: validated options, and the topology they give."""

import dataclasses
from dataclasses import dataclass
from pathlib import Path

from lab.errors import UsageError
from lab.results import ROOT
from mininet_topos.catalogue import Choice
from mininet_topos.fabric import PRIORITY_QUEUES
from mininet_topos.topology import Link, Topology

TARGETS = ("plait", "bmv2")
LINKS = ("memory", "veth")
DEFAULT_PROGRAM = ROOT / "p4src" / "ecmp.p4"


def _known(option: str, value: str, known: tuple[str, ...]) -> None:
    if value not in known:
        raise UsageError(f"{option} {value!r}: known are {', '.join(known)}.")


@dataclass(frozen=True, slots=True)
class LabConfig:
    """A topology, and what runs on it."""

    chosen: Choice
    links: str
    target: str
    program: Path
    seed: int
    nic_memory_bytes: int
    priority_queues: int = PRIORITY_QUEUES
    transports: tuple[str, ...] = ("gbn",)  # of the hosts' NICs; a queue pair that asks for none has the first
    core_loss: float = 0.0  # added to every link between switches: the probability that it loses a packet

    @classmethod
    def from_options(
        cls,
        chosen: Choice,
        *,
        links: str = "memory",
        target: str = "plait",
        program: Path | None = None,
        seed: int = 1,
        nic_memory_bytes: int = 1 << 20,
        transports: tuple[str, ...] = ("gbn",),
    ) -> "LabConfig":
        """From what a user wrote; UsageError names the option and why, TopologyError the topology's parameter."""
        _known("--target", target, TARGETS)
        _known("--links", links, LINKS)
        program = program or DEFAULT_PROGRAM
        if not program.is_file():
            raise UsageError(f"--program {program} is not a file.")
        if target == "bmv2" and any(link.loss for link in chosen.build().links):
            raise UsageError("--loss needs --target plait: BMv2 loses no packets on purpose, and this uses no netem.")
        return cls(chosen, links, target, program, seed, nic_memory_bytes, transports=transports)

    def with_memory(self, nic_memory_bytes: int) -> "LabConfig":
        return dataclasses.replace(self, nic_memory_bytes=nic_memory_bytes)

    def topology(self) -> Topology:
        """TopologyError, naming the field, where the parameters give none."""
        topology = self.chosen.build()
        if not self.core_loss:
            return topology
        hosts = {host.name for host in topology.hosts}

        def lossy(link: Link) -> Link:
            kept = (1 - link.loss) * (1 - self.core_loss)
            return link if hosts & {link.a, link.b} else dataclasses.replace(link, loss=1 - kept)

        return dataclasses.replace(topology, links=tuple(map(lossy, topology.links)))

    def describe(self) -> dict[str, object]:
        """For results: every option under its name with its unit, those of the topology under `parameters`."""
        options = {field.name: getattr(self, field.name) for field in dataclasses.fields(self)}
        del options["chosen"]
        topology = {"kind": self.chosen.name, "parameters": self.chosen.arguments()}
        return {**topology, **options, "program": str(self.program)}

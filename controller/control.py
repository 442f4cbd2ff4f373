"""Brings a fabric's switches to the state that a policy wants, over P4Runtime, and proves that they are in it.

`install` compares what a switch holds with what it should hold and writes the difference, so that a controller that
starts again disturbs no traffic.
"""

from __future__ import annotations

import time
from collections.abc import Hashable, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import finsy as fy
from finsy.p4schema import P4SchemaCache
from finsy.proto import p4r

from controller import defaults, reconcile
from controller.connection import controlling, each, translated, write
from controller.errors import ControllerError
from controller.policy import Policy, fabric_entries
from controller.routes import Entries
from controller.targets import Target
from mininet_topos.topology import Topology


@dataclass(frozen=True, slots=True)
class Program:
    """What a P4 compiler wrote."""

    p4info: Path
    json: Path


@dataclass(slots=True)
class InstallReport:
    """What `install` did."""

    switches: int = 0
    inserted: int = 0
    modified: int = 0
    deleted: int = 0
    verified: int = 0
    seconds: dict[str, float] = field(default_factory=dict)  # per phase: routes, program, write, verify

    @property
    def written(self) -> int:
        return self.inserted + self.modified + self.deleted

    def add(self, updates: Sequence[p4r.Update]) -> None:
        inserted, modified, deleted = reconcile.counted(updates)
        self.inserted += inserted
        self.modified += modified
        self.deleted += deleted


@dataclass(slots=True)
class _Device:
    """One switch during `install`, and what it should hold."""

    target: Target
    switch: fy.Switch
    wanted: dict[Hashable, p4r.TableEntry]

    async def present(self) -> dict[Hashable, p4r.TableEntry]:
        schema = self.switch.p4info
        reading: Any = self.switch.read(reconcile.question(self.wanted, schema))  # declared as what it is not
        with translated(self.target, "read"):
            return reconcile.answer([entity.encode(schema).table_entry async for entity in reading])

    async def converge(self, report: InstallReport) -> None:
        updates = reconcile.difference(await self.present(), self.wanted)
        await write(self.target, self.switch, updates)
        report.add(updates)

    async def verify(self, report: InstallReport) -> None:
        """VerifyError if the switch does not hold exactly what is wanted."""
        present = await self.present()
        report.verified += reconcile.check_equal(self.target.name, present, self.wanted, self.switch.p4info)


async def install(
    topology: Topology,
    targets: Sequence[Target],
    program: Program,
    policy: Policy | None = None,
    verify: bool = True,
    election_id: int = defaults.ELECTION_ID,
) -> InstallReport:
    """Loads the program on all switches at once, writes the routes of `policy`, and reads everything back.

    Switches that already run the program keep it, and only differing entries are written. election_id: see
    `controller.defaults`. Raises ControllerError: SwitchUnreachableError, RefusedError or VerifyError name the
    switches, and the entries.
    """
    report = InstallReport()
    started = time.monotonic()
    schema = read_schema(program)
    wanted = fabric_entries(topology, schema, policy)
    report.seconds["routes"] = time.monotonic() - started
    await install_entries(targets, program, wanted, report, verify, election_id)
    return report


async def install_entries(
    targets: Sequence[Target],
    program: Program,
    wanted: Entries,
    report: InstallReport,
    verify: bool = True,
    election_id: int = defaults.ELECTION_ID,
) -> None:
    """As `install`, with entries that are already made: `wanted` has those of every target by its name."""
    report.switches = len(targets)
    options = fy.SwitchOptions(p4info=program.p4info, p4blob=program.json, initial_election_id=election_id)
    async with AsyncExitStack() as stack:
        devices: dict[str, _Device] = {}

        async def connect(target: Target) -> None:
            switch = await stack.enter_async_context(controlling(target, options))
            devices[target.name] = _Device(target, switch, reconcile.encoded(wanted[target.name], switch.p4info))

        with P4SchemaCache():
            await _phase(report, "program", targets, connect)
        await _phase(report, "write", targets, lambda target: devices[target.name].converge(report))
        if verify:
            await _phase(report, "verify", targets, lambda target: devices[target.name].verify(report))


async def _phase(report: InstallReport, name: str, targets: Sequence[Target], work: Any) -> None:
    started = time.monotonic()
    await each(targets, work)
    report.seconds[name] = time.monotonic() - started


def read_schema(program: Program) -> fy.P4Schema:
    """What the program's P4Info says, with the program itself; ControllerError if a file cannot be read."""
    try:
        return fy.P4Schema(program.p4info, program.json)
    except (OSError, ValueError) as error:
        raise ControllerError(f"{program.p4info}: {error}") from None
    except Exception as error:  # protobuf's ParseError has no public home
        raise ControllerError(f"{program.p4info} is not P4Info: {error}") from None

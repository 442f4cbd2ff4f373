"""Brings a fabric's switches to the state that a policy wants, over P4Runtime, and proves that they are in it.

`install` compares what a switch holds with what it should hold and writes the difference, so that a controller that
starts again disturbs no traffic.
"""

from __future__ import annotations

import time
from collections.abc import Hashable, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import finsy as fy
from finsy.p4schema import P4SchemaCache
from finsy.proto import p4r

from controller import defaults, entries
from controller.connection import controlling, each, translated, write
from controller.errors import ControllerError, VerifyError
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


@dataclass(slots=True)
class _Device:
    """One switch during `install`: wanted and present entries by identity."""

    target: Target
    switch: fy.Switch
    wanted: dict[Hashable, p4r.TableEntry]

    async def present(self) -> dict[Hashable, p4r.TableEntry]:
        """What the switch holds: all entries, and the defaults of those tables for which one is wanted."""
        defaults_of = {entry.table_id for entry in self.wanted.values() if entry.is_default_action}
        asked: list[Any] = [fy.P4TableEntry()]
        asked += [fy.P4TableEntry(self._alias(table), is_default_action=True) for table in sorted(defaults_of)]
        reading: Any = self.switch.read(asked)  # its overloads are not declared as what it is, an async generator
        with translated(self.target, "read"):
            found = [entity.encode(self.switch.p4info).table_entry async for entity in reading]
        return {entries.identity(entry): entry for entry in found if not entry.is_const}

    def _alias(self, table_id: int) -> str:
        return str(self.switch.p4info.tables[table_id].alias)

    def difference(self, present: Mapping[Hashable, p4r.TableEntry]) -> list[p4r.Update]:
        """The updates that turn what is present into what is wanted: deletions first, since tables may be full."""
        updates = []
        for key, entry in present.items():
            if key not in self.wanted and not entry.is_default_action:
                bare = p4r.TableEntry(table_id=entry.table_id, match=entry.match, priority=entry.priority)
                updates.append(_update(p4r.Update.DELETE, bare))
        for key, entry in self.wanted.items():
            if key not in present and not entry.is_default_action:
                updates.append(_update(p4r.Update.INSERT, entry))
            elif key not in present or entries.meaning(present[key]) != entries.meaning(entry):
                updates.append(_update(p4r.Update.MODIFY, entry))
        return updates

    async def converge(self, report: InstallReport) -> None:
        updates = self.difference(await self.present())
        await write(self.target, self.switch, updates)
        report.deleted += sum(update.type == p4r.Update.DELETE for update in updates)
        report.inserted += sum(update.type == p4r.Update.INSERT for update in updates)
        report.modified += sum(update.type == p4r.Update.MODIFY for update in updates)

    async def verify(self, report: InstallReport) -> None:
        """VerifyError if the switch does not hold exactly what is wanted."""
        present = await self.present()
        schema = self.switch.p4info
        for key in {**self.wanted, **present}:
            want, have = self.wanted.get(key), present.get(key)
            if want is None and have is not None:
                raise VerifyError(f"{self.target.name} has an unknown entry: {entries.describe(have, schema)}")
            if want is not None and have is None:
                raise VerifyError(f"{self.target.name} lacks an entry: {entries.describe(want, schema)}")
            if want is not None and have is not None and entries.meaning(want) != entries.meaning(have):
                table = schema.tables[want.table_id]
                raise VerifyError(
                    f"{self.target.name} has another action: {entries.describe(want, schema)} was written, "
                    f"{entries.action_text(have.action, table)} is there"
                )
            report.verified += 1


def _update(kind: Any, entry: p4r.TableEntry) -> p4r.Update:
    return p4r.Update(type=kind, entity=p4r.Entity(table_entry=entry))


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
            messages = [entry.encode(switch.p4info).table_entry for entry in wanted[target.name]]
            devices[target.name] = _Device(target, switch, {entries.identity(message): message for message in messages})

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
    """What the program's P4Info says; ControllerError if the file cannot be read."""
    try:
        return fy.P4Schema(program.p4info)
    except (OSError, ValueError) as error:
        raise ControllerError(f"{program.p4info}: {error}") from None
    except Exception as error:  # protobuf's ParseError has no public home
        raise ControllerError(f"{program.p4info} is not P4Info: {error}") from None

"""Keeps a fabric's switches as a policy wants them, whatever fails and whoever restarts.

    port states, connections, elections          (session)
        -> which links carry traffic
        -> the routes over these                  (policy.Router)
        -> the rounds from what switches hold     (transition)
        -> writes, to all switches of a round at once; then what was written is read back

The switches are the only memory: what they hold is read when a connection is made, so that a controller that starts
again writes nothing that is right already. Routes are the controller's; parameters are written where they are missing
only, since people change them (`plait lb set`).
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import finsy as fy
from finsy.proto import p4r

from controller import entries, reconcile
from controller.control import InstallReport
from controller.decisions import DecisionLog
from controller.errors import ControllerError, SwitchUnreachableError
from controller.named_paths import PATH_LABEL
from controller.neighborhood import Neighborhood
from controller.policy import Policy, Router, check_room, parameter_entries
from controller.routes import ROUTES
from controller.session import Session
from controller.targets import Target
from controller.transition import Change, Key, Ranked, Round, key_of, rounds
from mininet_topos.topology import Link, Topology

# Packets that were sent by entries which are gone have passed after this: several round trips with full queues.
DRAIN_S = 0.2

# News come in bunches, of both ends of a link or of all links of a switch.
_GATHER_S = 0.002

# Refusals in a row, after which a switch is left alone.
_MOST_FAILURES = 3

# How long a controller waits at its start for switches that neither answer nor refuse to.
_FIRST_TRY_S = 5.0


@dataclass(slots=True)
class _Switch:
    session: Session
    asked: bool = False  # its program and entries are to be looked at
    again: bool = False  # the same, the next time
    failures: int = 0
    fresh: bool = False  # we have just loaded its program: it holds nothing
    empty: bool = False  # it lacks entries, so that nothing should be sent to it
    ready: bool = False  # `routes` are what it holds
    routes: dict[Key, fy.P4TableEntry] = field(default_factory=dict)

    @property
    def name(self) -> str:
        return self.session.name


class Keeper:
    """`run` works until it is cancelled; `settled` is set whenever there is nothing to do."""

    def __init__(
        self, topology: Topology, targets: Sequence[Target], schema: fy.P4Schema, policy: Policy, log: DecisionLog
    ) -> None:
        """ControllerError for a policy that does not fit program or topology."""
        started = time.monotonic()
        self.topology = topology
        self.report = InstallReport()
        self.settled = asyncio.Event()
        self._schema = schema
        self._log = log
        self._router = Router(topology, schema, policy)
        self._parameters = parameter_entries(topology, schema, policy)
        self._switches = {target.name: _Switch(Session(target, schema, self)) for target in targets}
        sessions = {name: switch.session for name, switch in self._switches.items()}
        self._neighborhood = Neighborhood(topology, sessions, schema, log)
        self._route_tables = {table.id for table in schema.tables if table.alias in (ROUTES, PATH_LABEL)}
        self._down: frozenset[Link] = frozenset()
        self._ranked: Mapping[str, Ranked] = {}
        self._news = asyncio.Event()
        self._noticed = 0.0  # monotonic time of the first news that is not dealt with; 0: there is none
        self._starting = True
        self._elected: dict[str, list[str]] = {}  # what is to be told of elections, and of which switches
        self._awaiting = False  # switches that have not come up yet, as when a laboratory starts
        self._change_down(frozenset())
        self._time("routes", started)

    # --- news ---

    def _notice(self) -> None:
        self._noticed = self._noticed or time.monotonic()
        self.settled.clear()
        self._news.set()

    def session_primary(self, session: Session) -> None:
        switch = self._switches[session.name]
        switch.asked, switch.failures = True, 0
        if switch.ready:
            self._elected.setdefault("primary again; entries are left as they are", []).append(session.name)
        self._notice()

    def session_backup(self, session: Session, primary_id: int) -> None:
        text = f"another controller, with election id {primary_id}, is primary; stepping back while it is"
        self._elected.setdefault(text, []).append(session.name)
        self._notice()

    def session_lost(self, session: Session, reason: str) -> None:
        self._switches[session.name].ready = False
        if not self._awaiting:
            self._log.add("switch", f"{session.name}: lost: {reason}")
        self._notice()

    def session_port(self, session: Session, port: int, up: bool) -> None:
        self._notice()

    def session_packet(self, session: Session, packet: p4r.PacketIn) -> None:
        self._neighborhood.packet(session, packet)

    # --- the loop ---

    async def run(self, wait_for_all: bool = False) -> None:
        """wait_for_all: nothing is written before every switch has come up, as when a laboratory starts."""
        self._awaiting = wait_for_all
        async with asyncio.TaskGroup() as tasks:
            for switch in self._switches.values():
                tasks.create_task(switch.session.run())
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(_FIRST_TRY_S):
                    for switch in self._switches.values():
                        await switch.session.tried.wait()
            while wait_for_all and not all(switch.session.primary for switch in self._switches.values()):
                await self._wait(None)
            self._awaiting = False
            wiring: asyncio.Task[None] | None = None
            while True:
                await self._converge()
                if self._starting:
                    self._starting = False
                    self.report.switches = sum(switch.ready for switch in self._switches.values())
                    self.report.verified = sum(
                        len(switch.routes) + len(self._parameters[switch.name])
                        for switch in self._switches.values()
                        if switch.ready
                    )
                if not self._news.is_set():
                    self.settled.set()
                    if self._neighborhood.unchecked and (wiring is None or wiring.done()):
                        wiring = tasks.create_task(self._neighborhood.check())
                await self._wait(None)
                await asyncio.sleep(_GATHER_S)

    async def _wait(self, seconds: float | None) -> None:
        """For news, or until seconds have passed."""
        try:
            async with asyncio.timeout(seconds):
                await self._news.wait()
        except TimeoutError:
            return
        if seconds is None:
            self._news.clear()

    async def _converge(self) -> None:
        """Brings all switches that can be written to what they should hold now."""
        self._news.clear()
        for text, names in self._elected.items():
            some = ", ".join(names[:5]) + (f" and {len(names) - 5} more" if len(names) > 5 else "")
            self._log.add("election", f"{some}: {text}", switches=names)
        self._elected.clear()
        noticed, self._noticed = self._noticed or time.monotonic(), 0.0
        for switch in self._switches.values():
            switch.asked, switch.again = switch.asked or switch.again, False
        asked = [switch for switch in self._switches.values() if switch.asked and switch.session.primary]
        started = time.monotonic()
        await self._at_all(asked, self._look)
        self._time("program", started)
        self._change_down(frozenset(link for link in self.topology.links if not self._carries(link)))
        started = time.monotonic()
        await self._at_all([switch for switch in asked if switch.asked], self._fill)
        written = await self._transit(noticed)
        self._time("write", started)
        started = time.monotonic()
        await self._verify(written)
        self._time("verify", started)

    def _time(self, phase: str, started: float) -> None:
        self.report.seconds[phase] = time.monotonic() - started

    def _carries(self, link: Link) -> bool:
        """Whether traffic may be sent by a link: no end says that it is down, and no switch is without entries."""
        ends = [(switch, port) for name, port in link.ends if (switch := self._switches.get(name)) is not None]
        if any(switch.session.ports.get(port) is False for switch, port in ends):
            return False
        between_switches = len(ends) == 2
        return self._starting or not (between_switches and any(switch.empty for switch, _ in ends))

    def _change_down(self, down: frozenset[Link]) -> None:
        for links, what in ((down - self._down, "down"), (self._down - down, "up")):
            self._tell_links(links, what)
        self._neighborhood.look_at(self._down - down)
        if down != self._down or not self._ranked:
            self._ranked = self._router.ranked(down)
            self._down = down
            for name, ranked in self._ranked.items():
                check_room(name, [entry for _, entry in ranked], self._schema)

    def _tell_links(self, links: frozenset[Link], what: str) -> None:
        left = set(links)
        for switch in self.topology.switches:
            own = {neighbor.link for neighbor in self.topology.neighbors(switch.name)}
            if len(own) > 1 and own <= left:
                left -= own
                self._log.add("link", f"all {len(own)} links of {switch.name} are {what}", switch=switch.name)
        for link in sorted(left, key=lambda link: link.name):
            hosts = [name for name, _ in link.ends if self.topology.node(name).is_host]
            last = f"; there is no other way to {hosts[0]}" if hosts and what == "down" else ""
            self._log.add("link", f"{link.a}-{link.b} ({link.name}) is {what}{last}", link=link.name)

    # --- one switch ---

    async def _at_all(self, switches: Sequence[_Switch], work: Any) -> None:
        """`work(switch)` for all at once.  What a switch refuses is told, and the switch is looked at anew."""

        async def one(switch: _Switch) -> None:
            try:
                await work(switch)
            except ControllerError as error:
                self._failed(switch, error)

        await asyncio.gather(*(one(switch) for switch in switches))

    def _failed(self, switch: _Switch, error: ControllerError) -> None:
        switch.ready = switch.asked = False
        if isinstance(error, SwitchUnreachableError):
            return  # the session tells, and comes back
        switch.failures += 1
        switch.again = switch.failures < _MOST_FAILURES
        self._log.add("switch", f"{error}" + ("" if switch.again else "; left alone until it connects anew"))
        if switch.again:
            self._notice()

    async def _look(self, switch: _Switch) -> None:
        """Sees to it that the switch runs the program."""
        cookie = await switch.session.program_cookie()
        switch.fresh = cookie is None
        if switch.fresh:
            switch.empty, switch.ready = True, False
            await switch.session.load_program()
            if not self._starting:
                self._log.add("switch", f"{switch.name}: it had no program; loaded, and entries follow")
        elif cookie != self._schema.p4cookie:
            switch.asked = switch.ready = False
            self._log.add("switch", f"{switch.name}: it runs another program, of somebody else; left alone")
        elif switch.ready:
            switch.asked = False

    async def _fill(self, switch: _Switch) -> None:
        """Reads what the switch holds, and writes what it lacks; routes that differ are `_transit`'s."""
        session, ranked = switch.session, self._ranked[switch.name]
        parameters = reconcile.encoded(self._parameters[switch.name], self._schema)
        routes = {key_of(entry): entry for _, entry in ranked}
        messages = {key: entry.encode(self._schema).table_entry for key, entry in routes.items()}
        if switch.fresh:
            updates = reconcile.difference({}, parameters)
            updates += reconcile.difference({}, {entries.identity(message): message for message in messages.values()})
            await session.write(updates)
            switch.routes = routes
            await self._check(switch, parameters, routes)
        else:
            question = reconcile.question(parameters, self._schema)
            present = reconcile.answer(entity.table_entry for entity in await session.read(question))
            updates = reconcile.difference({}, {key: entry for key, entry in parameters.items() if key not in present})
            await session.write(updates)
            switch.routes = self._held(present, routes, messages)
            self._tell_changed(switch, parameters, present)
        self.report.add(updates)
        if switch.empty and not self._starting:
            self._notice()  # its links carry traffic from now on
        switch.ready, switch.empty, switch.asked = True, False, False

    def _held(
        self,
        present: Mapping[Any, p4r.TableEntry],
        routes: Mapping[Key, fy.P4TableEntry],
        messages: Mapping[Key, p4r.TableEntry],
    ) -> dict[Key, fy.P4TableEntry]:
        """The routes that a switch holds; those that mean what is wanted are the wanted ones themselves."""
        wanted = {entries.identity(message): key for key, message in messages.items()}
        held = {}
        for identity, entry in present.items():
            if entry.table_id not in self._route_tables:
                continue
            key = wanted.get(identity)
            if key is not None and entries.meaning(messages[key]) == entries.meaning(entry):
                held[key] = routes[key]
            else:
                found = fy.P4TableEntry.decode(p4r.Entity(table_entry=entry), self._schema)
                found.table_id = str(self._schema.tables[entry.table_id].alias)
                held[key if key is not None else key_of(found)] = found
        return held

    def _tell_changed(
        self, switch: _Switch, parameters: reconcile.State, present: Mapping[Any, p4r.TableEntry]
    ) -> None:
        differ = [
            entry
            for key, entry in parameters.items()
            if key in present and entries.meaning(present[key]) != entries.meaning(entry)
        ]
        if differ:
            tables = ", ".join(sorted({str(self._schema.tables[entry.table_id].alias) for entry in differ}))
            text = f"{switch.name}: somebody changed entries of {tables} ({len(differ)}); they are left so"
            self._log.add("switch", text)

    # --- all switches ---

    async def _transit(self, noticed: float) -> dict[str, list[Change]]:
        """Changes routes round by round; returns what was changed.  Stops where news overtake names that go."""
        done: dict[str, list[Change]] = {}
        ready = {s.name: s for s in self._switches.values() if s.ready and s.session.primary}
        steps = rounds({name: switch.routes for name, switch in ready.items()}, self._ranked)
        left = [step for step in steps if step.drain]
        for step in steps:
            if step.drain:
                continue
            await self._write_round(step, ready, done)
        if done:
            self._tell_repair(done, len(steps) - len(left), noticed)
        for step in left:
            await self._wait(DRAIN_S)
            if self._news.is_set():
                break  # what is left over is in the next steps
            await self._write_round(step, ready, done)
        return done

    async def _write_round(self, step: Round, switches: Mapping[str, _Switch], done: dict[str, list[Change]]) -> None:
        async def one(switch: _Switch) -> None:
            changes = step.changes[switch.name]
            updates = [change.encode(self._schema) for change in changes]
            await switch.session.write(updates)
            for change in changes:
                if change.kind == p4r.Update.DELETE:
                    del switch.routes[change.key]
                else:
                    switch.routes[change.key] = change.entry
            done.setdefault(switch.name, []).extend(changes)
            self.report.add(updates)

        await self._at_all([switches[name] for name in step.changes if switches[name].ready], one)

    def _tell_repair(self, done: Mapping[str, Sequence[Change]], steps: int, noticed: float) -> None:
        kinds = [change.kind for changes in done.values() for change in changes]
        counts = {
            word: kinds.count(kind)
            for word, kind in (
                ("inserted", p4r.Update.INSERT),
                ("modified", p4r.Update.MODIFY),
                ("deleted", p4r.Update.DELETE),
            )
        }
        seconds = time.monotonic() - noticed
        text = ", ".join(f"{count} {word}" for word, count in counts.items() if count)
        self._log.add(
            "repair",
            f"routes changed on {len(done)} switches: {text}; {steps} rounds, {1000 * seconds:.0f} ms after the news",
            switches=len(done),
            seconds=seconds,
            **counts,
        )

    async def _verify(self, written: Mapping[str, Sequence[Change]]) -> None:
        """Reads back what was written, and only that: people may have changed other entries meanwhile."""

        async def one(switch: _Switch) -> None:
            routes = {
                change.key: switch.routes[change.key] for change in written[switch.name] if change.key in switch.routes
            }
            await self._check(switch, {}, routes)

        chosen = [switch for name in written if (switch := self._switches[name]).ready and switch.session.primary]
        await self._at_all(chosen, one)
        if chosen:
            count = sum(len(written[switch.name]) for switch in chosen)
            self._log.add("verify", f"{count} changes on {len(chosen)} switches were read back", switches=len(chosen))

    async def _check(self, switch: _Switch, parameters: reconcile.State, routes: Mapping[Key, fy.P4TableEntry]) -> None:
        """VerifyError unless the switch holds these entries."""
        wanted = {**parameters, **reconcile.encoded(routes.values(), self._schema)}
        found = await switch.session.read(reconcile.question(wanted, self._schema))
        present = reconcile.answer(entity.table_entry for entity in found)
        same = {key: entry for key, entry in present.items() if key in wanted}
        reconcile.check_equal(switch.name, same, wanted, self._schema)

"""The engine as a whole: random programs on linked switches, control calls right and wrong; packets must add up."""

from __future__ import annotations

import random
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from engine.build import build as build_engine
from fastswitch.codegen import ProgramError, compile_json, initial_state, load_program, model
from fuzz.frames import Frames
from fuzz.grammar import Grammar
from fuzz.packets import ROOT, document, sources
from fuzz.pipelines import number
from fuzz.target import BUILD, Fault, Target

_STEPS = 250
_EVENTS = 4000  # of one turn: a program may resubmit for ever
_PORTS = (0, 1, 2, 3, 4, 9, 510)
_REFUSALS = (ValueError, IndexError, TypeError, OSError, MemoryError)


class Switches(Target):
    """Two switches in virtual time."""

    name = "switch"

    def __init__(self, keep: Path | None = None) -> None:
        super().__init__(keep)
        build_engine(ROOT, sanitize=True)
        import engine  # the sanitized one, which exists only now

        self._engine = engine
        self._known = [document(path) for path in sources()[:2]]

    def case(self, rng: random.Random) -> int:
        made = rng.choice([*self._known, Grammar(rng).program()])
        assert made is not None
        with tempfile.TemporaryDirectory(prefix="plait-fuzz-") as scratch:
            folder = BUILD / "cache" if made in self._known else Path(scratch)
            try:
                library = compile_json(made, folder, sanitize=True)
            except ProgramError:
                return 0
            with self._engine.Fabric("virtual", seed=rng.getrandbits(64)) as fabric:
                _Lab(self._engine, fabric, made, library, rng).run()
        return _STEPS


class _Lab:
    def __init__(self, engine: Any, fabric: Any, made: dict[str, Any], library: Path, rng: random.Random) -> None:
        self._engine = engine
        self._fabric = fabric
        self._rng = rng
        self._library = library
        self._program = load_program(made)
        self._frames = Frames(self._program)
        queues = rng.choice([1, 1, 8])
        self._switches = [fabric.add_switch(f"s{i}", i, cpu_port=510, priority_queues=queues) for i in range(1, 3)]
        self._links = [
            fabric.connect(
                self._switches[0],
                1,
                self._switches[1],
                1,
                rate_bps=rng.choice([0, 10**6, 10**9]),
                delay_ns=rng.choice([0, 1000, 10**6]),
                loss=rng.choice([0.0, 0.3]),
                queue_packets=rng.choice([None, 1, 100]),
                queue_bytes=rng.choice([None, 100, 10**6]),
            )
        ]
        for switch in self._switches:
            for port in (2, 3, 4):
                switch.tap(port)
            self._load(switch)
        self._handles: list[tuple[int, int, int]] = []  # switch, table, entry
        self._members: list[list[int]] = [[], []]
        self._groups: list[list[int]] = [[], []]

    def _load(self, switch: Any) -> None:
        switch.load(self._library)
        state = initial_state(self._program)
        for default in state.defaults:
            switch.default_set(default.table, ("action", default.action, default.params))
        for entry in state.entries:
            key = (entry.table, entry.key, entry.mask, entry.prefix_len, entry.range_high, entry.priority)
            try:
                switch.entry_insert(*key, entry.target)
            except (self._engine.EntryExists, self._engine.TableFull):
                continue

    def run(self) -> None:
        """Steps in random order; at the end everything that came in has gone somewhere."""
        refusals = (*_REFUSALS, self._engine.EntryExists, self._engine.TableFull)
        steps: list[Callable[[], None]] = [self._inject] * 8 + [self._insert] * 5
        steps += [self._modify, self._delete, self._member, self._group, self._default, self._replication]
        steps += [self._arrays, self._queues, self._link, self._turn, self._turn, self._events, self._generate]
        for _ in range(_STEPS):
            try:
                self._rng.choice(steps)()
            except refusals as error:
                if not str(error):
                    raise Fault(f"a refusal that says nothing: {error!r}") from error
        for _ in range(50):
            self._turn(10**9)
            if not self._fabric.packets_alive:
                self._accounts()
                return

    def _turn(self, ns: int | None = None) -> None:
        """Some time passes: bounded by events, since a packet may be resubmitted for ever."""
        library, ffi = self._engine._library.lib, self._engine._library.ffi
        until = self._fabric.now_ns + (ns or self._rng.choice([0, 1000, 10**6]))
        library.plait_fabric_run_until(self._fabric._alive(), until, _EVENTS, ffi.new("int *"))

    def _accounts(self) -> None:
        for switch in self._switches:
            stats = switch.stats()
            dropped = sum(count for name, count in stats.items() if name.startswith("drops_") and name != "drops_event")
            out = 0
            for port in range(513):
                try:
                    one = switch.port_stats(port)
                except _REFUSALS:
                    continue
                out += one["sent_packets"] + one["drops_queue"]
            if stats["received"] + stats["copies"] != out + dropped:
                raise Fault(f"{switch.name}: packets do not add up: {stats}, {out} sent or dropped at ports")

    # -- packets

    def _switch(self) -> Any:
        return self._rng.choice(self._switches)

    def _inject(self) -> None:
        port = self._rng.choice([*_PORTS, self._rng.randrange(600)])
        self._switch().inject(port, self._frames.make(self._rng))

    def _generate(self) -> None:
        frame = self._frames.make(self._rng)
        self._switch().generate(self._rng.choice(_PORTS), frame, self._rng.randrange(20), self._rng.choice([0, 1000]))

    def _events(self) -> None:
        self._switch().poll_events()

    def _queues(self) -> None:
        rng = self._rng
        wild = rng.random() < 0.1
        self._switch().set_queue(
            rng.choice(_PORTS),
            rate_bps=rng.choice([None, 0, 10**6, (1 << 63) - 1]),
            depth_packets=rng.choice([None, 0, 1, 64, 1 << 40]),
            depth_bytes=rng.choice([None, 0, 1, 10**6, 1 << 62]),
            queue=rng.choice([None, 0, 7, rng.getrandbits(31) if wild else 1]),
        )

    def _link(self) -> None:
        rng = self._rng
        link = self._links[0]
        if rng.random() < 0.5:
            link.set_up(rng.random() < 0.6)
        else:
            link.set(
                rate_bps=rng.choice([None, 0, 10**9, 1, (1 << 63) - 1]),
                delay_ns=rng.choice([None, 0, 10**6, (1 << 62)]) if rng.random() < 0.05 else rng.choice([None, 0, 500]),
                loss=rng.choice([None, 0, 0.5, 1]),
            )

    # -- control

    def _index(self, count: int) -> int:
        return self._rng.randrange(count) if count and self._rng.random() < 0.95 else self._rng.getrandbits(32)

    def _bytes(self, widths: list[int]) -> bytes:
        data = b"".join(number(self._rng, width).to_bytes((width + 7) // 8, "big") for width in widths)
        if self._rng.random() < 0.04:
            return self._rng.randbytes(self._rng.choice([0, 1, len(data), len(data) + 1]))
        return data

    def _params(self, action: int) -> bytes:
        if action < len(self._program.actions):
            return self._bytes([param.width for param in self._program.actions[action].params])
        return b""

    def _target(self, place: int, table: model.Table | None) -> Any:
        rng = self._rng
        kind = rng.random()
        if table is not None and table.kind == "simple" or kind < 0.4:
            # An action that is not the table's is a mistake that only the caller can see: it does nothing.
            action = rng.choice(table.actions).index if table and table.actions else self._index(3)
            return ("action", action, self._params(action))
        if kind < 0.7:
            return ("member", rng.choice([*self._members[place], rng.getrandbits(32)]))
        return ("group", rng.choice([*self._groups[place], rng.getrandbits(32)]))

    def _place(self) -> tuple[int, Any]:
        place = self._rng.randrange(2)
        return place, self._switches[place]

    def _table(self) -> tuple[int, model.Table | None]:
        index = self._index(len(self._program.tables))
        return index, self._program.tables[index] if index < len(self._program.tables) else None

    def _insert(self) -> None:
        rng = self._rng
        place, switch = self._place()
        index, table = self._table()
        widths = [key.width for key in table.keys] if table else [8]
        key, high = self._bytes(widths), self._bytes(widths)
        if rng.random() < 0.8:
            high = max(key, high)
        mask = rng.choice([self._bytes(widths), b"\xff" * len(key), None])
        if mask is not None and len(mask) == len(key):
            mask = _within(mask, widths)
        prefix = rng.choice([None, rng.randrange(65), rng.getrandbits(31)])
        handle = switch.entry_insert(index, key, mask, prefix, high, rng.randrange(9), self._target(place, table))
        self._handles.append((place, index, handle))

    def _any_handle(self) -> tuple[int, int, int]:
        if self._handles and self._rng.random() < 0.9:
            return self._rng.choice(self._handles)
        return self._rng.randrange(2), self._index(len(self._program.tables)), self._rng.getrandbits(64)

    def _modify(self) -> None:
        place, index, handle = self._any_handle()
        table = self._program.tables[index] if index < len(self._program.tables) else None
        self._switches[place].entry_modify(index, handle, self._target(place, table))

    def _delete(self) -> None:
        place, index, handle = self._any_handle()
        if self._rng.random() < 0.3:
            self._switches[place].entry_counter_set(index, handle, self._rng.getrandbits(64), 1)
            self._switches[place].entry_counter(index, handle)
        self._switches[place].entry_delete(index, handle)

    def _default(self) -> None:
        place, switch = self._place()
        index, table = self._table()
        switch.default_set(index, self._rng.choice([None, self._target(place, table)]))

    def _member(self) -> None:
        rng = self._rng
        place, switch = self._place()
        action = self._index(len(self._program.actions))
        members = self._members[place]
        if members and rng.random() < 0.5:
            chosen = rng.choice(members)
            if rng.random() < 0.5:
                switch.member_modify(chosen, action, self._params(action))
            else:
                switch.member_delete(chosen)
        else:
            members.append(switch.member_create(action, self._params(action)))

    def _group(self) -> None:
        rng = self._rng
        place, switch = self._place()
        groups = self._groups[place]
        if not groups or rng.random() < 0.2:
            groups.append(switch.group_create())
        elif rng.random() < 0.2:
            switch.group_delete(rng.choice(groups))
        else:
            wanted = [rng.choice([*self._members[place], rng.getrandbits(32)]) for _ in range(rng.randrange(4))]
            weights = [rng.choice([1, 1, 2, 5, 0, 70_000, (1 << 32) - 1]) for _ in wanted]
            switch.group_set(rng.choice(groups), list(zip(wanted, weights, strict=True)))

    def _replication(self) -> None:
        rng = self._rng
        switch = self._switch()
        replicas = [(rng.choice([*_PORTS, 511, 512]), rng.randrange(3)) for _ in range(rng.randrange(5))]
        match rng.randrange(4):
            case 0:
                switch.multicast_set(rng.choice([0, 1, 2, 65535, 1 << 20]), replicas)
            case 1:
                switch.multicast_delete(rng.choice([0, 1, 2]))
            case 2:
                session = rng.choice([0, 1, 2, 32767, 1 << 20])
                switch.clone_session_set(session, replicas, rng.choice([0, 1, 60, 1 << 31]))
            case _:
                switch.clone_session_delete(rng.choice([0, 1, 2]))

    def _arrays(self) -> None:
        rng = self._rng
        switch = self._switch()
        match rng.randrange(7):
            case 0:
                switch.register_write(self._index(3), self._index(8), rng.randbytes(rng.choice([1, 2, 4, 8, 16])))
            case 1:
                switch.register_read_all(self._index(3))
            case 2:
                switch.counter_write(self._index(3), self._index(8), rng.getrandbits(64), rng.getrandbits(64))
            case 3:
                switch.counter_read_all(self._index(3))
            case 4:
                rates = [rng.choice([0, 1, 10**6, (1 << 64) - 1]) for _ in range(4)]
                switch.meter_set(self._index(2), self._index(4), *rates)
            case 5:
                place, index, handle = self._any_handle()
                self._switches[place].entry_meter_set(index, handle, 1000, 100, 2000, rng.getrandbits(64))
            case _:
                if rng.random() < 0.2:
                    self._load(switch)
                    place = self._switches.index(switch)
                    self._members[place], self._groups[place] = [], []


def _within(data: bytes, widths: list[int]) -> bytes:
    """Each field's padding cleared."""
    found = bytearray(data)
    at = 0
    for width in widths:
        if width % 8:
            found[at] &= (1 << width % 8) - 1
        at += (width + 7) // 8
    return bytes(found)

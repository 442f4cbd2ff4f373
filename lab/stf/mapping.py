"""STF statements as P4Runtime entities, by nothing but the program's P4Info."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from finsy.proto import p4i, p4r

from lab.stf.names import find, find_key, find_object
from lab.stf.syntax import Add, Call, CheckCounter, Command, SetDefault, Statement, Value, number

INSERT, MODIFY, DELETE = p4r.Update.INSERT, p4r.Update.MODIFY, p4r.Update.DELETE

_MatchType = p4i.MatchField
_WITH_PRIORITY = (_MatchType.TERNARY, _MatchType.RANGE, _MatchType.OPTIONAL)
_BITS_OF_DIGIT = {"0x": 4, "0b": 1, "0o": 3}
_MICROSECONDS = 1_000_000  # meters: simple_switch_CLI takes units per microsecond, P4Runtime units per second


class MappingError(Exception):
    """A statement that does not fit the program."""


class UnmappedError(Exception):
    """A statement for which P4Runtime has nothing."""


@dataclass(slots=True)
class _Node:
    """A node of simple_switch_CLI's multicast engine, which P4Runtime knows only as part of a group."""

    rid: int
    ports: tuple[int, ...]


@dataclass(slots=True)
class Mapper:
    """The statements of one case, in order: multicast nodes and labels of entries refer to earlier ones."""

    p4info: Any
    _nodes: list[_Node] = field(default_factory=list)
    _groups: dict[int, list[int]] = field(default_factory=dict)  # handles of nodes
    _sessions: set[int] = field(default_factory=set)
    _written: set[int] = field(default_factory=set)  # groups that the switch has
    _entries: list[Any] = field(default_factory=list)
    _labels: dict[str, Any] = field(default_factory=dict)

    def writes(self, statement: Statement) -> list[Any]:
        """The updates that a statement is; none for one that only reads, and for `wait` and `no_packet`.

        UnresolvedName, MappingError, or UnmappedError.
        """
        if isinstance(statement, Add):
            return [self._add(statement)]
        if isinstance(statement, SetDefault):
            return [self._set_default(statement)]
        if isinstance(statement, Command):
            handler = _WRITES.get(statement.verb)
            return handler(self, statement) if handler is not None else []
        return []

    def reads(self, statement: Statement) -> Any | None:
        """The entity that a statement asks for, or None."""
        if isinstance(statement, CheckCounter):
            return self._counter(statement)
        if isinstance(statement, Command):
            handler = _READS.get(statement.verb)
            return handler(self, statement) if handler is not None else None
        return None

    def leftovers(self) -> list[Any]:
        """Deletes what a new program does not: multicast groups and clone sessions."""
        groups = [_update(DELETE, _multicast(group, ())) for group in sorted(self._written)]
        return groups + [_update(DELETE, _clone(session, ())) for session in sorted(self._sessions)]

    # Tables

    def _add(self, statement: Add) -> Any:
        table = find_object("table", statement.table, self.p4info.tables)
        entry = p4r.TableEntry(table_id=table.preamble.id)
        given: dict[int, Value] = {}
        for name, value in statement.keys:
            key = find_key(table, name)
            if key.id in given:
                raise MappingError(f"key {key.name} is given twice")
            given[key.id] = value
        for key in table.match_fields:
            match = _match(key, given.get(key.id))
            if match is not None:
                entry.match.append(match)
        if any(key.match_type in _WITH_PRIORITY for key in table.match_fields):
            entry.priority = (statement.priority or 0) + 1  # P4Runtime has no priority 0
        entry.action.action.CopyFrom(self._action(table, statement.call))
        self._entries.append(entry)
        if statement.label is not None:
            self._labels[statement.label] = entry
        return _update(INSERT, p4r.Entity(table_entry=entry))

    def _set_default(self, statement: SetDefault) -> Any:
        table = find_object("table", statement.table, self.p4info.tables)
        entry = p4r.TableEntry(table_id=table.preamble.id, is_default_action=True)
        entry.action.action.CopyFrom(self._action(table, statement.call))
        return _update(MODIFY, p4r.Entity(table_entry=entry))

    def _remove(self, statement: Command) -> list[Any]:
        updates = []
        for entry in self._entries:
            bare = p4r.TableEntry(table_id=entry.table_id, match=entry.match, priority=entry.priority)
            updates.append(_update(DELETE, p4r.Entity(table_entry=bare)))
        self._entries.clear()
        return updates

    def _action(self, table: Any, call: Call) -> Any:
        ids = {reference.id for reference in table.action_refs}
        actions = [action for action in self.p4info.actions if action.preamble.id in ids]
        action = find_object(f"action of table {table.preamble.name}", call.action, actions)
        message = p4r.Action(action_id=action.preamble.id)
        given = {}
        for name, value in call.arguments:
            param = find(f"parameter of {action.preamble.name}", name, action.params, lambda p: (p.name,))
            given[param.id] = _integer(value, param.bitwidth, param.name)
        for param in action.params:
            if param.id not in given:
                raise MappingError(f"parameter {param.name} of {action.preamble.name} is missing")
            message.params.add(param_id=param.id, value=_bytes(given[param.id]))
        return message

    # Replication

    def _group_create(self, statement: Command) -> list[Any]:
        self._groups[statement.numbers[0]] = []
        return []

    def _node_create(self, statement: Command) -> list[Any]:
        self._nodes.append(_Node(statement.numbers[0], statement.numbers[1:]))
        return []

    def _node_update(self, statement: Command) -> list[Any]:
        handle = statement.numbers[0]
        self._node(handle).ports = statement.numbers[1:]
        return [self._group_update(group) for group, handles in self._groups.items() if handle in handles]

    def _associate(self, statement: Command) -> list[Any]:
        group, handle = statement.numbers
        if group not in self._groups:
            raise MappingError(f"there is no multicast group {group}: create it with mc_mgrp_create")
        self._node(handle)
        self._groups[group].append(handle)
        return [self._group_update(group)]

    def _node(self, handle: int) -> _Node:
        if handle >= len(self._nodes):
            raise MappingError(f"there is no multicast node {handle}: the {len(self._nodes)} nodes count from 0")
        return self._nodes[handle]

    def _group_update(self, group: int) -> Any:
        kind = MODIFY if group in self._written else INSERT
        self._written.add(group)
        return _update(kind, _multicast(group, self._replicas(group)))

    def _replicas(self, group: int) -> list[tuple[int, int]]:
        """(port, instance) of a group, node by node."""
        nodes = [self._nodes[handle] for handle in self._groups[group]]
        return [(port, node.rid) for node in nodes for port in node.ports]

    def _mirror(self, statement: Command) -> list[Any]:
        session, port = statement.numbers
        return [self._session(session, [(port, 0)])]

    def _mirror_group(self, statement: Command) -> list[Any]:
        session, group = statement.numbers
        if group not in self._groups:
            raise MappingError(f"there is no multicast group {group}: create it with mc_mgrp_create")
        return [self._session(session, self._replicas(group))]

    def _session(self, session: int, replicas: Sequence[tuple[int, int]]) -> Any:
        if session == 0:
            raise UnmappedError("P4Runtime has no clone session 0")
        kind = MODIFY if session in self._sessions else INSERT
        self._sessions.add(session)
        return _update(kind, _clone(session, replicas))

    def _unmirror(self, statement: Command) -> list[Any]:
        self._sessions.discard(statement.numbers[0])
        return [_update(DELETE, _clone(statement.numbers[0], ()))]

    def _mirror_read(self, statement: Command) -> Any:
        return _clone(statement.numbers[0], ())

    # Counters, registers, meters

    def _counter(self, statement: CheckCounter) -> Any:
        if isinstance(statement.index, int):
            return self._counter_cell(statement.counter, statement.index)
        entry = self._labels.get(statement.index)
        if entry is None:
            raise MappingError(f"no entry is labelled {statement.index!r}")
        counter = find_object("direct counter", statement.counter, self.p4info.direct_counters)
        if counter.direct_table_id != entry.table_id:
            raise MappingError(f"entry {statement.index!r} is not of the table that {counter.preamble.name} counts for")
        bare = p4r.TableEntry(table_id=entry.table_id, match=entry.match, priority=entry.priority)
        return p4r.Entity(direct_counter_entry=p4r.DirectCounterEntry(table_entry=bare))

    def _counter_cell(self, name: str, index: int) -> Any:
        counter = find_object("counter", name, self.p4info.counters)
        return p4r.Entity(counter_entry=p4r.CounterEntry(counter_id=counter.preamble.id, index=p4r.Index(index=index)))

    def _counter_read(self, statement: Command) -> Any:
        return self._counter_cell(statement.name, statement.numbers[0])

    def _counter_write(self, statement: Command) -> list[Any]:
        index, packets, bytes_ = statement.numbers
        entity = self._counter_cell(statement.name, index)
        entity.counter_entry.data.packet_count, entity.counter_entry.data.byte_count = packets, bytes_
        return [_update(MODIFY, entity)]

    def _register(self, name: str, index: int | None) -> tuple[Any, int]:
        """An entry of all cells or one, and the cells' width; UnmappedError for other types than bit<W> and int<W>."""
        register = find_object("register", name, self.p4info.registers)
        bitstring = register.type_spec.bitstring
        width = bitstring.bit.bitwidth or bitstring.int.bitwidth
        if not width:
            raise UnmappedError(f"cells of register {register.preamble.name} are no bit<W>")
        entry = p4r.RegisterEntry(register_id=register.preamble.id)
        if index is not None:
            entry.index.index = index
        return p4r.Entity(register_entry=entry), width

    def _register_read(self, statement: Command) -> Any:
        return self._register(statement.name, statement.numbers[0])[0]

    def _register_write(self, statement: Command) -> list[Any]:
        index, value = statement.numbers
        entity, width = self._register(statement.name, index)
        _check_width(value, width, statement.name)
        entity.register_entry.data.bitstring = _bytes(value)
        return [_update(MODIFY, entity)]

    def _register_reset(self, statement: Command) -> list[Any]:
        entity, _ = self._register(statement.name, None)
        entity.register_entry.data.bitstring = _bytes(0)
        return [_update(MODIFY, entity)]

    def _meter(self, statement: Command, index: int) -> Any:
        meter = find_object("meter", statement.name, self.p4info.meters)
        entry = p4r.MeterEntry(meter_id=meter.preamble.id, index=p4r.Index(index=index))
        if statement.rates:
            (rate, burst), (peak_rate, peak_burst) = statement.rates
            entry.config.cir, entry.config.cburst = round(rate * _MICROSECONDS), burst
            entry.config.pir, entry.config.pburst = round(peak_rate * _MICROSECONDS), peak_burst
        return p4r.Entity(meter_entry=entry)

    def _meter_read(self, statement: Command) -> Any:
        return self._meter(statement, statement.numbers[0])

    def _meter_write(self, statement: Command) -> list[Any]:
        return [_update(MODIFY, self._meter(statement, statement.numbers[0]))]

    def _meter_write_all(self, statement: Command) -> list[Any]:
        size = find_object("meter", statement.name, self.p4info.meters).size
        return [_update(MODIFY, self._meter(statement, index)) for index in range(size)]


_WRITES = {
    "remove": Mapper._remove,
    "mc_mgrp_create": Mapper._group_create,
    "mc_node_create": Mapper._node_create,
    "mc_node_update": Mapper._node_update,
    "mc_node_associate": Mapper._associate,
    "mirroring_add": Mapper._mirror,
    "mirroring_add_mc": Mapper._mirror_group,
    "mirroring_delete": Mapper._unmirror,
    "counter_write": Mapper._counter_write,
    "register_write": Mapper._register_write,
    "register_reset": Mapper._register_reset,
    "meter_set_rates": Mapper._meter_write,
    "meter_array_set_rates": Mapper._meter_write_all,
}
_READS = {
    "mirroring_get": Mapper._mirror_read,
    "counter_read": Mapper._counter_read,
    "register_read": Mapper._register_read,
    "meter_get_rates": Mapper._meter_read,
}


def _update(kind: Any, entity: Any) -> Any:
    return p4r.Update(type=kind, entity=entity)


def _multicast(group: int, replicas: Sequence[tuple[int, int]]) -> Any:
    entry = p4r.MulticastGroupEntry(multicast_group_id=group, replicas=_replica_messages(replicas))
    return p4r.Entity(packet_replication_engine_entry=p4r.PacketReplicationEngineEntry(multicast_group_entry=entry))


def _clone(session: int, replicas: Sequence[tuple[int, int]]) -> Any:
    entry = p4r.CloneSessionEntry(session_id=session, replicas=_replica_messages(replicas))
    return p4r.Entity(packet_replication_engine_entry=p4r.PacketReplicationEngineEntry(clone_session_entry=entry))


def _replica_messages(replicas: Sequence[tuple[int, int]]) -> list[Any]:
    # The field that `port` replaced in P4Runtime 1.4: servers of either age take it.
    return [p4r.Replica(egress_port=port, instance=instance) for port, instance in replicas]


def _match(key: Any, value: Value | None) -> Any | None:
    """A key's match, None if it does not matter: P4Runtime wants those left out. An exact key left out is 0."""
    kind, width = key.match_type, key.bitwidth
    made = p4r.FieldMatch(field_id=key.id)
    if kind == _MatchType.EXACT:
        made.exact.value = _bytes(_integer(value, width, key.name) if value is not None else 0)
        return made
    if value is None:
        return None
    if kind == _MatchType.OPTIONAL:
        made.optional.value = _bytes(_integer(value, width, key.name))
    elif kind == _MatchType.TERNARY:
        bits, mask = _masked(value, width, key.name)
        if not mask:
            return None
        made.ternary.value, made.ternary.mask = _bytes(bits & mask), _bytes(mask)
    elif kind == _MatchType.LPM:
        bits, length = _prefixed(value, width, key.name)
        if not length:
            return None
        made.lpm.value, made.lpm.prefix_len = _bytes(bits & (_ones(width) - _ones(width - length))), length
    elif kind == _MatchType.RANGE:
        bits = _integer(value, width, key.name)
        made.range.low = made.range.high = _bytes(bits)
    else:
        raise UnmappedError(f"key {key.name} is of a kind that P4Runtime does not name")
    return made


def _masked(value: Value, width: int, name: str) -> tuple[int, int]:
    """Value and mask; digits that are `*` do not matter, and without any every bit does."""
    if value.prefix is not None:
        bits, length = _prefixed(value, width, name)
        return bits, _ones(width) - _ones(width - length)
    if "*" not in value.text:
        return _integer(value, width, name), _ones(width)
    prefix, digits = value.text[:2].lower(), value.text[2:]
    size = _BITS_OF_DIGIT[prefix]
    stars = sum(_ones(size) << (size * place) for place, digit in enumerate(reversed(digits)) if digit == "*")
    return _integer(Value(prefix + digits.replace("*", "0")), width, name), _ones(width) & ~stars


def _prefixed(value: Value, width: int, name: str) -> tuple[int, int]:
    """Value and length of the prefix: after a slash, or up to the first `*`."""
    if value.prefix is not None:
        if value.prefix > width:
            raise MappingError(f"{name}: the prefix length {value.prefix} is not within 0..{width}")
        return _integer(Value(value.text), width, name), value.prefix
    bits, mask = _masked(value, width, name)
    low = (mask ^ _ones(width)).bit_length()
    if mask != _ones(width) - _ones(low):
        raise MappingError(f"{name}: {value.text} is no prefix")
    return bits, width - low


def _integer(value: Value, width: int, name: str) -> int:
    if value.prefix is not None or "*" in value.text:
        raise MappingError(f"{name}: {value.text}{f'/{value.prefix}' if value.prefix is not None else ''} is no number")
    result = number(value.text)
    _check_width(result, width, name)
    return result


def _check_width(value: int, width: int, name: str) -> None:
    if width and value >> width:
        raise MappingError(f"{name}: {value} does not fit in {width} bits")


def _ones(width: int) -> int:
    return (1 << width) - 1


def _bytes(value: int) -> bytes:
    """P4Runtime's canonical form: as short as possible, at least one byte."""
    return value.to_bytes(max(1, (value.bit_length() + 7) // 8), "big")

"""Command files of simple_switch_CLI (`s1-commands.txt`), as updates over P4Runtime.

A file is read as a whole, for what it leaves behind: an entry that it adds and deletes again is not written at all.
BMv2 numbers entries, members, groups and multicast nodes from 0, each time with the lowest free number; so does this,
and what the file calls member 0 has the number 1 in P4Runtime, where 0 means nothing. Handles of what was there before
the file are not known. Of priorities BMv2's lowest wins, and P4Runtime's highest: they are turned round as PI does it
(https://github.com/p4lang/PI/blob/main/targets/bmv2/pi_tables_imp.cpp).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import finsy as fy
from finsy.p4entity import P4Member, P4Replica
from finsy.p4schema import P4ActionProfile, P4MatchField, P4MatchType, P4Table
from finsy.proto import p4r

from controller import text, values
from controller.data import parse_data
from controller.errors import EntryTextError
from controller.writing import modify

_HIGHEST_PRIORITY = (1 << 31) - 1

# What a file may hold for people, and what does it here.
_READING = {
    "table_dump": "plait table dump",
    "table_info": "plait table show",
    "show_tables": "plait table list",
    "table_num_entries": "plait table list",
    "act_prof_dump": "plait group show",
    "mc_dump": "plait multicast list",
    "mirroring_get": "plait clone list",
    "counter_read": "plait counter show",
    "meter_get_rates": "plait meter show",
    "register_read": "plait register show",
    "set_queue_depth": "plait queue set --depth",
    "set_queue_rate": "plait queue set --rate-pps",
}


class _Handles(dict[int, Any]):
    """Objects by the numbers that BMv2 gives them."""

    def give(self, thing: Any) -> int:
        handle = next(number for number in range(len(self) + 1) if number not in self)
        self[handle] = thing
        return handle

    def of(self, kind: str, word: str) -> Any:
        handle = _number(kind, word)
        if handle not in self:
            raise EntryTextError(f"no {kind} {handle}: this file has made none of that number")
        return self[handle]


@dataclass(slots=True)
class Commands:
    """What a file leaves behind: tables to be emptied first, and then updates in an order that switches accept."""

    clear: list[str] = field(default_factory=list)
    updates: list[Any] = field(default_factory=list)


def read_command_file(document: str, schema: fy.P4Schema) -> Commands:
    """EntryTextError begins with the number of the line."""
    reader = _Reader(schema)
    for number, line in enumerate(document.splitlines(), 1):
        words = line.partition("#")[0].split()
        if not words:
            continue
        try:
            reader.command(words[0], words[1:])
        except EntryTextError as error:
            raise EntryTextError(f"{number}: {words[0]}: {error}") from None
    return reader.result()


class _Reader:
    """Each command is a method of its name; its comment line is the command's own syntax."""

    def __init__(self, schema: fy.P4Schema) -> None:
        self._schema = schema
        self._clear: list[str] = []
        self._entries: dict[str, _Handles] = {}
        self._members: dict[str, _Handles] = {}
        self._groups: dict[str, _Handles] = {}
        self._nodes = _Handles()
        self._multicast: dict[int, list[int]] = {}
        self._mirrors: dict[int, tuple[str, int]] = {}
        self._defaults: dict[str, fy.P4TableEntry] = {}
        self._cells: list[Any] = []

    def command(self, name: str, words: list[str]) -> None:
        if name in _READING:
            raise EntryTextError(f"`{_READING[name]}` does that; a command file holds what is written")
        commands: dict[str, Callable[[list[str]], None]] = {
            method.removeprefix("do_"): getattr(self, method) for method in dir(self) if method.startswith("do_")
        }
        # The names of BMv2 before action profiles could be shared take a table instead of a profile.
        if name.startswith("table_indirect_") and (modern := name.replace("table_indirect", "act_prof")) in commands:
            table = self._table(_first(words, "a table"))
            if table.action_profile is None:
                raise EntryTextError(f"{table.alias} has no action profile")
            name, words = modern, [table.action_profile.name, *words[1:]]
        if name not in commands:
            raise EntryTextError(f"it is unknown here; there are {', '.join(sorted(commands))}")
        commands[name](words)

    def result(self) -> Commands:
        members = [+entry for profile in self._members.values() for entry in profile.values()]
        groups = [+entry for profile in self._groups.values() for entry in profile.values()]
        multicast = [+fy.P4MulticastGroupEntry(group, replicas=self._replicas(group)) for group in self._multicast]
        mirrors = [
            +fy.P4CloneSessionEntry(session, replicas=[number] if kind == "port" else self._replicas(number))
            for session, (kind, number) in self._mirrors.items()
        ]
        entries = [+entry for table in self._entries.values() for entry in table.values()]
        defaults = [~entry for entry in self._defaults.values()]
        return Commands(self._clear, [*members, *groups, *multicast, *mirrors, *entries, *defaults, *self._cells])

    def _replicas(self, group: int) -> list[P4Replica]:
        if group not in self._multicast:
            raise EntryTextError(f"mirroring_add_mc: this file makes no multicast group {group}")
        nodes = (self._nodes[handle] for handle in self._multicast[group] if handle in self._nodes)
        return [P4Replica(port, instance=instance) for instance, ports in nodes for port in ports]

    # --- tables ---

    def do_table_add(self, words: list[str]) -> None:
        # table_add TABLE ACTION KEY... => PARAM... [PRIORITY]
        table = self._table(_first(words, "a table"))
        priority, rest = self._priority(table, words[1:])
        keys, params = _arrow(rest)
        action = self._call(table, _first(keys, "an action"), params)
        self._add(table, keys[1:], priority, action)

    def do_table_indirect_add(self, words: list[str]) -> None:
        # table_indirect_add TABLE KEY... => MEMBER [PRIORITY]
        self._add_indirect(words, "member")

    def do_table_indirect_add_with_group(self, words: list[str]) -> None:
        # table_indirect_add_with_group TABLE KEY... => GROUP [PRIORITY]
        self._add_indirect(words, "group")

    def _add_indirect(self, words: list[str], kind: str) -> None:
        table = self._table(_first(words, "a table"))
        priority, rest = self._priority(table, words[1:])
        keys, params = _arrow(rest)
        (word,) = _exactly(params, f"{kind} number")
        self._add(table, keys, priority, self._reference(table, kind, word))

    def _reference(self, table: P4Table, kind: str, word: str) -> fy.P4IndirectAction:
        if table.action_profile is None:
            raise EntryTextError(f"{table.alias} has no action profile")
        handles = self._members if kind == "member" else self._groups
        entry = handles.get(table.action_profile.name, _Handles()).of(kind, word)
        if kind == "member":
            return fy.P4IndirectAction(member_id=entry.member_id)
        return fy.P4IndirectAction(group_id=entry.group_id)

    def _add(self, table: P4Table, keys: list[str], priority: int, action: Any) -> None:
        fields = text.key_fields(table)
        if len(keys) != len(fields):
            raise EntryTextError(f"{table.alias} has {len(fields)} key fields, but {len(keys)} values are given")
        match = text.parse_match(
            table, [f"{known.name}={_key(known, word)}" for known, word in zip(fields, keys, strict=True)]
        )
        entry = fy.P4TableEntry(table.name, match=match, priority=priority, action=action)
        self._entries.setdefault(table.name, _Handles()).give(entry)

    def do_table_modify(self, words: list[str]) -> None:
        # table_modify TABLE ACTION ENTRY [=>] PARAM...
        table = self._table(_first(words, "a table"))
        if len(words) < 3:
            raise EntryTextError("TABLE ACTION ENTRY PARAM... is wanted")
        entry = self._entries.get(table.name, _Handles()).of("entry", words[2])
        entry.action = self._call(table, words[1], [word for word in words[3:] if word != "=>"])

    def do_table_delete(self, words: list[str]) -> None:
        # table_delete TABLE ENTRY
        name, handle = _exactly(words, "TABLE ENTRY")
        entries = self._entries.get(self._table(name).name, _Handles())
        entries.of("entry", handle)
        del entries[int(handle, 0)]

    do_table_indirect_delete = do_table_delete

    def do_table_clear(self, words: list[str]) -> None:
        # table_clear TABLE
        (name,) = _exactly(words, "TABLE")
        table = self._table(name).name
        self._entries.pop(table, None)
        self._clear.append(table)

    def do_table_set_default(self, words: list[str]) -> None:
        # table_set_default TABLE ACTION PARAM...
        table = self._table(_first(words, "a table"))
        action = self._call(table, _first(words[1:], "an action"), words[2:], default=True)
        self._defaults[table.name] = fy.P4TableEntry(table.name, is_default_action=True, action=action)

    def do_table_indirect_set_default(self, words: list[str]) -> None:
        # table_indirect_set_default TABLE MEMBER
        name, handle = _exactly(words, "TABLE MEMBER")
        table = self._table(name)
        action = self._reference(table, "member", handle)
        self._defaults[table.name] = fy.P4TableEntry(table.name, is_default_action=True, action=action)

    def do_table_reset_default(self, words: list[str]) -> None:
        # table_reset_default TABLE
        (name,) = _exactly(words, "TABLE")
        table = self._table(name)
        self._defaults[table.name] = fy.P4TableEntry(table.name, is_default_action=True)

    def _table(self, name: str) -> P4Table:
        found: P4Table = text.find("table", name, self._schema.tables)
        return found

    def _priority(self, table: P4Table, words: list[str]) -> tuple[int, list[str]]:
        if not text.needs_priority(table):
            return 0, words
        if not words or not words[-1].isdigit() or int(words[-1]) >= _HIGHEST_PRIORITY:
            raise EntryTextError(f"{table.alias} needs a priority as the last word: the lowest number wins, from 0")
        return _HIGHEST_PRIORITY - int(words[-1]), words[:-1]

    def _call(self, table: P4Table, action: str, params: Sequence[str], default: bool = False) -> Any:
        return text.parse_action(table, f"{action}({', '.join(params)})", default)

    # --- action profiles ---

    def do_act_prof_create_member(self, words: list[str]) -> None:
        # act_prof_create_member PROFILE ACTION PARAM...
        profile = self._profile(_first(words, "an action profile"))
        action = text.parse_call(profile, f"{_first(words[1:], 'an action')}({', '.join(words[2:])})")
        handles = self._members.setdefault(profile.name, _Handles())
        entry = fy.P4ActionProfileMember(profile.name, action=action)
        entry.member_id = handles.give(entry) + 1

    def do_act_prof_modify_member(self, words: list[str]) -> None:
        # act_prof_modify_member PROFILE ACTION MEMBER [=>] PARAM...
        profile = self._profile(_first(words, "an action profile"))
        if len(words) < 3:
            raise EntryTextError("PROFILE ACTION MEMBER PARAM... is wanted")
        member = self._members.get(profile.name, _Handles()).of("member", words[2])
        params = ", ".join(word for word in words[3:] if word != "=>")
        member.action = text.parse_call(profile, f"{words[1]}({params})")

    def do_act_prof_delete_member(self, words: list[str]) -> None:
        # act_prof_delete_member PROFILE MEMBER
        name, handle = _exactly(words, "PROFILE MEMBER")
        members = self._members.get(self._profile(name).name, _Handles())
        members.of("member", handle)
        del members[int(handle, 0)]

    def do_act_prof_create_group(self, words: list[str]) -> None:
        # act_prof_create_group PROFILE
        (name,) = _exactly(words, "PROFILE")
        profile = self._profile(name)
        if not profile.with_selector:
            raise EntryTextError(f"{profile.alias} has members only: groups need an action selector")
        handles = self._groups.setdefault(profile.name, _Handles())
        entry = fy.P4ActionProfileGroup(profile.name, members=[])
        entry.group_id = handles.give(entry) + 1

    def do_act_prof_delete_group(self, words: list[str]) -> None:
        # act_prof_delete_group PROFILE GROUP
        name, handle = _exactly(words, "PROFILE GROUP")
        groups = self._groups.get(self._profile(name).name, _Handles())
        groups.of("group", handle)
        del groups[int(handle, 0)]

    def do_act_prof_add_member_to_group(self, words: list[str]) -> None:
        # act_prof_add_member_to_group PROFILE MEMBER GROUP
        members, member = self._membership(words)
        members.append(P4Member(member, weight=1))

    def do_act_prof_remove_member_from_group(self, words: list[str]) -> None:
        # act_prof_remove_member_from_group PROFILE MEMBER GROUP
        members, member = self._membership(words)
        members[:] = [each for each in members if each.member_id != member]

    def _membership(self, words: list[str]) -> tuple[list[P4Member], int]:
        name, member, group = _exactly(words, "PROFILE MEMBER GROUP")
        profile = self._profile(name).name
        found = self._members.get(profile, _Handles()).of("member", member)
        members = self._groups.get(profile, _Handles()).of("group", group).members
        return members, found.member_id

    def _profile(self, name: str) -> P4ActionProfile:
        found: P4ActionProfile = text.find("action profile", name, self._schema.action_profiles)
        return found

    # --- multicast, mirroring ---

    def do_mc_mgrp_create(self, words: list[str]) -> None:
        # mc_mgrp_create GROUP
        (group,) = _exactly(words, "GROUP")
        self._multicast[_number("group", group)] = []

    def do_mc_mgrp_destroy(self, words: list[str]) -> None:
        # mc_mgrp_destroy GROUP
        (group,) = _exactly(words, "GROUP")
        del self._multicast[self._group(group)]

    def do_mc_node_create(self, words: list[str]) -> None:
        # mc_node_create RID PORT... [| LAG...]
        self._nodes.give(self._node(words))

    def do_mc_node_update(self, words: list[str]) -> None:
        # mc_node_update NODE PORT... [| LAG...]
        instance, _ = self._nodes.of("node", _first(words, "a node"))
        self._nodes[int(words[0], 0)] = (instance, self._node(words)[1])

    def _node(self, words: list[str]) -> tuple[int, list[int]]:
        if "|" in words and words[words.index("|") + 1 :]:
            raise EntryTextError("link aggregation groups are BMv2's own: name their ports")
        ports = words[1 : words.index("|")] if "|" in words else words[1:]
        return _number("rid", _first(words, "a rid")), [_number("port", port) for port in ports]

    def do_mc_node_destroy(self, words: list[str]) -> None:
        # mc_node_destroy NODE
        (node,) = _exactly(words, "NODE")
        self._nodes.of("node", node)
        del self._nodes[int(node, 0)]

    def do_mc_node_associate(self, words: list[str]) -> None:
        # mc_node_associate GROUP NODE
        group, node = _exactly(words, "GROUP NODE")
        self._nodes.of("node", node)
        self._multicast[self._group(group)].append(int(node, 0))

    def do_mc_node_dissociate(self, words: list[str]) -> None:
        # mc_node_dissociate GROUP NODE
        group, node = _exactly(words, "GROUP NODE")
        self._nodes.of("node", node)
        nodes = self._multicast[self._group(group)]
        nodes[:] = [each for each in nodes if each != int(node, 0)]

    def _group(self, word: str) -> int:
        group = _number("group", word)
        if group not in self._multicast:
            raise EntryTextError(f"this file makes no multicast group {group}")
        return group

    def do_mirroring_add(self, words: list[str]) -> None:
        # mirroring_add SESSION PORT
        session, port = _exactly(words, "SESSION PORT")
        self._mirrors[_number("session", session)] = ("port", _number("port", port))

    def do_mirroring_add_mc(self, words: list[str]) -> None:
        # mirroring_add_mc SESSION GROUP
        session, group = _exactly(words, "SESSION GROUP")
        self._mirrors[_number("session", session)] = ("group", self._group(group))

    def do_mirroring_delete(self, words: list[str]) -> None:
        # mirroring_delete SESSION
        (word,) = _exactly(words, "SESSION")
        session = _number("session", word)
        if session not in self._mirrors:
            raise EntryTextError(f"this file makes no mirroring session {session}")
        del self._mirrors[session]

    # --- cells ---

    def do_counter_write(self, words: list[str]) -> None:
        # counter_write COUNTER INDEX PACKETS BYTES
        name, index, packets, size = _exactly(words, "COUNTER INDEX PACKETS BYTES")
        data = fy.P4CounterData(packet_count=_number("packets", packets), byte_count=_number("bytes", size))
        counter = text.find("counter", name, self._schema.counters)
        self._cells.append(fy.P4CounterEntry(counter.name, index=_index(counter, index), data=data))

    def do_counter_reset(self, words: list[str]) -> None:
        # counter_reset COUNTER
        (name,) = _exactly(words, "COUNTER")
        counter = text.find("counter", name, self._schema.counters)
        zero = fy.P4CounterData()
        self._cells += [fy.P4CounterEntry(counter.name, index=index, data=zero) for index in range(counter.size)]

    def do_register_write(self, words: list[str]) -> None:
        # register_write REGISTER INDEX VALUE
        name, index, value = _exactly(words, "REGISTER INDEX VALUE")
        register = text.find("register", name, self._schema.registers)
        self._register(register, p4r.Index(index=_index(register, index)), value)

    def do_register_reset(self, words: list[str]) -> None:
        # register_reset REGISTER
        (name,) = _exactly(words, "REGISTER")
        self._register(text.find("register", name, self._schema.registers), None, "0")

    def _register(self, register: Any, index: p4r.Index | None, value: str) -> None:
        data = parse_data(register.type_spec, value, register.alias)
        self._cells.append(
            modify(p4r.Entity(register_entry=p4r.RegisterEntry(register_id=register.id, index=index, data=data)))
        )

    def do_meter_set_rates(self, words: list[str]) -> None:
        # meter_set_rates METER INDEX RATE:BURST RATE:BURST (rates in units per microsecond)
        name, index, committed, peak = _exactly(words, "METER INDEX RATE:BURST RATE:BURST")
        meter = text.find("meter", name, self._schema.meters)
        self._cells.append(fy.P4MeterEntry(meter.name, index=_index(meter, index), config=_rates(committed, peak)))

    def do_meter_array_set_rates(self, words: list[str]) -> None:
        # meter_array_set_rates METER RATE:BURST RATE:BURST
        name, committed, peak = _exactly(words, "METER RATE:BURST RATE:BURST")
        meter, config = text.find("meter", name, self._schema.meters), _rates(committed, peak)
        self._cells += [fy.P4MeterEntry(meter.name, index=index, config=config) for index in range(meter.size)]


# --- words ---


def _first(words: Sequence[str], what: str) -> str:
    if not words:
        raise EntryTextError(f"{what} is missing")
    return words[0]


def _exactly(words: Sequence[str], wanted: str) -> list[str]:
    """The words, if they are as many as `wanted` names."""
    names = wanted.split() if wanted.isupper() or ":" in wanted else [wanted]
    if len(words) != len(names):
        raise EntryTextError(f"{wanted} is wanted, not {' '.join(words) or 'nothing'!r}")
    return list(words)


def _arrow(words: list[str]) -> tuple[list[str], list[str]]:
    if "=>" not in words:
        raise EntryTextError("`=>` is missing between the key and what follows")
    at = words.index("=>")
    return words[:at], words[at + 1 :]


def _number(kind: str, word: str) -> int:
    value = values.parse_value(word, 63, kind)
    assert isinstance(value, int)
    return value


def _index(array: Any, word: str) -> int:
    index = _number("index", word)
    if index >= array.size:
        raise EntryTextError(f"{array.alias}: index {index}; it has {array.size} cells, from 0")
    return index


def _key(known: P4MatchField, word: str) -> str:
    """A key as simple_switch_CLI writes it, as `controller.values` does."""
    if known.match_type is P4MatchType.RANGE:
        low, arrow, high = word.partition("->")
        if not arrow:
            raise EntryTextError(f"{known.name}: {word!r}; a range is LOW->HIGH")
        return f"{low}..{high}"
    if known.match_type is P4MatchType.OPTIONAL and "&&&" in word:
        # BMv2's JSON has a ternary key in its place.
        value, _, mask = word.partition("&&&")
        bits = values.parse_value(mask, known.bitwidth, known.name)
        if bits not in (0, (1 << known.bitwidth) - 1):
            raise EntryTextError(f"{known.name}: the mask of an optional key is all zeros or all ones, not {mask}")
        return value if bits else values.ANY
    separator = {P4MatchType.LPM: "/", P4MatchType.TERNARY: "&&&"}.get(known.match_type)  # type: ignore[arg-type]
    if separator and separator not in word:
        example = {"/": "VALUE/LENGTH", "&&&": "VALUE&&&MASK"}[separator]
        raise EntryTextError(f"{known.name}: {word!r}; {text.kind(known)} keys are {example}")
    return word


def _rates(committed: str, peak: str) -> fy.P4MeterConfig:
    (cir, cburst), (pir, pburst) = _rate(committed), _rate(peak)
    return fy.P4MeterConfig(cir=cir, cburst=cburst, pir=pir, pburst=pburst)


def _rate(word: str) -> tuple[int, int]:
    rate, colon, burst = word.partition(":")
    try:
        per_second = round(float(rate if colon else "") * 1e6)
    except (ValueError, OverflowError):
        raise EntryTextError(f"{word!r}: a rate is UNITS_PER_MICROSECOND:BURST, such as 0.001:1500") from None
    return per_second, _number("burst", burst)

"""`sN-runtime.json` of p4lang's tutorials: table entries, multicast groups and clone sessions, as updates.

Its keys: https://github.com/p4lang/tutorials/blob/master/utils/p4runtime_lib/simple_controller.py. The program that it
names is not loaded: the switch runs one, and the entries must fit that.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import finsy as fy
from finsy.p4entity import P4Replica
from finsy.p4schema import P4MatchType, P4Table

from controller import text, values
from controller.errors import EntryTextError

_TOP = {"target", "p4info", "bmv2_json", "table_entries", "multicast_group_entries", "clone_session_entries"}
_ENTRY = {"table", "match", "action_name", "action_params", "default_action", "priority"}
_JOINED = {P4MatchType.LPM: "/", P4MatchType.TERNARY: "&&&", P4MatchType.RANGE: ".."}


def read_runtime_json(document: str, schema: fy.P4Schema) -> list[Any]:
    """The updates that the file means; EntryTextError names the place in it, as `table_entries[3].match`."""
    try:
        found = json.loads(document)
    except ValueError as error:
        raise EntryTextError(f"it is no JSON: {error}") from None
    if not isinstance(found, dict):
        raise EntryTextError("it is no JSON object")
    _known_keys("", found, _TOP)
    if found.get("target", "bmv2") != "bmv2":
        raise EntryTextError(f"target: {found['target']!r}; only bmv2's files are understood")
    readers: dict[str, Callable[[str, Mapping[str, Any], fy.P4Schema], Any]] = {
        "multicast_group_entries": _group,
        "clone_session_entries": _session,
        "table_entries": _entry,
    }
    updates = []
    for key, read in readers.items():
        for position, item in enumerate(_list(key, found.get(key, []))):
            place = f"{key}[{position}]"
            if not isinstance(item, dict):
                raise EntryTextError(f"{place} is no object")
            updates.append(read(place, item, schema))
    return updates


def _entry(place: str, item: Mapping[str, Any], schema: fy.P4Schema) -> Any:
    _known_keys(f"{place}.", item, _ENTRY)
    with _at(f"{place}.table"):
        table: P4Table = text.find("table", _text(item, "table"), schema.tables)
    default = bool(item.get("default_action"))
    if default:
        entry = fy.P4TableEntry(table.name, is_default_action=True)
    else:
        with _at(f"{place}.match"):
            match = text.parse_match(table, [_field(table, name, v) for name, v in dict(item.get("match", {})).items()])
        with _at(f"{place}.priority"):
            priority = text.check_priority(table, item.get("priority"))
        entry = fy.P4TableEntry(table.name, match=match, priority=priority)
    params = item.get("action_params", {})
    with _at(f"{place}.action_name"):
        arguments = ", ".join(f"{name}={value}" for name, value in dict(params).items())
        entry.action = text.parse_action(table, f"{_text(item, 'action_name')}({arguments})", default)
    return ~entry if default else +entry


def _field(table: P4Table, name: str, value: Any) -> str:
    """`field=value` from a value or from its two parts."""
    field = text.find(f"key field of {table.alias}", name, text.key_fields(table))
    parts = value if isinstance(value, list) else [value]
    if len(parts) == 1:
        return f"{field.name}={parts[0]}"
    joint = _JOINED.get(field.match_type)
    if joint is None or len(parts) != 2:
        raise EntryTextError(f"{field.name}: {value}; {text.kind(field)} keys are a value" + " or a pair" * bool(joint))
    return f"{field.name}={parts[0]}{joint}{parts[1]}"


def _group(place: str, item: Mapping[str, Any], schema: fy.P4Schema) -> Any:
    _known_keys(f"{place}.", item, {"multicast_group_id", "replicas"})
    return +fy.P4MulticastGroupEntry(_number(place, item, "multicast_group_id"), replicas=_replicas(place, item))


def _session(place: str, item: Mapping[str, Any], schema: fy.P4Schema) -> Any:
    _known_keys(f"{place}.", item, {"clone_session_id", "replicas", "packet_length_bytes"})
    length = _number(place, item, "packet_length_bytes") if "packet_length_bytes" in item else 0
    session = _number(place, item, "clone_session_id")
    return +fy.P4CloneSessionEntry(session, replicas=_replicas(place, item), packet_length_bytes=length)


def _replicas(place: str, item: Mapping[str, Any]) -> list[P4Replica]:
    found = []
    for position, replica in enumerate(_list(f"{place}.replicas", item.get("replicas", []))):
        where = f"{place}.replicas[{position}]"
        if not isinstance(replica, dict):
            raise EntryTextError(f"{where} is no object")
        _known_keys(f"{where}.", replica, {"egress_port", "instance"})
        instance = _number(where, replica, "instance") if "instance" in replica else 0
        found.append(P4Replica(_number(where, replica, "egress_port"), instance=instance))
    return found


def _known_keys(where: str, found: Mapping[str, Any], known: set[str]) -> None:
    for key in found:
        if key not in known:
            raise EntryTextError(f"{where}{key} is unknown; there are {', '.join(sorted(known))}")


def _list(place: str, found: Any) -> Sequence[Any]:
    if not isinstance(found, list):
        raise EntryTextError(f"{place} is no list")
    return found


def _text(item: Mapping[str, Any], key: str) -> str:
    if not isinstance(item.get(key), str):
        raise EntryTextError(f"{key} is missing")
    return str(item[key])


def _number(place: str, item: Mapping[str, Any], key: str) -> int:
    with _at(f"{place}.{key}"):
        value = values.parse_value(str(item.get(key, "")), 32, key)
        assert isinstance(value, int)
        return value


class _at:  # noqa: N801 (reads as a statement)
    """Puts the place before what is wrong there."""

    def __init__(self, place: str) -> None:
        self.place = place

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if isinstance(error, EntryTextError):
            raise EntryTextError(f"{self.place}: {error}") from None
        if isinstance(error, TypeError | ValueError):
            raise EntryTextError(f"{self.place} is not what it should be: {error}") from None

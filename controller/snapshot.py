"""All forwarding state of switches as one document, and back: `plait table dump --all` and `restore`.

A document holds P4Runtime's own messages as JSON: table entries with the tables' defaults, action profile members and
groups, multicast groups, clone sessions and meter configurations. Counters and registers are what traffic made, not
what people wrote, and entries that the program declares constant come with it: these are left out.
"""

from __future__ import annotations

import hashlib
from collections.abc import Hashable, Iterator, Mapping, Sequence
from typing import Any

import finsy as fy
from finsy.proto import p4i, p4r
from google.protobuf import json_format

from controller import entries
from controller.connection import Reader, each, reading
from controller.errors import ControllerError, RefusedError
from controller.targets import Target
from controller.writing import carry_out

FORMAT = "plait-tables-1"

# BMv2's answer where entries have their action sets with them, so that there are no members or groups to read.
_ONE_SHOT = "mix action selector programming modes"

_INSERT, _MODIFY, _DELETE = p4r.Update.INSERT, p4r.Update.MODIFY, p4r.Update.DELETE

# Comes before the entries that refer to it, in this order, and goes after them.
_REFERRED_TO = ("action_profile_member", "action_profile_group", "packet_replication_engine_entry")
_KINDS = (*_REFERRED_TO, "table_entry", "meter_entry")

# Entities by what makes each this one and no other; first their kind.
Key = tuple[Hashable, ...]
State = Mapping[Key, p4r.Entity]


async def dump_all(targets: Sequence[Target]) -> dict[str, Any]:
    """The state of these switches as a JSON document that `restore` takes; ControllerError if one cannot be read."""

    async def of(target: Target) -> dict[str, Any]:
        async with reading(target) as reader:
            found = await _present(reader)
            return {
                "program": _program(reader.schema),
                "entities": [json_format.MessageToDict(e, preserving_proto_field_name=True) for e in found.values()],
            }

    states = await each(targets, of)
    named = {target.name: state for target, state in zip(targets, states, strict=True)}
    return {"format": FORMAT, "switches": named}


async def restore(
    targets: Sequence[Target], document: Mapping[str, Any], dry_run: bool = False
) -> dict[str, list[str]]:
    """Brings switches to the state of a document, writing only what differs; returns per switch what, in words.

    Switches that the document does not name stay as they are. dry_run: nothing is written. ControllerError, before
    anything is written anywhere, for a document that is none, names a switch that is not among `targets`, or was made
    of another program than the one that runs.
    """
    wanted = _read_document(document)
    known = {target.name: target for target in targets}
    for name in wanted:
        if name not in known:
            raise ControllerError(f"the dump has a switch {name!r}, which is not there; there are {', '.join(known)}")
    chosen = [known[name] for name in wanted]

    async def check(target: Target) -> None:
        async with reading(target) as reader:
            if _program(reader.schema) != wanted[target.name][0]:
                raise ControllerError(f"{target.name} runs another program than the dump was made of")

    async def write(target: Target) -> list[str]:
        async def plan(reader: Reader) -> list[p4r.Update]:
            return difference(await _present(reader), wanted[target.name][1])

        return await carry_out(target, plan, dry_run)

    await each(chosen, check)
    return dict(zip(wanted, await each(chosen, write), strict=True))


def difference(present: State, wanted: State) -> list[p4r.Update]:
    """The updates from `present` to `wanted`, in an order in which nothing is missing that something refers to.

    Entries go before others come, since tables may be full; what they referred to goes last.
    """

    def removed(kind: str) -> list[p4r.Update]:
        gone = (entity for key, entity in present.items() if key[0] == kind and key not in wanted)
        return [_delete(entity) for entity in gone if not _is_set(entity)]

    def written(kind: str) -> list[p4r.Update]:
        return [
            p4r.Update(type=_MODIFY if key in present or _is_set(entity) else _INSERT, entity=entity)
            for key, entity in wanted.items()
            if key[0] == kind and (key not in present or _meaning(present[key]) != _meaning(entity))
        ]

    updates = [update for kind in _REFERRED_TO for update in written(kind)]
    updates += removed("table_entry") + written("table_entry") + written("meter_entry")
    return updates + [update for kind in reversed(_REFERRED_TO) for update in removed(kind)]


def _delete(entity: p4r.Entity) -> p4r.Update:
    bare = p4r.Entity()
    bare.CopyFrom(entity)
    if bare.HasField("table_entry"):
        bare.table_entry.ClearField("action")
    return p4r.Update(type=_DELETE, entity=bare)


def _is_set(entity: p4r.Entity) -> bool:
    """Whether the entity always exists, so that it is modified only: defaults of tables, and meters."""
    return entity.table_entry.is_default_action or entity.HasField("meter_entry")


async def _present(reader: Reader) -> dict[Key, p4r.Entity]:
    schema: Any = reader.schema
    asked: list[Any] = [fy.P4TableEntry()]
    # Tables with an action profile have no default on BMv2.
    asked += [
        fy.P4TableEntry(table.name, is_default_action=True)
        for table in schema.tables
        if table.action_profile is None and not table.is_const
    ]
    asked += [fy.P4MulticastGroupEntry(), fy.P4CloneSessionEntry()]
    asked += [fy.P4MeterEntry(meter.name) for meter in schema.meters]
    read = await reader.read(asked)
    for profile in schema.action_profiles:
        read += await _members(reader, profile)
    found = {}
    for entity in read:
        if not (entity.HasField("table_entry") and entity.table_entry.is_const):
            _strip(entity)
            found[_identity(entity)] = entity
    return found


async def _members(reader: Reader, profile: Any) -> list[p4r.Entity]:
    asked: list[Any] = [fy.P4ActionProfileMember(profile.name)]
    if profile.with_selector:
        asked.append(fy.P4ActionProfileGroup(profile.name))
    try:
        return await reader.read(asked)
    except RefusedError as error:
        if _ONE_SHOT not in str(error):
            raise
        return []


def _strip(entity: p4r.Entity) -> None:
    """Takes out what traffic made of an entity."""
    parts: tuple[Any, ...] = (entity.table_entry, entity.meter_entry)
    for part in parts:
        for counted in ("counter_data", "meter_counter_data", "time_since_last_hit"):
            if counted in part.DESCRIPTOR.fields_by_name and part.HasField(counted):
                part.ClearField(counted)


def _identity(entity: p4r.Entity) -> Key:
    kind = str(entity.WhichOneof("entity"))
    inner = getattr(entity, kind)
    match kind:
        case "table_entry":
            return kind, entries.identity(inner)
        case "action_profile_member":
            return kind, inner.action_profile_id, inner.member_id
        case "action_profile_group":
            return kind, inner.action_profile_id, inner.group_id
        case "meter_entry":
            return kind, inner.meter_id, inner.index.index
        case "packet_replication_engine_entry":
            which = inner.WhichOneof("type")
            number = inner.clone_session_entry.session_id or inner.multicast_group_entry.multicast_group_id
            return kind, which, number
    return kind, entity.SerializeToString(deterministic=True)


def _meaning(entity: p4r.Entity) -> Hashable:
    if entity.HasField("table_entry"):
        other = p4r.TableEntry()
        other.CopyFrom(entity.table_entry)
        for field in ("match", "action"):
            other.ClearField(field)
        return entries.meaning(entity.table_entry), other.SerializeToString(deterministic=True)
    return entity.SerializeToString(deterministic=True)


def _program(schema: fy.P4Schema) -> str:
    """What tells a program's tables from another's: a hash of its P4Info."""
    p4info: p4i.P4Info = schema.p4info
    return hashlib.sha256(p4info.SerializeToString(deterministic=True)).hexdigest()


# --- documents ---


def _read_document(document: Mapping[str, Any]) -> dict[str, tuple[str, dict[Key, p4r.Entity]]]:
    """Per switch, its program and its entities by identity; ControllerError names what is wrong, and where."""
    if not isinstance(document, Mapping) or document.get("format") != FORMAT:
        raise ControllerError(f"this is no dump of tables: its format must be {FORMAT!r}")
    switches = document.get("switches")
    if not isinstance(switches, Mapping):
        raise ControllerError("switches: must be an object with a state for each switch")
    found = {}
    for name, state in switches.items():
        if not isinstance(state, Mapping) or not isinstance(state.get("program"), str):
            raise ControllerError(f"switches.{name}: must be an object with a program and entities")
        found[name] = state["program"], {_identity(entity): entity for entity in _entities(name, state)}
    return found


def _entities(name: str, state: Mapping[str, Any]) -> Iterator[p4r.Entity]:
    listed = state.get("entities")
    if not isinstance(listed, list):
        raise ControllerError(f"switches.{name}.entities: must be a list")
    for number, item in enumerate(listed):
        try:
            entity = json_format.ParseDict(item, p4r.Entity())
        except (json_format.ParseError, TypeError, AttributeError, ValueError) as error:
            raise ControllerError(f"switches.{name}.entities[{number}]: {error}") from None
        if entity.WhichOneof("entity") not in _KINDS:
            raise ControllerError(f"switches.{name}.entities[{number}]: is no entity that a dump holds")
        yield entity

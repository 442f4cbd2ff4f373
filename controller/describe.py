"""Updates in words: what is written, or would be in a dry run, one line each."""

from __future__ import annotations

from typing import Any

import finsy as fy
from finsy.p4entity import decode_replica, format_replica
from finsy.proto import p4r

from controller import entries
from controller.data import data_text


def describe(update: p4r.Update, schema: fy.P4Schema) -> str:
    """`insert neighbor egress_spec=9 -> NoAction()`, and so on for every kind of entity."""
    verb = p4r.Update.Type.Name(update.type).lower()
    return f"{verb} {entity_text(update.entity, schema)}"


def entity_text(entity: p4r.Entity, schema: fy.P4Schema) -> str:
    """One line for people; the entity must be of the schema's program."""
    kind = str(entity.WhichOneof("entity"))
    found: Any = getattr(entity, kind)
    match kind:
        case "table_entry":
            reset = " -> as in the program" if found.is_default_action and not found.HasField("action") else ""
            return entries.describe(found, schema) + reset
        case "action_profile_member":
            return member_text(found, schema)
        case "action_profile_group":
            return group_text(found, schema)
        case "counter_entry":
            return f"{_cell(schema.counters[found.counter_id], found)} = {counted_text(found.data)}"
        case "direct_counter_entry":
            return f"{_of_entry(found, schema)} = {counted_text(found.data)}"
        case "meter_entry":
            return f"{_cell(schema.meters[found.meter_id], found)} = {meter_text(found)}"
        case "direct_meter_entry":
            return f"{_of_entry(found, schema)} = {meter_text(found)}"
        case "register_entry":
            register = schema.registers[found.register_id]
            return f"{_cell(register, found)} = {data_text(register.type_spec, found.data)}"
        case "digest_entry":
            return digest_text(found, schema)
        case "packet_replication_engine_entry":
            return replication_text(found)
    return kind


def _cell(array: Any, entry: Any) -> str:
    return f"{array.alias}[{entry.index.index if entry.HasField('index') else '*'}]"


def _of_entry(entry: Any, schema: fy.P4Schema) -> str:
    bare = p4r.TableEntry(
        table_id=entry.table_entry.table_id, match=entry.table_entry.match, priority=entry.table_entry.priority
    )
    return entries.describe(bare, schema)


def member_text(member: p4r.ActionProfileMember, schema: fy.P4Schema) -> str:
    profile = schema.action_profiles[member.action_profile_id]
    action = f" -> {entries.call_text(member.action, profile.actions)}" if member.HasField("action") else ""
    return f"{profile.alias} member {member.member_id}{action}"


def group_text(group: p4r.ActionProfileGroup, schema: fy.P4Schema) -> str:
    profile = schema.action_profiles[group.action_profile_id]
    size = f" (at most {group.max_size})" if group.max_size else ""
    members = " ".join(weighted_members(group))
    return f"{profile.alias} group {group.group_id}{size}" + (f" -> members {members}" if members else "")


def weighted_members(group: p4r.ActionProfileGroup) -> list[str]:
    """A group's members as people write them: `1`, `2*3` with a weight, `4@7` watching port 7."""
    texts = []
    for member in group.members:
        watched = member.watch_port or (b"" if not member.watch else member.watch.to_bytes(4, "big"))
        weight = f"*{member.weight}" if member.weight != 1 else ""
        texts.append(f"{member.member_id}{weight}" + (f"@{int.from_bytes(watched, 'big')}" if watched else ""))
    return texts


def counted_text(data: p4r.CounterData) -> str:
    return f"{data.packet_count} packets, {data.byte_count} bytes"


def meter_text(entry: p4r.MeterEntry | p4r.DirectMeterEntry) -> str:
    if not entry.HasField("config"):
        return "no limit"
    config = entry.config
    return f"cir {config.cir}/s, cburst {config.cburst}, pir {config.pir}/s, pburst {config.pburst}"


def digest_text(entry: p4r.DigestEntry, schema: fy.P4Schema) -> str:
    name = f"digest {schema.digests[entry.digest_id].alias}"
    if not entry.HasField("config"):
        return name
    config = entry.config
    wait, ack = config.max_timeout_ns / 1e6, config.ack_timeout_ns / 1e6
    return f"{name}: a list of at most {config.max_list_size} after at most {wait:g} ms, again after {ack:g} ms"


def replication_text(entry: p4r.PacketReplicationEngineEntry) -> str:
    if entry.HasField("multicast_group_entry"):
        group = entry.multicast_group_entry
        return f"multicast group {group.multicast_group_id}{_ports(group.replicas)}"
    session = entry.clone_session_entry
    more = f", queue {session.class_of_service}" * bool(session.class_of_service)
    more += f", first {session.packet_length_bytes} bytes" * bool(session.packet_length_bytes)
    return f"clone session {session.session_id}{_ports(session.replicas)}{more}"


def _ports(replicas: Any) -> str:
    texts = replica_texts(replicas)
    return f" -> ports {' '.join(texts)}" if texts else ""


def replica_texts(replicas: Any) -> list[str]:
    """Replicas as people write them: `3`, and `3#1` for instance 1 at port 3."""
    return [format_replica(decode_replica(replica)) for replica in replicas]

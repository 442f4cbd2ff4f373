"""The verbs by which people meet multicast groups and clone sessions: ports to which a packet is copied."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import finsy as fy
from finsy.p4entity import P4Replica

from controller.connection import Reader, reading
from controller.describe import replica_texts
from controller.errors import EntryTextError
from controller.groups import MAX_ID, parse_port
from controller.names import NO_NAMES, Names
from controller.targets import Target
from controller.values import bounded
from controller.writing import carry_out

_MAX_INSTANCE = 0xFFFF


@dataclass(frozen=True, slots=True)
class MulticastRow:
    """`ports` as they are written: `3`, or `3#1` for instance 1 (egress_rid) at port 3."""

    group: int
    ports: list[str]


@dataclass(frozen=True, slots=True)
class CloneRow:
    """`queue` is the class of service; `bytes` the length to which copies are cut, 0 for whole ones."""

    session: int
    ports: list[str]
    queue: int
    bytes: int


async def multicast_list(target: Target) -> list[MulticastRow]:
    async with reading(target) as reader:
        found = await reader.read([fy.P4MulticastGroupEntry()])
    groups = (entity.packet_replication_engine_entry.multicast_group_entry for entity in found)
    return sorted(
        (MulticastRow(each.multicast_group_id, replica_texts(each.replicas)) for each in groups),
        key=lambda row: row.group,
    )


async def clone_list(target: Target) -> list[CloneRow]:
    async with reading(target) as reader:
        found = await reader.read([fy.P4CloneSessionEntry()])
    sessions = (entity.packet_replication_engine_entry.clone_session_entry for entity in found)
    rows = (
        CloneRow(each.session_id, replica_texts(each.replicas), each.class_of_service, each.packet_length_bytes)
        for each in sessions
    )
    return sorted(rows, key=lambda row: row.session)


async def multicast_write(
    target: Target, verb: str, group: int, ports: Sequence[str], names: Names = NO_NAMES, dry_run: bool = False
) -> list[str]:
    """verb: "add", "set" or "del"; ports as in `MulticastRow`, or the names of the neighbours that they lead to."""

    async def plan(reader: Reader) -> Sequence[Any]:
        bounded("group", group, 1, MAX_ID)
        replicas = [parse_replica(port, names) for port in ports]
        return [_VERBS[verb](fy.P4MulticastGroupEntry(group, replicas=replicas))]

    return await carry_out(target, plan, dry_run)


async def clone_write(
    target: Target,
    verb: str,
    session: int,
    ports: Sequence[str],
    queue: int = 0,
    bytes_: int = 0,
    names: Names = NO_NAMES,
    dry_run: bool = False,
) -> list[str]:
    """As `multicast_write`; queue, bytes_: see `CloneRow`."""

    async def plan(reader: Reader) -> Sequence[Any]:
        bounded("session", session, 1, MAX_ID)
        bounded("queue", queue, 0, MAX_ID)
        bounded("bytes of a copy", bytes_, 0, (1 << 31) - 1)
        replicas = [parse_replica(port, names) for port in ports]
        entry = fy.P4CloneSessionEntry(session, class_of_service=queue, packet_length_bytes=bytes_, replicas=replicas)
        return [_VERBS[verb](entry)]

    return await carry_out(target, plan, dry_run)


_VERBS: dict[str, Any] = {"add": lambda entry: +entry, "set": lambda entry: ~entry, "del": lambda entry: -entry}


def parse_replica(written: str, names: Names = NO_NAMES) -> P4Replica:
    port, hashed, instance = written.partition("#")
    if hashed and not (instance.isdigit() and int(instance) <= _MAX_INSTANCE):
        raise EntryTextError(f"replica {written!r}: after # is an instance from 0 to {_MAX_INSTANCE}, such as 3#1")
    return P4Replica(parse_port(port, names), instance=int(instance or 0))

"""The verbs by which people meet action profiles: members, and groups of members with weights."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import finsy as fy
from finsy.p4schema import P4ActionProfile
from finsy.proto import p4r

from controller import entries, text
from controller.connection import Reader, reading
from controller.describe import weighted_members
from controller.errors import EntryTextError
from controller.names import NO_NAMES, Names
from controller.targets import Target
from controller.values import bounded
from controller.writing import carry_out

_MEMBER = re.compile(r"(\d+)(?:\*(\d+))?(?:@(.+))?")
MAX_ID = (1 << 32) - 1
_MAX_SIGNED = (1 << 31) - 1


@dataclass(frozen=True, slots=True)
class ProfileRow:
    """An action profile of the program; a selector has groups."""

    profile: str
    selector: bool
    size: int
    tables: list[str]
    members: int
    groups: int


@dataclass(frozen=True, slots=True)
class MemberRow:
    profile: str
    member: int
    action: str


@dataclass(frozen=True, slots=True)
class GroupRow:
    """`members` as they are written: `1`, `2*3` with weight 3, `4@7` watching port 7."""

    profile: str
    group: int
    max_size: int
    members: list[str]


async def profile_list(target: Target) -> list[ProfileRow]:
    async with reading(target) as reader:
        rows = []
        for profile in reader.schema.action_profiles:
            members, groups = await _read(reader, profile)
            rows.append(
                ProfileRow(
                    profile.name, profile.with_selector, profile.size, profile.table_names, len(members), len(groups)
                )
            )
    return sorted(rows, key=lambda row: row.profile)


async def profile_show(target: Target, profile: str | None) -> tuple[list[MemberRow], list[GroupRow]]:
    """Members and groups of a profile, or of all; what one-shot action sets make is the switch's and is not told."""
    members, groups = [], []
    async with reading(target) as reader:
        profiles = list(reader.schema.action_profiles)
        if profile is not None:
            profiles = [text.find("action profile", profile, profiles)]
        for known in profiles:
            found = await _read(reader, known)
            members += [
                MemberRow(known.name, each.member_id, entries.call_text(each.action, known.actions))
                for each in found[0]
            ]
            groups += [GroupRow(known.name, each.group_id, each.max_size, weighted_members(each)) for each in found[1]]
    return members, groups


async def _read(
    reader: Reader, profile: P4ActionProfile
) -> tuple[list[p4r.ActionProfileMember], list[p4r.ActionProfileGroup]]:
    members = await reader.read([fy.P4ActionProfileMember(profile.name)])
    groups = await reader.read([fy.P4ActionProfileGroup(profile.name)]) if profile.with_selector else []
    # BMv2 tells of each more than once.
    by_number = {each.action_profile_member.member_id: each.action_profile_member for each in members}
    groups_by_number = {each.action_profile_group.group_id: each.action_profile_group for each in groups}
    return list(by_number.values()), list(groups_by_number.values())


async def member_write(
    target: Target,
    verb: str,
    profile: str,
    member: int,
    action: str | None,
    names: Names = NO_NAMES,
    dry_run: bool = False,
) -> list[str]:
    """verb: "add", "set" or "del"; the last takes no action."""

    async def plan(reader: Reader) -> Sequence[Any]:
        known = text.find("action profile", profile, reader.schema.action_profiles)
        entry = fy.P4ActionProfileMember(known.name, member_id=_identifier("member", member))
        if action is not None:
            entry.action = text.parse_call(known, action, names)
        return [_VERBS[verb](entry)]

    return await carry_out(target, plan, dry_run)


async def group_write(
    target: Target,
    verb: str,
    profile: str,
    group: int,
    members: Sequence[str],
    max_size: int = 0,
    names: Names = NO_NAMES,
    dry_run: bool = False,
) -> list[str]:
    """verb: "add", "set" or "del"; `members` as in `GroupRow`, the port also by its neighbour's name."""

    async def plan(reader: Reader) -> Sequence[Any]:
        known = text.find("action profile", profile, reader.schema.action_profiles)
        if not known.with_selector:
            raise EntryTextError(f"{known.alias} has members only: groups need an action selector")
        entry = fy.P4ActionProfileGroup(
            known.name,
            group_id=_identifier("group", group),
            max_size=bounded("largest sum of weights", max_size, 0, _MAX_SIGNED),
            members=[parse_member(each, names) for each in members] or None,
        )
        return [_VERBS[verb](entry)]

    return await carry_out(target, plan, dry_run)


_VERBS: dict[str, Any] = {"add": lambda entry: +entry, "set": lambda entry: ~entry, "del": lambda entry: -entry}


def parse_member(written: str, names: Names = NO_NAMES) -> fy.P4Member:
    match = _MEMBER.fullmatch(written.strip())
    if match is None:
        raise EntryTextError(f"member {written!r}: write its number, such as 1, 1*2 with a weight, 1@3 watching port 3")
    weight, watched = int(match[2] or 1), match[3]
    bounded(f"member {written!r}: weight", weight, 1, _MAX_SIGNED)
    port = None if watched is None else parse_port(watched, names)
    return fy.P4Member(_identifier("member", int(match[1])), weight=weight if port is None else (weight, port))


def parse_port(written: str, names: Names = NO_NAMES) -> int:
    """A port's number, or the name of the neighbour that it leads to."""
    port = names.port.get(written)
    if port is None:
        try:
            port = int(written, 0)
        except ValueError:
            near = f", nor a neighbour's name ({', '.join(names.port)})" if names.port else ""
            raise EntryTextError(f"port {written!r} is not a number{near}") from None
    return bounded("port", port, 0, MAX_ID)


def _identifier(kind: str, number: int) -> int:
    return bounded(kind, number, 1, MAX_ID)

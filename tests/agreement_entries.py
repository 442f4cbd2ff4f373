"""Random table entries, groups, multicast groups and clone sessions for a program, from its P4Info and JSON."""

import itertools
import random
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from finsy.proto import p4i, p4r

from tests.agreement_packets import Json, Pool

PORTS = (1, 2, 3, 4)
_MAX_ENTRIES = 8
_RECEIVERS = 3


def encode(value: int, width: int) -> bytes:
    """P4Runtime's canonical byte string: the shortest."""
    value &= (1 << width) - 1
    return value.to_bytes(max(1, (value.bit_length() + 7) // 8), "big")


def constants(node: Any) -> Iterable[tuple[str, list[Json]]]:
    """Every primitive of the JSON with its parameters."""
    if isinstance(node, dict):
        if "op" in node and "parameters" in node:
            yield node["op"], node["parameters"]
        node = list(node.values())
    if isinstance(node, list):
        for each in node:
            yield from constants(each)


class EntryDrawer:
    """What can be written to a program, and draws of it."""

    def __init__(self, p4info: p4i.P4Info, document: Json, other: Json | None = None) -> None:
        """`other`: what another compiler made of the program; it may have removed other tables."""
        self.p4info = p4info
        self.actions = {each.preamble.id: each for each in p4info.actions}
        self.profiles = {each.preamble.id: each for each in p4info.action_profiles}
        in_json = {table["name"]: table for pipeline in document["pipelines"] for table in pipeline["tables"]}
        in_other = {table["name"] for pipeline in (other or document)["pipelines"] for table in pipeline["tables"]}
        # A compiler may remove a table that P4Info lists: no packet would see its entries, and BMv2 refuses them.
        self.tables = [
            table
            for table in p4info.tables
            if table.preamble.name in in_json.keys() & in_other
            and not table.is_const_table
            and _plain(table, self.actions)
        ]
        self._masks = {
            (name, key["name"]): int(key["mask"], 16)
            for name, table in in_json.items()
            for key in table["key"]
            if key.get("mask") and key["match_type"] != "range"
        }
        self._const_entries = {name for name, table in in_json.items() if table.get("entries")}
        self.sessions = sorted(
            {
                int(parameters[0]["value"], 16) & 0x7FFF
                for op, parameters in constants(document)
                if op.startswith("clone_") and parameters[0]["type"] == "hexstr"
            }
        )
        self.has_multicast = any("mcast_grp" in str(alias) for alias in document.get("field_aliases", []))
        self.multicast_groups = _assigned_groups(document) if self.has_multicast else []

    def draw(self, draw: random.Random, pool: Pool, weights: bool) -> list[p4r.Update]:
        """Updates of a fresh switch, in an order in which they can be made; fills the pool with their values.

        `weights`: members of groups have them as well as actions of one-shot sets. Which member a hash then picks is
        open in P4Runtime: plait-switch repeats each in its place; PI, which BMv2 uses, puts the repetitions behind all
        members (`create_missing_weighted_members` of its action_prof_mgr.cpp).
        """
        updates: list[p4r.Update] = []
        one_shot = {each for each, info in self.profiles.items() if info.with_selector and draw.randrange(2)}
        plan = _Plan(one_shot, weights)
        for group in self.multicast_groups:
            if draw.randrange(4) < 3:
                entry = p4r.MulticastGroupEntry(multicast_group_id=group, replicas=_replicas(draw))
                updates.append(_pre(p4r.PacketReplicationEngineEntry(multicast_group_entry=entry)))
        for session in self.sessions:
            if session and draw.randrange(4) < 3:
                clone = p4r.CloneSessionEntry(session_id=session, replicas=_replicas(draw))
                updates.append(_pre(p4r.PacketReplicationEngineEntry(clone_session_entry=clone)))
        for table in self.tables:
            updates += self._table(draw, pool, table, plan)
        return updates

    def _table(self, draw: random.Random, pool: Pool, table: p4i.Table, plan: "_Plan") -> list[p4r.Update]:
        updates: list[p4r.Update] = []
        has_default = not table.const_default_action_id and not table.implementation_id
        if has_default and draw.randrange(2):
            refs = [r for r in table.action_refs if r.scope != p4i.ActionRef.TABLE_ONLY]
            if refs:
                entry = p4r.TableEntry(table_id=table.preamble.id, is_default_action=True)
                entry.action.action.CopyFrom(self._action(draw, pool, refs))
                updates.append(p4r.Update(type=p4r.Update.MODIFY, entity=p4r.Entity(table_entry=entry)))
        refs = [r for r in table.action_refs if r.scope != p4i.ActionRef.DEFAULT_ONLY]
        if not table.match_fields or not refs or table.preamble.name in self._const_entries:
            return updates
        ordered = any(each.match_type in _ORDERED for each in table.match_fields)
        seen = set()
        for number in range(min(_MAX_ENTRIES - draw.randrange(_MAX_ENTRIES + 1), table.size or 1)):
            entry = p4r.TableEntry(table_id=table.preamble.id)
            for each in table.match_fields:
                # Beyond the table's own mask nothing is drawn: BMv2 takes such entries, but cannot read them.
                match = _match(draw, pool, each, self._masks.get((table.preamble.name, each.name), -1))
                if match is not None:
                    entry.match.append(match)
            if (key := entry.SerializeToString(deterministic=True)) in seen:
                continue
            seen.add(key)
            if ordered:
                # Distinct: which of two equal ones wins is open in P4Runtime.
                entry.priority = 1 + 97 * number + draw.randrange(97)
            if table.implementation_id:
                updates += self._indirect(draw, pool, table, refs, entry, plan)
            else:
                entry.action.action.CopyFrom(self._action(draw, pool, refs))
            updates.append(p4r.Update(type=p4r.Update.INSERT, entity=p4r.Entity(table_entry=entry)))
        return updates

    def _action(self, draw: random.Random, pool: Pool, refs: list[p4i.ActionRef]) -> p4r.Action:
        info = self.actions[refs[draw.randrange(len(refs))].id]
        action = p4r.Action(action_id=info.preamble.id)
        for param in info.params:
            action.params.add(param_id=param.id, value=encode(_argument(draw, pool, param.bitwidth), param.bitwidth))
        return action

    def _indirect(
        self, draw: random.Random, pool: Pool, table: p4i.Table, refs: list[p4i.ActionRef], entry: Any, plan: "_Plan"
    ) -> list[p4r.Update]:
        """Fills the entry's action: a member, a group, or a one-shot set; returns what must be written first."""
        profile = table.implementation_id
        count = 1 + draw.randrange(4)
        if profile in plan.one_shot:
            actions = entry.action.action_profile_action_set.action_profile_actions
            for _ in range(count):
                actions.add(action=self._action(draw, pool, refs), weight=1 + draw.randrange(3))
            return []
        ids = [next(plan.ids) for _ in range(count)]
        updates = []
        for each in ids:
            action = self._action(draw, pool, refs)
            member = p4r.ActionProfileMember(action_profile_id=profile, member_id=each, action=action)
            updates.append(p4r.Update(type=p4r.Update.INSERT, entity=p4r.Entity(action_profile_member=member)))
        if self.profiles[profile].with_selector and draw.randrange(4) < 3:
            group = p4r.ActionProfileGroup(action_profile_id=profile, group_id=ids[0], max_size=16)
            for each in ids:
                group.members.add(member_id=each, weight=1 + draw.randrange(3) if plan.weights else 1)
            updates.append(p4r.Update(type=p4r.Update.INSERT, entity=p4r.Entity(action_profile_group=group)))
            entry.action.action_profile_group_id = ids[0]
        else:
            entry.action.action_profile_member_id = ids[0]
        return updates


@dataclass
class _Plan:
    """Of one draw: profiles that are used by one-shot sets (they must not be mixed with members), and free ids."""

    one_shot: set[int]
    weights: bool
    ids: Iterator[int] = field(default_factory=lambda: itertools.count(1))


_ORDERED = (p4i.MatchField.TERNARY, p4i.MatchField.RANGE, p4i.MatchField.OPTIONAL)


def _plain(table: p4i.Table, actions: dict[int, p4i.Action]) -> bool:
    """No value of it is translated between controller and switch."""
    params = [param for ref in table.action_refs for param in actions[ref.id].params]
    return all(each.bitwidth for each in [*table.match_fields, *params])


def _argument(draw: random.Random, pool: Pool, width: int) -> int:
    if width == 9 and draw.randrange(8) < 7:
        return PORTS[draw.randrange(len(PORTS))]
    return pool.draw(draw, width)


def _match(draw: random.Random, pool: Pool, info: p4i.MatchField, mask_of_table: int) -> p4r.FieldMatch | None:
    """A match of one field, None for "don't care"; its value goes into the pool."""
    width = info.bitwidth
    full = (1 << width) - 1
    value = pool.draw(draw, width) & full & mask_of_table
    match = p4r.FieldMatch(field_id=info.id)
    if info.match_type == p4i.MatchField.EXACT:
        match.exact.value = encode(value, width)
    elif info.match_type != p4i.MatchField.LPM and draw.randrange(5) == 4:
        return None
    elif info.match_type == p4i.MatchField.LPM:
        usual = (width // 2, 3 * width // 4, width, width, 1, width - 1, draw.randrange(width + 1), 0)
        length = usual[draw.randrange(len(usual))]
        if length == 0:
            return None
        value &= full << (width - length)
        match.lpm.value, match.lpm.prefix_len = encode(value, width), length
    elif info.match_type == p4i.MatchField.TERNARY:
        mask = (full, full, full << (width // 2) & full or full, draw.getrandbits(width) or full)[draw.randrange(4)]
        value &= mask
        match.ternary.value, match.ternary.mask = encode(value, width), encode(mask, width)
    elif info.match_type == p4i.MatchField.RANGE:
        low, high = sorted((value, pool.draw(draw, width) & full))
        if (low, high) == (0, full):
            return None
        match.range.low, match.range.high = encode(low, width), encode(high, width)
        pool.add(width, high)
    else:
        match.optional.value = encode(value, width)
    pool.add(width, value)
    return match


def _replicas(draw: random.Random) -> list[p4r.Replica]:
    ports = draw.sample(PORTS, 1 + draw.randrange(_RECEIVERS))
    return [p4r.Replica(egress_port=port, instance=draw.randrange(4)) for port in sorted(ports)]


def _pre(entry: p4r.PacketReplicationEngineEntry) -> p4r.Update:
    return p4r.Update(type=p4r.Update.INSERT, entity=p4r.Entity(packet_replication_engine_entry=entry))


def _assigned_groups(document: Json) -> list[int]:
    """The multicast groups that the program names itself, and two that entries may name."""
    found = {1, 2}
    for op, parameters in constants(document):
        if op == "assign" and parameters[0].get("value") == ["standard_metadata", "mcast_grp"]:
            value = parameters[1]
            while value["type"] == "expression" and "op" not in value["value"]:
                value = value["value"]
            if value["type"] == "hexstr" and 0 < int(value["value"], 16) < 32768:
                found.add(int(value["value"], 16))
    return sorted(found)

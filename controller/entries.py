"""Table entries as P4Runtime messages: their identity, their meaning, and their text.

Two messages can differ and still be the same entry: byte strings with leading zeros, don't-care fields that are
present, the members of an action set in another order or with their weights split. `identity` and `meaning` see
through that.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable
from typing import Any

import finsy as fy
from finsy.proto import p4r

from controller import values


def identity(entry: p4r.TableEntry) -> Hashable:
    """What makes an entry this one and no other: table, match and priority, or that it is the table's default."""
    if entry.is_default_action:
        return entry.table_id, "default"
    match = frozenset(parts for field in entry.match if (parts := _match_parts(field)))
    return entry.table_id, entry.priority, match


def _match_parts(field: p4r.FieldMatch) -> tuple[Hashable, ...] | None:
    kind = field.WhichOneof("field_match_type")
    match kind:
        case "exact":
            return field.field_id, _canonical(field.exact.value)
        case "optional":
            return field.field_id, _canonical(field.optional.value)
        case "lpm" if field.lpm.prefix_len:
            return field.field_id, _canonical(field.lpm.value), field.lpm.prefix_len
        case "ternary" if _canonical(field.ternary.mask) != b"\0":
            return field.field_id, _canonical(field.ternary.value), _canonical(field.ternary.mask)
        case "range":
            return field.field_id, _canonical(field.range.low), _canonical(field.range.high)
    return None


def _canonical(value: bytes) -> bytes:
    return value.lstrip(b"\0") or b"\0"


def meaning(entry: p4r.TableEntry) -> Hashable:
    """What an entry does to packets: its action, or its action set as actions with their total weights."""
    action = entry.action
    match action.WhichOneof("type"):
        case "action":
            return "action", _action_parts(action.action)
        case "action_profile_member_id":
            return "member", action.action_profile_member_id
        case "action_profile_group_id":
            return "group", action.action_profile_group_id
        case "action_profile_action_set":
            weights: Counter[Hashable] = Counter()
            for member in action.action_profile_action_set.action_profile_actions:
                weights[_action_parts(member.action), member.watch_port] += member.weight
            return "set", frozenset(weights.items())
    return None


def _action_parts(action: p4r.Action) -> Hashable:
    return action.action_id, frozenset((param.param_id, _canonical(param.value)) for param in action.params)


# --- text ---


def describe(entry: p4r.TableEntry, schema: fy.P4Schema) -> str:
    """One line: table, match, priority, action."""
    table = schema.tables[entry.table_id]
    fields = [f"{name}={text}" for name, text in match_texts(entry, table).items() if text != values.ANY]
    match = "default" if entry.is_default_action else " ".join(fields)
    priority = f" priority={entry.priority}" if entry.priority else ""
    action = f" -> {action_text(entry.action, table)}" if entry.HasField("action") else ""
    return f"{table.alias} {match or 'any'}{priority}{action}"


def match_texts(entry: p4r.TableEntry, table: fy.p4schema.P4Table) -> dict[str, str]:
    """Every key field of the table with the text of its match; "*" where the entry does not care."""
    present = {field.field_id: field for field in entry.match}
    return {
        field.name: values.format_field(field, present[field.id]) if field.id in present else "*"
        for field in table.match_fields
        if not isinstance(field.match_type, str)  # selectors are not matched
    }


def action_text(action: p4r.TableAction, table: fy.p4schema.P4Table) -> str:
    """An action as people write it: `forward(port=3)`, `{forward(port=1)*2, forward(port=2)}`, `member(7)`."""
    match action.WhichOneof("type"):
        case "action":
            return call_text(action.action, table.actions)
        case "action_profile_member_id":
            return f"member({action.action_profile_member_id})"
        case "action_profile_group_id":
            return f"group({action.action_profile_group_id})"
        case "action_profile_action_set":
            members = action.action_profile_action_set.action_profile_actions
            texts = [call_text(m.action, table.actions) + (f"*{m.weight}" if m.weight != 1 else "") for m in members]
            return "{" + ", ".join(texts) + "}"
    return "none"


def call_text(action: p4r.Action, actions: Any) -> str:
    """An action with its arguments; `actions` are those of a table or of an action profile, by id."""
    schema = actions[action.action_id]
    present = {param.param_id: param.value for param in action.params}
    arguments = []
    for param in schema.params:
        if param.id in present:
            raw = present[param.id]
            number, address = int.from_bytes(raw, "big"), values.is_address(param)
            text = values.format_value(number, param.bitwidth, address) if param.bitwidth else raw.decode()
            arguments.append(f"{param.name}={text}")
    return f"{schema.alias}({', '.join(arguments)})"

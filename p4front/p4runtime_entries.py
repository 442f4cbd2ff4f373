"""The entries a program's tables start with, as the P4Runtime request that would write them.

As p4c's `--p4runtime-entries-files`: values in all bytes of their width, what matches everything left out, and for
`const entries` of tables that need priorities n, n - 1, ..., 1.
"""

from __future__ import annotations

from finsy.proto import p4i, p4r

from p4front import ir
from p4front import p4types as t
from p4front.diagnostics import Diagnostics
from p4front.elaborate import Elaborated
from p4front.entry_order import key_mask, key_range, ordered_entries
from p4front.p4info_types import value_bytes


def make_entries(program: Elaborated, info: p4i.P4Info, diagnostics: Diagnostics) -> p4r.WriteRequest:
    """The request; `info` is the program's P4Info."""
    request = p4r.WriteRequest()
    known = {table.preamble.name: table for table in info.tables}
    actions = {action.preamble.name: action for action in info.actions}
    for block in program.blocks:
        for member in ir.members_of(block):
            if isinstance(member, ir.Table) and member.applied and member.name in known:
                _Writer(member, known[member.name], actions, diagnostics).write(request)
    return request


class _Writer:
    def __init__(
        self, table: ir.Table, info: p4i.Table, actions: dict[str, p4i.Action], diagnostics: Diagnostics
    ) -> None:
        self.table = table
        self.info = info
        self.actions = actions
        self.diagnostics = diagnostics

    def write(self, request: p4r.WriteRequest) -> None:
        """Add this table's entries."""
        for entry, priority in ordered_entries(self.table, self.diagnostics):
            update = request.updates.add(type=p4r.Update.INSERT)
            message = update.entity.table_entry
            message.table_id = self.info.preamble.id
            keys = [pair for pair in zip(self.table.keys, entry.keys, strict=True) if pair[0].match_kind != "selector"]
            for field, (key, made) in zip(self.info.match_fields, keys, strict=True):
                self._match(message, field.id, key, made)
            self._action(message, entry)
            message.is_const = entry.const
            message.priority = priority

    def _action(self, message: p4r.TableEntry, entry: ir.Entry) -> None:
        action = self.table.actions[entry.action].action
        info = self.actions[action.name]
        made = message.action.action
        made.action_id = info.preamble.id
        for param, described, arg in zip(action.params, info.params, entry.args, strict=True):
            made.params.add(param_id=described.id, value=value_bytes(arg.value, t.bit_width(param.type) or 0))

    def _match(self, message: p4r.TableEntry, number: int, key: ir.Key, made: ir.EntryKey) -> None:
        width = t.bit_width(key.type) or 0
        everything = (1 << width) - 1
        low, high = key_range(made, width)
        value, mask = key_mask(made, width)
        if key.match_kind == "range" and (low, high) != (0, everything):
            span = message.match.add(field_id=number).range
            span.low, span.high = value_bytes(low, width), value_bytes(high, width)
        elif key.match_kind == "exact":
            message.match.add(field_id=number).exact.value = value_bytes(value, width)
        elif key.match_kind == "lpm" and mask:
            prefix = message.match.add(field_id=number).lpm
            prefix.value, prefix.prefix_len = value_bytes(value, width), mask.bit_count()
        elif key.match_kind == "ternary" and mask:
            ternary = message.match.add(field_id=number).ternary
            ternary.value, ternary.mask = value_bytes(value, width), value_bytes(mask, width)
        elif key.match_kind == "optional" and mask:
            message.match.add(field_id=number).optional.value = value_bytes(value, width)

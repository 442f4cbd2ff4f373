"""ingress() and egress(): tables, conditionals and action calls in topological order, joined by gotos."""

from __future__ import annotations

from . import model
from .actions import action_name, can_exit
from .emitter import Emitter, comment, identifier
from .expr import Expressions
from .hashing import Hashes
from .layout import Layout
from .load_pipelines import control_order, successors
from .model import Calculation, Conditional, FieldList, Key, NodeRef, Pipeline, Program, Table, ValidBit
from .packing import Item, constant_item
from .parser import emit_key, padded_items
from .parts import PART_NODES, emit_entries, emit_exits, in_parts, part_head, parts_table
from .storing import Stores


class PipelineEmitter:
    def __init__(
        self, program: Program, layout: Layout, expressions: Expressions, stores: Stores, hashes: Hashes
    ) -> None:
        self.program = program
        self.layout = layout
        self.expressions = expressions
        self.stores = stores
        self.hashes = hashes

    def emit(self, out: Emitter, name: str, pipeline: Pipeline | None) -> None:
        order = [] if pipeline is None else control_order(pipeline)
        parts = in_parts(order)
        if pipeline is not None and len(parts) > 1:
            for number, part in enumerate(parts):
                self._emit_part(out, name, number, pipeline, part, order)
            out.line(parts_table(name, "struct phv *phv", len(parts)))
        out.line(f"static void {name}(struct plait_instance *instance, struct plait_packet *packet)")
        out.line("{")
        out.line("struct phv *phv = packet->phv;")
        if name == "egress":
            out.line("packet->std.packet_length += (uint32_t)phv->length_change;")
            out.line("phv->length_change = 0;")
        if len(parts) > 1:
            out.line("uint32_t position = 0;")
            out.line("while (position != PLAIT_LEFT)")
            out.line(f"    position = {name}_parts[position / {PART_NODES}](instance, packet, phv, position);")
        elif pipeline is not None:
            self._emit_nodes(out, pipeline, order)
            out.label("done")
        if name == "ingress" and self.program.learn_lists:
            self._emit_digests(out)
        out.line("}")
        out.line()

    # -- the graph

    def _emit_part(
        self, out: Emitter, name: str, number: int, pipeline: Pipeline, part: list[NodeRef], order: list[NodeRef]
    ) -> None:
        out.line(part_head(name, "struct phv *phv", number))
        out.line("{")
        positions = {ref: position for position, ref in enumerate(order)}
        emit_entries(out, [(positions[ref], self._label(pipeline, ref)) for ref in part])
        self._emit_nodes(out, pipeline, part)
        ours = set(part)
        targets = dict.fromkeys(each for ref in part for each in successors(pipeline, ref) if each not in ours)
        emit_exits(out, [(positions[ref], self._label(pipeline, ref)) for ref in targets])
        out.lines("return position;", "}", "")

    def _emit_nodes(self, out: Emitter, pipeline: Pipeline, order: list[NodeRef]) -> None:
        for position, ref in enumerate(order):
            following = order[position + 1] if position + 1 < len(order) else None
            out.line()
            out.label(self._label(pipeline, ref))
            if ref.kind == "table":
                self._emit_table(out, pipeline, pipeline.tables[ref.index], following)
            elif ref.kind == "conditional":
                self._emit_conditional(out, pipeline, pipeline.conditionals[ref.index], following)
            else:
                call = pipeline.calls[ref.index]
                self._run(out, call.action, "NULL")
                self._goto(out, pipeline, call.next, following)

    @staticmethod
    def _label(pipeline: Pipeline, ref: NodeRef) -> str:
        name = {
            "table": lambda: pipeline.tables[ref.index].name,
            "conditional": lambda: pipeline.conditionals[ref.index].name,
            "call": lambda: pipeline.calls[ref.index].name,
        }[ref.kind]()
        return identifier(ref.kind, ref.index, name)

    def _target(self, pipeline: Pipeline, ref: NodeRef | None) -> str:
        return "done" if ref is None else self._label(pipeline, ref)

    def _goto(self, out: Emitter, pipeline: Pipeline, ref: NodeRef | None, following: NodeRef | None) -> None:
        if ref != following:
            out.line(f"goto {self._target(pipeline, ref)};")

    def _run(self, out: Emitter, action: model.Action, params: str) -> None:
        call = f"{action_name(action)}(instance, packet, phv, {params})"
        if can_exit(action):
            out.line(f"if (!{call})")
            out.line("    goto done;")
        else:
            out.line(f"{call};")

    def _emit_conditional(
        self, out: Emitter, pipeline: Pipeline, conditional: Conditional, following: NodeRef | None
    ) -> None:
        out.source(conditional.source)
        if conditional.true == conditional.false:
            self._goto(out, pipeline, conditional.true, following)
            return
        test = self.expressions.bool(conditional.condition)
        if conditional.true == following:
            out.line(f"if (!{test})")
            out.line(f"    goto {self._target(pipeline, conditional.false)};")
        else:
            out.line(f"if ({test})")
            out.line(f"    goto {self._target(pipeline, conditional.true)};")
            self._goto(out, pipeline, conditional.false, following)

    # -- tables

    def _emit_table(self, out: Emitter, pipeline: Pipeline, table: Table, following: NodeRef | None) -> None:
        out.line(comment(f"table {table.name}"))
        out.source(table.source)
        default = table.default
        if not table.keys and default is not None and default.const and not default.action.params:
            # A statement of the program that a compiler made a table of: nothing can change what it does.
            self._run(out, default.action, "NULL")
            self._goto(out, pipeline, table.miss if table.by_hit else table.by_action[default.action.index], following)
            return
        out.line("{")
        out.line(f"const struct plait_table *table = instance->tables[{table.index}];")
        if table.keys:
            items = [item for key in table.keys for item in self._key_items(key)]
            emit_key(out, items, table.key_bytes)
            out.line("struct plait_entry *entry = instance->runtime->lookup(table, key);")
            self._emit_hit(out, table)
        else:
            # No key, no entries: always the default action.
            out.line("const struct plait_action_data *data = table->default_entry->data;")
        self._emit_actions(out, pipeline, table)
        self._emit_next(out, pipeline, table, following)
        out.line("}")

    def _key_items(self, key: Key) -> list[Item]:
        items = padded_items(self.layout, self.expressions, key.value, key.width)
        header = key.value.header
        if not self.layout.always_valid(header) and not isinstance(key.value, ValidBit):
            # A field of an invalid header matches as zero.
            valid = f"{self.layout.header_expr(header)}.valid"
            items = [_where(item, valid) for item in items]
        if key.mask is not None:
            items = _masked(items, key.mask, key.width)
        return items

    def _emit_hit(self, out: Emitter, table: Table) -> None:
        out.line("const struct plait_action_data *data;")
        if _branches_on_hit(table):
            out.line("bool hit = entry != NULL;")
        out.line("if (entry) {")
        if table.with_counters:
            out.line("entry->packets++;")
            out.line("entry->bytes += packet->arrival_length;")
        if table.support_timeout:
            out.line("entry->last_hit_ns = instance->now_ns;")
        if table.meter is not None:
            assert table.meter.target is not None
            out.line("uint64_t color = instance->runtime->meter_execute(instance, entry->meter, packet);")
            self.stores.assign(out, table.meter.target, model.Local("color"))
        out.line("data = entry->data;")
        if table.kind == "indirect_ws":
            assert table.selector is not None
            out.line("if (entry->group) {")
            out.line("const struct plait_group *group = entry->group;")
            out.line("if (PLAIT_LIKELY(group->size > 0)) {")
            narrow = "(uint32_t)" if _result_bits(table.selector) <= 32 else ""  # a 32-bit division is the faster one
            out.line(f"data = group->members[{narrow}{self.hashes.call(table.selector)} % group->size];")
            out.line("} else {")
            out.line("/* an empty group: as a miss */")
            if _branches_on_hit(table):
                out.line("hit = false;")
            out.line("data = table->default_entry->data;")
            out.lines("}", "}")
        out.line("} else {")
        out.line("data = table->default_entry->data;")
        out.line("}")

    def _emit_actions(self, out: Emitter, pipeline: Pipeline, table: Table) -> None:
        """Runs what the entry says; goes to the action's successor if actions have different ones."""
        if not table.actions:
            return
        same = self._uniform(table)
        out.line("if (PLAIT_LIKELY(data != NULL)) {")
        out.line("switch (data->action) {")
        for action in table.actions:
            out.line(f"case {action.index}:")
            out.line("{")
            self._run(out, action, "data->params")
            if not table.by_hit and not same:
                out.line(f"goto {self._target(pipeline, table.by_action.get(action.index))};")
            else:
                out.line("break;")
            out.line("}")
        out.lines("default:", "    break;", "}", "}")

    @staticmethod
    def _uniform(table: Table) -> bool:
        return len({*table.by_action.values(), table.base_next}) <= 1

    def _emit_next(self, out: Emitter, pipeline: Pipeline, table: Table, following: NodeRef | None) -> None:
        if not table.by_hit:
            self._goto(out, pipeline, table.base_next, following)
        elif not _branches_on_hit(table):
            self._goto(out, pipeline, table.miss, following)
        elif table.miss == following:
            out.line("if (hit)")
            out.line(f"    goto {self._target(pipeline, table.hit)};")
        else:
            out.line("if (!hit)")
            out.line(f"    goto {self._target(pipeline, table.miss)};")
            self._goto(out, pipeline, table.hit, following)

    # -- digests

    def _emit_digests(self, out: Emitter) -> None:
        """At the end of ingress, one digest: the last that was asked for."""
        out.line("if (PLAIT_UNLIKELY(packet->std.digest_list)) {")
        out.line("switch (packet->std.digest_list) {")
        for each in self.program.learn_lists:
            if each.id == 0:
                continue
            out.line(f"case {each.id}:")
            out.line("{")
            self._emit_digest(out, each)
            out.lines("break;", "}")
        out.line("default:")
        out.line("    break;")
        out.line("}")
        out.line("packet->std.digest_list = 0;")
        out.line("}")

    def _emit_digest(self, out: Emitter, learn_list: FieldList) -> None:
        items = [
            item
            for use in learn_list.fields
            for item in padded_items(self.layout, self.expressions, use, use.field.width)
        ]
        size = sum((use.field.width + 7) // 8 for use in learn_list.fields)
        emit_key(out, items, size)
        out.line(f"instance->runtime->digest(instance, {learn_list.id}, key, {size});")


def _branches_on_hit(table: Table) -> bool:
    return table.by_hit and table.hit != table.miss and bool(table.keys)


def _result_bits(selector: Calculation) -> int:
    if selector.algorithm.kind == "identity":
        return min(sum(part.width for part in selector.inputs), 64)
    return selector.algorithm.bits


def _where(item: Item, valid: str) -> Item:
    return Item(item.width, lambda low, count: f"({valid} ? {item.slice(low, count)} : 0)")


def _masked(items: list[Item], mask: int, width: int) -> list[Item]:
    """Items (padding and value) with a constant mask on the value."""
    *padding, value = items

    def take(low: int, count: int) -> str:
        part = mask >> low & ((1 << count) - 1)
        if part == 0:
            return constant_item(0, count).slice(0, count)
        return f"({value.slice(low, count)} & UINT64_C({part:#x}))"

    return [*padding, Item(width, take)]

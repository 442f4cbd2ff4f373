"""A pipeline's tables, actions, action profiles and conditionals."""

from __future__ import annotations

import re
from pathlib import PurePath
from typing import Any

from p4front import ir, json_expr
from p4front import p4types as t
from p4front.diagnostics import Diagnostics, SourceText, Span
from p4front.elaborate import Elaborated, Pipeline
from p4front.entry_order import key_mask, key_range, ordered_entries
from p4front.json_actions import ActionWriter, source_info
from p4front.json_graph import AppliedTable, Conditional, HiddenTable, build_graph

Json = dict[str, Any]
_MATCH_ORDER = ("exact", "lpm", "ternary", "range")


class PipelineWriter:
    """Writes pipelines; action, table and conditional ids run through all of them."""

    def __init__(
        self, program: Elaborated, source: SourceText, actions: ActionWriter, diagnostics: Diagnostics
    ) -> None:
        self.program = program
        self.source = source
        self.writer = actions
        self.diagnostics = diagnostics
        self.actions: list[Json] = []
        self.tables = 0
        self.conditionals = 0
        self.profiles: dict[ir.Extern, Json] = {}
        self._used: set[str] = set()
        self._nodes = 1

    def write(self, pipeline: Pipeline) -> Json:
        """Everything in a pipeline but its name and id."""
        graph = build_graph(pipeline.body, self, self.diagnostics)
        tables: list[Json] = []
        conditionals: list[Json] = []
        profiles: list[Json] = []
        for node in graph.nodes:
            if isinstance(node, Conditional):
                conditionals.append(self._conditional(node))
            elif isinstance(node, HiddenTable):
                tables.append(self._hidden(node))
            else:
                tables.append(self._table(node, profiles))
        return {
            "init_table": graph.init,
            "tables": tables,
            "action_profiles": profiles,
            "conditionals": conditionals,
        }

    # names of nodes

    def hidden(self, span: Span) -> str:
        """The name of a hidden table's action: file and line of its first statement."""
        where = self.source.locate(span[0])
        stem = re.sub(r"\W", "_", PurePath(where.file).stem) or "act"
        base = f"{stem}{where.line}"
        name, number = base, 0
        while name in self._used:
            name = f"{base}_{number}"
            number += 1
        self._used.add(name)
        return name

    def conditional(self) -> str:
        """`node_N`."""
        self._nodes += 1
        return f"node_{self._nodes}"

    # nodes

    def _located(self, json: Json, span: Span) -> Json:
        info = source_info(self.source, span)
        if info is not None:
            head = {key: json[key] for key in ("name", "id")}
            return {**head, "source_info": info, **json}
        return json

    def _conditional(self, node: Conditional) -> Json:
        json: Json = {
            "name": node.name,
            "id": self.conditionals,
            "expression": json_expr.condition(node.cond),
            "false_next": node.false_next,
            "true_next": node.true_next,
        }
        self.conditionals += 1
        return self._located(json, node.span)

    def _hidden(self, node: HiddenTable) -> Json:
        action = self._action(node.action, [], node.body)
        json: Json = {
            "name": node.name, "id": self._table_id(), "key": [], "match_type": "exact", "type": "simple",
            "max_size": 1024, "with_counters": False, "support_timeout": False, "direct_meters": None,
            "action_ids": [action], "actions": [node.action], "base_default_next": node.next,
            "next_tables": {node.action: node.next},
            "default_entry": {
                "action_id": action, "action_const": True, "action_data": [], "action_entry_const": True,
            },
        }  # fmt: skip
        return self._located(json, node.span)

    def _table_id(self) -> int:
        self.tables += 1
        return self.tables - 1

    def _action(self, name: str, params: list[ir.ActionParam], body: list[ir.Stmt]) -> int:
        number = len(self.actions)
        self.actions.append(
            {
                "name": name,
                "id": number,
                "runtime_data": [{"name": p.name, "bitwidth": t.bit_width(p.type)} for p in params],
                "primitives": self.writer.primitives(body),
            }
        )
        return number

    def _table(self, node: AppliedTable, profiles: list[Json]) -> Json:
        table = node.table
        for reference in table.actions:
            action = reference.action
            action.id = self._action(action.name, action.params, action.body)
        match_type = self._match_type(table)
        json: Json = {
            "name": table.name, "id": self._table_id(),
            "key": [self._key(key) for key in table.keys if key.match_kind != "selector"],
            "match_type": match_type,
            **self._implementation(table, profiles),
            "max_size": len(table.entries) if table.entries else table.size,
            "with_counters": table.counter is not None,
            "support_timeout": table.support_timeout,
            "direct_meters": table.meter.name if table.meter is not None else None,
            "action_ids": [reference.action.id for reference in table.actions],
            "actions": [reference.action.name for reference in table.actions],
            "base_default_next": node.base_next,
            "next_tables": self._next_tables(node),
        }  # fmt: skip
        if table.profile is None:
            default = table.actions[table.default].action
            json["default_entry"] = {
                "action_id": default.id,
                "action_const": table.default_const,
                "action_data": self._action_data(default, table.default_args),
                "action_entry_const": table.default_const,
            }
        elif table.default_args or table.actions[table.default].action.name != "NoAction":
            self.diagnostics.warning(
                "ignore-prop",
                f"BMv2 has no default_action for {table.name}, which has an action profile",
                table.decl.name_span,
            )
        if table.entries is not None:
            json["entries"] = [
                self._entry(table, entry, place)
                for place, (entry, _) in enumerate(ordered_entries(table, self.diagnostics))
            ]
        return self._located(json, table.decl.name_span)

    def _next_tables(self, node: AppliedTable) -> Json:
        if node.hit is not None or node.miss is not None:
            return {"__HIT__": node.hit, "__MISS__": node.miss}
        if node.by_action is not None:
            return dict(node.by_action)
        return {reference.action.name: node.base_next for reference in node.table.actions}

    # keys and entries

    def _match_type(self, table: ir.Table) -> str:
        kinds = ["ternary" if key.match_kind == "optional" else key.match_kind for key in table.keys]
        kinds = [kind for kind in kinds if kind != "selector"]
        for key in table.keys:
            if key.match_kind not in (*_MATCH_ORDER, "optional", "selector"):
                self.diagnostics.error(f"BMv2 does not know match kind {key.match_kind!r}", key.span)
                return "exact"
        if kinds.count("lpm") > 1:
            self.diagnostics.error(f"table {table.name} has more than one lpm key", table.decl.name_span)
        return max(kinds, key=_MATCH_ORDER.index, default="exact")

    def _key(self, key: ir.Key) -> Json:
        assert key.target is not None
        width = t.bit_width(key.target.type) or 0
        return {
            "match_type": "ternary" if key.match_kind == "optional" else key.match_kind,
            "name": key.name,
            "target": [key.target.header, key.target.field],
            "mask": None if key.mask is None else json_expr.hexstr(key.mask, width),
        }

    def _entry(self, table: ir.Table, entry: ir.Entry, place: int) -> Json:
        action = table.actions[entry.action].action
        keys = [self._entry_key(key, made, entry) for key, made in zip(table.keys, entry.keys, strict=True)]
        json: Json = {}
        info = source_info(self.source, entry.span)
        if info is not None:
            json["source_info"] = info
        json["match_key"] = keys
        json["action_entry"] = {"action_id": action.id, "action_data": self._action_data(action, entry.args)}
        json["priority"] = place + 1 if entry.annotated_priority is None else entry.annotated_priority
        return json

    def _entry_key(self, key: ir.Key, made: ir.EntryKey, entry: ir.Entry) -> Json:
        width = t.bit_width(key.type) or 0
        everything = (1 << width) - 1
        value, mask = key_mask(made, width)
        if key.match_kind == "exact":
            if made.kind != "value":
                self.diagnostics.error("an exact key needs a value", entry.span)
            return {"match_type": "exact", "key": json_expr.hexstr(value, width)}
        if key.match_kind == "range":
            low, high = key_range(made, width)
            if made.kind == "mask" or low > high:
                self.diagnostics.error("a range key needs a value or a range that is not empty", entry.span)
            return {
                "match_type": "range", "start": json_expr.hexstr(low, width), "end": json_expr.hexstr(high, width),
            }  # fmt: skip
        if made.kind == "range" or (made.kind == "mask" and key.match_kind == "optional"):
            self.diagnostics.error(f"a {made.kind} is no value of a key of kind {key.match_kind}", entry.span)
        if key.match_kind == "lpm":
            free = (mask ^ everything).bit_length()
            if mask ^ everything != (1 << free) - 1:
                self.diagnostics.error("the mask of an lpm key must be a prefix", entry.span)
            return {
                "match_type": "lpm", "key": json_expr.hexstr(value, width), "prefix_length": width - free,
            }  # fmt: skip
        return {
            "match_type": "ternary", "key": json_expr.hexstr(value, width), "mask": json_expr.hexstr(mask, width),
        }  # fmt: skip

    def _action_data(self, action: ir.Action, args: list[ir.Const]) -> list[str]:
        found: list[str] = []
        for param, arg in zip(action.params, args, strict=False):
            width = t.bit_width(param.type) or 0
            found.append(json_expr.hexstr(arg.value & ((1 << width) - 1)))
        return found

    # action profiles

    def _implementation(self, table: ir.Table, profiles: list[Json]) -> Json:
        profile = table.profile
        if profile is None:
            return {"type": "simple"}
        with_selector = profile.type.extern.name == "action_selector"
        inputs = [
            {"type": "field", "value": [key.target.header, key.target.field]}
            for key in table.keys
            if key.match_kind == "selector" and key.target is not None
        ]
        known = self.profiles.get(profile)
        if known is None:
            size = profile.args["size"]
            assert isinstance(size, ir.Const)
            json: Json = {"name": profile.name, "id": len(self.profiles), "max_size": size.value}
            if with_selector:
                algorithm = profile.args["algorithm"]
                assert isinstance(algorithm, ir.Symbol)
                json["selector"] = {"algo": algorithm.name, "input": inputs}
            json = self._located(json, profile.span)
            self.profiles[profile] = json
            profiles.append(json)
        elif with_selector and known["selector"]["input"] != inputs:
            self.diagnostics.error(
                f"tables that share {profile.name} must have the same selector keys", table.decl.name_span
            )
        if with_selector and not inputs:
            self.diagnostics.error(f"table {table.name} has no key of kind selector", table.decl.name_span)
        return {"type": "indirect_ws" if with_selector else "indirect", "action_profile": profile.name}

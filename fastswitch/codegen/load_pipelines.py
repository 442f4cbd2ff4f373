"""Loads pipelines: action profiles, tables with their entries, conditionals, and the graph that joins them."""

from __future__ import annotations

from collections.abc import Callable

from . import model
from .errors import no_such
from .load_expressions import ExpressionLoader, load_source
from .load_headers import Names
from .model import (
    Action,
    ActionCall,
    ActionCallData,
    Array,
    Calculation,
    Conditional,
    Entry,
    Key,
    NodeRef,
    Pipeline,
    Program,
    Table,
)
from .reader import Reader

MAX_TABLE_SIZE = 1 << 26
MAX_KEY_BYTES = 2048
_MATCH_KINDS = ("exact", "lpm", "ternary", "range", "optional", "valid")
# An optional key is a ternary one whose mask is nothing or everything, and `valid` an exact one of one bit.
_INTERCHANGEABLE = {("ternary", "optional"), ("optional", "ternary"), ("valid", "exact")}
_TABLE_MATCH_KINDS = ("exact", "lpm", "ternary", "range", "optional")


class PipelineLoader:
    def __init__(
        self,
        program: Program,
        expressions: ExpressionLoader,
        actions_by_id: dict[int, Action],
        load_selector: Callable[[Reader], Calculation],
        meters: Names,
    ) -> None:
        self.program = program
        self.expressions = expressions
        self.actions_by_id = actions_by_id
        self.load_selector = load_selector
        self.meters = meters
        self.profiles = Names("action profile")  # of the whole document: profiles are shared between tables
        self.table_names = Names("table")

    def load(self, node: Reader) -> Pipeline:
        for each in node.list_of("action_profiles"):
            selector = self.load_selector(each["selector"]) if each.has("selector") else None
            self.profiles.add(each, each["name"].text(), (selector,))
        nodes = Names("table, conditional or action call")
        pipeline = Pipeline(node["name"].text(), [], [], [])
        table_nodes = list(node.list_of("tables"))
        for each in table_nodes:
            table = self._table(each)
            self.program.tables.append(table)
            pipeline.tables.append(table)
            nodes.add(each, table.name, NodeRef("table", len(pipeline.tables) - 1))
        conditional_nodes = list(node.list_of("conditionals"))
        for each in conditional_nodes:
            condition = self.expressions.bool(each["expression"])
            name = each["name"].text()
            pipeline.conditionals.append(Conditional(name, condition, load_source(each)))
            nodes.add(each, name, NodeRef("conditional", len(pipeline.conditionals) - 1))
        call_nodes = list(node.list_of("action_calls"))
        for each in call_nodes:
            action = self._action(each["action_id"])
            if action.params:
                raise each.error(f"action {action.name!r} has parameters and cannot be called directly")
            pipeline.calls.append(ActionCall(each["name"].text(), action))
            nodes.add(each, each["name"].text(), NodeRef("call", len(pipeline.calls) - 1))

        def follow(where: Reader, key: str) -> NodeRef | None:
            found = where.optional(key)
            return None if found is None else nodes.find(found)

        pipeline.start = follow(node, "init_table")
        for table, each in zip(pipeline.tables, table_nodes, strict=True):
            self._successors(table, each, follow)
        for conditional, each in zip(pipeline.conditionals, conditional_nodes, strict=True):
            if not {"true_next", "false_next"} & set(each.keys()):
                raise each.error("neither 'true_next' nor 'false_next'")
            conditional.true = follow(each, "true_next")
            conditional.false = follow(each, "false_next")
        for call, each in zip(pipeline.calls, call_nodes, strict=True):
            call.next = follow(each, "next_node")
        control_order(pipeline, node)
        return pipeline

    def _action(self, node: Reader) -> Action:
        identity = node.integer(0, 2**31 - 1)
        if identity not in self.actions_by_id:
            raise node.error(f"no action with id {identity}")
        return self.actions_by_id[identity]

    def _table_actions(self, node: Reader) -> list[Action]:
        if node.has("action_ids"):
            return [self._action(each) for each in node["action_ids"].elements()]
        found = []
        for each in node["actions"].elements():
            named = [action for action in self.program.actions if action.name == each.text()]
            if not named:
                raise no_such(each.where, "action", each.text(), [action.name for action in self.program.actions])
            if len(named) > 1:
                raise each.error(f"several actions are named {each.text()[:80]!r}: 'action_ids' must tell them apart")
            found.append(named[0])
        return found

    def _table(self, node: Reader) -> Table:
        kind = node["type"].text()
        if kind not in ("simple", "indirect", "indirect_ws"):
            raise node["type"].error(f"unknown table type {kind[:40]!r}")
        match_kind = node["match_type"].text()
        if match_kind not in _TABLE_MATCH_KINDS:
            raise node["match_type"].error(f"unknown match kind {match_kind[:40]!r}")
        keys = tuple(self._key(each) for each in node.list_of("key"))
        self._check_keys(node, match_kind, keys)
        actions = self._table_actions(node)
        self._check_next_tables(node, actions)
        selector = None
        if kind != "simple":
            if node.has("action_profile"):
                (selector,) = self.profiles.find(node["action_profile"])
            else:  # before version 2.12 a table held its profile itself
                node["act_prof_name"].text()
                selector = self.load_selector(node["selector"]) if node.has("selector") else None
            if (kind == "indirect_ws") != (selector is not None):
                raise node.error(f"table type {kind!r} does not fit its action profile")
        meter: Array | None = None
        if node.has("direct_meters"):
            meter = self.meters.find(node["direct_meters"])
            if not meter.direct:
                raise node["direct_meters"].error(f"meter {meter.name!r} is not direct")
        default = None
        if node.has("default_entry"):
            default = self._call(node["default_entry"])
            if kind != "simple" and node["default_entry"].flag("action_const"):
                raise node["default_entry"].error("'action_const' in a table with an action profile")
            if default.action not in actions:
                actions.append(default.action)
        entries = self._entries(node, keys, actions)
        if not node.has("max_size") and not node.has("entries"):
            raise node.error("neither 'max_size' nor 'entries'")
        size = node["max_size"].integer(0, MAX_TABLE_SIZE) if node.has("max_size") else 0
        table = Table(
            index=len(self.program.tables),
            name=node["name"].text(),
            kind=kind,
            keys=keys,
            size=max(size, len(entries)),
            actions=tuple(dict.fromkeys(actions)),
            with_counters=node.flag("with_counters"),
            support_timeout=node.flag("support_timeout"),
            meter=meter,
            selector=selector,
            default=default,
            entries=entries,
            source=load_source(node),
        )
        self.table_names.add(node, table.name, table)
        if kind != "simple" and entries:
            raise node.error("constant entries in a table with an action profile")
        return table

    @staticmethod
    def _check_next_tables(node: Reader, actions: list[Action]) -> None:
        """Either __HIT__ and __MISS__, or the name of each action once."""
        names = [action.name for action in actions]
        for name in names:
            if names.count(name) > 1:
                raise node.error(f"two actions named {name[:80]!r}")
        keys = set(node["next_tables"].keys())
        if keys & {"__HIT__", "__MISS__"}:
            if keys != {"__HIT__", "__MISS__"}:
                raise node["next_tables"].error("needs exactly the keys __HIT__ and __MISS__")
            return
        for name in names:
            if name not in keys:
                raise node["next_tables"].error(f"no successor for action {name[:80]!r}")
        if len(keys) > len(names):
            raise node["next_tables"].error(f"{str(min(keys - set(names)))[:80]!r} is not an action of the table")

    def _key(self, node: Reader) -> Key:
        match_kind = node["match_type"].text()
        if match_kind not in _MATCH_KINDS:
            raise node["match_type"].error(f"unknown match kind {match_kind[:40]!r}")
        if match_kind == "valid":
            header = self.expressions.headers.headers.find(node["target"])
            value: model.FieldUse | model.ValidBit = model.ValidBit(model.HeaderRef(header))
            name, width, match_kind = header.name, 1, "exact"
        else:
            value = self.expressions.field(node["target"])
            if isinstance(value, model.FieldUse) and value.field.varbit:
                raise node["target"].error("a variable-length field as a key")
            width = value.field.width if isinstance(value, model.FieldUse) else 1
            name = ".".join(part.text() for part in node["target"].elements())
        if node.has("name"):
            name = node["name"].text()
        mask = node["mask"].unsigned(8 * ((width + 7) // 8)) & ((1 << width) - 1) if node.has("mask") else None
        return Key(name, match_kind, value, width, mask)

    def _check_keys(self, node: Reader, match_kind: str, keys: tuple[Key, ...]) -> None:
        if sum((key.width + 7) // 8 for key in keys) > MAX_KEY_BYTES:
            raise node.error(f"a key of more than {MAX_KEY_BYTES} bytes")
        kinds = [key.match for key in keys]
        allowed = {
            "exact": {"exact"},
            "lpm": {"exact", "lpm"},
            "ternary": {"exact", "lpm", "ternary", "optional"},
            "optional": {"exact", "lpm", "ternary", "optional"},
            "range": {"exact", "lpm", "ternary", "optional", "range"},
        }[match_kind]
        for kind in kinds:
            if kind not in allowed:
                raise node.error(f"a key of kind {kind!r} in a table of kind {match_kind!r}")
        if kinds.count("lpm") > 1:
            raise node.error("more than one lpm key")

    def _call(self, node: Reader) -> ActionCallData:
        action = self._action(node["action_id"])
        data = node["action_data"].elements(len(action.params))
        params = b""
        for each, param in zip(data, action.params, strict=True):
            value = each.hexstr()
            if not -(1 << (param.width - 1)) <= value < 1 << param.width:
                raise each.error(f"does not fit the {param.width} bits of parameter {param.name[:80]!r}")
            params += (value % (1 << param.width)).to_bytes((param.width + 7) // 8, "big")
        return ActionCallData(action, params, node.flag("action_const") or node.flag("action_entry_const"))

    def _entries(self, node: Reader, keys: tuple[Key, ...], actions: list[Action]) -> tuple[Entry, ...]:
        nodes = list(node.list_of("entries"))
        # BMv2's smaller priority wins; ours, as P4Runtime's, is the larger.
        priorities = [each["priority"].integer(-(2**31), 2**31) if each.has("priority") else 1 for each in nodes]
        highest = max(priorities, default=0)
        ordered = node["match_type"].text() in ("ternary", "range", "optional")
        found: list[Entry] = []
        seen: set[tuple[object, ...]] = set()
        allowed = {action.index for action in actions}
        for each, priority in zip(nodes, priorities, strict=True):
            call = self._call(each["action_entry"])
            if call.action.index not in allowed:
                raise each["action_entry"].error(f"action {call.action.name!r} is not one of the table's")
            entry = self._entry(each, keys, highest - priority + 1 if ordered else 0, call)
            match = (entry.key, entry.mask, entry.prefix_length, entry.range_high, entry.priority)
            if match in seen:
                raise each.error("the same match as an entry before it")
            seen.add(match)
            found.append(entry)
        return tuple(found)

    def _entry(self, node: Reader, keys: tuple[Key, ...], priority: int, call: ActionCallData) -> Entry:
        key_bytes = mask_bytes = high_bytes = b""
        prefix_length: int | None = None
        kinds = {key.match for key in keys}
        for each, key in zip(node["match_key"].elements(len(keys)), keys, strict=True):
            size = (key.width + 7) // 8
            full = (1 << key.width) - 1
            mask = full
            kind = each["match_type"].text() if each.has("match_type") else key.match
            if kind != key.match and (kind, key.match) not in _INTERCHANGEABLE:
                raise each.error(f"an entry of kind {kind[:40]!r} for a key of kind {key.match!r}")
            match kind:
                case "valid":
                    low = high = int(each["key"].boolean())
                case "exact":
                    low = high = each["key"].unsigned(8 * size) & full
                case "lpm":
                    prefix_length = each["prefix_length"].integer(0, key.width)
                    mask = full ^ ((1 << (key.width - prefix_length)) - 1)
                    low = high = each["key"].unsigned(8 * size) & mask
                case "ternary" | "optional":
                    mask = each["mask"].unsigned(8 * size) & full
                    low = high = each["key"].unsigned(8 * size) & mask
                case "range":
                    low, high = each["start"].unsigned(key.width), each["end"].unsigned(key.width)
                    if low > high:
                        raise each.error("a range that starts after its end")
            if key.mask is not None and kind != "range":
                low = high = low & key.mask  # the table's own mask cuts entries as it cuts packets
            key_bytes += low.to_bytes(size, "big")
            mask_bytes += mask.to_bytes(size, "big")
            high_bytes += high.to_bytes(size, "big")
        with_mask = bool(kinds & {"ternary", "optional", "range"})
        return Entry(
            key=key_bytes,
            mask=mask_bytes if with_mask else None,
            prefix_length=None if with_mask else prefix_length,
            range_high=high_bytes if "range" in kinds else None,
            priority=priority,
            call=call,
        )

    @staticmethod
    def _successors(table: Table, node: Reader, follow: Callable[[Reader, str], NodeRef | None]) -> None:
        table.base_next = follow(node, "base_default_next")
        next_tables = node["next_tables"]
        keys = set(next_tables.keys())
        if "__HIT__" in keys:
            table.by_hit = True
            table.hit = follow(next_tables, "__HIT__")
            table.miss = follow(next_tables, "__MISS__")
            return
        for action in table.actions:
            # A default action that is none of the table's own goes on as a miss does.
            known = action.name in keys
            table.by_action[action.index] = follow(next_tables, action.name) if known else table.base_next


def successors(pipeline: Pipeline, ref: NodeRef) -> list[NodeRef]:
    """The nodes that may run right after `ref`, without repetition, in a fixed order."""
    found: list[NodeRef | None]
    if ref.kind == "conditional":
        conditional = pipeline.conditionals[ref.index]
        found = [conditional.true, conditional.false]
    elif ref.kind == "call":
        found = [pipeline.calls[ref.index].next]
    else:
        table = pipeline.tables[ref.index]
        found = [table.hit, table.miss] if table.by_hit else [*table.by_action.values(), table.base_next]
    return [each for each in dict.fromkeys(found) if each is not None]


def control_order(pipeline: Pipeline, where: Reader | None = None) -> list[NodeRef]:
    """The nodes that can be reached, each before its successors.  A cycle, which would never end, is refused."""
    if pipeline.start is None:
        return []
    finished: list[NodeRef] = []
    state: dict[NodeRef, bool] = {pipeline.start: False}  # False while its successors are being visited
    path = [(pipeline.start, successors(pipeline, pipeline.start))]
    while path:
        node, rest = path[-1]
        if not rest:
            state[node] = True
            finished.append(node)
            path.pop()
            continue
        following = rest.pop()
        if following not in state:
            state[following] = False
            path.append((following, successors(pipeline, following)))
        elif not state[following] and where is not None:
            raise where.error(f"the control graph has a cycle through a {following.kind}")
    return finished[::-1]

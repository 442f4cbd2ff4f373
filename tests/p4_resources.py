"""What each program of p4src/ needs of a switch, counted in its compiled JSON, as the table in docs/p4/README.md.

    python -m tests.p4_resources     # writes that table anew

Register stages: the longest chain of register accesses in which each needs the result of the one before, as index,
value or condition. A pipeline of hardware needs a stage for each.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import Any

import p4front
from tests.conftest import ROOT

PAGE = ROOT / "docs" / "p4" / "README.md"
BEGIN, END = "<!-- resources: python -m tests.p4_resources -->\n", "<!-- end of resources -->\n"
PROGRAMS = ("ecmp", "spray", "power_of_two", "drill", "flowlet", "ksp", "dibs", "srpt")
# Bound to the switch's own state: no memory of the program.
_BOUND = {"plait.queue_bytes", "plait.port_up"}
_FAILOVER = "plait.port_up"

Depths = dict[Any, int]


def compiled(name: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(p4front.compile_file(ROOT / "p4src" / f"{name}.p4").json_text)
    return found


def fields(operand: Any) -> Iterator[Any]:
    """The fields that an operand of a primitive, or an expression, reads."""
    if isinstance(operand, dict):
        if operand.get("type") == "field":
            yield tuple(operand["value"])
        else:
            yield from fields(list(operand.values()))
    elif isinstance(operand, list):
        for part in operand:
            yield from fields(part)


def depth_of(operands: Any, depths: Depths) -> int:
    return max((depths.get(field, 0) for field in fields(operands)), default=0)


def perform(primitives: Iterable[dict[str, Any]], depths: Depths, context: int, free: set[str]) -> int:
    """Follows an action through `depths`; the deepest register access in it. Accesses of `free` ones add no depth."""
    deepest = 0
    for primitive in primitives:
        parameters = primitive["parameters"]
        into, *rest = parameters or [None]
        register = next((p["value"] for p in parameters if p["type"] == "register_array"), None)
        depth = max(context, depth_of(rest, depths))
        if register is not None:
            depth = max(depth, depths.get(register, 0)) + (register not in free)
            deepest = max(deepest, depth)
        if primitive["op"] == "register_write":
            depths[register] = depth
        elif into is not None and into["type"] == "field":
            depths[tuple(into["value"])] = depth
    return deepest


def successors(node: dict[str, Any]) -> list[str | None]:
    if "expression" in node:
        return [node["true_next"], node["false_next"]]
    return list(dict.fromkeys([*node["next_tables"].values(), node.get("base_default_next")]))


def register_stages(program: dict[str, Any], free: set[str] = frozenset()) -> int:  # type: ignore[assignment]
    actions = {action["id"]: action["primitives"] for action in program["actions"]}
    deepest, depths = 0, Depths()
    for pipeline in program["pipelines"]:
        nodes = {node["name"]: node for node in [*pipeline["tables"], *pipeline["conditionals"]]}
        order = topological(nodes, pipeline["init_table"])
        after = post_dominators(nodes, order)
        before: dict[str | None, Depths] = {pipeline["init_table"]: depths}
        conditions: dict[str, int] = {}
        for name in order:
            node, state = nodes[name], before.get(name, {})
            context = max(
                (depth for other, depth in conditions.items() if decides(nodes[other], name, after)), default=0
            )
            asked = node["expression"] if "expression" in node else [key["target"] for key in node["key"]]
            operands = asked if "expression" in node else [{"type": "field", "value": target} for target in asked]
            conditions[name] = max(context, depth_of(operands, state))
            out = Depths()
            for action in node.get("action_ids", []):
                taken = dict(state)
                deepest = max(deepest, perform(actions[action], taken, conditions[name], free))
                merge(taken, out)
            if node.get("type") != "simple":  # a condition, or a table whose miss runs nothing
                merge(state, out)
            for following in successors(node):
                merge(out, before.setdefault(following, {}))
        depths = before.get(None, {})
    return deepest


def decides(node: dict[str, Any], name: str, after: dict[str, set[str]]) -> bool:
    """Whether `name` is passed after one outcome of the node, but not in any case: control dependence."""
    return name not in after[node["name"]] and any(name in after[way] for way in successors(node) if way)


def merge(ways: Depths, into: Depths) -> None:
    into.update({key: max(depth, into.get(key, 0)) for key, depth in ways.items()})


def topological(nodes: dict[str, Any], first: str | None) -> list[str]:
    order: list[str] = []

    def visit(name: str | None) -> None:
        if name is not None and name not in order:
            for following in successors(nodes[name]):
                visit(following)
            order.insert(0, name)

    visit(first)
    return order


def post_dominators(nodes: dict[str, Any], order: list[str]) -> dict[str, set[str]]:
    """Per node, those that are passed after it in any case, itself included."""
    found: dict[str, set[str]] = {}
    for name in reversed(order):
        ways = [found[following] if following else set() for following in successors(nodes[name])]
        found[name] = set.intersection(*ways) | {name} if ways else {name}
    return found


def row(name: str) -> str:
    program = compiled(name)
    tables = [table for p in program["pipelines"] for table in p["tables"] if not table["name"].startswith("tbl_")]
    keyed = sum(table["max_size"] for table in tables if table["key"])
    own = [array for array in program["register_arrays"] if array["name"] not in _BOUND]
    register_bytes = sum(array["size"] * array["bitwidth"] // 8 for array in own)
    counters = sum(array["size"] for array in program["counter_arrays"])
    stages, choice = register_stages(program), register_stages(program, {_FAILOVER})
    size = f"{register_bytes:,}" if own else "–"
    return f"| {name} | {len(tables)} | {keyed:,} | {size} | {counters:,} | {choice} | {stages} |\n"


def table() -> str:
    head = "| program | tables | entries | register bytes | counter cells | register stages | with failover |\n"
    return head + "|---|--:|--:|--:|--:|--:|--:|\n" + "".join(map(row, PROGRAMS))


def main() -> None:
    text = PAGE.read_text()
    head, _, rest = text.partition(BEGIN)
    _, _, tail = rest.partition(END)
    PAGE.write_text(head + BEGIN + table() + END + tail)


if __name__ == "__main__":
    main()

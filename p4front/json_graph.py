"""A control's statements to BMv2's graph of tables and conditionals.

The graph is built backwards: each statement is told which node follows it, so `return` and `exit` are just other
followers.
Statements that are neither tables nor branches are collected in actions of hidden tables (`tbl_...`).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Protocol

from p4front import fold, ir
from p4front import p4types as t
from p4front.diagnostics import Diagnostics, Span

Json = dict[str, Any]


@dataclass(slots=True, eq=False)
class HiddenTable:
    """A table without key whose only action runs some primitives."""

    name: str
    action: str
    body: list[ir.Stmt]
    next: str | None
    span: Span


@dataclass(slots=True, eq=False)
class AppliedTable:
    """A table with its followers: for hit and miss, or by action."""

    table: ir.Table
    base_next: str | None
    hit: str | None = None
    miss: str | None = None
    by_action: dict[str, str | None] | None = None


@dataclass(slots=True, eq=False)
class Conditional:
    name: str
    cond: ir.Expr
    true_next: str | None
    false_next: str | None
    span: Span


Node = HiddenTable | AppliedTable | Conditional


class Names(Protocol):
    """Gives names to nodes that have none in the program."""

    def hidden(self, span: Span) -> str: ...

    def conditional(self) -> str: ...


@dataclass(slots=True)
class Graph:
    """The nodes of one pipeline in program order, and the first."""

    init: str | None = None
    nodes: list[Node] = field(default_factory=list)


def build_graph(body: list[ir.Stmt], names: Names, diagnostics: Diagnostics) -> Graph:
    """The graph of a pipeline's statements."""
    builder = _Builder(names, diagnostics)
    graph = Graph()
    graph.init = builder.sequence(body, None, graph.nodes)
    return graph


class _Builder:
    def __init__(self, names: Names, diagnostics: Diagnostics) -> None:
        self.names = names
        self.diagnostics = diagnostics
        self.labels: dict[int, str | None] = {}
        self.applied: dict[ir.Table, AppliedTable] = {}

    def sequence(self, body: list[ir.Stmt], following: str | None, nodes: list[Node]) -> str | None:
        """Nodes for `body` in front of `nodes`; the name of the first, which is `following` if there is none."""
        made: list[Node] = []
        group: list[ir.Stmt] = []
        for item in reversed(body):
            if isinstance(item, ir.Loop):
                self.check_loop(item)
            if isinstance(item, ir.Prim | ir.ParserOp | ir.Loop):
                group.insert(0, item)
                continue
            following = self.flush(group, following, made)
            group = []
            if isinstance(item, ir.ExitStmt):
                made, following = [], None
            elif isinstance(item, ir.Leave):
                made, following = [], self.labels[item.label]
            elif isinstance(item, ir.Scope):
                self.labels[item.label] = following
                following = self.sequence(item.body, following, made)
            elif isinstance(item, ir.IfStmt):
                following = self.branch(item, following, made)
            elif isinstance(item, ir.ApplyTable):
                following = self.table(item, following, made)
            elif isinstance(item, ir.SwitchStmt):
                following = self.switch(item, following, made)
            else:
                raise AssertionError(type(item))
        following = self.flush(group, following, made)
        nodes[:0] = made
        return following

    def check_loop(self, loop: ir.Loop) -> None:
        """A loop becomes jumps in an action, where no table can be applied."""
        bodies = [loop.setup, loop.body]
        while bodies:
            for item in bodies.pop():
                if isinstance(item, ir.ApplyTable):
                    raise self.diagnostics.fail(
                        f"table {item.table.name} is applied in a loop: BMv2 cannot do that", item.span
                    )
                bodies += ir.branches(item)

    def flush(self, group: list[ir.Stmt], following: str | None, made: list[Node]) -> str | None:
        """A hidden table for primitives, if there are any."""
        if not group:
            return following
        action = self.names.hidden(group[0].span)
        name = f"tbl_{action}"
        made.insert(0, HiddenTable(name, action, group, following, group[0].span))
        return name

    def branch(self, item: ir.IfStmt, following: str | None, made: list[Node]) -> str | None:
        """A conditional and its branches."""
        inner: list[Node] = []
        otherwise = self.sequence(item.otherwise, following, inner)
        then_nodes: list[Node] = []
        then = self.sequence(item.then, following, then_nodes)
        if then == otherwise:
            return following
        node = Conditional(self.names.conditional(), item.cond, then, otherwise, item.span)
        made[:0] = [node, *then_nodes, *inner]
        return node.name

    def switch(self, item: ir.SwitchStmt, following: str | None, made: list[Node]) -> str | None:
        """A chain of conditionals."""
        inner: list[Node] = []
        entry = self.sequence(item.default, following, inner)
        for consts, body in reversed(item.cases):
            case_nodes: list[Node] = []
            target = self.sequence(body, following, case_nodes)
            tests = [fold.binary("==", item.selector, const, t.BOOL) for const in consts]
            cond: ir.Expr = fold.boolean(False)
            for test in tests:
                cond = fold.binary("||", cond, test, t.BOOL)
            node = Conditional(self.names.conditional(), cond, target, entry, item.span)
            inner[:0] = [node, *case_nodes]
            entry = node.name
        made[:0] = inner
        return entry

    def table(self, item: ir.ApplyTable, following: str | None, made: list[Node]) -> str | None:
        """A table and the branches of what it did."""
        table = item.table
        node = AppliedTable(table, following)
        inner: list[Node] = []
        if item.cases is not None:
            default = self.sequence(item.default, following, inner)
            by_action: dict[str, str | None] = {}
            done: dict[int, str | None] = {}
            for reference, source in zip(table.actions, self.labels_of(table), strict=True):
                branch = item.cases.get(source)
                if branch is None:
                    by_action[reference.action.name] = default
                    continue
                if id(branch) not in done:
                    case_nodes: list[Node] = []
                    done[id(branch)] = self.sequence(branch, following, case_nodes)
                    inner[:0] = case_nodes
                by_action[reference.action.name] = done[id(branch)]
            node.by_action = by_action
        elif item.hit or item.miss:
            miss = self.sequence(item.miss, following, inner)
            hit_nodes: list[Node] = []
            hit = self.sequence(item.hit, following, hit_nodes)
            inner[:0] = hit_nodes
            if hit != miss:
                node.hit, node.miss, node.base_next = hit, miss, None
                node.by_action = None
            else:
                node.base_next = hit
        known = self.applied.get(table)
        if known is not None:
            same = (known.base_next, known.hit, known.miss, known.by_action) == (
                node.base_next, node.hit, node.miss, node.by_action,
            )  # fmt: skip
            if not same:
                raise self.diagnostics.fail(
                    f"table {table.name} is applied twice with different followers: BMv2 cannot do that", item.span
                )
            return table.name
        self.applied[table] = node
        made[:0] = [node, *inner]
        return table.name

    def labels_of(self, table: ir.Table) -> list[str]:
        """The names by which a switch calls the actions of a table."""
        names = [reference.name.name for reference in table.decl.actions]
        return names + ["NoAction"] * (len(table.actions) - len(names))

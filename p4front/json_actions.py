"""Action bodies to BMv2 primitives; branches become jumps over primitives."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from p4front import fold, ir, json_expr
from p4front import p4types as t
from p4front.diagnostics import Diagnostics, SourceText, Span

Json = dict[str, Any]
END = -1  # the label of the end of the action


def source_info(source: SourceText, span: Span) -> Json | None:
    """Where a construct was written, as BMv2's logs show it."""
    if span[0] < 0:
        return None
    where = source.locate(span[0])
    return {
        "filename": where.file,
        "line": where.line,
        "column": where.column - 1,
        "source_fragment": source.fragment(span),
    }


@dataclass(slots=True)
class _Jump:
    """A jump whose target is a label until all primitives have their places."""

    op: str
    cond: ir.Expr | None
    label: int
    span: Span


@dataclass(slots=True)
class _Label:
    label: int


class ActionWriter:
    """Writes one action's body."""

    def __init__(self, source: SourceText, diagnostics: Diagnostics) -> None:
        self.source = source
        self.diagnostics = diagnostics
        self.items: list[ir.Stmt | _Jump | _Label] = []
        self.fresh = 0

    def primitives(self, body: list[ir.Stmt]) -> list[Json]:
        """The primitives of a body."""
        self.items = []
        self.fresh = -1
        self._flatten(body)
        if self.items and isinstance(self.items[-1], _Jump) and self.items[-1].label == END:
            self.items.pop()
        self.items.append(_Label(END))
        places: dict[int, int] = {}
        position = 0
        for item in self.items:
            if isinstance(item, _Label):
                places[item.label] = position
            else:
                position += 1
        return [self._write(item, places) for item in self.items if not isinstance(item, _Label)]

    def _label(self) -> int:
        self.fresh -= 1
        return self.fresh

    def _flatten(self, body: list[ir.Stmt]) -> None:
        for item in body:
            if isinstance(item, ir.Prim):
                self.items.append(item)
            elif isinstance(item, ir.ExitStmt):
                # BMv2's exit ends the pipeline behind the action, not the action.
                self.items += [item, _Jump("_jump", None, END, item.span)]
            elif isinstance(item, ir.IfStmt):
                self._branch(item)
            elif isinstance(item, ir.Scope):
                self._flatten(item.body)
                self.items.append(_Label(item.label))
            elif isinstance(item, ir.Loop):
                self._loop(item)
            elif isinstance(item, ir.Leave):
                self.items.append(_Jump("_jump", None, item.label, item.span))
            elif isinstance(item, ir.SwitchStmt):
                self._switch(item)
            else:
                raise self.diagnostics.fail("this statement cannot be in an action", item.span)

    def _branch(self, item: ir.IfStmt) -> None:
        otherwise, after = self._label(), self._label()
        self.items.append(_Jump("_jump_if_zero", item.cond, otherwise, item.span))
        self._flatten(item.then)
        if item.otherwise:
            self.items.append(_Jump("_jump", None, after, item.span))
        self.items.append(_Label(otherwise))
        self._flatten(item.otherwise)
        self.items.append(_Label(after))

    def _loop(self, item: ir.Loop) -> None:
        head = self._label()
        self.items.append(_Label(head))
        self._flatten(item.setup)
        self.items.append(_Jump("_jump_if_zero", item.cond, item.label, item.span))
        self._flatten(item.body)
        self.items.append(_Jump("_jump", None, head, item.span))
        self.items.append(_Label(item.label))

    def _switch(self, item: ir.SwitchStmt) -> None:
        after = self._label()
        for consts, body in item.cases:
            following = self._label()
            cond: ir.Expr = fold.boolean(False)
            for const in consts:
                cond = fold.binary("||", cond, fold.binary("==", item.selector, const, t.BOOL), t.BOOL)
            self.items.append(_Jump("_jump_if_zero", cond, following, item.span))
            self._flatten(body)
            self.items.append(_Jump("_jump", None, after, item.span))
            self.items.append(_Label(following))
        self._flatten(item.default)
        self.items.append(_Label(after))

    def _write(self, item: ir.Stmt | _Jump | _Label, places: dict[int, int]) -> Json:
        assert not isinstance(item, _Label)
        if isinstance(item, _Jump):
            target = {"type": "hexstr", "value": json_expr.hexstr(places[item.label])}
            params: list[Json] = [target]
            if item.cond is not None:
                number = json_expr.expression("b2d", None, json_expr.condition(item.cond))
                cond = {"type": "expression", "value": number}
                params = [cond, target]
            return self._located({"op": item.op, "parameters": params}, item.span)
        if isinstance(item, ir.ExitStmt):
            return self._located({"op": "exit", "parameters": []}, item.span)
        assert isinstance(item, ir.Prim)
        return self._located(primitive(item), item.span)

    def _located(self, json: Json, span: Span) -> Json:
        info = source_info(self.source, span)
        if info is not None:
            json["source_info"] = info
        return json


def primitive(item: ir.Prim) -> Json:
    """One primitive."""
    return {"op": item.op, "parameters": [json_expr.parameter(param) for param in item.params]}

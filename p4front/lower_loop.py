"""Loops.

BMv2's tables form no cycle, but the primitives of an action may jump back: a loop is one `ir.Loop`, whose body holds no
table, and what leaves it for elsewhere leaves through its end.
"""

from __future__ import annotations

from p4front import fold, ir
from p4front import p4types as t
from p4front import syntax as ast
from p4front.diagnostics import Span
from p4front.lower_expr import Env
from p4front.lower_stmt import StatementLowering
from p4front.values import StackPlace, StructValue, Value, stack_element


class LoopLowering(StatementLowering):
    """Adds loops to the statements."""

    def loop(self, item: ast.For | ast.ForIn) -> None:
        """A loop."""
        outer, self.env = self.env, Env(self.env)
        if isinstance(item, ast.For):
            self._while(item)
        elif isinstance(item.source, ast.Range):
            self._range(item, item.source)
        else:
            self._each(item)
        self.env = outer

    def _while(self, item: ast.For) -> None:
        self.statements(item.start)
        setup, cond = self.collect(item.cond)
        end, around = next(self.labels), next(self.labels)
        body = self._body(item.body, end, around)
        step = self._statements_of(list(item.step))
        self._close(ir.Loop(item.span, end, setup, cond, [ir.Scope(item.span, around, body), *step]))

    def _range(self, item: ast.ForIn, source: ast.Range) -> None:
        """The counter is not the variable, which the body may change; it stops before it would wrap."""
        span, of = source.span, item.variable.type
        low = self.saved(self.scalar(source.low), span)
        high = self.saved(self.scalar(source.high), span)
        counter = self.layout.scalar(of, self.layout.unique(item.variable.name), span)
        variable = self._variable(item)
        self.assign(counter, low, span)
        end, around = next(self.labels), next(self.labels)
        body = self._body(item.body, end, around)
        last = fold.binary("==", counter, high, t.BOOL)
        more = fold.binary("+", counter, fold.number(1, of), of)
        step: list[ir.Stmt] = [
            ir.IfStmt(span, last, [ir.Leave(span, end)], []),
            ir.Prim(span, "assign", [counter, more]),
        ]
        begin = self._captured(lambda: self.assign(variable, counter, span))
        cond = fold.binary("<=", low, high, t.BOOL)
        self._close(ir.Loop(item.span, end, [], cond, [*begin, ir.Scope(item.span, around, body), *step]))

    def _each(self, item: ast.ForIn) -> None:
        """Over the elements of a collection, whose number is known: the body once for each."""
        source = self.value(item.source)
        elements: list[Value]
        if isinstance(source, StackPlace):
            elements = [stack_element(source, index) for index in range(source.type.size)]
        elif isinstance(source, StructValue):
            elements = [self.copied(element, item.span) for element in source.fields.values()]
        else:
            raise self.fail("a loop over this is not supported yet", item.source.span)
        variable = self._variable(item)
        end = next(self.labels)
        whole: list[ir.Stmt] = []
        for element in elements:
            around = next(self.labels)
            whole += self._captured(lambda value=element: self.assign(variable, value, item.span))  # type: ignore[misc]
            whole.append(ir.Scope(item.span, around, self._body(item.body, end, around)))
        self.out.append(ir.Scope(item.span, end, whole))

    def _variable(self, item: ast.ForIn) -> Value:
        place = self.layout.variable(item.variable.type, item.variable.name, item.variable.name_span)
        self.env.bindings[item.variable] = place
        return place

    def _body(self, body: ast.Stmt, end: int, around: int) -> list[ir.Stmt]:
        self.loops.append((end, around))
        statements, _ = self.branch(body)
        self.loops.pop()
        return statements

    def _statements_of(self, body: list[ast.Stmt | ast.Decl]) -> list[ir.Stmt]:
        return self._captured(lambda: self.statements(body))

    def _captured(self, action: object) -> list[ir.Stmt]:
        outer, self.out = self.out, []
        action()  # type: ignore[operator]
        made, self.out = self.out, outer
        return made

    def _close(self, loop: ir.Loop) -> None:
        """Put the loop into `out`; a `Leave` for a scope around it becomes a flag, tested behind the loop."""
        flags: dict[int, ir.FieldRef] = {}
        self._redirect(loop.body, loop.label, {loop.label}, flags, loop.span)
        self._redirect(loop.setup, loop.label, {loop.label}, flags, loop.span)
        for flag in flags.values():
            self.out.append(ir.Prim(loop.span, "assign", [flag, fold.boolean(False)]))
        self.out.append(loop)
        for label, flag in flags.items():
            self.out.append(ir.IfStmt(loop.span, flag, [ir.Leave(loop.span, label)], []))

    def _redirect(
        self, body: list[ir.Stmt], end: int, inside: set[int], flags: dict[int, ir.FieldRef], span: Span
    ) -> None:
        for position, item in enumerate(body):
            if isinstance(item, ir.Leave) and item.label not in inside:
                if item.label not in flags:
                    flags[item.label] = self.layout.scalar(t.BOOL, self.layout.unique("left"), span)
                flag = flags[item.label]
                body[position : position + 1] = [
                    ir.Prim(item.span, "assign", [flag, fold.boolean(True)]), ir.Leave(item.span, end),
                ]  # fmt: skip
                return  # nothing runs behind a Leave
            own = {item.label} if isinstance(item, ir.Scope | ir.Loop) else set()
            for branch in ir.branches(item):
                self._redirect(branch, end, inside | own, flags, span)

"""Statements to IR: assignments by kind of value, calls by inlining.

A parameter stands for its argument's own storage wherever that cannot be told from P4's copy-in and copy-out; otherwise
it is a temporary that is copied, on `exit` too.
"""

from __future__ import annotations

import contextlib
from itertools import count

from p4front import fold, ir
from p4front import p4types as t
from p4front import syntax as ast
from p4front.diagnostics import Abort, Span
from p4front.lower_expr import Env, ExpressionLowering, has_effect
from p4front.values import (
    HeaderLiteral,
    HeaderPlace,
    InvalidHeader,
    SlicePlace,
    StackElement,
    StackEnd,
    StackPlace,
    StructValue,
    UnionPlace,
    Value,
    header_field,
    names_in,
    overlap,
    stack_element,
    union_members,
)

MAX_INLINE_DEPTH = 64


class StatementLowering(ExpressionLowering):
    """Needs the blocks' half for tables, controls and externs."""

    def __init__(self, *args: object) -> None:
        super().__init__(*args)  # type: ignore[arg-type]
        self.labels = count(1)
        # (label, place of the returned value) of the function, action or control being inlined
        self.returns: list[tuple[int, Value | None]] = []
        # copy-outs that an `exit` must still do, innermost last
        self.copy_outs: list[list[tuple[Value, Value, Span]]] = []
        # (label of its end, label of its body's end) of each loop around, innermost last
        self.loops: list[tuple[int, int]] = []
        self.ended = False
        self.in_action = False

    # to be implemented with the blocks

    def extern_call(self, call: ast.Call) -> Value | None:
        """A call of an extern function or method."""
        raise NotImplementedError

    def apply_table(self, call: ast.Call) -> ir.ApplyTable:
        """The application of a table."""
        raise NotImplementedError

    def apply_block(self, call: ast.Call) -> None:
        """The application of a control or parser."""
        raise NotImplementedError

    def loop(self, item: ast.For | ast.ForIn) -> None:
        """A loop."""
        raise NotImplementedError

    def instance(self, decl: ast.Instantiation) -> None:
        """An instance made among statements."""
        raise self.diagnostics.unsupported("instances among statements", decl.span)

    # statements

    def statements(self, body: list[ast.Stmt | ast.Decl]) -> None:
        """Statements up to the first after which nothing runs."""
        for item in body:
            if self.ended:
                # Nothing of this runs, but the control plane still sees an action that is called here.
                if isinstance(item, ast.CallStmt) and item.call.target.kind == "action" and not self.in_action:
                    self.action_used(item.call.target.decl)
                continue
            try:
                self.statement(item)
            except Abort:
                continue

    def statement(self, item: ast.Stmt | ast.Decl) -> None:
        """One statement."""
        if isinstance(item, ast.Assign):
            self._assign_stmt(item)
        elif isinstance(item, ast.CallStmt):
            self.call_value(item.call)
        elif isinstance(item, ast.If):
            self._if(item)
        elif isinstance(item, ast.Block):
            self.statements(item.body)
        elif isinstance(item, ast.VarDecl):
            self.variable(item)
        elif isinstance(item, ast.Switch):
            self._switch(item)
        elif isinstance(item, ast.Return):
            self._return(item)
        elif isinstance(item, ast.For | ast.ForIn):
            self.loop(item)
        elif isinstance(item, ast.Break | ast.Continue):
            self.out.append(ir.Leave(item.span, self.loops[-1][isinstance(item, ast.Continue)]))
            self.ended = True
        elif isinstance(item, ast.Exit):
            self._exit(item.span)
        elif isinstance(item, ast.Instantiation):
            self.instance(item)

    def branch(self, body: ast.Stmt | None) -> tuple[list[ir.Stmt], bool]:
        """The statements of a branch, and whether it never reaches its end."""
        outer, self.out = self.out, []
        ended, self.ended = self.ended, False
        if body is not None:
            with contextlib.suppress(Abort):
                self.statement(body)
        statements, self.out = self.out, outer
        finished, self.ended = self.ended, ended
        return statements, finished

    def variable(self, decl: ast.VarDecl) -> None:
        """A local variable: a place, and its value if it has one."""
        place = self.env.find(decl)
        if place is None:
            place = self.layout.variable(decl.type, decl.name, decl.name_span)
            self.env.bindings[decl] = place
        self.initialise(decl, place)

    def initialise(self, decl: ast.VarDecl, place: Value) -> None:
        """What a declaration does each time it is reached."""
        if decl.value is not None:
            self.assign(place, self.value(decl.value), decl.span)
        else:
            self.invalidate(place, decl.span)

    def invalidate(self, place: Value, span: Span) -> None:
        """Make the headers of an uninitialised place invalid."""
        if isinstance(place, HeaderPlace):
            self.out.append(ir.Prim(span, "remove_header", [ir.HeaderParam(place.name)]))
        elif isinstance(place, StackPlace):
            for index in range(place.type.size):
                self.invalidate(stack_element(place, index), span)
        elif isinstance(place, UnionPlace):
            for member in union_members(place):
                self.invalidate(member, span)
        elif isinstance(place, StructValue):
            for item in place.fields.values():
                self.invalidate(item, span)

    def _assign_stmt(self, item: ast.Assign) -> None:
        if isinstance(item.target, ast.Index) and t.is_array(item.target.expr.type):
            index = self.saved(self.scalar(item.target.index), item.target.index.span)
            if fold.known(index) is None:
                self._assign_element(item, item.target, index)
                return
        target = self.value(item.target)
        if item.place is not None:
            self.env.bindings[item.place] = target
        self.assign(target, self.value(item.value), item.span)

    def _assign_element(self, item: ast.Assign, target: ast.Index, index: ir.Expr) -> None:
        """`array[index] = value` with an index known only at run time: the element that it is; none beyond the last."""
        array = self.value(target.expr)
        assert isinstance(array, StructValue)
        if item.place is not None:
            self.env.bindings[item.place] = self.value(target)
        value = self.copied(self.value(item.value), item.span)
        for name, place in array.fields.items():
            outer, self.out = self.out, []
            self.assign(place, value, item.span)
            body, self.out = self.out, outer
            here = fold.binary("==", index, fold.number(int(name), index.type), t.BOOL)
            self.out.append(ir.IfStmt(item.span, here, body, []))

    def _if(self, item: ast.If) -> None:
        table_if = self._if_table(item)
        if table_if:
            return
        cond = self.scalar(item.cond)
        value = fold.known(cond)
        if value is not None:
            body = item.then if value else item.otherwise
            if body is not None:
                self.statement(body)
            return
        then, then_ended = self.branch(item.then)
        otherwise, otherwise_ended = self.branch(item.otherwise)
        self.out.append(ir.IfStmt(item.cond.span, cond, then, otherwise))
        self.ended = then_ended and otherwise_ended

    def _if_table(self, item: ast.If) -> bool:
        """`if (table.apply().hit)`, which BMv2 does without a variable."""
        cond, swap = item.cond, False
        while isinstance(cond, ast.Unary) and cond.op == "!":
            cond, swap = cond.expr, not swap
        if not (isinstance(cond, ast.Member) and isinstance(cond.expr.type, t.ApplyResultType)):
            return False
        if not isinstance(cond.expr, ast.Call) or cond.name not in ("hit", "miss"):
            return False
        applied = self.apply_table(cond.expr)
        then, then_ended = self.branch(item.then)
        otherwise, otherwise_ended = self.branch(item.otherwise)
        if swap != (cond.name == "miss"):
            then, otherwise = otherwise, then
        applied.hit, applied.miss = then, otherwise
        self.out.append(applied)
        self.ended = then_ended and otherwise_ended
        return True

    def _switch(self, item: ast.Switch) -> None:
        grouped: list[tuple[list[ast.Expr], ast.Block | None]] = []
        labels: list[ast.Expr] = []
        for case in item.cases:
            labels.append(case.label)
            if case.body is not None:
                grouped.append((labels, case.body))
                labels = []
        bodies = [(group, *self._case(body)) for group, body in grouped]
        if labels:  # labels at the end without a block do nothing
            bodies.append((labels, [], False))
        has_default = any(isinstance(label, ast.Default) for group, _, _ in bodies for label in group)
        self_ended = has_default and bool(bodies) and all(ended for _, _, ended in bodies)
        if isinstance(item.expr.type, t.ActionEnumType):
            self._action_switch(item, bodies)
        else:
            self._value_switch(item, bodies)
        self.ended = self_ended

    def _case(self, body: ast.Block | None) -> tuple[list[ir.Stmt], bool]:
        return self.branch(body)

    def _action_switch(self, item: ast.Switch, bodies: list[tuple[list[ast.Expr], list[ir.Stmt], bool]]) -> None:
        member = item.expr
        if not (isinstance(member, ast.Member) and isinstance(member.expr, ast.Call)):
            raise self.fail("a switch on actions must be on table.apply().action_run", item.span)
        applied = self.apply_table(member.expr)
        applied.cases = {}
        for labels, body, _ in bodies:
            for label in labels:
                if isinstance(label, ast.Default):
                    applied.default = body
                else:
                    assert isinstance(label, ast.Name)
                    applied.cases[label.name] = body
        self.out.append(applied)

    def _value_switch(self, item: ast.Switch, bodies: list[tuple[list[ast.Expr], list[ir.Stmt], bool]]) -> None:
        if self.in_action:
            self.diagnostics.limit("a switch on a value in an action is not possible on this target", item.span)
        selector = self.scalar(item.expr)
        result = ir.SwitchStmt(item.span, selector, [], [])
        for labels, body, _ in bodies:
            consts: list[ir.Expr] = []
            for label in labels:
                if isinstance(label, ast.Default):
                    result.default = body
                else:
                    consts.append(self.scalar(label))
            if consts:
                result.cases.append((consts, body))
        self.out.append(result)

    def _return(self, item: ast.Return) -> None:
        if not self.returns:
            self._exit(item.span)
            return
        label, place = self.returns[-1]
        if item.value is not None and place is not None:
            self.assign(place, self.value(item.value), item.span)
        self.out.append(ir.Leave(item.span, label))
        self.ended = True

    def _exit(self, span: Span) -> None:
        for pairs in reversed(self.copy_outs):
            for target, source, where in pairs:
                self.assign(target, source, where)
        self.out.append(ir.ExitStmt(span))
        self.ended = True

    # assignments

    def assign(self, target: Value, value: Value, span: Span) -> None:
        """`target = value;` for any two values of one type."""
        if isinstance(value, SlicePlace):
            value = fold.slice_bits(value.base, value.high, value.low)
        if isinstance(target, SlicePlace):
            assert isinstance(value, ir.Expr)
            self._assign_slice(target, value, span)
        elif isinstance(target, ir.Expr):
            assert isinstance(value, ir.Expr)
            self._assign_scalar(target, value, span)
        elif isinstance(target, StructValue):
            self._assign_struct(target, value, span)
        elif isinstance(target, HeaderPlace | StackElement | StackEnd):
            self._assign_header(target, value, span)
        elif isinstance(target, StackPlace) and isinstance(value, StackPlace):
            if t.is_union(target.type.element):
                for index in range(target.type.size):
                    self.assign(stack_element(target, index), stack_element(value, index), span)
            elif target.name != value.name:
                self._assign_whole("assign_header_stack", "header_stack", target.name, value.name, span)
        elif isinstance(target, UnionPlace) and isinstance(value, UnionPlace):
            if target.name != value.name:
                self._assign_whole("assign_union", "header_union", target.name, value.name, span)
        elif isinstance(target, UnionPlace) and isinstance(value, InvalidHeader):
            self.invalidate(target, span)
        else:
            raise self.fail("this assignment is not supported yet", span)

    def _assign_whole(self, op: str, kind: str, target: str, value: str, span: Span) -> None:
        params: list[ir.PrimParam] = [ir.HeaderParam(target, kind), ir.HeaderParam(value, kind)]
        self.out.append(ir.Prim(span, op, params))

    def _assign_scalar(self, target: ir.Expr, value: ir.Expr, span: Span) -> None:
        if target == value:
            return
        op = "assign_VL" if isinstance(target.type, t.VarbitType) else "assign"
        prim = ir.Prim(span, op, [target, value])
        guard = target.guard if isinstance(target, ir.ElementFieldRef) else None
        self.out.append(prim if guard is None else ir.IfStmt(span, guard, [prim], []))

    def _assign_slice(self, target: SlicePlace, value: ir.Expr, span: Span) -> None:
        """`x[h:l] = e` is `x = (x & ~mask) | ((e << l) & mask)`."""
        base = target.base
        whole = t.representation(base.type)
        assert isinstance(whole, t.BitType)
        unsigned = t.BitType(whole.width)
        mask = ((1 << (target.high - target.low + 1)) - 1) << target.low
        others = ir.Const(unsigned, ((1 << whole.width) - 1) ^ mask)
        keep = fold.binary("&", fold.cast(base, unsigned), others, unsigned)
        bits = fold.cast(value, t.BitType(target.high - target.low + 1))
        shifted = fold.binary("<<", fold.cast(bits, unsigned), ir.Const(t.BitType(8), target.low), unsigned)
        placed = fold.binary("&", shifted, ir.Const(unsigned, mask), unsigned)
        self._assign_scalar(base, fold.cast(fold.binary("|", keep, placed, unsigned), base.type), span)

    def _assign_struct(self, target: StructValue, value: Value, span: Span) -> None:
        assert isinstance(value, StructValue)
        sources = list(value.fields.values())
        targets = list(target.fields.values())
        written: set[str] = set()
        clash = False
        for place, source in zip(targets, sources, strict=True):
            clash = clash or overlap(written, names_in(source))
            written |= names_in(place)
        if clash and names_in(target) != names_in(value):
            sources = [self.copied(source, span) for source in sources]
        for place, source in zip(targets, sources, strict=True):
            self.assign(place, source, span)

    def copied(self, value: Value, span: Span) -> Value:
        """The value as it is now."""
        if isinstance(value, SlicePlace):
            value = fold.slice_bits(value.base, value.high, value.low)
        if isinstance(value, ir.Expr):
            return self.saved(value, span)
        if isinstance(value, InvalidHeader):
            return value
        if isinstance(value, StructValue):
            return StructValue(value.type, {name: self.copied(item, span) for name, item in value.fields.items()})
        place = self.layout.variable(value.type, "tmp", span)
        self.assign(place, value, span)
        return place

    def _assign_header(self, target: HeaderPlace | StackElement | StackEnd, value: Value, span: Span) -> None:
        if isinstance(target, StackElement) and target.guard is not None:
            outer, self.out = self.out, []
            self._assign_header(StackElement(target.type, target.stack, target.index), value, span)
            body, self.out = self.out, outer
            self.out.append(ir.IfStmt(span, target.guard, body, []))
            return
        into = self.header_param(target)
        if isinstance(value, InvalidHeader):
            self.out.append(ir.Prim(span, "remove_header", [into]))
        elif isinstance(value, HeaderLiteral):
            if overlap(names_in(target), names_in(value)):
                fields = {name: self.copied(item, span) for name, item in value.fields.items()}
                value = HeaderLiteral(value.type, fields)
            if isinstance(target, StackEnd):
                whole = self.layout.variable(value.type, "tmp", span)
                self.assign(whole, value, span)
                self.assign(target, whole, span)
                return
            self.out.append(ir.Prim(span, "add_header", [into]))
            for position, (name, item) in enumerate(value.fields.items()):
                field_type = target.type.fields[name].type
                place: Value
                if isinstance(target, HeaderPlace):
                    place = header_field(target, name, field_type)
                else:
                    place = ir.ElementFieldRef(field_type, target.stack.name, target.index, position, name)
                self.assign(place, item, span)
        elif isinstance(value, HeaderPlace | StackElement | StackEnd):
            if value != target:
                self.out.append(ir.Prim(span, "assign_header", [into, self.header_param(value)]))
        else:
            raise self.fail("this assignment is not supported yet", span)

    def header_param(self, header: Value) -> ir.PrimParam:
        """A header as a primitive's parameter."""
        if isinstance(header, HeaderPlace):
            return ir.HeaderParam(header.name)
        if isinstance(header, StackElement):
            return ir.ElementParam(header.stack.name, header.index)
        if isinstance(header, StackEnd):
            return ir.HeaderParam(header.stack, header.which)
        raise Abort("not a header")

    # calls

    def call_value(self, call: ast.Call) -> Value:
        """The result of a call; for a call without result, some value that nobody uses."""
        target = call.target
        if target.constant is not None:
            return fold.boolean(True)
        kind = target.kind
        result: Value | None = None
        if kind == "builtin":
            result = self._builtin(call)
        elif kind == "function":
            result = self._function(call)
        elif kind == "action":
            self.inline_action(target.decl, target.args, call.span)
        elif kind == "table":
            applied = self.apply_table(call)
            self.out.append(applied)
            result = fold.boolean(False)
        elif kind == "block":
            self.apply_block(call)
        else:
            result = self.extern_call(call)
        return fold.boolean(True) if result is None else result

    def table_result(self, call: ast.Call, member: str) -> Value:
        """`table.apply().hit` inside an expression: a variable that both branches set."""
        applied = self.apply_table(call)
        place = self.layout.scalar(t.BOOL, self.layout.unique("tmp"), call.span)
        for branch, value in ((applied.hit, member == "hit"), (applied.miss, member == "miss")):
            outer, self.out = self.out, branch
            self.assign(place, fold.boolean(value), call.span)
            self.out = outer
        self.out.append(applied)
        return place

    def _value_Member(self, expr: ast.Member) -> Value:
        if isinstance(expr.expr.type, t.ApplyResultType) and isinstance(expr.expr, ast.Call):
            if expr.name not in ("hit", "miss"):
                raise self.fail("action_run can be used only as the expression of a switch", expr.span)
            return self.table_result(expr.expr, expr.name)
        return super()._value_Member(expr)

    def _builtin(self, call: ast.Call) -> Value | None:
        target = call.target
        receiver = self.value(target.receiver)
        if target.name == "isValid":
            return self.validity(receiver, call.span)
        if target.name in ("setValid", "setInvalid"):
            op = "add_header" if target.name == "setValid" else "remove_header"
            if op == "add_header" and isinstance(receiver, HeaderPlace):
                for sibling in self.layout.siblings.get(receiver.name, []):
                    if sibling != receiver.name:
                        self.out.append(ir.Prim(call.span, "remove_header", [ir.HeaderParam(sibling)]))
            prim = ir.Prim(call.span, op, [self.header_param(receiver)])
            guard = receiver.guard if isinstance(receiver, StackElement) else None
            self.out.append(prim if guard is None else ir.IfStmt(call.span, guard, [prim], []))
            return None
        assert isinstance(receiver, StackPlace)
        amount = self.scalar(target.args[0])
        op = "push" if target.name == "push_front" else "pop"
        params: list[ir.PrimParam] = [ir.HeaderParam(receiver.name, "header_stack"), amount]
        self.out.append(ir.Prim(call.span, op, params))
        return None

    def _function(self, call: ast.Call) -> Value | None:
        decl = call.target.decl
        env = Env(None)
        outs = self.bind(call.target.params, call.target.args, env, call.span, private=False)
        place = None
        if call.target.function.result != t.VOID:
            place = self.layout.variable(call.target.function.result, f"{decl.name}_result", call.span)
        self.inline(decl.body, env, outs, place, call.span)
        return place

    def inline_action(self, decl: ast.ActionDecl, args: list[ast.Expr | None], span: Span) -> None:
        """A direct call of an action: its body in place."""
        if not self.in_action:  # p4c inlines a call by another action before it looks at what is used
            self.action_used(decl)
        env = Env(self.action_env(decl))
        params = [t.Parameter(p.name, p.direction or "in", p.type, p.default, p) for p in decl.params]
        outs = self.bind(params, args, env, span, private=True)
        outer, self.in_action = self.in_action, True
        self.inline(decl.body, env, outs, None, span)
        self.in_action = outer

    def action_used(self, decl: ast.ActionDecl, in_table: bool = False) -> None:
        """Note that an action is called, or listed by a table."""

    def action_env(self, decl: ast.ActionDecl) -> Env:
        """The scope an action was declared in."""
        return self.env

    def inline(
        self,
        body: ast.Block,
        env: Env,
        outs: list[tuple[Value, Value, Span]],
        place: Value | None,
        span: Span,
    ) -> None:
        """The body of a function, action or control, then its copy-outs."""
        if len(self.returns) > MAX_INLINE_DEPTH:
            raise self.fail("calls are nested too deeply", span)
        label = next(self.labels)
        outer_env, self.env = self.env, env
        outer, self.out = self.out, []
        ended, self.ended = self.ended, False
        self.returns.append((label, place))
        self.copy_outs.append(outs)
        self.prologue(env)
        self.statements(body.body)
        self.copy_outs.pop()
        self.returns.pop()
        inner, self.out = self.out, outer
        exits = self.ended and not ir.leaves_scope(inner, label)
        self.env, self.ended = outer_env, ended or exits
        if inner and isinstance(inner[-1], ir.Leave) and inner[-1].label == label:
            inner.pop()
        if ir.leaves_scope(inner, label):
            self.out.append(ir.Scope(span, label, inner))
        else:
            self.out += inner
        if not exits:
            for target, source, where in outs:
                self.assign(target, source, where)

    def prologue(self, env: Env) -> None:
        """What runs before an inlined body: the initialisers of a control's variables."""

    def bind(
        self, params: list[t.Parameter], args: list[ast.Expr | None], env: Env, span: Span, private: bool
    ) -> list[tuple[Value, Value, Span]]:
        """Bind parameters to arguments; the result lists the copy-outs.

        `private` says that the callee can reach storage other than its parameters, so that arguments must be copied.
        """
        values: list[Value | None] = []
        last_effect = max((i for i, arg in enumerate(args) if arg is not None and has_effect(arg)), default=-1)
        for position, arg in enumerate(args):
            value = None if arg is None else self.value(arg)
            if position < last_effect and value is not None and params[position].direction in ("", "in"):
                value = self.copied(value, span)
            values.append(value)
        names = [set() if value is None else names_in(value) for value in values]
        written = [param.direction in ("out", "inout") for param in params]
        outs: list[tuple[Value, Value, Span]] = []
        for position, (param, value) in enumerate(zip(params, values, strict=True)):
            assert param.decl is not None
            if value is None:
                env.bindings[param.decl] = self.layout.variable(param.type, param.name, span)
                continue
            shared = any(
                overlap(names[position], names[other])
                for other in range(len(params))
                if other != position and (written[position] or written[other])
            )
            # The callee may assign to an `in` parameter of a function: P4 forbids it, the checker has refused it.
            copy = (shared or private) and (written[position] or bool(names[position]))
            copy = copy or isinstance(value, SlicePlace | StackElement | StackEnd)
            copy = copy or (not written[position] and isinstance(value, ir.Op) and bool(names[position]))
            if copy:
                place = self.layout.variable(param.type, param.name, span)
                if param.direction != "out":
                    self.assign(place, value, span)
                else:
                    self.invalidate(place, span)
                if written[position]:
                    outs.append((value, place, span))
                value = place
            elif param.direction == "out":
                self.invalidate(value, span)
            env.bindings[param.decl] = value
        return outs

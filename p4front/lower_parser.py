"""Parsers to IR states, sub-parsers inlined, and the deparser's order.

A state's body may branch (an inlined function, a sub-parser, an if), a BMv2 state may not: `split_state` cuts such a
body into states.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from itertools import count

from p4front import fold, ir
from p4front import p4types as t
from p4front import syntax as ast
from p4front.diagnostics import Abort, Span
from p4front.layout import Layout
from p4front.lower_block import BlockInstance
from p4front.lower_expr import Env
from p4front.lower_externs import ExternLowering
from p4front.values import (
    HeaderPlace,
    ObjectValue,
    SlicePlace,
    StackElement,
    StackEnd,
    StackPlace,
    StructValue,
    UnionPlace,
    Value,
    header_field,
    stack_element,
    union_members,
)

MAX_STATES = 2000
# gives the last state made for a body its transitions
Finish = Callable[[ir.State], None]


@dataclass(slots=True)
class _ParserRun:
    """The parser whose states are being made: their names' prefix, and where accept leads."""

    prefix: str
    accept: str | None
    names: dict[ast.StateDecl, str]


class ParserLowering(ExternLowering):
    """Adds parsers and the deparser: the last part of the elaborator."""

    def __init__(self, *args: object) -> None:
        super().__init__(*args)
        self.states: list[ir.State] = []
        self.deparser: list[str] = []
        self._runs: list[_ParserRun] = []
        self._fresh = count()
        self._selecting = False

    # states

    def run_parser(self, block: BlockInstance, bindings: dict[ast.Decl, Value]) -> list[ir.State]:
        """The states of the parser that the architecture runs."""
        env = Env(block.env)
        env.bindings.update(bindings)
        block.node.applied = True
        self.env, self.out, self.ended = env, [], False
        self.returns, self.copy_outs = [], []
        self.current = block
        self.initialise_locals(block)
        setup, self.out = self.out, []
        self._parser_states(block, _ParserRun("", None, {}), setup)
        return self.states

    def _parser_states(self, block: BlockInstance, run: _ParserRun, setup: list[ir.Stmt]) -> None:
        decl = block.decl
        assert isinstance(decl, ast.ParserDecl) and decl.states is not None
        run.names = {state: run.prefix + state.name for state in decl.states}
        self._runs.append(run)
        by_name = {state.name: state for state in decl.states}
        self._check_end(decl, by_name["start"])
        if setup and any(by_name["start"] in _followers(state) for state in decl.states):
            # Locals are initialised once: a loop back to start must not do it again.
            run.names[by_name["start"]] = again = f"{run.prefix}start_again"
            self.states.append(ir.State(f"{run.prefix}start", setup, [], [ir.Transition(None, again)], decl.name_span))
            setup = []
        pending, seen = [by_name["start"]], {by_name["start"]}
        while pending:
            state = pending.pop()
            self._state(state, run, setup if state.name == "start" else [])
            for follower in _followers(state):
                if follower not in seen:
                    seen.add(follower)
                    pending.append(follower)
        self._runs.pop()

    def _check_end(self, decl: ast.ParserDecl, start: ast.StateDecl) -> None:
        """A parser must be able to end: at accept or reject, or at a select without a match."""
        pending, seen = [start], {start}
        while pending:
            state = pending.pop()
            followers = _followers(state)
            if len(followers) != len(_targets(state)) or not _has_default(state):
                return
            pending += [item for item in followers if item not in seen]
            seen.update(followers)
        self.diagnostics.error(f"parser {decl.name} never reaches accept or reject", decl.name_span)

    def _state(self, state: ast.StateDecl, run: _ParserRun, setup: list[ir.Stmt]) -> None:
        outer_env, self.env = self.env, Env(self.env)
        outer, self.out = self.out, list(setup)
        ended, self.ended = self.ended, False
        self.statements(state.body)
        select: list[ir.Expr] = []
        transitions: list[ir.Transition] = []
        if isinstance(state.next, ast.Select):
            with suppress(Abort):
                select, transitions = self._select(state.next, run)
        else:
            transitions = [ir.Transition(None, self._next(state.next, run, state.name_span))]
        body, self.out = self.out, outer
        self.ended, self.env = ended, outer_env

        def finish(last: ir.State) -> None:
            last.select, last.transitions = select, transitions

        self.states += split_state(run.names[state], body, state.name_span, finish, self._fresh, self.layout)
        if len(self.states) > MAX_STATES:
            raise self.fail("the parser has too many states", state.name_span)

    def _next(self, name: ast.Name | None, run: _ParserRun, span: Span) -> str | None:
        if name is None or name.name == "reject":
            text = "BMv2 has no transition to 'reject': the packet is accepted"
            self.diagnostics.warning("parser-transition", text, span)
            return None
        if name.name == "accept":
            return run.accept
        return run.names[name.decl]

    def _select(self, select: ast.Select, run: _ParserRun) -> tuple[list[ir.Expr], list[ir.Transition]]:
        keys: list[ir.Expr] = []
        widths: list[int] = []
        for expr in select.exprs:
            self._selecting = not isinstance(expr, ast.Binary | ast.Cast | ast.Slice)
            value = self.value(expr)
            self._selecting = False
            parts = self.field_or_saved(value, expr.span)
            widths.append(len(parts))
            keys += parts
        transitions: list[ir.Transition] = []
        for case in select.cases:
            target = self._next(case.state, run, case.state.span)
            transitions.append(self._transition(case, select, widths, target))
        return keys, transitions

    def _transition(
        self, case: ast.SelectCase, select: ast.Select, widths: list[int], target: str | None
    ) -> ir.Transition:
        if all(isinstance(key, ast.Default) for key in case.keys):
            return ir.Transition(None, target)
        for key in case.keys:
            if isinstance(key, ast.Name) and isinstance(key.decl, ast.ValueSetDecl):
                if len(case.keys) != 1:
                    raise self.diagnostics.unsupported("value sets among other keys", key.span)
                value = self.value(key)
                assert isinstance(value, ObjectValue) and isinstance(value.target, ir.ValueSet)
                return ir.Transition([], target, value.target)
        found: list[ir.EntryKey] = []
        for key, expr, width in zip(case.keys, select.exprs, widths, strict=True):
            if width == 1 and not isinstance(key, ast.ListExpr | ast.StructExpr):
                found.append(self.entry_key(key, expr.type))
            elif isinstance(key, ast.Default):
                found += [ir.EntryKey("any")] * width
            elif isinstance(key, ast.ListExpr):
                found += [self.entry_key(item, item.type) for item in key.items]
            else:
                raise self.diagnostics.unsupported("such keys of a select", key.span)
        return ir.Transition(found, target)

    def field_or_saved(self, value: Value, span: Span) -> list[ir.Expr]:
        """A select's expression as transition keys."""
        if isinstance(value, SlicePlace):
            value = fold.slice_bits(value.base, value.high, value.low)
        if isinstance(value, StructValue):
            return [part for item in value.fields.values() for part in self.field_or_saved(item, span)]
        if isinstance(value, ir.FieldRef | ir.StackFieldRef | ir.Lookahead):
            return [value]
        if isinstance(value, ir.Expr):
            place = self.layout.scalar(value.type, self.layout.unique("select"), span)
            self.assign(place, value, span)
            return [place]
        raise self.fail("select on this expression is not supported yet", span)

    # sub-parsers

    def apply_block(self, call: ast.Call) -> None:
        """Run a control, or a parser inside a parser, in place."""
        block = self.applied_block(call)
        if not isinstance(block.decl, ast.ParserDecl):
            super().apply_block(call)
            return
        if len(self._runs) > 30:
            raise self.fail("parsers are nested too deeply", call.span)
        number = next(self._fresh)
        prefix = f"{block.path.rpartition('.')[2]}_{number}_"
        env = Env(block.env)
        outs = self.bind(block.params, call.target.args, env, call.span, private=False)
        outer_env, self.env = self.env, env
        outer, self.out = self.out, []
        self.initialise_locals(block)
        setup, self.out = self.out, []
        block.node.applied = True
        done = f"{prefix}done"
        self._parser_states(block, _ParserRun(prefix, done, {}), setup)
        self.env, self.out = outer_env, outer
        self.out.append(ir.ParserCall(call.span, f"{prefix}start", done))
        for target, source, where in outs:
            self.assign(target, source, where)

    # the packet

    def packet_method(self, call: ast.Call, packet: str) -> Value | None:
        """Methods of packet_in and packet_out."""
        name = call.target.name
        if name == "extract":
            self._extract(call)
        elif name == "advance":
            self.out.append(ir.ParserOp(call.span, "advance", [self.argument(call, 0)]))
        elif name == "lookahead":
            return self._lookahead(call)
        elif name == "emit":
            self._emit(self.value(call.target.args[0]), call.span)
        else:
            raise self.diagnostics.unsupported(f"calls of 'packet_in.{name}'", call.span)
        return None

    def _extract(self, call: ast.Call) -> None:
        expr = call.target.args[0]
        if expr is None:  # extract<H>(_)
            skipped = next(iter(call.target.bindings.values()), t.UNKNOWN)
            if not t.is_header(skipped):
                raise self.fail("only headers can be extracted", call.span)
            into: Value = self.layout.variable(skipped, "skipped", call.span)
        else:
            into = self.value(expr)
        param: ir.HeaderParam
        behind: HeaderPlace | None = None
        if isinstance(into, StackEnd) and into.which == "next":
            param = ir.HeaderParam(into.stack, "stack")
            if into.member is not None:
                param = ir.HeaderParam(f"{into.stack}.{into.member}", "union_stack")
        elif isinstance(into, HeaderPlace):
            param = ir.HeaderParam(into.name, "regular")
        elif isinstance(into, StackElement):
            # BMv2 extracts only into headers it knows beforehand.
            element = self.layout.variable(into.type, "extracted", call.span)
            assert isinstance(element, HeaderPlace)
            param, behind = ir.HeaderParam(element.name, "regular"), element
        else:
            raise self.fail("only headers and stack.next can be extracted", call.span)
        if len(call.target.args) == 2:
            length = self.argument(call, 1)
            self.out.append(ir.ParserOp(call.span, "extract_VL", [param, length]))
        else:
            self.out.append(ir.ParserOp(call.span, "extract", [param]))
        if behind is not None:
            self.assign(into, behind, call.span)

    def _lookahead(self, call: ast.Call) -> Value:
        type_ = call.type
        if t.bit_width(type_) is not None:
            ahead = ir.Lookahead(type_, 0)
            return ahead if self._selecting else self.saved(ahead, call.span)
        place = self.layout.variable(type_, "ahead", call.span)
        self._look(place, type_, 0, call.span)
        return place

    def _look(self, place: Value, type_: t.Type, offset: int, span: Span) -> int:
        """Fill `place` with the bits from `offset` on; the offset behind them."""
        base = t.representation(type_)
        width = t.bit_width(type_)
        if isinstance(place, HeaderPlace):
            self.out.append(ir.Prim(span, "add_header", [ir.HeaderParam(place.name)]))
            for name, item in place.type.fields.items():
                offset = self._look(header_field(place, name, item.type), item.type, offset, span)
        elif isinstance(place, StackPlace) and t.is_header(place.type.element):
            for index in range(place.type.size):
                offset = self._look(stack_element(place, index), place.type.element, offset, span)
        elif isinstance(place, StructValue) and isinstance(base, t.StructType):
            for name, item in base.fields.items():
                offset = self._look(place.fields[name], item.type, offset, span)
        elif isinstance(place, StructValue) and isinstance(base, t.TupleType | t.StackType):
            items = base.items if isinstance(base, t.TupleType) else (base.element,) * base.size
            for part, item_type in zip(place.fields.values(), items, strict=True):
                offset = self._look(part, item_type, offset, span)
        elif width is not None:
            self.assign(place, ir.Lookahead(type_, offset), span)
            offset += width
        else:
            raise self.fail(f"lookahead of '{type_}': the type has no fixed width", span)
        return offset

    def _emit(self, value: Value, span: Span) -> None:
        if isinstance(value, HeaderPlace):
            self.deparser.append(value.name)
        elif isinstance(value, StackPlace):
            for index in range(value.type.size):
                self._emit(stack_element(value, index), span)
        elif isinstance(value, UnionPlace):
            self.deparser += [member.name for member in union_members(value)]
        elif isinstance(value, StructValue):
            for item in value.fields.values():
                self._emit(item, span)
        else:
            raise self.fail("only headers can be emitted", span)

    def run_deparser(self, block: BlockInstance, bindings: dict[ast.Decl, Value]) -> list[str]:
        """The headers in the order they leave."""
        for item in self.run_control(block, bindings):
            self.diagnostics.limit("BMv2 has only emit() in the deparser", item.span)
        return self.deparser


def _targets(state: ast.StateDecl) -> list[ast.Name | None]:
    return [case.state for case in state.next.cases] if isinstance(state.next, ast.Select) else [state.next]


def _followers(state: ast.StateDecl) -> list[ast.StateDecl]:
    found = [name.decl for name in _targets(state) if name is not None and isinstance(name.decl, ast.StateDecl)]
    return found[::-1]


def _has_default(state: ast.StateDecl) -> bool:
    if not isinstance(state.next, ast.Select):
        return True
    return any(all(isinstance(key, ast.Default) for key in case.keys) for case in state.next.cases)


class _Splitter:
    """Cuts one state's body at branches."""

    def __init__(self, name: str, span: Span, fresh: count[int], layout: Layout) -> None:
        self.name = name
        self.span = span
        self.fresh = fresh
        self.layout = layout
        self.done: list[ir.State] = []
        self.targets: dict[int, str] = {}

    def new_name(self) -> str:
        return f"{self.name}_{next(self.fresh)}"

    def build(self, name: str, body: list[ir.Stmt], finish: Finish) -> None:
        state = ir.State(name, [], [], [], self.span)
        self.done.append(state)
        for position, item in enumerate(body):
            rest = body[position + 1 :]
            if isinstance(item, ir.IfStmt):
                self._branch(state, item, rest, finish)
                return
            if isinstance(item, ir.ParserCall):
                state.transitions = [ir.Transition(None, item.start)]
                self.build(item.done, rest, finish)
                return
            if isinstance(item, ir.Scope):
                after = self.new_name()
                self.targets[item.label] = after
                inner = self.new_name()
                state.transitions = [ir.Transition(None, inner)]
                self.build(inner, item.body, _goto(after))
                self.build(after, rest, finish)
                return
            if isinstance(item, ir.Loop):
                self._loop(state, item, rest, finish)
                return
            if isinstance(item, ir.Leave):
                state.transitions = [ir.Transition(None, self.targets[item.label])]
                return
            state.ops.append(item)
        finish(state)

    def _loop(self, state: ir.State, item: ir.Loop, rest: list[ir.Stmt], finish: Finish) -> None:
        head, after = self.new_name(), self.new_name()
        self.targets[item.label] = after
        state.transitions = [ir.Transition(None, head)]
        test = ir.IfStmt(item.span, item.cond, item.body, [ir.Leave(item.span, item.label)])
        self.build(head, [*item.setup, test], _goto(head))
        self.build(after, rest, finish)

    def _branch(self, state: ir.State, item: ir.IfStmt, rest: list[ir.Stmt], finish: Finish) -> None:
        then, otherwise, after = self.new_name(), self.new_name(), self.new_name()
        place = self.layout.scalar(t.BOOL, self.layout.unique("cond"), item.span)
        state.ops.append(ir.Prim(item.span, "assign", [place, item.cond]))
        state.select = [place]
        state.transitions = [
            ir.Transition([ir.EntryKey("value", 1)], then),
            ir.Transition(None, otherwise),
        ]
        self.build(then, item.then, _goto(after))
        self.build(otherwise, item.otherwise, _goto(after))
        self.build(after, rest, finish)


def _goto(name: str) -> Finish:
    def finish(state: ir.State) -> None:
        state.transitions = [ir.Transition(None, name)]

    return finish


def split_state(
    name: str,
    body: list[ir.Stmt],
    span: Span,
    finish: Finish,
    fresh: count[int],
    layout: Layout,
) -> list[ir.State]:
    """The states for one body; `finish` gives the last one its transitions."""
    splitter = _Splitter(name, span, fresh, layout)
    splitter.build(name, body, finish)
    return splitter.done

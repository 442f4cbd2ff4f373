"""Expressions to IR: names become storage, aggregates fall apart, constants are computed.

Calls inside expressions put their statements into `out` before the expression that uses their result, in P4's order of
evaluation: left to right, `&&`, `||` and `?:` only as far as needed.
"""

from __future__ import annotations

from p4front import consteval, fold, ir
from p4front import p4types as t
from p4front import syntax as ast
from p4front.diagnostics import Diagnostics, Span
from p4front.layout import Layout
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
    stack_element,
    union_members,
)

_PURE_BUILTINS = ("isValid", "minSizeInBits", "minSizeInBytes", "maxSizeInBits", "maxSizeInBytes")


class Env:
    """What the declarations of one instance or call stand for."""

    __slots__ = ("bindings", "parent")

    def __init__(self, parent: Env | None = None) -> None:
        self.bindings: dict[ast.Decl, Value] = {}
        self.parent = parent

    def find(self, decl: ast.Decl) -> Value | None:
        """The value of a declaration, or None."""
        env: Env | None = self
        while env is not None:
            if decl in env.bindings:
                return env.bindings[decl]
            env = env.parent
        return None


class ExpressionLowering:
    """Needs the statements' half for calls: `call_value` and `assign`."""

    def __init__(self, layout: Layout, errors: dict[str, int], diagnostics: Diagnostics) -> None:
        self.layout = layout
        self.errors = errors
        self.diagnostics = diagnostics
        self.fail = diagnostics.fail
        self.env = Env()
        self.out: list[ir.Stmt] = []

    # to be implemented with the statements

    def call_value(self, call: ast.Call) -> Value:
        """The result of a call, its statements in `out`."""
        raise NotImplementedError

    def assign(self, target: Value, value: Value, span: Span) -> None:
        """Put the assignment into `out`."""
        raise NotImplementedError

    # entry points

    def scalar(self, expr: ast.Expr) -> ir.Expr:
        """The value of an expression that is no aggregate."""
        value = self.value(expr)
        if isinstance(value, SlicePlace):
            return fold.slice_bits(value.base, value.high, value.low)
        if not isinstance(value, ir.Expr):
            raise self.fail(f"an expression of type '{expr.type}' cannot be used here", expr.span)
        return value

    def value(self, expr: ast.Expr) -> Value:
        """The value of an expression, which is a place where the expression is an lvalue."""
        method = getattr(self, "_value_" + type(expr).__name__)
        try:
            result: Value = method(expr)
        except consteval.ConstError as error:
            raise self.fail(str(error), expr.span) from None
        return result

    def temporary(self, type_: t.Type, name: str, span: Span) -> Value:
        """A fresh place."""
        return self.layout.variable(type_, name, span)

    def saved(self, value: ir.Expr, span: Span) -> ir.Expr:
        """`value` as it is now: a constant, or a temporary that later statements cannot change."""
        if fold.known(value) is not None or isinstance(value, ir.RuntimeData):
            return value
        place = self.layout.scalar(value.type, self.layout.unique("tmp"), span)
        self.assign(place, value, span)
        return place

    def collect(self, expr: ast.Expr) -> tuple[list[ir.Stmt], ir.Expr]:
        """An expression's value and the statements it needs, apart from `out`."""
        outer, self.out = self.out, []
        value = self.scalar(expr)
        statements, self.out = self.out, outer
        return statements, value

    # operands

    def _value_IntLit(self, expr: ast.IntLit) -> Value:
        return fold.number(expr.value, expr.type)

    def _value_BoolLit(self, expr: ast.BoolLit) -> Value:
        return fold.boolean(expr.value)

    def _value_StringLit(self, expr: ast.StringLit) -> Value:
        return ir.StrConst(t.STRING, expr.value)

    def _value_Name(self, expr: ast.Name) -> Value:
        decl = expr.decl
        found = self.env.find(decl) if isinstance(decl, ast.Decl) else None
        if found is not None:
            return found
        if isinstance(decl, ast.ConstDecl):
            return self.value(decl.value)
        raise self.fail(f"{expr.name} cannot be used here", expr.span)

    def _value_TypeName(self, expr: ast.TypeName) -> Value:
        raise self.fail("a type cannot be used here", expr.span)

    def _value_Member(self, expr: ast.Member) -> Value:
        of = expr.expr.type
        if isinstance(of, t.MetaType):
            return self._symbol(expr, of.type)
        base = self.value(expr.expr)
        if isinstance(base, StructValue):
            return base.fields[expr.name]
        if isinstance(base, HeaderPlace):
            return header_field(base, expr.name, expr.type)
        if isinstance(base, HeaderLiteral):
            return base.fields[expr.name]
        if isinstance(base, StackPlace):
            if expr.name == "size":
                return fold.number(base.type.size, t.BitType(32))
            if expr.name == "lastIndex":
                return ir.LastIndex(t.BitType(32), base.name)
            assert isinstance(base.type.element, t.StructType)
            return StackEnd(base.type.element, base.name, expr.name)
        if isinstance(base, UnionPlace):
            assert isinstance(expr.type, t.StructType)
            return HeaderPlace(expr.type, f"{base.name}.{expr.name}")
        if isinstance(base, StackEnd) and t.is_union(base.type):
            assert isinstance(expr.type, t.StructType)
            return StackEnd(expr.type, base.stack, base.which, expr.name)
        if isinstance(base, StackEnd) and base.which == "last":
            return ir.StackFieldRef(expr.type, base.stack, expr.name, base.member)
        if isinstance(base, StackElement):
            offset = list(base.type.fields).index(expr.name)
            return ir.ElementFieldRef(expr.type, base.stack.name, base.index, offset, expr.name, base.guard)
        if isinstance(base, StackEnd):
            raise self.diagnostics.limit(f"BMv2 cannot read a field of {base.stack}.{base.which}", expr.span)
        raise self.fail(f"{expr.name!r} of this expression is not supported yet", expr.span)

    def _symbol(self, expr: ast.Member, of: t.Type) -> ir.Expr:
        if isinstance(of, t.EnumType):
            value = of.members[expr.name]
            return ir.Symbol(of, expr.name, value) if of.base is None else ir.Const(of, value)
        return ir.Const(t.ERROR, self.errors[expr.name])

    def _value_Index(self, expr: ast.Index) -> Value:
        base = self.value(expr.expr)
        index = self.scalar(expr.index)
        value = fold.known(index)
        if isinstance(base, StructValue):
            if value is None:
                return self._chosen(base, index, expr)
            if str(value) not in base.fields:
                raise self.fail(f"index {value} is outside '{base.type}'", expr.index.span)
            return base.fields[str(value)]
        if isinstance(base, StackPlace):
            element = base.type.element
            assert isinstance(element, t.StructType)
            if isinstance(value, int):
                if not 0 <= value < base.type.size:
                    raise self.fail(f"index {value} is outside '{base.type}'", expr.index.span)
                return stack_element(base, value)
            if t.is_union(element):
                what = "indexes of union stacks that are known only at run time are not supported yet"
                raise self.diagnostics.limit(what, expr.span)
            return self._element(element, base, index, expr.index.span)
        raise self.fail("this cannot be indexed", expr.span)

    def _element(self, type_: t.StructType, stack: StackPlace, index: ir.Expr, span: Span) -> StackElement:
        """`stack[index]`: beyond the end, P4 leaves open what is read, and nothing is written."""
        if not isinstance(index, ir.FieldRef | ir.RuntimeData):
            index = self.saved(index, span)
        of, size = t.representation(index.type), stack.type.size
        if not isinstance(of, t.BitType):
            return StackElement(type_, stack, index)
        guards: list[ir.Expr] = []
        if of.signed:
            guards.append(fold.binary(">=", index, fold.number(0, of), t.BOOL))
        if 1 << (of.width - of.signed) > size:
            guards.append(fold.binary("<", index, fold.number(size, of), t.BOOL))
        if not guards:
            return StackElement(type_, stack, index)
        guard = self.saved(fold.conjunction(guards), span)
        inside = self.saved(fold.choice(guard, index, fold.number(0, of)), span)
        return StackElement(type_, stack, inside, guard)

    def _chosen(self, array: StructValue, index: ir.Expr, expr: ast.Index) -> ir.Expr:
        """`array[index]` as a choice among its elements; beyond the last it is the last."""
        items = list(array.fields.values())
        if not all(isinstance(item, ir.Expr) for item in items):
            what = "indexes of arrays of structures that are known only at run time"
            raise self.diagnostics.unsupported(what, expr.span)
        chosen = items[-1]
        for position in range(len(items) - 2, -1, -1):
            here = fold.binary("==", index, fold.number(position, index.type), t.BOOL)
            chosen = fold.choice(here, items[position], chosen)  # type: ignore[arg-type]
        return chosen  # type: ignore[return-value]

    def _value_Slice(self, expr: ast.Slice) -> Value:
        high, low = fold.known(self.scalar(expr.high)), fold.known(self.scalar(expr.low))
        assert isinstance(high, int) and isinstance(low, int)
        base = self.value(expr.expr)
        if isinstance(base, SlicePlace):
            return SlicePlace(expr.type, base.base, high + base.low, low + base.low)
        assert isinstance(base, ir.Expr)
        if isinstance(base, ir.FieldRef | ir.ElementFieldRef | ir.StackFieldRef):
            return SlicePlace(expr.type, base, high, low)
        return fold.slice_bits(base, high, low)

    # aggregates

    def _value_ListExpr(self, expr: ast.ListExpr) -> Value:
        items = self._in_order(expr.items)
        type_ = expr.type
        if isinstance(type_, t.StackType) and not t.is_array(type_):
            return self._stack_of(type_, items, expr.span)
        if isinstance(type_, t.StructType):
            fields = dict(zip(type_.fields, items, strict=True))
            return HeaderLiteral(type_, fields) if t.is_header(type_) else StructValue(type_, fields)
        return StructValue(type_, {str(position): item for position, item in enumerate(items)})

    def _stack_of(self, type_: t.StackType, items: list[Value], span: Span) -> Value:
        """`{a, b}` for a stack: its first elements; the others are invalid."""
        place = self.layout.variable(type_, "tmp", span)
        assert isinstance(place, StackPlace) and isinstance(type_.element, t.StructType)
        for index in range(type_.size):
            value = items[index] if index < len(items) else InvalidHeader(type_.element)
            self.assign(stack_element(place, index), value, span)
        return place

    def _value_StructExpr(self, expr: ast.StructExpr) -> Value:
        values = self._in_order([value for _, value in expr.fields])
        given = {name: value for (name, _), value in zip(expr.fields, values, strict=True)}
        if not isinstance(expr.type, t.StructType):
            return StructValue(expr.type, given)
        fields = {name: given[name] for name in expr.type.fields}
        return HeaderLiteral(expr.type, fields) if t.is_header(expr.type) else StructValue(expr.type, fields)

    def _in_order(self, exprs: list[ast.Expr]) -> list[Value]:
        """Values of expressions of which a later one may change what an earlier one read."""
        values: list[Value] = []
        last_effect = max((i for i, expr in enumerate(exprs) if has_effect(expr)), default=-1)
        for position, expr in enumerate(exprs):
            value = self.value(expr)
            if position < last_effect and isinstance(value, ir.Expr):
                value = self.saved(value, expr.span)
            values.append(value)
        return values

    def _value_Invalid(self, expr: ast.Invalid) -> Value:
        return InvalidHeader(expr.type)

    # operators

    def _value_Unary(self, expr: ast.Unary) -> Value:
        return fold.unary(expr.op, self.scalar(expr.expr), expr.type)

    def _value_Binary(self, expr: ast.Binary) -> Value:
        op = expr.op
        if op in ("&&", "||"):
            return self._short_circuit(expr)
        left = self.value(expr.left)
        if isinstance(left, SlicePlace):
            left = self.scalar(expr.left)
        if has_effect(expr.right) and isinstance(left, ir.Expr):
            left = self.saved(left, expr.left.span)
        right = self.value(expr.right)
        if isinstance(right, SlicePlace):
            right = fold.slice_bits(right.base, right.high, right.low)
        if op in ("==", "!="):
            same = self.equal(left, right, expr.span)
            return same if op == "==" else negated(same)
        assert isinstance(left, ir.Expr) and isinstance(right, ir.Expr)
        if op == "++":
            return fold.concat(left, right, expr.type)
        return fold.binary(op, left, right, expr.type)

    def _short_circuit(self, expr: ast.Binary) -> Value:
        left = self.scalar(expr.left)
        value = fold.known(left)
        absorbing = expr.op == "||"
        if value is absorbing:
            return left
        statements, right = self.collect(expr.right)
        if not statements:
            return fold.binary(expr.op, left, right, t.BOOL)
        if value is not None:
            self.out += statements
            return right
        place = self.layout.scalar(t.BOOL, self.layout.unique("tmp"), expr.span)
        self.assign(place, left, expr.span)
        outer, self.out = self.out, statements
        self.assign(place, right, expr.span)
        branch, self.out = self.out, outer
        cond = negated(place) if absorbing else place
        self.out.append(ir.IfStmt(expr.span, cond, branch, []))
        return place

    def _value_Ternary(self, expr: ast.Ternary) -> Value:
        cond = self.scalar(expr.cond)
        value = fold.known(cond)
        if value is not None:
            return self.value(expr.then if value else expr.otherwise)
        branches: list[list[ir.Stmt]] = []
        values: list[Value] = []
        for part in (expr.then, expr.otherwise):
            outer, self.out = self.out, []
            values.append(self.value(part))
            branches.append(self.out)
            self.out = outer
        then, otherwise = (self._plain(item) for item in values)
        if isinstance(then, ir.Expr) and isinstance(otherwise, ir.Expr) and not any(branches):
            return fold.choice(cond, then, otherwise)
        place = self.layout.variable(expr.type, "tmp", expr.span)
        for branch, item in zip(branches, (then, otherwise), strict=True):
            outer, self.out = self.out, branch
            self.assign(place, item, expr.span)
            self.out = outer
        self.out.append(ir.IfStmt(expr.span, cond, branches[0], branches[1]))
        return place

    def _plain(self, value: Value) -> Value:
        if isinstance(value, SlicePlace):
            return fold.slice_bits(value.base, value.high, value.low)
        return value

    def _value_Cast(self, expr: ast.Cast) -> Value:
        value = self._plain(self.value(expr.expr))
        if isinstance(value, ir.Expr):
            return fold.cast(value, expr.type)
        if isinstance(value, StructValue) and isinstance(expr.type, t.StructType):
            fields = dict(zip(expr.type.fields, value.fields.values(), strict=True))
            return HeaderLiteral(expr.type, fields) if t.is_header(expr.type) else StructValue(expr.type, fields)
        return value

    def _value_Call(self, call: ast.Call) -> Value:
        if call.target.constant is not None:
            value = call.target.constant
            return fold.boolean(value) if isinstance(value, bool) else fold.number(int(value), call.type)
        return self.call_value(call)

    # comparisons

    def equal(self, left: Value, right: Value, span: Span) -> ir.Expr:
        """Whether two values of one type are equal; headers are equal if both are invalid."""
        if isinstance(left, ir.Expr) and isinstance(right, ir.Expr):
            return fold.binary("==", left, right, t.BOOL)
        if isinstance(left, StructValue) and isinstance(right, StructValue):
            pairs = zip(left.fields.values(), right.fields.values(), strict=True)
            return fold.conjunction([self.equal(a, b, span) for a, b in pairs])
        if isinstance(left, HeaderLiteral | InvalidHeader):
            left, right = right, left
        if isinstance(left, HeaderPlace):
            return self._equal_header(left, right, span)
        if isinstance(left, StackPlace) and isinstance(right, StackPlace):
            elements = [(stack_element(left, i), stack_element(right, i)) for i in range(left.type.size)]
            return fold.conjunction([self.equal(a, b, span) for a, b in elements])
        if isinstance(left, UnionPlace) and isinstance(right, UnionPlace):
            members = zip(union_members(left), union_members(right), strict=True)
            return fold.conjunction([self.equal(a, b, span) for a, b in members])
        if isinstance(left, UnionPlace) and isinstance(right, InvalidHeader):
            return negated(self.validity(left, span))
        raise self.fail("this comparison is not supported yet", span)

    def _equal_header(self, left: HeaderPlace, right: Value, span: Span) -> ir.Expr:
        valid = self.validity(left, span)
        if isinstance(right, InvalidHeader):
            return negated(valid)
        if isinstance(right, HeaderLiteral):
            fields = [
                self.equal(header_field(left, name, item.type), right.fields[name], span)
                for name, item in left.type.fields.items()
            ]
            return fold.conjunction([valid, *fields])
        if not isinstance(right, HeaderPlace):
            raise self.fail("this comparison is not supported yet", span)
        other = self.validity(right, span)
        fields = [
            self.equal(header_field(left, name, item.type), header_field(right, name, item.type), span)
            for name, item in left.type.fields.items()
        ]
        both_invalid = fold.binary("&&", negated(valid), negated(other), t.BOOL)
        return fold.binary("||", both_invalid, fold.conjunction([valid, other, *fields]), t.BOOL)

    def validity(self, header: Value, span: Span) -> ir.Expr:
        """`header.isValid()`."""
        if isinstance(header, HeaderPlace):
            return ir.FieldRef(t.BOOL, header.name, "$valid$")
        if isinstance(header, StackElement):
            return ir.Op(t.BOOL, "valid", (ir.ElementFieldRef(t.BOOL, header.stack.name, header.index, 0, ""),))
        if isinstance(header, UnionPlace):
            valid: ir.Expr = fold.boolean(False)
            for member in union_members(header):
                valid = fold.binary("||", valid, self.validity(member, span), t.BOOL)
            return valid
        if isinstance(header, HeaderLiteral):
            return fold.boolean(True)
        if isinstance(header, InvalidHeader):
            return fold.boolean(False)
        raise self.fail("the validity of this expression is not supported yet", span)


def negated(expr: ir.Expr) -> ir.Expr:
    """`!expr`."""
    return fold.unary("!", expr, t.BOOL)


def has_effect(expr: ast.Expr) -> bool:
    """Whether evaluating the expression can change anything."""
    if isinstance(expr, ast.Call):
        target = expr.target
        if target.constant is not None:
            return False
        return not (target.kind == "builtin" and target.name in _PURE_BUILTINS)
    if isinstance(expr, ast.Member | ast.Unary | ast.Cast):
        return has_effect(expr.expr)
    if isinstance(expr, ast.Slice):
        return has_effect(expr.expr)
    if isinstance(expr, ast.Index):
        return has_effect(expr.expr) or has_effect(expr.index)
    if isinstance(expr, ast.Binary):
        return has_effect(expr.left) or has_effect(expr.right)
    if isinstance(expr, ast.Ternary):
        return any(has_effect(part) for part in (expr.cond, expr.then, expr.otherwise))
    if isinstance(expr, ast.ListExpr):
        return any(has_effect(item) for item in expr.items)
    if isinstance(expr, ast.StructExpr):
        return any(has_effect(item) for _, item in expr.fields)
    return False



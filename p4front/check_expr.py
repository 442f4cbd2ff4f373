"""Types of expressions, and the conversions P4 makes by itself.

`expr` gives the checked expression, which may be another node than the one it got: implicit conversions become `Cast`
nodes without a type node, literals take the width of their context.
"""

from __future__ import annotations

from p4front import consteval
from p4front import p4types as t
from p4front import syntax as ast
from p4front.check_base import FunctionSet, literal
from p4front.check_types import TypeChecker
from p4front.diagnostics import Span
from p4front.p4types import Type

_ARITHMETIC = ("+", "-", "*", "/", "%", "|+|", "|-|", "&", "|", "^")
_ORDER = ("<", "<=", ">", ">=")
_STACK_MEMBERS = ("next", "last")
_RUNNING = (*_STACK_MEMBERS, "lastIndex")


class ExpressionChecker(TypeChecker):
    """Checks everything but calls."""

    def expr(self, expr: ast.Expr) -> ast.Expr:
        """Check an expression whose context asks for no type."""
        if expr.type is not None:
            return expr
        method = getattr(self, "_expr_" + type(expr).__name__)
        result: ast.Expr = method(expr)
        return result

    def typed(self, expr: ast.Expr, to: Type, what: str = "") -> ast.Expr:
        """Check an expression and convert it to the type its context asks for."""
        return self.convert(self.expr(expr), to, what)

    def value(self, expr: ast.Expr) -> ast.Expr:
        """Check an expression that must be a value, not the name of a type or function."""
        checked = self.expr(expr)
        if isinstance(checked.type, t.MetaType | t.FunctionType) or checked.type == t.VOID:
            raise self.fail("a value is expected here", checked.span)
        return checked

    # conversions

    def convert(self, expr: ast.Expr, to: Type, what: str = "") -> ast.Expr:
        """`expr` as a value of type `to`, or an error."""
        have = expr.type
        if have == to or t.UNKNOWN in (have, to) or t.DONT_CARE in (have, to):
            return expr
        if isinstance(to, t.SetType):
            return self.convert(expr, to.element, what)
        converted = self._implicit(expr, have, to)
        if isinstance(have, t.BitType) and to == t.INT and (known := self.constant(expr)) is not None:
            return literal(known, t.INT, expr.span)
        if converted is None:
            where = f" in {what}" if what else ""
            raise self.fail(f"cannot convert '{have}' to '{to}' implicitly{where}", expr.span)
        return converted

    def _implicit(self, expr: ast.Expr, have: Type, to: Type) -> ast.Expr | None:
        if isinstance(expr, ast.Ternary) and isinstance(have, t.ListType | t.RecordType | t.TupleType) and have != to:
            then = self._implicit(expr.then, have, to)
            otherwise = self._implicit(expr.otherwise, expr.otherwise.type, to)
            if then is None or otherwise is None:
                return None
            expr.then, expr.otherwise, expr.type = then, otherwise, to
            return expr
        if have == t.INT and isinstance(to, t.BitType):
            return self._sized(expr, to)
        if have == t.INT and isinstance(to, t.NewType) and isinstance(t.representation(to), t.BitType):
            return self._sized(expr, to)
        if isinstance(have, t.EnumType) and have.base is not None:
            base = have.base
            if base == to or (isinstance(base, t.NewType) and base.base == to):
                return self._cast(expr, to)
        if isinstance(have, t.ListType | t.TupleType) and isinstance(to, t.StructType | t.TupleType | t.ListType):
            return self._from_list(expr, have, to)
        if isinstance(have, t.RecordType) and isinstance(to, t.StructType):
            return self._from_record(expr, to)
        if isinstance(have, t.ListType) and isinstance(to, t.StackType) and isinstance(expr, ast.ListExpr):
            if len(expr.items) > to.size or (t.is_array(to) and len(expr.items) != to.size):
                return None
            expr.items = [self.convert(item, to.element) for item in expr.items]
            expr.type = to
            return expr
        if have == t.INVALID and (t.is_header(to) or t.is_union(to)):
            expr.type = to
            return expr
        if have == t.DOTS:
            return self.default_value(to, expr.span)
        return None

    def default_value(self, of: Type, span: Span) -> ast.Expr:
        """What `...` stands for: 0, false, the first of an enum, an invalid header, structures of these."""
        base = t.representation(of)
        result: ast.Expr
        if isinstance(base, t.BitType) or base == t.BOOL:
            return literal(0, of, span)
        if base == t.ERROR or isinstance(base, t.EnumType):
            name = next(iter(base.members), "") if isinstance(base, t.EnumType) else "NoError"
            type_name = ast.TypeName(span, ast.DontCareType(span))
            type_name.type = t.MetaType(of)
            result = ast.Member(span, type_name, name)
        elif t.is_header(of) or t.is_union(of):
            result = ast.Invalid(span)
        elif isinstance(of, t.StructType):
            result = ast.StructExpr(span, [(name, self.default_value(f.type, span)) for name, f in of.fields.items()])
        elif isinstance(of, t.TupleType):
            result = ast.ListExpr(span, [self.default_value(item, span) for item in of.items])
        elif isinstance(of, t.StackType):
            count = of.size if t.is_array(of) else 0
            result = ast.ListExpr(span, [self.default_value(of.element, span) for _ in range(count)])
        else:
            raise self.fail(f"'{of}' has no default value", span)
        result.type = of
        return result

    def _sized(self, expr: ast.Expr, to: Type) -> ast.Expr:
        """An `int` expression with the width of its context."""
        value = self.constant(expr)
        if value is None:
            # e.g. `?:` between two int constants, whose choice is made at run time
            if isinstance(expr, ast.Ternary):
                expr.then, expr.otherwise = self.convert(expr.then, to), self.convert(expr.otherwise, to)
                expr.type = to
                return expr
            return self._cast(expr, to)
        assert isinstance(value, int)
        if not consteval.fits(value, to):
            base = t.representation(to)
            negative = isinstance(base, t.BitType) and not base.signed and value < 0
            problem = "negative value for" if negative else "does not fit"
            kind = "mismatch" if negative else "overflow"
            self.diagnostics.warning(kind, f"{value}: {problem} '{to}', truncated", expr.span)
        base_written = expr.base if isinstance(expr, ast.IntLit) else 10
        return literal(consteval.wrap(value, to), to, expr.span, base_written)

    def _cast(self, expr: ast.Expr, to: Type) -> ast.Expr:
        result = ast.Cast(expr.span, None, expr)
        result.type = to
        return result

    def _from_list(self, expr: ast.Expr, have: Type, to: Type) -> ast.Expr | None:
        targets = (
            [item.type for item in to.fields.values()] if isinstance(to, t.StructType) else list(to.items)  # type: ignore[attr-defined]
        )
        if isinstance(to, t.StructType) and to.kind == "header_union":
            return None
        if isinstance(expr, ast.ListExpr):
            if expr.items and isinstance(expr.items[-1], ast.Dots) and len(expr.items) <= len(targets) + 1:
                dots = expr.items.pop()
                expr.items += [self.default_value(target, dots.span) for target in targets[len(expr.items) :]]
            if len(expr.items) != len(targets):
                raise self.fail(f"{len(targets)} values expected for '{to}', {len(expr.items)} given", expr.span)
            expr.items = [self.convert(item, target) for item, target in zip(expr.items, targets, strict=True)]
            expr.type = to
            return expr
        if isinstance(have, t.TupleType | t.ListType) and list(have.items) == targets:
            return self._cast(expr, to)
        return None

    def _from_record(self, expr: ast.Expr, to: t.StructType) -> ast.Expr | None:
        if not isinstance(expr, ast.StructExpr):
            return None
        given = dict(expr.fields)
        dots = given.pop("...", None)
        if dots is not None:
            expr.fields = [(name, value) for name, value in expr.fields if name != "..."]
        for name, value in expr.fields:
            if name not in to.fields:
                raise self.fail(f"'{to}' has no field {name!r}", value.span)
        if len(given) != len(expr.fields):
            raise self.fail("a field is given twice", expr.span)
        missing = [name for name in to.fields if name not in given]
        if dots is not None:
            expr.fields += [(name, self.default_value(to.fields[name].type, dots.span)) for name in missing]
        elif missing:
            raise self.fail(f"no value for field {missing[0]!r} of '{to}'", expr.span)
        expr.fields = [(name, self.convert(value, to.fields[name].type)) for name, value in expr.fields]
        expr.type = to
        return expr

    # operands

    def _expr_IntLit(self, expr: ast.IntLit) -> ast.Expr:
        if expr.width is None:
            expr.type = t.INT
            return expr
        if expr.width == 0 or expr.width > 1 << 16:
            raise self.fail(f"{expr.width} is not a valid width", expr.span)
        expr.type = t.BitType(expr.width, expr.signed)
        if not consteval.fits(expr.value, expr.type):
            self.diagnostics.warning("overflow", f"{expr.value} does not fit '{expr.type}', truncated", expr.span)
            expr.value = consteval.wrap(expr.value, expr.type)
        return expr

    def _expr_BoolLit(self, expr: ast.BoolLit) -> ast.Expr:
        expr.type = t.BOOL
        return expr

    def _expr_StringLit(self, expr: ast.StringLit) -> ast.Expr:
        expr.type = t.STRING
        return expr

    def _expr_Default(self, expr: ast.Default) -> ast.Expr:
        expr.type = t.DONT_CARE
        return expr

    def _expr_Invalid(self, expr: ast.Invalid) -> ast.Expr:
        expr.type = t.INVALID
        return expr

    def _expr_Dots(self, expr: ast.Dots) -> ast.Expr:
        expr.type = t.DOTS
        return expr

    def _expr_Name(self, expr: ast.Name) -> ast.Expr:
        found = self.lookup(expr.name, expr.absolute)
        if found is None and expr.name in self.match_kinds:
            expr.type = t.MATCH_KIND
            return expr
        if found is None:
            raise self.fail(f"{expr.name}: declaration not found{self.suggestion(expr.name)}", expr.span)
        expr.decl = found
        if isinstance(found, t.TypeVar):
            expr.type = t.MetaType(found)
        elif isinstance(found, FunctionSet):
            expr.type = found.functions[0].type or t.UNKNOWN
        elif isinstance(found, ast.ActionDecl):
            expr.type = t.FunctionType(found.name, "action", (), [], t.VOID, found)
        elif isinstance(found, ast.TableDecl):
            expr.type = t.TableType(found)
        elif isinstance(
            found,
            ast.StructDecl | ast.EnumDecl | ast.TypedefDecl | ast.ExternDecl
            | ast.ParserDecl | ast.ControlDecl | ast.PackageDecl,
        ):  # fmt: skip
            expr.type = t.MetaType(found.type if found.type is not None else t.UNKNOWN)
        else:
            expr.type = getattr(found, "type", None) or t.UNKNOWN
        if isinstance(found, ast.VarDecl):
            self.first_uses.setdefault(found, expr.span)
        return expr

    def _expr_TypeName(self, expr: ast.TypeName) -> ast.Expr:
        expr.type = t.MetaType(self.resolve(expr.node))
        return expr

    def _expr_Member(self, expr: ast.Member) -> ast.Expr:
        expr.expr = self.expr(expr.expr)
        have = expr.expr.type
        name = expr.name
        if have == t.UNKNOWN:
            expr.type = have
        elif isinstance(have, t.MetaType):
            expr.type = self._type_member(expr, have.type)
        elif isinstance(have, t.StructType) and name in have.fields:
            expr.type = have.fields[name].type
        elif isinstance(have, t.StackType) and (name == "size" or (name in _RUNNING and not t.is_array(have))):
            if name != "size" and self.context != "parser":
                raise self.fail(f"{name!r} of a header stack exists only in a parser", expr.span)
            expr.type = have.element if name in _STACK_MEMBERS else t.BitType(32)
        elif isinstance(have, t.ApplyResultType) and name in ("hit", "miss", "action_run"):
            expr.type = t.ActionEnumType(have.table) if name == "action_run" else t.BOOL
        elif isinstance(have, t.StructType):
            import difflib

            close = difflib.get_close_matches(name, have.fields, 1)
            hint = f"; did you mean {close[0]!r}?" if close else ""
            raise self.fail(f"'{have}' has no field {name!r}{hint}", expr.span)
        else:
            raise self.fail(f"'{have}' has no member {name!r}", expr.span)
        return expr

    def _type_member(self, expr: ast.Member, of: Type) -> Type:
        if isinstance(of, t.EnumType):
            if expr.name not in of.members:
                raise self.fail(f"enum '{of}' has no member {expr.name!r}", expr.span)
            return of
        if of == t.ERROR:
            if expr.name not in self.errors:
                raise self.fail(f"there is no error {expr.name!r}", expr.span)
            return of
        raise self.fail(f"'{of}' has no member {expr.name!r}", expr.span)

    def _expr_Index(self, expr: ast.Index) -> ast.Expr:
        expr.expr = self.value(expr.expr)
        expr.index = self.value(expr.index)
        have, index = expr.expr.type, expr.index.type
        if not (index == t.INT or isinstance(t.representation(index), t.BitType) or index == t.UNKNOWN):
            raise self.fail(f"an index must be a number, not '{index}'", expr.index.span)
        value = self.constant(expr.index)
        if isinstance(have, t.TupleType | t.ListType):
            if not isinstance(value, int) or not 0 <= value < len(have.items):
                raise self.fail(f"the index of a tuple must be a constant below {len(have.items)}", expr.index.span)
            expr.type = have.items[value]
        elif isinstance(have, t.StackType):
            if isinstance(value, int) and not 0 <= value < have.size:
                raise self.fail(f"index {value} is outside '{have}'", expr.index.span)
            expr.type = have.element
        else:
            raise self.fail(f"'{have}' cannot be indexed", expr.span)
        return expr

    def _expr_Slice(self, expr: ast.Slice) -> ast.Expr:
        expr.expr = self.value(expr.expr)
        base = t.representation(expr.expr.type)
        expr.high, expr.low = self.value(expr.high), self.value(expr.low)
        high = self.int_constant(expr.high, "a slice's bound")
        low = self.int_constant(expr.low, "a slice's bound")
        if base == t.INT:
            width = high + 1
        elif isinstance(base, t.BitType):
            width = base.width
        else:
            raise self.fail(f"'{expr.expr.type}' cannot be sliced", expr.span)
        if not 0 <= low <= high < width:
            raise self.fail(f"[{high}:{low}] is not a slice of '{expr.expr.type}'", expr.span)
        expr.type = t.BitType(high - low + 1)
        return expr

    def _expr_ListExpr(self, expr: ast.ListExpr) -> ast.Expr:
        expr.items = [self.value(item) for item in expr.items]
        expr.type = t.ListType(tuple(item.type for item in expr.items))
        return expr

    def _expr_StructExpr(self, expr: ast.StructExpr) -> ast.Expr:
        expr.fields = [(name, self.value(value)) for name, value in expr.fields]
        expr.type = t.RecordType(tuple((name, value.type) for name, value in expr.fields))
        return expr

    def _expr_Mask(self, expr: ast.Mask) -> ast.Expr:
        expr.value, expr.mask = self.value(expr.value), self.value(expr.mask)
        expr.value, expr.mask = self._unify(expr.value, expr.mask, "&&&", expr.span)
        expr.type = t.SetType(expr.value.type)
        return expr

    def _expr_Range(self, expr: ast.Range) -> ast.Expr:
        expr.low, expr.high = self.value(expr.low), self.value(expr.high)
        expr.low, expr.high = self._unify(expr.low, expr.high, "..", expr.span)
        expr.type = t.SetType(expr.low.type)
        return expr

    # operators

    def _expr_Unary(self, expr: ast.Unary) -> ast.Expr:
        operand = self.value(expr.expr)
        if expr.op == "!":
            expr.expr = self.convert(operand, t.BOOL, "the operand of '!'")
            expr.type = t.BOOL
            return expr
        operand = self._enum_to_base(operand)
        expr.expr = operand
        expr.type = operand.type
        if not isinstance(operand.type, t.BitType) and operand.type not in (t.INT, t.UNKNOWN):
            raise self.fail(f"'{expr.op}' is not defined for '{operand.type}'", expr.span)
        if operand.type == t.INT and expr.op == "~":
            raise self.fail("'~' needs an operand with a width", expr.span)
        return expr

    def _expr_Binary(self, expr: ast.Binary) -> ast.Expr:
        left, right = self.value(expr.left), self.value(expr.right)
        op = expr.op
        if op in ("&&", "||"):
            expr.left = self.convert(left, t.BOOL, f"the left of '{op}'")
            expr.right = self.convert(right, t.BOOL, f"the right of '{op}'")
            expr.type = t.BOOL
        elif op in ("==", "!="):
            expr.left, expr.right = self._unify(left, right, op, expr.span)
            self._comparable(expr.left.type, op, expr.span)
            expr.type = t.BOOL
        elif op in _ORDER:
            expr.left, expr.right = self._unify(self._enum_to_base(left), self._enum_to_base(right), op, expr.span)
            self._numeric(expr.left.type, op, expr.span)
            expr.type = t.BOOL
        elif op in ("<<", ">>"):
            self._shift(expr, self._enum_to_base(left), self._enum_to_base(right))
        elif op == "++":
            self._concat(expr, self._enum_to_base(left), self._enum_to_base(right))
        else:
            expr.left, expr.right = self._unify(self._enum_to_base(left), self._enum_to_base(right), op, expr.span)
            self._numeric(expr.left.type, op, expr.span)
            if op in ("/", "%") and isinstance(expr.left.type, t.BitType) and expr.left.type.signed:
                raise self.fail(f"'{op}' is not defined for '{expr.left.type}'", expr.span)
            if op in ("|+|", "|-|") and expr.left.type == t.INT:
                raise self.fail(f"'{op}' needs operands with a width", expr.span)
            expr.type = expr.left.type
        return expr

    def _shift(self, expr: ast.Binary, left: ast.Expr, right: ast.Expr) -> None:
        amount = self.constant(right)
        if isinstance(right.type, t.BitType) and right.type.signed and amount is None:
            raise self.fail("a shift amount must be unsigned", right.span)
        self._numeric(left.type, expr.op, expr.span)
        self._numeric(right.type, expr.op, expr.span)
        if amount is None and left.type == t.INT and self.constant(left) is not None:
            raise self.fail(f"the left of '{expr.op}' needs a width, since the amount is not a constant", left.span)
        if isinstance(amount, int) and amount < 0:
            raise self.fail("a shift amount must not be negative", right.span)
        expr.left, expr.right, expr.type = left, right, left.type

    def _concat(self, expr: ast.Binary, left: ast.Expr, right: ast.Expr) -> None:
        expr.left, expr.right = left, right
        if left.type == t.STRING and right.type == t.STRING:
            expr.type = t.STRING
        elif isinstance(left.type, t.BitType) and isinstance(right.type, t.BitType):
            expr.type = t.BitType(left.type.width + right.type.width, left.type.signed)
        elif t.UNKNOWN in (left.type, right.type):
            expr.type = t.UNKNOWN
        else:
            raise self.fail(f"'++' needs operands with widths, not '{left.type}' and '{right.type}'", expr.span)

    def _expr_Ternary(self, expr: ast.Ternary) -> ast.Expr:
        expr.cond = self.convert(self.value(expr.cond), t.BOOL, "the condition")
        expr.then, expr.otherwise = self._unify(self.value(expr.then), self.value(expr.otherwise), "?:", expr.span)
        expr.type = expr.then.type
        if expr.type == t.INT and self.constant(expr) is None and self.constant(expr.cond) is None:
            # Allowed only where the context gives a width: `convert` then sizes both branches.
            pass
        return expr

    def _expr_Cast(self, expr: ast.Cast) -> ast.Expr:
        assert expr.node is not None
        to = self.resolve(expr.node)
        operand = self.value(expr.expr)
        expr.expr = operand
        expr.type = to
        if not self._castable(operand, to):
            implicit = self._implicit(operand, operand.type, to)
            if implicit is None:
                raise self.fail(f"cannot cast '{operand.type}' to '{to}'", expr.span)
            expr.expr = implicit
        return expr

    def _castable(self, operand: ast.Expr, to: Type) -> bool:
        have = operand.type
        if have == to or t.UNKNOWN in (have, to):
            return True
        if isinstance(have, t.NewType):
            return to == have.base or self._same_bits(have, to)
        if isinstance(to, t.NewType):
            return have == to.base or self._same_bits(to, have) or have == t.INT
        if isinstance(have, t.EnumType):
            return have.base is not None and isinstance(t.representation(to), t.BitType)
        if isinstance(to, t.EnumType):
            return to.base is not None and (have == t.INT or isinstance(have, t.BitType))
        if have == t.INT:
            return isinstance(to, t.BitType) or to == t.BOOL
        if isinstance(have, t.BitType):
            if to == t.BOOL:
                return have == t.BitType(1)
            if to == t.INT:
                return True
            return isinstance(to, t.BitType) and (have.signed == to.signed or have.width == to.width)
        return have == t.BOOL and to == t.BitType(1)

    def _same_bits(self, opaque: Type, other: Type) -> bool:
        return t.representation(opaque) == t.representation(other)

    def _enum_to_base(self, expr: ast.Expr) -> ast.Expr:
        if isinstance(expr.type, t.EnumType) and expr.type.base is not None:
            return self._cast(expr, t.representation(expr.type))
        return expr

    def _unify(self, left: ast.Expr, right: ast.Expr, op: str, span: Span) -> tuple[ast.Expr, ast.Expr]:
        """Both operands with one type."""
        have, want = left.type, right.type
        if have == want or t.UNKNOWN in (have, want):
            return left, right
        if isinstance(have, t.EnumType) or isinstance(want, t.EnumType):
            left, right = self._enum_to_base(left), self._enum_to_base(right)
            have, want = left.type, right.type
        if have == want:
            return left, right
        if converted := self._implicit(left, have, want):
            return converted, right
        if converted := self._implicit(right, want, have):
            return left, converted
        if isinstance(left, ast.ListExpr) and isinstance(right, ast.ListExpr) and len(left.items) == len(right.items):
            pairs = [self._unify(a, b, op, span) for a, b in zip(left.items, right.items, strict=True)]
            left.items, right.items = [a for a, _ in pairs], [b for _, b in pairs]
            left.type = right.type = t.TupleType(tuple(item.type for item in left.items))
            return left, right
        raise self.fail(f"'{op}' cannot join '{have}' and '{want}'", span)

    def _numeric(self, type_: Type, op: str, span: Span) -> None:
        if not isinstance(type_, t.BitType) and type_ not in (t.INT, t.UNKNOWN):
            raise self.fail(f"'{op}' is not defined for '{type_}'", span)

    def _comparable(self, type_: Type, op: str, span: Span) -> None:
        bad = isinstance(type_, t.ExternRef | t.BlockType | t.FunctionType | t.TableType | t.RecordType)
        if bad or type_ in (t.VOID, t.MATCH_KIND, t.STRING):
            raise self.fail(f"'{op}' is not defined for '{type_}'", span)

    # places

    def lvalue(self, expr: ast.Expr) -> ast.Expr:
        """Check an expression that is assigned to."""
        checked = self.value(expr)
        self._assignable(checked)
        return checked

    def _assignable(self, expr: ast.Expr) -> None:
        base = expr
        while isinstance(base, ast.Member | ast.Index | ast.Slice):
            of_stack = isinstance(base, ast.Member) and isinstance(base.expr.type, t.StackType)
            if of_stack and base.name not in _STACK_MEMBERS:  # type: ignore[union-attr]
                break
            base = base.expr
        if isinstance(base, ast.Name):
            decl = base.decl
            if isinstance(decl, ast.VarDecl):
                self.written.add(decl)
                return
            if isinstance(decl, ast.Param) and decl.direction in ("out", "inout"):
                return
            if isinstance(decl, ast.Param):
                kind = "an 'in' parameter" if decl.direction == "in" else "a parameter without direction"
                raise self.fail(f"{decl.name} is {kind} and cannot be changed", expr.span)
            if isinstance(decl, ast.ConstDecl):
                raise self.fail(f"{decl.name} is a constant", expr.span)
            if base.type == t.UNKNOWN:
                return
        raise self.fail("this cannot be assigned to", expr.span)

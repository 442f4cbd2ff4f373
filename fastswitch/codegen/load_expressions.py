"""Loads expressions and primitives: JSON type-value objects to typed nodes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

from . import model
from .errors import no_such
from .load_headers import HeaderLoader, Names
from .model import Action, ActionParam, Array, Bool, Data, Expr, HeaderExpr, HeaderType, Primitive, Program, Source
from .primitives import ACCUMULATE, ARITHMETIC, SIGNATURES, SYNONYMS
from .reader import Reader

MAX_DEPTH = 240  # of nested expressions, wrappers included
MAX_PARAM_BITS = 4096
COMPARISONS = ("==", "!=", "<", "<=", ">", ">=")
_T = TypeVar("_T", bound=Expr)


def load_source(node: Reader) -> Source | None:
    """`source_info` is optional everywhere and only decorates comments, so a malformed one is left out."""
    info = node.value.get("source_info") if isinstance(node.value, dict) else None
    if not isinstance(info, dict):
        return None
    file, line, fragment = info.get("filename"), info.get("line"), info.get("source_fragment")
    if not isinstance(file, str) or not isinstance(line, int) or not isinstance(fragment, str):
        return None
    return Source(file[-60:], line % 10_000_000, fragment[:100])


def _is_varbit(node: Data) -> bool:
    return isinstance(node, model.FieldUse) and node.field.varbit


class ExpressionLoader:
    """Loads expressions in one context: `params` are the action's, `in_parser` allows lookahead, and in the length
    of a header of P4-14 a local is a field of that header, `within`."""

    def __init__(self, program: Program, headers: HeaderLoader, arrays: dict[str, Names]) -> None:
        self.program = program
        self.headers = headers
        self.arrays = arrays  # register, counter, meter, calculation
        self.params: Sequence[ActionParam] = ()
        self.in_parser = False
        self.within: HeaderExpr | None = None

    # -- typed entry points

    def data(self, node: Reader) -> Data:
        return self._typed(node, Data, "a number")

    def bool(self, node: Reader) -> Bool:
        return self._typed(node, Bool, "a condition")

    def header(self, node: Reader) -> HeaderExpr:
        return self._typed(node, HeaderExpr, "a header")

    def lvalue(self, node: Reader) -> Data:
        found = self.data(node)
        if isinstance(found, model.FieldUse):
            if found.field.varbit:
                raise node.error("a variable-length field cannot be assigned a number")
        elif not isinstance(found, model.ValidBit | model.RegisterCell):
            raise node.error("not something that can be assigned to")
        return found

    def field(self, node: Reader) -> model.FieldUse | model.ValidBit:
        """A [header, field] pair."""
        header_name, field_name = node.elements(2)
        header = self.headers.headers.find(header_name)
        return self._field_of(model.HeaderRef(header), header.type, field_name)

    def plain_field(self, node: Reader) -> model.FieldUse:
        found = self.field(node)
        if not isinstance(found, model.FieldUse) or found.field.varbit:
            raise node.error("expected a field of fixed width")
        return found

    # -- the recursive part

    def _typed(self, node: Reader, kind: type[_T], wanted: str, depth: int = 0) -> _T:
        found = self._load(node, depth)
        if not isinstance(found, kind):
            raise node.error(f"expected {wanted}")
        return found

    def _load(self, node: Reader, depth: int) -> Expr:
        if depth > MAX_DEPTH:
            raise node.error(f"an expression nested deeper than {MAX_DEPTH}")
        if not isinstance(node.value, dict) or not node.value:
            raise node.error("expected an expression, found nothing")
        kind = node["type"].text() if "type" in node.value else "expression"
        if kind == "expression":
            # The value of an expression is an operation, or one more wrapper around a type-value object.
            inner = node["value"] if "value" in node.value else node
            if isinstance(inner.value, dict) and "op" in inner.value:
                return self._operation(inner, depth + 1)
            if inner is node:
                raise node.error("an expression without 'op'")
            return self._load(inner, depth + 1)
        loader = self._LEAVES.get(kind)
        if loader is None:
            raise node.error(f"unknown operand type {kind[:40]!r}")
        return loader(self, node["value"], depth + 1)

    def _field_of(self, header: HeaderExpr, kind: HeaderType, name: Reader) -> model.FieldUse | model.ValidBit:
        if name.text() == "$valid$":
            return model.ValidBit(header)
        if name.text() not in kind.by_name:
            raise no_such(name.where, f"field of {kind.name[:80]!r}", name.text(), kind.by_name)
        return model.FieldUse(header, kind, kind.by_name[name.text()])

    def _stack_field(self, node: Reader, depth: int) -> Expr:
        stack_name, field_name = node.elements(2)
        stack: model.Stack = self.headers.stacks.find(stack_name)
        return self._field_of(model.StackLast(stack), stack.type, field_name)

    def _union_stack_field(self, node: Reader, depth: int) -> Expr:
        stack_name, member_name, field_name = node.elements(3)
        stack: model.UnionStack = self.headers.union_stacks.find(stack_name)
        member = self.union_member(stack, member_name)
        header = self.program.headers[self.program.unions[stack.unions[0]].headers[member]]
        return self._field_of(
            model.UnionMember(model.UnionStackLast(stack), member, header.type), header.type, field_name
        )

    def union_member(self, stack: model.UnionStack, name: Reader) -> int:
        members = self.program.unions[stack.unions[0]].members
        if name.text() not in members:
            raise no_such(name.where, "union member", name.text(), members)
        return members.index(name.text())

    def _param(self, node: Reader, depth: int) -> Expr:
        if self.within is not None:
            kind = self.header_type(self.within)
            use = model.FieldUse(self.within, kind, node.integer(0, len(kind.fields) - 1))
            if kind.varbit is None or use.index >= kind.varbit:
                raise node.error("the length of a header depends on a field that comes after it")
            return use
        index = node.integer(0, max(len(self.params) - 1, 0))
        if not self.params:
            raise node.error("an action parameter where there is no action with parameters")
        return model.Param(index, self.params[index].width)

    def _register(self, node: Reader, depth: int) -> Expr:
        name, index = node.elements(2)
        register: Array = self.arrays["register"].find(name)
        return model.RegisterCell(register, self._typed(index, Data, "a number", depth))

    def lookahead(self, node: Reader, depth: int = 0) -> Expr:
        if not self.in_parser:
            raise node.error("lookahead outside a parser")
        offset, width = node.elements(2)
        return model.Lookahead(offset.integer(0, 16384), width.integer(1, MAX_PARAM_BITS))

    _LEAVES: dict[str, Callable[[ExpressionLoader, Reader, int], Expr]] = {
        "field": lambda self, node, depth: self.field(node),
        "hexstr": lambda self, node, depth: model.Const(node.hexstr()),
        "bool": lambda self, node, depth: model.BoolConst(node.boolean()),
        "header": lambda self, node, depth: model.HeaderRef(self.headers.headers.find(node)),
        "header_stack": lambda self, node, depth: model.StackRef(self.headers.stacks.find(node)),
        "header_union": lambda self, node, depth: model.UnionRef(self.headers.unions.find(node)),
        "header_union_stack": lambda self, node, depth: model.UnionStackRef(self.headers.union_stacks.find(node)),
        "stack_field": _stack_field,
        "union_stack_field": _union_stack_field,
        "lookahead": lookahead,
        "local": _param,
        "runtime_data": _param,
        "register": _register,
    }

    def _operation(self, node: Reader, depth: int) -> Expr:
        op = node["op"].text()
        if op in ("valid", "valid_union"):
            return self._validity(node["right"], depth)
        if op == "not":
            return model.Not(self._typed(node["right"], Bool, "a condition", depth))
        if op in ("and", "or"):
            left, right = (self._typed(node[side], Bool, "a condition", depth) for side in ("left", "right"))
            return model.Logic(op, left, right)
        if op in ("==", "!="):
            return self._equality(node, op, depth)
        if op == "?":
            return self._choice(node, depth)
        if op == "d2b":
            return model.DataToBool(self._typed(node["right"], Data, "a number", depth))
        if op == "b2d":
            return model.BoolToData(self._typed(node["right"], Bool, "a condition", depth))
        if op == "~":
            return model.Complement(self._typed(node["right"], Data, "a number", depth))
        if op in ("two_comp_mod", "usat_cast", "sat_cast"):
            operand = self._typed(node["left"], Data, "a number", depth)
            width = self._typed(node["right"], Data, "a number", depth)
            if not isinstance(width, model.Const) or not 1 <= width.value <= MAX_PARAM_BITS:
                raise node["right"].error(f"the width of {op} must be a constant up to {MAX_PARAM_BITS}")
            if op == "two_comp_mod":
                return model.TwoComplement(operand, width.value)
            return model.Saturate(operand, width.value, signed=op == "sat_cast")
        if op in ("last_stack_index", "size_stack"):
            # p4c puts the operand of a unary operation on the right; older files on the left.
            stack = self._load(node["left"] if node.has("left") else node["right"], depth)
            if not isinstance(stack, model.StackRef | model.UnionStackRef):
                raise node.error(f"{op} takes a stack")
            return model.StackCount(stack.stack, op == "last_stack_index")
        if op in ("dereference_header_stack", "dereference_union_stack", "dereference_stack"):
            return self._element(node, depth)
        if op == "access_field":
            return self._access_field(node, depth)
        if op == "access_union_header":
            return self._access_member(node, depth)
        if op in COMPARISONS or op in ("+", "-", "*", "/", "%", "<<", ">>", "&", "|", "^"):
            zero = op in ("+", "-") and not node.has("left")  # the unary ones
            one = model.Const(0) if zero else self._typed(node["left"], Data, "a number", depth)
            other = self._typed(node["right"], Data, "a number", depth)
            return model.Compare(op, one, other) if op in COMPARISONS else model.Arith(op, one, other)
        raise node["op"].error(f"unknown operation {op[:40]!r}")

    def _validity(self, node: Reader, depth: int) -> Bool:
        operand = self._load(node, depth)
        if isinstance(operand, HeaderExpr):
            return model.IsValid(operand)
        if isinstance(operand, model.UnionExpr):
            return model.IsValidUnion(operand)
        raise node.error("expected a header or a header union")

    def _equality(self, node: Reader, op: str, depth: int) -> Bool:
        left, right = self._load(node["left"], depth), self._load(node["right"], depth)
        if isinstance(left, Data) and isinstance(right, Data):
            if _is_varbit(left) and _is_varbit(right):
                assert isinstance(left, model.FieldUse) and isinstance(right, model.FieldUse)
                equal = model.SameVarbits(left, right)
                return equal if op == "==" else model.Not(equal)
            return model.Compare(op, left, right)
        if isinstance(left, Bool) and isinstance(right, Bool):
            return model.Logic(op, left, right)
        if isinstance(left, HeaderExpr) and isinstance(right, HeaderExpr):
            if self.header_type(left) is not self.header_type(right):
                raise node.error("headers of different types are compared")
            if any(isinstance(each, model.HeaderRef) and each.header.metadata for each in (left, right)):
                raise node.error("metadata is compared as a whole")
        elif not (isinstance(left, model.UnionExpr) and isinstance(right, model.UnionExpr)):
            raise node.error(f"operands of {op!r} are of different kinds")
        elif self.union_type(left) != self.union_type(right):
            raise node.error("unions of different types are compared")
        same = model.SameHeaders(left, right)
        return same if op == "==" else model.Not(same)

    def _choice(self, node: Reader, depth: int) -> Expr:
        condition = self._typed(node["cond"], Bool, "a condition", depth)
        left, right = self._load(node["left"], depth), self._load(node["right"], depth)
        if isinstance(left, Data) and isinstance(right, Data):
            return model.Choose(condition, left, right)
        if isinstance(left, Bool) and isinstance(right, Bool):
            return model.ChooseBool(condition, left, right)
        raise node.error("'?' chooses between two numbers or two conditions only")

    def _element(self, node: Reader, depth: int) -> Expr:
        stack = self._load(node["left"], depth)
        index = self._typed(node["right"], Data, "a number", depth)
        if isinstance(stack, model.StackRef):
            headers = stack.stack.headers
            if isinstance(index, model.Const) and 0 <= index.value < len(headers):
                return model.HeaderRef(self.program.headers[headers[index.value]])
            stack.stack.dynamic = True
            return model.StackAt(stack.stack, index)
        if isinstance(stack, model.UnionStackRef):
            unions = stack.stack.unions
            if isinstance(index, model.Const) and 0 <= index.value < len(unions):
                return model.UnionRef(self.program.unions[unions[index.value]])
            stack.stack.dynamic = True
            return model.UnionStackAt(stack.stack, index)
        raise node["left"].error("expected a stack")

    def _access_field(self, node: Reader, depth: int) -> Expr:
        header = self._typed(node["left"], HeaderExpr, "a header", depth)
        kind = self.header_type(header)
        # The hidden field comes after the declared ones.
        index = node["right"].integer(0, len(kind.fields))
        return model.ValidBit(header) if index == len(kind.fields) else model.FieldUse(header, kind, index)

    def _access_member(self, node: Reader, depth: int) -> Expr:
        union = self._typed(node["left"], model.UnionExpr, "a header union", depth)
        members = self._union_headers(union)
        member = node["right"].integer(0, len(members) - 1)
        if isinstance(union, model.UnionRef):
            return model.HeaderRef(members[member])
        return model.UnionMember(union, member, members[member].type)

    def header_type(self, header: HeaderExpr) -> HeaderType:
        match header:
            case model.HeaderRef(found):
                return found.type
            case model.StackAt(stack) | model.StackLast(stack):
                return stack.type
            case model.UnionMember():
                return header.type
        raise AssertionError(header)

    def _union_headers(self, union: model.UnionExpr) -> list[model.Header]:
        match union:
            case model.UnionRef(found):
                one = found
            case model.UnionStackAt(stack) | model.UnionStackLast(stack):
                one = self.program.unions[stack.unions[0]]
            case _:
                raise AssertionError(union)
        return [self.program.headers[index] for index in one.headers]

    def union_type(self, union: model.UnionExpr) -> str:
        match union:
            case model.UnionRef(found):
                return found.type
            case model.UnionStackAt(stack) | model.UnionStackLast(stack):
                return stack.type
        raise AssertionError(union)

    # -- primitives

    def primitive(self, node: Reader) -> Primitive:
        op = node["op"].text()
        source = load_source(node)
        args = node["parameters"].elements() if node.has("parameters") else []
        if op in ARITHMETIC:
            self._expect(node, op, args, 3)
            value = model.Arith(ARITHMETIC[op], self.data(args[1]), self.data(args[2]))
            return Primitive("assign", (self.lvalue(args[0]), value), source)
        if op in ACCUMULATE:
            self._expect(node, op, args, 2)
            target = self.lvalue(args[0])
            return Primitive("assign", (target, model.Arith(ACCUMULATE[op], target, self.data(args[1]))), source)
        op = SYNONYMS.get(op, op)
        if op == "mark_to_drop" and not args:
            op = "drop"
        if op not in SIGNATURES:
            raise no_such(node["op"].where, "primitive", op, SIGNATURES)
        self._expect(node, op, args, len(SIGNATURES[op]))
        loaded = tuple(self._argument(each, kind) for each, kind in zip(args, SIGNATURES[op], strict=True))
        if op in ("assign_header", "assign_union", "assign_header_stack", "assign_union_stack", "assign_VL"):
            self._same_shape(node, op, loaded)
        if op == "mark_to_drop" and "egress_spec" not in self.header_type(loaded[0]).by_name:  # type: ignore[arg-type]
            raise node.error("mark_to_drop takes a header that has a field 'egress_spec'")
        return Primitive(op, loaded, source)

    @staticmethod
    def _expect(node: Reader, op: str, args: list[Reader], count: int) -> None:
        if len(args) != count:
            raise node.error(f"primitive {op!r} takes {count} arguments, found {len(args)}")

    def _same_shape(self, node: Reader, op: str, args: tuple[object, ...]) -> None:
        def shape(arg: object) -> object:
            match arg:
                case HeaderExpr():
                    return self.header_type(arg)
                case model.UnionExpr():
                    return self.union_type(arg)
                case model.StackRef(stack):
                    return stack.type, len(stack.headers)
                case model.UnionStackRef(stack):
                    return stack.type, len(stack.unions)
                case model.FieldUse():
                    return arg.field.width
            raise AssertionError(arg)

        left, right = (shape(arg) for arg in args)
        fits = left == right
        if op == "assign_VL":  # a longer source is checked when it runs
            fits = True
        if isinstance(left, HeaderType) and isinstance(right, HeaderType):
            fits = [each.width for each in left.fields] == [each.width for each in right.fields]
        if not fits:
            raise node.error(f"{op} between things of different types")

    def _argument(self, node: Reader, kind: str) -> object:
        match kind:
            case "data":
                found = self._load(node, 0)
                return model.BoolToData(found) if isinstance(found, Bool) else self._as(node, found, Data, "a number")
            case "bool":
                found = self._load(node, 0)
                return model.DataToBool(found) if isinstance(found, Data) else self._as(node, found, Bool, "a test")
            case "lvalue":
                return self.lvalue(node)
            case "varbit":
                found = self.data(node)
                if not isinstance(found, model.FieldUse) or not found.field.varbit:
                    raise node.error("expected a variable-length field")
                return found
            case "header":
                return self.header(node)
            case "union":
                return self._typed(node, model.UnionExpr, "a header union")
            case "header_stack":
                return self._typed(node, model.StackRef, "a header stack")
            case "union_stack":
                return self._typed(node, model.UnionStackRef, "a header union stack")
            case "stack":
                stack = self._load(node, 0)
                if not isinstance(stack, model.StackRef | model.UnionStackRef):
                    raise node.error("expected a stack")
                return stack
            case "string":
                return node["value"].message()
            case "vector":
                if node["value"].value == {}:  # how p4c writes an empty list
                    return ()
                return tuple(self._argument(each, "data") for each in node["value"].elements())
            case "offset":
                return node["value"].unsigned(31)
        expected = {
            "calculation": "calculation",
            "counter": "counter_array",
            "meter": "meter_array",
            "register": "register_array",
        }
        if node["type"].text() != expected[kind]:
            raise node.error(f"expected a {expected[kind]}, found {node['type'].text()[:40]!r}")
        found_array = self.arrays[kind].find(node["value"])
        if isinstance(found_array, Array) and found_array.direct:
            raise node.error(f"direct {kind} {found_array.name!r} cannot be indexed")
        return found_array

    @staticmethod
    def _as(node: Reader, found: Expr, kind: type[_T], wanted: str) -> _T:
        if not isinstance(found, kind):
            raise node.error(f"expected {wanted}")
        return found

    def action_body(self, action: Action, node: Reader) -> None:
        self.params = action.params
        body = [self.primitive(each) for each in node["primitives"].elements()]
        self.params = ()
        for index, each in enumerate(body):
            if each.op in ("_jump", "_jump_if_zero"):
                offset = each.args[-1]
                assert isinstance(offset, int)
                if offset > len(body):
                    raise node["primitives"].error(f"{each.op} at {index} to {offset}, beyond the end")
        action.body = tuple(body)

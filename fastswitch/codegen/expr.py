"""Expressions to C, with BMv2's meaning: integers of unlimited precision that only masks and fields cut.

Two facts make native integers do.  Every node has an interval of values it can take, computed exactly, so a node that
must be right as a number (comparison, division, right shift, index) is evaluated in a type that holds its interval.
And +, -, *, &, |, ^, ~ and << of a number modulo 2^n need their operands modulo 2^n only, so a node under a mask or a
store is evaluated in the narrowest type of at least that many bits, wrapping freely.

Types ("kinds") are uint64_t, plait_u128 and struct plait_wide, always unsigned two's complement.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from . import model
from .errors import ProgramError
from .layout import Layout
from .model import Bool, Data, FieldUse, HeaderExpr

WIDE = 1 << 20  # the kind of struct plait_wide
MAX_BITS = 8192  # of an interval that is still tracked
MAX_TEXT = 2_000_000  # characters of one expression
MAX_PATH_TEXT = 1_000  # characters of an lvalue that is repeated

Interval = tuple[int, int] | None  # None: too large to track

_RING = {"+": "+", "-": "-", "*": "*", "|": "|", "^": "^", "&": "&"}
_WIDE_NAME = {"+": "add", "-": "sub", "*": "mul", "|": "or", "^": "xor", "&": "and"}


@dataclass(frozen=True, slots=True)
class Value:
    """C text of a kind.  `full`: equal to the number modulo 2^bits of the kind; else only as far as demanded."""

    text: str
    kind: int
    full: bool


def kind_for(bits: int) -> int:
    return 64 if bits <= 64 else 128 if bits <= 128 else WIDE


def bits_of(interval: tuple[int, int]) -> int:
    """Bits of two's complement that tell all numbers of the interval apart (unsigned if none is negative)."""
    low, high = interval
    if low >= 0:
        return max(high.bit_length(), 1)
    return max(high.bit_length(), (~low).bit_length()) + 1


class Expressions:
    """Emits expressions over `phv`, `packet`, `instance`, and (in actions) `params`, (in parsers) `at`."""

    def __init__(self, layout: Layout) -> None:
        self.layout = layout
        layout.index_text = self.count
        self.compared: set[int] = set()  # header types, by index
        self.wide_bits = 0  # widest number that needs struct plait_wide; 0: none does
        self.params_offsets: list[int] = []
        self._intervals: dict[Data, Interval] = {}

    # -- intervals

    def interval(self, node: Data) -> Interval:
        if node not in self._intervals:
            found = self._interval(node)
            if found is not None and max(abs(found[0]), abs(found[1])).bit_length() > MAX_BITS:
                found = None
            self._intervals[node] = found
        return self._intervals[node]

    def _interval(self, node: Data) -> Interval:
        match node:
            case model.Const(value):
                return value, value
            case FieldUse():
                width = node.field.width
                return _signed_range(width) if node.field.signed else (0, (1 << width) - 1)
            case model.Param(_, width) | model.Lookahead(_, width):
                return 0, (1 << width) - 1
            case model.Local():
                return 0, (1 << 64) - 1
            case model.RegisterCell(register):
                return 0, (1 << register.width) - 1
            case model.ValidBit() | model.BoolToData():
                return 0, 1
            case model.StackCount(stack, last_index):
                # BMv2 computes size - 1 in an unsigned word: the empty stack's last index is huge.
                return (0, (1 << 64) - 1) if last_index else (0, self.layout.size(stack))
            case model.Complement(operand):
                inner = self.interval(operand)
                return None if inner is None else (~inner[1], ~inner[0])
            case model.TwoComplement(operand, width):
                inner, cut = self.interval(operand), _signed_range(width)
                return inner if inner is not None and cut[0] <= inner[0] and inner[1] <= cut[1] else cut
            case model.Saturate(operand, width, signed):
                inner, cut = self.interval(operand), _signed_range(width) if signed else (0, (1 << width) - 1)
                if inner is None:
                    return cut
                return min(max(inner[0], cut[0]), cut[1]), max(min(inner[1], cut[1]), cut[0])
            case model.Choose(_, left, right):
                one, other = self.interval(left), self.interval(right)
                return None if one is None or other is None else (min(one[0], other[0]), max(one[1], other[1]))
            case model.Arith(op, left, right):
                return _arith_interval(op, self.interval(left), self.interval(right))
        raise AssertionError(node)

    # -- numbers

    def data(self, node: Data, demand: int) -> Value:
        """C text that equals `node` modulo 2^demand (and exactly, where fewer bits hold every value it can take)."""
        interval = self.interval(node)
        effective = demand if interval is None else min(demand, bits_of(interval))
        value = self._emit(node, effective)
        if value.kind == WIDE:
            self.wide_bits = max(self.wide_bits, effective + 1)
        if effective < demand and not value.full:
            assert interval is not None
            value = self._fix(value, effective, signed=interval[0] < 0)
        if len(value.text) > MAX_TEXT:
            raise ProgramError("document", f"an expression of more than {MAX_TEXT} characters")
        return value

    def data_in(self, node: Data, demand: int, kind: int) -> Value:
        """As `data`, converted to `kind`, which must hold `demand` bits."""
        value = self.data(node, demand)
        if value.kind == kind:
            return value
        interval = self.interval(node)
        signed = exact = False
        if interval is not None and kind > value.kind and (value.full or demand >= bits_of(interval)):
            exact = bits_of(interval) <= value.kind
        if exact:
            assert interval is not None
            signed = interval[0] < 0
            if not value.full:
                value = self._fix(value, bits_of(interval), signed)
        return replace(self.convert(value, kind, signed), full=value.full and (exact or kind < value.kind))

    def exact(self, node: Data, minimum: tuple[int, int] | None = None) -> Value:
        """The number itself, in a kind that also holds the interval `minimum`."""
        interval = self.interval(node)
        if interval is None:
            raise ProgramError("document", f"an intermediate value of more than {MAX_BITS} bits is compared or shifted")
        low, high = interval if minimum is None else (min(interval[0], minimum[0]), max(interval[1], minimum[1]))
        kind = kind_for(bits_of((low, high)))
        if kind == WIDE:
            self.wide_bits = max(self.wide_bits, bits_of((low, high)) + 1)
        value = self.data_in(node, bits_of(interval), kind)
        return value if value.full else self._fix(value, bits_of(interval), signed=interval[0] < 0)

    def count(self, node: Data) -> str:
        """A number as uint64_t where only smallness matters: an index, a shift amount.  Out of range: UINT64_MAX."""
        value = self.exact(node)
        low, high = self.interval(node) or (0, 0)
        if value.kind == 64 and low >= 0:
            return value.text
        if value.kind == WIDE:
            return f"plait_wide_count({value.text})"
        return f"plait_count{value.kind}({value.text}, {'true' if low < 0 else 'false'})"

    def u64(self, node: Data) -> str:
        """The low 64 bits."""
        return self.data_in(node, 64, 64).text

    def _fix(self, value: Value, bits: int, signed: bool) -> Value:
        """Makes `bits` right bits a full number."""
        if value.kind == WIDE:
            return Value(f"plait_wide_{'sext' if signed else 'mask'}({value.text}, {bits})", WIDE, True)
        if bits >= value.kind:
            return Value(value.text, value.kind, True)
        if signed:
            return Value(f"plait_sext{value.kind}({value.text}, {bits})", value.kind, True)
        return Value(f"({value.text} & {constant((1 << bits) - 1, value.kind)})", value.kind, True)

    def convert(self, value: Value, kind: int, signed: bool = False) -> Value:
        if value.kind == kind:
            return value
        if kind == WIDE:
            return Value(f"plait_wide_{'i' if signed else 'u'}{value.kind}({value.text})", WIDE, value.full)
        if value.kind == WIDE:
            return Value(f"plait_wide_low{kind}({value.text})", kind, value.full)
        if kind == 128:
            cast = "(plait_u128)(plait_i128)(int64_t)" if signed else "(plait_u128)"
            return Value(f"{cast}({value.text})", 128, value.full)
        return Value(f"(uint64_t)({value.text})", 64, value.full)

    def _emit(self, node: Data, bits: int) -> Value:
        kind = kind_for(bits)
        match node:
            case model.Const(number):
                return Value(self._constant(number, kind, bits), kind, kind != WIDE or 0 <= number < 1 << bits)
            case FieldUse():
                return self._field(node, bits)
            case model.ValidBit(header):
                text = "1" if self.layout.always_valid(header) else f"{self.layout.header_expr(header)}.valid"
                return Value(f"(uint64_t){text}", 64, True)
            case model.Param(index, width):
                return self._param(index, width)
            case model.Local(name):
                return Value(name, 64, True)
            case model.RegisterCell(register, index):
                return self._register(register, index)
            case model.Lookahead(offset, width):
                return self._lookahead(offset, width)
            case model.StackCount(stack, last_index):
                text = f"(uint64_t){self.layout.next_index(stack)}"
                return Value(f"({text} - 1)" if last_index else text, 64, True)
            case model.BoolToData(operand):
                return Value(f"(uint64_t){self.bool(operand)}", 64, True)
            case model.Complement(operand):
                value = self.data_in(operand, bits, kind)
                text = f"plait_wide_not({value.text})" if kind == WIDE else f"(~{value.text})"
                return Value(text, kind, value.full)
            case model.TwoComplement(operand, width):
                inner = self.interval(operand)
                unchanged = inner is not None and bits_of((min(inner[0], -1), inner[1])) <= width
                value = self.data_in(operand, min(bits, width), kind_for(min(bits, width)))
                return value if unchanged else replace(value, full=False)
            case model.Saturate():
                return self._saturate(node)
            case model.Choose(condition, left, right):
                one, other = self.data_in(left, bits, kind), self.data_in(right, bits, kind)
                text = f"({self.bool(condition)} ? {one.text} : {other.text})"
                return Value(text, kind, one.full and other.full)
            case model.Arith():
                return self._arith(node, bits, kind)
        raise AssertionError(node)

    def _arith(self, node: model.Arith, bits: int, kind: int) -> Value:
        if node.op == "&":
            return self._and(node, bits, kind)
        if node.op in _RING:
            left, right = self.data_in(node.left, bits, kind), self.data_in(node.right, bits, kind)
            return self._ring(node.op, left, right, left.full and right.full)
        if node.op == "<<":
            return self._shift_left(node, bits, kind)
        if node.op == ">>":
            return self._shift_right(node, bits, kind)
        one, other = self.interval(node.left), self.interval(node.right)
        if one is None or other is None or one[0] < 0 or other[0] < 0:
            raise ProgramError("document", f"operation {node.op!r} on a number that can be negative")
        left, right = self.exact(node.left, other), self.exact(node.right, one)
        name = "div" if node.op == "/" else "mod"
        if left.kind == WIDE:
            return Value(f"plait_wide_divide({left.text}, {right.text}, {str(name == 'mod').lower()})", WIDE, True)
        if isinstance(node.right, model.Const) and node.right.value > 0:
            return Value(f"({left.text} {node.op} {right.text})", left.kind, True)
        return Value(f"plait_{name}{left.kind}({left.text}, {right.text})", left.kind, True)

    @staticmethod
    def _ring(op: str, left: Value, right: Value, full: bool) -> Value:
        if left.kind == WIDE:
            return Value(f"plait_wide_{_WIDE_NAME[op]}({left.text}, {right.text})", WIDE, full)
        return Value(f"({left.text} {_RING[op]} {right.text})", left.kind, full)

    def _and(self, node: model.Arith, bits: int, kind: int) -> Value:
        left, right = node.left, node.right
        if isinstance(left, model.Const):
            left, right = right, left
        if not isinstance(right, model.Const) or right.value < 0:
            one, other = self.data_in(left, bits, kind), self.data_in(right, bits, kind)
            return self._ring("&", one, other, one.full and other.full)
        mask_bits = right.value.bit_length()
        inner = self.interval(left)
        if inner is not None and inner[0] >= 0 and right.value & (right.value + 1) == 0 and inner[1] <= right.value:
            return self.data(left, bits)  # the mask changes nothing
        if mask_bits == 0:
            return Value(constant(0, 64), 64, True)
        needed = min(bits, mask_bits)
        kind = kind_for(needed)
        value = self.data_in(left, needed, kind)
        mask = Value(self._constant(right.value & ((1 << needed) - 1), kind, needed), kind, True)
        return self._ring("&", value, mask, full=needed == mask_bits)

    def _shift_left(self, node: model.Arith, bits: int, kind: int) -> Value:
        if isinstance(node.right, model.Const):
            by = node.right.value
            if by < 0:
                raise ProgramError("document", "a shift by a negative number")
            if by >= bits:
                return Value(constant(0, 64), 64, False)
            value = self.data_in(node.left, bits - by, kind)
            if by == 0:
                return value
            if kind == WIDE:
                return Value(f"plait_wide_shl({value.text}, {by})", WIDE, value.full)
            return Value(f"({value.text} << {by})", kind, value.full)
        value = self.data_in(node.left, bits, kind)
        name = "wide_shl" if kind == WIDE else f"shl{kind}"
        return Value(f"plait_{name}({value.text}, {self.count(node.right)})", kind, value.full)

    def _shift_right(self, node: model.Arith, bits: int, kind: int) -> Value:
        inner = self.interval(node.left)
        if not isinstance(node.right, model.Const):
            value = self.exact(node.left)
            assert inner is not None
            name = "sar" if inner[0] < 0 else "shr"
            name = f"wide_{name}" if value.kind == WIDE else f"{name}{value.kind}"
            return Value(f"plait_{name}({value.text}, {self.count(node.right)})", value.kind, True)
        by = node.right.value
        if by < 0:
            raise ProgramError("document", "a shift by a negative number")
        if inner is not None and kind_for(bits_of(inner)) <= kind_for(by + bits):
            value = self.exact(node.left)
            if by == 0:
                return value
            if value.kind == WIDE:
                return Value(f"plait_wide_{'sar' if inner[0] < 0 else 'shr'}({value.text}, {by})", WIDE, True)
            if by >= value.kind:
                if inner[0] >= 0:
                    return Value(constant(0, 64), 64, True)
                by = value.kind - 1
            if inner[0] < 0:
                cast = "(int64_t)" if value.kind == 64 else "(plait_i128)"
                unsigned = "(uint64_t)" if value.kind == 64 else "(plait_u128)"
                return Value(f"{unsigned}({cast}{value.text} >> {by})", value.kind, True)
            return Value(f"({value.text} >> {by})", value.kind, True)
        # Only the bits from `by` on are wanted, and only `bits` of them.
        value = self.data_in(node.left, by + bits, kind_for(by + bits))
        if value.kind == WIDE:
            self.wide_bits = max(self.wide_bits, by + bits + 1)
            text = f"plait_wide_shr({value.text}, {by})"
        else:
            text = f"({value.text} >> {by})"
        return self.convert(Value(text, value.kind, False), kind)

    def _saturate(self, node: model.Saturate) -> Value:
        low, high = _signed_range(node.width) if node.signed else (0, (1 << node.width) - 1)
        inner = self.interval(node.operand)
        if inner is not None and low <= inner[0] and inner[1] <= high:
            return self.exact(node.operand)
        # Signed comparison: room for the sign of both bounds.
        value = self.exact(node.operand, (min(low, -1), high))
        bounds = [self._full_constant(bound, value.kind) for bound in (low, high)]
        name = "wide_clamp" if value.kind == WIDE else f"clamp{value.kind}"
        return Value(f"plait_{name}({value.text}, {bounds[0]}, {bounds[1]})", value.kind, True)

    # -- leaves

    def _constant(self, value: int, kind: int, bits: int) -> str:
        if kind != WIDE:
            return constant(value % (1 << kind), kind)
        self.wide_bits = max(self.wide_bits, bits + 1)
        return _wide_constant(value % (1 << bits))

    def _full_constant(self, value: int, kind: int) -> str:
        if kind != WIDE:
            return constant(value % (1 << kind), kind)
        self.wide_bits = max(self.wide_bits, value.bit_length() + 1)
        if value >= 0:
            return _wide_constant(value)
        return f"plait_wide_sub(plait_wide_u64(0), {_wide_constant(-value)})"

    def _field(self, node: FieldUse, bits: int) -> Value:
        field = node.field
        if field.varbit:
            raise ProgramError("document", f"variable-length field {field.name[:80]!r} used as a number")
        place = self.layout.place(node)
        width = field.width
        if place.limbs:
            self.wide_bits = max(self.wide_bits, bits + 1) if bits > 128 else self.wide_bits
            if bits <= 64:
                return Value(f"{place.path}[0]", 64, False)
            if bits <= 128:
                return Value(f"PLAIT_U128({place.path}[1], {place.path}[0])", 128, False)
            return Value(f"plait_wide_from({place.path}, {place.limbs})", WIDE, not field.signed)
        if place.bits == 128:
            if bits <= 64:
                return Value(f"(uint64_t){place.path}", 64, False)
            return Value(place.path, 128, not field.signed or width == 128)
        text = place.path if place.bits == 64 else f"(uint64_t){place.path}"
        if place.shared and width < place.bits:
            text = f"({text} & {constant((1 << width) - 1, 64)})"
        return Value(text, 64, not field.signed or width == 64)

    def _param(self, index: int, width: int) -> Value:
        word = self.params_offsets[index] // 8
        if width <= 64:
            return Value(f"params[{word}]", 64, True)
        return self._bytes(f"(const uint8_t *)(params + {word})", -width % 8, width)

    def _register(self, register: model.Array, index: Data) -> Value:
        array, width, count = f"&instance->registers[{register.index}]", register.width, self.count(index)
        if width > 64:  # a big-endian string
            return self._bytes(f"plait_register_string({array}, {count})", -width % 8, width)
        text = f"plait_register_get({array}, {count})"
        return Value(text if width == 64 else f"({text} & {constant((1 << width) - 1, 64)})", 64, True)

    def _lookahead(self, offset: int, width: int) -> Value:
        return self._bytes("at", offset, width)

    def _bytes(self, base: str, offset: int, width: int) -> Value:
        """`width` bits from bit `offset` of a big-endian string."""
        if width <= 64:
            return Value(f"plait_load_bits({base}, {offset}, {width})", 64, True)
        head = width % 64 or 64
        pieces = [(offset, head)] + [(offset + head + 64 * i, 64) for i in range((width - head) // 64)]
        texts = [f"plait_load_bits({base}, {start}, {length})" for start, length in pieces]
        if width <= 128:
            return Value(f"PLAIT_U128({texts[0]}, {texts[1]})", 128, True)
        self.wide_bits = max(self.wide_bits, width + 1)
        limbs = ", ".join(reversed(texts))
        return Value(f"plait_wide_from((const uint64_t[]){{{limbs}}}, {len(texts)})", WIDE, True)

    # -- conditions

    def bool(self, node: Bool) -> str:
        text = self._bool(node)
        if len(text) > MAX_TEXT:
            raise ProgramError("document", f"a condition of more than {MAX_TEXT} characters")
        return text

    def _bool(self, node: Bool) -> str:
        match node:
            case model.BoolConst(value):
                return "1" if value else "0"
            case model.Not(operand):
                return f"(!{self.bool(operand)})"
            case model.Logic(op, left, right):
                c_op = {"and": "&&", "or": "||"}.get(op, op)
                return f"({self.bool(left)} {c_op} {self.bool(right)})"
            case model.ChooseBool(condition, left, right):
                return f"({self.bool(condition)} ? {self.bool(left)} : {self.bool(right)})"
            case model.DataToBool(model.BoolToData(operand)):
                return self.bool(operand)
            case model.DataToBool(model.ValidBit(header)) | model.IsValid(header):
                if self.layout.always_valid(header):
                    return "1"
                return f"({self.layout.header_expr(header)}.valid != 0)"
            case model.DataToBool(operand):
                return self._compare("!=", operand, model.Const(0))
            case model.IsValidUnion(union):
                path = self.layout.union_expr(union)
                count = len(self.layout.union_members(union))
                return "(" + " || ".join(f"{path}.m{i}.valid" for i in range(count)) + ")"
            case model.SameHeaders(left, right):
                return self._same(left, right)
            case model.SameVarbits(left, right):
                one, other = self.layout.varbit(left), self.layout.varbit(right)
                return f"plait_varbit_same({one}.bytes, {one}.data, {other}.bytes, {other}.data)"
            case model.Compare(op, left, right):
                return self._compare(op, left, right)
        raise AssertionError(node)

    def _compare(self, op: str, left: Data, right: Data) -> str:
        one, other = self.interval(left), self.interval(right)
        if one is None or other is None:
            raise ProgramError("document", f"a value of more than {MAX_BITS} bits is compared")
        a, b = self.exact(left, other), self.exact(right, one)
        if a.kind == WIDE:
            return f"(plait_wide_compare({a.text}, {b.text}) {op} 0)"
        if (one[0] < 0 or other[0] < 0) and op not in ("==", "!="):
            cast = "(int64_t)" if a.kind == 64 else "(plait_i128)"
            return f"({cast}{a.text} {op} {cast}{b.text})"
        return f"({a.text} {op} {b.text})"

    def _same(self, left: HeaderExpr | model.UnionExpr, right: HeaderExpr | model.UnionExpr) -> str:
        if isinstance(left, HeaderExpr) and isinstance(right, HeaderExpr):
            kind = self.layout.kind_of(left)
            self.compared.add(kind.index)
            return f"{same_function(kind)}(&{self.layout.header_expr(left)}, &{self.layout.header_expr(right)})"
        assert isinstance(left, model.UnionExpr) and isinstance(right, model.UnionExpr)
        one, other = self.layout.union_expr(left), self.layout.union_expr(right)
        members = self.layout.union_members(left)
        if len(one) + len(other) > MAX_PATH_TEXT:
            raise ProgramError("document", "header unions at computed indexes are compared: the indexes are too long")
        self.compared |= {header.type.index for header in members}
        # Equal unions have the same valid member with equal fields, or no valid one.
        tests = [
            f"({one}.m{i}.valid == {other}.m{i}.valid && "
            f"(!{one}.m{i}.valid || {same_function(header.type)}(&{one}.m{i}, &{other}.m{i})))"
            for i, header in enumerate(members)
        ]
        return f"({' && '.join(tests)})"


def same_function(kind: model.HeaderType) -> str:
    return f"same_headers_{kind.index}"


def constant(value: int, kind: int) -> str:
    """A non-negative constant of kind 64 or 128."""
    if kind == 64:
        return f"UINT64_C({value})" if value < 10 else f"UINT64_C({value:#x})"
    return f"PLAIT_U128(UINT64_C({value >> 64:#x}), UINT64_C({value & (1 << 64) - 1:#x}))"


def _wide_constant(value: int) -> str:
    limbs = [f"UINT64_C({value >> shift & (1 << 64) - 1:#x})" for shift in range(0, max(value.bit_length(), 1), 64)]
    return f"plait_wide_from((const uint64_t[]){{{', '.join(limbs)}}}, {len(limbs)})"


def _signed_range(width: int) -> tuple[int, int]:
    return -(1 << (width - 1)), (1 << (width - 1)) - 1


def _arith_interval(op: str, left: Interval, right: Interval) -> Interval:
    if op == "&":
        bounds = [each[1] for each in (left, right) if each is not None and each[0] >= 0]
        if bounds:
            return 0, min(bounds)
    if op == "%" and right is not None and right[0] >= 0:
        return 0, max(right[1] - 1, 0) if left is None else max(min(left[1], right[1] - 1), 0)
    if left is None or right is None:
        return None
    return _BOUNDED[op](left, right)


def _bitwise(left: tuple[int, int], right: tuple[int, int]) -> tuple[int, int]:
    if left[0] >= 0 and right[0] >= 0:
        return 0, (1 << max(left[1].bit_length(), right[1].bit_length())) - 1
    return _signed_range(max(bits_of((min(each[0], -1), each[1])) for each in (left, right)))


def _product(left: tuple[int, int], right: tuple[int, int]) -> tuple[int, int]:
    corners = [a * b for a in left for b in right]
    return min(corners), max(corners)


def _shifted_left(left: tuple[int, int], right: tuple[int, int]) -> Interval:
    amount = max(right[1], 0)
    if amount + bits_of(left) > MAX_BITS:
        return (0, 0) if left == (0, 0) else None
    return min(left[0] << amount, left[0]), max(left[1] << amount, left[1])


def _shifted_right(left: tuple[int, int], right: tuple[int, int]) -> tuple[int, int]:
    least = min(max(right[0], 0), MAX_BITS)
    if right[0] == right[1]:
        return left[0] >> least, left[1] >> least
    return min(left[0] >> least, 0), max(left[1] >> least, -1 if left[0] < 0 else 0)


_BOUNDED: dict[str, Callable[[tuple[int, int], tuple[int, int]], Interval]] = {
    "+": lambda a, b: (a[0] + b[0], a[1] + b[1]),
    "-": lambda a, b: (a[0] - b[1], a[1] - b[0]),
    "*": _product,
    "&": _bitwise,
    "|": _bitwise,
    "^": _bitwise,
    "<<": _shifted_left,
    ">>": _shifted_right,
    "/": lambda a, b: (0, max(a[1], 0)),
    "%": lambda a, b: (0, max(a[1], 0)),  # of a divisor that can be negative, which emission refuses
}

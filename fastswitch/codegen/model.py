"""The program as typed objects: what loading produces and emission reads.

Loading (`load*.py`) has checked every name, index, width and kind that appears here, so emission trusts this model
and never looks at the JSON.  Cross-references are indexes into the lists of `Program`.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from .algorithms import Algorithm

# ---------------------------------------------------------------------------------------------------------------
# Headers


@dataclass(frozen=True, slots=True)
class Field:
    name: str
    width: int  # bits; the maximum for a varbit
    signed: bool = False
    varbit: bool = False
    saturating: bool = False  # P4-14: what does not fit becomes the nearest number that does


@dataclass(frozen=True, slots=True)
class HeaderType:
    index: int
    name: str
    fields: tuple[Field, ...]
    by_name: dict[str, int]

    @property
    def fixed_bits(self) -> int:
        return sum(each.width for each in self.fields if not each.varbit)

    @property
    def varbit(self) -> int | None:
        """Index of the variable-length field."""
        return next((index for index, each in enumerate(self.fields) if each.varbit), None)

    @property
    def max_bytes(self) -> int:
        return sum(each.width for each in self.fields) // 8


@dataclass(slots=True)
class Header:
    index: int
    name: str
    type: HeaderType
    metadata: bool
    stack: int | None = None  # index of the stack it belongs to, and its place there
    union: int | None = None  # index of the union it belongs to, and its place there
    position: int = 0


@dataclass(slots=True)
class Stack:
    index: int
    name: str
    type: HeaderType
    headers: tuple[int, ...]
    dynamic: bool = False  # indexed by a run-time value somewhere


@dataclass(slots=True)
class Union:
    index: int
    name: str
    type: str
    headers: tuple[int, ...]
    members: tuple[str, ...]
    stack: int | None = None
    position: int = 0


@dataclass(slots=True)
class UnionStack:
    index: int
    name: str
    type: str
    unions: tuple[int, ...]
    dynamic: bool = False


# ---------------------------------------------------------------------------------------------------------------
# Expressions.  Data is an integer of unlimited precision, as in BMv2; widths exist only in fields and masks.


class Expr:
    __slots__ = ()


class Data(Expr):
    __slots__ = ()


class Bool(Expr):
    __slots__ = ()


class HeaderExpr(Expr):
    __slots__ = ()


class UnionExpr(Expr):
    __slots__ = ()


@dataclass(frozen=True, slots=True, eq=False)
class HeaderRef(HeaderExpr):
    header: Header


@dataclass(frozen=True, slots=True, eq=False)
class StackAt(HeaderExpr):
    stack: Stack
    index: Data


@dataclass(frozen=True, slots=True, eq=False)
class StackLast(HeaderExpr):
    stack: Stack


@dataclass(frozen=True, slots=True, eq=False)
class UnionMember(HeaderExpr):
    union: UnionExpr
    member: int
    type: HeaderType


@dataclass(frozen=True, slots=True, eq=False)
class UnionRef(UnionExpr):
    union: Union


@dataclass(frozen=True, slots=True, eq=False)
class UnionStackAt(UnionExpr):
    stack: UnionStack
    index: Data


@dataclass(frozen=True, slots=True, eq=False)
class UnionStackLast(UnionExpr):
    stack: UnionStack


@dataclass(frozen=True, slots=True, eq=False)
class StackRef(Expr):
    stack: Stack


@dataclass(frozen=True, slots=True, eq=False)
class UnionStackRef(Expr):
    stack: UnionStack


@dataclass(frozen=True, slots=True, eq=False)
class Const(Data):
    value: int


@dataclass(frozen=True, slots=True, eq=False)
class FieldUse(Data):
    header: HeaderExpr
    type: HeaderType
    index: int

    @property
    def field(self) -> Field:
        return self.type.fields[self.index]


@dataclass(frozen=True, slots=True, eq=False)
class ValidBit(Data):
    """The hidden field `$valid$`."""

    header: HeaderExpr


@dataclass(frozen=True, slots=True, eq=False)
class Param(Data):
    index: int
    width: int


@dataclass(frozen=True, slots=True, eq=False)
class Local(Data):
    """A uint64_t of the generated C, by its name."""

    name: str


@dataclass(frozen=True, slots=True, eq=False)
class RegisterCell(Data):
    register: Array
    index: Data


@dataclass(frozen=True, slots=True, eq=False)
class Lookahead(Data):
    offset: int  # bits from the parser's cursor
    width: int


@dataclass(frozen=True, slots=True, eq=False)
class StackCount(Data):
    stack: Stack | UnionStack
    last_index: bool  # the index of the last element instead of the number of elements


@dataclass(frozen=True, slots=True, eq=False)
class Arith(Data):
    op: str  # + - * / % << >> & | ^
    left: Data
    right: Data


@dataclass(frozen=True, slots=True, eq=False)
class Complement(Data):
    operand: Data


@dataclass(frozen=True, slots=True, eq=False)
class TwoComplement(Data):
    operand: Data
    width: int


@dataclass(frozen=True, slots=True, eq=False)
class Saturate(Data):
    operand: Data
    width: int
    signed: bool


@dataclass(frozen=True, slots=True, eq=False)
class Choose(Data):
    condition: Bool
    left: Data
    right: Data


@dataclass(frozen=True, slots=True, eq=False)
class BoolToData(Data):
    operand: Bool


@dataclass(frozen=True, slots=True, eq=False)
class BoolConst(Bool):
    value: bool


@dataclass(frozen=True, slots=True, eq=False)
class Compare(Bool):
    op: str  # == != < <= > >=
    left: Data
    right: Data


@dataclass(frozen=True, slots=True, eq=False)
class Logic(Bool):
    op: str  # and or == !=
    left: Bool
    right: Bool


@dataclass(frozen=True, slots=True, eq=False)
class Not(Bool):
    operand: Bool


@dataclass(frozen=True, slots=True, eq=False)
class ChooseBool(Bool):
    condition: Bool
    left: Bool
    right: Bool


@dataclass(frozen=True, slots=True, eq=False)
class DataToBool(Bool):
    operand: Data


@dataclass(frozen=True, slots=True, eq=False)
class IsValid(Bool):
    header: HeaderExpr


@dataclass(frozen=True, slots=True, eq=False)
class IsValidUnion(Bool):
    union: UnionExpr


@dataclass(frozen=True, slots=True, eq=False)
class SameHeaders(Bool):
    """Header equality: both valid, and all fields equal.  Unions compare member by member."""

    left: HeaderExpr | UnionExpr
    right: HeaderExpr | UnionExpr


@dataclass(frozen=True, slots=True, eq=False)
class SameVarbits(Bool):
    """Equal length, equal bytes."""

    left: FieldUse
    right: FieldUse


# ---------------------------------------------------------------------------------------------------------------
# Actions


@dataclass(frozen=True, slots=True)
class Source:
    """Where the P4 compiler found something, for comments."""

    file: str
    line: int
    fragment: str


@dataclass(frozen=True, slots=True, eq=False)
class Primitive:
    op: str
    args: tuple[object, ...]  # kinds as primitives.SIGNATURES[op] says
    source: Source | None


@dataclass(frozen=True, slots=True)
class ActionParam:
    name: str
    width: int


@dataclass(slots=True, eq=False)
class Action:
    index: int
    name: str
    id: int
    params: tuple[ActionParam, ...]
    body: tuple[Primitive, ...] = ()
    source: Source | None = None


@dataclass(frozen=True, slots=True)
class Array:
    """A register, counter or meter array."""

    index: int
    name: str
    size: int
    width: int = 0  # registers: bits of a cell; meters: 0 bytes, 1 packets
    direct: bool = False
    target: FieldUse | None = None  # direct meters: where the color goes


@dataclass(frozen=True, slots=True)
class HashItem:
    """One element of what is hashed: a field, a constant, a whole header, or the payload."""

    header: Header | None = None
    field: int | None = None
    constant: int = 0
    width: int = 0


@dataclass(frozen=True, slots=True)
class Calculation:
    index: int
    name: str
    algorithm_name: str  # as in the JSON
    algorithm: Algorithm
    inputs: tuple[HashItem, ...]
    payload: bool
    state: int | None = None  # index of the register that keeps what an algorithm remembers between packets


@dataclass(frozen=True, slots=True)
class Checksum:
    name: str
    target: FieldUse
    calculation: Calculation
    verify: bool
    update: bool
    condition: Bool | None
    source: Source | None


@dataclass(frozen=True, slots=True)
class FieldList:
    id: int
    name: str
    fields: tuple[FieldUse, ...]


# ---------------------------------------------------------------------------------------------------------------
# Parser


@dataclass(frozen=True, slots=True, eq=False)
class Extract:
    target: HeaderRef | StackRef | UnionStackRef
    member: int | None  # of a union stack
    length: Data | None  # bits of the varbit
    length_within: bool = False  # P4-14: the length is computed from fields of the header itself


def extracted_header(target: HeaderRef | StackRef | UnionStackRef, member: int | None, kind: HeaderType) -> HeaderExpr:
    """The header that an extraction fills: of a stack, the first free element."""
    match target:
        case StackRef(stack):
            return StackAt(stack, StackCount(stack, last_index=False))
        case UnionStackRef(union_stack):
            assert member is not None
            return UnionMember(UnionStackAt(union_stack, StackCount(union_stack, last_index=False)), member, kind)
        case HeaderRef():
            return target


@dataclass(frozen=True, slots=True, eq=False)
class Assign:
    target: FieldUse | ValidBit
    value: Data


@dataclass(frozen=True, slots=True, eq=False)
class Verify:
    condition: Bool
    error: Data


@dataclass(frozen=True, slots=True, eq=False)
class Advance:
    bits: Data


@dataclass(frozen=True, slots=True, eq=False)
class Call:
    primitive: Primitive


ParserOp = Extract | Assign | Verify | Advance | Call


@dataclass(frozen=True, slots=True)
class Transition:
    """Matches when (key & mask) == value; with `value_set`, when the key is a member of that set."""

    value: int
    mask: int
    next: int | None  # state; None leaves the parser
    value_set: int | None = None


@dataclass(slots=True)
class State:
    index: int
    name: str
    ops: list[ParserOp] = field(default_factory=list)
    key: list[tuple[Data, int]] = field(default_factory=list)  # and the width of each
    transitions: list[Transition] = field(default_factory=list)
    default: int | None = None

    @property
    def key_bytes(self) -> int:
        return sum((width + 7) // 8 for _, width in self.key)


@dataclass(slots=True)
class ValueSet:
    index: int
    name: str
    width: int
    key_widths: tuple[int, ...] | None = None  # learnt from the states that use it


# ---------------------------------------------------------------------------------------------------------------
# Pipelines


@dataclass(frozen=True, slots=True, eq=False)
class Key:
    name: str
    match: str
    value: FieldUse | ValidBit
    width: int
    mask: int | None


@dataclass(frozen=True, slots=True)
class ActionCallData:
    action: Action
    params: bytes
    const: bool = False


@dataclass(frozen=True, slots=True)
class Entry:
    key: bytes
    mask: bytes | None
    prefix_length: int | None
    range_high: bytes | None
    priority: int  # larger wins
    call: ActionCallData


@dataclass(frozen=True, slots=True)
class NodeRef:
    """The next node of a control graph."""

    kind: str  # table, conditional, call
    index: int


@dataclass(slots=True, eq=False)
class Table:
    index: int
    name: str
    kind: str  # simple, indirect, indirect_ws
    keys: tuple[Key, ...]
    size: int
    actions: tuple[Action, ...]
    with_counters: bool
    support_timeout: bool
    meter: Array | None
    selector: Calculation | None
    default: ActionCallData | None
    entries: tuple[Entry, ...]
    source: Source | None
    # Successors: by hit and miss, or by the action that ran.
    hit: NodeRef | None = None
    miss: NodeRef | None = None
    by_hit: bool = False
    by_action: dict[int, NodeRef | None] = field(default_factory=dict)
    base_next: NodeRef | None = None

    @property
    def key_bytes(self) -> int:
        return sum((key.width + 7) // 8 for key in self.keys)


@dataclass(slots=True, eq=False)
class Conditional:
    name: str
    condition: Bool
    source: Source | None
    true: NodeRef | None = None
    false: NodeRef | None = None


@dataclass(slots=True, eq=False)
class ActionCall:
    name: str
    action: Action
    next: NodeRef | None = None


@dataclass(slots=True)
class Pipeline:
    name: str
    tables: list[Table]
    conditionals: list[Conditional]
    calls: list[ActionCall]
    start: NodeRef | None = None


@dataclass(slots=True)
class Program:
    name: str
    header_types: list[HeaderType] = field(default_factory=list)
    headers: list[Header] = field(default_factory=list)
    stacks: list[Stack] = field(default_factory=list)
    unions: list[Union] = field(default_factory=list)
    union_stacks: list[UnionStack] = field(default_factory=list)
    aliases: dict[tuple[str, str], str] = field(default_factory=dict)  # (header, field) -> BMv2's name for it
    errors: dict[str, int] = field(default_factory=dict)
    value_sets: list[ValueSet] = field(default_factory=list)
    states: list[State] = field(default_factory=list)
    start: int | None = None
    deparse_order: list[Header] = field(default_factory=list)
    deparse_calls: list[Primitive] = field(default_factory=list)
    calculations: list[Calculation] = field(default_factory=list)
    counters: list[Array] = field(default_factory=list)
    registers: list[Array] = field(default_factory=list)
    meters: list[Array] = field(default_factory=list)
    actions: list[Action] = field(default_factory=list)
    checksums: list[Checksum] = field(default_factory=list)
    learn_lists: list[FieldList] = field(default_factory=list)
    field_lists: list[FieldList] = field(default_factory=list)
    tables: list[Table] = field(default_factory=list)
    ingress: Pipeline | None = None
    egress: Pipeline | None = None

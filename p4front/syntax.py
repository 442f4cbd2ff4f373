"""The syntax tree.  Every node has a `span`; expressions also get a `type` when they are checked.

The checker fills the fields that have a default: what a name refers to, the type of an expression, the type arguments a
call was inferred to have.  Nothing after the checker looks a name up by its text.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from p4front.diagnostics import Span

if TYPE_CHECKING:
    from p4front.p4types import Type


@dataclass(slots=True, eq=False)
class Node:
    """Anything that was written at some place."""

    span: Span


@dataclass(slots=True, eq=False)
class Annotation(Node):
    """`@name`, `@name(expressions)`, `@name[expressions]`, `@name[key = value]`.

    `body` is the text between the parentheses; `args` and `pairs` are its structure where it has one.
    """

    name: str
    body: str | None = None
    args: list[Expr] = field(default_factory=list)
    pairs: dict[str, Expr] = field(default_factory=dict)
    structured: bool = False


# expressions


@dataclass(slots=True, eq=False)
class Expr(Node):
    type: Type = field(init=False, repr=False, default=None)  # type: ignore[assignment]


@dataclass(slots=True, eq=False)
class IntLit(Expr):
    value: int
    width: int | None = None
    signed: bool = False
    base: int = 10


@dataclass(slots=True, eq=False)
class BoolLit(Expr):
    value: bool


@dataclass(slots=True, eq=False)
class StringLit(Expr):
    value: str


@dataclass(slots=True, eq=False)
class Name(Expr):
    """`absolute` is true for `.name`, which starts at the top level."""

    name: str
    absolute: bool = False
    decl: Any = None


@dataclass(slots=True, eq=False)
class TypeName(Expr):
    """A type where an expression is expected: `error.NoError`, `bit<8>` in a constructor call."""

    node: TypeNode


@dataclass(slots=True, eq=False)
class Member(Expr):
    expr: Expr
    name: str


@dataclass(slots=True, eq=False)
class Index(Expr):
    expr: Expr
    index: Expr


@dataclass(slots=True, eq=False)
class Slice(Expr):
    expr: Expr
    high: Expr
    low: Expr


@dataclass(slots=True, eq=False)
class Argument(Node):
    """`name` is set for `name = expr`; `expr` is None for `_`."""

    name: str | None
    expr: Expr | None


@dataclass(slots=True, eq=False)
class Call(Expr):
    """A call of a function, method, action or constructor; `target` is a `check_calls` description of it."""

    func: Expr
    type_args: list[TypeNode]
    args: list[Argument]
    target: Any = None


@dataclass(slots=True, eq=False)
class Unary(Expr):
    op: str
    expr: Expr


@dataclass(slots=True, eq=False)
class Binary(Expr):
    op: str
    left: Expr
    right: Expr


@dataclass(slots=True, eq=False)
class Ternary(Expr):
    cond: Expr
    then: Expr
    otherwise: Expr


@dataclass(slots=True, eq=False)
class Cast(Expr):
    """`node` is None for a conversion the checker put in; then `type` says to what."""

    node: TypeNode | None
    expr: Expr


@dataclass(slots=True, eq=False)
class ListExpr(Expr):
    items: list[Expr]


@dataclass(slots=True, eq=False)
class StructExpr(Expr):
    fields: list[tuple[str, Expr]]


@dataclass(slots=True, eq=False)
class Mask(Expr):
    value: Expr
    mask: Expr


@dataclass(slots=True, eq=False)
class Range(Expr):
    low: Expr
    high: Expr


@dataclass(slots=True, eq=False)
class Default(Expr):
    """`default` or `_` in a keyset."""


@dataclass(slots=True, eq=False)
class Invalid(Expr):
    """`{#}`: the invalid header."""


@dataclass(slots=True, eq=False)
class Dots(Expr):
    """`...`: the default value."""


# types as written


@dataclass(slots=True, eq=False)
class TypeNode(Node):
    pass


@dataclass(slots=True, eq=False)
class BaseType(TypeNode):
    """bool, int, bit, bit<W>, int<W>, varbit<W>, error, string, match_kind, void."""

    name: str
    width: Expr | None = None


@dataclass(slots=True, eq=False)
class NamedType(TypeNode):
    name: str
    args: list[TypeNode]
    absolute: bool = False


@dataclass(slots=True, eq=False)
class StackTypeNode(TypeNode):
    element: TypeNode
    size: Expr


@dataclass(slots=True, eq=False)
class TupleTypeNode(TypeNode):
    name: str
    args: list[TypeNode]


@dataclass(slots=True, eq=False)
class DontCareType(TypeNode):
    pass


# statements


@dataclass(slots=True, eq=False)
class Stmt(Node):
    pass


@dataclass(slots=True, eq=False)
class Block(Stmt):
    body: list[Stmt | Decl]
    annotations: list[Annotation] = field(default_factory=list)


@dataclass(slots=True, eq=False)
class Assign(Stmt):
    """`op` is `=` or the binary operator of `op=`.

    For the latter the checker makes `value` the whole right-hand side, in which `target` is read through the variable
    `place`: the target is evaluated once.
    """

    op: str
    target: Expr
    value: Expr
    place: VarDecl | None = None


@dataclass(slots=True, eq=False)
class CallStmt(Stmt):
    call: Call


@dataclass(slots=True, eq=False)
class If(Stmt):
    cond: Expr
    then: Stmt
    otherwise: Stmt | None


@dataclass(slots=True, eq=False)
class SwitchCase(Node):
    """`body` is None where the label falls through to the next one."""

    label: Expr
    body: Block | None


@dataclass(slots=True, eq=False)
class Switch(Stmt):
    expr: Expr
    cases: list[SwitchCase]


@dataclass(slots=True, eq=False)
class Return(Stmt):
    value: Expr | None


@dataclass(slots=True, eq=False)
class For(Stmt):
    """`for (start; cond; step)`."""

    start: list[Stmt | Decl]
    cond: Expr
    step: list[Stmt]
    body: Stmt


@dataclass(slots=True, eq=False)
class ForIn(Stmt):
    """`for (variable in source)`: `source` is a `Range`, or an expression of a stack, tuple or list."""

    variable: VarDecl
    source: Expr
    body: Stmt


@dataclass(slots=True, eq=False)
class Break(Stmt):
    pass


@dataclass(slots=True, eq=False)
class Continue(Stmt):
    pass


@dataclass(slots=True, eq=False)
class Exit(Stmt):
    pass


@dataclass(slots=True, eq=False)
class Empty(Stmt):
    pass


# declarations


@dataclass(slots=True, eq=False)
class Decl(Node):
    """`name_span` is the name alone, where errors about the declaration point."""

    name: str
    name_span: Span
    annotations: list[Annotation]


@dataclass(slots=True, eq=False)
class Param(Decl):
    direction: str
    type_node: TypeNode
    default: Expr | None
    type: Type = field(init=False, repr=False, default=None)  # type: ignore[assignment]


@dataclass(slots=True, eq=False)
class TypeParam(Decl):
    pass


@dataclass(slots=True, eq=False)
class ConstDecl(Decl):
    type_node: TypeNode
    value: Expr
    type: Type = field(init=False, repr=False, default=None)  # type: ignore[assignment]


@dataclass(slots=True, eq=False)
class VarDecl(Decl):
    type_node: TypeNode
    value: Expr | None
    type: Type = field(init=False, repr=False, default=None)  # type: ignore[assignment]


@dataclass(slots=True, eq=False)
class Instantiation(Decl):
    """`body` holds the method declarations of an instance with abstract methods."""

    type_node: TypeNode
    args: list[Argument]
    body: Block | None
    type: Type = field(init=False, repr=False, default=None)  # type: ignore[assignment]
    target: Any = None


@dataclass(slots=True, eq=False)
class TypedefDecl(Decl):
    """`typedef` (transparent) or `type` (opaque)."""

    opaque: bool
    type_node: TypeNode
    type: Type = field(init=False, repr=False, default=None)  # type: ignore[assignment]


@dataclass(slots=True, eq=False)
class FieldDecl(Decl):
    type_node: TypeNode
    type: Type = field(init=False, repr=False, default=None)  # type: ignore[assignment]


@dataclass(slots=True, eq=False)
class StructDecl(Decl):
    """`kind` is struct, header or header_union."""

    kind: str
    type_params: list[TypeParam]
    fields: list[FieldDecl]
    type: Type = field(init=False, repr=False, default=None)  # type: ignore[assignment]


@dataclass(slots=True, eq=False)
class EnumMember(Decl):
    value: Expr | None


@dataclass(slots=True, eq=False)
class EnumDecl(Decl):
    """`base` is the type of a serialisable enum."""

    base: TypeNode | None
    members: list[EnumMember]
    type: Type = field(init=False, repr=False, default=None)  # type: ignore[assignment]


@dataclass(slots=True, eq=False)
class ErrorDecl(Decl):
    members: list[EnumMember]


@dataclass(slots=True, eq=False)
class MatchKindDecl(Decl):
    members: list[EnumMember]


@dataclass(slots=True, eq=False)
class FunctionDecl(Decl):
    """A function, an extern function or a method of an extern; `body` is None for the latter two."""

    result: TypeNode | None
    type_params: list[TypeParam]
    params: list[Param]
    body: Block | None
    abstract: bool = False
    type: Type = field(init=False, repr=False, default=None)  # type: ignore[assignment]


@dataclass(slots=True, eq=False)
class ExternDecl(Decl):
    type_params: list[TypeParam]
    methods: list[FunctionDecl]
    type: Type = field(init=False, repr=False, default=None)  # type: ignore[assignment]


@dataclass(slots=True, eq=False)
class ActionDecl(Decl):
    params: list[Param]
    body: Block


@dataclass(slots=True, eq=False)
class KeyElement(Node):
    expr: Expr
    match_kind: Name
    annotations: list[Annotation]


@dataclass(slots=True, eq=False)
class ActionRef(Node):
    """One entry of `actions = { ... }`; `args` binds the directed parameters."""

    name: Name
    args: list[Argument]
    annotations: list[Annotation]
    target: Any = None


@dataclass(slots=True, eq=False)
class Entry(Node):
    keys: list[Expr]
    action: Expr
    annotations: list[Annotation]
    const: bool = False
    priority: Expr | None = None


@dataclass(slots=True, eq=False)
class Property(Node):
    """A table property other than key, actions and entries."""

    name: str
    const: bool
    value: Expr
    annotations: list[Annotation]


@dataclass(slots=True, eq=False)
class TableDecl(Decl):
    keys: list[KeyElement]
    actions: list[ActionRef]
    entries: list[Entry] | None
    entries_const: bool
    properties: dict[str, Property]
    entries_annotations: list[Annotation] = field(default_factory=list)
    has_key: bool = False


@dataclass(slots=True, eq=False)
class ValueSetDecl(Decl):
    type_node: TypeNode
    size: Expr
    type: Type = field(init=False, repr=False, default=None)  # type: ignore[assignment]


@dataclass(slots=True, eq=False)
class SelectCase(Node):
    keys: list[Expr]
    state: Name


@dataclass(slots=True, eq=False)
class Select(Node):
    exprs: list[Expr]
    cases: list[SelectCase]


@dataclass(slots=True, eq=False)
class StateDecl(Decl):
    """`next` is a state's name, a `Select`, or None (reject)."""

    body: list[Stmt | Decl]
    next: Name | Select | None


@dataclass(slots=True, eq=False)
class ParserDecl(Decl):
    """A parser, or a parser type when `states` is None."""

    type_params: list[TypeParam]
    params: list[Param]
    ctor_params: list[Param]
    locals: list[Decl]
    states: list[StateDecl] | None
    type: Type = field(init=False, repr=False, default=None)  # type: ignore[assignment]


@dataclass(slots=True, eq=False)
class ControlDecl(Decl):
    """A control, or a control type when `body` is None."""

    type_params: list[TypeParam]
    params: list[Param]
    ctor_params: list[Param]
    locals: list[Decl]
    body: Block | None
    type: Type = field(init=False, repr=False, default=None)  # type: ignore[assignment]


@dataclass(slots=True, eq=False)
class PackageDecl(Decl):
    type_params: list[TypeParam]
    params: list[Param]
    type: Type = field(init=False, repr=False, default=None)  # type: ignore[assignment]


@dataclass(slots=True, eq=False)
class Program(Node):
    declarations: list[Decl]


def annotation(annotations: list[Annotation], name: str) -> Annotation | None:
    """The first annotation of that name, or None."""
    return next((item for item in annotations if item.name == name), None)


def has_annotation(annotations: list[Annotation], name: str) -> bool:
    """Whether there is an annotation of that name."""
    return annotation(annotations, name) is not None

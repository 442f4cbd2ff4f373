"""The flat program between elaboration and output.

Nothing is nested or instantiated any more: every variable is a field of a header instance, every header has a name of
its own, every call is inlined.  Expressions keep P4's types; statements keep P4's structure (if, table, scope).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from p4front import p4types as t
from p4front import syntax as ast
from p4front.diagnostics import NOWHERE, Span

# expressions


@dataclass(slots=True, frozen=True)
class Expr:
    type: t.Type


@dataclass(slots=True, frozen=True)
class Const(Expr):
    """A number, also of an enum or error."""

    value: int


@dataclass(slots=True, frozen=True)
class BoolConst(Expr):
    value: bool


@dataclass(slots=True, frozen=True)
class StrConst(Expr):
    value: str


@dataclass(slots=True, frozen=True)
class Symbol(Expr):
    """A member of an enum without representation; `value` is its number."""

    name: str
    value: int


@dataclass(slots=True, frozen=True)
class FieldRef(Expr):
    """A field of a header or metadata instance; `$valid$` is a header's validity."""

    header: str
    field: str


@dataclass(slots=True, frozen=True)
class StackFieldRef(Expr):
    """A field of the last extracted element of a stack, in a parser; `member` is set for a stack of unions."""

    stack: str
    field: str
    member: str | None = None


@dataclass(slots=True, frozen=True)
class ElementFieldRef(Expr):
    """A field of a stack's element whose index is known only at run time; it is written only where `guard` holds."""

    stack: str
    index: Expr
    offset: int
    field: str
    guard: Expr | None = None


@dataclass(slots=True, frozen=True)
class LastIndex(Expr):
    stack: str


@dataclass(slots=True, frozen=True)
class RuntimeData(Expr):
    """A parameter that the control plane gives to an action."""

    index: int


@dataclass(slots=True, frozen=True)
class Lookahead(Expr):
    """Bits of the packet from `offset` bits behind the cursor."""

    offset: int


@dataclass(slots=True, frozen=True)
class Op(Expr):
    """`op` is P4's operator, or cast, slice, `?`, valid; `args` are its operands, constants of a slice included."""

    op: str
    args: tuple[Expr, ...]


# statements


@dataclass(slots=True)
class HeaderParam:
    """A header (or stack) instance as a primitive's parameter."""

    name: str
    kind: str = "header"


@dataclass(slots=True)
class ElementParam:
    """A stack element chosen at run time, as a primitive's parameter."""

    stack: str
    index: Expr


@dataclass(slots=True)
class NamedParam:
    """A parameter that names an object: a counter, a calculation, ..."""

    kind: str
    name: str


@dataclass(slots=True)
class VectorParam:
    """The arguments of `log_msg`."""

    items: list[Expr]


PrimParam = Expr | HeaderParam | ElementParam | NamedParam | VectorParam


@dataclass(slots=True)
class Stmt:
    span: Span


@dataclass(slots=True)
class Prim(Stmt):
    """One BMv2 primitive."""

    op: str
    params: list[PrimParam]


@dataclass(slots=True)
class IfStmt(Stmt):
    cond: Expr
    then: list[Stmt]
    otherwise: list[Stmt]


@dataclass(slots=True)
class ApplyTable(Stmt):
    """Apply a table, then the branch of what it did.

    Either `hit` and `miss` are used or `cases` (action to branch) with `default`.
    """

    table: Table
    hit: list[Stmt] = field(default_factory=list)
    miss: list[Stmt] = field(default_factory=list)
    cases: dict[str, list[Stmt]] | None = None
    default: list[Stmt] = field(default_factory=list)


@dataclass(slots=True)
class CallAction(Stmt):
    """A direct call of an action in a control's apply block; `body` is the inlined action."""

    name: str
    body: list[Stmt]


@dataclass(slots=True)
class SwitchStmt(Stmt):
    """A switch on a value: each case has its constants."""

    selector: Expr
    cases: list[tuple[list[Expr], list[Stmt]]]
    default: list[Stmt]


@dataclass(slots=True)
class Scope(Stmt):
    """Statements that `Leave(label)` leaves: the body of an inlined control, action or function."""

    label: int
    body: list[Stmt]


@dataclass(slots=True)
class Loop(Stmt):
    """While `cond`, which `setup` computes, holds: `body`.  `Leave(label)` ends the loop."""

    label: int
    setup: list[Stmt]
    cond: Expr
    body: list[Stmt]


@dataclass(slots=True)
class Leave(Stmt):
    label: int


@dataclass(slots=True)
class ExitStmt(Stmt):
    pass


@dataclass(slots=True)
class ParserOp(Stmt):
    """extract, advance, verify, ... with what each needs."""

    op: str
    params: list[PrimParam]


# control plane objects


@dataclass(slots=True)
class ActionParam:
    name: str
    type: t.Type
    annotations: list[ast.Annotation]


@dataclass(slots=True, eq=False)
class Action:
    """One use of an action by one table; `name` is shared by all uses, `decl` too."""

    name: str
    decl: ast.ActionDecl
    params: list[ActionParam]
    body: list[Stmt]
    id: int = -1


@dataclass(slots=True)
class Key:
    """`source` is the key as written; `name` what the control plane calls it."""

    name: str
    match_kind: str
    expr: Expr
    type: t.Type
    annotations: list[ast.Annotation]
    span: Span
    target: FieldRef | None = None
    mask: int | None = None


@dataclass(slots=True)
class Entry:
    """`priority` is P4's (`priority = n:`), `annotated_priority` that of the older `@priority`, where smaller wins."""

    keys: list[EntryKey]
    action: int
    args: list[Const]
    priority: int | None
    annotations: list[ast.Annotation]
    span: Span
    const: bool = True
    annotated_priority: int | None = None


@dataclass(slots=True)
class EntryKey:
    """`kind` is value, mask, range or any."""

    kind: str
    value: int = 0
    other: int = 0


@dataclass(slots=True)
class ActionRef:
    action: Action
    annotations: list[ast.Annotation]


@dataclass(slots=True, eq=False)
class Table:
    """`default` is the index of the default action in `actions`."""

    name: str
    decl: ast.TableDecl
    keys: list[Key]
    actions: list[ActionRef]
    default: int
    default_args: list[Const]
    default_const: bool
    size: int
    entries: list[Entry] | None
    entries_const: bool
    counter: Extern | None = None
    meter: Extern | None = None
    profile: Extern | None = None
    support_timeout: bool = False
    annotations: list[ast.Annotation] = field(default_factory=list)
    applied: bool = False
    applications: int = 0

    def silences(self, warning: str) -> bool:
        """Whether `@noWarn` on the table or on its entries turns this warning off."""
        found = [item for item in (*self.annotations, *self.decl.entries_annotations) if item.name == "noWarn"]
        return any(isinstance(arg, ast.StringLit) and arg.value == warning for item in found for arg in item.args)


@dataclass(slots=True, eq=False)
class Extern:
    """An instance of an extern; `args` are its constructor's arguments by parameter name."""

    name: str
    type: t.ExternRef
    args: dict[str, Expr]
    annotations: list[ast.Annotation]
    span: Span
    tables: list[Table] = field(default_factory=list)
    meter_result: FieldRef | None = None
    meter_read: Span | None = None  # of a direct meter
    in_table: bool = False


@dataclass(slots=True, eq=False)
class ValueSet:
    name: str
    decl: ast.ValueSetDecl
    element: t.Type
    size: int


@dataclass(slots=True)
class Digest:
    """A digest call's learn list."""

    id: int
    name: str
    type: t.Type
    fields: list[FieldRef]
    span: Span


@dataclass(slots=True)
class FieldList:
    id: int
    name: str
    fields: list[FieldRef]
    span: Span = NOWHERE


@dataclass(slots=True)
class Calculation:
    name: str
    algorithm: str
    inputs: list[Expr]
    with_payload: bool = False
    span: Span = NOWHERE


@dataclass(slots=True)
class Checksum:
    target: FieldRef
    calculation: str
    verify: bool
    update: bool
    condition: Expr
    span: Span


@dataclass(slots=True, eq=False)
class Instance:
    """A control or parser instance with everything it declares, in the order of the program.

    `members` are nested instances, actions, tables, externs and value sets, whether used or not.
    """

    name: str
    decl: ast.ControlDecl | ast.ParserDecl
    members: list[Instance | ActionMember | Table | Extern | ValueSet] = field(default_factory=list)
    applied: bool = False
    # actions of the top level that the tables and calls of this control use
    global_actions: list[ActionMember] = field(default_factory=list)


def members_of(instance: Instance) -> Iterator[ActionMember | Table | Extern | ValueSet]:
    """What an instance and the instances in it declare, as far as it is applied."""
    if not instance.applied:
        return
    for member in instance.members:
        if isinstance(member, Instance):
            yield from members_of(member)
        else:
            yield member


@dataclass(slots=True, eq=False)
class ActionMember:
    """An action of a control instance; `used` when a table or a call refers to it, `in_table` when a table does."""

    name: str
    decl: ast.ActionDecl
    used: bool = False
    in_table: bool = False


@dataclass(slots=True)
class Transition:
    """`keys` is None for default; `next` None for accept, "reject" is a state like any other."""

    keys: list[EntryKey] | None
    next: str | None
    value_set: ValueSet | None = None


@dataclass(slots=True)
class State:
    name: str
    ops: list[Stmt]
    select: list[Expr]
    transitions: list[Transition]
    span: Span


@dataclass(slots=True)
class ParserCall(Stmt):
    """Run an inlined parser: its states start at `start` and continue at `done`, which the state splitter makes."""

    start: str
    done: str


def leaves_scope(body: list[Stmt], label: int) -> bool:
    """Whether `Leave(label)` occurs in the statements."""
    return any(
        (isinstance(item, Leave) and item.label == label)
        or any(leaves_scope(branch, label) for branch in branches(item))
        for item in body
    )


def branches(item: Stmt) -> list[list[Stmt]]:
    """The statements inside a statement."""
    if isinstance(item, IfStmt):
        return [item.then, item.otherwise]
    if isinstance(item, Scope):
        return [item.body]
    if isinstance(item, Loop):
        return [item.setup, item.body]
    if isinstance(item, ApplyTable):
        return [item.hit, item.miss, item.default, *(item.cases or {}).values()]
    if isinstance(item, SwitchStmt):
        return [*(body for _, body in item.cases), item.default]
    return []

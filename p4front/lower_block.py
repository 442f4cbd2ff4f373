"""Instances of controls and parsers, and what applying a control does."""

from __future__ import annotations

from dataclasses import dataclass

from p4front import fold, ir
from p4front import p4types as t
from p4front import syntax as ast
from p4front.diagnostics import Span
from p4front.key_names import annotated_name, control_plane_name
from p4front.lower_expr import Env
from p4front.lower_table import TableInstance, TableLowering
from p4front.values import ObjectValue, Value

# What an extern of the program's own is made with, nobody reads.
ARCHITECTURE_EXTERNS = (
    "counter", "direct_counter", "meter", "direct_meter", "register", "action_profile", "action_selector",
)  # fmt: skip


@dataclass(slots=True, eq=False)
class BlockInstance:
    """One instance of a control or parser; `env` holds what it declares."""

    decl: ast.ControlDecl | ast.ParserDecl
    path: str
    env: Env
    node: ir.Instance
    applications: int = 0

    @property
    def params(self) -> list[t.Parameter]:
        """The parameters of `apply`."""
        return [t.Parameter(p.name, p.direction, p.type, p.default, p) for p in self.decl.params]


class BlockLowering(TableLowering):
    """Adds controls to the tables; parsers come with `ParserLowering`."""

    def __init__(self, *args: object) -> None:
        super().__init__(*args)
        self.globals = Env()
        self.dropped: set[ast.Instantiation] = set()
        self.instances: list[ir.Instance] = []
        self._pending: BlockInstance | None = None
        self._anonymous: dict[tuple[int, int], BlockInstance] = {}
        self.depth = 0
        self.current: BlockInstance | None = None  # what the architecture runs
        self.running: BlockInstance | None = None  # the control in it whose body is being inlined

    # instances

    def make_block(
        self, decl: ast.ControlDecl | ast.ParserDecl, path: str, args: list[ast.Expr | None], span: Span
    ) -> BlockInstance:
        """An instance with everything it declares, before anything is applied."""
        self.depth += 1
        if self.depth > 50:
            raise self.fail("instances are nested too deeply", span)
        env = Env(self.globals)
        for param, arg in zip(decl.ctor_params, args, strict=True):
            if arg is not None:
                env.bindings[param] = self.value(arg)
        block = BlockInstance(decl, path, env, ir.Instance(path, decl))
        outer, self.env = self.env, env
        for item in decl.locals:
            self._local(item, block)
        self.env = outer
        self.depth -= 1
        return block

    def _local(self, item: ast.Decl, block: BlockInstance) -> None:
        env, members = block.env, block.node.members
        if isinstance(item, ast.ActionDecl):
            member = ir.ActionMember(control_plane_name(block.path, item), item)
            members.append(member)
            env.bindings[item] = ObjectValue(t.VOID, (member, env))
        elif isinstance(item, ast.TableDecl):
            table = self.empty_table(item, block.path)
            members.append(table)
            env.bindings[item] = ObjectValue(t.TableType(item), TableInstance(item, block.path, table))
        elif isinstance(item, ast.Instantiation):
            value = self.make_instance(item, block.path)
            env.bindings[item] = value
            if item in self.dropped:
                return
            assert isinstance(value.target, ir.Extern | BlockInstance)
            members.append(value.target.node if isinstance(value.target, BlockInstance) else value.target)
        elif isinstance(item, ast.ValueSetDecl):
            size = fold.known(self.scalar(item.size))
            assert isinstance(item.type, t.SetType)
            name = control_plane_name(block.path, item)
            value_set = ir.ValueSet(name, item, item.type.element, size if isinstance(size, int) else 0)
            members.append(value_set)
            env.bindings[item] = ObjectValue(item.type, value_set)

    def make_instance(self, item: ast.Instantiation, path: str) -> ObjectValue:
        """An instance that a declaration names."""
        name = control_plane_name(path, item)
        if isinstance(item.type, t.ExternRef):
            return ObjectValue(item.type, self.make_extern(item.type, item.target, name, item.annotations, item.span))
        if isinstance(item.type, t.BlockType):
            return ObjectValue(item.type, self.make_block(item.type.decl, name, item.target.args, item.span))
        raise self.fail(f"{item.name}: this cannot be instantiated here", item.span)

    def make_extern(
        self, type_: t.ExternRef, target: object, name: str, annotations: list[ast.Annotation], span: Span
    ) -> ir.Extern:
        """An instance of an extern with the values of its constructor's arguments."""
        args: dict[str, ir.Expr] = {}
        known = type_.extern.name in ARCHITECTURE_EXTERNS
        for param, arg in zip(target.params, target.args, strict=True):  # type: ignore[attr-defined]
            if arg is not None and known:
                value = self.scalar(arg)
                if fold.known(value) is None:
                    raise self.fail(f"{param.name} must be a constant", arg.span)
                args[param.name] = value
        return ir.Extern(name, type_, args, annotations, span)

    def extern_in_place(self, item: ast.Property, call: ast.Call) -> ir.Extern:
        """`@name("n") implementation = action_profile(...)`: named by the property, as p4c does it."""
        if not isinstance(call.type, t.ExternRef):
            raise self.fail("an extern is expected here", call.span)
        name = annotated_name(item.annotations)
        if name is None:
            raise self.fail(f"'{item.name}' needs a @name, or an instance that has one", item.span)
        extern = self.make_extern(call.type, call.target, name, [], call.span)
        extern.in_table = True
        return extern

    # actions

    def action_used(self, decl: ast.ActionDecl, in_table: bool = False) -> None:
        """Note that an action is called, or listed by a table."""
        found = self.env.find(decl)
        if not (isinstance(found, ObjectValue) and isinstance(found.target, tuple)):
            return
        member, home = found.target
        member.used = True
        member.in_table = member.in_table or in_table
        if home is self.globals and self.current is not None and member not in self.current.node.global_actions:
            self.current.node.global_actions.append(member)

    def action_env(self, decl: ast.ActionDecl) -> Env:
        """The scope an action's body sees: that of the running application of its control."""
        found = self.env.find(decl)
        if isinstance(found, ObjectValue) and isinstance(found.target, tuple):
            home = found.target[1]
            env: Env | None = self.env
            while env is not None:
                if env.parent is home:
                    return env
                env = env.parent
            assert isinstance(home, Env)
            return home
        return self.globals

    def action_name(self, decl: ast.ActionDecl) -> str:
        """The control plane's name of an action."""
        found = self.env.find(decl)
        if isinstance(found, ObjectValue) and isinstance(found.target, tuple):
            name = found.target[0].name
            assert isinstance(name, str)
            return name
        return control_plane_name("", decl)

    # application

    def apply_block(self, call: ast.Call) -> None:
        """Run a control in place."""
        block = self.applied_block(call)
        if not isinstance(block.decl, ast.ControlDecl) or block.decl.body is None:
            raise self.fail("a parser cannot be applied here", call.span)
        env = Env(block.env)
        outs = self.bind(block.params, call.target.args, env, call.span, private=False)
        block.applications += 1
        block.node.applied = True
        self._pending = block
        outer, self.running = self.running, block
        self.inline(block.decl.body, env, outs, None, call.span)
        self.running = outer

    def applied_block(self, call: ast.Call) -> BlockInstance:
        """The instance a call applies; `Type.apply()` has an instance for each place it is written at."""
        receiver = call.target.receiver
        if isinstance(receiver.type, t.MetaType):
            assert self.current is not None
            key = (id(call), id(self.env.parent))
            if key not in self._anonymous:
                decl = call.target.decl
                name = self._anonymous_name(decl)
                self._anonymous[key] = self.make_block(decl, name, [], call.span)
                (self.running or self.current).node.members.append(self._anonymous[key].node)
            return self._anonymous[key]
        value = self.value(receiver)
        assert isinstance(value, ObjectValue)
        assert isinstance(value.target, BlockInstance)
        return value.target

    def _anonymous_name(self, decl: ast.Decl) -> str:
        assert self.current is not None
        return f"{(self.running or self.current).path}.{decl.name}"

    def prologue(self, env: Env) -> None:
        """The initialisers of the control that starts to run."""
        block, self._pending = self._pending, None
        if block is None:
            return
        self.initialise_locals(block)

    def initialise_locals(self, block: BlockInstance) -> None:
        """Variables of a control or parser: their places are made once, their values at each application."""
        for item in block.decl.locals:
            if isinstance(item, ast.VarDecl):
                place = block.env.bindings.get(item)
                if place is None:
                    place = self.layout.variable(item.type, item.name, item.name_span)
                    block.env.bindings[item] = place
                self.initialise(item, place)

    def run_control(self, block: BlockInstance, bindings: dict[ast.Decl, Value]) -> list[ir.Stmt]:
        """The statements of a control that the architecture runs."""
        assert isinstance(block.decl, ast.ControlDecl) and block.decl.body is not None
        env = Env(block.env)
        env.bindings.update(bindings)
        block.node.applied = True
        self.env, self.out, self.ended = env, [], False
        self.returns, self.copy_outs = [], []
        self.current = block
        self.initialise_locals(block)
        self.statements(block.decl.body.body)
        return self.out

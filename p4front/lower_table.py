"""Tables to IR: keys, actions with their bodies, properties, entries."""

from __future__ import annotations

from dataclasses import dataclass, field

from p4front import fold, ir
from p4front import p4types as t
from p4front import syntax as ast
from p4front.diagnostics import Span
from p4front.key_names import control_plane_name, key_name
from p4front.lower_expr import Env
from p4front.lower_loop import LoopLowering
from p4front.values import ObjectValue, SlicePlace

DEFAULT_TABLE_SIZE = 1024


@dataclass(slots=True, eq=False)
class TableInstance:
    """A table of one control instance; `table` is made at its first application."""

    decl: ast.TableDecl
    path: str
    member: ir.Table
    ready: bool = False
    key_places: dict[int, ir.FieldRef] = field(default_factory=dict)


class TableLowering(LoopLowering):
    """Adds tables to the statements."""

    no_action: ast.ActionDecl | None = None

    def apply_table(self, call: ast.Call) -> ir.ApplyTable:
        """Make the table if this is its first application, then its keys' values."""
        value = self.value(call.target.receiver)
        assert isinstance(value, ObjectValue)
        instance = value.target
        assert isinstance(instance, TableInstance)
        if not instance.ready:
            instance.ready = True
            self._elaborate(instance)
        instance.member.applied = True
        instance.member.applications += 1
        for position, key in enumerate(instance.decl.keys):
            self._key_value(instance, position, key)
        return ir.ApplyTable(call.span, instance.member)

    def empty_table(self, decl: ast.TableDecl, path: str) -> ir.Table:
        """A table that nothing applies so far."""
        name = control_plane_name(path, decl)
        return ir.Table(
            name, decl, [], [], 0, [], False, DEFAULT_TABLE_SIZE, None, decl.entries_const,
            annotations=decl.annotations,
        )  # fmt: skip

    # keys

    def _key_value(self, instance: TableInstance, position: int, key: ast.KeyElement) -> None:
        made = instance.member.keys[position] if position < len(instance.member.keys) else None
        value = self.value(key.expr)
        if isinstance(value, SlicePlace):
            value = fold.slice_bits(value.base, value.high, value.low)
        if not isinstance(value, ir.Expr):
            raise self.fail(f"a key cannot have type '{key.expr.type}'", key.span)
        target, mask = _field_and_mask(value)
        if target is None:
            target = instance.key_places.get(position)
            if target is None:
                target = self.layout.scalar(value.type, self.layout.unique("key"), key.span)
                instance.key_places[position] = target
            self.assign(target, value, key.span)
            mask = None
        if made is None:
            name = key_name(key)
            if name is None:
                raise self.fail("this key needs a @name annotation", key.span)
            # A selector's key has no name in the control plane.
            named = [other.name for other in instance.member.keys if other.match_kind != "selector"]
            if key.match_kind.name != "selector" and name in named:
                self.diagnostics.error(f"two keys are named {name!r}; give one another @name", key.span)
            instance.member.keys.append(
                ir.Key(name, key.match_kind.name, value, key.expr.type, key.annotations, key.span, target, mask)
            )

    # actions

    def _elaborate(self, instance: TableInstance) -> None:
        decl, table = instance.decl, instance.member
        default = decl.properties.get("default_action")
        references = list(decl.actions)
        for reference in references:
            made = self._action(reference)
            table.actions.append(ir.ActionRef(made, reference.annotations))
        if default is not None:
            call = default.value
            assert isinstance(call, ast.Call) and isinstance(call.func, ast.Name)
            table.default = references.index(call.func.decl)
            table.default_args = self._arguments(call)
            table.default_const = default.const
        else:
            table.default = self._implicit_default(table, decl.name_span)
        self._properties(instance)
        if decl.entries is not None:
            # keys must be known before entries can be read
            table.entries = []
            for entry in decl.entries:
                table.entries.append(self._entry(entry, decl))

    def _implicit_default(self, table: ir.Table, span: Span) -> int:
        """`NoAction`, which the table gets if it does not have it."""
        assert self.no_action is not None
        for position, reference in enumerate(table.actions):
            if reference.action.decl is self.no_action:
                return position
        annotation = ast.Annotation(span, "defaultonly")
        made = ir.Action("NoAction", self.no_action, [], [])
        self.action_used(self.no_action, in_table=True)
        table.actions.append(ir.ActionRef(made, [annotation]))
        return len(table.actions) - 1

    def _action(self, reference: ast.ActionRef) -> ir.Action:
        decl = reference.name.decl
        assert isinstance(decl, ast.ActionDecl)
        self.action_used(decl, in_table=True)
        env = Env(self.action_env(decl))
        outer, self.out = self.out, []
        ended, self.ended = self.ended, False
        directed = [param for param in decl.params if param.direction]
        params = [t.Parameter(p.name, p.direction, p.type, p.default, p) for p in directed]
        outs = self.bind(params, reference.target or [], env, reference.span, private=True)
        made = ir.Action(self.action_name(decl), decl, [], [])
        for param in decl.params:
            if not param.direction:
                width = t.bit_width(param.type)
                if width is None:
                    raise self.fail(f"{param.name}: the control plane cannot give a '{param.type}'", param.span)
                env.bindings[param] = ir.RuntimeData(param.type, len(made.params))
                made.params.append(ir.ActionParam(param.name, param.type, param.annotations))
        in_action, self.in_action = self.in_action, True
        self.inline(decl.body, env, outs, None, reference.span)
        self.in_action = in_action
        made.body, self.out = self.out, outer
        self.ended = ended
        return made

    def action_name(self, decl: ast.ActionDecl) -> str:
        """The control plane's name of an action."""
        raise NotImplementedError

    def _arguments(self, call: ast.Call) -> list[ir.Const]:
        found: list[ir.Const] = []
        for arg in call.target:
            value = None if arg is None else self.scalar(arg)
            known = None if value is None else fold.known(value)
            if value is None or not isinstance(known, int):
                raise self.fail("the arguments of an action must be constants here", call.span)
            found.append(ir.Const(value.type, int(known)))
        return found

    # properties

    def _properties(self, instance: TableInstance) -> None:
        decl, table = instance.decl, instance.member
        for item in decl.properties.values():
            if item.name == "size":
                size = fold.known(self.scalar(item.value))
                if not isinstance(size, int) or size < 0:
                    raise self.fail("the size of a table must be a positive number", item.span)
                table.size = size or DEFAULT_TABLE_SIZE
            elif item.name == "support_timeout":
                table.support_timeout = bool(fold.known(self.scalar(item.value)))
            elif item.name == "counters":
                table.counter = self._extern(item, table, ("direct_counter",))
            elif item.name == "meters":
                table.meter = self._extern(item, table, ("direct_meter",))
            elif item.name == "implementation":
                table.profile = self._extern(item, table, ("action_profile", "action_selector"))

    def _extern(self, item: ast.Property, table: ir.Table, kinds: tuple[str, ...]) -> ir.Extern:
        if isinstance(item.value, ast.Call) and item.value.target is not None:
            extern = self.extern_in_place(item, item.value)
        else:
            value = self.value(item.value)
            target = value.target if isinstance(value, ObjectValue) else None
            if not isinstance(target, ir.Extern):
                raise self.fail(f"'{item.name}' needs an instance of {' or '.join(kinds)}", item.span)
            extern = target
        if extern.type.extern.name not in kinds:
            raise self.fail(f"'{item.name}' needs an instance of {' or '.join(kinds)}", item.span)
        if extern.tables and not kinds[0].startswith("action"):
            raise self.fail(f"{extern.name} is attached to table {extern.tables[0].name} already", item.span)
        extern.tables.append(table)
        return extern

    def extern_in_place(self, item: ast.Property, call: ast.Call) -> ir.Extern:
        """An extern that is constructed in a table's property."""
        raise NotImplementedError

    # entries

    def _entry(self, entry: ast.Entry, decl: ast.TableDecl) -> ir.Entry:
        call = entry.action
        assert isinstance(call, ast.Call) and isinstance(call.func, ast.Name)
        keys = [self.entry_key(key, element.expr.type) for key, element in zip(entry.keys, decl.keys, strict=True)]
        priority = None
        if entry.priority is not None:
            value = fold.known(self.scalar(entry.priority))
            priority = value if isinstance(value, int) else None
        annotation = ast.annotation(entry.annotations, "priority")
        annotated = None
        if annotation is not None and annotation.args and isinstance(annotation.args[0], ast.IntLit):
            annotated = annotation.args[0].value
        position = decl.actions.index(call.func.decl)
        const = entry.const or decl.entries_const
        args = self._arguments(call)
        return ir.Entry(keys, position, args, priority, entry.annotations, entry.span, const, annotated)

    def entry_key(self, key: ast.Expr, type_: t.Type) -> ir.EntryKey:
        """One key of an entry or a select case."""
        if isinstance(key, ast.Default):
            return ir.EntryKey("any")
        if isinstance(key, ast.Mask):
            return ir.EntryKey("mask", self._key_constant(key.value), self._key_constant(key.mask))
        if isinstance(key, ast.Range):
            return ir.EntryKey("range", self._key_constant(key.low), self._key_constant(key.high))
        if isinstance(key, ast.Cast) and isinstance(key.expr, ast.Mask | ast.Range):
            return self.entry_key(key.expr, type_)
        return ir.EntryKey("value", self._key_constant(key))

    def _key_constant(self, key: ast.Expr) -> int:
        value = fold.known(self.scalar(key))
        if not isinstance(value, int):
            raise self.fail("a key must be a constant", key.span)
        base = t.representation(key.type)
        if isinstance(base, t.BitType):
            return value & ((1 << base.width) - 1)
        return int(value)


def _field_and_mask(value: ir.Expr) -> tuple[ir.FieldRef | None, int | None]:
    """A field that BMv2 can match on, with a mask for `field & constant`."""
    if isinstance(value, ir.FieldRef) and not isinstance(value.type, t.VarbitType):
        return value, None
    if isinstance(value, ir.Op) and value.op == "&":
        for one, other in (value.args, value.args[::-1]):
            mask = fold.known(other)
            if isinstance(one, ir.FieldRef) and isinstance(mask, int) and mask:
                return one, mask
    return None, None



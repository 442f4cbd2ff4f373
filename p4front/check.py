"""The checker: names, types and rules of a whole program.

After `check` every expression has a type, every name its declaration, every call its target; or `CompileError`.
"""

from __future__ import annotations

from p4front import p4types as t
from p4front import syntax as ast
from p4front.check_generic import GenericChecker
from p4front.diagnostics import Diagnostics

_SELECTABLE = (t.BOOL, t.ERROR)


def check(program: ast.Program, diagnostics: Diagnostics) -> Checker:
    """Check a program; the checker knows the error codes and the constants afterwards."""
    checker = Checker(diagnostics)
    for decl in program.declarations:
        checker.recover(checker.declaration, decl)
    diagnostics.check()
    return checker


class Checker(GenericChecker):
    """Adds declarations to the statements."""

    def declaration(self, decl: ast.Decl) -> None:
        """One top-level declaration."""
        method = getattr(self, "_decl_" + type(decl).__name__)
        method(decl)

    def _decl_ConstDecl(self, decl: ast.ConstDecl) -> None:
        self.const(decl)

    def _decl_TypedefDecl(self, decl: ast.TypedefDecl) -> None:
        self.typedef(decl)

    def _decl_StructDecl(self, decl: ast.StructDecl) -> None:
        self.struct(decl)

    def _decl_EnumDecl(self, decl: ast.EnumDecl) -> None:
        self.enum(decl)

    def _decl_ErrorDecl(self, decl: ast.ErrorDecl) -> None:
        self.error_codes(decl)

    def _decl_MatchKindDecl(self, decl: ast.MatchKindDecl) -> None:
        self.match_kind_names(decl)

    def _decl_ExternDecl(self, decl: ast.ExternDecl) -> None:
        self.extern(decl)

    def _decl_Instantiation(self, decl: ast.Instantiation) -> None:
        self.instantiation(decl)
        if isinstance(decl.type, t.BlockType):
            self.error(f"{decl.name}: a {decl.type.kind} cannot be instantiated at the top level", decl.name_span)

    def _decl_FunctionDecl(self, decl: ast.FunctionDecl) -> None:
        if decl.body is not None and decl.type_params:
            self.keep_generic(decl)
        self.declare(decl)
        self.scopes.append({})
        try:
            function = self.signature(decl, "extern" if decl.body is None else "function")
            if decl.body is not None and not decl.type_params:
                self.context, self.return_type = "function", function.result
                self.block(decl.body)
                self._returns(decl, function)
        finally:
            self.context, self.return_type = "", None
            self.scopes.pop()

    def _returns(self, decl: ast.FunctionDecl, function: t.FunctionType) -> None:
        assert decl.body is not None
        if function.result != t.VOID and not _always_returns(decl.body):
            self.error(f"{decl.name}: not every path returns a value", decl.name_span)

    def _decl_PackageDecl(self, decl: ast.PackageDecl) -> None:
        self.scopes.append({})
        variables = self.type_vars(decl.type_params)
        params = self.parameters(decl.params)
        self.scopes.pop()
        decl.type = t.PackageType(decl.name, variables, params, decl)
        self.declare(decl)

    def _decl_ActionDecl(self, decl: ast.ActionDecl) -> None:
        self.action(decl)

    # controls

    def action(self, decl: ast.ActionDecl) -> None:
        """An action: parameters without direction come last, the control plane gives them."""
        self.scopes.append({})
        params = self.parameters(decl.params)
        directionless = False
        for param in params:
            if param.direction and directionless:
                self.error(f"{param.name}: parameters with a direction must come first in an action", decl.name_span)
            directionless = directionless or not param.direction
        outer, self.context = self.context, "action"
        self.block(decl.body)
        self.context = outer
        self.scopes.pop()
        self.declare(decl)

    def _decl_ControlDecl(self, decl: ast.ControlDecl) -> None:
        generic = decl.body is not None and bool(decl.type_params)
        if generic:
            self.keep_generic(decl)
        self.scopes.append({})
        variables = self.type_vars(decl.type_params)
        params = self.parameters(decl.params)
        ctor = self.parameters(decl.ctor_params, directions=False)
        decl.type = t.BlockType(decl.name, "control", variables, params, ctor, decl, decl.body is not None)
        if decl.body is not None and not generic:
            self.context = "control"
            self.scopes.append({})
            for item in decl.locals:
                self.recover(self._control_local, item)
            self.block(decl.body)
            self.scopes.pop()
            self.context = ""
        self.scopes.pop()
        self.declare(decl)

    def _control_local(self, item: ast.Decl) -> None:
        if isinstance(item, ast.ActionDecl):
            self.action(item)
        elif isinstance(item, ast.TableDecl):
            self.table(item)
        elif isinstance(item, ast.Instantiation):
            self.instantiation(item)
        else:
            self.statement(item)

    def table(self, decl: ast.TableDecl) -> None:
        """A table: keys, actions, properties and entries."""
        self.declare(decl)
        for key in decl.keys:
            self.recover(self._key, key)
        for ref in decl.actions:
            self.recover(self._action_ref, ref, decl)
        for item in decl.properties.values():
            self.recover(self._property, item, decl)
        for entry in decl.entries or ():
            self.recover(self._entry, entry, decl)

    def _key(self, key: ast.KeyElement) -> None:
        key.expr = self.value(key.expr)
        if key.match_kind.name not in self.match_kinds:
            raise self.fail(f"{key.match_kind.name} is not a match_kind", key.match_kind.span)
        if t.bit_width(key.expr.type) is None and not isinstance(key.expr.type, t.VarbitType):
            if key.expr.type == t.INT:
                raise self.fail("a key needs a width", key.expr.span)
            if key.expr.type != t.UNKNOWN:
                raise self.fail(f"a key cannot have type '{key.expr.type}'", key.expr.span)

    def _action_ref(self, ref: ast.ActionRef, table: ast.TableDecl) -> None:
        action = self.lookup(ref.name.name, ref.name.absolute)
        if not isinstance(action, ast.ActionDecl):
            problem = "declaration not found" if action is None else "not an action"
            hint = self.suggestion(ref.name.name) if action is None else ""
            raise self.fail(f"{ref.name.name}: {problem}{hint}", ref.span)
        ref.name.decl = action
        if any(other.name.decl is action for other in table.actions if other is not ref):
            self.error(f"{ref.name.name} is in the list already", ref.span)
        for argument in ref.args:
            if argument.expr is not None:
                argument.expr = self.expr(argument.expr)
        directed = [_parameter(param) for param in action.params if param.direction]
        ref.target = self.bind(directed, ref.args, action.name, ref.span, {})

    def _property(self, item: ast.Property, table: ast.TableDecl) -> None:
        if item.name == "default_action":
            item.value = self._table_action(item.value, table, "tableonly")
            return
        value = self.expr(item.value)
        if item.name in ("size", "counters", "meters", "implementation", "support_timeout"):
            item.value = value
            if item.name == "size" and not _is_constructor_parameter(value):
                self.int_constant(value, "the size of a table")
        else:
            item.value = value
            if item.name not in ("largest_priority_wins", "priority_delta"):
                self.diagnostics.warning("ignore-prop", f"unknown table property {item.name!r}", item.span)

    def _table_action(self, expr: ast.Expr, table: ast.TableDecl, forbidden: str) -> ast.Expr:
        """The action of a default or of an entry, with values for the control plane's parameters.

        `forbidden` is the annotation that an action of the list must not have to be used here.
        """
        call = expr if isinstance(expr, ast.Call) else None
        name = call.func if call is not None else expr
        ref = None
        if isinstance(name, ast.Name):
            action = self.lookup(name.name, name.absolute)
            ref = next((ref for ref in table.actions if ref.name.decl is action and action is not None), None)
        if ref is None or not isinstance(name, ast.Name):
            shown = f"'{name.name}'" if isinstance(name, ast.Name) else "this"
            raise self.fail(f"{shown} is not an action of the table", expr.span)
        if ast.has_annotation(ref.annotations, forbidden):
            raise self.fail(f"{ref.name.name} is @{forbidden} in this table", expr.span)
        action = ref.name.decl
        name.decl, name.type = ref, t.FunctionType(action.name, "action", (), [], t.VOID, action)
        args = call.args if call is not None else []
        for argument in args:
            if argument.expr is not None:
                argument.expr = self.expr(argument.expr)
        directed = sum(bool(param.direction) for param in action.params)
        params = [_parameter(param) for param in action.params]
        if len(args) == len(params) - directed and directed:
            params = params[directed:]
            directed = 0
        bound = self.bind(params, args, action.name, expr.span, {})
        result = call if call is not None else ast.Call(expr.span, name, [], [])
        result.target, result.type = bound[directed:], t.VOID
        return result

    def _entry(self, entry: ast.Entry, table: ast.TableDecl) -> None:
        if len(entry.keys) == 1 and isinstance(entry.keys[0], ast.ListExpr):
            entry.keys = entry.keys[0].items
        whole = len(entry.keys) == 1 and isinstance(entry.keys[0], ast.Default)
        if whole and len(table.keys) != 1:
            entry.keys = [ast.Default(entry.keys[0].span) for _ in table.keys]
        if len(entry.keys) != len(table.keys):
            raise self.fail(f"{len(table.keys)} keys expected, {len(entry.keys)} given", entry.span)
        for position, key in enumerate(table.keys):
            entry.keys[position] = self.keyset(entry.keys[position], key.expr.type)
        if entry.priority is not None:
            entry.priority = self.expr(entry.priority)
            self.int_constant(entry.priority, "a priority")
        entry.action = self._table_action(entry.action, table, "defaultonly")

    def keyset(self, expr: ast.Expr, to: t.Type) -> ast.Expr:
        """One key of an entry or of a select case, for an expression of type `to`."""
        checked = self.expr(expr)
        base = t.representation(to)
        if isinstance(checked, ast.Mask):
            checked.value = self._key_part(checked.value, to, base)
            checked.mask = self._key_part(checked.mask, to, base)
            checked.type = t.SetType(to)
            return checked
        if isinstance(checked, ast.Range):
            checked.low = self._key_part(checked.low, to, base)
            checked.high = self._key_part(checked.high, to, base)
            checked.type = t.SetType(to)
            return checked
        if isinstance(checked.type, t.SetType):
            return checked
        return self._key_part(checked, to, base)

    def _key_part(self, expr: ast.Expr, to: t.Type, base: t.Type) -> ast.Expr:
        if isinstance(expr.type, t.SetType) and isinstance(expr, ast.Cast | ast.Name):
            return expr
        if expr.type == t.INT and isinstance(base, t.BitType):
            return self.convert(expr, base)
        if t.representation(expr.type) == base and isinstance(to, t.EnumType | t.NewType):
            return expr
        return self.convert(expr, to, "the key")

    # parsers

    def _decl_ParserDecl(self, decl: ast.ParserDecl) -> None:
        generic = decl.states is not None and bool(decl.type_params)
        if generic:
            self.keep_generic(decl)
        self.scopes.append({})
        variables = self.type_vars(decl.type_params)
        params = self.parameters(decl.params)
        ctor = self.parameters(decl.ctor_params, directions=False)
        decl.type = t.BlockType(decl.name, "parser", variables, params, ctor, decl, decl.states is not None)
        if decl.states is not None and not generic:
            self.context = "parser"
            self.scopes.append({})
            self._parser_body(decl, decl.states)
            self.scopes.pop()
            self.context = ""
        self.scopes.pop()
        self.declare(decl)

    def _parser_body(self, decl: ast.ParserDecl, states: list[ast.StateDecl]) -> None:
        for item in decl.locals:
            if isinstance(item, ast.ValueSetDecl):
                self.recover(self._value_set, item)
            elif isinstance(item, ast.Instantiation):
                self.recover(self.instantiation, item)
            else:
                self.recover(self.statement, item)
        names: dict[str, ast.StateDecl] = {}
        for state in states:
            if state.name in names or state.name in ("accept", "reject"):
                self.error(f"{state.name}: duplicate state", state.name_span)
            names[state.name] = state
        if "start" not in names:
            self.error(f"parser {decl.name} has no state 'start'", decl.name_span)
        for state in states:
            self.scopes.append({})
            self.statements(state.body)
            if isinstance(state.next, ast.Name):
                self._state_name(state.next, names)
            elif isinstance(state.next, ast.Select):
                self.recover(self._select, state.next, names)
            self.scopes.pop()

    def _value_set(self, decl: ast.ValueSetDecl) -> None:
        element = self.resolve(decl.type_node)
        decl.type = t.SetType(element)
        decl.size = self.expr(decl.size)
        self.int_constant(decl.size, "the size of a value_set")
        self.declare(decl)

    def _state_name(self, name: ast.Name, names: dict[str, ast.StateDecl]) -> None:
        name.type = t.STATE
        if name.name in ("accept", "reject"):
            return
        name.decl = names.get(name.name)
        if name.decl is None:
            import difflib

            close = difflib.get_close_matches(name.name, names, 1)
            hint = f"; did you mean {close[0]!r}?" if close else ""
            self.error(f"there is no state {name.name!r}{hint}", name.span)

    def _select(self, select: ast.Select, names: dict[str, ast.StateDecl]) -> None:
        for case in select.cases:
            self._state_name(case.state, names)
        if len(select.exprs) == 1:
            checked = self.value(select.exprs[0])
            select.exprs = list(checked.items) if isinstance(checked, ast.ListExpr) else [checked]
        else:
            select.exprs = [self.value(expr) for expr in select.exprs]
        for expr in select.exprs:
            base = t.representation(expr.type)
            if expr.type == t.INT:
                raise self.fail("select needs an expression with a width", expr.span)
            aggregate = isinstance(base, t.EnumType | t.StructType | t.TupleType | t.ListType)
            if not (aggregate or isinstance(base, t.BitType) or base in (*_SELECTABLE, t.UNKNOWN)):
                raise self.fail(f"select on '{expr.type}' is not possible", expr.span)
        for case in select.cases:
            self.recover(self._select_case, case, select)

    def _select_case(self, case: ast.SelectCase, select: ast.Select) -> None:
        count = len(select.exprs)
        if len(case.keys) == 1:
            key = case.keys[0]
            if isinstance(key, ast.Default):
                case.keys = [ast.Default(key.span) for _ in range(count)]
            elif isinstance(key, ast.ListExpr) and count > 1:
                case.keys = key.items
            elif count > 1:
                checked = self.expr(key)
                if isinstance(checked.type, t.SetType):
                    case.keys = [checked]
                    return
        if len(case.keys) != count:
            raise self.fail(f"{count} keys expected, {len(case.keys)} given", case.span)
        case.keys = [self.keyset(key, expr.type) for key, expr in zip(case.keys, select.exprs, strict=True)]


def _parameter(param: ast.Param) -> t.Parameter:
    return t.Parameter(param.name, param.direction, param.type, param.default, param)


def _is_constructor_parameter(value: ast.Expr) -> bool:
    """A value that is known when the control is instantiated."""
    inner = value.expr if isinstance(value, ast.Cast) else value
    return isinstance(inner, ast.Name) and isinstance(inner.decl, ast.Param) and not inner.decl.direction


def _always_returns(stmt: ast.Stmt | ast.Decl | None) -> bool:
    if isinstance(stmt, ast.Return | ast.Exit):
        return True
    if isinstance(stmt, ast.Block):
        return any(_always_returns(item) for item in stmt.body)
    if isinstance(stmt, ast.If):
        return stmt.otherwise is not None and _always_returns(stmt.then) and _always_returns(stmt.otherwise)
    if isinstance(stmt, ast.Switch):
        has_default = any(isinstance(case.label, ast.Default) for case in stmt.cases)
        return has_default and all(case.body is None or _always_returns(case.body) for case in stmt.cases)
    return False

"""Statements: assignments, conditions, switches, returns."""

from __future__ import annotations

from p4front import p4types as t
from p4front import syntax as ast
from p4front.check_calls import CallChecker


class StatementChecker(CallChecker):
    """Adds statements to the calls; an error in one statement does not hide errors in the next."""

    def block(self, block: ast.Block) -> None:
        """A block with its own scope."""
        self.scopes.append({})
        self.statements(block.body)
        self.scopes.pop()

    def statements(self, body: list[ast.Stmt | ast.Decl]) -> None:
        """Statements in the current scope."""
        for item in body:
            self.recover(self.statement, item)

    def statement(self, item: ast.Stmt | ast.Decl) -> None:
        """One statement."""
        method = getattr(self, "_stmt_" + type(item).__name__, None)
        if method is None:
            raise self.fail("this declaration is not allowed here", item.span)
        method(item)

    def _stmt_Block(self, block: ast.Block) -> None:
        self.block(block)

    def _stmt_Empty(self, stmt: ast.Empty) -> None:
        pass

    def _stmt_Assign(self, stmt: ast.Assign) -> None:
        target = self.recover(self.lvalue, stmt.target)
        if stmt.op != "=":
            if target is None:
                return
            stmt.place = ast.VarDecl(target.span, "", target.span, [], ast.DontCareType(target.span), None)
            stmt.place.type = target.type
            read = ast.Name(target.span, "", decl=stmt.place)
            read.type = target.type
            combined = ast.Binary(stmt.span, stmt.op, read, stmt.value)
            stmt.value = self.convert(self.value(combined), target.type, "the assignment")
        else:
            value = self.value(stmt.value)
            if target is None:
                return
            stmt.value = self.convert(value, target.type, "the assignment")
        stmt.target = target

    def _stmt_CallStmt(self, stmt: ast.CallStmt) -> None:
        self.expr(stmt.call)
        target = stmt.call.target
        if target is not None and target.kind == "constructor":
            raise self.fail("an instance needs a name", stmt.span)

    def _stmt_If(self, stmt: ast.If) -> None:
        cond = self.recover(self.typed, stmt.cond, t.BOOL, "the condition")
        stmt.cond = cond or stmt.cond
        self.scopes.append({})
        self.statement(stmt.then)
        self.scopes.pop()
        if stmt.otherwise is not None:
            self.scopes.append({})
            self.statement(stmt.otherwise)
            self.scopes.pop()

    def _stmt_For(self, stmt: ast.For) -> None:
        self.scopes.append({})
        self.statements(stmt.start)
        stmt.cond = self.recover(self.typed, stmt.cond, t.BOOL, "the condition") or stmt.cond
        self.statements(list(stmt.step))
        self._loop_body(stmt.body)
        self.scopes.pop()

    def _stmt_ForIn(self, stmt: ast.ForIn) -> None:
        self.scopes.append({})
        variable = stmt.variable
        self._stmt_VarDecl(variable)
        self.written.add(variable)
        to = variable.type
        if isinstance(stmt.source, ast.Range):
            if not isinstance(t.representation(to), t.BitType):
                raise self.fail(f"{variable.name}: a loop over a range needs a number, not '{to}'", variable.span)
            stmt.source.low = self.typed(stmt.source.low, to, "the range")
            stmt.source.high = self.typed(stmt.source.high, to, "the range")
        else:
            stmt.source = self.value(stmt.source)
            have = stmt.source.type
            if isinstance(stmt.source, ast.ListExpr):
                stmt.source.items = [self.convert(item, to, "the loop") for item in stmt.source.items]
            elif not isinstance(have, t.StackType | t.TupleType) or any(item != to for item in _elements(have)):
                raise self.fail(f"a loop over '{have}' has no elements of type '{to}'", stmt.source.span)
        self._loop_body(stmt.body)
        self.scopes.pop()

    def _loop_body(self, body: ast.Stmt) -> None:
        self.loops += 1
        self.scopes.append({})
        self.recover(self.statement, body)
        self.scopes.pop()
        self.loops -= 1

    def _stmt_Break(self, stmt: ast.Break) -> None:
        if not self.loops:
            raise self.fail("'break' is not in a loop", stmt.span)

    def _stmt_Continue(self, stmt: ast.Continue) -> None:
        if not self.loops:
            raise self.fail("'continue' is not in a loop", stmt.span)

    def _stmt_Switch(self, stmt: ast.Switch) -> None:
        stmt.expr = self.value(stmt.expr)
        have = stmt.expr.type
        seen: set[object] = set()
        for position, case in enumerate(stmt.cases):
            label = case.label
            if isinstance(label, ast.Default):
                label.type = t.DONT_CARE
                key: object = "default"
                if position != len(stmt.cases) - 1:
                    self.error("'default' must be the last case of a switch", label.span)
            elif isinstance(have, t.ActionEnumType):
                key = self._action_label(label, have)
            else:
                case.label = label = self.typed(label, have, "the case of a switch")
                key = self.constant(label)
                if key is None and not self._is_symbol(label):
                    self.error("the case of a switch must be a constant", label.span)
                key = label.name if key is None and isinstance(label, ast.Member) else key
            if key in seen:
                self.error("this case is in the switch already", label.span)
            seen.add(key)
            if case.body is not None:
                self.block(case.body)

    def _action_label(self, label: ast.Expr, have: t.ActionEnumType) -> object:
        if not isinstance(label, ast.Name):
            raise self.fail("the case of this switch must be an action of the table", label.span)
        label.type = have
        label.decl = next((ref for ref in have.table.decl.actions if ref.name.name == label.name), None)
        if label.decl is None:
            raise self.fail(f"{label.name} is not an action of table {have.table.decl.name}", label.span)
        return label.name

    def _stmt_Return(self, stmt: ast.Return) -> None:
        if self.context == "parser":
            raise self.fail("'return' is not allowed in a parser", stmt.span)
        if stmt.value is not None:
            if self.return_type is None or self.return_type == t.VOID:
                raise self.fail("there is no value to return here", stmt.span)
            stmt.value = self.typed(stmt.value, self.return_type, "the returned value")
        elif self.return_type not in (None, t.VOID):
            raise self.fail("a value must be returned", stmt.span)

    def _stmt_Exit(self, stmt: ast.Exit) -> None:
        if self.context in ("parser", "function"):
            raise self.fail(f"'exit' is not allowed in a {self.context}", stmt.span)

    def _stmt_ConstDecl(self, decl: ast.ConstDecl) -> None:
        self.const(decl)

    def const(self, decl: ast.ConstDecl) -> None:
        """A constant: its value must be known."""
        decl.type = t.UNKNOWN
        self.declare(decl)
        to = self.resolve(decl.type_node)
        decl.value = self.typed(decl.value, to, f"constant {decl.name}")
        decl.type = to
        if t.bit_width(to) is not None and self.constant(decl.value) is None and not self._is_symbol(decl.value):
            self.error(f"the value of {decl.name} is not known at compile time", decl.value.span)

    def _is_symbol(self, expr: ast.Expr) -> bool:
        """An enum member or error, which is constant without being a number."""
        return isinstance(expr, ast.Member) and isinstance(expr.type, t.EnumType | t.SimpleType)

    def _stmt_VarDecl(self, decl: ast.VarDecl) -> None:
        decl.type = t.UNKNOWN
        try:
            to = self.resolve(decl.type_node)
            objects = isinstance(to, t.ExternRef | t.BlockType | t.PackageType)
            if objects or to in (t.INT, t.STRING, t.VOID, t.MATCH_KIND):
                raise self.fail(f"{decl.name}: a variable cannot have type '{to}'", decl.type_node.span)
            if decl.value is not None:
                decl.value = self.typed(decl.value, to, f"the value of {decl.name}")
            decl.type = to
        finally:
            self.declare(decl)

    def instantiation(self, decl: ast.Instantiation) -> None:
        """An instance of an extern, parser, control or package."""
        decl.type = t.UNKNOWN
        try:
            of = self.resolve(decl.type_node)
            for argument in decl.args:
                if argument.expr is not None:
                    argument.expr = self.expr(argument.expr)
            decl.target, decl.type = self.constructor(of, (), decl.args, decl.span)
        finally:
            self.declare(decl)

    def _stmt_Instantiation(self, decl: ast.Instantiation) -> None:
        if self.context != "parser":
            raise self.fail(f"{decl.name}: an instance cannot be made among statements", decl.span)
        self.instantiation(decl)


def _elements(of: t.StackType | t.TupleType) -> tuple[t.Type, ...]:
    return (of.element,) if isinstance(of, t.StackType) else of.items

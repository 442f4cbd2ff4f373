"""Statements of the grammar."""

from __future__ import annotations

from p4front import syntax as ast
from p4front.diagnostics import Abort
from p4front.parser_base import BASE_TYPES
from p4front.parser_expr import ExpressionParser

_ASSIGN_OPS = frozenset(("=", "+=", "-=", "*=", "/=", "%=", "&=", "|=", "^=", "<<=", "|+|=", "|-|="))


class StatementParser(ExpressionParser):
    """Recursive descent; an error skips to the end of the statement and parsing goes on."""

    # BNF: block : annotations '{' (statement | declaration)* '}'
    def block(self, annotations: list[ast.Annotation] | None = None) -> ast.Block:
        """A block with a scope of its own."""
        start = self.expect("{").start
        self.scopes.append({})
        body = self.statements("}")
        self.scopes.pop()
        self.expect("}")
        return ast.Block(self.since(start), body, annotations or [])

    def statements(self, *ends: str) -> list[ast.Stmt | ast.Decl]:
        """Statements up to one of `ends`."""
        body: list[ast.Stmt | ast.Decl] = []
        scopes = len(self.scopes)
        while self.token.kind != "eof" and self.token.text not in ends:
            index, depth = self.index, self.depth
            try:
                body.append(self.statement())
            except Abort:
                self.depth = depth
                del self.scopes[scopes:]
                self.skip_to(index, *ends)
                if self.index == index:
                    self.advance()
        return body

    # BNF: statement : block | if | switch | for | 'break' ';' | 'continue' ';' | 'return' expression? ';' | 'exit' ';'
    #                | ';' | declaration | lvalue assignment-operator expression ';' | call ';'
    def statement(self) -> ast.Stmt | ast.Decl:
        """One statement or local declaration."""
        self.enter()
        result = self._statement()
        self.leave()
        return result

    def _statement(self) -> ast.Stmt | ast.Decl:
        start = self.token.start
        annotations = self.annotations()
        token = self.token
        if token.kind == "kw":
            if token.text == "if":
                return self.if_statement()
            if token.text == "switch":
                return self.switch()
            if token.text == "return":
                self.advance()
                value = None if self.at(";") else self.expression()
                self.expect(";")
                return ast.Return(self.since(start), value)
            if token.text == "exit":
                self.advance()
                self.expect(";")
                return ast.Exit(self.since(start))
            if token.text == "const":
                return self.const(annotations)
            if token.text == "for":
                return self.for_statement()
            if token.text in ("break", "continue"):
                self.advance()
                self.expect(";")
                return (ast.Break if token.text == "break" else ast.Continue)(self.since(start))
            if token.text in BASE_TYPES or token.text == "tuple":
                if self.peek().text != ".":
                    return self.variable_or_instance(annotations)
            elif token.text not in ("this", "true", "false"):
                raise self.unexpected("expected a statement")
        if self.at("{"):
            return self.block(annotations)
        if self.accept(";"):
            return ast.Empty(self.since(start))
        if self.looks_like_declaration():
            return self.variable_or_instance(annotations)
        return self.assignment_or_call()

    def looks_like_declaration(self) -> bool:
        """Whether the statement starts with a type that a variable or an instance gets."""
        name = self.peek() if self.at(".") else self.token
        if name.kind != "id" or not self.is_type_name(name.text):
            return False
        following = self.peek(2 if self.at(".") else 1)
        if following.text == ".":
            return False
        begin, seen = self.index, len(self.diagnostics.items)
        node = self.speculate_type()
        self.forget(seen)
        found = node is not None and (self.at("(") or self.at_name())
        self.reset(begin)
        return found

    def assignment_or_call(self) -> ast.Stmt:
        """`lvalue = expression;` or `call;`."""
        found = self.simple_statement()
        self.expect(";")
        return found

    def simple_statement(self) -> ast.Stmt:
        """An assignment or a call without its `;`."""
        start = self.token.start
        target = self.postfix(self.primary())
        operator = self.token.text
        if operator == ">" and self.peek().text == ">=":
            operator = ">>="
        if operator in _ASSIGN_OPS or operator == ">>=":
            self.advance()
            if operator == ">>=":
                self.advance()
            value = self.expression()
            span = (start, value.span[1])
            return ast.Assign(span, operator if operator == "=" else operator[:-1], target, value)
        if not isinstance(target, ast.Call):
            raise self.unexpected("expected a statement")
        return ast.CallStmt(target.span, target)

    # BNF: variable : type name size? ('=' expression)? ';'
    # BNF: instance : type '(' arguments ')' name ('=' block)? ';'
    def variable_or_instance(self, annotations: list[ast.Annotation]) -> ast.Decl:
        """A variable or an instance of an extern, parser, control or package."""
        start = self.token.start
        type_node = self.type()
        if self.at("("):
            arguments = self.arguments()
            name = self.name()
            body = None
            if self.accept("="):
                body = self.instance_body()
            self.expect(";")
            self.declare(name.text, False)
            return ast.Instantiation(
                self.since(start), name.text, name.span, annotations, type_node, arguments, body
            )
        name = self.name()
        type_node = self.array_suffix(type_node)
        value = self.expression() if self.accept("=") else None
        self.expect(";")
        self.declare(name.text, False)
        return ast.VarDecl(self.since(start), name.text, name.span, annotations, type_node, value)

    def instance_body(self) -> ast.Block:
        """The methods of an instance of an extern with abstract methods."""
        raise self.diagnostics.unsupported("instances with abstract methods", self.token.span)

    # BNF: const : 'const' type name '=' expression ';'
    def const(self, annotations: list[ast.Annotation]) -> ast.ConstDecl:
        """A constant."""
        start = self.expect("const").start
        type_node = self.type()
        name = self.name()
        self.expect("=")
        value = self.expression()
        self.expect(";")
        self.declare(name.text, False)
        return ast.ConstDecl(self.since(start), name.text, name.span, annotations, type_node, value)

    # BNF: if : 'if' '(' expression ')' statement ('else' statement)?
    def if_statement(self) -> ast.If:
        """A conditional."""
        start = self.expect("if").start
        self.expect("(")
        condition = self.expression()
        self.expect(")")
        then = self.branch()
        otherwise = self.branch() if self.accept("else") else None
        return ast.If(self.since(start), condition, then, otherwise)

    def branch(self) -> ast.Stmt:
        """A statement that is not a declaration."""
        found = self.statement()
        if isinstance(found, ast.Decl):
            raise self.diagnostics.fail("syntax error, a declaration cannot be a branch by itself", found.span)
        return found

    # BNF: for : 'for' '(' start? (',' start)* ';' expression ';' (step (',' step)*)? ')' statement
    #          | 'for' '(' annotations type name 'in' expression ('..' expression)? ')' statement
    def for_statement(self) -> ast.Stmt:
        """A loop with a condition, or over a range or collection."""
        start = self.expect("for").start
        self.expect("(")
        self.scopes.append({})
        begin = self.token.start
        annotations = self.annotations()
        first: list[ast.Stmt | ast.Decl] = []
        if not self.at(";"):
            if self.at_loop_variable():
                variable = self.loop_variable(begin, annotations)
                if variable.value is None and self.accept("in"):
                    return self.for_in(start, variable)
                first.append(variable)
            else:
                first.append(self.simple_statement())
            while self.accept(","):
                first.append(self.loop_start())
        self.expect(";")
        cond = self.expression()
        self.expect(";")
        step: list[ast.Stmt] = []
        while not self.at(")"):
            step.append(self.simple_statement())
            if not self.accept(","):
                break
        self.expect(")")
        body = self.branch()
        self.scopes.pop()
        return ast.For(self.since(start), first, cond, step, body)

    def at_loop_variable(self) -> bool:
        """Whether a variable is declared here."""
        return self.token.text in BASE_TYPES or self.token.text == "tuple" or self.looks_like_declaration()

    def loop_start(self) -> ast.Stmt | ast.Decl:
        """One of the statements before a loop."""
        if self.at_loop_variable():
            return self.loop_variable(self.token.start, [])
        return self.simple_statement()

    def loop_variable(self, begin: int, annotations: list[ast.Annotation]) -> ast.VarDecl:
        """The variable that a loop declares."""
        type_node = self.type()
        name = self.name()
        value = self.expression() if self.accept("=") else None
        self.declare(name.text, False)
        return ast.VarDecl(self.since(begin), name.text, name.span, annotations, type_node, value)

    def for_in(self, start: int, variable: ast.VarDecl) -> ast.ForIn:
        """A loop over a range or a collection, from behind `in`."""
        source = self.expression()
        if self.accept(".."):
            high = self.expression()
            source = ast.Range((source.span[0], high.span[1]), source, high)
        self.expect(")")
        body = self.branch()
        self.scopes.pop()
        return ast.ForIn(self.since(start), variable, source, body)

    # BNF: switch : 'switch' '(' expression ')' '{' (('default' | expression) ':' block?)* '}'
    def switch(self) -> ast.Switch:
        """A switch on a table's action or on a value."""
        start = self.expect("switch").start
        self.expect("(")
        value = self.expression()
        self.expect(")")
        self.expect("{")
        cases: list[ast.SwitchCase] = []
        while not self.at("}"):
            begin = self.token.start
            if token := self.accept("default"):
                label: ast.Expr = ast.Default(token.span)
            else:
                label = self.expression()
            self.expect(":")
            body = self.block(self.annotations()) if self.at("{") or self.at("@") else None
            cases.append(ast.SwitchCase(self.since(begin), label, body))
        self.expect("}")
        return ast.Switch(self.since(start), value, cases)

"""Declarations of the grammar, and `parse`: tokens to `ast.Program`."""

from __future__ import annotations

from collections.abc import Callable

from p4front import syntax as ast
from p4front.diagnostics import Abort, Diagnostics
from p4front.lexer import tokenize
from p4front.parser_base import BASE_TYPES
from p4front.parser_stmt import StatementParser

_DIRECTIONS = ("in", "out", "inout")


def parse(text: str, diagnostics: Diagnostics) -> ast.Program:
    """Parse a preprocessed program; what is wrong is in `diagnostics`, the rest is in the result."""
    parser = Parser(tokenize(text), text, diagnostics)
    return parser.program()


class Parser(StatementParser):
    """The whole grammar."""

    # BNF: program : (annotations declaration | ';')*
    def program(self) -> ast.Program:
        """Everything up to the end of the text."""
        declarations: list[ast.Decl] = []
        while self.token.kind != "eof":
            if self.accept(";"):
                continue
            index = self.index
            try:
                declarations.append(self.declaration())
            except Abort:
                self.depth = 0
                del self.scopes[1:]
                self.skip_to(index)
                if self.index == index:
                    self.advance()
        return ast.Program((0, len(self.text)), declarations)

    # BNF: declaration : const | typedef | struct | enum | error | match_kind | extern | action | parser | control
    #                  | package | function | instance
    def declaration(self) -> ast.Decl:
        """One top-level declaration."""
        start = self.token.start
        annotations = self.annotations()
        keyword = self.token.text
        simple: dict[str, Callable[[int, list[ast.Annotation]], ast.Decl]] = {
            "typedef": self.typedef, "type": self.typedef,
            "header": self.struct, "header_union": self.struct, "struct": self.struct,
            "enum": self.enum, "match_kind": self.members, "extern": self.extern,
            "action": self.action, "parser": self.parser, "control": self.control, "package": self.package,
        }  # fmt: skip
        if keyword == "const":
            return self.const(annotations)
        if keyword == "error" and self.peek().text == "{":
            return self.members(start, annotations)
        if keyword == "type" and self.peek().kind == "op":
            raise self.unexpected("expected a declaration")
        if keyword in simple:
            return simple[keyword](start, annotations)
        if self.token.kind == "id" or keyword in BASE_TYPES or keyword in ("tuple", "."):
            return self.function_or_instance(start, annotations)
        raise self.unexpected("expected a declaration")

    # types

    # BNF: typedef : ('typedef' | 'type') type name ';'
    def typedef(self, start: int, annotations: list[ast.Annotation]) -> ast.TypedefDecl:
        """A transparent or an opaque new name for a type."""
        opaque = self.advance().text == "type"
        type_node = self.type()
        name = self.name()
        self.expect(";")
        self.declare(name.text, True)
        return ast.TypedefDecl(self.since(start), name.text, name.span, annotations, opaque, type_node)

    # BNF: struct : ('header' | 'header_union' | 'struct') name type-params '{' (annotations type name size? ';')* '}'
    def struct(self, start: int, annotations: list[ast.Annotation]) -> ast.StructDecl:
        """A header, header union or structure."""
        kind = self.advance().text
        name = self.name()
        self.declare(name.text, True)
        self.scopes.append({})
        type_params = self.type_params()
        self.expect("{")
        fields: list[ast.FieldDecl] = []
        while not self.at("}"):
            begin = self.token.start
            field_annotations = self.annotations()
            type_node = self.type()
            field_name = self.name()
            type_node = self.array_suffix(type_node)
            self.expect(";")
            fields.append(
                ast.FieldDecl(self.since(begin), field_name.text, field_name.span, field_annotations, type_node)
            )
        self.expect("}")
        self.scopes.pop()
        return ast.StructDecl(self.since(start), name.text, name.span, annotations, kind, type_params, fields)

    # BNF: enum : 'enum' type? name '{' member (',' member)* ','? '}'     member : annotations name ('=' expression)?
    def enum(self, start: int, annotations: list[ast.Annotation]) -> ast.EnumDecl:
        """An enum, serialisable if it has a base type."""
        self.expect("enum")
        base = None if self.at_name() and self.peek().text == "{" else self.type()
        name = self.name()
        self.declare(name.text, True)
        members = self.enum_members()
        return ast.EnumDecl(self.since(start), name.text, name.span, annotations, base, members)

    def enum_members(self) -> list[ast.EnumMember]:
        """The braces of an enum, error or match_kind."""
        self.expect("{")
        members: list[ast.EnumMember] = []
        while not self.at("}"):
            begin = self.token.start
            annotations = self.annotations()
            name = self.name()
            value = self.expression() if self.accept("=") else None
            members.append(ast.EnumMember(self.since(begin), name.text, name.span, annotations, value))
            if not self.accept(","):
                break
        self.expect("}")
        return members

    # BNF: members : ('error' | 'match_kind') '{' name (',' name)* ','? '}'
    def members(self, start: int, annotations: list[ast.Annotation]) -> ast.Decl:
        """An addition to the error codes or to the match kinds."""
        keyword = self.advance()
        members = self.enum_members()
        make = ast.ErrorDecl if keyword.text == "error" else ast.MatchKindDecl
        return make(self.since(start), keyword.text, keyword.span, annotations, members)

    # BNF: type-params : ('<' name (',' name)* '>')?
    def type_params(self) -> list[ast.TypeParam]:
        """Type parameters, which are types in the innermost scope."""
        found: list[ast.TypeParam] = []
        if not self.accept("<"):
            return found
        while True:
            name = self.name()
            self.declare(name.text, True)
            found.append(ast.TypeParam(name.span, name.text, name.span, []))
            if not self.accept(","):
                break
        self.expect(">")
        return found

    # BNF: params : '(' (param (',' param)*)? ')'   param : annotations ('in'|'out'|'inout')? type name ('=' value)?
    def params(self) -> list[ast.Param]:
        """Parameters, which are names in the innermost scope."""
        self.expect("(")
        found: list[ast.Param] = []
        while not self.at(")"):
            start = self.token.start
            annotations = self.annotations()
            direction = self.advance().text if self.token.text in _DIRECTIONS else ""
            type_node = self.type()
            name = self.name()
            default = self.expression() if self.accept("=") else None
            self.declare(name.text, False)
            found.append(
                ast.Param(self.since(start), name.text, name.span, annotations, direction, type_node, default)
            )
            if not self.accept(","):
                break
        self.expect(")")
        return found

    # functions, externs, instances

    # BNF: function : (type | 'void') name type-params params block
    def function_or_instance(self, start: int, annotations: list[ast.Annotation]) -> ast.Decl:
        """What starts with a type at the top level."""
        begin = self.index
        result = self.type()
        if self.at("("):
            self.reset(begin)
            return self.variable_or_instance(annotations)
        name = self.name()
        if self.token.text in (";", "="):
            raise self.diagnostics.fail(f"{name.text}: variables are not allowed at the top level", name.span)
        self.declare(name.text, False)
        self.scopes.append({})
        type_params = self.type_params()
        params = self.params()
        body = self.block()
        self.scopes.pop()
        return ast.FunctionDecl(
            self.since(start), name.text, name.span, annotations, result, type_params, params, body
        )

    # BNF: extern : 'extern' (function-prototype ';' | name type-params '{' method* '}')
    def extern(self, start: int, annotations: list[ast.Annotation]) -> ast.Decl:
        """An extern type or an extern function."""
        self.expect("extern")
        if self.at_name() and self.peek().text in ("{", "<"):
            begin, scopes = self.index, len(self.scopes)
            name = self.name()
            self.declare(name.text, True)
            self.scopes.append({})
            type_params = self.type_params()
            if self.at("{"):
                methods = self.methods(name.text)
                self.scopes.pop()
                return ast.ExternDecl(self.since(start), name.text, name.span, annotations, type_params, methods)
            del self.scopes[scopes:]
            self.reset(begin)
        return self.prototype(start, annotations)

    # BNF: prototype : (type | 'void') name type-params params ';'
    def prototype(self, start: int, annotations: list[ast.Annotation]) -> ast.FunctionDecl:
        """A function without body.  Its result may be one of its own type parameters, so the name is found first."""
        self.scopes.append({})
        result = self.type()
        name = self.name()
        type_params = self.type_params()
        params = self.params()
        self.expect(";")
        self.scopes.pop()
        self.declare(name.text, False)
        return ast.FunctionDecl(
            self.since(start), name.text, name.span, annotations, result, type_params, params, None
        )

    def methods(self, owner: str) -> list[ast.FunctionDecl]:
        """The braces of an extern: constructors and methods."""
        self.expect("{")
        found: list[ast.FunctionDecl] = []
        while not self.at("}"):
            start = self.token.start
            annotations = self.annotations()
            abstract = self.accept("abstract") is not None
            if self.token.text == owner and self.peek().text == "(":
                name = self.name()
                self.scopes.append({})
                params = self.params()
                self.scopes.pop()
                self.expect(";")
                method = ast.FunctionDecl(
                    self.since(start), name.text, name.span, annotations, None, [], params, None
                )
            else:
                method = self.prototype(start, annotations)
                method.abstract = abstract
            found.append(method)
        self.expect("}")
        return found

    # BNF: package : 'package' name type-params params ';'
    def package(self, start: int, annotations: list[ast.Annotation]) -> ast.PackageDecl:
        """A package type."""
        self.expect("package")
        name = self.name()
        self.declare(name.text, True)
        self.scopes.append({})
        type_params = self.type_params()
        params = self.params()
        self.scopes.pop()
        self.expect(";")
        return ast.PackageDecl(self.since(start), name.text, name.span, annotations, type_params, params)

    # BNF: action : 'action' name params block
    def action(self, start: int, annotations: list[ast.Annotation]) -> ast.ActionDecl:
        """An action."""
        self.expect("action")
        name = self.name()
        self.declare(name.text, False)
        self.scopes.append({})
        params = self.params()
        body = self.block()
        self.scopes.pop()
        return ast.ActionDecl(self.since(start), name.text, name.span, annotations, params, body)

    # BNF: control : 'control' name type-params params (';' | params? '{' local* 'apply' block '}')
    def control(self, start: int, annotations: list[ast.Annotation]) -> ast.ControlDecl:
        """A control or a control type."""
        self.expect("control")
        name = self.name()
        self.declare(name.text, True)
        self.scopes.append({})
        type_params = self.type_params()
        params = self.params()
        ctor_params: list[ast.Param] = []
        local: list[ast.Decl] = []
        body = None
        if not self.accept(";"):
            if self.at("("):
                ctor_params = self.params()
            self.expect("{")
            self.scopes.append({})
            while not self.at("apply") or self.peek().text not in ("{", "@"):
                if self.at("}") or self.token.kind == "eof":
                    raise self.unexpected("expected the 'apply' block of the control")
                self.local(local, self.control_local)
            self.advance()
            body = self.block(self.annotations())
            self.scopes.pop()
            self.expect("}")
        self.scopes.pop()
        return ast.ControlDecl(
            self.since(start), name.text, name.span, annotations, type_params, params, ctor_params, local, body
        )

    def local(self, into: list[ast.Decl], parse: Callable[[], ast.Decl]) -> None:
        """One local declaration, with recovery."""
        scopes, index, depth = len(self.scopes), self.index, self.depth
        try:
            into.append(parse())
        except Abort:
            del self.scopes[scopes:]
            self.depth = depth
            self.skip_to(index, "}")
            if self.index == index:
                self.advance()

    def control_local(self) -> ast.Decl:
        """A constant, action, table, instance or variable of a control."""
        start = self.token.start
        annotations = self.annotations()
        if self.at("const"):
            return self.const(annotations)
        if self.at("action"):
            return self.action(start, annotations)
        if self.at("table"):
            return self.table(start, annotations)
        return self.variable_or_instance(annotations)

    # BNF: parser : 'parser' name type-params params (';' | params? '{' local* state+ '}')
    def parser(self, start: int, annotations: list[ast.Annotation]) -> ast.ParserDecl:
        """A parser or a parser type."""
        self.expect("parser")
        name = self.name()
        self.declare(name.text, True)
        self.scopes.append({})
        type_params = self.type_params()
        params = self.params()
        ctor_params: list[ast.Param] = []
        local: list[ast.Decl] = []
        states: list[ast.StateDecl] | None = None
        if not self.accept(";"):
            if self.at("("):
                ctor_params = self.params()
            self.expect("{")
            self.scopes.append({})
            states = []
            while not self.at("}"):
                if self.token.kind == "eof":
                    raise self.unexpected("expected a parser state")
                self.parser_member(local, states)
            self.scopes.pop()
            self.expect("}")
        self.scopes.pop()
        return ast.ParserDecl(
            self.since(start), name.text, name.span, annotations, type_params, params, ctor_params, local, states
        )

    def parser_member(self, local: list[ast.Decl], states: list[ast.StateDecl]) -> None:
        """A local declaration or a state of a parser."""

        def parse() -> ast.Decl:
            start = self.token.start
            annotations = self.annotations()
            if self.at("const"):
                return self.const(annotations)
            if self.at("value_set"):
                return self.value_set(start, annotations)
            if self.at("state") and self.peek().kind == "id":
                return self.state(start, annotations)
            return self.variable_or_instance(annotations)

        found: list[ast.Decl] = []
        self.local(found, parse)
        for decl in found:
            if isinstance(decl, ast.StateDecl):
                states.append(decl)
            else:
                local.append(decl)

    # BNF: value_set : 'value_set' '<' type '>' '(' expression ')' name ';'
    def value_set(self, start: int, annotations: list[ast.Annotation]) -> ast.ValueSetDecl:
        """A set of values that the control plane fills."""
        self.expect("value_set")
        self.expect("<")
        type_node = self.type()
        self.expect(">")
        self.expect("(")
        size = self.expression()
        self.expect(")")
        name = self.name()
        self.expect(";")
        self.declare(name.text, False)
        return ast.ValueSetDecl(self.since(start), name.text, name.span, annotations, type_node, size)

    # BNF: state : 'state' name '{' statement* ('transition' (name ';' | select))? '}'
    def state(self, start: int, annotations: list[ast.Annotation]) -> ast.StateDecl:
        """A parser state."""
        self.expect("state")
        name = self.name()
        self.expect("{")
        self.scopes.append({})
        body = self.statements("transition", "}")
        following: ast.Name | ast.Select | None = None
        if self.accept("transition"):
            following = self.select() if self.at("select") else self.state_name(";")
        self.scopes.pop()
        self.expect("}")
        return ast.StateDecl(self.since(start), name.text, name.span, annotations, body, following)

    def state_name(self, end: str) -> ast.Name:
        """The state that is next."""
        name = self.name()
        self.expect(end)
        return ast.Name(name.span, name.text)

    # BNF: select : 'select' '(' (expression (',' expression)*)? ')' '{' (keyset ':' name ';')* '}'
    def select(self) -> ast.Select:
        """A choice of the next state."""
        start = self.expect("select").start
        self.expect("(")
        exprs: list[ast.Expr] = []
        while not self.at(")"):
            exprs.append(self.expression())
            if not self.accept(","):
                break
        self.expect(")")
        self.expect("{")
        cases: list[ast.SelectCase] = []
        while not self.at("}"):
            begin = self.token.start
            keys = self.keyset()
            self.expect(":")
            cases.append(ast.SelectCase(self.since(begin), keys, self.state_name(";")))
        self.expect("}")
        return ast.Select(self.since(start), exprs, cases)

    # BNF: keyset : simple-keyset | '(' simple-keyset (',' simple-keyset)* ')'
    def keyset(self) -> list[ast.Expr]:
        """The keys of a select case or of a table entry."""
        if self.at("("):
            begin, depth = self.index, self.depth
            self.advance()
            keys = [self.simple_keyset()]
            while self.accept(","):
                keys.append(self.simple_keyset())
            self.expect(")")
            if len(keys) > 1 or self.at(":"):
                return keys
            self.depth = depth
            self.reset(begin)
        return [self.simple_keyset()]

    # BNF: simple-keyset : 'default' | '_' | expression ('&&&' expression | '..' expression)?
    def simple_keyset(self) -> ast.Expr:
        """One key."""
        token = self.token
        if token.text == "default" or (token.text == "_" and token.kind == "id"):
            self.advance()
            return ast.Default(token.span)
        value = self.expression()
        if self.accept("&&&"):
            mask = self.expression()
            return ast.Mask(self.since(token.start), value, mask)
        if self.accept(".."):
            high = self.expression()
            return ast.Range(self.since(token.start), value, high)
        return value

    # tables

    # BNF: table : 'table' name '{' ('key' '=' key | 'actions' '=' actions | 'const'? 'entries' '=' entries
    #            | 'const'? name '=' initializer ';')* '}'
    def table(self, start: int, annotations: list[ast.Annotation]) -> ast.TableDecl:
        """A table."""
        self.expect("table")
        name = self.name()
        self.declare(name.text, False)
        table = ast.TableDecl((start, start), name.text, name.span, annotations, [], [], None, False, {})
        self.expect("{")
        while not self.at("}"):
            begin = self.token.start
            property_annotations = self.annotations()
            const = self.accept("const") is not None
            which = self.name()
            self.expect("=")
            if which.text == "key" and not const:
                table.has_key = True
                table.keys = self.table_keys()
            elif which.text == "actions" and not const:
                table.actions = self.table_actions()
            elif which.text == "entries":
                table.entries, table.entries_const = self.table_entries(), const
                table.entries_annotations = property_annotations
            else:
                value = self.expression()
                self.expect(";")
                if which.text in table.properties:
                    self.diagnostics.error(f"duplicate property {which.text!r}", which.span)
                table.properties[which.text] = ast.Property(
                    self.since(begin), which.text, const, value, property_annotations
                )
        self.expect("}")
        table.span = self.since(start)
        return table

    # BNF: key : '{' (expression ':' name annotations ';')* '}'
    def table_keys(self) -> list[ast.KeyElement]:
        """What a table matches on."""
        self.expect("{")
        keys: list[ast.KeyElement] = []
        while not self.at("}"):
            expr = self.expression()
            self.expect(":")
            kind = self.name()
            annotations = self.annotations()
            self.expect(";")
            span = (expr.span[0], kind.end)
            keys.append(ast.KeyElement(span, expr, ast.Name(kind.span, kind.text), annotations))
        self.expect("}")
        self.accept(";")
        return keys

    # BNF: actions : '{' (annotations name arguments? ';')* '}'
    def table_actions(self) -> list[ast.ActionRef]:
        """The actions of a table."""
        self.expect("{")
        actions: list[ast.ActionRef] = []
        while not self.at("}"):
            annotations = self.annotations()
            start = self.token.start
            absolute = self.accept(".") is not None
            name = self.name()
            reference = ast.Name(self.since(start), name.text, absolute)
            args = self.arguments() if self.at("(") else []
            self.expect(";")
            actions.append(ast.ActionRef(reference.span, reference, args, annotations))
        self.expect("}")
        self.accept(";")
        return actions

    # BNF: entries : '{' ('const'? ('priority' '=' expression ':')? keyset ':' action-call annotations ';')* '}'
    def table_entries(self) -> list[ast.Entry]:
        """The entries a table starts with."""
        self.expect("{")
        entries: list[ast.Entry] = []
        while not self.at("}"):
            start = self.token.start
            const = self.accept("const") is not None
            priority = None
            if self.at("priority") and self.peek().text == "=":
                self.advance()
                self.advance()
                priority = self.expression()
                self.expect(":")
            keys = self.keyset()
            self.expect(":")
            action = self.expression()
            annotations = self.annotations()
            self.expect(";")
            entries.append(ast.Entry(self.since(start), keys, action, annotations, const, priority))
        self.expect("}")
        self.accept(";")
        return entries

"""Warnings of declarations that nothing refers to and of variables that nothing sets: p4c's kinds, in program order."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from p4front import p4types as t
from p4front import syntax as ast
from p4front.diagnostics import Diagnostics, Span
from p4front.key_names import annotated_name
from p4front.preprocessor import STANDARD_PREFIX


def warn_of_unused(program: ast.Program, used: Collection[object], diagnostics: Diagnostics) -> None:
    """Warn in all files but the architecture's; `used` holds the declarations that names were found to mean."""
    _Unused(used, diagnostics).declarations(program.declarations, top=True)


def warn_of_unset(uses: Mapping[ast.VarDecl, Span], written: Collection[ast.VarDecl], diagnostics: Diagnostics) -> None:
    """Warn at the first use of a variable that has no value and never gets one; headers have a validity instead."""
    for variable, span in uses.items():
        if variable.value is None and variable not in written and _holds_numbers_only(variable.type):
            diagnostics.warning("uninitialized-use", f"{variable.name} may be uninitialized", span)


def _holds_numbers_only(type_: t.Type) -> bool:
    base = t.representation(type_)
    if isinstance(base, t.StructType):
        return base.kind == "struct" and bool(base.fields) and all(
            _holds_numbers_only(item.type) for item in base.fields.values()
        )  # fmt: skip
    return t.bit_width(base) is not None


class _Unused:
    def __init__(self, used: Collection[object], diagnostics: Diagnostics) -> None:
        self.used = used
        self.diagnostics = diagnostics

    def declarations(self, items: list[ast.Decl], top: bool = False) -> None:
        """Declarations that stand beside each other."""
        for item in items:
            if top and isinstance(item, ast.Instantiation) and item.name == "main":
                continue
            self.declaration(item)

    def declaration(self, item: ast.Decl) -> None:
        """One declaration and those in it."""
        if isinstance(item, ast.ConstDecl):
            if not _asserts(item.value):
                self.check(item)
        elif isinstance(item, ast.TypedefDecl | ast.VarDecl | ast.ValueSetDecl | ast.Instantiation):
            self.check(item)
        elif isinstance(item, ast.TableDecl):
            self.check(item, "table ")
        elif isinstance(item, ast.ActionDecl):
            self.check(item)
            for param in item.params:
                self.check(param)
            self.statement(item.body)
        elif isinstance(item, ast.FunctionDecl) and item.body is not None:
            self.check(item)
            if not item.type_params:  # else only its specialised copies are checked
                self.statement(item.body)
        elif isinstance(item, ast.ControlDecl):
            self.check(item, "control " if item.body is not None else "")
            if item.body is not None and not item.type_params:
                self.declarations(item.locals)
                self.statement(item.body)
        elif isinstance(item, ast.ParserDecl):
            self.check(item, "parser " if item.states is not None else "")
            if item.states is not None and not item.type_params:
                self.declarations(item.locals)
                for state in item.states:
                    self.statements(state.body)

    def statements(self, body: list[ast.Stmt | ast.Decl]) -> None:
        """The declarations among statements."""
        for item in body:
            self.statement(item)

    def statement(self, item: ast.Stmt | ast.Decl | None) -> None:
        """The declarations in a statement."""
        if isinstance(item, ast.Decl):
            self.declaration(item)
        elif isinstance(item, ast.Block):
            self.statements(item.body)
        elif isinstance(item, ast.If):
            self.statement(item.then)
            self.statement(item.otherwise)
        elif isinstance(item, ast.Switch):
            for case in item.cases:
                self.statement(case.body)
        elif isinstance(item, ast.For):
            self.statements(item.start)
            self.statement(item.body)
        elif isinstance(item, ast.ForIn):
            self.declaration(item.variable)
            self.statement(item.body)

    def check(self, item: ast.Decl, kind: str = "") -> None:
        """Warn if nothing refers to a declaration."""
        if item in self.used or item.name.startswith("__") or _silenced(item):
            return
        source = self.diagnostics.source
        if source is None or not source.locate(item.name_span[0]).file.startswith(STANDARD_PREFIX):
            name = annotated_name(item.annotations) or item.name
            self.diagnostics.warning("unused", f"{kind}'{name}' is unused", item.name_span)


def _silenced(item: ast.Decl) -> bool:
    """`@noWarn("unused")`."""
    found = [annotation for annotation in item.annotations if annotation.name == "noWarn"]
    return any(isinstance(arg, ast.StringLit) and arg.value == "unused" for item in found for arg in item.args)


def _asserts(value: ast.Expr) -> bool:
    """A constant that is there for its `static_assert` only."""
    return isinstance(value, ast.Call) and isinstance(value.func, ast.Name) and value.func.name == "static_assert"

"""Generic functions, controls and parsers: checked as templates, once for each choice of types.

What is never used with types is not checked beyond its signature.
"""

from __future__ import annotations

import copy
from typing import Any

from p4front import p4types as t
from p4front import syntax as ast
from p4front.check_stmt import StatementChecker
from p4front.diagnostics import Span

Generic = ast.FunctionDecl | ast.ControlDecl | ast.ParserDecl
MAX_SPECIALISATIONS = 1000


class GenericChecker(StatementChecker):
    """Adds generic declarations to the statements."""

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        # declarations as they were written, before the checker put types into them
        self._written: dict[Generic, Generic] = {}
        self._specialised: dict[tuple[Generic, tuple[t.Type, ...]], Generic] = {}

    def declaration(self, decl: ast.Decl) -> None:
        """One declaration; implemented with the declarations."""
        raise NotImplementedError

    def keep_generic(self, decl: Generic) -> None:
        """Remember a generic declaration that has a body, before its signature is checked."""
        self._written[decl] = copy.deepcopy(decl)

    def specialise(self, decl: Generic, args: tuple[t.Type, ...], span: Span) -> Generic:
        """The declaration with types for its parameters."""
        known = self._specialised.get((decl, args))
        if known is not None:
            return known
        if len(args) != len(decl.type_params):
            count = f"{len(decl.type_params)} type arguments expected, {len(args)} given"
            raise self.fail(f"{decl.name}: {count}", span)
        if len(self._specialised) >= MAX_SPECIALISATIONS:
            raise self.fail(f"{decl.name}: more than {MAX_SPECIALISATIONS} choices of types", span)
        made = copy.deepcopy(self._written[decl])
        made.type_params = []
        self._specialised[decl, args] = made
        outer = self.scopes, self.context, self.return_type, self.loops
        names = {param.name: _alias(param, arg) for param, arg in zip(decl.type_params, args, strict=True)}
        self.scopes, self.context, self.return_type, self.loops = [self.scopes[0], names], "", None, 0
        try:
            self.declaration(made)
        finally:
            self.scopes, self.context, self.return_type, self.loops = outer
        return made


def _alias(param: ast.TypeParam, to: t.Type) -> ast.TypedefDecl:
    node = ast.DontCareType(param.span)
    alias = ast.TypedefDecl(param.span, param.name, param.name_span, [], False, node)
    alias.type = to
    return alias

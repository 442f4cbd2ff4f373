"""Types as written to `Type` objects, and the declarations that make types."""

from __future__ import annotations

from itertools import count

from p4front import consteval
from p4front import p4types as t
from p4front import syntax as ast
from p4front.check_base import CheckerBase
from p4front.diagnostics import Abort
from p4front.p4types import Type, TypeVar

_owners = count(1)
_HEADER_KINDS = ("header", "header_union")


class TypeChecker(CheckerBase):
    """Resolves type syntax in the current scope."""

    def convert(self, expr: ast.Expr, to: Type, what: str = "") -> ast.Expr:
        """Implemented with the expressions."""
        raise NotImplementedError

    def resolve(self, node: ast.TypeNode) -> Type:
        """The type that `node` denotes."""
        if isinstance(node, ast.BaseType):
            return self._base(node)
        if isinstance(node, ast.NamedType):
            return self._named(node)
        if isinstance(node, ast.StackTypeNode):
            element = self.resolve(node.element)
            size = self.int_constant(self.expr(node.size), "the size of a header stack")
            if not 0 < size <= 1 << 16:
                raise self.fail(f"{size} is not a valid size of a header stack", node.size.span)
            base = t.representation(element)
            plain = isinstance(base, t.BitType | t.StructType | t.TupleType | t.StackType | t.EnumType)
            if not (plain or element in (t.BOOL, t.ERROR, t.UNKNOWN)):
                raise self.fail(f"an array cannot be of '{element}'", node.span)
            return t.StackType(element, size)
        if isinstance(node, ast.TupleTypeNode):
            return t.TupleType(tuple(self.resolve(arg) for arg in node.args), node.name)
        return t.DONT_CARE

    def _base(self, node: ast.BaseType) -> Type:
        if node.name in ("bit", "int", "varbit"):
            if node.width is None:
                return t.BitType(1) if node.name == "bit" else t.INT
            width = self.width(node.width, node.span)
            if node.name == "varbit":
                return t.VarbitType(width)
            if node.name == "int" and width == 0:
                raise self.fail("int<0> is not a type", node.span)
            return t.BitType(width, node.name == "int")
        return t.SimpleType(node.name)

    def _named(self, node: ast.NamedType) -> Type:
        found = self.lookup(node.name, node.absolute)
        if isinstance(found, TypeVar):
            return found
        if found is None:
            raise self.fail(f"{node.name}: type not found{self.suggestion(node.name)}", node.span)
        type_ = getattr(found, "type", None)
        if not isinstance(found, ast.Decl) or isinstance(found, ast.Param | ast.VarDecl | ast.ConstDecl):
            raise self.fail(f"{node.name}: not a type", node.span)
        if isinstance(found, ast.Instantiation | ast.ValueSetDecl) or type_ is None:
            raise self.fail(f"{node.name}: not a type", node.span)
        args = tuple(self.resolve(arg) for arg in node.args)
        if isinstance(type_, t.StructType):
            if len(args) != len(type_.params):
                raise self._wrong_count(node, len(type_.params))
            return t.specialise_struct(type_, args) if args else type_
        if isinstance(type_, t.ExternType):
            if args and len(args) != len(type_.params):
                raise self._wrong_count(node, len(type_.params))
            return t.ExternRef(type_, args)
        if isinstance(type_, t.BlockType | t.PackageType):
            if args:
                if len(args) != len(type_.type_params):
                    raise self._wrong_count(node, len(type_.type_params))
                return t.SpecialisedBlock(type_, args)
            return type_
        if args:
            raise self.fail(f"{node.name}: not a generic type", node.span)
        return type_

    def _wrong_count(self, node: ast.NamedType, expected: int) -> Abort:
        return self.fail(f"{node.name}: {expected} type arguments expected, {len(node.args)} given", node.span)

    # declarations of types

    def type_vars(self, params: list[ast.TypeParam]) -> tuple[TypeVar, ...]:
        """Enter type parameters in the innermost scope."""
        owner = next(_owners)
        found = tuple(TypeVar(param.name, owner) for param in params)
        for variable in found:
            self.scopes[-1][variable.name] = variable
        return found

    def typedef(self, decl: ast.TypedefDecl) -> None:
        """`typedef` and `type`."""
        base = self.resolve(decl.type_node)
        if decl.opaque:
            if t.bit_width(base) is None or t.representation(base) == t.ERROR:
                raise self.fail(f"'type' needs bit<>, int<>, bool or another 'type', not '{base}'", decl.span)
            decl.type = t.NewType(decl.name, base, decl)
        else:
            decl.type = base
        self.declare(decl)

    def struct(self, decl: ast.StructDecl) -> None:
        """struct, header and header_union."""
        self.scopes.append({})
        params = self.type_vars(decl.type_params)
        struct = t.StructType(decl.name, decl.kind, {}, decl, params)
        for item in decl.fields:
            self.recover(self._field, struct, item)
        self.scopes.pop()
        decl.type = struct
        self.declare(decl)

    def _field(self, struct: t.StructType, item: ast.FieldDecl) -> None:
        item.type = t.UNKNOWN
        if item.name in struct.fields:
            self.error(f"{item.name}: duplicate field", item.name_span)
            return
        item.type = self.resolve(item.type_node)
        struct.fields[item.name] = t.Field(item.name, item.type, item)
        base = t.representation(item.type)
        if struct.kind == "header_union":
            allowed = t.is_header(base) or isinstance(base, TypeVar)
        elif struct.kind == "header":
            while t.is_array(base):
                assert isinstance(base, t.StackType)
                base = t.representation(base.element)
            scalar = isinstance(base, t.BitType | t.VarbitType | TypeVar) or base == t.BOOL
            allowed = scalar or t.is_struct(base)
        else:
            allowed = not isinstance(base, t.ExternRef | t.BlockType | t.PackageType | t.SpecialisedBlock)
            allowed = allowed and base not in (t.INT, t.STRING, t.VOID, t.MATCH_KIND)
        if not allowed:
            raise self.fail(f"{item.name}: a field of a {struct.kind} cannot have type '{item.type}'", item.span)

    def enum(self, decl: ast.EnumDecl) -> None:
        """An enum; the values of a serialisable one must fit its base type."""
        base = None if decl.base is None else self.resolve(decl.base)
        if base is not None and not isinstance(t.representation(base), t.BitType):
            raise self.fail(f"the representation of an enum must be bit<> or int<>, not '{base}'", decl.span)
        enum = t.EnumType(decl.name, base, {}, decl)
        for number, member in enumerate(decl.members):
            if member.name in enum.members:
                self.error(f"{member.name}: duplicate member", member.name_span)
                continue
            enum.members[member.name] = number
            if (member.value is None) != (base is None):
                wanted = "needs a value" if base is not None else "cannot have a value"
                self.error(f"{member.name}: a member of this enum {wanted}", member.span)
            elif member.value is not None and base is not None:
                value = self.recover(self._enum_value, member.value, base)
                enum.members[member.name] = 0 if value is None else value
        decl.type = enum
        self.declare(decl)

    def _enum_value(self, expr: ast.Expr, base: Type) -> int:
        checked = self.expr(expr)
        value = self.int_constant(checked, "the value of an enum member")
        if not consteval.fits(value, base):
            self.diagnostics.warning("overflow", f"{value} does not fit '{base}'", expr.span)
        return consteval.wrap(value, base)

    def error_codes(self, decl: ast.ErrorDecl) -> None:
        """`error { ... }`: codes are numbered in the order of the program, NoError being 0."""
        for member in decl.members:
            if member.name in self.errors:
                self.error(f"{member.name}: duplicate declaration", member.name_span)
            else:
                self.errors[member.name] = len(self.errors)

    def match_kind_names(self, decl: ast.MatchKindDecl) -> None:
        """`match_kind { ... }`."""
        self.match_kinds.update(member.name for member in decl.members)

    # functions, externs and the signatures of blocks

    def parameters(self, params: list[ast.Param], directions: bool = True) -> list[t.Parameter]:
        """Resolve parameters and enter them in the innermost scope."""
        found: list[t.Parameter] = []
        for param in params:
            param.type = t.UNKNOWN
            resolved = self.recover(self.resolve, param.type_node)
            if resolved is not None:
                param.type = resolved
            if param.type in (t.INT, t.STRING) and param.direction:
                self.error(f"{param.name}: a parameter of type {param.type} has no direction", param.span)
            if not directions and param.direction:
                self.error(f"{param.name}: a constructor parameter has no direction", param.span)
            if param.default is not None:
                default = self.recover(self.expr, param.default)
                if default is not None and not isinstance(param.type, t.BlockType | t.SpecialisedBlock | t.PackageType):
                    param.default = self.recover(self.convert, default, param.type) or default
            self.declare(param)
            found.append(t.Parameter(param.name, param.direction, param.type, param.default, param))
        return found

    def signature(self, decl: ast.FunctionDecl, kind: str, owner: t.ExternType | None = None) -> t.FunctionType:
        """The type of a function; its type parameters stay in the innermost scope, which the caller opens."""
        variables = self.type_vars(decl.type_params)
        result = t.VOID if decl.result is None else self.resolve(decl.result)
        params = self.parameters(decl.params)
        function = t.FunctionType(decl.name, kind, variables, params, result, decl, owner)
        decl.type = function
        return function

    def extern(self, decl: ast.ExternDecl) -> None:
        """An extern type with its constructors and methods."""
        extern = t.ExternType(decl.name, (), decl)
        decl.type = extern
        self.declare(decl)
        self.scopes.append({})
        extern.params = self.type_vars(decl.type_params)
        for method in decl.methods:
            self.scopes.append({})
            kind = "constructor" if method.result is None else "method"
            extern.methods.append(self.signature(method, kind, extern))
            self.scopes.pop()
        self.scopes.pop()

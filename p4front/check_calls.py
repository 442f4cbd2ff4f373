"""Calls: which function is meant, what its type parameters are, and whether the arguments fit."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from p4front import consteval
from p4front import p4types as t
from p4front import syntax as ast
from p4front.check_base import FunctionSet
from p4front.check_expr import ExpressionChecker
from p4front.diagnostics import Span
from p4front.p4types import Type, TypeVar


@dataclass(slots=True, eq=False)
class Target:
    """What a call does.

    `kind` is function (user-written), extern, method, action, table, block (a parser or control applied), builtin or
    constructor.  `args` has one entry for each parameter: the converted argument, a default, or None for `_`.
    """

    kind: str
    name: str
    params: list[t.Parameter] = field(default_factory=list)
    args: list[ast.Expr | None] = field(default_factory=list)
    receiver: ast.Expr | None = None
    function: t.FunctionType | None = None
    bindings: dict[TypeVar, Type] = field(default_factory=dict)
    constant: consteval.Value | None = None
    decl: Any = None


_HEADER_METHODS = {"isValid": t.BOOL, "setValid": t.VOID, "setInvalid": t.VOID}
_SIZE_METHODS = ("minSizeInBits", "minSizeInBytes", "maxSizeInBits", "maxSizeInBytes")
_CALLABLE_IN = {
    "action": ("a table cannot be applied in an action", "a control cannot be applied in an action"),
    "function": ("a table cannot be applied in a function", "a control cannot be applied in a function"),
    "parser": ("a table cannot be applied in a parser", "a control cannot be applied in a parser"),
}


class CallChecker(ExpressionChecker):
    """Adds calls to the expressions."""

    def _expr_Call(self, call: ast.Call) -> ast.Expr:
        type_args = tuple(self.resolve(arg) for arg in call.type_args)
        for argument in call.args:
            if argument.expr is not None:
                argument.expr = self.expr(argument.expr)
        func = call.func
        if isinstance(func, ast.Member):
            func.expr = self.expr(func.expr)
            self._member_call(call, func, type_args)
        else:
            call.func = func = self.expr(func)
            self._plain_call(call, func, type_args)
        if call.type is None:
            call.type = t.UNKNOWN
        return call

    def _plain_call(self, call: ast.Call, func: ast.Expr, type_args: tuple[Type, ...]) -> None:
        have = func.type
        decl = func.decl if isinstance(func, ast.Name) else None
        if isinstance(decl, FunctionSet):
            candidates = [f.type for f in decl.functions if isinstance(f.type, t.FunctionType)]
            function = self._overload(candidates, call)
            kind = "function" if function.decl.body is not None else "extern"
            self._function_call(call, function, type_args, kind, None, {})
        elif isinstance(decl, ast.ActionDecl):
            if self.context in ("parser", "function"):
                raise self.fail("an action cannot be called here", call.span)
            params = [t.Parameter(p.name, p.direction, p.type, p.default, p) for p in decl.params]
            target = Target("action", decl.name, params, decl=decl)
            target.args = self.bind(params, call.args, decl.name, call.span, {})
            call.target, call.type = target, t.VOID
        elif isinstance(have, t.MetaType):
            self.construct(call, have.type, type_args)
        else:
            raise self.fail("this cannot be called", call.span)

    def _member_call(self, call: ast.Call, func: ast.Member, type_args: tuple[Type, ...]) -> None:
        have, name = func.expr.type, func.name
        if have == t.UNKNOWN:
            call.type = t.UNKNOWN
            return
        if isinstance(have, t.MetaType):  # `Control.apply(...)`
            have = have.type
        if isinstance(have, t.SpecialisedBlock) and isinstance(have.block, t.BlockType) and have.block.has_body:
            have = self._specialised_block(have.block, have.args, call.span)
        if isinstance(have, t.ExternRef):
            self._method_call(call, func, have, type_args)
        elif isinstance(have, t.TableType) and name == "apply":
            if self.context in _CALLABLE_IN:
                raise self.fail(_CALLABLE_IN[self.context][0], call.span)
            if call.args:
                raise self.fail("a table's apply() takes no argument", call.span)
            call.target = Target("table", have.decl.name, decl=have.decl, receiver=func.expr)
            call.type = t.ApplyResultType(have)
        elif isinstance(have, t.BlockType) and name == "apply":
            if self.context in _CALLABLE_IN and have.kind == "control":
                raise self.fail(_CALLABLE_IN[self.context][1], call.span)
            if self.context != "parser" and have.kind == "parser":
                raise self.fail("a parser can be applied only in a parser", call.span)
            target = Target("block", have.name, have.params, receiver=func.expr, decl=have.decl)
            target.args = self.bind(have.params, call.args, have.name, call.span, {})
            call.target, call.type = target, t.VOID
        elif name in _SIZE_METHODS and self._size_call(call, func, have):
            pass
        elif (t.is_header(have) or t.is_union(have)) and name in _HEADER_METHODS:
            self._builtin(call, func, 0, _HEADER_METHODS[name])
            if name != "isValid":
                self._assignable(func.expr)
        elif isinstance(have, t.StackType) and not t.is_array(have) and name in ("push_front", "pop_front"):
            self._builtin(call, func, 1, t.VOID)
            self._assignable(func.expr)
            target = call.target
            assert target.args[0] is not None
            target.args[0] = self.convert(target.args[0], t.INT)
            if self.constant(target.args[0]) is None:
                raise self.fail(f"the argument of {name}() must be a constant", call.span)
        else:
            raise self.fail(f"'{have}' has no method {name!r}", call.span)

    def _size_call(self, call: ast.Call, func: ast.Member, have: Type) -> bool:
        bits = t.min_bits(have) if func.name.startswith("min") else t.max_bits(have)
        if bits is None:
            return False
        self._builtin(call, func, 0, t.INT)
        call.target.constant = (bits + 7) // 8 if func.name.endswith("Bytes") else bits
        return True

    def _builtin(self, call: ast.Call, func: ast.Member, count: int, result: Type) -> None:
        if len(call.args) != count or any(argument.expr is None for argument in call.args):
            raise self.fail(f"{func.name}() takes {count} arguments", call.span)
        args = [argument.expr for argument in call.args]
        call.target = Target("builtin", func.name, args=list(args), receiver=func.expr)
        call.type = result

    def _method_call(self, call: ast.Call, func: ast.Member, have: t.ExternRef, type_args: tuple[Type, ...]) -> None:
        methods = [m for m in have.extern.methods if m.name == func.name and m.kind == "method"]
        if not methods:
            import difflib

            close = difflib.get_close_matches(func.name, {m.name for m in have.extern.methods}, 1)
            hint = f"; did you mean {close[0]!r}?" if close else ""
            raise self.fail(f"'{have}' has no method {func.name!r}{hint}", call.span)
        bindings: dict[TypeVar, Type] = dict(zip(have.extern.params, have.args, strict=False))
        function = self._overload(methods, call)
        self._function_call(call, function, type_args, "method", func.expr, bindings)

    def _overload(self, candidates: list[t.FunctionType], call: ast.Call) -> t.FunctionType:
        given = len(call.args)
        names = {argument.name for argument in call.args if argument.name is not None}
        fitting = [
            function
            for function in candidates
            if sum(param.default is None for param in function.params) <= given <= len(function.params)
            and names <= {param.name for param in function.params}
        ]
        if not candidates:
            raise self.fail("this function is not usable here", call.span)
        return fitting[0] if fitting else candidates[0]

    def _function_call(
        self,
        call: ast.Call,
        function: t.FunctionType,
        type_args: tuple[Type, ...],
        kind: str,
        receiver: ast.Expr | None,
        bindings: dict[TypeVar, Type],
    ) -> None:
        if type_args:
            if len(type_args) != len(function.type_params):
                counts = f"{len(function.type_params)} type arguments expected, {len(type_args)} given"
                raise self.fail(f"{function.name}: {counts}", call.span)
            given = zip(function.type_params, type_args, strict=True)
            bindings.update({variable: arg for variable, arg in given if arg != t.DONT_CARE})
        target = Target(kind, function.name, function.params, receiver=receiver, function=function)
        target.args = self.bind(function.params, call.args, function.name, call.span, bindings)
        target.bindings = bindings
        target.decl = function.decl
        call.target = target
        call.type = t.substitute(function.result, bindings)
        if isinstance(call.type, TypeVar) and call.type in function.type_params:
            raise self.fail(f"{function.name}: cannot infer type parameter {call.type}", call.span)
        if kind == "function" and function.type_params:
            missing = [variable.name for variable in function.type_params if variable not in bindings]
            if missing:
                raise self.fail(f"{function.name}: cannot infer type parameter {missing[0]}", call.span)
            chosen = tuple(bindings[variable] for variable in function.type_params)
            target.decl = self.specialise(function.decl, chosen, call.span)
            target.function = target.decl.type
            target.params = target.decl.type.params
        if function.name == "static_assert" and kind == "extern":
            self._static_assert(call, target)

    def _static_assert(self, call: ast.Call, target: Target) -> None:
        condition = target.args[0]
        value = None if condition is None else self.constant(condition)
        message = target.args[1] if len(target.args) > 1 else None
        if value is None:
            raise self.fail("static_assert needs a constant", call.span)
        if not value:
            text = f": {message.value}" if isinstance(message, ast.StringLit) else ""
            raise self.fail(f"static_assert failed{text}", call.span)
        target.constant = True

    # arguments

    def bind(
        self,
        params: list[t.Parameter],
        args: list[ast.Argument],
        name: str,
        span: Span,
        bindings: dict[TypeVar, Type],
        partial: bool = False,
    ) -> list[ast.Expr | None]:
        """The arguments in the order of the parameters, each converted to its parameter's type."""
        slots: list[ast.Expr | None] = [None] * len(params)
        filled = [False] * len(params)
        positions = {param.name: position for position, param in enumerate(params)}
        if any(arg.name is None for arg in args) and any(arg.name is not None for arg in args):
            raise self.fail(f"{name}: either all arguments are named or none", span)
        for position, argument in enumerate(args):
            if argument.name is not None:
                found = positions.get(argument.name)
                if found is None:
                    raise self.fail(f"{name}: no parameter {argument.name!r}", argument.span)
                position = found
            if position >= len(params):
                raise self.fail(f"{name}: {len(params)} arguments expected, {len(args)} given", span)
            if filled[position]:
                raise self.fail(f"{name}: {params[position].name} is given twice", argument.span)
            filled[position] = True
            slots[position] = argument.expr
        for position, param in enumerate(params):
            if not filled[position]:
                if param.default is not None:
                    slots[position] = param.default
                elif not partial and not _is_optional(param):
                    raise self.fail(f"{name}: no argument for {param.name!r}", span)
        self.infer(params, slots, bindings)
        for position, param in enumerate(params):
            slot = slots[position]
            if slot is not None:
                slots[position] = self._argument(slot, param, bindings)
        return slots

    def infer(self, params: list[t.Parameter], slots: list[ast.Expr | None], bindings: dict[TypeVar, Type]) -> None:
        """Find type parameters: from arguments with a definite type first, then from literals."""
        pairs = [(param, slot) for param, slot in zip(params, slots, strict=True) if slot is not None]
        for literal_round in (False, True):
            for param, slot in pairs:
                if (slot.type == t.INT) == literal_round:
                    self._match(param.type, slot.type, bindings)

    def _match(self, pattern: Type, have: Type, bindings: dict[TypeVar, Type]) -> None:
        if isinstance(pattern, TypeVar):
            if isinstance(have, t.ListType):
                have = t.TupleType(have.items)
            bindings.setdefault(pattern, have)
        elif isinstance(pattern, t.TupleType) and isinstance(have, t.TupleType | t.ListType):
            for one, other in zip(pattern.items, have.items, strict=False):
                self._match(one, other, bindings)
        elif isinstance(pattern, t.StackType) and isinstance(have, t.StackType):
            self._match(pattern.element, have.element, bindings)
        elif isinstance(pattern, t.ExternRef | t.StructType) and _same_generic(pattern, have):
            assert isinstance(have, t.ExternRef | t.StructType)
            for one, other in zip(pattern.args, have.args, strict=False):
                self._match(one, other, bindings)
        elif isinstance(pattern, t.SpecialisedBlock) and isinstance(have, t.BlockType):
            block = pattern.block
            inner: dict[TypeVar, Type] = {}
            for wanted, given in zip(block.params, have.params, strict=False):
                self._match(wanted.type, given.type, inner)
            for variable, arg in zip(block.type_params, pattern.args, strict=True):
                if variable in inner:
                    self._match(arg, inner[variable], bindings)

    def _argument(self, expr: ast.Expr, param: t.Parameter, bindings: dict[TypeVar, Type]) -> ast.Expr:
        to = t.substitute(param.type, bindings)
        if param.direction in ("out", "inout"):
            if expr.type != to and t.UNKNOWN not in (expr.type, to):
                raise self.fail(f"{param.name} has type '{to}', not '{expr.type}'", expr.span)
            self._assignable(expr)
            return expr
        if isinstance(expr.type, t.MetaType | t.FunctionType) or expr.type == t.VOID:
            raise self.fail(f"a value is expected for {param.name}", expr.span)
        if isinstance(to, t.BlockType | t.SpecialisedBlock):
            self.compatible(expr, to)
            return expr
        if expr.type == t.INT and to == t.INT:
            return expr
        return self.convert(expr, to, f"the argument for {param.name}")

    def compatible(self, expr: ast.Expr, to: Type) -> None:
        """Whether a parser or control has the signature that a package asks for."""
        block = to.block if isinstance(to, t.SpecialisedBlock) else to
        have = expr.type
        if not isinstance(have, t.BlockType) or not isinstance(block, t.BlockType) or have.kind != block.kind:
            raise self.fail(f"'{block}' is expected, not '{have}'", expr.span)
        if len(have.params) != len(block.params):
            raise self.fail(f"{have.name} needs {len(block.params)} parameters to be a '{block.name}'", expr.span)
        bindings: dict[TypeVar, Type] = {}
        if isinstance(to, t.SpecialisedBlock):
            bindings = dict(zip(block.type_params, to.args, strict=True))
        for mine, theirs in zip(have.params, block.params, strict=True):
            wanted = t.substitute(theirs.type, bindings)
            if mine.direction != theirs.direction:
                wants = theirs.direction or "no direction"
                raise self.fail(f"{have.name}: {mine.name} must have {wants} to be a '{block.name}'", expr.span)
            if isinstance(wanted, TypeVar) or {wanted, mine.type} & {t.UNKNOWN, t.DONT_CARE}:
                continue
            if wanted != mine.type:
                raise self.fail(f"{have.name}: {mine.name} must have type '{wanted}', not '{mine.type}'", expr.span)

    # constructors

    def construct(self, call: ast.Call, of: Type, type_args: tuple[Type, ...]) -> None:
        """`Type(arguments)`: an instance of an extern, parser, control or package."""
        call.target, call.type = self.constructor(of, type_args, call.args, call.span)

    def constructor(
        self, of: Type, type_args: tuple[Type, ...], args: list[ast.Argument], span: Span
    ) -> tuple[Target, Type]:
        """The target and the type of a construction."""
        if isinstance(of, t.ExternType):
            of = t.ExternRef(of, type_args)
        if isinstance(of, t.ExternRef):
            return self._extern_instance(of, args, span)
        if isinstance(of, t.SpecialisedBlock) and isinstance(of.block, t.PackageType):
            bindings = dict(zip(of.block.type_params, of.args, strict=True))
            return self._package_instance(of.block, args, span, bindings)
        if isinstance(of, t.PackageType):
            return self._package_instance(of, args, span, {})
        if isinstance(of, t.SpecialisedBlock) and isinstance(of.block, t.BlockType) and of.block.has_body:
            of = self._specialised_block(of.block, of.args, span)
        elif isinstance(of, t.BlockType) and of.type_params and of.has_body:
            of = self._specialised_block(of, type_args, span)
        if isinstance(of, t.BlockType):
            if not of.has_body:
                raise self.fail(f"{of.name} is only a type and cannot be instantiated", span)
            target = Target("constructor", of.name, of.ctor_params, decl=of.decl)
            target.args = self.bind(of.ctor_params, args, of.name, span, {})
            return target, of
        raise self.fail(f"'{of}' cannot be instantiated", span)

    def _specialised_block(self, block: t.BlockType, args: tuple[Type, ...], span: Span) -> t.BlockType:
        made = self.specialise(block.decl, args, span)
        assert isinstance(made.type, t.BlockType)
        return made.type

    def specialise(self, decl: Any, args: tuple[Type, ...], span: Span) -> Any:
        """A generic declaration with types for its parameters; implemented with the generics."""
        raise NotImplementedError

    def _extern_instance(self, of: t.ExternRef, args: list[ast.Argument], span: Span) -> tuple[Target, Type]:
        constructors = [m for m in of.extern.methods if m.kind == "constructor"]
        if not constructors:
            raise self.fail(f"{of} has no constructor", span)
        names = {arg.name for arg in args if arg.name is not None}
        fitting = [m for m in constructors if len(m.params) == len(args)] or constructors
        fitting = [m for m in fitting if names <= {param.name for param in m.params}] or fitting
        bindings: dict[TypeVar, Type] = dict(zip(of.extern.params, of.args, strict=False))
        target = Target("constructor", of.extern.name, fitting[0].params, decl=of.extern.decl)
        target.args = self.bind(fitting[0].params, args, str(of), span, bindings)
        target.bindings = bindings
        missing = [variable for variable in of.extern.params if variable not in bindings]
        if missing:
            raise self.fail(f"{of}: type argument {missing[0]} is missing", span)
        return target, t.ExternRef(of.extern, tuple(bindings[variable] for variable in of.extern.params))

    def _package_instance(
        self, of: t.PackageType, args: list[ast.Argument], span: Span, bindings: dict[TypeVar, Type]
    ) -> tuple[Target, Type]:
        target = Target("constructor", of.name, of.params, decl=of.decl)
        target.args = self.bind(of.params, args, of.name, span, bindings)
        target.bindings = bindings
        return target, of


def _is_optional(param: t.Parameter) -> bool:
    return param.decl is not None and ast.has_annotation(param.decl.annotations, "optional")


def _same_generic(pattern: Type, have: Type) -> bool:
    """Whether two types are instances of one generic extern or structure."""
    if isinstance(pattern, t.ExternRef):
        return isinstance(have, t.ExternRef) and pattern.extern is have.extern
    same = isinstance(pattern, t.StructType) and isinstance(have, t.StructType)
    return same and pattern.generic is not None and pattern.generic is have.generic  # type: ignore[attr-defined]

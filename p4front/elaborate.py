"""Elaboration: the package `main` becomes one flat program."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from p4front import consteval, ir
from p4front import p4types as t
from p4front import syntax as ast
from p4front.check import Checker
from p4front.dead_code import dropped_instances
from p4front.diagnostics import Diagnostics
from p4front.key_names import control_plane_name
from p4front.layout import Layout
from p4front.lower_block import BlockInstance
from p4front.lower_parser import ParserLowering
from p4front.values import ObjectValue, Value

PACKAGE = "V1Switch"
V1MODEL_VERSIONS = (20180101, 20200408)


@dataclass(slots=True)
class Pipeline:
    """Ingress or egress."""

    name: str
    decl: ast.ControlDecl
    body: list[ir.Stmt]


@dataclass(slots=True)
class Elaborated:
    """Everything the two outputs need."""

    main: ast.Instantiation
    program: ast.Program
    layout: Layout
    errors: dict[str, int]
    # the value of an expression in an annotation, or None
    annotation_value: Callable[[ast.Expr], consteval.Value | None]
    blocks: list[ir.Instance]
    externs: list[ir.Extern]
    parser: ast.ParserDecl
    states: list[ir.State]
    ingress: Pipeline
    egress: Pipeline
    deparser: ast.ControlDecl
    deparser_order: list[str]
    digests: list[ir.Digest]
    calculations: list[ir.Calculation]
    checksums: list[ir.Checksum]
    field_lists: list[ir.FieldList]


def elaborate(program: ast.Program, checker: Checker, diagnostics: Diagnostics) -> Elaborated:
    """Instantiate `main` and inline everything; raises `CompileError` if that is not possible."""
    result = checker.recover(_Elaborator(program, checker, diagnostics).run)
    diagnostics.check()
    assert isinstance(result, Elaborated)
    return result


class _Elaborator:
    def __init__(self, program: ast.Program, checker: Checker, diagnostics: Diagnostics) -> None:
        self.program = program
        self.checker = checker
        self.diagnostics = diagnostics
        self.layout = Layout(diagnostics)
        self.lower = ParserLowering(self.layout, checker.errors, diagnostics)

    def run(self) -> Elaborated:
        main = self._main()
        self._model_version()
        externs: list[ir.Extern] = []
        self._globals(externs)
        self.lower.dropped = dropped_instances(self.program)
        lower = self.lower
        blocks = [self._block(arg, main) for arg in main.target.args]
        parser, verify, ingress, egress, compute, deparser = blocks
        assert isinstance(parser.decl, ast.ParserDecl)
        shared = self._shared(parser.decl)
        lower.annotation_value = self._annotation_value  # type: ignore[method-assign]
        states = lower.run_parser(parser, _bindings(parser, ["packet", "hdr", "meta", "std"], shared))
        self._checksum(verify, shared, verify=True)
        lower.stage = "ingress"
        ingress_body = lower.run_control(ingress, _bindings(ingress, ["hdr", "meta", "std"], shared))
        lower.stage = "egress"
        egress_body = lower.run_control(egress, _bindings(egress, ["hdr", "meta", "std"], shared))
        lower.stage = ""
        self._checksum(compute, shared, verify=False)
        order = lower.run_deparser(deparser, _bindings(deparser, ["packet", "hdr"], shared))
        self._action_names(blocks)
        field_lists = [lower.field_lists[key] for key in sorted(lower.field_lists)]
        return Elaborated(
            main, self.program, self.layout, self.checker.errors, self._annotation_value,
            [block.node for block in blocks], externs,
            parser.decl, states,
            Pipeline("ingress", _control(ingress), ingress_body), Pipeline("egress", _control(egress), egress_body),
            _control(deparser), order,
            lower.digests, lower.calculations, lower.checksums, field_lists,
        )  # fmt: skip

    def _main(self) -> ast.Instantiation:
        for decl in self.program.declarations:
            if isinstance(decl, ast.Instantiation) and decl.name == "main":
                if not isinstance(decl.type, t.PackageType) or decl.type.name != PACKAGE:
                    raise self.diagnostics.fail(f"main must be a {PACKAGE}, not '{decl.type}'", decl.span)
                if len(decl.target.args) != 6 or any(arg is None for arg in decl.target.args):
                    raise self.diagnostics.fail(f"{PACKAGE} needs six blocks", decl.span)
                return decl
        raise self.diagnostics.fail("the program has no 'main'")

    def _model_version(self) -> None:
        """`V1MODEL_VERSION` chooses among the architectures that there have been, from the first to the newest."""
        for decl in self.program.declarations:
            if isinstance(decl, ast.ConstDecl) and decl.name == "__v1model_version":
                version = self.checker.constant(decl.value)
                if not isinstance(version, int) or not V1MODEL_VERSIONS[0] <= version <= V1MODEL_VERSIONS[1]:
                    first, last = V1MODEL_VERSIONS
                    self.diagnostics.error(f"{version}: V1MODEL_VERSION must be {first} to {last}", decl.value.span)

    def _action_names(self, blocks: list[BlockInstance]) -> None:
        """Two actions of one control plane name could not be told apart."""
        members = [member for block in blocks for member in ir.members_of(block.node)]
        members += [value.target[0] for value in self.lower.globals.bindings.values() if _is_action(value)]  # type: ignore[union-attr, index]
        seen: dict[str, ast.ActionDecl] = {}
        for member in members:
            if isinstance(member, ir.ActionMember) and seen.setdefault(member.name, member.decl) is not member.decl:
                text = f"{member.decl.name}: another action has the control plane name '{member.name}'"
                self.diagnostics.error(text, member.decl.name_span)

    def _globals(self, externs: list[ir.Extern]) -> None:
        lower = self.lower
        lower.env = lower.globals
        for decl in self.program.declarations:
            if isinstance(decl, ast.ActionDecl):
                member = ir.ActionMember(control_plane_name("", decl), decl)
                lower.globals.bindings[decl] = ObjectValue(t.VOID, (member, lower.globals))
                if decl.name == "NoAction":
                    lower.no_action = decl
            elif isinstance(decl, ast.Instantiation) and isinstance(decl.type, t.ExternRef):
                value = lower.make_instance(decl, "")
                assert isinstance(value.target, ir.Extern)
                externs.append(value.target)
                lower.globals.bindings[decl] = value
            elif isinstance(decl, ast.Instantiation) and isinstance(decl.type, t.BlockType):
                lower.globals.bindings[decl] = lower.make_instance(decl, "")

    def _block(self, arg: ast.Expr, main: ast.Instantiation) -> BlockInstance:
        lower = self.lower
        if isinstance(arg, ast.Call) and isinstance(arg.type, t.BlockType):
            path = arg.type.decl.name  # P4Info names ignore @name of the package's controls
            return lower.make_block(arg.type.decl, path, arg.target.args, arg.span)
        value = lower.value(arg)
        if isinstance(value, ObjectValue) and isinstance(value.target, BlockInstance):
            return value.target
        raise self.diagnostics.fail("a parser or control is expected here", arg.span)

    def _shared(self, parser: ast.ParserDecl) -> dict[str, Value]:
        """The places that all blocks work on."""
        headers, metadata, standard = parser.params[1:4]
        assert isinstance(standard.type, t.StructType)
        span = parser.name_span
        if not t.is_struct(headers.type):
            text = f"{headers.name}: the headers must be a struct of headers, stacks and unions, not '{headers.type}'"
            self.diagnostics.limit(text, headers.span)
        place = self.layout.parameter(headers.type, "" if t.is_struct(headers.type) else headers.name, span)
        user = self.layout.user_metadata(metadata.type, span)
        self.lower.metadata_type, self.lower.metadata_value = metadata.type, user
        packet = ObjectValue(t.VOID, "packet")
        return {"packet": packet, "hdr": place, "meta": user, "std": self.layout.standard_metadata(standard.type)}

    def _checksum(self, block: BlockInstance, shared: dict[str, Value], verify: bool) -> None:
        lower = self.lower
        decl = _control(block)
        assert decl.body is not None
        from p4front.lower_expr import Env

        lower.env = Env(block.env)
        lower.env.bindings.update(_bindings(block, ["hdr", "meta"], shared))
        lower.out = []
        block.node.applied = True
        lower.current = block
        self.checker.recover(lower.checksum_control, decl.body.body, verify)
        for item in lower.out:
            self.diagnostics.limit("a checksum can be only over fields and constants", item.span)
        lower.out = []

    def _annotation_value(self, expr: ast.Expr) -> consteval.Value | None:
        checked = self.checker.recover(self.checker.expr, expr)
        return None if checked is None else self.checker.constant(checked)


def _is_action(value: Value) -> bool:
    return isinstance(value, ObjectValue) and isinstance(value.target, tuple)


def _control(block: BlockInstance) -> ast.ControlDecl:
    assert isinstance(block.decl, ast.ControlDecl)
    return block.decl


def _bindings(block: BlockInstance, names: list[str], shared: dict[str, Value]) -> dict[ast.Decl, Value]:
    return {param: shared[name] for param, name in zip(block.decl.params, names, strict=True)}



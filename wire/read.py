"""P4 text -> declarations, by p4front's parser and checker: widths and values arrive folded."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from p4front import p4types as t
from p4front import syntax as ast
from p4front.check import Checker
from p4front.diagnostics import CompileError, SourceText
from p4front.driver import check_file
from wire.declarations import Const, Declaration, Enum, Header, Source, Typedef, WireError, base_name, make_header


def read(root: Path, paths: Iterable[str]) -> list[Source]:
    """The declarations of `paths` (relative to `root`), each file's own: what it includes is not repeated."""
    sources = []
    for path in paths:
        try:
            checked = check_file(root / path)
        except CompileError as error:
            raise WireError(f"{path} does not compile:\n{error}") from None
        if checked.diagnostics.warnings:  # such as a value that does not fit its type
            raise WireError("\n".join(map(str, checked.diagnostics.warnings)))
        own = (decl for decl in checked.program.declarations if _is_own(decl, checked.source, root / path))
        sources.append(Source(path, tuple(_declaration(decl, checked.checker) for decl in own)))
    _refuse_duplicates(sources)
    return sources


def _is_own(decl: ast.Decl, text: SourceText, path: Path) -> bool:
    return Path(text.locate(decl.name_span[0]).file) == path


def _declaration(decl: ast.Decl, checker: Checker) -> Declaration:
    match decl:
        case ast.ConstDecl():
            value = checker.constant(decl.value)
            if isinstance(value, bool) or not isinstance(value, int):
                raise WireError(f"const {decl.name}: only bit<N> constants are supported, not {decl.type}")
            return Const(decl.name, _bits(f"const {decl.name}", decl.type), value)
        case ast.TypedefDecl():
            return Typedef(base_name(decl.name), _bits(f"typedef {decl.name}", decl.type))
        case ast.EnumDecl(type=t.EnumType() as enum) if enum.base is not None:
            bits = _bits(f"enum {decl.name}", enum.base)
            return Enum(base_name(decl.name), bits, tuple(enum.members.items()))
        case ast.StructDecl(kind="header"):
            return _header(decl)
    raise WireError(f"{decl.name}: only const, typedef, enum bit<N> and header can become C and Python")


def _header(decl: ast.StructDecl) -> Header:
    fields = []
    for item in decl.fields:
        type_name = item.type_node.name if isinstance(item.type_node, ast.NamedType) else None
        fields.append((item.name, _bits(f"header {decl.name}: field {item.name}", item.type), type_name))
    return make_header(decl.name, fields)


def _bits(what: str, type_: t.Type) -> int:
    bits = t.representation(type_)
    if not isinstance(bits, t.BitType) or bits.signed:
        raise WireError(f"{what}: type {type_} is not bit<N>")
    return bits.width


def _refuse_duplicates(sources: list[Source]) -> None:
    """Each file compiles by itself, but they share one C and one Python namespace."""
    home: dict[str, str] = {}
    for source in sources:
        for name in {declaration.name for declaration in source.declarations}:
            if name in home:
                raise WireError(f"{name} is declared in {home[name]} and in {source.path}")
            home[name] = source.path

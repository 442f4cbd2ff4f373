"""The instances that p4c drops before it writes P4Info.

p4c removes a read of a register into a variable that nothing reads, and then an instance that nothing refers to if its
type is written as a typedef (an instance of the extern's own name stays, used or not).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import fields, is_dataclass

from p4front import p4types as t
from p4front import syntax as ast


def dropped_instances(program: ast.Program) -> set[ast.Instantiation]:
    """The instances of a checked program that neither output has."""
    candidates = {
        item
        for decl in program.declarations
        if isinstance(decl, ast.ControlDecl | ast.ParserDecl)
        for item in decl.locals
        if isinstance(item, ast.Instantiation) and _by_typedef(item)
    }
    if not candidates:
        return set()
    references: Counter[object] = Counter()
    reads: list[tuple[object, object]] = []
    for node in _walk(program):
        if isinstance(node, ast.Name):
            references[node.decl] += 1
        elif isinstance(node, ast.CallStmt):
            read = _read(node.call)
            if read is not None:
                reads.append(read)
    into = Counter(variable for _, variable in reads)
    for instance, variable in reads:
        if isinstance(variable, ast.VarDecl) and references[variable] == into[variable]:
            references[instance] -= 1
    return {item for item in candidates if not references[item]}


def _by_typedef(item: ast.Instantiation) -> bool:
    node = item.type_node
    return isinstance(item.type, t.ExternRef) and isinstance(node, ast.NamedType) and node.name != item.type.extern.name


def _read(call: ast.Call) -> tuple[object, object] | None:
    """The register and the variable of `register.read(variable, index)`."""
    target = call.target
    if target.kind != "method" or target.name != "read" or not isinstance(target.receiver, ast.Name):
        return None
    result = target.args[0] if target.args else None
    return (target.receiver.decl, result.decl) if isinstance(result, ast.Name) else None


def _walk(node: object) -> Iterator[ast.Node]:
    """A node and all nodes in it, as the program was written."""
    if isinstance(node, list):
        for item in node:
            yield from _walk(item)
    elif isinstance(node, tuple | dict):
        for item in node.values() if isinstance(node, dict) else node:
            yield from _walk(item)
    elif isinstance(node, ast.Node) and is_dataclass(node):
        yield node
        for field in fields(node):
            if field.name not in ("decl", "type", "target", "span", "name_span", "annotations"):
                yield from _walk(getattr(node, field.name, None))

"""What the control plane calls a table's key: its `@name`, or the expression as p4c writes it."""

from __future__ import annotations

from p4front import p4types as t
from p4front import syntax as ast


def annotated_name(annotations: list[ast.Annotation]) -> str | None:
    """The text of `@name("...")`."""
    found = ast.annotation(annotations, "name")
    if found is None or not found.args or not isinstance(found.args[0], ast.StringLit):
        return None
    return found.args[0].value


def control_plane_name(path: str, decl: ast.Decl) -> str:
    """The full name of a declaration in the instance `path`; `@name(".x")` is absolute."""
    name = annotated_name(decl.annotations)
    if name is None:
        name = decl.name
    if name.startswith("."):
        return name[1:]
    return f"{path}.{name}" if path else name


def key_name(key: ast.KeyElement) -> str | None:
    """The name of a key, or None where the program must give one."""
    return annotated_name(key.annotations) or _text(key.expr)


def _text(expr: ast.Expr) -> str | None:
    if isinstance(expr, ast.Name):
        return ("." if expr.absolute else "") + expr.name
    if isinstance(expr, ast.Member):
        base = _text(expr.expr)
        name = _field_name(expr)
        if name.startswith("."):  # an absolute @name hides the path
            return name[1:]
        return None if base is None else f"{base}.{name}"
    if isinstance(expr, ast.Index):
        base, index = _text(expr.expr), _text(expr.index)
        return None if base is None or index is None else f"{base}[{index}]"
    if isinstance(expr, ast.Slice):
        parts = [_text(part) for part in (expr.expr, expr.high, expr.low)]
        return None if None in parts else f"{parts[0]}[{parts[1]}:{parts[2]}]"
    if isinstance(expr, ast.IntLit):
        return {16: "0x{:x}", 8: "0o{:o}", 2: "0b{:b}"}.get(expr.base, "{}").format(expr.value)
    if isinstance(expr, ast.Call):
        if expr.target.kind == "builtin" and expr.target.name == "isValid":
            base = _text(expr.target.receiver)
            return None if base is None else f"{base}.$valid$"
        return None
    if isinstance(expr, ast.Cast) and expr.node is None:
        return _text(expr.expr)
    if isinstance(expr, ast.Binary) and expr.op == "&":
        left, right = _text(expr.left), _text(expr.right)
        return None if left is None or right is None else f"{left} & {right}"
    return None


def _field_name(expr: ast.Member) -> str:
    of = expr.expr.type
    field = of.fields.get(expr.name) if isinstance(of, t.StructType) else None
    decl = field.decl if field is not None else None
    return (annotated_name(decl.annotations) if decl is not None else None) or expr.name

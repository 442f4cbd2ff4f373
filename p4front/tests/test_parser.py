"""Lexer and parser: tokens, precedence, and what depends on knowing which names are types."""

from __future__ import annotations

import pytest

from p4front import syntax as ast
from p4front.diagnostics import Diagnostics, SourceText
from p4front.lexer import int_value, tokenize
from p4front.parser import parse


def parsed(text: str) -> ast.Program:
    diagnostics = Diagnostics(SourceText(text, [("t", i) for i, _ in enumerate(text.split("\n"), 1)]))
    program = parse(text, diagnostics)
    diagnostics.check()
    return program


def shown(expr: ast.Expr) -> str:
    """An expression with all its parentheses."""
    match expr:
        case ast.Binary():
            return f"({shown(expr.left)} {expr.op} {shown(expr.right)})"
        case ast.Unary():
            return f"{expr.op}{shown(expr.expr)}"
        case ast.Ternary():
            return f"({shown(expr.cond)} ? {shown(expr.then)} : {shown(expr.otherwise)})"
        case ast.Cast():
            return f"cast {shown(expr.expr)}"
        case ast.Call():
            types = "<>" if expr.type_args else ""
            return f"{shown(expr.func)}{types}({', '.join(shown(a.expr) for a in expr.args if a.expr)})"
        case ast.Member():
            return f"{shown(expr.expr)}.{expr.name}"
        case ast.Slice():
            return f"{shown(expr.expr)}[{shown(expr.high)}:{shown(expr.low)}]"
        case ast.IntLit():
            return str(expr.value)
        case ast.Name():
            return expr.name
    raise AssertionError(expr)


def expression(text: str) -> str:
    (decl,) = [d for d in parsed(f"typedef bit<8> T; const bit<8> x = {text};").declarations if d.name == "x"]
    assert isinstance(decl, ast.ConstDecl)
    return shown(decl.value)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a + b * c - d", "((a + (b * c)) - d)"),
        ("a & b == c", "((a & b) == c)"),  # unlike C
        ("a | b ^ c & d", "(a | (b ^ (c & d)))"),
        ("a << b + c", "(a << (b + c))"),
        ("a >> b >> c", "((a >> b) >> c)"),
        ("a ++ b ++ c", "((a ++ b) ++ c)"),
        ("a || b && c ? d : e ? f : g", "((a || (b && c)) ? d : (e ? f : g))"),
        ("-a.b", "-a.b"),
        ("(T)a + b", "(cast a + b)"),
        ("(a) - b", "(a - b)"),
        ("(bit<8>)-a", "cast -a"),
        ("(T)(T)a", "cast cast a"),
        ("a < b", "(a < b)"),
        ("f<T>(a)", "f<>(a)"),
        ("f<bit<8>>(a)", "f<>(a)"),
        ("p.f<T>(a)", "p.f<>(a)"),
        ("a[7:4]", "a[7:4]"),
        ("a |+| b |-| c", "((a |+| b) |-| c)"),
    ],
)
def test_expressions(text: str, expected: str) -> None:
    assert expression(text) == expected


@pytest.mark.parametrize(
    ("text", "value", "width", "signed"),
    [
        ("10", 10, None, False),
        ("0x1_F", 31, None, False),
        ("8w0b1010", 10, 8, False),
        ("4s7", 7, 4, True),
        ("0o17", 15, None, False),
        ("16w0d99", 99, 16, False),
    ],
)
def test_integer_literals(text: str, value: int, width: int | None, signed: bool) -> None:
    found = int_value(text)
    assert found is not None
    assert (found.value, found.width, found.signed) == (value, width, signed)


def test_tokens_have_their_places() -> None:
    tokens = tokenize("a <<= 8w1;")
    assert [(token.kind, token.text, token.start) for token in tokens] == [
        ("id", "a", 0), ("op", "<<=", 2), ("int", "8w1", 6), ("op", ";", 9), ("eof", "end of file", 10),
    ]  # fmt: skip


def test_soft_keywords_are_names() -> None:
    program = parsed("struct s { bit<8> key; bit<8> type; bit<8> state; bit<8> priority; }")
    (decl,) = program.declarations
    assert isinstance(decl, ast.StructDecl)
    assert [field.name for field in decl.fields] == ["key", "type", "state", "priority"]


def test_a_shadowed_type_is_a_variable_again() -> None:
    text = "typedef bit<8> T; control c(inout bit<8> T) { apply { T = (T) - 1; } }"
    control = parsed(text).declarations[1]
    assert isinstance(control, ast.ControlDecl) and control.body is not None
    (statement,) = control.body.body
    assert isinstance(statement, ast.Assign)
    assert shown(statement.value) == "(T - 1)"


def test_annotations() -> None:
    (decl,) = parsed('@name("x") @free(a b ; "c") @kv[k = 1, j = "s"] @list[1, 2] const bit<8> c = 1;').declarations
    name, free, pairs, items = decl.annotations
    assert isinstance(name.args[0], ast.StringLit) and name.args[0].value == "x"
    assert free.body == 'a b ; "c"' and not free.args
    assert set(pairs.pairs) == {"k", "j"} and pairs.structured
    assert len(items.args) == 2

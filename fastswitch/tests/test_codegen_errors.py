"""Every refusal names the construct; no JSON, however hostile, becomes C that it wrote itself."""

from __future__ import annotations

import copy
import json
import random
import time
from pathlib import Path
from typing import Any

import pytest

import fastswitch
from fastswitch import ProgramError
from fastswitch.codegen import build, compile_json, generate_c, initial_state, load_program
from fastswitch.codegen.emitter import comment, identifier, string_literal
from fastswitch.interpreter import Interpreter
from fastswitch.tests.codegen_programs import (
    action,
    always,
    assign,
    call,
    conditional,
    const,
    extract,
    field,
    header,
    on,
    one_action,
    op,
    param,
    program,
    state,
    table,
)
from fastswitch.tests.codegen_support import Compiled, compare

BYTE: list[list[Any]] = [["v", 8]]
H = {"h": BYTE}
NESTED = const(1)
for _ in range(400):
    NESTED = op("+", NESTED, const(1))


def without(section: str) -> dict[str, Any]:
    return {key: value for key, value in program(H).items() if key != section}


def run(*body: dict[str, Any], **more: Any) -> dict[str, Any]:
    return one_action(H, list(body), **more)


def with_table(**changes: Any) -> dict[str, Any]:
    rows = table("t", [("exact", "h", "v")], [(0, "nop")])
    return program(H, actions=[action(0, "nop", [])], ingress=[{**rows, **changes}])


REFUSED: list[tuple[Any, str]] = [
    ({}, "document: empty"),
    (b"{", "not JSON"),
    (b"[]", "not a JSON object"),
    (b"[" * 100_000, "not JSON"),
    (without("header_types"), "'header_types' is missing"),
    (without("parsers"), "'parsers' is missing"),
    (without("actions"), "'actions' is missing"),
    (without("pipelines"), "'pipelines' is missing"),
    ({**program(H), "__meta__": {"version": [3, 0]}}, "version 3.0 is not supported"),
    ({**program(H), "extern_instances": [{"id": 0, "type": "Lamp"}]}, "an instance of extern 'Lamp'"),
    (run(call("teleport")), "actions[0].primitives[0].op: no primitive named 'teleport'"),
    (run(call("asign", field("h", "v"), const(1))), "Did you mean 'assign'?"),
    (run(call("assign", field("h", "v"))), "takes 2 arguments, found 1"),
    (run(assign(field("h", "w"), const(1))), "no field of 'h_t' named 'w'"),
    (run(assign(field("g", "v"), const(1))), "no header named 'g'"),
    (run(assign(const(1), const(1))), "not something that can be assigned to"),
    (run(assign(field("h", "v"), op("**", const(1), const(2)))), "unknown operation '**'"),
    (run(assign(field("h", "v"), {"type": "magic", "value": 1})), "unknown operand type 'magic'"),
    (run(assign(field("h", "v"), {})), "found nothing"),
    (run(assign(field("h", "v"), NESTED)), "nested deeper than"),
    (run(assign(field("h", "v"), {"type": "hexstr", "value": "12; system()"})), "is not a hexadecimal number"),
    (run(assign(field("h", "v"), {"type": "hexstr", "value": "0x" + "f" * 9999})), "expected a hexadecimal string"),
    (run(assign(field("h", "v"), param(0))), "an action parameter"),
    (run(assign(field("h", "v"), op("/", const(-1), field("h", "v")))), "can be negative"),
    (
        run(assign(field("h", "v"), op("%", field("h", "v"), op("two_comp_mod", field("h", "v"), const(4))))),
        "can be negative",
    ),
    (run(assign(field("h", "v"), op("two_comp_mod", const(1), field("h", "v")))), "must be a constant"),
    (run(assign(field("h", "v"), {"type": "lookahead", "value": [0, 8]})), "lookahead outside a parser"),
    (run(call("_jump", const(9))), "beyond the end"),
    (run(call("count", {"type": "counter_array", "value": "c"}, const(0))), "no counter array named 'c'"),
    (run(call("add_header", {"type": "header", "value": 7})), "expected a string, found a number"),
    (with_table(match_type="fuzzy"), "unknown match kind 'fuzzy'"),
    (with_table(type="quantum"), "unknown table type 'quantum'"),
    (with_table(action_ids=[5]), "no action with id 5"),
    (with_table(type="indirect"), "'act_prof_name' is missing"),
    (with_table(next_tables={}), "no successor for action 'nop'"),
    (with_table(next_tables={"__HIT__": None}), "needs exactly the keys __HIT__ and __MISS__"),
    (with_table(next_tables={"nop": "nowhere"}), "no table, conditional or action call named 'nowhere'"),
    (with_table(next_tables={"nop": "t"}), "the control graph has a cycle"),
    (with_table(max_size=2**40), "is outside [0,"),
    (with_table(default_entry={"action_id": 0, "action_data": ["0x1"]}), "expected 0 elements, found 1"),
    (with_table(direct_meters="m"), "no meter array named 'm'"),
    (program({"h": [["v", 7]]}), "not whole bytes"),
    (program({"h": [["v", 10**9]]}), "is outside [1, 4096]"),
    (program({"h": [["v", 0]]}), "is outside [1, 4096]"),
    (program({"h": [["v", 8], ["v", 8]]}), "a second field named 'v'"),
    (program(H, stacks={"s": ("h_t", 0)}), "a stack of 0 headers"),
    (
        program(H, register_arrays=[{"name": "r", "id": 0, "size": 2**24, "bitwidth": 512}]),
        "register_arrays: arrays of",
    ),
    (program(H, register_arrays=[{"name": "r", "id": 0, "size": 2**40, "bitwidth": 8}]), "is outside [0,"),
    (program(H, order=["x"]), "no header named 'x'"),
    (program(H, order=["standard_metadata"]), "metadata 'standard_metadata' cannot be emitted"),
    (program(H, states=[state("start", [], default="gone")]), "no parser state named 'gone'"),
    (program(H, states=[state("start", [{"op": "jump", "parameters": []}])]), "unknown parser operation 'jump'"),
    (
        program(H, calculations=[{"name": "c", "id": 0, "algo": "md5", "input": []}]),
        "no hash algorithm named 'md5'",
    ),
    (program(H, conditionals=[conditional("if", field("h", "v"), None, None)]), "expected a condition"),
    (program({f"h{i}": [["v", 8 * 2048 // 4]] * 1 for i in range(300)}), "headers and metadata of more than"),
]


@pytest.mark.parametrize(("document", "problem"), REFUSED, ids=[text for _, text in REFUSED])
def test_refused_by_name(document: Any, problem: str) -> None:
    with pytest.raises(ProgramError) as caught:
        generate_c(document)
    assert problem in str(caught.value)


def test_the_package_exports_what_others_use() -> None:
    assert fastswitch.ProgramError is ProgramError
    assert fastswitch.compile_json is compile_json


EVIL = [
    '*/ int evil; /*',
    '"; system("x"); //',
    "a\\",
    "??/",
    "$(x) ${y} `z`",
    "x" * 500,
    "\u202eevil",
    "main",
    "%s%n",
    "",
]  # fmt: skip


@pytest.mark.parametrize("name", EVIL)
def test_names_never_become_c(name: str, tmp_path: Path) -> None:
    """A program all of whose names are hostile compiles to the same C, but for comments and strings."""

    def renamed(to: str) -> dict[str, Any]:
        text = {"type": "string", "value": to + "{}"}
        body = [
            assign(field("h" + to, "v" + to), param(0)),
            call("log_msg", text, {"type": "parameters_vector", "value": [const(1)]}),
        ]
        for each in body:
            each["source_info"] = {"filename": to, "line": 1, "column": 1, "source_fragment": to * 2}
        document = program(
            {"h" + to: [["v" + to, 8]]},
            actions=[action(0, "a" + to, body, [("p" + to, 8)])],
            ingress=[table("t" + to, [("exact", "h" + to, "v" + to)], [(0, "a" + to)])],
            states=[state("start" + to, [{"op": "extract", "parameters": [{"type": "regular", "value": "h" + to}]}])],
        )
        document["program"] = to
        return document

    if not name.isprintable():
        with pytest.raises(ProgramError):
            generate_c(renamed(name))
        return
    assert compile_json(renamed(name), tmp_path).exists()
    assert "evil" not in _code(generate_c(renamed(name)).replace("_evil", ""))


def _code(text: str) -> str:
    """C without comments and string literals."""
    kept = []
    for line in text.splitlines():
        if not line.strip().startswith("/*"):
            kept.append("".join(part for index, part in enumerate(line.split('"')) if index % 2 == 0))
    return "\n".join(kept)


def test_escapes() -> None:
    assert identifier("h", 3, '"; }') == "h3"
    assert string_literal('a"\\\n?') == '"a\\042\\134\\012\\077"'
    assert comment("a */ b /* c \\ ??/ //*/") == "/* a * / b / * c   ? ?/ // * / */"


def mutated(value: Any, pick: random.Random) -> Any:
    """Changes one place of a document."""
    path: list[Any] = []
    at = value
    while isinstance(at, dict | list) and at and (len(path) < 2 or pick.random() < 0.9):
        key = pick.choice(list(at)) if isinstance(at, dict) else pick.randrange(len(at))
        path.append((at, key))
        at = at[key]
    owner, key = path[-1]
    kind = pick.randrange(4)
    if kind == 0 and isinstance(owner, dict):
        del owner[key]
    elif kind == 1 and isinstance(owner, list):
        owner.append(copy.deepcopy(owner[key]))
    else:
        owner[key] = pick.choice([None, -1, 0, 1, 2**70, 1.5, "", "0x", "0xzz", "v", "h", [], {}, [[]], True, "x" * 9])
    return value


def test_mutations_are_refused_or_run() -> None:
    """Nothing but ProgramError comes out, whatever one place of a real program becomes."""
    fixture = json.loads((Path(__file__).parent / "data" / "ecmp.json").read_text())
    pick = random.Random(7)
    outcomes = {True: 0, False: 0}
    for _ in range(400):
        document = mutated(copy.deepcopy(fixture), pick)
        try:
            generate_c(document)
            initial_state(document)
            outcomes[True] += 1
        except ProgramError as error:
            assert str(error)
            outcomes[False] += 1
    assert min(outcomes.values()) > 20


def test_the_cache_is_by_content(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    document = program(H)
    first = compile_json(document, tmp_path)
    assert compile_json(json.dumps(document), tmp_path) == first
    assert compile_json(json.dumps(document, indent=3).encode(), tmp_path) == first
    assert compile_json({**document, "program": "other"}, tmp_path) != first
    assert sorted(path.suffix for path in tmp_path.iterdir()) == [".c", ".c", ".so", ".so"]
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "home"))
    assert compile_json(document).parent == tmp_path / "home" / "plait"
    monkeypatch.setattr(build, "_run", lambda *_: pytest.fail("compiled again"))
    assert compile_json(document, tmp_path) == first


def test_a_missing_compiler_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("CC", raising=False)
    with pytest.raises(ProgramError, match="C compiler: none found"):
        compile_json(program(H), tmp_path)


def test_a_compilation_without_end_is_ended_with_its_children(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cc = tmp_path / "cc"
    cc.write_text(f"#!/bin/sh\nsleep 60 & echo $! > {tmp_path}/child\nwait\n")
    cc.chmod(0o755)
    monkeypatch.setattr(build, "compiler", lambda: str(cc))
    monkeypatch.setattr(build, "_environment_hash", lambda cc: b"")
    monkeypatch.setattr(build, "COMPILE_SECONDS", 1)
    with pytest.raises(ProgramError, match="compiling takes more than 1 s"):
        compile_json(program(H), tmp_path / "cache")
    child = Path("/proc", (tmp_path / "child").read_text().strip(), "stat")
    for _ in range(100):
        if not child.exists() or child.read_text().rpartition(")")[2].split()[0] == "Z":
            return
        time.sleep(0.02)
    pytest.fail("the compiler's child lives on")


@pytest.mark.parametrize(
    ("limit", "value", "reason"),
    [("COMPILE_MEMORY_KIB", 30_000, "memory|Segmentation fault"), ("COMPILE_FILE_BLOCKS", 2, "File size limit")],
)
def test_a_compiler_beyond_its_limits_is_stopped_by_name(
    limit: str, value: int, reason: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    option = {"COMPILE_MEMORY_KIB": "-v", "COMPILE_FILE_BLOCKS": "-f"}[limit]
    monkeypatch.setattr(build, "_LIMITS", f"ulimit -c 0; ulimit {option} {value}")
    with pytest.raises(ProgramError, match=f"compiling it was stopped .*({reason}).*the limits are 120 s, 4 GiB"):
        compile_json(program(H), tmp_path)
    assert not list(tmp_path.iterdir())


def test_a_cache_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(ProgramError, match=f"cache: cannot write to {tmp_path}/file/cache: Not a directory"):
        compile_json(program(H), tmp_path / "file" / "cache")


def many_states(count: int) -> dict[str, Any]:
    """A chain of states that each skip a byte, and loop back where the byte is 0xff."""
    ahead = {"type": "lookahead", "value": [0, 8]}
    states = [
        state(f"s{i}", [{"op": "advance", "parameters": [const(8)]}], [ahead], [on("0xff", "s0")],
              f"s{i + 1}" if i + 1 < count else None)
        for i in range(count)
    ]  # fmt: skip
    add = [action(0, "add", [assign(field("h", "v"), op("+", field("h", "v"), const(1)))])]
    tables = [always(f"t{i}", 0, "add", f"t{i + 1}" if i + 1 < count else None) for i in range(count)]
    return program({"h": [["v", 16]]}, states=[*states[:-1], {**states[-1], "parser_ops": [extract("h")]}], actions=add,
                   ingress=tables)  # fmt: skip


def test_large_programs_are_split_and_do_the_same(tmp_path: Path) -> None:
    document = many_states(150)
    assert "parse_part_2(" in generate_c(document) and "ingress_part_2(" in generate_c(document)
    compiled, reference = Compiled(document, tmp_path), Interpreter(document)
    for frame in (bytes(151) + b"\x10", bytes(40), bytes(100) + b"\xff" + bytes(150) + b"\x10\x11", b"\xff" * 300):
        compare(compiled, reference, frame, {"ingress_port": 1})
    found = compare(compiled, reference, bytes(149) + b"\x01\x00", {"ingress_port": 1})
    assert found["frame"] == b"\x01\x96"
    compiled.close()


def test_initial_state() -> None:
    entries = [
        {
            "match_key": [
                {"match_type": "lpm", "key": "0xaabb", "prefix_length": 8},
                {"match_type": "exact", "key": "0x01"},
            ],
            "action_entry": {"action_id": 3, "action_data": ["0x1ff", "-0x1"]},
            "priority": 1,
        }
    ]  # fmt: skip
    rows = table(
        "t",
        [("lpm", "h", "a"), ("exact", "h", "b")],
        [(3, "go")],
        default=(3, ["0x01", "0x02"]),
        const=True,
        entries=entries,
    )
    document = program(
        {"h": [["a", 16], ["b", 4], ["c", 4]]},
        actions=[action(3, "go", [], [("port", 9), ("value", 64)])],
        ingress=[always("first", 3, "go") | {"default_entry": {"action_id": 3, "action_data": ["0x0", "0x0"]}}, rows],
    )
    state = initial_state(document)
    assert [each.table_name for each in state.defaults] == ["first", "t"]
    assert (state.defaults[1].const, state.defaults[0].const) == (True, False)
    assert state.defaults[1].params == bytes([0, 1, 0, 0, 0, 0, 0, 0, 0, 2])
    (entry,) = state.entries
    assert (entry.key, entry.mask, entry.prefix_len, entry.priority) == (bytes([0xAA, 0, 1]), None, 8, 0)
    assert entry.target == ("action", 0, bytes([1, 0xFF]) + b"\xff" * 8)


def test_several_actions_may_share_a_name() -> None:
    document = program(H, actions=[action(0, "NoAction", []), action(7, "NoAction", [call("add_header", header("h"))])])
    assert [each.id for each in load_program(document).actions] == [0, 7]

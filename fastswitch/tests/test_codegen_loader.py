"""What BMv2's loader refuses (src/bm_sim/P4Objects.cpp), each by one change to a program that has everything."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from fastswitch import ProgramError
from fastswitch.codegen import generate_c
from fastswitch.tests.codegen_programs import (
    action,
    call,
    conditional,
    const,
    extract,
    field,
    header,
    op,
    param,
    program,
    state,
    table,
)

Path = tuple[str | int, ...]
DELETED = object()


def everything() -> dict[str, Any]:
    """One of each kind of object."""
    start = state(
        "start",
        [
            extract("h"),
            extract("s", "stack"),
            {"op": "extract", "parameters": [{"type": "union_stack", "value": ["us", "one"]}]},
            {"op": "extract_VL", "parameters": [{"type": "regular", "value": "o"}, op("*", field("h", "v"), const(8))]},
            {"op": "set", "parameters": [field("scalars", "m"), {"type": "lookahead", "value": [0, 8]}]},
            {"op": "verify", "parameters": [op("==", field("h", "v"), const(1)), 1]},
            {"op": "advance", "parameters": [const(8)]},
            {"op": "shift", "parameters": [1]},
            {"op": "primitive", "parameters": [call("add_header", header("h"))]},
        ],
        [field("h", "v"), {"type": "stack_field", "value": ["s", "v"]}],
        [
            {"type": "hexstr", "value": "0x0102", "mask": "0xffff", "next_state": "next"},
            {"type": "parse_vset", "value": "set", "mask": None, "next_state": "next"},
        ],
    )
    counter = {"type": "counter_array", "value": "count"}
    body = [
        call("assign", field("h", "v"), param(0)),
        call("count", counter, const(0)),
        call("register_read", field("h", "v"), {"type": "register_array", "value": "r"}, const(0)),
        call("push", {"type": "header_stack", "value": "s"}, const(1)),
    ]
    entry = {
        "match_key": [{"match_type": "ternary", "key": "0x01", "mask": "0xff"}],
        "action_entry": {"action_id": 0, "action_data": ["0x5"]},
        "priority": 1,
    }
    simple = table("t", [("ternary", "h", "v")], [(0, "act")], "p", default=(1, []), entries=[entry])
    simple["next_tables"] = {"__HIT__": "p", "__MISS__": None}
    simple["direct_meters"] = "dm"
    profiled = table("p", [("exact", "h", "v")], [(0, "act")], "if", type="indirect_ws", action_profile="profile")
    document = program(
        {"h": [["v", 8]], "o": [["options", "*"]]},
        [["m", 8]],
        states=[start, state("next", [])],
        actions=[action(0, "act", body, [("x", 8)]), action(1, "nop", [])],
        ingress=[simple, profiled],
        conditionals=[conditional("if", op("==", field("h", "v"), const(1)), None, "call")],
        stacks={"s": ("h_t", 2)},
        header_union_types=[{"name": "u_t", "id": 0, "headers": [["one", "h_t"]]}],
        header_unions=[{"name": "u", "id": 0, "union_type": "u_t", "header_ids": [6]}],
        header_union_stacks=[{"name": "us", "id": 0, "union_type": "u_t", "header_union_ids": [0]}],
        parse_vsets=[{"name": "set", "id": 0, "compressed_bitwidth": 16}],
        enums=[{"name": "e", "entries": [["A", 0], ["B", 1]]}],
        calculations=[
            {"name": "c", "id": 0, "algo": "csum16", "input": [{"type": "field", "value": ["h", "v"]}]},
        ],
        checksums=[{"name": "k", "id": 0, "type": "generic", "target": ["h", "v"], "calculation": "c"}],
        register_arrays=[{"name": "r", "id": 0, "size": 1, "bitwidth": 8}],
        counter_arrays=[{"name": "count", "id": 0, "size": 1, "is_direct": False}],
        meter_arrays=[
            {"name": "dm", "id": 0, "size": 1, "type": "bytes", "is_direct": True, "result_target": ["scalars", "m"]},
        ],
        learn_lists=[{"name": "l", "id": 1, "elements": [field("h", "v")]}],
        field_lists=[{"name": "f", "id": 1, "elements": [field("h", "v")]}],
        field_aliases=[["meta.m", ["scalars", "m"]]],
    )
    document["headers"].append({"name": "u.one", "id": 6, "header_type": "h_t", "metadata": False})
    pipeline = document["pipelines"][0]
    selector = {"algo": "crc16", "input": [{"type": "field", "value": ["h", "v"]}]}
    pipeline["action_profiles"] = [{"name": "profile", "id": 0, "max_size": 4, "selector": selector}]
    pipeline["action_calls"] = [{"name": "call", "id": 0, "action_id": 1, "next_node": None}]
    return document


TABLE: Path = ("pipelines", 0, "tables", 0)
STATE: Path = ("parsers", 0, "parse_states", 0)
BODY: Path = ("actions", 0, "primitives")
NUMBERED: list[Path] = [
    ("header_types",), ("headers",), ("header_stacks",), ("header_unions",), ("header_union_stacks",),
    ("parse_vsets",), ("parsers",), ("parsers", 0, "parse_states"), ("deparsers",), ("calculations",),
    ("counter_arrays",), ("meter_arrays",), ("register_arrays",), ("actions",), ("pipelines",),
    ("pipelines", 0, "action_profiles"), ("pipelines", 0, "tables"), ("pipelines", 0, "conditionals"),
    ("pipelines", 0, "action_calls"), ("checksums",), ("learn_lists",), ("field_lists",),
]  # fmt: skip
CHANGES: list[tuple[Path, Any, str]] = [
    # versions and enumerations
    (("__meta__", "version"), [2], "expected 2 elements"),
    (("__meta__", "version"), 2, "expected a list"),
    (("__meta__", "version"), [3, 0], "version 3.0 is not supported"),
    (("__meta__", "version"), [2, 25], "version 2.25 is not supported"),
    (("enums", 0, "entries", 1), ["A", 1], "'A' is in enum 'e' already"),
    (("enums", 0, "entries", 1), ["B", 0], "'0' is in enum 'e' already"),
    (("enums",), [{"name": "e"}, {"name": "e"}], "a second enum named 'e'"),
    # headers
    (("headers", 2, "header_type"), "x_t", "no header type named 'x_t'"),
    (("headers", 2, "name"), "scalars", "a second header named 'scalars'"),
    (("header_stacks", 0, "header_type"), "x_t", "no header type named 'x_t'"),
    (("header_stacks", 0, "header_ids"), [4, 99], "no header with id 99"),
    (("header_unions", 0, "union_type"), "x_t", "no header union type named 'x_t'"),
    (("header_union_stacks", 0, "union_type"), "x_t", "no header union type named 'x_t'"),
    (("header_types", 3, "max_length"), DELETED, "'max_length' is missing"),
    (("header_types", 1, "fields", 1, 0), "spec", "v1model requires field standard_metadata.egress_spec"),
    (("field_aliases", 0, 1, 1), "x", "no field of 'scalars' named 'x'"),
    (("errors", 1), ["NoError", 1], "declared before"),
    (("errors", 1, 1), 0, "declared before"),
    # externs
    (("extern_instances",), [{"name": "x", "id": 0, "type": "Lamp"}], "an instance of extern 'Lamp'"),
    # parser
    ((*STATE, "parser_ops", 0, "parameters"), [], "takes 1 arguments, found 0"),
    ((*STATE, "parser_ops", 0, "parameters", 0, "type"), "odd", "unknown extract target 'odd'"),
    ((*STATE, "parser_ops", 0, "parameters", 0, "value"), "o", "which has no length: use extract_VL"),
    ((*STATE, "parser_ops", 2, "parameters", 0, "value"), ["us"], "expected 2 elements, found 1"),
    ((*STATE, "parser_ops", 2, "parameters", 0, "value", 1), "two", "no union member named 'two'"),
    ((*STATE, "parser_ops", 3, "parameters", 0, "value"), "h", "which has a fixed length"),
    ((*STATE, "parser_ops", 3, "parameters", 1), {"type": "bool", "value": True}, "expected a number"),
    ((*STATE, "parser_ops", 4, "parameters", 0), const(1), "not something that can be assigned to"),
    ((*STATE, "parser_ops", 4, "parameters", 1), {"type": "odd", "value": 1}, "unknown operand type 'odd'"),
    ((*STATE, "parser_ops", 5, "parameters", 1), 99, "no error has the code 99"),
    ((*STATE, "parser_ops", 6, "parameters"), [], "takes 1 arguments, found 0"),
    ((*STATE, "parser_ops", 7, "parameters"), [1, 2], "takes 1 arguments, found 2"),
    ((*STATE, "parser_ops", 8, "parameters", 0, "op"), "dance", "no primitive named 'dance'"),
    ((*STATE, "parser_ops", 8, "op"), "dance", "unknown parser operation 'dance'"),
    ((*STATE, "transition_key", 0), {"type": "hexstr", "value": "0x1"}, "a select key must be a field"),
    ((*STATE, "transitions", 0, "value"), "0x102030", "does not fit 16 bits"),
    ((*STATE, "transitions", 0, "value"), "0x12", "0x12 is 1 bytes, expected 2"),
    ((*STATE, "transitions", 0, "mask"), "0xff", "0xff is 1 bytes, expected 2"),
    ((*STATE, "transitions", 0, "type"), "odd", "unknown transition type 'odd'"),
    ((*STATE, "transitions", 0, "next_state"), "x", "no parser state named 'x'"),
    ((*STATE, "transitions", 1, "value"), "x", "no value set named 'x'"),
    ((*STATE, "transitions", 1, "mask"), "0x0fff", "a mask on a value set is not supported"),
    ((*STATE, "name"), "next", "a second parser state named 'next'"),
    (("parsers", 0, "init_state"), "x", "no parser state named 'x'"),
    (("deparsers", 0, "order", 0), "x", "no header named 'x'"),
    # calculations, arrays
    (("calculations", 0, "algo"), "md5", "no hash algorithm named 'md5'"),
    (("calculations", 0, "input", 0, "type"), "odd", "unknown calculation input 'odd'"),
    (("calculations", 0, "input", 0, "value", 1), "x", "no field of 'h_t' named 'x'"),
    (("meter_arrays", 0, "type"), "miles", "unknown meter type 'miles'"),
    (("meter_arrays", 0, "result_target", 0), "x", "no header named 'x'"),
    (("register_arrays", 0, "size"), -1, "is outside [0,"),
    # actions
    ((*BODY, 0, "op"), "dance", "no primitive named 'dance'"),
    ((*BODY, 0, "parameters"), [], "primitive 'assign' takes 2 arguments, found 0"),
    ((*BODY, 0, "parameters", 1, "value"), 1, "1 is outside [0, 0]"),
    ((*BODY, 0, "parameters", 1, "type"), "extern", "unknown operand type 'extern'"),
    ((*BODY, 1, "parameters", 0, "value"), "x", "no counter array named 'x'"),
    ((*BODY, 1, "parameters", 0, "type"), "meter_array", "expected a counter_array, found 'meter_array'"),
    ((*BODY, 2, "parameters", 1, "value"), "x", "no register array named 'x'"),
    ((*BODY, 3, "parameters", 0, "value"), "x", "no header stack named 'x'"),
    # tables
    ((*TABLE, "key"), [{"match_type": "lpm", "target": ["h", "v"]}] * 2, "more than one lpm key"),
    ((*TABLE, "key", 0, "match_type"), "fuzzy", "unknown match kind 'fuzzy'"),
    ((*TABLE, "key", 0, "target", 1), "x", "no field of 'h_t' named 'x'"),
    ((*TABLE, "match_type"), "exact", "a key of kind 'ternary' in a table of kind 'exact'"),
    ((*TABLE, "type"), "quantum", "unknown table type 'quantum'"),
    ((*TABLE, "direct_meters"), "x", "no meter array named 'x'"),
    ((*TABLE, "action_ids"), [0, 0], "two actions named 'act'"),
    ((*TABLE, "action_ids"), [9], "no action with id 9"),
    ((*TABLE, "next_tables"), {"__HIT__": None}, "needs exactly the keys __HIT__ and __MISS__"),
    ((*TABLE, "next_tables"), {"act": None, "nop": None}, "'nop' is not an action of the table"),
    ((*TABLE, "next_tables"), {}, "no successor for action 'act'"),
    ((*TABLE, "next_tables"), {"act": "x"}, "no table, conditional or action call named 'x'"),
    ((*TABLE, "base_default_next"), "x", "no table, conditional or action call named 'x'"),
    ((*TABLE, "name"), "p", "a second table named 'p'"),
    ((*TABLE, "default_entry", "action_data"), DELETED, "'action_data' is missing"),
    ((*TABLE, "default_entry", "action_data"), ["0x1"], "expected 0 elements, found 1"),
    ((*TABLE, "entries", 0, "match_key"), [], "expected 1 elements, found 0"),
    ((*TABLE, "entries", 0, "match_key", 0, "match_type"), "exact", "an entry of kind 'exact' for a key of kind"),
    ((*TABLE, "entries", 0, "match_key", 0, "key"), "0x101", "does not fit 8 bits"),
    ((*TABLE, "entries", 0, "action_entry", "action_data"), [], "expected 1 elements, found 0"),
    ((*TABLE, "entries", 0, "action_entry", "action_id"), 9, "no action with id 9"),
    ((*TABLE, "entries"), everything()["pipelines"][0]["tables"][0]["entries"] * 2, "the same match as an entry"),
    (("pipelines", 0, "tables", 1, "action_profile"), "x", "no action profile named 'x'"),
    (("pipelines", 0, "tables", 1, "action_profile"), DELETED, "'act_prof_name' is missing"),
    (("pipelines", 0, "tables", 1, "max_size"), DELETED, "neither 'max_size' nor 'entries'"),
    (
        ("pipelines", 0, "tables", 1, "default_entry"),
        {"action_id": 1, "action_const": True, "action_data": []},
        "'action_const' in a table with an action profile",
    ),
    (("pipelines", 0, "action_profiles", 0, "selector", "algo"), "random", "no hash algorithm named 'random'"),
    (
        ("pipelines", 0, "conditionals", 0),
        {"name": "if", "expression": op("d2b", None, const(1))},
        "neither 'true_next' nor 'false_next'",
    ),
    (("pipelines", 0, "conditionals", 0, "expression"), const(1), "expected a condition"),
    (("pipelines", 0, "conditionals", 0, "name"), "t", "a second table, conditional or action call named 't'"),
    (("pipelines", 0, "action_calls", 0, "action_id"), 0, "has parameters and cannot be called directly"),
    (("pipelines", 0, "init_table"), "x", "no table, conditional or action call named 'x'"),
    # checksums and lists
    (("checksums", 0, "type"), "odd", "unknown checksum type 'odd'"),
    (("checksums", 0, "calculation"), "x", "no calculation named 'x'"),
    (("checksums", 0, "target", 1), "x", "no field of 'h_t' named 'x'"),
    (("learn_lists", 0, "elements", 0, "type"), "header", "'header' in a list of fields"),
    (("field_lists", 0, "elements", 0, "type"), "header", "'header' in a list of fields"),
]  # fmt: skip


def changed(path: Path, value: Any) -> dict[str, Any]:
    document = copy.deepcopy(everything())
    at: Any = document
    for key in path[:-1]:
        at = at[key]
    if value is DELETED:
        del at[path[-1]]
    elif isinstance(at, list) and path[-1] == len(at):
        at.append(value)
    else:
        at[path[-1]] = value
    return document


def test_a_program_that_has_everything_loads() -> None:
    assert "plait_pipeline" in generate_c(everything())


@pytest.mark.parametrize(
    ("path", "value", "problem"), CHANGES, ids=[f"{'.'.join(map(str, path))}: {text}" for path, _, text in CHANGES]
)
def test_one_change_is_refused_by_name(path: Path, value: Any, problem: str) -> None:
    with pytest.raises(ProgramError) as caught:
        generate_c(changed(path, value))
    assert problem in str(caught.value)


@pytest.mark.parametrize("path", NUMBERED, ids=[".".join(map(str, path)) for path in NUMBERED])
def test_an_id_of_two_objects_is_refused_by_name(path: Path) -> None:
    document = everything()
    at: Any = document
    for key in path:
        at = at[key]
    twin = {**copy.deepcopy(at[0]), "name": "twin"}
    at.append(twin)
    with pytest.raises(ProgramError, match=rf"\.id: id {twin['id']} is taken by "):
        generate_c(document)


@pytest.mark.parametrize("name", ["plait.queue_depth", "ingress.plait.queue_depth", "plait.plait.queue_depth"])
def test_live_state_that_does_not_exist_is_refused(name: str) -> None:
    document = everything()
    document["register_arrays"].append({"name": name, "id": 900, "bitwidth": 32, "size": 4})
    with pytest.raises(ProgramError, match="no live state named 'queue_depth': plait has queue_bytes, queue_packets, "):
        generate_c(document)
    document["register_arrays"][-1] |= {"name": name.replace("depth", "bytes"), "bitwidth": 65}
    with pytest.raises(ProgramError, match=r"bitwidth: 65 is outside \[1, 64\]"):
        generate_c(document)

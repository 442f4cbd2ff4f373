"""BMv2 JSON: structure, expressions, the table graph, parser and entries."""

from __future__ import annotations

from typing import Any

import pytest

from p4front.diagnostics import CompileError
from p4front.driver import compile_file
from p4front.json_parser import _prefixes
from p4front.tests.kit import P4SRC

SECTIONS = [
    "header_types", "headers", "header_stacks", "header_union_types", "header_unions", "header_union_stacks",
    "field_lists", "errors", "enums", "parsers", "parse_vsets", "deparsers", "meter_arrays", "counter_arrays",
    "register_arrays", "calculations", "learn_lists", "actions", "pipelines", "checksums", "force_arith",
    "extern_instances", "field_aliases", "program", "__meta__",
]  # fmt: skip


def primitives(json: dict[str, Any], op: str) -> list[dict[str, Any]]:
    return [p for action in json["actions"] for p in action["primitives"] if p["op"] == op]


def ops(tree: Any) -> list[str]:
    """The operators of an expression, outermost first."""
    if isinstance(tree, dict):
        own = [tree["op"]] if "op" in tree else []
        return own + [op for value in tree.values() for op in ops(value)]
    return []


def pipeline(json: dict[str, Any], name: str = "ingress") -> dict[str, Any]:
    return next(item for item in json["pipelines"] if item["name"] == name)


def nodes(json: dict[str, Any], name: str = "ingress") -> dict[str, dict[str, Any]]:
    pipe = pipeline(json, name)
    return {item["name"]: item for item in pipe["tables"] + pipe["conditionals"]}


@pytest.fixture(scope="module")
def ecmp() -> dict[str, Any]:
    return compile_file(P4SRC / "ecmp.p4").bmv2_json


def test_sections_and_version(ecmp: dict[str, Any]) -> None:
    assert list(ecmp) == SECTIONS
    assert ecmp["__meta__"] == {"version": [2, 23], "compiler": "p4front"}


def test_ecmp_headers_and_metadata(ecmp: dict[str, Any]) -> None:
    headers = {header["name"]: header for header in ecmp["headers"]}
    assert {"scalars", "ethernet", "ipv4", "udp", "bth", "standard_metadata"} <= set(headers)
    assert all(sum(field[1] for field in kind["fields"]) % 8 == 0 for kind in ecmp["header_types"])
    scalars = next(kind for kind in ecmp["header_types"] if kind["name"] == headers["scalars"]["header_type"])
    assert ["metadata_t.flow_hash", 16, False] in scalars["fields"]
    assert ["intrinsic_metadata.priority", ["standard_metadata", "priority"]] in ecmp["field_aliases"]


def test_ecmp_parser(ecmp: dict[str, Any]) -> None:
    states = {state["name"]: state for state in ecmp["parsers"][0]["parse_states"]}
    first, last = states["parse_ipv4"]["transitions"]
    # ihl, frag_offset and protocol, each padded to whole bytes
    assert (first["value"], first["mask"], first["next_state"]) == ("0x05000011", None, "parse_udp")
    assert (last["type"], last["next_state"]) == ("default", None)


def test_ecmp_tables(ecmp: dict[str, Any]) -> None:
    lpm = nodes(ecmp)["ingress.balance.ipv4_lpm"]
    assert (lpm["type"], lpm["match_type"]) == ("indirect_ws", "lpm") and "default_entry" not in lpm
    assert [key["name"] for key in lpm["key"]] == ["hdr.ipv4.dst_addr"]
    (profile,) = pipeline(ecmp)["action_profiles"]
    assert profile["name"] == lpm["action_profile"]
    assert profile["selector"]["input"] == [{"type": "field", "value": ["scalars", "metadata_t.flow_hash"]}]
    seed = nodes(ecmp)["ingress.balance.per_flow.switch_seed"]
    assert seed["default_entry"]["action_data"] == ["0x9e3779b1"]


def test_source_info(ecmp: dict[str, Any]) -> None:
    info = nodes(ecmp)["ingress.balance.ipv4_lpm"]["source_info"]
    line = P4SRC.joinpath("lb/ecmp.p4").read_text().split("\n")[info["line"] - 1]
    assert line[info["column"] :].startswith(info["source_fragment"]) and info["source_fragment"] == "ipv4_lpm"


def test_every_name_resolves(ecmp: dict[str, Any]) -> None:
    for pipe in ecmp["pipelines"]:
        known = {None, *(item["name"] for item in pipe["tables"] + pipe["conditionals"])}
        followers = {pipe["init_table"]}
        for table in pipe["tables"]:
            followers |= {table["base_default_next"], *table["next_tables"].values()}
            assert [ecmp["actions"][number]["name"] for number in table["action_ids"]] == table["actions"]
        for item in pipe["conditionals"]:
            followers |= {item["true_next"], item["false_next"]}
        assert followers <= known
    assert len({action["id"] for action in ecmp["actions"]}) == len(ecmp["actions"])


@pytest.mark.parametrize(
    ("statement", "expected"),
    [
        ("hdr.ip.ttl = hdr.ip.ttl + hdr.ip.proto;", ["&", "+"]),
        ("hdr.ip.ttl = hdr.ip.ttl & hdr.ip.proto;", ["&"]),
        ("hdr.ip.ttl = ~hdr.ip.ttl;", ["&", "~"]),
        ("hdr.ip.ttl = hdr.ip.ttl |+| 1;", ["usat_cast", "+"]),
        ("hdr.ip.ttl = (bit<8>)hdr.ip.sum;", ["&"]),
        ("hdr.ip.sum = (bit<16>)hdr.ip.ttl;", []),
        ("hdr.ip.ttl = hdr.ip.src[15:8];", ["&", ">>"]),
        ("hdr.ip.sum = hdr.ip.ttl ++ hdr.ip.proto;", ["|", "&", "<<"]),
        ("meta.flag = hdr.ip.ttl == 1 || hdr.ip.isValid();", ["b2d", "or", "==", "d2b"]),
        ("hdr.ip.ttl = hdr.ip.ttl > 1 ? hdr.ip.ttl : 8w0;", ["?", ">"]),
    ],
)
def test_expressions(statement: str, expected: list[str], compile_parts) -> None:
    json = compile_parts(ingress=statement).bmv2_json
    assert sorted(ops(primitives(json, "assign")[0]["parameters"][1])) == sorted(expected)


def test_constants_are_folded(compile_parts) -> None:
    json = compile_parts(
        declarations="const bit<8> a = 250; const bit<8> b = a + 10;", ingress="hdr.ip.ttl = b << 1;"
    ).bmv2_json
    assert primitives(json, "assign")[0]["parameters"][1] == {"type": "hexstr", "value": "0x08"}


def test_slices_of_the_left_side(compile_parts) -> None:
    json = compile_parts(ingress="hdr.ip.sum[11:4] = hdr.ip.ttl;").bmv2_json
    (assign,) = primitives(json, "assign")
    assert assign["parameters"][0]["value"] == ["ip", "sum"]
    assert sorted(ops(assign["parameters"][1])) == ["&", "&", "&", "<<", "|"]


def test_branches_become_conditionals(compile_parts) -> None:
    ingress = "if (hdr.ip.isValid()) { meta.mark = 1; } else { meta.mark = 2; } meta.flow = 3;"
    json = compile_parts(ingress=ingress).bmv2_json
    pipe = pipeline(json)
    (condition,) = pipe["conditionals"]
    assert pipe["init_table"] == condition["name"]
    branches = [nodes(json)[condition[side]] for side in ("true_next", "false_next")]
    assert branches[0]["name"] != branches[1]["name"]
    assert branches[0]["base_default_next"] == branches[1]["base_default_next"] is not None


TABLES = """
    action a() { meta.mark = 1; } action b(bit<8> v) { meta.mark = v; }
    table t { key = { hdr.ip.ttl: exact; } actions = { a; b; } }
    table u { actions = { a; } default_action = a; }
"""


def test_hit_and_miss(compile_parts) -> None:
    json = compile_parts(locals=TABLES, ingress="if (t.apply().hit) { u.apply(); }").bmv2_json
    assert nodes(json)["ing.t"]["next_tables"] == {"__HIT__": "ing.u", "__MISS__": None}
    json = compile_parts(locals=TABLES, ingress="if (!t.apply().hit) { u.apply(); }").bmv2_json
    assert nodes(json)["ing.t"]["next_tables"] == {"__HIT__": None, "__MISS__": "ing.u"}


def test_switch_on_the_action(compile_parts) -> None:
    json = compile_parts(locals=TABLES, ingress="switch (t.apply().action_run) { a: b: { u.apply(); } }").bmv2_json
    assert nodes(json)["ing.t"]["next_tables"] == {"ing.a": "ing.u", "ing.b": "ing.u", "NoAction": None}


def test_exit_and_return_end_the_right_thing(compile_parts) -> None:
    blocks = """
        control sub(inout metadata_t meta) {
            apply { if (meta.mark == 1) { return; } if (meta.mark == 2) { exit; } meta.mark = 3; }
        }
    """
    json = compile_parts(blocks=blocks, locals="sub() s;", ingress="s.apply(meta); meta.flow = 4;").bmv2_json
    found = nodes(json)
    first, second = (item for item in found.values() if "expression" in item)
    after = first["true_next"]  # return: what follows the application
    assert found[after]["next_tables"] == {found[after]["actions"][0]: None}
    assert second["true_next"] is None  # exit: the end of the pipeline
    assert found[second["false_next"]]["base_default_next"] == after


def test_if_in_an_action_becomes_jumps(compile_parts) -> None:
    locals_ = """
        action a() { if (hdr.ip.ttl == 0) { meta.mark = 1; } else { meta.mark = 2; } meta.flow = 3; }
        table t { actions = { a; } default_action = a; }
    """
    json = compile_parts(locals=locals_, ingress="t.apply();").bmv2_json
    action = next(action for action in json["actions"] if action["name"] == "ing.a")
    assert [p["op"] for p in action["primitives"]] == ["_jump_if_zero", "assign", "_jump", "assign", "assign"]
    assert action["primitives"][0]["parameters"][1]["value"] == "0x3"
    assert action["primitives"][2]["parameters"][0]["value"] == "0x4"


def test_entries(compile_parts) -> None:
    locals_ = """
        action a(bit<8> v) { meta.mark = v; }
        table t {
            key = { hdr.ip.ttl: ternary; hdr.ip.src: lpm; hdr.ip.proto: exact; }
            actions = { a; }
            const entries = { (1, 0x0a000000 &&& 0xff000000, 6): a(7); (_, _, 17): a(8); }
        }
    """
    table = nodes(compile_parts(locals=locals_, ingress="t.apply();").bmv2_json)["ing.t"]
    assert (table["match_type"], table["max_size"]) == ("ternary", 2)
    first, second = table["entries"]
    assert [first["priority"], second["priority"]] == [1, 2]
    assert first["match_key"][1] == {"match_type": "lpm", "key": "0x0a000000", "prefix_length": 8}
    assert first["action_entry"]["action_data"] == ["0x7"]
    assert second["match_key"][0] == {"match_type": "ternary", "key": "0x00", "mask": "0x00"}


def test_stacks_subparsers_and_lookahead(compile_parts) -> None:
    declarations = """
        header tag_t { bit<16> id; bit<16> next_kind; }
    """
    parser = """
        state start { pkt.extract(hdr.eth); transition select(pkt.lookahead<bit<16>>()) { 0: accept; default: tag; } }
        state tag { pkt.extract(hdr.tags.next);
                    transition select(hdr.tags.last.next_kind) { 0x8100: tag; 0x10..0x1f: ip; default: accept; } }
        state ip { pkt.extract(hdr.ip); transition accept; }
    """
    json = compile_parts(declarations=declarations, headers="tag_t[3] tags;", parser=parser).bmv2_json
    states = {state["name"]: state for state in json["parsers"][0]["parse_states"]}
    assert states["start"]["transition_key"] == [{"type": "lookahead", "value": [0, 16]}]
    assert states["tag"]["transition_key"] == [{"type": "stack_field", "value": ["tags", "next_kind"]}]
    assert ("0x0010", "0xfff0") in [(tr["value"], tr["mask"]) for tr in states["tag"]["transitions"]]
    assert json["header_stacks"][0]["size"] == 3
    assert json["deparsers"][0]["order"] == ["eth", "ip", "tags[0]", "tags[1]", "tags[2]"]


def test_two_instances_have_two_sets_of_everything(compile_parts) -> None:
    blocks = "control c(inout metadata_t m) { register<bit<8>>(4) r; apply { r.read(m.mark, 0); } }"
    json = compile_parts(blocks=blocks, locals="c() x; c() y;", ingress="x.apply(meta); y.apply(meta);").bmv2_json
    assert [register["name"] for register in json["register_arrays"]] == ["ing.x.r", "ing.y.r"]


def test_a_swap_through_a_function_copies(compile_parts) -> None:
    declarations = "void swap(inout bit<8> a, inout bit<8> b) { bit<8> t = a; a = b; b = t; }"
    json = compile_parts(declarations=declarations, ingress="swap(hdr.ip.ttl, hdr.ip.proto);").bmv2_json
    assert len(primitives(json, "assign")) == 3
    json = compile_parts(declarations=declarations, ingress="swap(hdr.ip.ttl, hdr.ip.ttl);").bmv2_json
    assert len(primitives(json, "assign")) > 3  # aliased arguments are copied in and out


def test_a_table_applied_twice_needs_the_same_followers(compile_parts) -> None:
    with pytest.raises(CompileError, match="applied twice with different followers"):
        compile_parts(locals=TABLES, ingress="u.apply(); t.apply(); u.apply();")


def test_header_unions(compile_parts) -> None:
    declarations = "header a_t { bit<8> x; } header b_t { bit<16> y; } header_union u_t { a_t a; b_t b; }"
    parser = "state start { pkt.extract(hdr.u.a); pkt.extract(hdr.us.next.b); transition accept; }"
    ingress = "if (hdr.u.isValid()) { hdr.us[1] = hdr.u; hdr.u.b.setValid(); }"
    parts = {"declarations": declarations, "headers": "u_t u; u_t[2] us;", "parser": parser, "ingress": ingress}
    json = compile_parts(**parts).bmv2_json
    assert json["header_union_types"] == [{"name": "u_t", "id": 0, "headers": [["a", "a_t"], ["b", "b_t"]]}]
    assert [union["name"] for union in json["header_unions"]] == ["u", "us[0]", "us[1]"]
    assert json["header_union_stacks"][0]["header_union_ids"] == [1, 2]
    extracts = [op["parameters"][0] for op in json["parsers"][0]["parse_states"][0]["parser_ops"]]
    assert extracts == [{"type": "regular", "value": "u.a"}, {"type": "union_stack", "value": ["us", "b"]}]
    (action,) = [action for action in json["actions"] if action["primitives"]]
    assert [p["op"] for p in action["primitives"]] == ["assign_union", "remove_header", "add_header"]


def test_priorities_of_entries(compile_parts) -> None:
    locals_ = """
        action a(bit<8> v) { meta.mark = v; }
        table t { key = { hdr.ip.ttl: ternary; } actions = { a; }
                  entries = { priority = 10: 1: a(1); priority = 30: 2: a(2); 3: a(3); } }
    """
    entries = nodes(compile_parts(locals=locals_, ingress="t.apply();").bmv2_json)["ing.t"]["entries"]
    # the largest wins by default, and BMv2 takes the smallest; the third entry has 30 - 1
    assert [entry["match_key"][0]["key"] for entry in entries] == ["0x02", "0x03", "0x01"]
    assert [entry["priority"] for entry in entries] == [1, 2, 3]


def test_a_compound_assignment_evaluates_its_target_once(compile_parts) -> None:
    declarations = "header h2 { bit<8> x; } bit<8> step(inout bit<8> i) { i = i + 1; return i; }"
    ingress = "hdr.hs[step(meta.mark)].x += 1;"
    json = compile_parts(declarations=declarations, headers="h2[4] hs;", ingress=ingress).bmv2_json
    writes = [p for p in primitives(json, "assign") if p["parameters"][0]["value"] == ["scalars", "metadata_t.mark"]]
    assert len(writes) == 1


def test_varbit(compile_parts) -> None:
    declarations = "header opt_t { bit<8> n; varbit<320> rest; }"
    parser = """
        state start { pkt.extract(hdr.eth); pkt.extract(hdr.opt, (bit<32>)meta.flow); transition accept; }
    """
    json = compile_parts(declarations=declarations, headers="opt_t opt; opt_t two;", parser=parser).bmv2_json
    kind = next(kind for kind in json["header_types"] if kind["name"] == "opt_t")
    assert kind["max_length"] == 41 and kind["fields"][1][1] == "*"
    assert [op["op"] for op in json["parsers"][0]["parse_states"][0]["parser_ops"]] == ["extract", "extract_VL"]


@pytest.mark.parametrize(("low", "high"), [(0, 0), (0, 255), (3, 17), (1, 254), (128, 255), (7, 7)])
def test_ranges_become_prefixes(low: int, high: int) -> None:
    covered = [value for start, bits in _prefixes(low, high) for value in range(start, start + (1 << bits))]
    assert covered == list(range(low, high + 1))


def test_assertions_are_numbers(compile_parts) -> None:
    json = compile_parts(ingress="assert(hdr.ip.ttl > 0); log_msg(\"ttl {}\", { hdr.ip.ttl });").bmv2_json
    (check,), (message,) = primitives(json, "assert"), primitives(json, "log_msg")
    assert ops(check["parameters"][0]) == ["b2d", ">"]  # BMv2 takes no boolean here
    assert message["parameters"][1]["value"] == [{"type": "field", "value": ["ip", "ttl"]}]


def test_value_sets_of_inlined_parsers(compile_parts) -> None:
    blocks_first = """
        header eth_t2 { bit<16> kind; }
        parser inner(packet_in p, out eth_t2 e) {
            value_set<bit<16>>(4) kinds;
            state start { p.extract(e); transition select(e.kind) { kinds: more; default: accept; } }
            state more { transition accept; }
        }
    """
    parser = "inner() sub; state start { sub.apply(pkt, hdr.e2); transition accept; }"
    compiled = compile_parts(declarations=blocks_first, headers="eth_t2 e2;", parser=parser)
    (value_set,) = compiled.bmv2_json["parse_vsets"]
    assert (value_set["name"], value_set["compressed_bitwidth"]) == ("prs.sub.kinds", 16)
    assert [v.preamble.name for v in compiled.p4info.value_sets] == ["prs.sub.kinds"]

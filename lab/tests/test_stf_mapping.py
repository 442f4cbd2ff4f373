"""Statements as P4Runtime entities, against P4Info written by hand."""

import pytest
from finsy.proto import p4i, p4r
from google.protobuf import text_format
from hypothesis import given, settings
from hypothesis import strategies as st

from lab.stf.mapping import Mapper, MappingError, UnmappedError
from lab.stf.names import UnresolvedName, find
from lab.stf.syntax import parse

P4INFO = text_format.Parse(
    """
    tables {
      preamble { id: 1 name: "ingress.route" alias: "route" }
      match_fields { id: 1 name: "hdr.ip.dst" bitwidth: 32 match_type: LPM }
      match_fields { id: 2 name: "hdr.ip.$valid$" bitwidth: 1 match_type: EXACT }
      match_fields { id: 3 name: "stack[0].x" bitwidth: 8 match_type: EXACT }
      action_refs { id: 11 } action_refs { id: 12 }
    }
    tables {
      preamble { id: 2 name: "ingress.acl" alias: "acl" }
      match_fields { id: 1 name: "h.f" bitwidth: 12 match_type: TERNARY }
      match_fields { id: 2 name: "h.r" bitwidth: 12 match_type: RANGE }
      match_fields { id: 3 name: "h.o" bitwidth: 12 match_type: OPTIONAL }
      action_refs { id: 12 }
    }
    tables { preamble { id: 3 name: "egress.acl" alias: "egress.acl" } action_refs { id: 11 } }
    tables {
      preamble { id: 4 name: "egress.odd" alias: "odd" }
      match_fields { id: 1 name: "h.odd" bitwidth: 12 other_match_type: "odd" }
      action_refs { id: 12 }
    }
    actions {
      preamble { id: 11 name: "ingress.forward" alias: "forward" }
      params { id: 1 name: "port" bitwidth: 9 } params { id: 2 name: "mac" bitwidth: 48 }
    }
    actions { preamble { id: 12 name: "ingress.drop" alias: "drop" } }
    counters { preamble { id: 21 name: "ingress.c" alias: "c" } size: 4 }
    direct_counters { preamble { id: 22 name: "ingress.dc" alias: "dc" } direct_table_id: 2 }
    registers {
      preamble { id: 31 name: "ingress.r" alias: "r" } size: 4
      type_spec { bitstring { bit { bitwidth: 12 } } }
    }
    registers {
      preamble { id: 32 name: "ingress.pairs" alias: "pairs" } size: 4
      type_spec { struct { name: "pair_t" } }
    }
    meters { preamble { id: 41 name: "ingress.m" alias: "m" } size: 3 }
    """,
    p4i.P4Info(),
)


def run(text):
    """The updates of all lines."""
    mapper = Mapper(P4INFO)
    return [update for statement in parse(text, "x.stf") for update in mapper.writes(statement)]


def expected(kind, text):
    return p4r.Update(type=kind, entity=text_format.Parse(text, p4r.Entity()))


INSERT, MODIFY, DELETE = p4r.Update.INSERT, p4r.Update.MODIFY, p4r.Update.DELETE
_PARAMS = 'params { param_id: 1 value: "\\001" } params { param_id: 2 value: "\\002" }'
FORWARD = f"action {{ action {{ action_id: 11 {_PARAMS} }} }}"
DROP = "action { action { action_id: 12 } }"


def test_exact_keys_left_out_are_zero_and_lpm_ones_do_not_matter():
    assert run("add route forward(mac:2, port:1)") == [
        expected(
            INSERT,
            'table_entry { table_id: 1 match { field_id: 2 exact { value: "\\000" } }'
            f' match {{ field_id: 3 exact {{ value: "\\000" }} }} {FORWARD} }}',
        )
    ]


@pytest.mark.parametrize("key", ["hdr.ip.valid", "ip.valid", "valid", "hdr.ip.$valid$", "ip.$valid$"])
def test_ways_to_write_validity(key):
    (update,) = run(f"add route {key}:1 drop()")
    assert [match.exact.value for match in update.entity.table_entry.match] == [b"\1", b"\0"]


@pytest.mark.parametrize("key", ["stack[0].x", "stack$0.x", "x"])
def test_ways_to_write_an_index(key):
    (update,) = run(f"add route {key}:0x7f drop()")
    assert [match.exact.value for match in update.entity.table_entry.match] == [b"\0", b"\x7f"]


@pytest.mark.parametrize(
    ("value", "wanted"),
    [
        ("0x0a0b0c0d", (b"\x0a\x0b\x0c\x0d", 32)),
        ("167772160/8", (b"\x0a\0\0\0", 8)),
        ("0x0affffff/8", (b"\x0a\0\0\0", 8)),
        ("0x0a0b****", (b"\x0a\x0b\0\0", 16)),
        ("7", (b"\7", 32)),
        ("0x********", None),
        ("0/0", None),
    ],
)
def test_prefixes(value, wanted):
    (update,) = run(f"add route dst:{value} drop()")
    lpm = [match.lpm for match in update.entity.table_entry.match if match.HasField("lpm")]
    found = [(match.value, match.prefix_len) for match in lpm]
    assert found == ([wanted] if wanted else [])


@pytest.mark.parametrize(
    ("value", "wanted"),
    [
        ("0x123", (b"\x01\x23", b"\x0f\xff")),
        ("0x1*3", (b"\x01\x03", b"\x0f\x0f")),
        ("0x12", (b"\x12", b"\x0f\xff")),
        ("18", (b"\x12", b"\x0f\xff")),
        ("0b00000000000*", (b"\0", b"\x0f\xfe")),
        ("0o7**0", (b"\x0e\0", b"\x0e\x07")),
        ("0xff0/8", (b"\x0f\xf0", b"\x0f\xf0")),
        ("0x***", None),
    ],
)
def test_masks(value, wanted):
    (update,) = run(f"add ingress.acl h.f:{value} drop()")
    found = [(match.ternary.value, match.ternary.mask) for match in update.entity.table_entry.match]
    assert found == ([wanted] if wanted else [])
    assert update.entity.table_entry.priority == 1


@settings(max_examples=30)  # of 4096 values each
@given(st.lists(st.sampled_from("0123456789abcdef*"), min_size=3, max_size=3))
def test_a_mask_matches_what_the_digits_say(digits):
    """Every value of the key against the digits, one by one."""
    (update,) = run(f"add ingress.acl h.f:0x{''.join(digits)} drop()")
    ternary = next((match.ternary for match in update.entity.table_entry.match), p4r.FieldMatch.Ternary())
    value, mask = int.from_bytes(ternary.value, "big"), int.from_bytes(ternary.mask, "big")
    for key in range(1 << 12):
        written = f"{key:03x}"
        assert (key & mask == value) == all(d in ("*", k) for d, k in zip(digits, written, strict=True))


def test_priority_range_and_optional():
    (update,) = run("add ingress.acl 5 r:9 o:0 drop()")
    assert update == expected(
        INSERT,
        'table_entry { table_id: 2 match { field_id: 2 range { low: "\\011" high: "\\011" } }'
        f' match {{ field_id: 3 optional {{ value: "\\000" }} }} {DROP} priority: 6 }}',
    )


def test_default_and_remove():
    lines = ["add ingress.acl 1 f:1 drop()", "setdefault egress.acl forward(port:1, mac:2)", "remove all", "remove all"]
    updates = run("\n".join(lines))
    assert updates[1] == expected(MODIFY, f"table_entry {{ table_id: 3 is_default_action: true {FORWARD} }}")
    match = 'match { field_id: 1 ternary { value: "\\001" mask: "\\017\\377" } }'
    assert updates[2:] == [expected(DELETE, f"table_entry {{ table_id: 2 {match} priority: 2 }}")]


def group(kind, *replicas, id_=7):
    text = " ".join(f"replicas {{ egress_port: {port} instance: {rid} }}" for port, rid in replicas)
    pre = f"multicast_group_entry {{ multicast_group_id: {id_} {text} }}"
    return expected(kind, f"packet_replication_engine_entry {{ {pre} }}")


def session(kind, id_, *replicas):
    text = " ".join(f"replicas {{ egress_port: {port} instance: {rid} }}" for port, rid in replicas)
    return expected(kind, f"packet_replication_engine_entry {{ clone_session_entry {{ session_id: {id_} {text} }} }}")


def test_multicast_nodes_and_clone_sessions():
    text = """
        mc_mgrp_create 7
        mc_node_create 400 1 2
        mc_node_create 401 3
        mc_node_associate 7 1
        mc_node_associate 7 0
        mc_node_update 0 5
        mirroring_add_mc 3 7
        mirroring_add 4 9
        mirroring_add 4 8
        mirroring_delete 3
    """
    mapper = Mapper(P4INFO)
    updates = [update for statement in parse(text, "x.stf") for update in mapper.writes(statement)]
    assert updates == [
        group(INSERT, (3, 401)),
        group(MODIFY, (3, 401), (1, 400), (2, 400)),
        group(MODIFY, (3, 401), (5, 400)),
        session(INSERT, 3, (3, 401), (5, 400)),
        session(INSERT, 4, (9, 0)),
        session(MODIFY, 4, (8, 0)),
        session(DELETE, 3),
    ]
    assert mapper.leftovers() == [group(DELETE), session(DELETE, 4)]


def test_arrays():
    assert run("counter_write c 2 5 6\nregister_write r 3 0xfff\nregister_reset r") == [
        expected(MODIFY, "counter_entry { counter_id: 21 index { index: 2 } data { packet_count: 5 byte_count: 6 } }"),
        expected(MODIFY, 'register_entry { register_id: 31 index { index: 3 } data { bitstring: "\\017\\377" } }'),
        expected(MODIFY, 'register_entry { register_id: 31 data { bitstring: "\\000" } }'),
    ]
    config = "config { cir: 500000 cburst: 2 pir: 3000000 pburst: 4 }"
    assert run("meter_set_rates m 1 0.5:2 3:4\nmeter_array_set_rates m 0.5:2 3:4") == [
        expected(MODIFY, f"meter_entry {{ meter_id: 41 index {{ index: {cell} }} {config} }}") for cell in (1, 0, 1, 2)
    ]


def test_reads():
    mapper = Mapper(P4INFO)
    lines = ["add ingress.acl o:1 drop() = A", "check_counter dc($A)", "check_counter c(2)", "register_read r 1"]
    found = []
    for statement in parse("\n".join([*lines, "meter_get_rates m 1"]), "x.stf"):
        mapper.writes(statement)
        found.append(mapper.reads(statement))
    match = 'match { field_id: 3 optional { value: "\\001" } } priority: 1'
    wanted = [
        f"direct_counter_entry {{ table_entry {{ table_id: 2 {match} }} }}",
        "counter_entry { counter_id: 21 index { index: 2 } }",
        "register_entry { register_id: 31 index { index: 1 } }",
        "meter_entry { meter_id: 41 index { index: 1 } }",
    ]
    assert found == [None, *(text_format.Parse(text, p4r.Entity()) for text in wanted)]


WRONG = [
    ("add none drop()", UnresolvedName, "there is no table 'none'; there are: egress.acl, egress.odd, ingress.acl, "),
    ("add cl drop()", UnresolvedName, "table 'cl' is ambiguous: egress.acl, ingress.acl"),
    (
        "add route none:1 drop()",
        UnresolvedName,
        "there is no key of table ingress.route 'none'; there are: hdr.ip.$valid$",
    ),
    ("add route x:1 x:2 drop()", MappingError, "key stack[0].x is given twice"),
    ("add route none()", UnresolvedName, "there is no action of table ingress.route 'none'; there are: ingress.drop"),
    ("add ingress.acl forward(port:1)", UnresolvedName, "there is no action of table ingress.acl 'forward'"),
    ("add route forward(port:1)", MappingError, "parameter mac of ingress.forward is missing"),
    ("add route forward(port:1, speed:2)", UnresolvedName, "there is no parameter of ingress.forward 'speed'"),
    ("add route forward(port:512, mac:1)", MappingError, "port: 512 does not fit in 9 bits"),
    ("add route x:256 drop()", MappingError, "stack[0].x: 256 does not fit in 8 bits"),
    ("add route x:0x1* drop()", MappingError, "stack[0].x: 0x1* is no number"),
    ("add route x:1/4 drop()", MappingError, "stack[0].x: 1/4 is no number"),
    ("add route dst:1/33 drop()", MappingError, "hdr.ip.dst: the prefix length 33 is not within 0..32"),
    ("add route dst:0x0*0a0000 drop()", MappingError, "hdr.ip.dst: 0x0*0a0000 is no prefix"),
    ("add odd h.odd:1 drop()", UnmappedError, "key h.odd is of a kind that P4Runtime does not name"),
    ("mc_node_associate 1 0", MappingError, "there is no multicast group 1: create it with mc_mgrp_create"),
    ("mc_mgrp_create 1\nmc_node_associate 1 0", MappingError, "there is no multicast node 0: the 0 nodes count from 0"),
    ("mirroring_add_mc 1 9", MappingError, "there is no multicast group 9: create it with mc_mgrp_create"),
    ("mirroring_add 0 1", UnmappedError, "P4Runtime has no clone session 0"),
    ("register_write r 0 4096", MappingError, "r: 4096 does not fit in 12 bits"),
    ("register_reset pairs", UnmappedError, "cells of register ingress.pairs are no bit<W>"),
    ("counter_write m 0 1 1", UnresolvedName, "there is no counter 'm'; there are: ingress.c"),
    ("meter_set_rates c 0 1:1 1:1", UnresolvedName, "there is no meter 'c'; there are: ingress.m"),
]


@pytest.mark.parametrize(("text", "kind", "message"), WRONG, ids=[text for text, _, _ in WRONG])
def test_what_does_not_fit_is_named(text, kind, message):
    with pytest.raises(kind) as caught:
        run(text)
    assert str(caught.value).startswith(message)


def test_counters_that_do_not_fit_are_named():
    def read(text):
        mapper = Mapper(P4INFO)
        for statement in parse(text, "x.stf"):
            mapper.writes(statement)
            mapper.reads(statement)

    with pytest.raises(MappingError, match="no entry is labelled 'A'"):
        read("check_counter dc($A)")
    with pytest.raises(MappingError, match="entry 'A' is not of the table that ingress.dc counts for"):
        read("add route drop() = A\ncheck_counter dc($A)")
    with pytest.raises(UnresolvedName, match="there is no direct counter 'x'; there are: ingress.dc"):
        read("add route drop() = A\ncheck_counter x($A)")


def test_names_prefer_the_whole_then_a_part_then_any_end():
    def named(name, *known):
        return find("thing", name, known, lambda thing: (thing,))

    assert named("t", "a.t", "t", "a.bt") == "t"
    assert named("t", "a.t", "a.bt") == "a.t"
    assert named("t", "a.bt", "a.x") == "a.bt"
    with pytest.raises(UnresolvedName, match=r"^thing 't' is ambiguous: a.t, b.t$"):
        named("t", "b.t", "a.t")
    with pytest.raises(UnresolvedName, match=r"^there is no thing 't'; there are: none$"):
        named("t")

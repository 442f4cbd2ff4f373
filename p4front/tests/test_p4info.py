"""P4Info: ids, aliases, and what each kind of object says."""

from __future__ import annotations

import pytest
from finsy.proto import p4i

from p4front.driver import compile_file
from p4front.p4info_symbols import field_ids, jenkins_hash
from p4front.tests.kit import P4SRC


@pytest.mark.parametrize(
    ("name", "number"),
    [
        ("NoAction", 21257015),  # the id that every P4Info made by p4c has
        ("ingress.balance.forward", 28813834),
        ("ingress.balance.per_flow.set_seed", 30496478),
    ],
)
def test_ids_of_actions_are_a_hash_of_the_name(name: str, number: int) -> None:
    assert 0x01 << 24 | jenkins_hash(name) & 0xFFFFFF == number


def test_field_ids_skip_explicit_ones() -> None:
    assert field_ids([[], [], []]) == [1, 2, 3]


@pytest.fixture(scope="module")
def ecmp() -> p4i.P4Info:
    return compile_file(P4SRC / "ecmp.p4").p4info


def test_ecmp_tables(ecmp: p4i.P4Info) -> None:
    tables = {table.preamble.alias: table for table in ecmp.tables}
    assert list(tables) == ["switch_seed", "ipv4_lpm", "neighbor", "trace", "red_curve"]
    lpm = tables["ipv4_lpm"]
    assert lpm.preamble.name == "ingress.balance.ipv4_lpm"
    assert [(f.id, f.name, f.bitwidth, f.match_type) for f in lpm.match_fields] == [
        (1, "hdr.ipv4.dst_addr", 32, p4i.MatchField.LPM)
    ]
    assert lpm.size == 4096
    (profile,) = ecmp.action_profiles
    assert lpm.implementation_id == profile.preamble.id
    assert profile.with_selector and profile.size == 1024 and list(profile.table_ids) == [lpm.preamble.id]
    assert [ref.scope for ref in lpm.action_refs] == [p4i.ActionRef.TABLE_AND_DEFAULT, p4i.ActionRef.DEFAULT_ONLY]
    seed = tables["switch_seed"].initial_default_action
    assert [(a.param_id, a.value) for a in seed.arguments] == [(1, bytes.fromhex("9e3779b1"))]


def test_ecmp_actions_and_counters(ecmp: p4i.P4Info) -> None:
    actions = {action.preamble.alias: action for action in ecmp.actions}
    assert list(actions) == ["NoAction", "set_seed", "forward", "set_macs", "trace_to", "set_red"]
    set_macs = [(p.id, p.name, p.bitwidth) for p in actions["set_macs"].params]
    assert set_macs == [(1, "src_mac", 48), (2, "dst_mac", 48)]
    assert [(c.preamble.name, c.size, c.spec.unit) for c in ecmp.counters] == [
        ("ingress.arrive.rx.port_rx", 512, p4i.CounterSpec.BOTH),
        ("egress.tx.port_tx", 512, p4i.CounterSpec.BOTH),
        ("egress.tx.queue_tx", 4096, p4i.CounterSpec.BOTH),
        ("egress.mark.ecn_marked", 512, p4i.CounterSpec.BOTH),
    ]


def test_aliases_are_the_shortest_unique_suffix(compile_parts) -> None:
    locals_ = "action a() { } table t { actions = { a; } } one() x; one() y;"
    declarations = "control one() { action a() { } table t { actions = { a; } } apply { t.apply(); } }"
    info = compile_parts(declarations=declarations, locals=locals_, ingress="t.apply(); x.apply(); y.apply();").p4info
    assert {table.preamble.name: table.preamble.alias for table in info.tables} == {
        "ing.t": "ing.t", "ing.x.t": "x.t", "ing.y.t": "y.t",
    }  # fmt: skip


def test_names_and_ids_by_annotation(compile_parts) -> None:
    locals_ = """
        @name(".top") @id(0x77) action a(@id(5) bit<8> v, bit<8> w) { meta.mark = v + w; }
        @name("renamed") table t { key = { hdr.ip.ttl: exact @name("ttl"); hdr.ip.dst & 0xff: ternary; }
                                   actions = { @tableonly a; } }
    """
    info = compile_parts(locals=locals_, ingress="t.apply();").p4info
    action = next(action for action in info.actions if action.preamble.name == "top")
    assert action.preamble.id == 0x01000077
    assert [(p.id, p.name) for p in action.params] == [(5, "v"), (2, "w")]
    (table,) = info.tables
    assert table.preamble.name == "ing.renamed"
    assert [f.name for f in table.match_fields] == ["ttl", "hdr.ip.dst & 0xff"]
    assert table.action_refs[0].scope == p4i.ActionRef.TABLE_ONLY


def test_what_is_not_used_is_not_there(compile_parts) -> None:
    locals_ = """
        action used() { } action unused() { }
        table applied { actions = { used; } } table idle { actions = { unused; } }
    """
    info = compile_parts(locals=locals_, ingress="applied.apply(); if (false) { idle.apply(); }").p4info
    assert [table.preamble.alias for table in info.tables] == ["applied"]
    assert [action.preamble.alias for action in info.actions] == ["NoAction", "used"]


def test_externs(compile_parts) -> None:
    locals_ = """
        register<bit<32>>(64) r; meter(4, MeterType.bytes) m; direct_counter(CounterType.bytes) c;
        direct_meter<bit<8>>(MeterType.packets) dm;
        action a() { dm.read(meta.mark); c.count(); }
        table t { key = { hdr.ip.ttl: exact; } actions = { a; } counters = c; meters = dm; support_timeout = true; }
    """
    ingress = """
        t.apply(); r.write(0, hdr.ip.src); m.execute_meter(1, meta.mark);
        digest(1, { hdr.eth.src, sm.ingress_port });
    """
    info = compile_parts(locals=locals_, ingress=ingress).p4info
    assert info.registers[0].type_spec.bitstring.bit.bitwidth == 32 and info.registers[0].size == 64
    assert info.meters[0].spec.unit == p4i.MeterSpec.BYTES
    (table,) = info.tables
    assert list(table.direct_resource_ids) == [info.direct_counters[0].preamble.id, info.direct_meters[0].preamble.id]
    assert table.idle_timeout_behavior == p4i.Table.NOTIFY_CONTROL
    assert len(info.digests[0].type_spec.tuple.members) == 2


def test_controller_headers_and_user_types(compile_parts) -> None:
    declarations = """
        @p4runtime_translation("plait/port", 32) type bit<9> port_id_t;
        enum bit<8> color_t { RED = 1, BLUE = 0x20 }
        @controller_header("packet_in") header in_t { port_id_t port; bit<7> pad; }
    """
    locals_ = """
        action a(port_id_t p, color_t c) { meta.mark = (bit<8>)c; }
        table t { actions = { a; } }
    """
    info = compile_parts(declarations=declarations, locals=locals_, ingress="t.apply();").p4info
    (header,) = info.controller_packet_metadata
    assert header.preamble.name == "packet_in"
    assert [(m.id, m.name, m.bitwidth) for m in header.metadata] == [(1, "port", 32), (2, "pad", 7)]
    assert info.type_info.new_types["port_id_t"].translated_type.sdn_bitwidth == 32
    members = info.type_info.serializable_enums["color_t"].members
    assert [(m.name, m.value) for m in members] == [("RED", b"\x01"), ("BLUE", b"\x20")]


def test_package_information(compile_parts) -> None:
    info = compile_parts(package='@pkginfo(name = "x", version = "1") @other ').p4info
    assert (info.pkg_info.arch, info.pkg_info.name, info.pkg_info.version) == ("v1model", "x", "1")
    assert list(info.pkg_info.annotations) == ["@other"]

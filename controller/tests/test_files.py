"""Files of other tools, read against a program with an object of every kind."""

import json
from pathlib import Path

import finsy as fy
import pytest

from controller.command_file import read_command_file
from controller.describe import describe
from controller.errors import EntryTextError
from controller.runtime_json import read_runtime_json
from controller.writing import encoded

EVERYTHING = Path(__file__).resolve().parents[2] / "fastswitch" / "tests" / "data" / "everything.p4"
HIGHEST = (1 << 31) - 1


@pytest.fixture(scope="module", name="schema")
def _schema(tmp_path_factory):
    p4front = pytest.importorskip("p4front.driver")
    path = tmp_path_factory.mktemp("everything") / "p4info.txtpb"
    path.write_text(p4front.compile_file(EVERYTHING).p4info_text)
    return fy.P4Schema(path)


def meant(updates, schema):
    return [describe(encoded(update, schema), schema) for update in updates]


def commands(document, schema):
    return meant(read_command_file(document, schema).updates, schema)


# --- simple_switch_CLI ---


def test_every_command_that_writes(schema):
    document = """
        # BMv2 numbers from 0; P4Runtime has no 0
        table_set_default keyless_table forward 9
        table_add exact_table forward_counted 02:00:00:00:00:01 3 => 4
        table_add ingress.lpm_table ingress.forward 10.0.1.0/24 => 0x2
        table_add ternary_table forward 10.0.0.1&&&255.255.255.255 10.0.0.0/8 6 => 3 0
        table_add range_table drop 10->20 6&&&0xff => 5
        table_add optional_table drop 10.0.0.1&&&0xffffffff 0&&&0 => 7
        act_prof_create_member next_hops forward 1
        act_prof_create_member next_hops forward 2
        act_prof_create_group next_hops
        act_prof_add_member_to_group next_hops 0 0
        act_prof_add_member_to_group next_hops 1 0
        table_indirect_add_with_group selector_table 10.0.0.0/8 => 0
        table_indirect_create_member profile_table forward 5
        table_indirect_add profile_table 10.0.0.1 => 0
        mc_mgrp_create 1
        mc_node_create 7 1 2
        mc_node_create 8 3
        mc_node_associate 1 0
        mc_node_associate 1 1
        mirroring_add 5 510
        mirroring_add_mc 6 1
        counter_write port_counter 3 10 1000
        register_write words 2 0x10
        register_reset signed
        meter_set_rates port_meter 1 0.001:1500 0.002:3000
    """
    assert commands(document, schema) == [
        "insert next_hops member 1 -> forward(port=1)",
        "insert next_hops member 2 -> forward(port=2)",
        "insert plain_profile member 1 -> forward(port=5)",
        "insert next_hops group 1 -> members 1 2",
        "insert multicast group 1 -> ports 1#7 2#7 3#8",
        "insert clone session 5 -> ports 510",
        "insert clone session 6 -> ports 1#7 2#7 3#8",
        "insert exact_table hdr.ethernet.dst_addr=02:00:00:00:00:01 std.ingress_port=3 -> forward_counted(port=4)",
        "insert lpm_table hdr.ipv4.dst_addr=10.0.1.0/24 -> forward(port=2)",
        f"insert ternary_table hdr.ipv4.src_addr=10.0.0.1 hdr.ipv4.dst_addr=10.0.0.0/8 hdr.ipv4.protocol=6 "
        f"priority={HIGHEST} -> forward(port=3)",
        f"insert range_table hdr.ipv4.total_len=10..20 hdr.ipv4.protocol=6 priority={HIGHEST - 5} -> drop()",
        f"insert optional_table hdr.ipv4.src_addr=10.0.0.1 priority={HIGHEST - 7} -> drop()",
        "insert selector_table hdr.ipv4.dst_addr=10.0.0.0/8 -> group(1)",
        "insert profile_table hdr.ipv4.src_addr=10.0.0.1 -> member(1)",
        "modify keyless_table default -> forward(port=9)",
        "modify port_counter[3] = 10 packets, 1000 bytes",
        "modify words[2] = 16",
        "modify signed[*] = 0",
        "modify port_meter[1] = cir 1000/s, cburst 1500, pir 2000/s, pburst 3000",
    ]


def test_a_file_is_read_for_what_it_leaves_behind(schema):
    document = """
        table_add lpm_table forward 10.0.0.0/8 => 1
        table_add lpm_table forward 11.0.0.0/8 => 1
        table_delete lpm_table 0
        table_add lpm_table forward 12.0.0.0/8 => 1
        table_modify lpm_table forward 0 => 9
        act_prof_create_member next_hops forward 1
        act_prof_modify_member next_hops forward 0 7
        act_prof_create_member next_hops forward 2
        act_prof_delete_member next_hops 1
        mc_mgrp_create 2
        mc_mgrp_destroy 2
        mirroring_add 1 2
        mirroring_delete 1
    """
    # The lowest free handle, 0, went to the entry that came after the deletion.
    assert commands(document, schema) == [
        "insert next_hops member 1 -> forward(port=7)",
        "insert lpm_table hdr.ipv4.dst_addr=11.0.0.0/8 -> forward(port=1)",
        "insert lpm_table hdr.ipv4.dst_addr=12.0.0.0/8 -> forward(port=9)",
    ]
    cleared = read_command_file("table_add lpm_table forward 10.0.0.0/8 => 1\ntable_clear lpm_table", schema)
    assert (cleared.clear, cleared.updates) == (["ingress.lpm_table"], [])


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("table_ad lpm_table", "2: table_ad: it is unknown here; there are act_prof_add_member_to_group, "),
        ("table_add lpm_tabel forward 10.0.0.0/8 => 1", "2: table_add: no table named 'lpm_tabel': did you mean 'lpm"),
        ("table_add lpm_table forward 10.0.0.0/8 1", "2: table_add: `=>` is missing between the key and what follows"),
        ("table_add lpm_table forward 10.0.0.1 => 1", "hdr.ipv4.dst_addr: '10.0.0.1'; lpm keys are VALUE/LENGTH"),
        ("table_add lpm_table forward 1/8 2/8 => 1", "lpm_table has 1 key fields, but 2 values are given"),
        ("table_add range_table drop 10..20 0&&&0 => 5", "hdr.ipv4.total_len: '10..20'; a range is LOW->HIGH"),
        ("table_add range_table drop 10->20 0&&&0 =>", "range_table needs a priority as the last word: the lowest"),
        ("table_add optional_table drop 1&&&1 0&&&0 => 5", "the mask of an optional key is all zeros or all ones"),
        ("table_delete lpm_table 0", "2: table_delete: no entry 0: this file has made none of that number"),
        ("act_prof_create_group plain_profile", "plain_profile has members only: groups need an action selector"),
        ("table_indirect_create_member lpm_table forward 1", "lpm_table has no action profile"),
        ("mc_node_create 1 2 | 3", "2: mc_node_create: link aggregation groups are BMv2's own: name their ports"),
        ("mc_node_associate 1 0", "2: mc_node_associate: no node 0: this file has made none of that number"),
        ("mirroring_add 5", "2: mirroring_add: SESSION PORT is wanted, not '5'"),
        ("register_read words 0", "2: register_read: `plait register show` does that; a command file holds what is"),
        ("set_queue_rate 100 1", "2: set_queue_rate: `plait queue set --rate-pps` does that"),
        ("register_write words 32 0", "words: index 32; it has 32 cells, from 0"),
        ("register_write words 0 0x100000000", "words: 0x100000000 does not fit in 32 bits"),
        ("meter_set_rates port_meter 0 1500 3:4", "a rate is UNITS_PER_MICROSECOND:BURST, such as 0.001:1500"),
    ],
)
def test_what_is_wrong_is_named_with_its_line(schema, line, message):
    with pytest.raises(EntryTextError) as error:
        read_command_file(f"\n{line}\n", schema)
    assert message in str(error.value)


# --- sN-runtime.json ---


def test_a_file_of_the_tutorials(schema):
    document = {
        "target": "bmv2",
        "p4info": "build/basic.p4.p4info.txtpb",
        "bmv2_json": "build/basic.json",
        "table_entries": [
            {"table": "ingress.keyless_table", "default_action": True, "action_name": "NoAction", "action_params": {}},
            {
                "table": "ingress.lpm_table",
                "match": {"hdr.ipv4.dst_addr": ["10.0.1.1", 32]},
                "action_name": "ingress.rewrite",
                "action_params": {"dst_addr": "08:00:00:00:01:11", "port": 1},
            },
            {
                "table": "ingress.ternary_table",
                "match": {"hdr.ipv4.src_addr": ["10.0.0.0", "255.0.0.0"], "hdr.ipv4.protocol": 6},
                "priority": 3,
                "action_name": "ingress.drop",
                "action_params": {},
            },
        ],
        "multicast_group_entries": [{"multicast_group_id": 1, "replicas": [{"egress_port": 1, "instance": 1}]}],
        "clone_session_entries": [{"clone_session_id": 5, "replicas": [{"egress_port": 2}], "packet_length_bytes": 64}],
    }
    assert meant(read_runtime_json(json.dumps(document), schema), schema) == [
        "insert multicast group 1 -> ports 1#1",
        "insert clone session 5 -> ports 2, first 64 bytes",
        "modify keyless_table default -> NoAction()",
        "insert lpm_table hdr.ipv4.dst_addr=10.0.1.1/32 -> rewrite(dst_addr=08:00:00:00:01:11, port=1)",
        "insert ternary_table hdr.ipv4.src_addr=0xa000000&&&0xff000000 hdr.ipv4.protocol=6 priority=3 -> drop()",
    ]


LPM = {"table": "lpm_table", "match": {"dst_addr": ["10.0.0.0", 8]}, "action_name": "forward"}


@pytest.mark.parametrize(
    ("document", "message"),
    [
        ({"tabel_entries": []}, "tabel_entries is unknown; there are bmv2_json, clone_session_entries, "),
        ({"target": "tofino"}, "target: 'tofino'; only bmv2's files are understood"),
        ({"table_entries": {}}, "table_entries is no list"),
        ({"table_entries": [5]}, "table_entries[0] is no object"),
        ({"table_entries": [{**LPM, "table": "lmp_table"}]}, "table_entries[0].table: no table named 'lmp_table': did"),
        ({"table_entries": [{**LPM, "match": {"dst": 1}}]}, "table_entries[0].match: no key field of lpm_table named"),
        ({"table_entries": [{**LPM, "match": 7}]}, "table_entries[0].match is not what it should be: 'int' object"),
        (
            {"table_entries": [{**LPM, "match": {"dst_addr": [1, 2, 3]}}]},
            "hdr.ipv4.dst_addr: [1, 2, 3]; lpm keys are a",
        ),
        ({"table_entries": [{**LPM, "priority": 7}]}, "table_entries[0].priority: lpm_table takes no priority"),
        ({"table_entries": [LPM]}, "table_entries[0].action_name: forward: port missing; it is forward(port)"),
        ({"table_entries": [{"table": "lpm_table", "colour": 1}]}, "table_entries[0].colour is unknown; there are"),
        (
            {"multicast_group_entries": [{"multicast_group_id": 1, "replicas": [{"egress_port": "x"}]}]},
            "multicast_group_entries[0].replicas[0].egress_port: egress_port: 'x' is not a number",
        ),
    ],
)
def test_what_is_wrong_is_named_with_its_place(schema, document, message):
    with pytest.raises(EntryTextError) as error:
        read_runtime_json(json.dumps(document), schema)
    assert message in str(error.value)


def test_what_is_no_json(schema):
    with pytest.raises(EntryTextError, match="it is no JSON: Expecting"):
        read_runtime_json('{"target": ', schema)

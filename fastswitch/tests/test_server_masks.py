"""Keys that the program cuts (`hdr.three.c & 0x0ff0`): entries are cut as packets are, and read back as written.

BMv2 does the first (MatchUnitGeneric::build_entry_from_match_key of its match_units.cpp).
"""

from finsy.proto import p4r, rpc_code
from hypothesis import given, settings
from hypothesis import strategies as st

from fastswitch.tests.server_kit import (
    DATA,
    delete,
    exact,
    insert,
    lpm,
    modify,
    names,
    new_state,
    program,
    read,
    refused,
    ternary,
)

MASKED = DATA / "masked_keys.p4"
N = names(MASKED)
MASK_A, MASK_C = 0xF0F, 0x0FF0
KEYS = st.tuples(st.integers(0, 0xFFF), st.integers(0, 3), st.integers(0, 0xFFFF))


def shortest(number):
    return number.to_bytes(2, "big").lstrip(b"\0") or b"\0"


def entry(table, *matches, port=1, **fields):
    return N.entry(table, *matches, action=N.table_action("forward", bytes([port])), **fields)


def in_engine(state, table):
    index = next(each.index for each in program(MASKED).code.tables if each.name == f"ingress.{table}")
    return {key[:3] for key, _ in state.engine.entries.get(index, {}).values()}


@given(keys=st.lists(KEYS, max_size=12), lookups=st.lists(KEYS, max_size=4))
@settings(deadline=None)
def test_entries_that_differ_outside_the_mask_are_the_same(keys, lookups):
    state = new_state(source=MASKED)
    model = {}  # masked key -> the entry as it was written

    def one(key, **fields):
        return entry("exact_table", *(exact(shortest(part)) for part in key), **fields)

    def cut(key):
        return key[0] & MASK_A, key[1], key[2] & MASK_C

    for key in keys:
        if cut(key) in model:
            with refused(rpc_code.ALREADY_EXISTS, "'ingress.exact_table' already has this entry"):
                state.write(insert(one(key)))
        else:
            state.write(insert(one(key)))
            model[cut(key)] = one(key)
    for key in lookups:
        if cut(key) in model:
            state.write(modify(one(key, port=2)))
            model[cut(key)] = one(key, port=2)
        else:
            with refused(rpc_code.NOT_FOUND, "'ingress.exact_table' has no such entry"):
                state.write(modify(one(key, port=2)))
    assert read(state, table_entry=p4r.TableEntry(table_id=N.ids["exact_table"])) == list(model.values())
    assert in_engine(state, "exact_table") == {
        (a.to_bytes(2, "big") + bytes([b]) + c.to_bytes(2, "big"), None, None) for a, b, c in model
    }
    for key in lookups:
        if cut(key) in model:
            state.write(delete(one(key)))
            del model[cut(key)]
    assert read(state, table_entry=p4r.TableEntry(table_id=N.ids["exact_table"])) == list(model.values())


def test_a_ternary_key_is_cut_and_its_mask_is_not():
    state = new_state(source=MASKED)
    written = entry("ternary_table", ternary(b"\x12\x34", b"\xff\xff"), priority=5)
    state.write(insert(written))
    with refused(rpc_code.ALREADY_EXISTS, "'ingress.ternary_table' already has this entry"):
        state.write(insert(entry("ternary_table", ternary(b"\x02\x30", b"\xff\xff"), priority=5)))
    state.write(insert(entry("ternary_table", ternary(b"\x02\x30", b"\x0f\xf0"), priority=5)))
    assert in_engine(state, "ternary_table") == {
        (b"\x02\x30", b"\xff\xff", None),
        (b"\x02\x30", b"\x0f\xf0", None),
    }
    assert read(state, table_entry=p4r.TableEntry(table_id=N.ids["ternary_table"]))[0] == written


def test_an_lpm_key_is_cut_and_its_length_is_not():
    state = new_state(source=MASKED)
    state.write(insert(entry("lpm_table", lpm(b"\x12\x00", 8))))
    with refused(rpc_code.ALREADY_EXISTS, "'ingress.lpm_table' already has this entry"):
        state.write(insert(entry("lpm_table", lpm(b"\x02\x00", 8))))
    state.write(insert(entry("lpm_table", lpm(b"\x02\x00", 12))))
    assert in_engine(state, "lpm_table") == {(b"\x02\x00", None, 8), (b"\x02\x00", None, 12)}

"""Table entries: matching rules, error codes, default entries, constant tables, reads."""

import pytest
from finsy.proto import p4r, rpc_code
from hypothesis import given, settings
from hypothesis import strategies as st

from fastswitch.server.errors import P4RuntimeError
from fastswitch.tests.server_kit import (
    MODIFY,
    delete,
    exact,
    fake_engine,
    insert,
    lpm,
    modify,
    names,
    new_state,
    optional,
    program,
    range_,
    read,
    refused,
    ternary,
    update,
)


@pytest.fixture(name="n")
def _names():
    return names()


@pytest.fixture(name="state")
def _state():
    return new_state()


def in_engine(state, table):
    """Entries of a table in the engine, as (key, target)."""
    indexes = {t.schema.name: t.schema.code.index for t in state.tables.values()}
    return list(state.engine.entries.get(indexes["ingress." + table], {}).values())


def action_index(table, action):
    schema = next(t for t in program().schema.tables.values() if t.name == f"ingress.{table}")
    return next(use.index for use in schema.actions.values() if use.action.name.endswith(action))


# What arrives in the engine


def test_an_exact_entry_is_padded_and_has_its_tables_own_action(state, n):
    state.write(
        insert(n.entry("exact_table", exact(b"\x01"), exact(b"\x02"), action=n.table_action("broadcast", b"\x05")))
    )
    key = (b"\0\0\0\0\0\x01" + b"\0\x02", None, None, None, 0)
    target = ("action", action_index("exact_table", "broadcast"), b"\0\x05")
    assert in_engine(state, "exact_table") == [(key, target)]


def test_an_lpm_entry_has_a_prefix_and_dont_care_is_prefix_zero(state, n):
    act = n.table_action("forward", b"\x01")
    state.write(insert(n.entry("lpm_table", lpm(b"\x0a\0\0\0", 8), action=act)))
    state.write(insert(n.entry("lpm_table", action=act)))
    keys = [key for key, _ in in_engine(state, "lpm_table")]
    assert keys == [(b"\x0a\0\0\0", None, 8, None, 0), (b"\0\0\0\0", None, 0, None, 0)]


def test_a_ternary_entry_has_a_mask_for_every_field(state, n):
    entry = n.entry("ternary_table", ternary(b"\x01", b"\xff"), lpm(b"\x0a\0\0\0", 8), exact(b"\x06"), priority=7)
    entry.action.CopyFrom(n.table_action("drop"))
    state.write(insert(entry))
    ((key, _),) = in_engine(state, "ternary_table")
    assert key == (b"\0\0\0\x01\x0a\0\0\0\x06", b"\0\0\0\xff\xff\0\0\0\xff", None, None, 7)


def test_a_range_entry_has_both_bounds(state, n):
    state.write(insert(n.entry("range_table", range_(b"\x05", b"\x01\x00"), priority=1, action=n.table_action("drop"))))
    ((key, _),) = in_engine(state, "range_table")
    assert key == (b"\0\x05\0", b"\xff\xff\0", None, b"\x01\0\xff", 1)


def test_an_optional_field_is_all_or_nothing(state, n):
    state.write(insert(n.entry("optional_table", None, optional(b"\x09"), priority=1, action=n.table_action("drop"))))
    ((key, _),) = in_engine(state, "optional_table")
    assert key == (b"\0" * 7 + b"\x09", b"\0\0\0\0\xff\xff\xff\xff", None, None, 1)


# Read-write symmetry against a plain dict

actions = st.sampled_from([("forward", (b"\x01",)), ("forward", (b"\x01\xff",)), ("rewrite", (b"\x01", b"\x02"))])


def number(width):
    return st.integers(0, (1 << width) - 1)


def shortest(value):
    return value.to_bytes(max(1, (value.bit_length() + 7) // 8), "big")


@st.composite
def lpm_keys(draw):
    length = draw(st.integers(0, 32))
    value = draw(number(32)) >> (32 - length) << (32 - length) if length else 0
    return (value, length)


@st.composite
def ternary_keys(draw):
    mask = draw(number(32))
    return (draw(number(32)) & mask, mask, draw(lpm_keys()), draw(st.sampled_from([6, 17])), draw(st.integers(1, 3)))


def lpm_match(key):
    value, length = key
    return lpm(shortest(value), length) if length else None


def lpm_entry(key, act):
    return names().entry("lpm_table", lpm_match(key), action=act)


def ternary_entry(key, act):
    value, mask, prefix, protocol, priority = key
    match = ternary(shortest(value), shortest(mask)) if mask else None
    return names().entry(
        "ternary_table", match, lpm_match(prefix), exact(shortest(protocol)), action=act, priority=priority
    )


def timeout_entry(key, act):
    return names().entry("timeout_table", exact(shortest(key)), action=names().table_action("NoAction"))


CASES = {
    "lpm_table": (lpm_keys(), lpm_entry, ("forward", "rewrite")),
    "ternary_table": (ternary_keys(), ternary_entry, ("forward",)),
    "timeout_table": (number(48), timeout_entry, ("forward",)),
}


@pytest.mark.parametrize("table", CASES)
@settings(max_examples=40, deadline=None)
@given(data=st.data())
def test_tables_behave_as_a_dict(table, data):
    keys, build, allowed = CASES[table]
    state, n = new_state(), names()
    pool = data.draw(st.lists(keys, min_size=1, max_size=6))
    model = {}
    for _ in range(data.draw(st.integers(1, 25))):
        key = data.draw(st.sampled_from(pool))
        name, values = data.draw(actions.filter(lambda a: a[0] in allowed))
        kind = data.draw(st.sampled_from([insert, modify, delete]))
        entry = build(key, n.table_action(name, *values))
        cookie = data.draw(st.sampled_from([b"", b"cookie"]))
        entry.metadata = cookie
        expected = (
            rpc_code.OK
            if (kind is insert) != (key in model)
            else rpc_code.ALREADY_EXISTS
            if kind is insert
            else rpc_code.NOT_FOUND
        )
        try:
            state.write(kind(entry))
            code = rpc_code.OK
        except P4RuntimeError as error:
            code = error.code
        assert code == expected
        if code == rpc_code.OK:
            if kind is delete:
                del model[key]
            else:
                model[key] = p4r.TableEntry.FromString(entry.SerializeToString())
        found = read(state, table_entry=p4r.TableEntry(table_id=n.ids[table]))
        assert sorted(e.SerializeToString() for e in found) == sorted(e.SerializeToString() for e in model.values())
        assert len(in_engine(state, table)) == len(model)
    for key, entry in model.items():
        query = build(key, None)
        if query.match:
            assert read(state, table_entry=query) == [entry]


def test_strings_with_leading_zeros_are_read_back_canonical(state, n):
    state.write(
        insert(
            n.entry("lpm_table", lpm(b"\0\0\x0a\0\0\0", 8), action=n.table_action("forward", b"\0\0\0\0\0\0\0\0\x07"))
        )
    )
    state.write(
        insert(n.entry("range_table", range_(b"\0\0\x05", b"\0\0\0\x09"), ternary(b"\0\x01", b"\0\x0f"), priority=1,
                       action=n.table_action("drop")))
    )  # fmt: skip
    entries = [e for e in read(state, table_entry=p4r.TableEntry()) if not e.is_const]
    assert n.entry("lpm_table", lpm(b"\x0a\0\0\0", 8), action=n.table_action("forward", b"\x07")) in entries
    kept = n.entry("range_table", range_(b"\x05", b"\x09"), ternary(b"\x01", b"\x0f"), priority=1)
    kept.action.CopyFrom(n.table_action("drop"))
    assert kept in entries


# Match rules

BAD_MATCHES = {
    "lpm prefix 0": (("lpm_table", [lpm(b"\0", 0)], 0), "prefix length 0 matches everything; omit the field"),
    "lpm prefix 33": (("lpm_table", [lpm(b"\0", 33)], 0), "prefix length 33 is not within 1..32"),
    "lpm prefix -1": (("lpm_table", [lpm(b"\0", -1)], 0), "prefix length -1 is not within 1..32"),
    "lpm bits": (("lpm_table", [lpm(b"\x0a\0\0\x01", 8)], 0), "bits past the prefix of 8 are set"),
    "too wide": (("lpm_table", [lpm(b"\x01\0\0\0\0", 8)], 0), "out of range of 32 bits"),
    "empty value": (("lpm_table", [lpm(b"", 8)], 0), "the value is empty"),
    "wrong kind": (("lpm_table", [exact(b"\x01")], 0), "is lpm, but the request gives exact"),
    "no kind": (("lpm_table", [p4r.FieldMatch()], 0), "is lpm, but the request gives nothing"),
    "mask 0": (("ternary_table", [ternary(b"\0", b"\0"), None, exact(b"\x06")], 1), "mask 0 matches everything"),
    "outside mask": (("ternary_table", [ternary(b"\x03", b"\x01"), None, exact(b"\x06")], 1), "outside the mask"),
    "exact missing": (("ternary_table", [ternary(b"\x01", b"\x01")], 1), "is exact and must be given"),
    "range inverted": (("range_table", [range_(b"\x02", b"\x01")], 1), "low 0x0002 is above high 0x0001"),
    "range full": (("range_table", [range_(b"\0", b"\xff\xff")], 1), "the full range matches everything"),
    "priority missing": (("range_table", [range_(b"\x01", b"\x02")], 0), "priority 0 must be above 0"),
    "priority negative": (("range_table", [range_(b"\x01", b"\x02")], -1), "priority -1 must be above 0"),
    "priority needless": (("lpm_table", [lpm(b"\x0a\0\0\0", 8)], 5), "takes no priority, but 5 was given"),
}


@pytest.mark.parametrize("case", BAD_MATCHES)
def test_bad_matches_are_refused(case, state, n):
    (table, matches, priority), text = BAD_MATCHES[case]
    entry = n.entry(table, *matches, priority=priority, action=n.table_action("NoAction"))
    for write in (insert, modify, delete):
        with refused(rpc_code.INVALID_ARGUMENT, text):
            state.write(write(entry))


def test_unknown_and_repeated_fields_are_refused(state, n):
    entry = n.entry("lpm_table", lpm(b"\x0a\0\0\0", 8), action=n.table_action("NoAction"))
    entry.match[0].field_id = 2
    with refused(rpc_code.INVALID_ARGUMENT, r"has no match field 2; it has 1 \(hdr.ipv4.dst_addr\)"):
        state.write(insert(entry))
    entry.match[0].field_id = 1
    entry.match.append(entry.match[0])
    with refused(rpc_code.INVALID_ARGUMENT, "is given twice"):
        state.write(insert(entry))


def test_ids_that_are_wrong_say_what_they_are(state, n):
    with refused(rpc_code.INVALID_ARGUMENT, "no table has id 0x00000005; known are"):
        state.write(insert(p4r.TableEntry(table_id=5)))
    with refused(rpc_code.INVALID_ARGUMENT, "no table has id .*: it is an action 'ingress.forward'"):
        state.write(insert(p4r.TableEntry(table_id=n.ids["forward"])))
    with refused(rpc_code.INVALID_ARGUMENT, "the entity is empty"):
        state.write(p4r.Update(type=p4r.Update.INSERT))
    with refused(rpc_code.INVALID_ARGUMENT, "update type 0 is not INSERT, MODIFY or DELETE"):
        state.write(p4r.Update(entity=p4r.Entity(table_entry=p4r.TableEntry(table_id=n.ids["lpm_table"]))))
    with refused(rpc_code.UNIMPLEMENTED, "extern_entry is not supported"):
        state.write(p4r.Update(type=p4r.Update.INSERT, entity=p4r.Entity(extern_entry=p4r.ExternEntry())))


# Actions


def test_actions_are_checked(state, n):
    def entry(action):
        return insert(n.entry("lpm_table", lpm(b"\x0a\0\0\0", 8), action=action))

    with refused(rpc_code.INVALID_ARGUMENT, "table 'ingress.lpm_table' has no action .*; it has .*ingress.forward"):
        state.write(entry(n.table_action("broadcast", b"\x01")))
    with refused(rpc_code.INVALID_ARGUMENT, r"takes parameters 1 \(port\); the request gives ids \[\]"):
        state.write(entry(n.table_action("forward")))
    with refused(rpc_code.INVALID_ARGUMENT, r"takes parameters 1 \(port\); the request gives ids \[1, 2\]"):
        state.write(entry(n.table_action("forward", b"\x01", b"\x02")))
    with refused(rpc_code.INVALID_ARGUMENT, "parameter 'port' of 'ingress.forward': value 0x0200 is out of range"):
        state.write(entry(n.table_action("forward", b"\x02\x00")))
    with refused(rpc_code.INVALID_ARGUMENT, "needs an action"):
        state.write(insert(n.entry("lpm_table", lpm(b"\x0a\0\0\0", 8))))
    with refused(rpc_code.INVALID_ARGUMENT, "has no action profile: its entries need an action"):
        state.write(entry(p4r.TableAction(action_profile_member_id=1)))
    with refused(rpc_code.PERMISSION_DENIED, "action 'ingress.drop' of table 'ingress.exact_table' is @defaultonly"):
        state.write(insert(n.entry("exact_table", exact(b"\x01"), exact(b"\x01"), action=n.table_action("drop"))))
    assert in_engine(state, "lpm_table") == []


def test_parameters_may_come_in_any_order(state, n):
    action = n.table_action("rewrite", b"\x0a", b"\x03")
    params = list(action.action.params)
    del action.action.params[:]
    action.action.params.extend(reversed(params))
    state.write(insert(n.entry("lpm_table", lpm(b"\x0a\0\0\0", 8), action=action)))
    ((_, target),) = in_engine(state, "lpm_table")
    assert target[2] == b"\0\0\0\0\0\x0a" + b"\0\x03"
    (entry,) = read(state, table_entry=p4r.TableEntry(table_id=n.ids["lpm_table"]))
    assert entry.action == action


def test_modify_without_an_action_changes_nothing(state, n):
    entry = n.entry("lpm_table", lpm(b"\x0a\0\0\0", 8), action=n.table_action("forward", b"\x01"), metadata=b"m")
    state.write(insert(entry))
    state.write(modify(n.entry("lpm_table", lpm(b"\x0a\0\0\0", 8))))
    assert read(state, table_entry=p4r.TableEntry(table_id=n.ids["lpm_table"])) == [entry]


def test_a_full_table_is_exhausted(n):
    engine = fake_engine()
    state = new_state(engine)
    for number_ in range(64):
        entry = n.entry(
            "ternary_table", None, None, exact(b"\x06"), priority=number_ + 1, action=n.table_action("drop")
        )
        state.write(insert(entry))
    with refused(rpc_code.RESOURCE_EXHAUSTED, r"table 'ingress.ternary_table' is full \(64 entries\)"):
        entry.priority = 65
        state.write(insert(entry))


# Default entries


def default_entry(n, table, *action):
    entry = p4r.TableEntry(table_id=n.ids[table], is_default_action=True)
    if action:
        entry.action.CopyFrom(n.table_action(*action))
    return entry


def engine_table(name):
    return next(table.index for table in program().code.tables if table.name == f"ingress.{name}")


def test_the_programs_default_action_is_the_engines_from_the_start(state, n):
    """`exact_table` has a default action other than NoAction, and no client has said a word."""
    table = engine_table("exact_table")
    assert state.engine.defaults[table] == ("action", action_index("exact_table", "drop"), b"")


def test_a_default_is_modified_and_reset(state, n):
    index = action_index("lpm_table", "forward")
    table = engine_table("lpm_table")
    query = default_entry(n, "lpm_table")
    assert read(state, table_entry=query) == [default_entry(n, "lpm_table", "NoAction")]
    state.write(modify(default_entry(n, "lpm_table", "forward", b"\x09")))
    assert state.engine.defaults[table] == ("action", index, b"\0\x09")
    assert read(state, table_entry=query) == [default_entry(n, "lpm_table", "forward", b"\x09")]
    state.write(modify(query))
    assert state.engine.defaults[table][1] == action_index("lpm_table", "NoAction")
    assert read(state, table_entry=query) == [default_entry(n, "lpm_table", "NoAction")]


def test_a_key_of_zeros_is_not_the_default_entry(state, n):
    zero = n.entry("exact_lpm_table", exact(b"\0"), lpm(b"\0", 32), action=n.table_action("forward", b"\1"))
    state.write(insert(zero))
    everything = p4r.TableEntry(table_id=n.ids["exact_lpm_table"])
    assert read(state, table_entry=everything) == [zero]
    everything.is_default_action = True
    (default,) = read(state, table_entry=everything)
    assert default.action == n.table_action("NoAction")


def test_what_default_entries_refuse(state, n):
    for write in (insert, delete):
        with refused(rpc_code.INVALID_ARGUMENT, "default entry .* (always exists|cannot be deleted)"):
            state.write(write(default_entry(n, "lpm_table", "NoAction")))
    with refused(rpc_code.INVALID_ARGUMENT, "has neither match nor priority"):
        entry = default_entry(n, "lpm_table", "NoAction")
        entry.match.append(lpm(b"\x0a\0\0\0", 8))
        state.write(modify(entry))
    with refused(rpc_code.INVALID_ARGUMENT, "has neither match nor priority"):
        entry = default_entry(n, "lpm_table", "NoAction")
        entry.priority = 1
        state.write(modify(entry))
    with refused(rpc_code.PERMISSION_DENIED, "the default action of 'ingress.exact_lpm_table' is constant"):
        state.write(modify(default_entry(n, "exact_lpm_table", "NoAction")))
    with refused(rpc_code.PERMISSION_DENIED, "the default action of 'ingress.exact_lpm_table' is constant"):
        state.write(modify(default_entry(n, "exact_lpm_table")))
    with refused(rpc_code.PERMISSION_DENIED, "is @tableonly"):
        state.write(modify(default_entry(n, "lpm_table", "drop")))
    with refused(rpc_code.PERMISSION_DENIED, "has an action profile: its default action is fixed"):
        state.write(modify(default_entry(n, "profile_table", "NoAction")))
    with refused(rpc_code.INVALID_ARGUMENT, "default entries have no idle timeout"):
        entry = default_entry(n, "timeout_table", "NoAction")
        entry.idle_timeout_ns = 1
        state.write(modify(entry))


def test_a_table_without_key_has_a_default_only(state, n):
    with refused(rpc_code.INVALID_ARGUMENT, "has no key: it has only a default entry"):
        state.write(insert(n.entry("keyless_table", action=n.table_action("forward", b"\x01"))))
    state.write(modify(default_entry(n, "keyless_table", "forward", b"\x01")))


def test_all_defaults_are_read_with_table_id_zero(state):
    entries = read(state, table_entry=p4r.TableEntry(is_default_action=True))
    assert len(entries) == len(state.tables)
    assert all(entry.is_default_action for entry in entries)


# Constant tables


def test_constant_entries_are_in_the_engine_and_readable(state, n):
    entries = read(state, table_entry=p4r.TableEntry(table_id=n.ids["constant_table"]))
    assert [(e.match[0].exact.value, e.action.action.params[0].value, e.is_const) for e in entries] == [
        (b"\x06", b"\x01", True),
        (b"\x11", b"\x02", True),
    ]
    assert len(in_engine(state, "constant_table")) == 2
    entries = read(state, table_entry=p4r.TableEntry(table_id=n.ids["constant_ternary_table"]))
    assert [(len(e.match), e.priority) for e in entries] == [(1, 2), (0, 1)]


def test_constant_tables_refuse_writes(state, n):
    entry = n.entry("constant_table", exact(b"\x06"), action=n.table_action("forward", b"\x01"))
    for write in (insert, modify, delete):
        with refused(rpc_code.PERMISSION_DENIED, "table 'ingress.constant_table' is constant"):
            state.write(write(entry))
    entry.ClearField("action")
    state.write(modify(entry))  # only direct resources may change, and there are none
    with refused(rpc_code.INVALID_ARGUMENT, "is_const is set by the server only"):
        entry = n.entry("lpm_table", lpm(b"\x0a\0\0\0", 8), action=n.table_action("NoAction"), is_const=True)
        state.write(insert(entry))


def test_initial_entries_can_be_changed_and_deleted(state, n):
    query = p4r.TableEntry(table_id=n.ids["initial_table"])
    entry = n.entry("initial_table", exact(b"\x40"), action=n.table_action("forward", b"\x01"))
    assert read(state, table_entry=query) == [entry]
    entry.action.CopyFrom(n.table_action("forward", b"\x02"))
    state.write(modify(entry))
    assert read(state, table_entry=query) == [entry]
    state.write(delete(entry))
    assert read(state, table_entry=query) == in_engine(state, "initial_table") == []


# Reads


def test_reads_filter(state, n):
    for number_, (name, values, cookie) in enumerate(
        [("forward", (b"\x01",), b"a"), ("forward", (b"\x02",), b"b"), ("drop", (), b"a")], 1
    ):
        entry = n.entry("ternary_table", None, None, exact(b"\x06"), priority=number_, metadata=cookie)
        entry.controller_metadata = number_
        entry.action.CopyFrom(n.table_action(name, *values))
        state.write(insert(entry))

    def priorities(**fields):
        found = read(state, table_entry=p4r.TableEntry(table_id=n.ids["ternary_table"], **fields))
        return [entry.priority for entry in found]

    assert priorities() == [1, 2, 3]
    assert priorities(priority=2) == [2]
    assert priorities(action=p4r.TableAction(action=p4r.Action(action_id=n.ids["forward"]))) == [1, 2]
    assert priorities(metadata=b"a") == [1, 3]
    assert priorities(controller_metadata=3) == [3]
    match = n.entry("ternary_table", None, None, exact(b"\x06")).match
    assert priorities(match=match) == [1, 2, 3]
    assert priorities(match=match, priority=3) == [3]
    assert priorities(match=n.entry("ternary_table", None, None, exact(b"\x07")).match) == []
    with refused(rpc_code.INVALID_ARGUMENT, "takes neither match nor priority"):
        read(state, table_entry=p4r.TableEntry(priority=1))


# Direct counters and meters, idle timeouts


def counted_entry(n, **fields):
    return n.entry(
        "exact_table", exact(b"\x01"), exact(b"\x01"), action=n.table_action("forward_counted", b"\x01"), **fields
    )


def test_direct_counters(state, n):
    state.write(insert(counted_entry(n, counter_data=p4r.CounterData(byte_count=5, packet_count=1))))
    plain = p4r.TableEntry(table_id=n.ids["exact_table"])
    assert not read(state, table_entry=plain)[0].HasField("counter_data")
    plain.counter_data.SetInParent()
    assert read(state, table_entry=plain)[0].counter_data == p4r.CounterData(byte_count=5, packet_count=1)

    key = p4r.TableEntry(table_id=n.ids["exact_table"], match=counted_entry(n).match)
    data = p4r.CounterData(byte_count=70, packet_count=7)
    state.write(p4r.Update(type=p4r.Update.MODIFY, entity=p4r.Entity(
        direct_counter_entry=p4r.DirectCounterEntry(table_entry=key, data=data))))  # fmt: skip
    for query in (p4r.TableEntry(), p4r.TableEntry(table_id=n.ids["exact_table"]), key):
        (found,) = read(state, direct_counter_entry=p4r.DirectCounterEntry(table_entry=query))
        assert (found.table_entry, found.data) == (key, data)
    state.write(modify(counted_entry(n)))  # unset leaves it alone
    assert read(state, table_entry=plain)[0].counter_data == data


def test_direct_counters_refuse(state, n):
    entry = p4r.DirectCounterEntry(
        table_entry=p4r.TableEntry(table_id=n.ids["exact_table"], match=counted_entry(n).match)
    )
    with refused(rpc_code.NOT_FOUND, "has no such entry"):
        state.write(p4r.Update(type=p4r.Update.MODIFY, entity=p4r.Entity(direct_counter_entry=entry)))
    with refused(rpc_code.NOT_FOUND, "has no such entry"):
        read(state, direct_counter_entry=entry)
    with refused(rpc_code.INVALID_ARGUMENT, "direct counters take MODIFY only, not INSERT"):
        state.write(p4r.Update(type=p4r.Update.INSERT, entity=p4r.Entity(direct_counter_entry=entry)))
    entry.table_entry.table_id = n.ids["lpm_table"]
    with refused(rpc_code.INVALID_ARGUMENT, "table 'ingress.lpm_table' has no direct counter"):
        read(state, direct_counter_entry=entry)
    with refused(rpc_code.INVALID_ARGUMENT, "table 'ingress.lpm_table' has no direct counter"):
        bad = n.entry("lpm_table", lpm(b"\x0a\0\0\0", 8), action=n.table_action("NoAction"))
        bad.counter_data.SetInParent()
        state.write(insert(bad))


def test_direct_meters(state, n):
    meter = p4r.MeterConfig(cir=10, cburst=100, pir=20, pburst=200)
    state.write(insert(counted_entry(n, meter_config=meter)))
    assert list(state.engine.entry_meters.values()) == [(10, 100, 20, 200)]
    query = p4r.TableEntry(table_id=n.ids["exact_table"], meter_config=p4r.MeterConfig())
    assert read(state, table_entry=query)[0].meter_config == meter
    direct = p4r.DirectMeterEntry(table_entry=p4r.TableEntry(table_id=n.ids["exact_table"]))
    assert read(state, direct_meter_entry=direct)[0].config == meter
    state.write(modify(counted_entry(n)))  # unset resets to green
    assert state.engine.entry_meters == {}
    assert not read(state, table_entry=query)[0].HasField("meter_config")
    with refused(rpc_code.INVALID_ARGUMENT, "cir 30 is above pir 20"):
        state.write(modify(counted_entry(n, meter_config=p4r.MeterConfig(cir=30, pir=20))))


def test_direct_meters_count_their_colors(state, n):
    meter = p4r.MeterConfig(cir=10, cburst=100, pir=20, pburst=200)
    state.write(insert(counted_entry(n, meter_config=meter, meter_counter_data=p4r.MeterCounterData())))
    ((kind, table, handle),) = state.engine.colors
    state.engine.colors[kind, table, handle] = [(1, 10), (2, 20), (3, 30)]
    query = p4r.TableEntry(table_id=n.ids["exact_table"], meter_counter_data=p4r.MeterCounterData())
    (found,) = read(state, table_entry=query)
    assert (found.meter_counter_data.green.byte_count, found.meter_counter_data.red.packet_count) == (10, 3)
    assert not found.HasField("meter_config")
    direct = p4r.DirectMeterEntry(table_entry=p4r.TableEntry(table_id=n.ids["exact_table"]))
    assert not read(state, direct_meter_entry=direct)[0].HasField("counter_data")
    direct.counter_data.SetInParent()
    assert read(state, direct_meter_entry=direct)[0].counter_data == found.meter_counter_data

    state.write(modify(counted_entry(n, meter_config=meter)))
    assert read(state, table_entry=query) == [found]  # unset: as they were
    with refused(rpc_code.INVALID_ARGUMENT, "can only be set to zero, and green is not"):
        state.write(modify(counted_entry(n, meter_counter_data=found.meter_counter_data)))
    one = p4r.DirectMeterEntry(table_entry=counted_entry(n), counter_data=p4r.MeterCounterData())
    state.write(update(MODIFY, direct_meter_entry=one))
    assert state.engine.colors[kind, table, handle] == [(0, 0)] * 3
    one.counter_data.yellow.packet_count = 1
    with refused(rpc_code.INVALID_ARGUMENT, "can only be set to zero, and yellow is not"):
        state.write(update(MODIFY, direct_meter_entry=one))
    with refused(rpc_code.INVALID_ARGUMENT, "table 'ingress.lpm_table' has no direct meter"):
        bad = n.entry("lpm_table", lpm(b"\x0a\0\0\0", 8), action=n.table_action("NoAction"))
        bad.meter_counter_data.SetInParent()
        state.write(insert(bad))


def test_idle_timeouts(state, n):
    entry = n.entry("timeout_table", exact(b"\x01"), action=n.table_action("NoAction"), idle_timeout_ns=1_000)
    state.engine.fabric.now_ns = 5_000
    state.write(insert(entry))
    table = state.tables[n.ids["timeout_table"]]
    (found,) = read(state, table_entry=p4r.TableEntry(table_id=n.ids["timeout_table"]))
    assert found == entry
    state.engine.fabric.now_ns = 5_999
    assert table.expired() == []
    state.engine.fabric.now_ns = 6_000
    assert table.expired() == [entry]
    assert table.expired() == []  # the timer starts again
    handle = table.find(entry).handle
    state.engine.last_hit[handle] = 6_500
    state.engine.fabric.now_ns = 7_100
    assert table.expired() == []
    query = p4r.TableEntry(table_id=n.ids["timeout_table"])
    query.time_since_last_hit.SetInParent()
    assert read(state, table_entry=query)[0].time_since_last_hit.elapsed_ns == 600
    state.engine.fabric.now_ns = 7_600
    assert table.expired() == [entry]
    longer = n.entry("timeout_table", exact(b"\x01"), action=n.table_action("NoAction"), idle_timeout_ns=10_000)
    state.write(modify(longer))
    state.engine.fabric.now_ns = 16_499
    assert table.expired() == []
    state.engine.fabric.now_ns = 17_600
    assert table.expired() == [longer]
    state.write(modify(n.entry("timeout_table", exact(b"\x01"), action=n.table_action("NoAction"))))
    state.engine.fabric.now_ns = 10**12
    assert table.expired() == []


def test_idle_timeouts_need_a_table_that_has_them(state, n):
    entry = n.entry("lpm_table", lpm(b"\x0a\0\0\0", 8), action=n.table_action("NoAction"), idle_timeout_ns=1)
    with refused(rpc_code.INVALID_ARGUMENT, "table 'ingress.lpm_table' has no idle timeout"):
        state.write(insert(entry))

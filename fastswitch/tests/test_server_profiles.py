"""Action profiles: members, groups, one-shot sets, what refers to what, watch ports."""

import grpc
import pytest
from finsy.proto import p4r, rpc_code

from fastswitch.tests.server_kit import (
    DELETE,
    INSERT,
    MODIFY,
    config,
    connected,
    delete,
    exact,
    failing,
    fake_device,
    fake_engine,
    insert,
    lpm,
    modify,
    names,
    new_state,
    read,
    refused,
    serving,
    update,
)


@pytest.fixture(name="n")
def _names():
    return names()


@pytest.fixture(name="state")
def _state():
    return new_state()


def member(n, member_id, port=b"\x01", profile="next_hops", **fields):
    action = n.action("forward", port)
    return p4r.ActionProfileMember(action_profile_id=n.ids[profile], member_id=member_id, action=action, **fields)


def group(n, group_id, *members, **fields):
    """Members are (id, weight) or (id, weight, watch port)."""
    message = p4r.ActionProfileGroup(action_profile_id=n.ids["next_hops"], group_id=group_id, **fields)
    for member_id, weight, *watch in members:
        message.members.add(member_id=member_id, weight=weight, watch_port=watch[0] if watch else None)
    return message


def one_shot(n, *ports, weight=1, watch=None):
    actions = [
        p4r.ActionProfileAction(action=n.action("forward", port), weight=weight, watch_port=watch) for port in ports
    ]
    return p4r.TableAction(action_profile_action_set=p4r.ActionProfileActionSet(action_profile_actions=actions))


def entry(n, last_byte, action):
    return n.entry("selector_table", lpm(bytes([10, 0, 0, last_byte]), 32), action=action)


def to_group(group_id):
    return p4r.TableAction(action_profile_group_id=group_id)


def to_member(member_id):
    return p4r.TableAction(action_profile_member_id=member_id)


def put(state, kind, message):
    field = "action_profile_member" if isinstance(message, p4r.ActionProfileMember) else "action_profile_group"
    state.write(update(kind, **{field: message}))


def seats(state):
    """Per group of the engine: (port, weight) of its members."""
    return [[(state.engine.members[m][1][-1], w) for m, w in g] for g in state.engine.groups.values()]


def test_members_groups_and_entries(state, n):
    put(state, INSERT, member(n, 1, b"\x01"))
    put(state, INSERT, member(n, 2, b"\x02"))
    put(state, INSERT, group(n, 1, (1, 1), (2, 3)))
    state.write(insert(entry(n, 1, to_group(1))))
    state.write(insert(entry(n, 2, to_member(2))))
    assert seats(state) == [[(1, 1), (2, 3)]]
    assert read(state, action_profile_member=p4r.ActionProfileMember()) == [
        member(n, 1, b"\x01"),
        member(n, 2, b"\x02"),
    ]
    assert read(state, action_profile_group=group(n, 1)) == [group(n, 1, (1, 1), (2, 3))]
    table = p4r.TableEntry(table_id=n.ids["selector_table"])
    assert read(state, table_entry=table) == [entry(n, 1, to_group(1)), entry(n, 2, to_member(2))]

    put(state, MODIFY, member(n, 2, b"\x09"))
    put(state, MODIFY, group(n, 1, (2, 1)))
    assert seats(state) == [[(9, 1)]]


def test_what_is_used_cannot_be_deleted(state, n):
    put(state, INSERT, member(n, 1))
    put(state, INSERT, group(n, 1, (1, 1)))
    state.write(insert(entry(n, 1, to_group(1))))
    with refused(rpc_code.FAILED_PRECONDITION, "member 1 of 'ingress.next_hops' is still used by 1 groups or entries"):
        put(state, DELETE, member(n, 1))
    with refused(rpc_code.FAILED_PRECONDITION, "group 1 of 'ingress.next_hops' is still used by 1 entries"):
        put(state, DELETE, group(n, 1))
    state.write(delete(entry(n, 1, to_group(1))))
    put(state, DELETE, group(n, 1))
    put(state, DELETE, member(n, 1))
    assert (state.engine.members, state.engine.groups) == ({}, {})


def test_a_group_may_go_with_its_members_in_it(state, n):
    put(state, INSERT, member(n, 1))
    put(state, INSERT, group(n, 1, (1, 1)))
    put(state, DELETE, group(n, 1))
    put(state, DELETE, member(n, 1))
    assert (state.engine.members, state.engine.groups) == ({}, {})


def test_modify_of_an_entry_moves_its_reference(state, n):
    put(state, INSERT, member(n, 1))
    put(state, INSERT, member(n, 2))
    state.write(insert(entry(n, 1, to_member(1))))
    state.write(modify(entry(n, 1, to_member(2))))
    put(state, DELETE, member(n, 1))
    with refused(rpc_code.FAILED_PRECONDITION, "still used"):
        put(state, DELETE, member(n, 2))


def test_names_that_do_not_exist(state, n):
    for kind in (MODIFY, DELETE):
        with refused(rpc_code.NOT_FOUND, "'ingress.next_hops' has no member 7"):
            put(state, kind, member(n, 7))
        with refused(rpc_code.NOT_FOUND, "'ingress.next_hops' has no group 7"):
            put(state, kind, group(n, 7))
    with refused(rpc_code.NOT_FOUND, "has no member 7"):
        put(state, INSERT, group(n, 1, (7, 1)))
    for action in (to_group(7), to_member(7)):
        with refused(rpc_code.NOT_FOUND, "has no (group|member) 7"):
            state.write(insert(entry(n, 1, action)))
    assert read(state, action_profile_member=member(n, 7)) == []
    assert read(state, action_profile_group=group(n, 7)) == []
    put(state, INSERT, member(n, 1))
    with refused(rpc_code.ALREADY_EXISTS, "member 1 of 'ingress.next_hops' already exists"):
        put(state, INSERT, member(n, 1))
    put(state, INSERT, group(n, 1))
    with refused(rpc_code.ALREADY_EXISTS, "group 1 of 'ingress.next_hops' already exists"):
        put(state, INSERT, group(n, 1))


def test_group_rules(state, n):
    put(state, INSERT, member(n, 1))
    put(state, INSERT, member(n, 2))
    for weight in (0, -1):
        with refused(rpc_code.INVALID_ARGUMENT, f"weight {weight} of a member is not positive"):
            put(state, INSERT, group(n, 1, (1, weight)))
    with refused(rpc_code.INVALID_ARGUMENT, "group 1 has member 1 twice; use its weight"):
        put(state, INSERT, group(n, 1, (1, 1), (1, 1)))
    with refused(rpc_code.RESOURCE_EXHAUSTED, "group 1: 9 is above its size of 8"):
        put(state, INSERT, group(n, 1, (1, 5), (2, 4)))
    with refused(rpc_code.RESOURCE_EXHAUSTED, "group 1: 3 is above its size of 2"):
        put(state, INSERT, group(n, 1, (1, 3), max_size=2))
    with refused(rpc_code.INVALID_ARGUMENT, "max_size 9 is above the 8 of 'ingress.next_hops'"):
        put(state, INSERT, group(n, 1, max_size=9))
    with refused(rpc_code.INVALID_ARGUMENT, "max_size -1 is negative"):
        put(state, INSERT, group(n, 1, max_size=-1))
    with refused(rpc_code.INVALID_ARGUMENT, "id 0 is reserved"):
        put(state, INSERT, group(n, 0))
    put(state, INSERT, group(n, 1, (1, 1), max_size=4))
    with refused(rpc_code.INVALID_ARGUMENT, "was inserted with max_size 4, which cannot change to 5"):
        put(state, MODIFY, group(n, 1, (1, 1), max_size=5))
    assert len(state.engine.groups) == 1


def test_an_empty_group_is_allowed(state, n):
    put(state, INSERT, group(n, 1))
    state.write(insert(entry(n, 1, to_group(1))))
    assert seats(state) == [[]]


def test_a_profile_without_selector_has_members_only(state, n):
    put(state, INSERT, member(n, 1, profile="plain_profile"))
    state.write(insert(n.entry("profile_table", exact(b"\x01"), action=to_member(1))))
    bad = group(n, 1)
    bad.action_profile_id = n.ids["plain_profile"]
    with refused(rpc_code.INVALID_ARGUMENT, "is an action profile without a selector: it cannot hold a group"):
        put(state, INSERT, bad)
    with refused(rpc_code.INVALID_ARGUMENT, "it cannot hold an action set"):
        state.write(insert(n.entry("profile_table", exact(b"\x02"), action=one_shot(n, b"\x01"))))
    for number in (2, 3, 4):
        put(state, INSERT, member(n, number, profile="plain_profile"))
    with refused(rpc_code.RESOURCE_EXHAUSTED, "'ingress.plain_profile' holds 4 of 4 members; 1 more do not fit"):
        put(state, INSERT, member(n, 5, profile="plain_profile"))
    with refused(rpc_code.INVALID_ARGUMENT, "the entry needs a member, group or set"):
        state.write(insert(n.entry("profile_table", exact(b"\x02"), action=n.table_action("forward", b"\x01"))))


def test_one_shot_sets_are_shared_and_vanish(state, n):
    state.write(insert(entry(n, 1, one_shot(n, b"\x01", b"\x02", weight=2))))
    state.write(insert(entry(n, 2, one_shot(n, b"\0\x01", b"\x02", weight=2))))  # the same when canonical
    assert seats(state) == [[(1, 2), (2, 2)]]
    table = p4r.TableEntry(table_id=n.ids["selector_table"])
    assert [e.action for e in read(state, table_entry=table)] == [one_shot(n, b"\x01", b"\x02", weight=2)] * 2
    assert read(state, action_profile_group=p4r.ActionProfileGroup()) == []
    state.write(modify(entry(n, 1, one_shot(n, b"\x03"))))
    assert sorted(seats(state)) == [[(1, 2), (2, 2)], [(3, 1)]]
    state.write(delete(entry(n, 2, one_shot(n))))
    assert seats(state) == [[(3, 1)]]
    state.write(delete(entry(n, 1, one_shot(n))))
    assert (state.engine.members, state.engine.groups) == ({}, {})


def test_a_one_shot_entry_that_fails_leaves_nothing(n):
    engine = fake_engine()
    state = new_state(engine)
    engine.table_sizes = {index: 0 for index in engine.table_sizes}
    with refused(rpc_code.RESOURCE_EXHAUSTED, "is full"):
        state.write(insert(entry(n, 1, one_shot(n, b"\x01"))))
    assert (engine.members, engine.groups) == ({}, {})


def test_one_shot_rules(state, n):
    with refused(rpc_code.RESOURCE_EXHAUSTED, "the action set has 9 .*'ingress.next_hops' allows 8"):
        state.write(insert(entry(n, 1, one_shot(n, b"\x01", b"\x02", b"\x03", weight=3))))
    with refused(rpc_code.INVALID_ARGUMENT, "weight 0 of a member is not positive"):
        state.write(insert(entry(n, 1, one_shot(n, b"\x01", weight=0))))
    action = one_shot(n, b"\x01")
    action.action_profile_action_set.action_selection_mode = p4r.ActionProfileActionSet.RANDOM
    with refused(rpc_code.UNIMPLEMENTED, "the selector's own selection mode only, which is HASH"):
        state.write(insert(entry(n, 1, action)))
    action = one_shot(n, b"\x01")
    action.action_profile_action_set.size_semantics = p4r.ActionProfileActionSet.SUM_OF_MEMBERS
    with refused(rpc_code.UNIMPLEMENTED, "the selector's own size semantics only"):
        state.write(insert(entry(n, 1, action)))
    action.action_profile_action_set.action_selection_mode = p4r.ActionProfileActionSet.HASH
    action.action_profile_action_set.size_semantics = p4r.ActionProfileActionSet.SUM_OF_WEIGHTS
    state.write(insert(entry(n, 1, action)))
    with refused(rpc_code.INVALID_ARGUMENT, "is programmed with action sets: members and groups cannot be mixed in"):
        put(state, INSERT, member(n, 1))
    state.write(delete(entry(n, 1, one_shot(n))))
    put(state, INSERT, member(n, 1))
    with refused(rpc_code.INVALID_ARGUMENT, "is programmed with members and groups: action sets cannot be mixed in"):
        state.write(insert(entry(n, 1, one_shot(n, b"\x01"))))


def test_members_whose_watch_port_is_down_are_left_out(n):
    engine, down = fake_engine(), set()
    state = new_state(engine, down=down)
    put(state, INSERT, member(n, 1, b"\x01"))
    put(state, INSERT, member(n, 2, b"\x02"))
    message = group(n, 1, (1, 1, b"\x01"), (2, 1, b"\x02"))
    put(state, INSERT, message)
    assert seats(state) == [[(1, 1), (2, 1)]]
    down.add(1)
    state.port_changed(1)
    assert seats(state) == [[(2, 1)]]
    assert read(state, action_profile_group=group(n, 1)) == [message]
    down.clear()
    state.port_changed(1)
    assert seats(state) == [[(1, 1), (2, 1)]]


def test_one_shot_members_watch_ports_too(n):
    down = {7}
    state = new_state(fake_engine(), down=down)
    state.write(insert(entry(n, 1, one_shot(n, b"\x01", watch=b"\x07"))))
    assert seats(state) == [[]]
    down.clear()
    state.port_changed(7)
    assert seats(state) == [[(1, 1)]]


async def _with_profile_tables(n, change):
    """A server whose P4Info `change` has edited; the answer to a member of plain_profile."""
    edited = config()
    profile = next(each for each in edited.p4info.action_profiles if each.preamble.alias == "plain_profile")
    table = next(each for each in edited.p4info.tables if each.preamble.alias == "profile_table")
    change(edited.p4info, profile, table)
    async with serving(fake_device()) as address, connected(address) as client:
        await client.arbitrate(1)
        await client.set_config(edited)
        await client.write(update(INSERT, action_profile_member=member(n, 1, profile="plain_profile")))


async def test_a_profile_whose_first_table_the_json_lacks(n):
    def add_one(p4info, profile, table):
        gone = p4info.tables.add()
        gone.CopyFrom(table)
        gone.preamble.id, gone.preamble.name, gone.preamble.alias = 0x02ABCDEF, "ingress.gone", "gone"
        profile.table_ids.insert(0, gone.preamble.id)

    await _with_profile_tables(n, add_one)


async def test_a_profile_of_which_the_json_lacks_all_tables_takes_no_members(n):
    def rename(p4info, profile, table):
        table.preamble.name = "ingress.gone"

    with failing(grpc.StatusCode.UNKNOWN, "no table of the program uses 'ingress.plain_profile'"):
        await _with_profile_tables(n, rename)

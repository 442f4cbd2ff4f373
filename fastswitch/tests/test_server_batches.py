"""Batches that are all or none, and configs that are saved before they are committed."""

import asyncio
import random

import grpc
import pytest
from finsy.proto import p4d, p4r, rpc_code
from hypothesis import given, settings
from hypothesis import strategies as st

from fastswitch.server.errors import BatchError
from fastswitch.tests.server_kit import (
    DELETE,
    INSERT,
    MODIFY,
    config,
    connected,
    delete,
    error_details,
    exact,
    failing,
    fake_device,
    insert,
    lpm,
    modify,
    names,
    new_state,
    serving,
    ternary,
    update,
)

Set = p4r.SetForwardingPipelineConfigRequest
ROLLBACK = p4r.WriteRequest.ROLLBACK_ON_ERROR
N = names()
METER = p4r.MeterConfig(cir=1, cburst=2, pir=3, pburst=4)
COUNT = p4r.CounterData(byte_count=60, packet_count=1)


@pytest.fixture(name="n")
def _names():
    return N


def table_updates():
    for action, number in (("forward_counted", b"\1"), ("broadcast", b"\2")):
        plain = N.entry("exact_table", exact(b"\1"), exact(number), action=N.table_action(action, number))
        direct = p4r.TableEntry(meter_config=METER, counter_data=COUNT, meter_counter_data=p4r.MeterCounterData())
        direct.MergeFrom(plain)
        yield from (insert(plain), insert(direct), modify(plain), modify(direct), delete(plain))
        yield update(MODIFY, direct_counter_entry=p4r.DirectCounterEntry(table_entry=plain, data=COUNT))
        for counts in (None, p4r.MeterCounterData()):
            entry = p4r.DirectMeterEntry(table_entry=plain, config=METER, counter_data=counts)
            yield update(MODIFY, direct_meter_entry=entry)
        counters_only = p4r.TableEntry(counter_data=COUNT)
        counters_only.MergeFrom(N.entry("exact_table", exact(b"\1"), exact(number)))
        yield modify(counters_only)
        for length in (8, 32):
            entry = N.entry("lpm_table", lpm(b"\7\0\0\0", length), action=N.table_action("forward", number))
            yield from (insert(entry), modify(entry), delete(entry))
        entry = N.entry("ternary_table", ternary(b"\1", b"\1"), None, exact(b"\6"), priority=number[0])
        entry.action.CopyFrom(N.table_action("forward", number))
        yield from (insert(entry), delete(entry))
        default = p4r.TableEntry(table_id=N.ids["lpm_table"], is_default_action=True)
        yield modify(default)
        default.action.CopyFrom(N.table_action("forward", number))
        yield modify(default)
        entry = N.entry("initial_table", exact(b"\x40"), action=N.table_action("forward", number))
        yield from (insert(entry), modify(entry), delete(entry))
        entry = N.entry("timeout_table", exact(number), idle_timeout_ns=5, action=N.table_action("NoAction"))
        yield from (insert(entry), delete(entry))


def profile_updates():
    profile = N.ids["next_hops"]
    for number in (1, 2):
        action = N.action("forward", bytes([number]))
        for kind in (INSERT, MODIFY, DELETE):
            member = p4r.ActionProfileMember(action_profile_id=profile, member_id=number, action=action)
            yield update(kind, action_profile_member=member)
            for weight in (1, 2):
                group = p4r.ActionProfileGroup(action_profile_id=profile, group_id=number)
                group.members.add(member_id=weight, weight=weight)
                yield update(kind, action_profile_group=group)
            for target in (
                p4r.TableAction(action_profile_group_id=number),
                p4r.TableAction(action_profile_member_id=number),
                p4r.TableAction(action_profile_action_set=p4r.ActionProfileActionSet(
                    action_profile_actions=[p4r.ActionProfileAction(action=action, weight=1)])),
            ):  # fmt: skip
                yield update(kind, table_entry=N.entry("selector_table", lpm(b"\1\0\0\0", 8), action=target))


def other_updates():
    for number in (1, 2):
        cell = p4r.Index(index=number)
        for index in (cell, None):
            counter = p4r.CounterEntry(counter_id=N.ids["port_counter"], index=index, data=COUNT)
            meter = p4r.MeterEntry(meter_id=N.ids["port_meter"], index=index, config=METER)
            data = p4d.P4Data(bitstring=bytes([number]))
            register = p4r.RegisterEntry(register_id=N.ids["words"], index=index, data=data)
            yield update(MODIFY, counter_entry=counter)
            yield update(MODIFY, register_entry=register)
            for counts in (None, p4r.MeterCounterData()):
                meter.counter_data.CopyFrom(counts) if counts is not None else None
                yield update(MODIFY, meter_entry=meter)
        members = [p4r.ValueSetMember(match=[p4r.FieldMatch(field_id=1, exact=exact(bytes([number])).exact)])]
        yield update(MODIFY, value_set_entry=p4r.ValueSetEntry(value_set_id=N.ids["tunnels"], members=members))
        for kind in (INSERT, MODIFY, DELETE):
            replicas = [p4r.Replica(port=bytes([number]))]
            group = p4r.MulticastGroupEntry(multicast_group_id=1, replicas=replicas)
            session = p4r.CloneSessionEntry(session_id=1, replicas=replicas, class_of_service=number)
            for entry in ({"multicast_group_entry": group}, {"clone_session_entry": session}):
                yield update(kind, packet_replication_engine_entry=p4r.PacketReplicationEngineEntry(**entry))
            settings_ = p4r.DigestEntry.Config(max_list_size=number)
            yield update(kind, digest_entry=p4r.DigestEntry(digest_id=N.ids["learn_t"], config=settings_))


UPDATES = [*table_updates(), *profile_updates(), *other_updates()]
EVERYTHING = [
    p4r.Entity(table_entry=p4r.TableEntry(
        counter_data=p4r.CounterData(), meter_config=p4r.MeterConfig(), meter_counter_data=p4r.MeterCounterData())),
    p4r.Entity(table_entry=p4r.TableEntry(is_default_action=True)),
    p4r.Entity(action_profile_member=p4r.ActionProfileMember()),
    p4r.Entity(action_profile_group=p4r.ActionProfileGroup()),
    p4r.Entity(counter_entry=p4r.CounterEntry()),
    p4r.Entity(meter_entry=p4r.MeterEntry(counter_data=p4r.MeterCounterData())),
    p4r.Entity(register_entry=p4r.RegisterEntry()),
    p4r.Entity(value_set_entry=p4r.ValueSetEntry()),
    p4r.Entity(digest_entry=p4r.DigestEntry()),
    *(p4r.Entity(packet_replication_engine_entry=p4r.PacketReplicationEngineEntry(**{kind: one}))
      for kind, one in (("multicast_group_entry", p4r.MulticastGroupEntry()),
                        ("clone_session_entry", p4r.CloneSessionEntry()))),
]  # fmt: skip


def seen_by_clients(state):
    return sorted(str(entity) for request in EVERYTHING for entity in state.read(request))


def seen_by_packets(engine):
    """What the data plane has, without the handles."""

    def resolved(target):
        if target is None or target[0] == "action":
            return target
        if target[0] == "member":
            return engine.members[target[1]]
        return sorted((engine.members[member], weight) for member, weight in engine.groups[target[1]])

    def cells(values, nothing):
        return {where: value for where, value in values.items() if value != nothing}

    entries = [
        (table, key, resolved(target), engine.entry_counters[handle], engine.entry_meters.get(handle))
        + tuple(engine.entry_meter_counts(table, handle))
        for table, held in engine.entries.items()
        for handle, (key, target) in held.items()
    ]
    return (
        sorted(map(repr, entries)),
        {table: target for table, target in engine.defaults.items()},
        sorted(map(repr, engine.members.values())),
        sorted(repr(resolved(("group", group))) for group in engine.groups),
        cells(engine.counters, (0, 0)),
        {where: value for where, value in engine.registers.items() if any(value)},
        engine.meters,
        engine.multicast,
        engine.clones,
        {where: counts for where, counts in engine.colors.items() if where[0] == "array" and counts != [(0, 0)] * 3},
    )


def loaded_device():
    """A device that runs the program, without gRPC."""
    device = fake_device()
    device.state = new_state(device.engine)
    return device


def write(device, updates, **fields):
    """The codes of a batch's updates; [] if all went well."""
    try:
        asyncio.run(device.write(p4r.WriteRequest(device_id=1, updates=updates, **fields)))
    except BatchError as error:
        return [rpc_code.OK if each is None else each.code for each in error.errors]
    return []


METERED = [each for each in UPDATES if each.entity.table_entry.table_id == N.ids["exact_table"]]  # most to put back
BATCHES = st.lists(st.sampled_from([*UPDATES, *METERED * 4]), max_size=30)
IMPOSSIBLE = update(INSERT, table_entry=p4r.TableEntry(table_id=1))


@settings(max_examples=200, deadline=None)
@given(before=BATCHES, batch=BATCHES)
def test_a_batch_that_fails_changes_nothing(before, batch):
    device, twin = loaded_device(), loaded_device()
    write(device, before)
    write(twin, before)
    batch = [each for each in batch if write(twin, [each]) == []]
    metered = device.state.tables[N.ids["exact_table"]].schema.code.index
    for handle in device.engine.entries.get(metered, {}):  # packets came
        device.engine.colors["entry", metered, handle] = [(handle, 1), (2, 3), (4, 5)]
        device.engine.entry_counters[handle] = (7, 8)
    for meter, index in device.engine.meters:
        device.engine.colors["array", meter, index] = [(index, 1)] * 3
    clients, packets = seen_by_clients(device.state), seen_by_packets(device.engine)
    codes = write(device, [*batch, IMPOSSIBLE], atomicity=ROLLBACK)
    assert seen_by_clients(device.state) == clients
    assert seen_by_packets(device.engine) == packets
    assert codes == [rpc_code.ABORTED] * len(batch) + [rpc_code.INVALID_ARGUMENT]


@settings(max_examples=40, deadline=None)
@given(batch=BATCHES)
def test_a_batch_that_succeeds_does_what_it_always_does(batch):
    one, other = loaded_device(), loaded_device()
    batch = [each for each in batch if write(one, [each]) == []]
    assert write(other, batch, atomicity=ROLLBACK) == []
    assert seen_by_clients(one.state) == seen_by_clients(other.state)
    assert seen_by_packets(one.engine) == seen_by_packets(other.engine)


def test_every_kind_of_update_is_among_the_random_ones():
    tried = {(u.type, u.entity.WhichOneof("entity")) for u in UPDATES}
    worked = set()
    for seed in range(10):
        device = loaded_device()
        for each in random.Random(seed).sample(UPDATES, len(UPDATES)):
            if write(device, [each]) == []:
                worked.add((each.type, each.entity.WhichOneof("entity")))
    assert worked == tried
    assert {kind for _, kind in worked} == {
        field.name for field in p4r.Entity.DESCRIPTOR.fields if field.name != "extern_entry"
    }


def test_an_update_too_large_to_be_taken_back_is_refused(monkeypatch):
    monkeypatch.setattr("fastswitch.server.undo._MAX_CELLS", 31)
    device = loaded_device()
    data = p4d.P4Data(bitstring=b"\1")
    everywhere = update(MODIFY, register_entry=p4r.RegisterEntry(register_id=N.ids["words"], data=data))
    assert write(device, [everywhere], atomicity=ROLLBACK) == [rpc_code.UNIMPLEMENTED]
    assert device.engine.registers == {}
    assert write(device, [everywhere]) == []


async def test_what_failed_and_what_was_taken_back_is_told_apart(n):
    async with serving(fake_device()) as address, connected(address) as client:
        await client.arbitrate(1)
        await client.set_config(config())
        entries = [n.entry("lpm_table", lpm(bytes([i, 0, 0, 0]), 8), action=n.table_action("NoAction")) for i in (1, 2)]
        batch = [insert(entries[0]), insert(entries[0]), insert(entries[1])]
        with failing(grpc.StatusCode.UNKNOWN, "3 of 3 failed; .* nothing of the batch is applied: its update 1 failed"):
            await client.write(*batch, atomicity=ROLLBACK)
        assert await client.read(p4r.Entity(table_entry=p4r.TableEntry(table_id=n.ids["lpm_table"]))) == []
        with failing(grpc.StatusCode.UNKNOWN) as failure:
            await client.write(*batch, atomicity=ROLLBACK)
        details = error_details(failure.error)
        assert [d.canonical_code for d in details] == [rpc_code.ABORTED, rpc_code.ALREADY_EXISTS, rpc_code.ABORTED]
        with failing(grpc.StatusCode.UNIMPLEMENTED, "DATAPLANE_ATOMIC: packets that wait in queues"):
            await client.write(*batch, atomicity=p4r.WriteRequest.DATAPLANE_ATOMIC)
        with failing(grpc.StatusCode.INVALID_ARGUMENT, "atomicity 7 is unknown"):
            await client.write(*batch, atomicity=7)


# VERIFY_AND_SAVE, then COMMIT


def other_program():
    """The same program, but another one as far as the server can tell: table ids differ."""
    other = config(cookie=2)
    for table in other.p4info.tables:
        if table.preamble.alias == "lpm_table":
            table.preamble.id += 1
    return other


async def test_between_save_and_commit_requests_address_the_saved_config(n):
    device = fake_device()
    async with serving(device) as address, connected(address) as client:
        await client.arbitrate(1)
        await client.set_config(config(cookie=1))
        running = n.entry("lpm_table", lpm(b"\1\0\0\0", 8), action=n.table_action("NoAction"))
        await client.write(insert(running))
        in_engine = seen_by_packets(device.engine)

        await client.set_config(other_program(), Set.VERIFY_AND_SAVE)
        with failing(grpc.StatusCode.UNKNOWN, "no table has id"):
            await client.write(insert(running))
        saved = n.entry("lpm_table", lpm(b"\2\0\0\0", 8), action=n.table_action("forward", b"\5"))
        saved.table_id += 1
        counter = p4r.CounterEntry(counter_id=n.ids["port_counter"], index=p4r.Index(index=3), data=COUNT)
        register = p4r.RegisterEntry(
            register_id=n.ids["words"], index=p4r.Index(index=2), data=p4d.P4Data(bitstring=b"\7")
        )
        default = p4r.TableEntry(table_id=saved.table_id, is_default_action=True, action=n.table_action("NoAction"))
        initial = n.entry("initial_table", exact(b"\x40"))
        await client.write(
            insert(saved),
            modify(default),
            delete(initial),
            update(MODIFY, counter_entry=counter),
            update(MODIFY, register_entry=register),
        )
        query = p4r.Entity(table_entry=p4r.TableEntry(table_id=saved.table_id))
        assert [e.table_entry for e in await client.read(query)] == [saved]
        with failing(grpc.StatusCode.UNKNOWN, "already has this entry"):
            await client.write(insert(saved))
        assert seen_by_packets(device.engine) == in_engine  # the data plane knows nothing of it
        assert (await client.get_config()).cookie.cookie == 2  # whose P4Info the entities are to be read with

        await client.set_config(None, Set.COMMIT)
        assert (await client.get_config()).cookie.cookie == 2
        assert [e.table_entry for e in await client.read(query)] == [saved]
        assert list(device.engine.counters.values()) == [(1, 60)]
        assert list(device.engine.registers.values()) == [b"\0\0\0\7"]
        assert await client.read(p4r.Entity(table_entry=p4r.TableEntry(table_id=n.ids["initial_table"]))) == []
        with failing(grpc.StatusCode.NOT_FOUND, "there is no saved config"):
            await client.set_config(None, Set.COMMIT)


async def test_a_config_can_be_saved_before_any_runs_and_be_given_up(n):
    async with serving(fake_device()) as address, connected(address) as client:
        await client.arbitrate(1)
        await client.set_config(config(cookie=1), Set.VERIFY_AND_SAVE)
        entry = n.entry("lpm_table", lpm(b"\1\0\0\0", 8), action=n.table_action("NoAction"))
        await client.write(insert(entry))
        await client.set_config(config(cookie=3))
        assert await client.read(p4r.Entity(table_entry=p4r.TableEntry(table_id=n.ids["lpm_table"]))) == []
        with failing(grpc.StatusCode.NOT_FOUND, "there is no saved config"):
            await client.set_config(None, Set.COMMIT)


async def test_a_saved_table_is_full_at_its_size(n):
    async with serving(fake_device()) as address, connected(address) as client:
        await client.arbitrate(1)
        await client.set_config(config(), Set.VERIFY_AND_SAVE)
        action = n.table_action("broadcast", b"\1")
        entries = [n.entry("exact_table", exact(b"\1"), exact(bytes([i])), action=action) for i in range(129)]
        with failing(grpc.StatusCode.UNKNOWN, r"1 of 129 failed; .* is full \(128 entries\)"):
            await client.write(*map(insert, entries))
        await client.write(delete(entries[0]), insert(entries[128]))


async def test_a_saved_state_is_bounded(n, monkeypatch):
    monkeypatch.setattr("fastswitch.server.shadow._MAX_CELLS", 16)
    async with serving(fake_device()) as address, connected(address) as client:
        await client.arbitrate(1)
        await client.set_config(config(), Set.VERIFY_AND_SAVE)
        data = p4d.P4Data(bitstring=b"\1")
        everywhere = update(MODIFY, register_entry=p4r.RegisterEntry(register_id=n.ids["words"], data=data))
        with failing(grpc.StatusCode.UNKNOWN, "more than 16 cells are written to a config that is not committed"):
            await client.write(everywhere)

"""Counters, meters, registers, multicast groups, clone sessions, digest configurations."""

import asyncio

import pytest
from finsy.proto import p4d, p4r, rpc_code

from fastswitch.server import arrays
from fastswitch.tests.server_kit import (
    DELETE,
    INSERT,
    MODIFY,
    config,
    fake_device,
    names,
    new_state,
    program,
    read,
    refused,
    update,
)


@pytest.fixture(name="n")
def _names():
    return names()


@pytest.fixture(name="state")
def _state():
    return new_state()


def cell(index):
    return p4r.Index(index=index)


def engine_index(kind, name):
    return next(array.index for array in getattr(program().code, kind) if array.name == f"ingress.{name}")


def test_counters(state, n):
    port_counter = n.ids["port_counter"]
    data = p4r.CounterData(byte_count=64, packet_count=1)
    written = p4r.CounterEntry(counter_id=port_counter, index=cell(3), data=data)
    state.write(update(MODIFY, counter_entry=written))
    assert state.engine.counters == {(engine_index("counters", "port_counter"), 3): (1, 64)}
    assert read(state, counter_entry=p4r.CounterEntry(counter_id=port_counter, index=cell(3))) == [written]
    for query in (p4r.CounterEntry(), p4r.CounterEntry(counter_id=port_counter)):
        found = read(state, counter_entry=query)
        assert [entry.index.index for entry in found] == list(range(16))
        assert found[3] == written
    state.write(update(MODIFY, counter_entry=p4r.CounterEntry(counter_id=port_counter, data=p4r.CounterData())))
    assert set(state.engine.counters.values()) == {(0, 0)}
    state.write(
        update(MODIFY, counter_entry=p4r.CounterEntry(counter_id=port_counter, index=cell(1)))
    )  # no data: nothing


def test_a_counter_beyond_the_protocol_is_readable(state, n):
    most = p4r.CounterData(byte_count=2**63 - 1, packet_count=2**63 - 1)
    written = p4r.CounterEntry(counter_id=n.ids["port_counter"], index=cell(3), data=most)
    state.write(update(MODIFY, counter_entry=written))
    state.engine.counters[engine_index("counters", "port_counter"), 3] = (2**63, 2**64 - 1)  # packets came
    assert read(state, counter_entry=p4r.CounterEntry(counter_id=n.ids["port_counter"], index=cell(3))) == [written]


def test_indexed_entities_refuse(state, n):
    meter = p4r.MeterEntry(meter_id=n.ids["port_meter"])
    register = p4r.RegisterEntry(register_id=n.ids["words"])
    counter = p4r.CounterEntry(counter_id=n.ids["port_counter"])
    for field, entry, size in (
        ("counter_entry", counter, 16),
        ("meter_entry", meter, 8),
        ("register_entry", register, 32),
    ):
        for kind in (INSERT, DELETE):
            with refused(rpc_code.INVALID_ARGUMENT, "take MODIFY only, not (INSERT|DELETE)"):
                state.write(update(kind, **{field: entry}))
        entry.index.index = -1
        with refused(rpc_code.INVALID_ARGUMENT, "index -1 is negative"):
            read(state, **{field: entry})
        entry.index.index = size
        with refused(rpc_code.OUT_OF_RANGE, f"index {size} is not below its size {size}"):
            read(state, **{field: entry})
        with refused(rpc_code.OUT_OF_RANGE, f"index {size} is not below its size {size}"):
            state.write(update(MODIFY, **{field: entry}))
    with refused(rpc_code.INVALID_ARGUMENT, "no counter has id .*: it is a meter 'ingress.port_meter'"):
        read(state, counter_entry=p4r.CounterEntry(counter_id=n.ids["port_meter"]))
    with refused(rpc_code.INVALID_ARGUMENT, "counters are not negative"):
        bad = p4r.CounterEntry(counter_id=n.ids["port_counter"], index=cell(0), data=p4r.CounterData(packet_count=-1))
        state.write(update(MODIFY, counter_entry=bad))


def test_meters(state, n):
    config = p4r.MeterConfig(cir=1_000, cburst=100, pir=2_000, pburst=200)
    written = p4r.MeterEntry(meter_id=n.ids["port_meter"], index=cell(2), config=config)
    state.write(update(MODIFY, meter_entry=written))
    assert state.engine.meters == {(engine_index("meters", "port_meter"), 2): (1_000, 100, 2_000, 200)}
    found = read(state, meter_entry=p4r.MeterEntry())
    assert [entry.HasField("config") for entry in found] == [i == 2 for i in range(8)]
    assert found[2] == written
    state.write(update(MODIFY, meter_entry=p4r.MeterEntry(meter_id=n.ids["port_meter"], index=cell(2))))
    assert state.engine.meters == {}
    with refused(rpc_code.INVALID_ARGUMENT, "meter: pburst -1 is negative"):
        bad = p4r.MeterEntry(meter_id=n.ids["port_meter"], config=p4r.MeterConfig(pburst=-1))
        state.write(update(MODIFY, meter_entry=bad))


def test_meters_count_their_colors(state, n):
    meter = n.ids["port_meter"]
    state.engine.colors["array", engine_index("meters", "port_meter"), 2] = [(1, 10), (2, 20), (3, 30)]
    query = p4r.MeterEntry(meter_id=meter, counter_data=p4r.MeterCounterData())
    counted = p4r.MeterCounterData(
        green=p4r.CounterData(packet_count=1, byte_count=10),
        yellow=p4r.CounterData(packet_count=2, byte_count=20),
        red=p4r.CounterData(packet_count=3, byte_count=30),
    )
    assert [entry.counter_data == counted for entry in read(state, meter_entry=query)] == [i == 2 for i in range(8)]
    config = p4r.MeterConfig(cir=1, pir=1)
    state.write(update(MODIFY, meter_entry=p4r.MeterEntry(meter_id=meter, index=cell(2), config=config)))
    assert read(state, meter_entry=query)[2].counter_data == counted  # unset: as they were
    assert not read(state, meter_entry=p4r.MeterEntry(meter_id=meter))[2].HasField("counter_data")
    with refused(rpc_code.INVALID_ARGUMENT, "can only be set to zero, and green is not"):
        state.write(update(MODIFY, meter_entry=p4r.MeterEntry(meter_id=meter, counter_data=counted)))
    zero = p4r.MeterCounterData(green=p4r.CounterData())
    state.write(update(MODIFY, meter_entry=p4r.MeterEntry(meter_id=meter, index=cell(2), counter_data=zero)))
    assert state.engine.colors["array", engine_index("meters", "port_meter"), 2] == [(0, 0)] * 3


@pytest.mark.parametrize(
    ("name", "value", "padded"),
    [
        ("words", b"\x01\x02", b"\0\0\x01\x02"),
        ("words", b"\0", b"\0\0\0\0"),
        ("wide", b"\x01" + bytes(15), b"\x01" + bytes(15)),
        ("signed", b"\xff", b"\xff\xff"),
        ("signed", b"\x7f\xff", b"\x7f\xff"),
    ],
)
def test_registers(state, n, name, value, padded):
    data = p4d.P4Data(bitstring=value)
    written = p4r.RegisterEntry(register_id=n.ids[name], index=cell(1), data=data)
    state.write(update(MODIFY, register_entry=written))
    assert state.engine.registers == {(engine_index("registers", name), 1): padded}
    assert read(state, register_entry=p4r.RegisterEntry(register_id=n.ids[name], index=cell(1))) == [written]
    everything = read(state, register_entry=p4r.RegisterEntry(register_id=n.ids[name]))
    assert everything[1] == written
    assert everything[0].data.bitstring == b"\0"


def test_all_cells_of_a_register_are_written_without_an_index(state, n):
    state.write(
        update(MODIFY, register_entry=p4r.RegisterEntry(register_id=n.ids["words"], data=p4d.P4Data(bitstring=b"\7")))
    )
    assert len(state.engine.registers) == 32
    assert len(read(state, register_entry=p4r.RegisterEntry())) == 32 + 4 + 4


@pytest.mark.parametrize(
    ("data", "text"),
    [
        (p4d.P4Data(bitstring=b"\x01\0\0\0\0"), "out of range of 32 bits"),
        (p4d.P4Data(bitstring=b""), "the value is empty"),
        (p4d.P4Data(bool=True), "the value must be a bitstring, not bool"),
        (p4d.P4Data(), "the value must be a bitstring, not empty"),
        (None, "data must be set"),
    ],
)
def test_registers_refuse_other_types(state, n, data, text):
    with refused(rpc_code.INVALID_ARGUMENT, text):
        state.write(
            update(MODIFY, register_entry=p4r.RegisterEntry(register_id=n.ids["words"], index=cell(0), data=data))
        )


# Packet replication


def multicast(group_id, *replicas, **fields):
    group = p4r.MulticastGroupEntry(multicast_group_id=group_id, replicas=replicas, **fields)
    return {"packet_replication_engine_entry": p4r.PacketReplicationEngineEntry(multicast_group_entry=group)}


def clone(session_id, *replicas, **fields):
    session = p4r.CloneSessionEntry(session_id=session_id, replicas=replicas, **fields)
    return {"packet_replication_engine_entry": p4r.PacketReplicationEngineEntry(clone_session_entry=session)}


def replica(port, instance=0):
    return p4r.Replica(port=port, instance=instance)


def test_multicast_groups(state):
    group = multicast(1, replica(b"\x01", 5), p4r.Replica(egress_port=2, instance=6), metadata=b"m")
    state.write(update(INSERT, **group))
    assert state.engine.multicast == {1: [(1, 5), (2, 6)]}
    for query in (multicast(0), multicast(1)):
        assert read(state, **query) == [group["packet_replication_engine_entry"]]
    with refused(rpc_code.ALREADY_EXISTS, "multicast group 1 already exists"):
        state.write(update(INSERT, **group))
    state.write(update(MODIFY, **multicast(1, replica(b"\0\x03"))))
    assert read(state, **multicast(1)) == [multicast(1, replica(b"\x03"))["packet_replication_engine_entry"]]
    state.write(update(DELETE, **multicast(1)))
    assert state.engine.multicast == {}
    for kind in (MODIFY, DELETE):
        with refused(rpc_code.NOT_FOUND, "multicast group 1 does not exist"):
            state.write(update(kind, **multicast(1)))


def test_groups_and_sessions_have_ids_of_their_own(state):
    state.write(update(INSERT, **multicast(1, replica(b"\x01"))))
    state.write(update(INSERT, **clone(1, replica(b"\x02"))))
    assert read(state, **multicast(0)) == [multicast(1, replica(b"\x01"))["packet_replication_engine_entry"]]
    assert read(state, **clone(0)) == [clone(1, replica(b"\x02"))["packet_replication_engine_entry"]]
    state.write(update(DELETE, **clone(1)))
    assert state.engine.multicast == {1: [(1, 0)]}


def test_clone_sessions(state):
    session = clone(100, replica(b"\x01"), packet_length_bytes=64)
    state.write(update(INSERT, **session))
    assert state.engine.clones == {100: ([(1, 0)], 64, 0)}
    assert read(state, **clone(0)) == [session["packet_replication_engine_entry"]]
    state.write(update(MODIFY, **clone(100, replica(b"\x01"), class_of_service=3)))
    assert state.engine.clones == {100: ([(1, 0)], 0, 3)}
    with refused(rpc_code.INVALID_ARGUMENT, "class of service 4 is a queue, and ports have 4"):
        state.write(update(MODIFY, **clone(100, class_of_service=4)))
    with refused(rpc_code.INVALID_ARGUMENT, "packet length -1 is negative"):
        state.write(update(MODIFY, **clone(100, packet_length_bytes=-1)))
    state.write(update(DELETE, **clone(100)))
    assert state.engine.clones == {}


def backed_up(first, *backups):
    """A replica with backups, each given as (port, instance)."""
    others = [p4r.BackupReplica(port=bytes([port]), instance=instance) for port, instance in backups]
    return p4r.Replica(port=bytes([first[0]]), instance=first[1], backup_replicas=others)


@pytest.mark.parametrize("make", [multicast, clone])
def test_replicas_move_to_the_best_backup_whose_port_is_up(make):
    down = {2}
    state = new_state(down=down)
    message = make(7, backed_up((1, 10), (2, 20), (3, 30)), replica(b"\x02", 5))
    state.write(update(INSERT, **message))

    def replicas():
        return state.engine.multicast[7] if make is multicast else state.engine.clones[7][0]

    def change(*ports):
        changed = down.symmetric_difference(ports)
        down.clear()
        down.update(ports)
        for port in changed:
            state.port_changed(port)

    assert replicas() == [(1, 10), (2, 5)]  # what has no backup stays where it is
    change(1)
    assert replicas() == [(2, 20), (2, 5)]
    change(1, 2)
    assert replicas() == [(3, 30), (2, 5)]
    change(1, 2, 3)
    assert replicas() == [(1, 10), (2, 5)]
    change(2, 3)
    assert replicas() == [(1, 10), (2, 5)]
    assert read(state, **make(7)) == [message["packet_replication_engine_entry"]]
    change(1, 3)
    state.write(update(MODIFY, **make(7, backed_up((1, 10), (3, 30), (4, 40)))))
    assert replicas() == [(4, 40)]


@pytest.mark.parametrize("make", [multicast, clone])
def test_replication_refuses(state, make):
    with refused(rpc_code.INVALID_ARGUMENT, "id 0 is reserved for wildcard reads"):
        state.write(update(INSERT, **make(0)))
    with refused(rpc_code.OUT_OF_RANGE, "id 32768 is not within 1..32767"):
        state.write(update(INSERT, **make(32_768)))
    with refused(rpc_code.INVALID_ARGUMENT, "port 512 is above 511"):
        state.write(update(INSERT, **make(1, replica(b"\x02\0"))))
    with refused(rpc_code.INVALID_ARGUMENT, "a replica has no port"):
        state.write(update(INSERT, **make(1, p4r.Replica(instance=1))))
    with refused(rpc_code.INVALID_ARGUMENT, "instance 65536 is above 65535"):
        state.write(update(INSERT, **make(1, replica(b"\x01", 65_536))))
    with refused(rpc_code.INVALID_ARGUMENT, "port 1 with instance 2 is given twice"):
        state.write(update(INSERT, **make(1, replica(b"\x01", 2), replica(b"\0\x01", 2))))
    with refused(rpc_code.INVALID_ARGUMENT, "port 1 is its own backup"):
        state.write(update(INSERT, **make(1, backed_up((1, 0), (1, 3)))))
    with refused(rpc_code.INVALID_ARGUMENT, "port 2 with instance 3 is given twice"):
        state.write(update(INSERT, **make(1, backed_up((1, 0), (2, 3)), backed_up((2, 3)))))
    with refused(rpc_code.INVALID_ARGUMENT, "a replica has no port"):
        state.write(update(INSERT, **make(1, p4r.Replica(port=b"\1", backup_replicas=[p4r.BackupReplica()]))))
    with refused(rpc_code.INVALID_ARGUMENT, "is either a multicast group or a clone session"):
        state.write(update(INSERT, packet_replication_engine_entry=p4r.PacketReplicationEngineEntry()))


# Value sets


def value_set(n, *values):
    field = p4r.FieldMatch(field_id=1)
    members = []
    for value in values:
        field.exact.value = value
        members.append(p4r.ValueSetMember(match=[field]))
    return p4r.ValueSetEntry(value_set_id=n.ids["tunnels"], members=members)


def test_value_sets(state, n):
    code = program().code
    table = len(code.tables) + code.value_sets[0].index

    def in_engine():
        return sorted(key[0] for key, _ in state.engine.entries.get(table, {}).values())

    state.write(update(MODIFY, value_set_entry=value_set(n, b"\x08\x06", b"\0\x05")))
    assert in_engine() == [b"\0\x05", b"\x08\x06"]
    assert read(state, value_set_entry=p4r.ValueSetEntry()) == [value_set(n, b"\x08\x06", b"\x05")]
    state.write(update(MODIFY, value_set_entry=value_set(n, b"\x05")))
    assert in_engine() == [b"\0\x05"]
    with refused(rpc_code.ALREADY_EXISTS, "a member is given twice"):
        state.write(update(MODIFY, value_set_entry=value_set(n, b"\x05", b"\0\x05")))
    with refused(rpc_code.RESOURCE_EXHAUSTED, "takes 4 members, not 5"):
        state.write(update(MODIFY, value_set_entry=value_set(n, *[bytes([i]) for i in range(1, 6)])))
    with refused(rpc_code.INVALID_ARGUMENT, "value sets take MODIFY only, not INSERT"):
        state.write(update(INSERT, value_set_entry=value_set(n)))
    state.write(update(MODIFY, value_set_entry=value_set(n)))
    assert in_engine() == []


# Digests

MS = 1_000_000


def digest_state(state, n, **fields):
    entry = p4r.DigestEntry(digest_id=n.ids["learn_t"], config=p4r.DigestEntry.Config(**fields))
    state.write(update(INSERT, digest_entry=entry))
    return state.digests[n.ids["learn_t"]]


def sample(number):
    return bytes(5) + bytes([number]) + b"\0\x03"


def test_digests_are_enabled_and_disabled(state, n):
    learn = n.ids["learn_t"]
    assert state.digests[learn].sample(sample(1), 0) is None  # not enabled
    digest_state(state, n, max_list_size=1)
    with refused(rpc_code.ALREADY_EXISTS, "digest 'learn_t' is already enabled"):
        digest_state(state, n)
    (entry,) = read(state, digest_entry=p4r.DigestEntry())
    assert entry.config.max_list_size == 1
    state.write(update(DELETE, digest_entry=p4r.DigestEntry(digest_id=learn)))
    assert read(state, digest_entry=p4r.DigestEntry(digest_id=learn)) == []
    for kind in (MODIFY, DELETE):
        with refused(rpc_code.NOT_FOUND, "digest 'learn_t' is not enabled"):
            state.write(update(kind, digest_entry=p4r.DigestEntry(digest_id=learn)))


def test_a_digest_list_has_the_fields_as_the_program_names_them(state, n):
    digest = digest_state(state, n, max_list_size=1)
    message = digest.sample(sample(7), 0)
    assert message.digest_id == n.ids["learn_t"]
    (data,) = message.data
    assert [member.bitstring for member in data.struct.members] == [b"\x07", b"\x03"]


def test_digests_are_buffered_until_the_list_is_full_or_old(state, n):
    digest = digest_state(state, n, max_list_size=3, max_timeout_ns=10 * MS)
    assert digest.sample(sample(1), 0) is None
    assert digest.sample(sample(1), 1) is None  # the same again is not counted
    assert digest.sample(sample(2), 2) is None
    assert len(digest.sample(sample(3), 3).data) == 3
    assert digest.sample(sample(4), 4) is None
    assert digest.tick(5 * MS) is None
    assert len(digest.tick(11 * MS).data) == 1


def test_digests_are_not_repeated_until_acknowledged(state, n):
    digest = digest_state(state, n, max_list_size=1, ack_timeout_ns=100 * MS)
    first = digest.sample(sample(1), 0)
    assert digest.sample(sample(1), 1) is None
    digest.acknowledge(first.list_id)
    second = digest.sample(sample(1), 2)
    assert second.list_id != first.list_id
    assert digest.sample(sample(1), 3) is None
    assert digest.tick(101 * MS) is None  # the acknowledgement did not come in time
    assert digest.sample(sample(1), 102 * MS) is not None


@pytest.mark.parametrize(("kind", "array", "size"), [("counter", "port_counter", 16), ("register", "words", 32)])
def test_a_write_of_a_whole_array_leaves_turns_to_others(kind, array, size, n, monkeypatch):
    monkeypatch.setattr(arrays, "_CELLS_A_STEP", 4)
    device = fake_device()
    engine = device.engine
    data = {"counter": p4r.CounterData(packet_count=1), "register": p4d.P4Data(bitstring=b"\1")}[kind]
    make = {"counter": p4r.CounterEntry, "register": p4r.RegisterEntry}[kind]
    written = update(MODIFY, **{f"{kind}_entry": make(**{f"{kind}_id": n.ids[array], "data": data})})

    async def run():
        action = p4r.SetForwardingPipelineConfigRequest.VERIFY_AND_COMMIT
        await device.set_config(p4r.SetForwardingPipelineConfigRequest(action=action, config=config()))
        write = asyncio.create_task(device.write(p4r.WriteRequest(updates=[written])))
        seen = set()
        while not write.done():
            await asyncio.sleep(0)
            seen.add(len(getattr(engine, f"{kind}s")))
        await write
        return seen

    assert asyncio.run(run()) >= set(range(4, size + 1, 4))

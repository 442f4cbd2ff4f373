"""The RPCs over gRPC: configs, error trailers, packets, and hostile bytes. The engine is the in-memory one."""

import asyncio
import json
import random

import grpc
import pytest
from finsy.proto import p4r, p4r_grpc, rpc_code, stratum
from google.protobuf.any_pb2 import Any

from fastswitch.server.device import Device
from fastswitch.server.program import ProgramStore, device_json
from fastswitch.tests.server_kit import (
    EVERYTHING,
    MODIFY,
    config,
    connected,
    delete,
    error_codes,
    error_details,
    exact,
    failing,
    fake_device,
    fake_engine,
    insert,
    lpm,
    modify,
    names,
    optional,
    serving,
    update,
)

Set = p4r.SetForwardingPipelineConfigRequest
Get = p4r.GetForwardingPipelineConfigRequest
NO_CONFIG = r"(?i)no .*\bforwarding pipeline config"  # what finsy looks for


@pytest.fixture(name="n")
def _names():
    return names()


def forward(n, number, port=b"\x01"):
    prefix = lpm(number.to_bytes(4, "big"), 32) if number else None
    return n.entry("lpm_table", prefix, action=n.table_action("forward", port))


# Forwarding pipeline config


async def test_nothing_works_before_a_config():
    async with serving(fake_device()) as address, connected(address) as client:
        await client.arbitrate(1)
        with failing(grpc.StatusCode.FAILED_PRECONDITION, NO_CONFIG):
            await client.get_config()
        with failing(grpc.StatusCode.FAILED_PRECONDITION, NO_CONFIG):
            await client.write(insert(p4r.TableEntry(table_id=1)))
        with failing(grpc.StatusCode.FAILED_PRECONDITION, NO_CONFIG):
            await client.read(p4r.Entity(table_entry=p4r.TableEntry()))


async def test_who_may_not_write_hears_that_before_what_is_missing():
    async with serving(fake_device()) as address, connected(address) as client:
        write = insert(p4r.TableEntry(table_id=1))
        with failing(grpc.StatusCode.FAILED_PRECONDITION, NO_CONFIG):
            await client.write(write)  # nobody is primary, and no id is claimed
        client.election_id = 1
        with failing(grpc.StatusCode.PERMISSION_DENIED, "Not primary: nobody is"):
            await client.write(write)
        client.role = "nobody's"
        with failing(grpc.StatusCode.NOT_FOUND, "no controller has opened a stream with role 'nobody's'"):
            await client.write(write)


async def test_capabilities_are_those_of_all_devices():
    async with serving(fake_device()) as address, connected(address) as client:
        for known in (0, 1):
            answer = await client.stub.Capabilities(p4r.CapabilitiesRequest(device_id=known))
            assert answer.p4runtime_api_version == "1.5.0"
        with failing(grpc.StatusCode.NOT_FOUND, "no device has id 77"):
            await client.stub.Capabilities(p4r.CapabilitiesRequest(device_id=77))


async def test_a_config_is_given_back_as_asked():
    async with serving(fake_device()) as address, connected(address) as client:
        await client.arbitrate(1)
        pushed = config(cookie=99)
        await client.set_config(pushed)
        assert await client.get_config() == pushed
        got = await client.get_config(Get.COOKIE_ONLY)
        assert got == p4r.ForwardingPipelineConfig(cookie=pushed.cookie)
        got = await client.get_config(Get.P4INFO_AND_COOKIE)
        assert (got.p4info, got.p4_device_config, got.cookie) == (pushed.p4info, b"", pushed.cookie)
        got = await client.get_config(Get.DEVICE_CONFIG_AND_COOKIE)
        assert (got.HasField("p4info"), got.p4_device_config) == (False, pushed.p4_device_config)
        await client.set_config(config())
        assert not (await client.get_config()).HasField("cookie")


async def test_verify_and_save_do_not_touch_the_switch(n):
    device = fake_device()
    async with serving(device) as address, connected(address) as client:
        await client.arbitrate(1)
        await client.set_config(config(), Set.VERIFY)
        assert device.engine.loads == 0
        with failing(grpc.StatusCode.NOT_FOUND, "no saved config to commit"):
            await client.set_config(None, Set.COMMIT)
        await client.set_config(config(cookie=1), Set.VERIFY_AND_SAVE)
        assert device.engine.loads == 0
        with failing(grpc.StatusCode.INVALID_ARGUMENT, "COMMIT takes no config"):
            await client.set_config(config(), Set.COMMIT)
        await client.set_config(None, Set.COMMIT)
        assert device.engine.loads == 1
        assert (await client.get_config(Get.COOKIE_ONLY)).cookie.cookie == 1
        for action in (Set.VERIFY, Set.VERIFY_AND_SAVE, Set.VERIFY_AND_COMMIT, Set.RECONCILE_AND_COMMIT):
            with failing(grpc.StatusCode.INVALID_ARGUMENT, "the request has no config"):
                await client.set_config(None, action)
        with failing(grpc.StatusCode.INVALID_ARGUMENT, "action 0 is not one of"):
            await client.set_config(config(), Set.UNSPECIFIED)


async def test_reconcile_keeps_what_clients_wrote_and_a_commit_clears_it(n):
    device = fake_device()
    async with serving(device) as address, connected(address) as client:
        await client.arbitrate(1)
        await client.set_config(config())
        default = p4r.TableEntry(table_id=n.ids["lpm_table"], is_default_action=True)
        default.action.CopyFrom(n.table_action("forward", b"\x05"))
        initial = n.entry("initial_table", exact(b"\x40"), action=n.table_action("forward", b"\x09"))
        await client.write(insert(forward(n, 1)), modify(default), modify(initial))

        changed = config(cookie=7)
        changed.p4_device_config += b"\n"  # another program as far as the server can tell
        before = await client.read(p4r.Entity(table_entry=p4r.TableEntry()))
        await client.set_config(changed, Set.RECONCILE_AND_COMMIT)
        assert device.engine.loads == 2
        assert await client.read(p4r.Entity(table_entry=p4r.TableEntry())) == before
        wanted = p4r.Entity(table_entry=p4r.TableEntry(table_id=n.ids["lpm_table"], is_default_action=True))
        assert [e.table_entry for e in await client.read(wanted)] == [default]

        await client.set_config(changed)
        after = await client.read(p4r.Entity(table_entry=p4r.TableEntry(table_id=n.ids["lpm_table"])))
        assert (device.engine.loads, after) == (3, [])


async def test_reconcile_does_not_bring_back_deleted_initial_entries(n):
    async with serving(fake_device()) as address, connected(address) as client:
        await client.arbitrate(1)
        await client.set_config(config())
        await client.write(delete(n.entry("initial_table", exact(b"\x40"))))
        changed = config()
        changed.p4_device_config += b"\n"
        await client.set_config(changed, Set.RECONCILE_AND_COMMIT)
        assert await client.read(p4r.Entity(table_entry=p4r.TableEntry(table_id=n.ids["initial_table"]))) == []


async def test_reconcile_refuses_a_program_that_cannot_hold_the_state(n):
    device = fake_device()
    async with serving(device) as address, connected(address) as client:
        await client.arbitrate(1)
        await client.set_config(config(cookie=1))
        await client.write(insert(forward(n, 1)))
        other = config(cookie=2)
        for table in other.p4info.tables:
            if table.preamble.alias == "lpm_table":
                table.preamble.id += 1
        with failing(grpc.StatusCode.INVALID_ARGUMENT, "the forwarding state does not fit the new config"):
            await client.set_config(other, Set.RECONCILE_AND_COMMIT)
        assert (await client.get_config(Get.COOKIE_ONLY)).cookie.cookie == 1
        assert len(await client.read(p4r.Entity(table_entry=p4r.TableEntry(table_id=n.ids["lpm_table"])))) == 1


BAD_CONFIGS = {
    "empty": (b"", "p4_device_config is empty"),
    "garbage": (b"\x00\x01\x02", "neither a BMv2 JSON nor a p4.tmp.P4DeviceConfig"),
    "not json": (b"{", "p4_device_config: .*not JSON"),
    "no program": (b"{}", "p4_device_config: "),
}


@pytest.mark.parametrize("case", BAD_CONFIGS)
async def test_a_bad_config_is_refused_and_the_old_one_runs_on(case, n):
    async with serving(fake_device()) as address, connected(address) as client:
        await client.arbitrate(1)
        await client.set_config(config(cookie=1))
        await client.write(insert(forward(n, 1)))
        device_config, text = BAD_CONFIGS[case]
        bad = config(cookie=2)
        bad.p4_device_config = device_config
        with failing(grpc.StatusCode.INVALID_ARGUMENT, text):
            await client.set_config(bad)
        assert (await client.get_config(Get.COOKIE_ONLY)).cookie.cookie == 1
        assert len(await client.read(p4r.Entity(table_entry=p4r.TableEntry(table_id=n.ids["lpm_table"])))) == 1


async def test_p4info_of_another_program_is_refused():
    async with serving(fake_device()) as address, connected(address) as client:
        await client.arbitrate(1)
        bad = config()
        bad.p4info.tables[0].match_fields.add(id=9, name="more", bitwidth=1, match_type=2)
        with failing(grpc.StatusCode.INVALID_ARGUMENT, "P4Info: table .*were they compiled from the same program"):
            await client.set_config(bad)
        bad = config()
        bad.p4info.actions[1].preamble.id = bad.p4info.actions[0].preamble.id
        with failing(grpc.StatusCode.INVALID_ARGUMENT, "P4Info: P4Info gives id 0x.* to both"):
            await client.set_config(bad)


async def test_copies_of_an_action_have_the_same_parameters():
    """A compiler copies an action for every table; P4Runtime knows one, so a copy of another width fits no call."""
    async with serving(fake_device()) as address, connected(address) as client:
        await client.arbitrate(1)
        bad = config()
        document = json.loads(bad.p4_device_config)
        copies = [each for each in document["actions"] if each["name"] == "ingress.forward" and each["runtime_data"]]
        copies[0]["runtime_data"][0]["bitwidth"] += 23
        bad.p4_device_config = json.dumps(document).encode()
        with failing(grpc.StatusCode.INVALID_ARGUMENT, "the JSON's action 'ingress.forward' has other parameters"):
            await client.set_config(bad)


async def test_value_sets_are_as_wide_as_the_parser_compares():
    async with serving(fake_device()) as address, connected(address) as client:
        await client.arbitrate(1)
        other = config()
        other.p4info.value_sets[0].match[0].bitwidth = 512  # which only the JSON decides
        await client.set_config(other)
        entry = p4r.ValueSetEntry(value_set_id=other.p4info.value_sets[0].preamble.id)
        match = exact(b"\x01\x00\x00")
        match.field_id = other.p4info.value_sets[0].match[0].id
        entry.members.add(match=[match])
        with failing(grpc.StatusCode.UNKNOWN, "value 0x010000 is out of range of 16 bits"):
            await client.write(update(MODIFY, value_set_entry=entry))
        other.p4info.value_sets[0].match.add(id=2, name="more", bitwidth=1, match_type=2)
        with failing(grpc.StatusCode.INVALID_ARGUMENT, "value set 'parse.tunnels' has 2 fields, in the JSON 1"):
            await client.set_config(other)


async def test_p4info_cannot_claim_endless_memory():
    async with serving(fake_device()) as address, connected(address) as client:
        await client.arbitrate(1)
        huge = config()
        for array in (*huge.p4info.counters, *huge.p4info.registers):
            array.size = 2**31 - 1
        ghost = huge.p4info.counters.add(size=2**60)
        ghost.preamble.id, ghost.preamble.name = 0x12ABCDEF, "ghost"
        await client.set_config(huge)
        assert len(await client.read(p4r.Entity(counter_entry=p4r.CounterEntry()))) == 16 + 65_536
        assert len(await client.read(p4r.Entity(register_entry=p4r.RegisterEntry()))) == 40
        wide = config()
        ghost = wide.p4info.tables.add()
        ghost.preamble.id, ghost.preamble.name = 0x02ABCDEF, "ghost"
        for width in (2**31 - 1, 0, -1):
            del ghost.match_fields[:]
            ghost.match_fields.add(id=1, name="f", bitwidth=width, match_type=3)
            with failing(grpc.StatusCode.INVALID_ARGUMENT, f"'f' is {width} bits wide; 1 to 4096 are possible"):
                await client.set_config(wide)


async def test_the_old_device_config_message_is_understood():
    json = config().p4_device_config
    wrapped = b"\x08\x01" + b"\x1a" + _varint(len(json)) + json  # reassign: true, device_data: json
    assert device_json(wrapped) == json
    async with serving(fake_device()) as address, connected(address) as client:
        await client.arbitrate(1)
        pushed = config()
        pushed.p4_device_config = wrapped
        await client.set_config(pushed)
        assert (await client.get_config()).p4_device_config == wrapped


def _varint(number):
    data = b""
    while number > 0x7F:
        data += bytes([number & 0x7F | 0x80])
        number >>= 7
    return data + bytes([number])


async def test_tables_the_json_lacks_hold_entries(n):
    """The compiler removes tables that do nothing; controllers may still write to them."""
    async with serving(fake_device()) as address, connected(address) as client:
        await client.arbitrate(1)
        pushed = config()
        ghost = pushed.p4info.tables.add()
        ghost.CopyFrom(next(t for t in pushed.p4info.tables if t.preamble.alias == "lpm_table"))
        ghost.preamble.id, ghost.preamble.name, ghost.size = 0x02ABCDEF, "ingress.ghost", 2
        await client.set_config(pushed)
        for number in (1, 2):
            entry = forward(n, number)
            entry.table_id = 0x02ABCDEF
            await client.write(insert(entry))
        found = await client.read(p4r.Entity(table_entry=p4r.TableEntry(table_id=0x02ABCDEF)))
        assert len(found) == 2
        entry = forward(n, 3)
        entry.table_id = 0x02ABCDEF
        with failing(grpc.StatusCode.UNKNOWN, "is full") as failure:
            await client.write(insert(entry))
        assert error_codes(failure.error) == [rpc_code.RESOURCE_EXHAUSTED]


async def test_the_server_answers_while_a_program_compiles():
    compiling, finish = asyncio.Event(), asyncio.Event()
    loop = asyncio.get_running_loop()

    def compile_slowly(json):
        loop.call_soon_threadsafe(compiling.set)
        asyncio.run_coroutine_threadsafe(finish.wait(), loop).result(5)
        return EVERYTHING

    device = Device(fake_engine(), ProgramStore(compile_slowly))
    async with serving(device) as address, connected(address) as client, connected(address) as other:
        await client.arbitrate(1)
        push = asyncio.create_task(client.set_config(config()))
        await compiling.wait()
        assert (await other.arbitrate(2)).status.code == rpc_code.OK
        finish.set()
        with failing(grpc.StatusCode.PERMISSION_DENIED, "Not primary"):  # another has become primary meanwhile
            await push
        await other.set_config(config())


async def test_one_program_is_compiled_once_for_many_switches():
    calls = []
    programs = ProgramStore(lambda json: calls.append(json) or EVERYTHING)
    devices = [Device(fake_engine(device_id=i, name=f"s{i}"), programs) for i in (1, 2, 3)]
    async with serving(*devices) as address:
        await asyncio.gather(*(_push(address, i) for i in (1, 2, 3)))
    assert len(calls) == 1


async def _push(address, device_id):
    async with connected(address, device_id) as client:
        await client.arbitrate(1)
        await client.set_config(config())


# Write and read


async def test_a_batch_reports_each_update(n):
    async with serving(fake_device()) as address, connected(address) as client:
        await client.arbitrate(1)
        await client.set_config(config())
        await client.write()
        with failing(
            grpc.StatusCode.UNKNOWN, "3 of 5 failed; the first, at index 1: .*already has this entry"
        ) as failure:
            await client.write(
                insert(forward(n, 1)),
                insert(forward(n, 1)),
                insert(forward(n, 2)),
                delete(forward(n, 3)),
                insert(n.entry("constant_table", exact(b"\1"), action=n.table_action("forward", b"\1"))),
            )
        ok = rpc_code.OK
        expected = [ok, rpc_code.ALREADY_EXISTS, ok, rpc_code.NOT_FOUND, rpc_code.PERMISSION_DENIED]
        assert error_codes(failure.error) == expected
        assert error_details(failure.error)[3].message == "table 'ingress.lpm_table' has no such entry"
        found = await client.read(p4r.Entity(table_entry=p4r.TableEntry(table_id=n.ids["lpm_table"])))
        assert len(found) == 2


async def test_trailers_stay_small_for_clients_with_default_limits(n):
    async with serving(fake_device()) as address:
        async with connected(address) as client:
            await client.arbitrate(1)
            await client.set_config(config())
            await client.write(insert(forward(n, 1)))
            with failing(grpc.StatusCode.UNKNOWN, "100 of 100 failed") as failure:
                await client.write(*[insert(forward(n, 1))] * 100)
            details = error_details(failure.error)
            assert [d.canonical_code for d in details] == [rpc_code.ALREADY_EXISTS] * 100
            assert details[0].message and not details[-1].message
            trailers = {key: value for key, value in failure.error.trailing_metadata()}
            assert len(trailers["grpc-status-details-bin"]) < 7_500
            with failing(grpc.StatusCode.UNKNOWN, "1000 of 1000 failed") as failure:
                await client.write(*[insert(forward(n, 1))] * 1_000)
            assert len(error_codes(failure.error)) == 1_000
        async with grpc.aio.insecure_channel(address) as channel:
            stub = p4r_grpc.P4RuntimeStub(channel)
            with failing(grpc.StatusCode.UNKNOWN, "100 of 100 failed"):  # not RESOURCE_EXHAUSTED
                await stub.Write(p4r.WriteRequest(device_id=1, updates=[insert(forward(n, 1))] * 100))


async def test_request_level_errors_have_no_details(n):
    async with serving(fake_device()) as address, connected(address) as client:
        await client.arbitrate(5)
        await client.set_config(config())
        client.election_id = 4
        with failing(grpc.StatusCode.PERMISSION_DENIED, "election id 4 is not the primary's 5") as failure:
            await client.write(insert(forward(n, 1)))
        assert not [key for key, _ in failure.error.trailing_metadata() if key == "grpc-status-details-bin"]
        with failing(grpc.StatusCode.PERMISSION_DENIED, "Not primary"):
            await client.set_config(config())
        client.election_id = 5
        client.device_id = 77
        with failing(grpc.StatusCode.NOT_FOUND, "no device has id 77; this server has 1"):
            await client.write(insert(forward(n, 1)))
        for call in (client.read(p4r.Entity(table_entry=p4r.TableEntry())), client.get_config()):
            with failing(grpc.StatusCode.NOT_FOUND, "no device has id 77"):
                await call


async def test_a_client_without_election_id_may_write_while_nobody_is_primary(n):
    async with serving(fake_device()) as address, connected(address) as legacy, connected(address) as client:
        await legacy.set_config(config())
        await legacy.write(insert(forward(n, 1)))
        await client.arbitrate(1)
        with failing(grpc.StatusCode.PERMISSION_DENIED, "has no election id, but there is a primary"):
            await legacy.write(insert(forward(n, 2)))


async def test_reads_give_what_is_valid_and_then_the_errors(n):
    async with serving(fake_device()) as address, connected(address) as client:
        await client.arbitrate(1)
        await client.set_config(config())
        await client.write(*[insert(forward(n, number)) for number in range(1, 3_001)])
        found = []
        request = p4r.ReadRequest(device_id=1)
        request.entities.add().table_entry.table_id = n.ids["lpm_table"]
        request.entities.add()
        request.entities.add().counter_entry.counter_id = 5
        with failing(grpc.StatusCode.UNKNOWN, "2 of 3 failed; the first, at index 1: the entity is empty") as failure:
            async for response in client.stub.Read(request):
                found.extend(response.entities)
        assert len(found) == 3_000
        assert error_codes(failure.error) == [rpc_code.OK, rpc_code.INVALID_ARGUMENT, rpc_code.INVALID_ARGUMENT]


async def test_roles_limit_reads_and_writes(n):
    packed = Any()
    packed.Pack(stratum.P4RoleConfig(exclusive_p4_ids=[n.ids["lpm_table"]]))
    async with serving(fake_device()) as address, connected(address) as full, connected(address) as limited:
        await full.arbitrate(1)
        await full.set_config(config())
        await limited.arbitrate(1, p4r.Role(name="routes", config=packed))
        with failing(grpc.StatusCode.PERMISSION_DENIED, "role 'routes' may not push a pipeline"):
            await limited.set_config(config())
        entry = n.entry("optional_table", optional(b"\1"), priority=1, action=n.table_action("drop"))
        with failing(grpc.StatusCode.UNKNOWN) as failure:
            await limited.write(insert(forward(n, 1)), insert(entry))
        assert error_codes(failure.error) == [rpc_code.OK, rpc_code.PERMISSION_DENIED]
        found = await limited.read(p4r.Entity(table_entry=p4r.TableEntry()))
        assert [e.table_entry.table_id for e in found] == [n.ids["lpm_table"]]


# Stream


def packet_out(payload=b"frame", **metadata):
    message = p4r.PacketOut(payload=payload)
    for number, value in metadata.items():
        message.metadata.add(metadata_id=int(number[1:]), value=value)
    return p4r.StreamMessageRequest(packet=message)


async def test_packets_out(n):
    device = fake_device()
    async with serving(device) as address, connected(address) as client:
        await client.arbitrate(1)
        await client.send(packet_out())  # before a config: dropped
        await client.set_config(config())
        await client.send(packet_out(_1=b"\0\0\0\0\0\0\0\0\x03"))
        await client.send(packet_out(_2=b"\x7f"))
        await client.send(packet_out(_2=b"\x01", _1=b"\x03"))  # in any order
        await client.send(packet_out(_9=b"\x01"))
        error = (await client.receive()).error
        assert error.canonical_code == rpc_code.INVALID_ARGUMENT
        assert error.message.startswith("packet_out has no metadata 9; it has 1 (egress_port), 2 (padding)")
        assert error.packet_out.packet_out == packet_out(_9=b"\x01").packet
        await client.send(packet_out(_1=b"\x02\0"))
        assert (
            "metadata 'egress_port' of packet_out: value 0x0200 is out of range"
            in (await client.receive()).error.message
        )
        await client.send(packet_out(_1=b"\x01", _2=b"\x01"))
        doubled = packet_out(_1=b"\x01")
        doubled.packet.metadata.add(metadata_id=1, value=b"\x01")
        await client.send(doubled)
        assert "metadata 'egress_port' of packet_out is given twice" in (await client.receive()).error.message
        sent = [b"\x01\x80", b"\x00\x7f", b"\x01\x81", b"\x00\x81"]
        assert device.engine.sent == [(510, header + b"frame") for header in sent]


async def test_a_client_may_write_for_every_packet_it_gets(n):
    """One task reads and writes by turns, while more packets come than it has read."""
    device = fake_device()
    async with serving(device) as address, connected(address) as client:
        await client.arbitrate(1)
        await client.set_config(config())
        for _ in range(300):
            device.packet_in(b"\x01\x81" + bytes(1_000))
        for number in range(1, 301):
            assert len((await client.receive()).packet.payload) == 1_000
            await client.write(insert(forward(n, number)))
        table = p4r.Entity(table_entry=p4r.TableEntry(table_id=n.ids["lpm_table"]))
        assert len(await client.read(table)) == 300


async def test_only_the_primary_takes_part_in_packet_io(n):
    device = fake_device()
    async with serving(device) as address, connected(address) as primary, connected(address) as backup:
        await primary.arbitrate(2)
        await primary.set_config(config())
        await backup.arbitrate(1)
        await backup.send(packet_out())
        assert (await backup.receive()).error.canonical_code == rpc_code.PERMISSION_DENIED
        device.packet_in(b"\x01\x81payload")
        packet = (await primary.receive()).packet
        assert packet.payload == b"payload"
        assert [(m.metadata_id, m.value) for m in packet.metadata] == [(1, b"\x03"), (2, b"\x01")]
        device.packet_in(b"\x01")  # shorter than the header: dropped
        assert await backup.silent()


async def test_a_switch_without_cpu_port_says_so(n):
    device = fake_device()
    device.cpu_port = 0
    async with serving(device) as address, connected(address) as client:
        await client.arbitrate(1)
        await client.set_config(config())
        await client.send(packet_out())
        error = (await client.receive()).error
        assert (error.canonical_code, "--cpu-port" in error.message) == (rpc_code.FAILED_PRECONDITION, True)


async def test_digests_reach_the_primary_and_are_acknowledged(n):
    device = fake_device()
    async with serving(device) as address, connected(address) as client:
        await client.arbitrate(1)
        await client.set_config(config())
        settings = p4r.DigestEntry.Config(max_list_size=1, ack_timeout_ns=10**12)
        entry = p4r.DigestEntry(digest_id=n.ids["learn_t"], config=settings)
        await client.write(p4r.Update(type=1, entity=p4r.Entity(digest_entry=entry)))
        data = bytes(5) + b"\x07" + b"\0\x03"
        device.digest(1, data)
        first = (await client.receive()).digest
        device.digest(1, data)  # suppressed
        ack = p4r.DigestListAck(digest_id=first.digest_id, list_id=first.list_id)
        await client.send(p4r.StreamMessageRequest(digest_ack=ack))
        await client.send(p4r.StreamMessageRequest(digest_ack=p4r.DigestListAck(digest_id=1)))
        assert (await client.receive()).error.digest_list_ack.digest_list_ack.digest_id == 1
        device.digest(1, data)
        assert (await client.receive()).digest.list_id == first.list_id + 1


async def test_idle_timeouts_are_notified(n):
    device = fake_device()
    async with serving(device) as address, connected(address) as client:
        await client.arbitrate(1)
        await client.set_config(config())
        entry = n.entry("timeout_table", exact(b"\x01"), action=n.table_action("NoAction"), idle_timeout_ns=1_000)
        await client.write(insert(entry))
        device.engine.fabric.now_ns = 2_000
        notification = (await client.receive()).idle_timeout_notification
        assert list(notification.table_entry) == [entry]


# Hostile input: always a status, never the end of the server


async def test_random_bytes_get_a_status(n):
    dice = random.Random(1)
    good = p4r.WriteRequest(device_id=1, updates=[insert(forward(n, 1)), delete(forward(n, 2))]).SerializeToString()
    device = fake_device()
    async with serving(device) as address, connected(address) as client:
        await client.set_config(config())
        async with grpc.aio.insecure_channel(address) as channel:
            for method in (
                "Write",
                "Read",
                "SetForwardingPipelineConfig",
                "GetForwardingPipelineConfig",
                "Capabilities",
            ):
                call = channel.unary_unary(f"/p4.v1.P4Runtime/{method}")
                if method == "Read":
                    call = channel.unary_stream(f"/p4.v1.P4Runtime/{method}")
                for _ in range(60):
                    await _survives(call, method, _mutated(dice, good), grpc)
            stream = channel.stream_stream("/p4.v1.P4Runtime/StreamChannel")
            arbitration = p4r.StreamMessageRequest(arbitration=p4r.MasterArbitrationUpdate(device_id=1))
            packet = packet_out(b"x" * 40, _1=b"\x03").SerializeToString()
            for _ in range(60):
                rpc = stream()
                try:
                    await rpc.write(arbitration.SerializeToString())
                    for _ in range(3):
                        await rpc.write(_mutated(dice, packet))
                    await rpc.done_writing()
                    async for _ in rpc:
                        pass
                except (grpc.aio.AioRpcError, asyncio.InvalidStateError):
                    pass
        await client.arbitrate(1 << 127)
        await client.write()
        assert (await client.get_config()).HasField("p4info")


def _mutated(dice, good):
    if dice.random() < 0.3:
        return dice.randbytes(dice.randrange(60))
    data = bytearray(good)
    for _ in range(dice.randrange(1, 6)):
        data[dice.randrange(len(data))] = dice.randrange(256)
    return bytes(data[: dice.randrange(1, len(data) + 1)] if dice.random() < 0.3 else data)


async def _survives(call, method, data, grpc_module):
    try:
        if method == "Read":
            async for _ in call(data):
                pass
        else:
            await call(data)
    except grpc_module.aio.AioRpcError as error:
        assert error.code() != grpc_module.StatusCode.UNAVAILABLE
        assert "AssertionError" not in error.details()

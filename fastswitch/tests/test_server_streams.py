"""Clients that read slowly or not at all: neither memory nor other clients may suffer."""

import asyncio
import logging

import grpc
import pytest
from finsy.proto import p4d, p4r

from fastswitch.server import outbox
from fastswitch.server.outbox import Outbox
from fastswitch.tests.server_kit import (
    MODIFY,
    config,
    connected,
    exact,
    failing,
    fake_device,
    insert,
    lpm,
    names,
    serving,
    update,
)


@pytest.fixture(name="n")
def _names():
    return names()


def packet(size=1_000):
    return p4r.StreamMessageResponse(packet=p4r.PacketIn(payload=bytes(size)))


def arbitration():
    return p4r.StreamMessageResponse(arbitration=p4r.MasterArbitrationUpdate(device_id=1))


async def test_notifications_beyond_the_limit_are_dropped_and_counted():
    box, written = Outbox(), []
    room = outbox.MAX_BYTES // packet().ByteSize()
    for _ in range(room + 7):
        box.put(packet())
    assert box.dropped == 7
    box.put(arbitration())  # takes no notice
    assert not box.overflowed.is_set()

    async def write(message):
        written.append(message.WhichOneof("update"))

    sender = asyncio.create_task(box.send_all(write))
    assert await box.drain(5)
    assert written == ["packet"] * room + ["arbitration"]
    box.put(packet())  # there is room again
    assert await box.drain(5)
    assert (len(written), box.dropped) == (room + 2, 7)
    sender.cancel()


async def test_small_notifications_are_limited_in_number():
    box = Outbox()
    for _ in range(outbox.MAX_MESSAGES + 3):
        box.put(packet(0))
    assert box.dropped == 3


async def test_arbitration_that_piles_up_ends_the_stream():
    box = Outbox()
    for _ in range(outbox.MAX_ARBITRATION):
        box.put(arbitration())
    assert not box.overflowed.is_set()
    box.put(arbitration())
    assert box.overflowed.is_set()
    assert not await box.drain(0)


SMALL_WINDOW = {"options": [("grpc.http2.bdp_probe", 0)]}  # 64 KB, or the connection holds megabytes


async def until(condition):
    """Wait for something that happens in the server."""
    async with asyncio.timeout(10):
        while not condition():
            await asyncio.sleep(0.005)


async def test_a_client_that_does_not_read_loses_packets_and_nothing_else(n, caplog):
    device = fake_device()
    async with serving(device) as address, connected(address) as deaf, connected(address) as other:
        await deaf.arbitrate(5)
        await deaf.set_config(config())
        frame = b"\0\x80" + bytes(9_000)
        limit = 4 * outbox.MAX_BYTES // len(frame)
        for _ in range(limit):
            device.packet_in(frame)
        (controller,) = device.arbiter.listeners()
        dropped = controller.send.__self__.dropped
        assert limit // 2 < dropped < limit
        entry = n.entry("lpm_table", lpm(b"\1\0\0\0", 8), action=n.table_action("NoAction"))
        await deaf.write(insert(entry))
        await other.arbitrate(6)
        caplog.set_level(logging.WARNING)
        await deaf.leave()
        await until(lambda: "notifications were dropped: a client did not read them" in caplog.text)
        assert f"{dropped} notifications" in caplog.text
        device.packet_in(frame)
        assert (await other.receive()).packet.payload == frame[2:]


async def test_a_client_that_misses_arbitration_is_disconnected(monkeypatch):
    monkeypatch.setattr(outbox, "MAX_ARBITRATION", 20)
    monkeypatch.setattr("fastswitch.server.service._DRAIN", 0.0)
    device = fake_device()
    async with serving(device) as address, connected(address, **SMALL_WINDOW) as deaf, connected(address) as other:
        await deaf.arbitrate(1)
        await deaf.set_config(config())
        (controller,) = device.arbiter.listeners()
        for _ in range(100):
            device.packet_in(b"\0\x80" + bytes(9_000))  # the connection's own buffers are full
        role = controller.role
        for election_id in range(2, 60):
            await other.arbitrate(election_id)
        await until(lambda: controller not in role.controllers)
        with failing(grpc.StatusCode.RESOURCE_EXHAUSTED, "does not read its stream: arbitration messages pile up"):
            while True:
                await deaf.receive()


# Reads


async def read_all(client, *entities):
    sizes = []
    async for response in client.stub.Read(p4r.ReadRequest(device_id=1, entities=entities)):
        sizes.append((len(response.entities), response.ByteSize()))
    return sizes


async def test_long_reads_come_in_pieces(n):
    async with serving(fake_device()) as address, connected(address) as client:
        await client.arbitrate(1)
        await client.set_config(config())
        entries = [
            n.entry("lpm_table", lpm(i.to_bytes(4, "big"), 32), action=n.table_action("forward", b"\1"))
            for i in range(1, 3_000)
        ]
        await client.write(*map(insert, entries))
        sizes = await read_all(client, p4r.Entity(table_entry=entries[0].__class__(table_id=entries[0].table_id)))
        assert [count for count, _ in sizes] == [1_024, 1_024, 951]
        big = n.entry("exact_table", exact(b"\1"), exact(b"\1"), action=n.table_action("broadcast", b"\1"))
        big.metadata = bytes(400_000)
        for port in range(1, 8):
            big.match[1].exact.value = bytes([port])
            await client.write(insert(big))
        sizes = await read_all(client, p4r.Entity(table_entry=p4r.TableEntry(table_id=big.table_id)))
        assert [count for count, _ in sizes] == [2, 2, 2, 1]
        assert max(size for _, size in sizes) < 1 << 20


@pytest.fixture(name="cells_read")
def _cells_read():
    """How many register cells were read: the engine is asked for them one after another."""
    return []


def wide_device(cells_read, cells=1 << 16):
    """A device whose register is long, to read from which takes a client that takes responses."""
    device = fake_device()
    read_all_cells = device.engine.register_read_all

    def counted(register):
        for value in read_all_cells(register):
            cells_read.append(register)
            yield value

    device.engine.register_read_all = counted
    device.cells = cells
    return device


def lengthen(device, n):
    register = device.state.registers[n.ids["words"]]
    register.schema.size = device.cells
    device.engine.register_sizes[register._index] = (device.cells, 4)


async def test_a_long_read_runs_no_further_ahead_than_its_client(n, cells_read):
    device = wide_device(cells_read)
    async with serving(device) as address, connected(address, **SMALL_WINDOW) as slow:
        await slow.arbitrate(1)
        await slow.set_config(config())
        lengthen(device, n)
        entity = p4r.Entity(register_entry=p4r.RegisterEntry(register_id=n.ids["words"]))
        call = slow.stub.Read(p4r.ReadRequest(device_id=1, entities=[entity]))
        got = len((await call.read()).entities)
        reached = -1
        while reached != len(cells_read):  # until it waits for the client
            reached = len(cells_read)
            await asyncio.sleep(0.1)
        assert got < reached < device.cells // 2
        while (response := await call.read()) is not grpc.aio.EOF:
            got += len(response.entities)
        assert got == len(cells_read) == device.cells
        device.state.registers[n.ids["words"]].schema.size = 32


async def test_a_client_that_takes_no_response_holds_up_writes_for_a_moment_only(n, cells_read):
    device = wide_device(cells_read)
    device.read_stall_s = 0.1
    async with serving(device) as address, connected(address, **SMALL_WINDOW) as deaf, connected(address) as writer:
        await writer.arbitrate(1)
        await writer.set_config(config())
        lengthen(device, n)
        entity = p4r.Entity(register_entry=p4r.RegisterEntry(register_id=n.ids["words"]))
        call = deaf.stub.Read(p4r.ReadRequest(device_id=1, entities=[entity]))
        assert (await call.read()).entities
        data = p4d.P4Data(bitstring=b"\7")
        cell = p4r.RegisterEntry(register_id=n.ids["words"], index=p4r.Index(index=1), data=data)
        async with asyncio.timeout(10):
            await writer.write(update(MODIFY, register_entry=cell))
        with failing(grpc.StatusCode.ABORTED, "the client took no response for 0.1 s; reads hold up writes"):
            while await call.read() is not grpc.aio.EOF:
                pass
        device.state.registers[n.ids["words"]].schema.size = 32


async def test_a_batch_outlives_the_client_that_sent_it(n):
    device = fake_device()
    async with serving(device) as address, connected(address) as leaver, connected(address) as other:
        await leaver.arbitrate(1)
        await leaver.set_config(config())
        action = n.table_action("forward", b"\1")
        entries = [n.entry("lpm_table", lpm(i.to_bytes(4, "big"), 32), action=action) for i in range(1, 5_001)]
        lpm_table = device.state.tables[n.ids["lpm_table"]]
        batch = asyncio.create_task(leaver.write(*map(insert, entries)))
        await until(lambda: lpm_table.entries)
        batch.cancel()
        found = await other.read(p4r.Entity(table_entry=p4r.TableEntry(table_id=n.ids["lpm_table"])))
        assert len(found) == 5_000

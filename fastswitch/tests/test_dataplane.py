"""The test port with a plain gRPC client: BMv2's service, as `--dp-grpc-server-addr` of the daemon serves it."""

import asyncio
import contextlib

import grpc
import grpc.aio
import pytest
from finsy.proto import p4r

from fastswitch.control import Client
from fastswitch.daemon import main
from fastswitch.server import dataplane_proto as proto
from fastswitch.server.dataplane import DataplaneServer
from fastswitch.tests.server_kit import INSERT, config, connected, update
from fastswitch.tests.test_daemon_run import end, free_ports, running, start

SECONDS = 20.0
SIZE = 1_000
MAX_FRAME = 10_240

# A packet's first two bytes are where it goes: 0x8000 and up are multicast groups, what is below is a port.
PROGRAM = """
#include <core.p4>
#include <v1model.p4>
header h_t { bit<1> many; bit<15> to; }
struct headers_t { h_t h; }
struct metadata_t { }
parser P(packet_in packet, out headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) {
    state start { packet.extract(hdr.h); transition accept; }
}
control I(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) {
    apply {
        if (hdr.h.many == 1) { std.mcast_grp = (bit<16>)hdr.h.to; }
        else { std.egress_spec = (bit<9>)hdr.h.to; }
    }
}
control E(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) { apply { } }
control V(inout headers_t hdr, inout metadata_t meta) { apply { } }
control D(packet_out packet, in headers_t hdr) { apply { packet.emit(hdr.h); } }
V1Switch(P(), V(), I(), E(), V(), D()) main;
"""


def packet_to(port, number=0, size=SIZE):
    return (port.to_bytes(2, "big") + number.to_bytes(4, "big")).ljust(size, b"\0")


class TestPort:
    __test__ = False

    def __init__(self, channel, device_id=1):
        self.device_id = device_id
        self._stream = channel.stream_stream(
            proto.PACKET_STREAM,
            request_serializer=proto.PacketStreamRequest.SerializeToString,
            response_deserializer=proto.PacketStreamResponse.FromString,
        )
        self.set_status = channel.unary_unary(
            proto.SET_PORT_OPER_STATUS,
            request_serializer=proto.SetPortOperStatusRequest.SerializeToString,
            response_deserializer=proto.SetPortOperStatusResponse.FromString,
        )

    def open(self):
        return self._stream(timeout=SECONDS)

    def request(self, port, packet, id_=0, device_id=None):
        device_id = self.device_id if device_id is None else device_id
        return proto.PacketStreamRequest(id=id_, device_id=device_id, port=port, packet=packet)

    async def send(self, *requests):
        """Responses of a stream with these requests, as (port, packet, id)."""
        stream = self.open()
        for request in requests:
            await stream.write(request)
        await stream.done_writing()
        return await read_all(stream)


async def read_all(stream):
    found = []
    while (response := await stream.read()) is not grpc.aio.EOF:
        found.append((response.port, response.packet, response.id))
    return found


@contextlib.contextmanager
def refused(code, text):
    with pytest.raises(grpc.aio.AioRpcError) as caught:
        yield
    assert (caught.value.code(), caught.value.details()) == (code, text)


@pytest.fixture(name="program", scope="module")
def _program(tmp_path_factory):
    path = tmp_path_factory.mktemp("program") / "program.p4"
    path.write_text(PROGRAM)
    return config(path)


@pytest.fixture(name="daemon", scope="module")
def _daemon(tmp_path_factory):
    """A daemon with device id 7: addresses of P4Runtime, test port and control socket."""
    folder = tmp_path_factory.mktemp("dataplane")
    addresses = [f"unix:{folder}/{name}" for name in ("p4runtime", "dataplane")]
    control = folder / "c.sock"
    options = ["--grpc-server-addr", addresses[0], "--dp-grpc-server-addr", addresses[1], "--cpu-port", 510]
    with running("--no-p4", "--device-id", 7, "--control", control, *options):
        yield *addresses, control


@pytest.fixture(name="port")
async def _port(daemon, program):
    """The test port of the daemon, which has just got its program."""
    p4runtime, dataplane, _ = daemon
    async with connected(p4runtime, 7) as client, grpc.aio.insecure_channel(dataplane) as channel:
        await client.arbitrate(1)
        await client.set_config(program)
        groups = [((1, 400), (3, 400)), tuple((port, 1) for port in range(500))]
        for number, replicas in enumerate(groups, 1):
            messages = [p4r.Replica(egress_port=port, instance=rid) for port, rid in replicas]
            group = p4r.MulticastGroupEntry(multicast_group_id=number, replicas=messages)
            entry = p4r.PacketReplicationEngineEntry(multicast_group_entry=group)
            await client.write(update(INSERT, packet_replication_engine_entry=entry))
        yield TestPort(channel, 7)


async def test_not_ready_until_a_program_is_loaded(tmp_path):
    addresses = [f"unix:{tmp_path}/{name}" for name in ("p4runtime", "dataplane")]
    with running("--no-p4", "--grpc-server-addr", addresses[0], "--dp-grpc-server-addr", addresses[1]):
        async with grpc.aio.insecure_channel(addresses[1]) as channel:
            with refused(grpc.StatusCode.UNAVAILABLE, "not ready: no program is loaded"):
                await TestPort(channel, 0).send()


async def test_a_packet_comes_back_with_its_id(port):
    assert await port.send() == []
    found = await port.send(
        port.request(5, packet_to(2), 1 << 63),
        port.request(0, packet_to(0), 0),
        port.request(511, packet_to(509, size=2), 3),
        port.request(9, packet_to(511), 4),  # the drop port
        port.request(9, packet_to(510), 5),  # the CPU port
        port.request(9, packet_to(0x8001), 6),
        port.request(1, packet_to(1, size=MAX_FRAME), 7),
    )
    assert found == [
        (2, packet_to(2), 1 << 63),
        (0, packet_to(0), 0),
        (509, packet_to(509, size=2), 3),
        (1, packet_to(0x8001), 6),
        (3, packet_to(0x8001), 6),
        (1, packet_to(1, size=MAX_FRAME), 7),
    ]


async def test_the_stream_ends_after_the_last_queued_packet(daemon, port):
    with Client(daemon[2]) as control:
        control.queue_set("s7", 4, rate_bps=40_000_000)  # 200 us a packet
        try:
            # The client is quicker than the queue: of its 300 packets most still wait when it half-closes.
            found = await port.send(*(port.request(0, packet_to(4, number), number + 1) for number in range(300)))
        finally:
            control.queue_set("s7", 4, rate_bps=0)
    assert found == [(4, packet_to(4, number), number + 1) for number in range(300)]


async def test_many_copies_of_many_packets_all_arrive(port):
    """More than the engine keeps for who does not take them."""
    packets = 20
    found = await port.send(*(port.request(0, packet_to(0x8002, n, 60), n + 1) for n in range(packets)))
    by_port = {number: [id_ for p, _, id_ in found if p == number] for number in range(500)}
    assert all(ids == list(range(1, packets + 1)) for ids in by_port.values())


async def test_one_client_at_a_time(port):
    first = port.open()
    await first.write(port.request(0, packet_to(1), 1))
    assert (await first.read()).id == 1
    with refused(grpc.StatusCode.RESOURCE_EXHAUSTED, "only one client authorized at a time"):
        await port.send()
    await first.done_writing()
    assert await read_all(first) == []
    assert len(await port.send(port.request(0, packet_to(1)))) == 1


async def test_what_a_client_left_does_not_reach_the_next(daemon, port):
    with Client(daemon[2]) as control:
        control.queue_set("s7", 4, rate_bps=1_000_000)  # 8 ms a packet
        try:
            first = port.open()
            for number in range(20):
                await first.write(port.request(0, packet_to(4, number), number + 1))
            await first.read()
            first.cancel()
            while not await is_free(port):
                pass
        finally:
            control.queue_set("s7", 4, rate_bps=0)
    assert await port.send(port.request(0, packet_to(4, 99), 100)) == [(4, packet_to(4, 99), 100)]


async def is_free(port):
    """Whether the port serves a new client, which then gets nothing."""
    try:
        assert await port.send() == []
    except grpc.aio.AioRpcError as error:
        assert error.details() == "only one client authorized at a time"
        return False
    return True


@pytest.mark.parametrize(
    ("wrong", "text"),
    [
        ({"port": 512}, "port 512 of switch s7: ports are 0..511"),
        ({"port": (1 << 32) - 1}, "port 4294967295 of switch s7: ports are 0..511"),
        ({"device_id": 8}, "device id 8: this is device 7"),
        ({"packet": b""}, f"frame for switch s7: 0 bytes are not in 1..{MAX_FRAME}"),
        ({"packet": bytes(MAX_FRAME + 1)}, f"frame for switch s7: {MAX_FRAME + 1} bytes are not in 1..{MAX_FRAME}"),
        ({"packet": bytes(1 << 20)}, f"frame for switch s7: {1 << 20} bytes are not in 1..{MAX_FRAME}"),
    ],
)
async def test_a_wrong_packet_ends_the_stream_after_those_before_it(port, wrong, text):
    stream = port.open()
    await stream.write(port.request(0, packet_to(3), 1))
    await stream.write(port.request(**{"port": 0, "packet": packet_to(3), "id_": 2, **wrong}))
    assert (await stream.read()).id == 1
    with refused(grpc.StatusCode.INVALID_ARGUMENT, text):
        await stream.read()
    assert len(await port.send(port.request(0, packet_to(3)))) == 1, "the next client is served"


async def test_a_message_that_gRPC_refuses(port):
    with pytest.raises(grpc.aio.AioRpcError) as caught:
        await port.send(port.request(0, bytes(5 << 20)))
    assert caught.value.code() == grpc.StatusCode.RESOURCE_EXHAUSTED
    assert len(await port.send(port.request(0, packet_to(3)))) == 1


@pytest.mark.parametrize("garbage", [b"\xff" * 40, b"\x22\x7f", b"\x08" + b"\xff" * 11, b"\0"])
async def test_a_message_that_is_none(daemon, port, garbage):
    async with grpc.aio.insecure_channel(daemon[1]) as channel:
        stream = channel.stream_stream(proto.PACKET_STREAM)(timeout=SECONDS)
        await stream.write(garbage)
        with refused(grpc.StatusCode.INVALID_ARGUMENT, "Error parsing message with type 'p4.bm.PacketStreamRequest'"):
            await stream.read()
    while not await is_free(port):
        pass
    assert len(await port.send(port.request(0, packet_to(3)))) == 1


_UNDECODED = "the request cannot be decoded: Error parsing message with type '"


async def test_a_status_that_is_none(daemon):
    async with grpc.aio.insecure_channel(daemon[1]) as channel:
        with refused(grpc.StatusCode.INVALID_ARGUMENT, _UNDECODED + "p4.bm.SetPortOperStatusRequest'"):
            await channel.unary_unary(proto.SET_PORT_OPER_STATUS)(b"\x08" + b"\xff" * 11, timeout=SECONDS)


async def test_a_new_program_ends_what_waited(daemon, program, port):
    with Client(daemon[2]) as control:
        control.queue_set("s7", 4, rate_bps=8_000)  # a second a packet
        try:
            stream = port.open()
            for number in range(30):
                await stream.write(port.request(0, packet_to(4, number), number + 1))
            assert (await stream.read()).id == 1
            await stream.done_writing()
            async with connected(daemon[0], 7) as client:
                await client.arbitrate(2)
                await client.set_config(program)
            with contextlib.suppress(grpc.aio.AioRpcError):  # DATA_LOSS, if the engine threw away what had left
                assert len(await read_all(stream)) < 29
        finally:
            control.queue_set("s7", 4, rate_bps=0)
    assert len(await port.send(port.request(0, packet_to(4)))) == 1


class FakePorts:
    """An engine without packets."""

    device_id = 3
    has_program = True

    def __init__(self):
        self.tapped = []
        self.up = {}
        self.lost = 0
        self.injected = []
        self.drains = asyncio.Queue()

    def tap(self, port):
        self.tapped.append(port)

    def inject(self, port, frame, tag=0):
        self.injected.append((port, frame, tag))

    def drain(self, tag=0):
        self.drains.put_nowait(tag)

    def set_port_up(self, port, up):
        if port > 511:
            raise IndexError(f"port {port} of switch s: there is no such port without link")
        self.up[port] = up

    def stats(self):
        return {"drops_event": self.lost}


@contextlib.asynccontextmanager
async def serving(ports, tmp_path, changed=None):
    port_changed = changed.append if changed is not None else lambda port: None
    server = DataplaneServer(ports, reserved={511, 510}, take_events=lambda: False, port_changed=port_changed)
    await server.start(f"unix:{tmp_path}/s")
    try:
        async with grpc.aio.insecure_channel(f"unix:{tmp_path}/s") as channel:
            yield server, TestPort(channel, 3)
    finally:
        await server.stop()


async def test_all_ports_but_reserved_ones_are_tapped(tmp_path):
    ports = FakePorts()
    async with serving(ports, tmp_path):
        assert ports.tapped == list(range(510))


async def test_operational_status(tmp_path):
    ports, changed = FakePorts(), []
    async with serving(ports, tmp_path, changed) as (server, client):

        async def status(port, oper_status, device_id=3):
            request = proto.SetPortOperStatusRequest(device_id=device_id, port=port, oper_status=oper_status)
            await client.set_status(request, timeout=SECONDS)

        await status(4, proto.STATUS_UP)
        await status(4, proto.STATUS_DOWN)
        await status(4, proto.STATUS_DOWN)
        assert (changed, ports.up, server.port_up(4), server.port_up(5)) == ([4], {4: False}, False, True)
        await status(4, proto.STATUS_UP)
        assert (changed, ports.up, server.port_up(4)) == ([4, 4], {4: True}, True)
        with refused(grpc.StatusCode.INVALID_ARGUMENT, "Invalid device id 9"):
            await status(4, proto.STATUS_UP, device_id=9)
        for wrong in (proto.STATUS_UNKNOWN, 3):
            with refused(grpc.StatusCode.INVALID_ARGUMENT, f"Invalid oper status {wrong}"):
                await status(4, wrong)
        with refused(grpc.StatusCode.INVALID_ARGUMENT, "port 512 of switch s: there is no such port without link"):
            await status(512, proto.STATUS_DOWN)
        assert changed == [4, 4]


async def test_loss_is_told(tmp_path):
    ports = FakePorts()
    async with serving(ports, tmp_path) as (server, client):
        stream = client.open()
        await stream.write(client.request(1, b"x", 5))
        await stream.done_writing()
        tag = await ports.drains.get()
        server.sent(2, b"y", 5)
        ports.lost = 4
        server.drained(tag)
        response = await stream.read()
        assert (response.port, response.packet, response.id, response.device_id) == (2, b"y", 5, 3)
        with refused(grpc.StatusCode.DATA_LOSS, "4 packets or digests were lost: they came faster than they went"):
            await stream.read()
        assert ports.injected == [(1, b"x", 5)]


def test_flags_that_do_not_fit(capsys):
    for arguments, text in [
        (["--no-p4", "--dp-grpc-server-addr", "nowhere"], "--dp-grpc-server-addr: 'nowhere' is not HOST:PORT"),
        (["--fabric", "x.json", "--dp-grpc-server-addr", "a:1"], "--dp-grpc-server-addr is for one switch"),
    ]:
        assert main(arguments) == 2
        assert text in capsys.readouterr().err


def test_an_address_that_is_taken(capsys):
    address = f"127.0.0.1:{free_ports(1)[0]}"
    assert main(["--no-p4", "--grpc-server-addr", address, "--dp-grpc-server-addr", address]) == 1
    assert f"cannot listen on {address}: Address already in use" in capsys.readouterr().err


async def test_interfaces_are_ignored_with_a_note_and_an_open_stream_does_not_hold_up_the_end(tmp_path, program):
    addresses = [f"unix:{tmp_path}/{name}" for name in ("p4runtime", "dataplane")]
    options = ["--grpc-server-addr", addresses[0], "--dp-grpc-server-addr", addresses[1]]
    json = tmp_path / "program.json"
    json.write_bytes(program.p4_device_config)
    process = start("-i", "1@no-such-interface", *options, json)
    assert process.stdout.readline() == "ready\n"
    async with grpc.aio.insecure_channel(addresses[1]) as channel:
        port = TestPort(channel, 0)
        assert await port.send(port.request(1, packet_to(2), 9)) == [(2, packet_to(2), 9)]
        stream = port.open()
        await stream.write(port.request(1, packet_to(2), 10))
        assert (await stream.read()).id == 10
        code, said = await asyncio.to_thread(end, process)
    assert code == 0 and "Traceback" not in said, said
    assert "--interface is ignored: packets come and go through --dp-grpc-server-addr" in said

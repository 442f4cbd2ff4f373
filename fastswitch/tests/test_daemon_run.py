"""The daemon as a process: a fabric that forwards, driven by finsy, the control socket, signals and failures."""

import asyncio
import contextlib
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time

import finsy as fy
import grpc
import grpc.aio
import pytest
from finsy.proto import p4r, p4r_grpc

from fastswitch.control import Client, ControlError
from fastswitch.tests.server_kit import ECMP, EVERYTHING, compiled, config, connected, insert, lpm, names, update

READY_SECONDS = 20


def start(*argv):
    """A daemon process whose first line of output is not read yet."""
    return subprocess.Popen(
        [sys.executable, "-m", "fastswitch.daemon", *map(str, argv)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def end(process):
    """Stop a process; its exit code and what it said on stderr."""
    if process.poll() is None:
        process.send_signal(signal.SIGTERM)
    try:
        _, said = process.communicate(timeout=10)
    except subprocess.TimeoutExpired:
        process.kill()
        raise
    return process.returncode, said


@contextlib.contextmanager
def running(*argv):
    process = start(*argv)
    try:
        line = process.stdout.readline()
        if line != "ready\n":
            raise AssertionError(f"not ready: {line!r}: {end(process)}")
        yield process
    finally:
        code, said = end(process)
    assert code == 0, said
    assert "Traceback" not in said


def free_ports(count):
    """Ports of loopback that are free at the moment."""
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    ports = [s.getsockname()[1] for s in sockets]
    for s in sockets:
        s.close()
    return ports


@pytest.fixture(name="fabric", scope="module")
def _fabric(tmp_path_factory):
    """Two switches with a link between their ports 1, and the path of the control socket."""
    folder = tmp_path_factory.mktemp("fabric")
    ports = free_ports(2)
    control = folder / "c.sock"
    document = {
        "switches": [
            {"name": f"s{i}", "device_id": i, "grpc_addr": f"127.0.0.1:{port}", "cpu_port": 510}
            for i, port in enumerate(ports, 1)
        ],
        "links": [{"a": ["s1", 1], "b": ["s2", 1], "rate_bps": 10**9, "delay_ns": 1000}],
        "control": str(control),
    }
    path = folder / "fabric.json"
    path.write_text(json.dumps(document))
    with running("--fabric", path):
        yield [f"127.0.0.1:{port}" for port in ports], control
    assert not control.exists()


@contextlib.asynccontextmanager
async def finsy_switch(address, device_id, source, tmp_path):
    """A finsy switch that has pushed the program."""
    p4info, program = compiled(source)
    (tmp_path / "p.p4info.txtpb").write_text(str(p4info))
    (tmp_path / "p.json").write_bytes(program)
    ready = asyncio.Event()

    async def handler(_):
        ready.set()
        await asyncio.Event().wait()

    options = fy.SwitchOptions(
        p4info=tmp_path / "p.p4info.txtpb", p4blob=tmp_path / "p.json", ready_handler=handler, device_id=device_id
    )
    switch = fy.Switch(f"s{device_id}", address, options)
    task = asyncio.create_task(switch.run())
    try:
        await asyncio.wait_for(ready.wait(), 10)
        yield switch
    finally:
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task


async def test_finsy_programs_ecmp_and_reads_it_back(fabric, tmp_path):
    (address, _), _ = fabric
    async with finsy_switch(address, 1, ECMP, tmp_path) as switch:
        seed = fy.P4TableEntry(
            "switch_seed", is_default_action=True, action=fy.Action("set_seed", odd_multiplier=12345)
        )
        await switch.modify([seed])
        hops = [(weight, fy.Action("forward", port=port)) for weight, port in ((1, 1), (2, 2), (1, 3))]
        routes = [
            fy.P4TableEntry("ipv4_lpm", match=fy.Match(dst_addr=f"10.0.{i}.0/24"), action=fy.P4IndirectAction(hops))
            for i in range(20)
        ]
        await switch.insert(routes)
        found = [entry async for entry in switch.read([fy.P4TableEntry("ipv4_lpm")])]
        assert [entry.match["dst_addr"] for entry in found] == [((10 << 24) + (i << 8), 24) for i in range(20)]
        assert [weight for weight, _ in found[0].action.action_set] == [1, 2, 1]
        (default,) = [e async for e in switch.read([fy.P4TableEntry("switch_seed", is_default_action=True)])]
        assert default.action.args == {"odd_multiplier": 12345}
        counters = [entry async for entry in switch.read([fy.P4CounterEntry("port_rx")])]
        assert len(counters) == 512
        with pytest.raises(fy.P4ClientError) as caught:
            await switch.insert(routes[:2])
        assert [d.canonical_code.name for d in caught.value.details.values()] == ["ALREADY_EXISTS"] * 2
        await switch.delete(routes)
        assert [entry async for entry in switch.read([fy.P4TableEntry("ipv4_lpm")])] == []


async def test_finsy_skips_the_push_when_the_cookie_matches(fabric, tmp_path):
    (address, _), _ = fabric
    async with finsy_switch(address, 1, EVERYTHING, tmp_path) as switch:
        await switch.insert([fy.P4MulticastGroupEntry(1, replicas=[1])])
    async with finsy_switch(address, 1, EVERYTHING, tmp_path) as switch:
        assert len([e async for e in switch.read([fy.P4MulticastGroupEntry()])]) == 1


def ethernet(ether_type):
    return bytes(5) + b"\x02" + bytes(5) + b"\x01" + ether_type.to_bytes(2, "big")


async def test_packets_digests_counters_and_registers_through_two_switches(fabric):
    """controller -> s1 (packet-out to port 1) -> link -> s2 (entry sends it to the controller) -> controller"""
    addresses, control = fabric
    n = names()
    async with connected(addresses[0], 1) as one, connected(addresses[1], 2) as two:
        for client in (one, two):
            await client.arbitrate(1)
            await client.set_config(config())
        settings = p4r.DigestEntry.Config(max_list_size=1, ack_timeout_ns=10**12)
        learn = p4r.TableEntry(table_id=n.ids["keyless_table"], is_default_action=True, action=n.table_action("learn"))
        send = n.entry("exact_table", exact_(b"\x02"), exact_(b"\x01"), action=n.table_action("to_controller"))
        await two.write(
            insert(send),
            update(p4r.Update.MODIFY, table_entry=learn),
            update(p4r.Update.INSERT, digest_entry=p4r.DigestEntry(digest_id=n.ids["learn_t"], config=settings)),
        )
        await one.send(packet_out(ethernet(0x1234) + bytes(46)))
        got = {}
        while len(got) < 2:
            message = await two.receive()
            got[message.WhichOneof("update")] = message
        packet = got["packet"].packet
        assert packet.payload == ethernet(0x1234) + bytes(46)
        assert [(m.metadata_id, m.value) for m in packet.metadata] == [(1, b"\x01"), (2, b"\x01")]
        (sample,) = got["digest"].digest.data
        assert [m.bitstring for m in sample.struct.members] == [b"\x01", b"\x01"]

        await one.send(packet_out(ethernet(0x0800) + bytes(46)))  # IPv4: these count in a register
        query = p4r.CounterEntry(counter_id=n.ids["port_counter"], index=p4r.Index(index=1))
        await eventually(two, p4r.Entity(counter_entry=query), lambda e: e.counter_entry.data.packet_count == 2)
        register = p4r.RegisterEntry(register_id=n.ids["words"], index=p4r.Index(index=0))
        (word,) = await two.read(p4r.Entity(register_entry=register))
        assert word.register_entry.data.bitstring == b"\x01"
        with Client(control) as fabric_control:
            (link,) = fabric_control.links()
            assert (link["name"], link["a_to_b"]["packets"]) == ("s1:1-s2:1", 2)


def packet_out(payload):
    message = p4r.PacketOut(payload=payload)
    message.metadata.add(metadata_id=1, value=b"\x01")
    return p4r.StreamMessageRequest(packet=message)


async def eventually(client, query, condition):
    """Read until the one entity fulfils the condition."""
    for _ in range(60):
        (entity,) = await client.read(query)
        if condition(entity):
            return
        await asyncio.sleep(0.05)
    raise AssertionError(entity)


def exact_(value):
    return p4r.FieldMatch(exact=p4r.FieldMatch.Exact(value=value))


# Control socket


def test_the_control_socket_is_private_and_answers(fabric, tmp_path):
    _, control = fabric
    assert control.stat().st_mode & 0o777 == 0o600
    with Client(control) as client:
        status = client.status()
        assert [s["name"] for s in status["switches"]] == ["s1", "s2"]
        assert status["pid"] != os.getpid() and status["uptime_s"] > 0
        client.record_flows()
        assert client.flows() == [] and client.flows("s1:1") == []
        client.capture_start("s1:1-s2:1", tmp_path / "x.pcap")
        client.capture_stop("s2:1")
        assert (tmp_path / "x.pcap").stat().st_size >= 24
        client.link_set("s1:1", up=False)
        assert client.links()[0]["up"] is False
        client.link_set("s1:1", up=True, rate_bps=10**9, delay_ns=1000, loss=0.0)
        client.queue_set("s1", 1, depth_packets=64)
        assert {(p["switch"], p["port"]) for p in client.ports()} == {("s1", 1), ("s2", 1)}


@pytest.mark.parametrize(
    ("request_", "text"),
    [
        (b"{", "not JSON"),
        (b"[]", 'a request is an object with a "verb"'),
        (b'{"verb": 1}', 'a request is an object with a "verb"'),
        (b'{"verb": "dance"}', "no verb 'dance'; known are buffer, buffer_set, capture_start"),
        (b'{"verb": "link_set"}', "link_set: missing a required argument: 'link'"),
        (b'{"verb": "status", "x": 1}', "status: got an unexpected keyword argument 'x'"),
        (b'{"verb": "link_set", "link": "s9:1"}', "link_set: no link is named 's9:1'; known are s1:1-s2:1"),
        (b'{"verb": "link_set", "link": ["x"]}', "link_set: no link is named"),
        (b'{"verb": "link_set", "link": "s1:1", "loss": 2}', "link_set: loss 2 is out of range"),
        (b'{"verb": "link_set", "link": "s1:1", "rate_bps": "fast"}', "link_set: rate_bps must be a number"),
        (b'{"verb": "link_set", "link": "s1:1", "rate_bps": 1e400}', "link_set: "),
        (b'{"verb": "link_set", "link": "s1:1", "up": 1}', "link_set: up must be true or false"),
        (b'{"verb": "queue_set", "switch": "s9", "port": 1}', "queue_set: no switch is named 's9'; known are s1, s2"),
        (b'{"verb": "queue_set", "switch": "s1", "port": -1}', "queue_set: port must be a whole number"),
        (b'{"verb": "queue_set", "switch": {}, "port": 1}', "queue_set: no switch is named {}"),
        (b'{"verb": "queue_set", "switch": "s1", "port": 500}', "port 500 of switch s1: there is none"),
        (b'{"verb": "queue_set", "switch": "s1", "port": 1, "queue": 4294967296}', "queue: 4294967296 is not"),
        (b'{"verb": "queue_set", "switch": "s1", "port": 1, "alpha": "x"}', "queue_set: alpha: 'x' is no fraction"),
        (b'{"verb": "queue_set", "switch": "s1", "port": 1, "queue": 1}', "queue 1 of port 1: the port has 1 queues"),
        (b'{"verb": "queue_hold", "switch": "s1", "port": 1, "hold": 1}', "queue_hold: hold must be true or false"),
        (b'{"verb": "queues", "switch": "s1", "port": "1"}', "queues: port must be a whole number"),
        (b'{"verb": "buffer_set", "switch": "s1", "buffer": {}}', "buffer.total_bytes: the field is missing"),
        (b'{"verb": "buffer_set", "switch": "s1", "buffer": 5}', "buffer_set: buffer: must be an object, not 5"),
        (b'{"verb": "link_set", "link": "s1:1", "rate_bps": 9223372036854775808}', "rate_bps: 9223372036854775808"),
        (b'{"verb": "capture_start", "link": "s1:1", "path": "x"}', "capture_start: path must be absolute"),
        (b'{"verb": "capture_start", "link": "s1:1", "path": "/no/such/x"}', "capture_start: "),
        (b'{"verb": "capture_start", "link": "s1:1", "path": "/dev/null"}', "it is no regular file"),
        (b'{"verb": "capture_start", "link": "s1:1", "path": "/no\\u0000x"}', "it contains a null character"),
        (b"\xff\xfe\x00", "not JSON"),
        (b"[" * 5000, "not JSON"),
        (b"x" * 70_000, "the request is longer than 65536 bytes"),
    ],
)
def test_bad_requests_get_an_error_and_the_fabric_lives(fabric, request_, text):
    _, control = fabric
    with socket.socket(socket.AF_UNIX) as raw:
        raw.settimeout(5)
        raw.connect(str(control))
        raw.sendall(request_ + b"\n")
        answer = json.loads(raw.makefile("rb").readline())
    assert answer["error"].startswith(text) or text in answer["error"], answer
    with Client(control) as client:
        client.status()


def test_the_client_explains_itself(tmp_path):
    with pytest.raises(ControlError, match="no fabric answers at .*none.sock: No such file or directory"):
        Client(tmp_path / "none.sock")


# Starting and stopping


def no_p4(port, *more):
    return "--no-p4", "--device-id", "5", *more, "--", "--grpc-server-addr", f"127.0.0.1:{port}"


def test_stop_over_the_control_socket(tmp_path):
    control = tmp_path / "c.sock"
    (port,) = free_ports(1)
    with running(*no_p4(port, "--control", control)) as process:
        with Client(control) as client:
            client.stop()
        assert process.wait(10) == 0
    assert not control.exists()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_signals_stop_cleanly(number):
    (port,) = free_ports(1)
    with running(*no_p4(port)) as process:
        process.send_signal(number)
        assert process.wait(10) == 0


def test_a_port_that_is_taken():
    (port,) = free_ports(1)
    with running(*no_p4(port)):
        code, said = end(_wait(start(*no_p4(port))))
    assert code == 1
    assert said == f"plait-switch: cannot listen on 127.0.0.1:{port}: Address already in use\n"
    code, said = end(_wait(start("--no-p4", "--grpc-server-addr", "192.0.2.1:5")))
    assert said == "plait-switch: cannot listen on 192.0.2.1:5: Cannot assign requested address\n"


def _wait(process):
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(10)
    return process


def test_an_interface_that_does_not_exist():
    code, said = end(_wait(start(*no_p4(0, "-i", "4@nosuch0"))))
    assert (code, said) == (1, "plait-switch: port 4 of 's5': there is no interface nosuch0\n")


def test_a_control_socket_that_is_taken_or_stale(tmp_path):
    control = tmp_path / "c.sock"
    stale = socket.socket(socket.AF_UNIX)
    stale.bind(str(control))
    stale.close()  # the file stays, as after a kill
    first, second = free_ports(2)
    with running(*no_p4(first, "--control", control)):
        code, said = end(_wait(start(*no_p4(second, "--control", control))))
        assert (code, said) == (1, f"plait-switch: control socket {control}: another fabric listens there\n")
        with Client(control) as client:
            client.status()
    control.write_text("no socket")
    code, said = end(_wait(start(*no_p4(second, "--control", control))))
    assert (code, said) == (1, f"plait-switch: control socket {control}: exists and is no socket\n")


async def test_a_json_on_the_command_line_runs_without_a_config(tmp_path):
    path = tmp_path / "p.json"
    path.write_bytes(compiled(EVERYTHING)[1])
    (port,) = free_ports(1)
    control = tmp_path / "c.sock"
    with running(path, "--control", control, "--grpc-server-addr", f"127.0.0.1:{port}"):
        with Client(control) as client:
            (switch,) = client.status()["switches"]
            assert (switch["has_config"], switch["program"]) == (False, str(path))
        async with connected(f"127.0.0.1:{port}", 0) as client:
            await client.arbitrate(1)
            await client.set_config(config())
            await client.write(
                insert(names().entry("lpm_table", lpm(b"\n\0\0\0", 8), action=names().table_action("NoAction")))
            )


def test_a_json_that_is_none(tmp_path):
    path = tmp_path / "p.json"
    code, said = end(_wait(start(path, "--grpc-server-addr", "127.0.0.1:0")))
    assert (code, said) == (1, f"plait-switch: {path}: No such file or directory\n")
    path.write_text('{"program": 5}')
    code, said = end(_wait(start(path, "--grpc-server-addr", "127.0.0.1:0")))
    assert code == 1
    assert said.startswith(f"plait-switch: {path}: p4_device_config: ") and said.count("\n") == 1


def test_it_dies_with_its_parent(tmp_path):
    control = tmp_path / "c.sock"
    code = (
        "import subprocess, sys\n"
        "child = subprocess.Popen([sys.executable, '-m', 'fastswitch.daemon', *sys.argv[1:]], stdout=subprocess.PIPE)\n"
        "print(child.stdout.readline().decode().strip(), child.pid, flush=True)\n"
        "import os; os._exit(0)\n"
    )
    argv = no_p4(0, "--die-with-parent", "--control", control)
    parent = subprocess.run([sys.executable, "-c", code, *map(str, argv)], capture_output=True, text=True, timeout=20)
    word, pid = parent.stdout.split()
    assert word == "ready"
    for _ in range(100):
        if not control.exists():
            break
        time.sleep(0.05)
    assert not control.exists()
    with contextlib.suppress(ProcessLookupError):
        os.kill(int(pid), 0)  # it may still be a zombie of init for a moment, but it has cleaned up


# Interfaces and TLS


needs_root = pytest.mark.skipif(os.geteuid() != 0 or not shutil.which("ip"), reason="veth interfaces need root and ip")


@needs_root
async def test_frames_pass_between_interfaces_and_into_pcap(tmp_path):
    """outside1 - s1:1 - s1:2 - outside2, forwarded by the default action of a table without key."""
    pairs = [(f"pls{os.getpid() % 10**6}{end}", f"plo{os.getpid() % 10**6}{end}") for end in (1, 2)]
    (port,) = free_ports(1)
    with contextlib.ExitStack() as stack:
        for inside, outside in pairs:
            subprocess.run(["ip", "link", "add", inside, "type", "veth", "peer", "name", outside], check=True)
            stack.callback(subprocess.run, ["ip", "link", "del", inside], check=False)
            for name in (inside, outside):
                subprocess.run(["ip", "link", "set", name, "up"], check=True)
        (inside1, outside1), (inside2, outside2) = pairs
        argv = ["-i", f"1@{inside1}", "-i", f"2@{inside2}", "--pcap", tmp_path]
        stack.enter_context(running(*no_p4(port, *argv)))
        n = names()
        async with connected(f"127.0.0.1:{port}", 5) as client:
            await client.arbitrate(1)
            await client.set_config(config())
            default = p4r.TableEntry(table_id=n.ids["keyless_table"], is_default_action=True)
            default.action.CopyFrom(n.table_action("forward", b"\x02"))
            await client.write(update(p4r.Update.MODIFY, table_entry=default))
        drop = stack.enter_context(raw_socket(outside1))
        catch = stack.enter_context(raw_socket(outside2))
        frame = ethernet(0x1234) + bytes(50)
        drop.send(frame)
        received = b""
        while received != frame:  # the kernel sends router solicitations of its own
            received = catch.recv(2048)
    for inside, _ in pairs:
        assert frame in (tmp_path / f"{inside}.pcap").read_bytes()


def raw_socket(interface):
    made = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(3))
    made.bind((interface, 0))
    made.settimeout(5)
    return made


@pytest.mark.skipif(not shutil.which("openssl"), reason="certificates are made with openssl")
async def test_tls(tmp_path):
    cert, key = tmp_path / "cert.pem", tmp_path / "key.pem"
    subject = ["-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1"]
    make = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", *subject]
    subprocess.run([*make, "-keyout", key, "-out", cert], check=True, capture_output=True)
    (port,) = free_ports(1)
    ssl = ["--grpc-server-ssl", "--grpc-server-cert", cert, "--grpc-server-key", key]
    with running(*no_p4(port), *ssl):
        credentials = grpc.ssl_channel_credentials(cert.read_bytes())
        async with grpc.aio.secure_channel(f"127.0.0.1:{port}", credentials) as channel:
            stub = p4r_grpc.P4RuntimeStub(channel)
            assert (await stub.Capabilities(p4r.CapabilitiesRequest(), timeout=5)).p4runtime_api_version == "1.5.0"
        async with grpc.aio.insecure_channel(f"127.0.0.1:{port}") as channel:
            with pytest.raises(grpc.aio.AioRpcError):
                await p4r_grpc.P4RuntimeStub(channel).Capabilities(p4r.CapabilitiesRequest(), timeout=2)
    cert.write_text("no certificate")
    code, said = end(_wait(start(*no_p4(port), *ssl)))
    assert (code, said) == (2, f"plait-switch: {cert} holds no certificate that fits the key {key}\n")

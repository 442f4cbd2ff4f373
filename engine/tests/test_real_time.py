"""The real-time loop: memory links by the machine's clock, interfaces in namespaces, control threads meanwhile."""

from __future__ import annotations

import shutil
import socket
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import engine
from engine.tests.conftest import Veths
from engine.tests.frames import frame, ipv4, mac, port

FORWARD = 0
MS = 1_000_000


def wait_for(condition: Callable[[], bool], seconds: float = 5.0) -> bool:
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if condition():
            return True
        time.sleep(0.002)
    return condition()


def packet_socket(interface: str) -> socket.socket:
    made = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(3))
    made.bind((interface, 3))
    made.settimeout(3)
    return made


def forward(switch: engine.Switch, destination: int, out: int) -> None:
    switch.entry_insert(0, mac(destination), None, None, None, 0, ("action", FORWARD, port(out)))


@pytest.fixture
def real(echo: Path) -> Iterator[tuple[engine.Fabric, engine.Switch]]:
    with engine.Fabric("real") as fabric:
        switch = fabric.add_switch("s1", cpu_port=510)
        switch.load(echo)
        yield fabric, switch


def test_memory_links_keep_their_delay(echo: Path) -> None:
    with engine.Fabric("real") as fabric:
        s1, s2 = fabric.add_switch("s1", 1), fabric.add_switch("s2", 2, cpu_port=510)
        for switch, out in ((s1, 1), (s2, 510)):
            switch.load(echo)
            forward(switch, 9, out)
        fabric.connect(s1, 1, s2, 1, rate_bps=10**9, delay_ns=20 * MS)
        fabric.start()
        with pytest.raises(ValueError, match="the fabric is running"):
            fabric.start()
        before = time.monotonic()
        s1.inject(3, frame(9))
        assert len(s2.poll_events(timeout=5)) == 1
        assert 0.0195 < time.monotonic() - before < 0.5
        fabric.stop()
        fabric.start()  # again
        s1.inject(3, frame(9))
        assert len(s2.poll_events(timeout=5)) == 1


def test_poll_times_out(real: tuple[engine.Fabric, engine.Switch]) -> None:
    before = time.monotonic()
    assert real[1].poll_events(timeout=0.05) == []
    assert time.monotonic() - before >= 0.05


def test_closing_ends_a_poll(echo: Path) -> None:
    fabric = engine.Fabric("real")
    switch = fabric.add_switch("s1", cpu_port=510)
    fabric.start()
    results: list[object] = []

    def poll() -> None:
        try:
            results.append(switch.poll_events(timeout=30))
        except ValueError as error:  # it came back and found the fabric closed
            results.append(str(error))

    thread = threading.Thread(target=poll)
    thread.start()
    time.sleep(0.05)
    fabric.close()
    thread.join(timeout=5)
    assert results in ([[]], ["the fabric is closed"])


def test_an_idle_fabric_sleeps(real: tuple[engine.Fabric, engine.Switch]) -> None:
    fabric, _ = real
    fabric.start()
    before = time.process_time()
    time.sleep(0.3)
    assert time.process_time() - before < 0.1


@pytest.fixture
def bridge(
    veths: Veths, real: tuple[engine.Fabric, engine.Switch]
) -> tuple[engine.Fabric, engine.Switch, Veths, list[engine.Link]]:
    """Ports 1 and 2 on veths; MAC 1 behind port 1, MAC 9 behind port 2."""
    fabric, switch = real
    veths.add("in1", "out1")
    veths.add("in2", "out2")
    links = [veths.enter(lambda n=n: fabric.attach(switch, n, f"in{n}")) for n in (1, 2)]  # type: ignore[misc]
    forward(switch, 9, 2)
    forward(switch, 1, 1)
    return fabric, switch, veths, links  # type: ignore[return-value]


Bridge = tuple[engine.Fabric, engine.Switch, Veths, list[engine.Link]]


def sockets(veths: Veths, *names: str) -> list[socket.socket]:
    return [veths.enter(lambda n=n: packet_socket(n)) for n in names]  # type: ignore[misc]


def test_frames_cross_in_both_directions_unchanged(bridge: Bridge) -> None:
    fabric, _, veths, links = bridge
    left, right = sockets(veths, "out1", "out2")
    fabric.start()
    for size in (60, 61, 1086, 1514):
        sent = mac(9) + mac(1) + b"\x08\x01" + bytes(n % 251 for n in range(size - 14))
        left.send(sent)
        assert right.recv(4096) == sent
    back = mac(1) + mac(9) + b"\x08\x01" + bytes(50)
    right.send(back)
    while (got := left.recv(4096)) != back:
        assert got[:6] == mac(9)  # the socket sees its own frames as well
    assert links[1].stats()["a_to_b"]["packets"] == 4
    assert links[0].interface_stats()["received"] == 4
    left.close()
    right.close()


def test_rate_and_delay_hold_for_interfaces_both_ways(veths: Veths, real: tuple[engine.Fabric, engine.Switch]) -> None:
    fabric, switch = real
    veths.add("in1", "out1")
    veths.add("in2", "out2")
    for n in (1, 2):
        veths.enter(
            lambda n=n: fabric.attach(switch, n, f"in{n}", rate_bps=8_000_000, delay_ns=10 * MS, queue_packets=40)
        )
    forward(switch, 9, 2)
    left, right = sockets(veths, "out1", "out2")
    fabric.start()
    before = time.monotonic()
    left.send(frame(9, size=1000))
    right.recv(4096)
    assert 0.0219 < time.monotonic() - before < 0.2  # two links of 10 ms and 1 ms each
    before = time.monotonic()
    for _ in range(30):
        left.send(frame(9, size=1000))
    for _ in range(30):
        right.recv(4096)
    assert 0.050 < time.monotonic() - before < 0.5  # 30 ms at the rate, 1 ms more, 20 ms of delay
    for _ in range(200):
        left.send(frame(9, size=1000))
    link = fabric.links["s1:1-in1"]
    assert wait_for(lambda: link.stats()["b_to_a"]["drops_queue"] + link.stats()["b_to_a"]["packets"] == 231)
    assert link.stats()["b_to_a"]["drops_queue"] > 100  # the host's queue holds 40
    left.close()
    right.close()


def test_partial_checksums_are_completed(bridge: Bridge) -> None:
    """A UDP socket on a veth leaves the checksum to hardware that does not exist."""
    fabric, switch, veths, links = bridge
    veths.run("ip addr add 10.1.0.1/24 dev out1")
    veths.run("ip neigh add 10.1.0.2 lladdr 02:00:00:00:00:09 dev out1")
    member = switch.member_create(FORWARD, port(2))
    switch.entry_insert(1, bytes([10, 1, 0, 2]), None, 32, None, 0, ("member", member))
    (right,) = sockets(veths, "out2")

    def udp() -> socket.socket:
        made = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        made.bind(("10.1.0.1", 1234))
        return made

    sender = veths.enter(udp)
    assert isinstance(sender, socket.socket)
    fabric.start()
    for payload in (b"odd", b"even", b"\xff" * 999):
        sender.sendto(payload, ("10.1.0.2", 4791))
        got = right.recv(4096)
        ip, udp_part = got[14:34], got[34:]
        assert udp_part[8:] == payload
        pseudo = ip[12:20] + bytes([0, 17]) + len(udp_part).to_bytes(2, "big") + udp_part
        pseudo += b"\0" * (len(pseudo) % 2)
        total = sum(int.from_bytes(pseudo[i : i + 2], "big") for i in range(0, len(pseudo), 2))
        while total >> 16:
            total = (total & 0xFFFF) + (total >> 16)
        assert total == 0xFFFF
    assert links[0].interface_stats()["checksums_completed"] == 3
    sender.close()
    right.close()


def test_vlan_tags_survive(bridge: Bridge) -> None:
    """A VLAN device on the host's end hands its tag over beside the frame."""
    fabric, switch, veths, _ = bridge
    left, right = sockets(veths, "out1", "out2")
    fabric.start()
    tagged = mac(9) + mac(1) + b"\x81\x00\x20\x05\x08\x01" + bytes(60)
    left.send(tagged)
    got, _, _, _ = right.recvmsg(4096)
    # The receiving kernel takes the tag off again; the length tells that one was there.
    assert got in (tagged, tagged[:12] + tagged[16:])
    link = fabric.links["s1:1-in1"]
    assert link.stats()["b_to_a"]["bytes"] == len(tagged)
    left.close()
    right.close()


def test_frames_that_are_too_long_are_counted(bridge: Bridge) -> None:
    fabric, _, veths, links = bridge
    for name in ("in1", "out1", "in2", "out2"):
        veths.run(f"ip link set {name} mtu 12000")
    left, right = sockets(veths, "out1", "out2")
    fabric.start()
    left.send(frame(9, size=10_241))
    left.send(frame(9, size=10_240))
    assert len(right.recv(20_000)) == 10_240
    assert links[0].interface_stats()["drops_oversize"] == 1
    assert links[0].stats()["b_to_a"]["drops_interface"] == 1
    left.close()
    right.close()


def test_super_frames_are_counted_not_mangled(bridge: Bridge) -> None:
    """A sender with segmentation offload hands several packets over as one frame."""
    fabric, _, veths, links = bridge
    veths.run("ip addr add 10.1.0.1/24 dev out1")
    veths.run("ip neigh add 10.1.0.2 lladdr 02:00:00:00:00:09 dev out1")

    def udp() -> socket.socket:
        made = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        made.setsockopt(socket.IPPROTO_UDP, 103, 1000)  # UDP_SEGMENT
        return made

    sender = veths.enter(udp)
    assert isinstance(sender, socket.socket)
    fabric.start()
    sender.sendto(bytes(5000), ("10.1.0.2", 4791))
    assert wait_for(lambda: links[0].interface_stats()["received"] >= 1)
    stats = links[0].interface_stats()
    assert (stats["received"], stats["drops_oversize"]) == (1, 1)
    if shutil.which("ethtool") is None:
        pytest.skip("needs ethtool to turn segmentation offload off")
    veths.run("ethtool -K out1 tx-udp-segmentation off")
    sender.sendto(bytes(5000), ("10.1.0.2", 4791))
    assert wait_for(lambda: links[0].stats()["b_to_a"]["packets"] == 5)
    sender.close()


def test_frames_that_the_interface_refuses_are_counted(bridge: Bridge) -> None:
    fabric, switch, veths, links = bridge
    veths.run("ip link set in2 mtu 1000")
    fabric.start()
    switch.inject(1, frame(9, size=1400))
    switch.inject(1, frame(9, size=900))
    assert wait_for(lambda: links[1].interface_stats()["sent"] == 1)
    assert links[1].stats()["a_to_b"]["drops_interface"] == 1
    veths.run("ip link set in2 down")
    switch.inject(1, frame(9, size=900))
    assert wait_for(lambda: links[1].stats()["a_to_b"]["drops_interface"] == 2)


def test_nothing_is_lost_silently_under_load(bridge: Bridge) -> None:
    fabric, switch, veths, links = bridge
    fabric.start()
    count = 20_000
    from engine import bench

    assert veths.enter(lambda: bench.source("out1", frame(9, size=500), count=count)) == count

    def accounted() -> int:
        into, stats = links[0].interface_stats(), links[0].stats()["b_to_a"]
        return stats["packets"] + stats["drops_queue"] + into["drops_kernel"]

    assert wait_for(lambda: accounted() == count)
    out = links[1].stats()["a_to_b"]
    assert wait_for(
        lambda: links[1].interface_stats()["sent"] + out["drops_interface"] == links[0].stats()["b_to_a"]["packets"]
    )
    assert switch.stats()["received"] == links[0].stats()["b_to_a"]["packets"]


def test_control_threads_get_in_while_packets_flow(bridge: Bridge) -> None:
    fabric, switch, veths, links = bridge
    fabric.start()
    from engine import bench

    stop = bench.Stop()
    source = threading.Thread(target=lambda: veths.enter(lambda: bench.source("out1", frame(9, size=200), stop=stop)))
    source.start()
    try:
        assert wait_for(lambda: links[0].stats()["b_to_a"]["packets"] > 1000)
        slowest = 0.0
        for n in range(1000):
            before = time.perf_counter()
            switch.entry_insert(1, (n << 8).to_bytes(4, "big"), None, 24, None, 0, ("action", 1, b""))
            slowest = max(slowest, time.perf_counter() - before)
        assert switch.entry_count(1) == 1000
        assert slowest < 0.5
    finally:
        stop.set()
        source.join()


def test_closing_while_frames_flow(veths: Veths, echo: Path) -> None:
    from engine import bench

    veths.add("in1", "out1")
    veths.add("in2", "out2")
    stop = bench.Stop()
    source = threading.Thread(target=lambda: veths.enter(lambda: bench.source("out1", frame(9, size=200), stop=stop)))
    source.start()
    try:
        for _ in range(5):
            with engine.Fabric("real") as fabric:
                switch = fabric.add_switch("s1")
                switch.load(echo)
                for n in (1, 2):
                    veths.enter(lambda f=fabric, s=switch, n=n: f.attach(s, n, f"in{n}", rate_bps=10**8, delay_ns=MS))
                forward(switch, 9, 2)
                fabric.start()
                assert wait_for(lambda s=switch: s.stats()["received"] > 10)
                switch.load(echo)
    finally:
        stop.set()
        source.join()


def test_bare_forwarder(veths: Veths) -> None:
    from engine import bench

    veths.add("in1", "out1")
    veths.add("in2", "out2")
    rate = veths.enter(lambda: bench.bare_forwarding("out1", "in1", "in2", "out2", frame(9, size=300), 0.2))
    assert isinstance(rate, bench.Rate)
    assert rate.packets > 100


def test_interface_names_are_checked(real: tuple[engine.Fabric, engine.Switch]) -> None:
    fabric, switch = real
    for name, reason in (
        ("", "non-empty"),
        ("../../x", "contains a character"),
        ("a b", "contains a character"),
        ("a" * 16, "longer than 15"),
        ("a\0b", "printable"),
    ):
        with pytest.raises(ValueError, match=reason):
            fabric.attach(switch, 1, name)
    with pytest.raises(OSError, match="interface nosuchif0: No such device"):
        fabric.attach(switch, 1, "nosuchif0")
    assert fabric.links == {}


def test_a_destroyed_interface_does_not_hurt(bridge: Bridge) -> None:
    fabric, switch, veths, links = bridge
    fabric.start()
    veths.run("ip link del in2")
    switch.inject(1, frame(9))
    switch.inject(1, ipv4("10.0.0.1"))
    assert wait_for(lambda: links[1].stats()["a_to_b"]["drops_interface"] == 1)
    before = time.process_time()
    time.sleep(0.2)
    assert time.process_time() - before < 0.1

"""Links in virtual time: exact times, seeded loss, failure, captures and flow counts; two fabrics at once."""

from __future__ import annotations

import os
import struct
from collections.abc import Iterator
from pathlib import Path

import pytest

import engine
from engine.tests.frames import frame, ipv4, mac, number, port

FORWARD = 0
GBIT = 10**9


class Pair:
    """Two echo switches; what enters s1 for MAC 9 crosses the link and leaves s2 at its tap, port 5."""

    def __init__(self, echo: Path, seed: int = 1, **link: float | int | None) -> None:
        self.fabric = engine.Fabric("virtual", seed)
        self.s1, self.s2 = (self.fabric.add_switch(n, i) for i, n in enumerate(("s1", "s2")))
        for switch, out in ((self.s1, 1), (self.s2, 5)):
            switch.load(echo)
            switch.entry_insert(0, mac(9), None, None, None, 0, ("action", FORWARD, port(out)))
            member = switch.member_create(FORWARD, port(out))
            switch.entry_insert(1, bytes(4), None, 0, None, 0, ("member", member))
        settings = {"rate_bps": GBIT, "delay_ns": 1000} | link
        self.link = self.fabric.connect(self.s1, 1, self.s2, 1, **settings)  # type: ignore[arg-type]
        self.s2.tap(5)

    def received(self) -> list[bytes]:
        return [e.frame for e in self.s2.poll_events() if isinstance(e, engine.Sent)]


@pytest.fixture
def pair(echo: Path) -> Iterator[Pair]:
    made = Pair(echo)
    yield made
    made.fabric.close()


def test_serialisation_and_delay_add_up(pair: Pair) -> None:
    for _ in range(10):
        pair.s1.inject(3, frame(9, size=125))  # 1 us each
    pair.fabric.run_until(1_999)
    assert pair.received() == []
    pair.fabric.run_until(2_000)
    assert len(pair.received()) == 1
    pair.fabric.run()
    assert pair.fabric.now_ns == 11_000
    stats = pair.link.stats()
    assert (stats["a_to_b"]["packets"], stats["a_to_b"]["bytes"], stats["b_to_a"]["packets"]) == (10, 1250, 0)
    assert stats["a_to_b"]["max_queue_bytes"] == 1125


def test_rate_zero_is_unlimited(echo: Path) -> None:
    pair = Pair(echo, rate_bps=0, delay_ns=7)
    for _ in range(3000):
        pair.s1.inject(3, frame(9, size=1500))
    pair.fabric.run()
    assert (pair.fabric.now_ns, len(pair.received())) == (7, 3000)
    pair.fabric.close()


def test_same_seed_same_losses(echo: Path) -> None:
    def survivors(seed: int) -> list[bytes]:
        pair = Pair(echo, seed, loss=0.25)
        for n in range(400):
            pair.s1.inject(3, frame(9, number(n)))
            pair.fabric.run()
        result = [f[34:36] for f in pair.received()]
        stats = pair.link.stats()["a_to_b"]
        assert stats["packets"] + stats["drops_loss"] == 400
        pair.fabric.close()
        return result

    assert survivors(3) == survivors(3)
    assert survivors(3) != survivors(4)
    assert 250 < len(survivors(3)) < 350


def test_same_seed_same_bytes(echo: Path, tmp_path: Path) -> None:
    """A ring of four with loss, overload and random routes: the captures of two runs are equal to the last byte."""

    def run(seed: int, name: str) -> bytes:
        with engine.Fabric("virtual", seed) as fabric:
            ring = [fabric.add_switch(f"s{n}", n) for n in range(4)]
            for n, switch in enumerate(ring):
                fabric.connect(switch, 1, ring[n - 1], 2, rate_bps=GBIT, delay_ns=700 + n, loss=0.02, queue_packets=20)
            for switch in ring:
                switch.load(echo)
                group = switch.group_create()
                members = [switch.member_create(FORWARD, port(out)) for out in (1, 2)]
                switch.group_set(group, [(members[0], 3), (members[1], 1)])
                switch.entry_insert(1, bytes(4), None, 0, None, 0, ("group", group))
                for last in range(20):
                    switch.generate(3, ipv4(f"10.0.0.{last}", size=100 + last), count=20, interval_ns=500)
            path = tmp_path / name
            fabric.links["s1:1-s0:2"].capture(path)
            fabric.run()
            fabric.links["s1:1-s0:2"].capture_stop()
            assert fabric.packets_alive == 0
            return path.read_bytes()

    first = run(5, "first")
    assert len(first) > 10_000
    assert run(5, "second") == first
    assert run(6, "third") != first


def test_conservation_under_overload(pair: Pair) -> None:
    pair.s1.set_queue(1, depth_packets=10)
    pair.link.set(loss=0.1)
    pair.s1.generate(3, frame(9, size=1000), count=2000, interval_ns=4_000)  # twice the rate
    pair.fabric.run()
    stats = pair.link.stats()["a_to_b"]
    assert stats["packets"] + stats["drops_loss"] + stats["drops_queue"] == 2000
    assert stats["drops_queue"] > 900 and stats["max_queue_packets"] == 10
    assert pair.fabric.packets_alive == 0
    assert len(pair.received()) == stats["packets"]


def test_failure_loses_what_is_in_flight_and_shows_in_port_up(pair: Pair) -> None:
    pair.s1.inject(3, frame(9))
    pair.fabric.run_until(500)
    pair.link.set_up(False)
    assert pair.s1.register_read(3, 1) == pair.s2.register_read(3, 1) == b"\0"
    pair.fabric.run()
    assert pair.received() == []
    assert pair.link.stats()["a_to_b"]["drops_down"] == 1
    pair.link.set_up(True)
    assert pair.s1.register_read(3, 1) == b"\1"
    pair.s1.inject(3, frame(9))
    pair.fabric.run()
    assert len(pair.received()) == 1


def test_capture_is_a_pcap_with_exact_times(pair: Pair, tmp_path: Path) -> None:
    path = tmp_path / "link.pcap"
    pair.link.capture(path)
    with pytest.raises(engine.InUse, match="one is running"):
        pair.link.capture(path)
    for _ in range(3):
        pair.s1.inject(3, frame(9, size=125))
    pair.s2.entry_insert(0, mac(8), None, None, None, 0, ("action", FORWARD, port(1)))
    pair.s2.inject(3, frame(8, size=250))
    pair.fabric.run()
    pair.link.capture_stop()
    data = path.read_bytes()
    assert struct.unpack("<IHHiIII", data[:24]) == (0xA1B23C4D, 2, 4, 0, 0, 65535, 1)
    times, offset = [], 24
    while offset < len(data):
        seconds, ns, captured, length = struct.unpack_from("<IIII", data, offset)
        assert captured == length
        times.append((seconds * 10**9 + ns, length))
        offset += 16 + captured
    # Two arrive at 3 us: first the one whose transmission began first.
    assert times == [(2_000, 125), (3_000, 250), (3_000, 125), (4_000, 125)]
    with pytest.raises(OSError, match="capture path"):
        pair.link.capture(tmp_path / "no" / "such.pcap")
    (tmp_path / "symlink").symlink_to(path)
    with pytest.raises(OSError, match="symbolic links"):
        pair.link.capture(tmp_path / "symlink")
    with pytest.raises(ValueError, match="null character"):
        pair.link.capture(f"{tmp_path}/cut\0.pcap")
    assert not (tmp_path / "cut").exists()
    os.mkfifo(tmp_path / "pipe")
    reader = os.open(tmp_path / "pipe", os.O_RDONLY | os.O_NONBLOCK)
    for other in (tmp_path / "pipe", Path("/dev/null")):
        with pytest.raises(ValueError, match="no regular file"):
            pair.link.capture(other)
    os.close(reader)
    with pytest.raises(OSError):  # at once: it does not wait for a reader
        pair.link.capture(tmp_path / "pipe")


def test_flows(pair: Pair) -> None:
    pair.link.record_flows(limit=2)
    for source in (1, 1, 2, 3):
        pair.s1.inject(3, ipv4("10.9.9.9", source=f"10.0.0.{source}", size=200))
    pair.s1.inject(3, frame(9))
    pair.fabric.run()
    flows = pair.link.flows()
    assert flows["a_to_b"] == {
        ("10.0.0.1", "10.9.9.9", 17, 1000, 4791): (2, 400),
        ("10.0.0.2", "10.9.9.9", 17, 1000, 4791): (1, 200),
    }
    assert flows["b_to_a"] == {}
    assert pair.link.unrecorded_packets() == {"a_to_b": 2, "b_to_a": 0}


def test_two_fabrics_do_not_touch(echo: Path) -> None:
    one, two = Pair(echo), Pair(echo)
    one.s1.inject(3, frame(9))
    one.fabric.run()
    assert (len(one.received()), len(two.received()), two.fabric.now_ns) == (1, 0, 0)
    one.fabric.close()
    two.s1.inject(3, frame(9))
    two.fabric.run()
    assert len(two.received()) == 1
    two.fabric.close()


def test_links_are_checked(pair: Pair) -> None:
    fabric, s1, s2 = pair.fabric, pair.s1, pair.s2
    with pytest.raises(ValueError, match=r"loss of link x: 1.5 is not in 0\.\.1"):
        fabric.connect(s1, 2, s2, 2, 0, 0, loss=1.5, name="x")
    with pytest.raises(ValueError, match="loss of link x: nan"):
        fabric.connect(s1, 2, s2, 2, 0, 0, loss=float("nan"), name="x")
    with pytest.raises(ValueError, match="rate_bps of link x: more than"):
        fabric.connect(s1, 2, s2, 2, 10**18, 0, name="x")
    with pytest.raises(IndexError, match="delay_ns: -1"):
        fabric.connect(s1, 2, s2, 2, 0, -1, name="x")
    with pytest.raises(engine.EntryExists, match="port 1 of switch s1 is connected already"):
        fabric.connect(s1, 1, s2, 2, 0, 0, name="x")
    with pytest.raises(ValueError, match="'s1:1-s2:1' exists"):
        fabric.connect(s1, 1, s2, 1, 0, 0)
    with pytest.raises(engine.EntryExists, match="port 2 of switch s1"):
        fabric.connect(s1, 2, s1, 2, 0, 0, name="x")
    fabric.connect(s1, 2, s2, 2, 0, 0, name="x")  # what failed above left nothing behind
    with pytest.raises(ValueError, match="an interface needs a fabric with a real clock"):
        fabric.attach(s1, 7, "lo")
    with pytest.raises(ValueError, match="loss of link x: 2 is not"):
        pair.link.fabric.links["x"].set(loss=2)


def test_clocks_are_not_mixed(pair: Pair) -> None:
    with pytest.raises(ValueError, match="use run_until"):
        pair.fabric.start()
    with pytest.raises(ValueError, match="neither 'real' nor 'virtual'"):
        engine.Fabric("wall")  # type: ignore[arg-type]
    with engine.Fabric("real") as real, pytest.raises(ValueError, match="use start"):
        real.run_until(1)

"""Priority flow control: frames as on the wire, pauses that are obeyed and end, and no loss from incast in a chain."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import engine
from engine.tests.conftest import Veths
from engine.tests.frames import frame, mac, number, pause, port
from engine.tests.test_real_time import packet_socket, wait_for
from engine.tests.test_traffic_manager import meaning, read_pcap

FORWARD, PRIORITY = 0, 11
LOSSLESS = 3
GBIT = 10**9
PAUSE_BYTES = 60
MAX_FRAME = 1500


def queue_to(switch: engine.Switch, destination: int, out: int, priority: int) -> None:
    action = ("action", PRIORITY, port(out) + number(priority))
    switch.entry_insert(0, mac(destination), None, None, None, 0, action)


def enough_headroom(rate_bps: int, delay_ns: int) -> int:
    """What may come in after XOFF: the frame that caused it; while the pause waits for a frame the other way, is sent
    and travels; a frame that the peer has begun by then; and what is on the wire."""
    return 3 * MAX_FRAME + PAUSE_BYTES + 2 * -(-delay_ns * rate_bps // (8 * 10**9))


@dataclass(frozen=True)
class Incast:
    hosts: int
    rate_bps: int
    delay_ns: int
    sizes: list[int]
    xoff_bytes: int | None
    xoff_alpha: Fraction | None
    pool: int

    def buffer(self, ports: int, headroom: int) -> engine.Buffer:
        pfc = engine.Pfc((LOSSLESS,), headroom, self.xoff_bytes, self.xoff_alpha, xon_gap_bytes=2_000)
        return engine.Buffer(self.pool + ports * headroom, pfc=pfc)


HOST_BUFFER = engine.Buffer(1 << 30, alpha=Fraction(1 << 16), pfc=engine.Pfc((LOSSLESS,), 10_000, xoff_bytes=1 << 20))
"""A host sends what it is given, waits as long as it is told to, and takes in all."""


def run_incast(echo: Path, case: Incast, headroom: int, with_pfc: bool = True) -> tuple[int, int]:
    """All hosts send to a slow port behind two switches, while the first sends to all of them. Returns how many packets
    were dropped, and how many pauses each of those that send got at least."""
    count = 60
    with engine.Fabric("virtual") as fabric:
        first, second = (fabric.add_switch(name, priority_queues=4) for name in ("first", "second"))
        wire = {"rate_bps": case.rate_bps, "delay_ns": case.delay_ns}
        fabric.connect(first, 20, second, 1, **wire)
        second.tap(5)
        second.set_queue(5, rate_bps=case.rate_bps // 3)
        hosts = [fabric.add_switch(f"h{n}", priority_queues=4) for n in range(case.hosts)]
        for n, host in enumerate(hosts):
            fabric.connect(host, 1, first, n, **wire)
        for switch in (first, second, *hosts):
            switch.load(echo)
        queue_to(first, 9, 20, LOSSLESS)
        queue_to(second, 9, 5, LOSSLESS)
        queue_to(second, 8, 1, 0)
        for n, host in enumerate(hosts):
            queue_to(first, 100 + n, n, 0)
            queue_to(host, 9, 1, LOSSLESS)
            host.set_queue(1, depth_packets=10**6)
            host.set_buffer(HOST_BUFFER)
            for size in case.sizes:
                host.generate(9, frame(9, size=size), count=count, interval_ns=size * 8 * GBIT // case.rate_bps)
            first.generate(30, frame(100 + n, size=MAX_FRAME), count=count, interval_ns=3_000)
        if with_pfc:
            first.set_buffer(case.buffer(case.hosts + 1, headroom))
            second.set_buffer(case.buffer(1, headroom))
        else:
            for switch in (first, second):
                switch.set_buffer(engine.Buffer(case.pool))
        fabric.run()
        check_books(fabric, first, second)
        drops = sum(s.port_stats(n)["drops_queue"] for s, n in ((first, 20), (second, 5)))
        delivered = second.port_stats(5)["sent_packets"] + drops
        assert delivered == count * case.hosts * len(case.sizes)
        senders = [(first, 20), *((host, 1) for host in hosts)]
        return drops, min(switch.port_stats(n)["pauses_received"] for switch, n in senders)


def check_books(fabric: engine.Fabric, *switches: engine.Switch) -> None:
    """Nothing waits, nothing is charged, every pause was ended."""
    assert fabric.packets_alive == 0
    for switch in switches:
        assert switch.buffer_state()["used_bytes"] == 0
        for n in switch.ports():
            states = [switch.queue_state(n, p) for p in range(4)]
            assert not any(s["ingress_bytes"] or s["xoff"] or s["paused"] for s in states)


@st.composite
def incasts(draw: st.DrawFn) -> Incast:
    rate = draw(st.sampled_from([10 * GBIT, 100 * GBIT, 999_999_937]))
    dynamic = draw(st.booleans())
    return Incast(
        hosts=draw(st.integers(2, 5)),
        rate_bps=rate,
        delay_ns=draw(st.sampled_from([0, 100, 1_000, 5_000])),
        sizes=draw(st.lists(st.integers(60, MAX_FRAME), min_size=1, max_size=3)),
        xoff_bytes=None if dynamic else draw(st.integers(0, 20_000)),
        xoff_alpha=draw(st.sampled_from([Fraction(1, 8), Fraction(1, 2), Fraction(2)])) if dynamic else None,
        pool=draw(st.integers(1_000, 40_000)),
    )


@settings(max_examples=8 if "PLAIT_ENGINE_SANITIZED" in os.environ else 25, deadline=None)
@given(case=incasts())
def test_no_packet_is_lost_to_incast_along_a_chain(echo: Path, case: Incast) -> None:
    drops, _ = run_incast(echo, case, enough_headroom(case.rate_bps, case.delay_ns))
    assert drops == 0


INCAST = Incast(4, 10 * GBIT, 1_000, [1500], 5_000, None, 20_000)


def test_without_flow_control_or_with_too_little_headroom_packets_are_lost(echo: Path) -> None:
    """The property above can fail."""
    assert run_incast(echo, INCAST, 0, with_pfc=False)[0] > 50
    assert run_incast(echo, INCAST, 3_000)[0] > 0
    drops, pauses = run_incast(echo, INCAST, enough_headroom(INCAST.rate_bps, INCAST.delay_ns))
    assert drops == 0 and pauses > 1


class Pair:
    """`left` sends to `right` over a link of 1 Gb/s and 1 us; right's port 5 is tapped. MAC 9 goes there in priority 3,
    MAC 8 in priority 0."""

    def __init__(self, echo: Path, pfc: engine.Pfc | None) -> None:
        self.fabric = engine.Fabric("virtual")
        self.left, self.right = (self.fabric.add_switch(n, priority_queues=4) for n in ("left", "right"))
        self.link = self.fabric.connect(self.left, 1, self.right, 1, rate_bps=GBIT, delay_ns=1_000)
        self.right.tap(5)
        for switch, out in ((self.left, 1), (self.right, 5)):
            switch.load(echo)
            queue_to(switch, 9, out, LOSSLESS)
            queue_to(switch, 8, out, 0)
            switch.set_queue(out, depth_packets=10**6)
            switch.set_buffer(engine.Buffer(10**6, pfc=pfc))

    def arrived(self) -> list[int]:
        return [event.frame[5] for event in self.right.poll_events() if isinstance(event, engine.Sent)]


PFC = engine.Pfc((LOSSLESS,), headroom_bytes=10_000, xoff_bytes=2_000, xon_gap_bytes=1_000, pause_quanta=1_000)


@pytest.fixture
def pair(echo: Path) -> Iterator[Pair]:
    made = Pair(echo, PFC)
    yield made
    made.fabric.close()


def test_pauses_are_sent_repeated_and_ended(pair: Pair, tmp_path: Path) -> None:
    """125 bytes take 1 us. The 17th frame would make 2,125 bytes. A pause of 1,000 quanta lasts 512 us."""
    pair.link.capture(tmp_path / "link.pcap")
    pair.right.set_queue(5, rate_bps=GBIT)
    pair.right.hold_queue(5, hold=True)
    for _ in range(40):
        pair.left.inject(9, frame(9, size=125))
    pair.fabric.run_until(700_000)
    waiting = pair.right.queue_state(5, LOSSLESS)["packets"]
    assert waiting == 20  # 16 in the pool; 480 ns + 1 us later the 20th was on its way
    state = pair.right.queue_state(1, LOSSLESS)
    assert (state["ingress_bytes"], state["headroom_bytes"], state["xoff"], state["xoffs"]) == (2_500, 500, 1, 1)
    assert pair.left.queue_state(1, LOSSLESS)["paused"] == 1
    pair.right.hold_queue(5, hold=False)
    pair.fabric.run()
    pair.link.capture_stop()
    said = [(t, what) for t, d in read_pcap(tmp_path / "link.pcap") if isinstance(what := meaning(d), tuple)]
    # XOFF at 18 us, when the 17th arrives; 60 bytes are 480 ns, the delay 1 us; again each 256 us.
    # The 12th to leave, one each us from 700 us on, takes the last of headroom and the pool's part down to 1,000.
    sent = [18_000, 274_000, 530_000, 711_000]
    assert said == [(t + 1_480, ("pause", {LOSSLESS: 1_000 if t < 700_000 else 0})) for t in sent]
    assert pair.left.queue_state(1, LOSSLESS)["paused_ns"] == 711_000 - 18_000
    assert pair.arrived() == [9] * 40
    assert pair.left.port_stats(1)["pauses_received"] == pair.right.port_stats(1)["pauses_sent"] == 4
    assert pair.link.stats()["b_to_a"]["packets"] == 4 and pair.right.port_stats(1)["sent_packets"] == 0


def test_a_pause_ends_by_itself_and_is_lengthened_by_another(pair: Pair) -> None:
    pair.left.inject(1, pause({LOSSLESS: 100}))  # 51.2 us
    for destination in (9, 8):
        pair.left.inject(9, frame(destination, size=125))
    pair.fabric.run_until(40_000)
    assert pair.arrived() == [8]  # another class
    pair.left.inject(1, pause({LOSSLESS: 100}))
    pair.fabric.run_until(40_000 + 51_200 + 1_999)
    assert pair.arrived() == []
    pair.fabric.run_until(40_000 + 51_200 + 2_000)
    assert pair.arrived() == [9]
    pair.left.inject(1, pause({LOSSLESS: 65_535}))
    pair.left.inject(9, frame(9, size=125))
    pair.fabric.run_until(200_000)
    pair.left.inject(1, pause({LOSSLESS: 0}))
    pair.fabric.run_until(202_000)
    assert pair.arrived() == [9]
    assert pair.left.queue_state(1, LOSSLESS)["paused_ns"] == 91_200 + 200_000 - 93_200


def test_only_classes_with_flow_control_are_paused(pair: Pair) -> None:
    pair.left.inject(1, pause(dict.fromkeys(range(8), 65_535)))
    assert [pair.left.queue_state(1, p)["paused"] for p in range(4)] == [0, 0, 0, 1]


def test_other_mac_control_ends_at_the_mac(pair: Pair) -> None:
    pair.left.default_set(0, ("action", FORWARD, port(1)))
    whole = pause({LOSSLESS: 1})
    for data in (whole[:14] + b"\0\1" + whole[16:], whole[:33], whole[:14]):
        pair.left.inject(1, data)
    stats = pair.left.port_stats(1)
    assert (stats["mac_control_ignored"], stats["pauses_received"], stats["received_packets"]) == (3, 0, 3)
    assert pair.left.stats()["received"] == 0
    pair.left.inject(1, whole[:34])  # whole without padding
    assert pair.left.port_stats(1)["pauses_received"] == 1


def test_without_flow_control_pause_frames_are_frames_as_in_bmv2(echo: Path) -> None:
    pair = Pair(echo, None)
    for switch, out in ((pair.left, 1), (pair.right, 5)):
        switch.default_set(0, ("action", FORWARD, port(out)))
    pair.left.inject(1, pause({LOSSLESS: 65_535}))
    pair.fabric.run()
    assert [e.frame for e in pair.right.poll_events() if isinstance(e, engine.Sent)] == [pause({LOSSLESS: 65_535})]
    assert pair.left.queue_state(1, LOSSLESS)["paused"] == 0
    pair.fabric.close()


def test_taking_flow_control_away_ends_all_pauses(pair: Pair) -> None:
    pair.right.hold_queue(5, hold=True)
    for _ in range(40):
        pair.left.inject(9, frame(9, size=125))
    pair.fabric.run_until(100_000)
    pair.right.inject(1, pause({LOSSLESS: 65_535}))
    pair.right.set_buffer(None)
    pair.fabric.run_until(200_000)
    assert pair.left.queue_state(1, LOSSLESS)["paused"] == pair.right.queue_state(1, LOSSLESS)["paused"] == 0
    assert pair.right.queue_state(5, LOSSLESS)["packets"] == 40
    pair.right.set_buffer(engine.Buffer(10**6, pfc=PFC))  # what waits is charged: 16 frames to the pool, 24 beyond
    state = pair.right.queue_state(1, LOSSLESS)
    assert (state["ingress_bytes"], state["headroom_bytes"], state["xoff"]) == (5_000, 3_000, 1)
    pair.right.hold_queue(5, hold=False)
    pair.fabric.run()
    assert pair.arrived() == [9] * 40
    check_books(pair.fabric, pair.left, pair.right)


def test_what_no_peer_can_hold_back_is_dropped_by_the_thresholds(pair: Pair) -> None:
    """Injected at a port without link: such packets cannot use the headroom of others."""
    pair.right.hold_queue(5, hold=True)
    pair.right.set_queue(5, queue=LOSSLESS, depth_packets=3)
    for _ in range(5):
        pair.right.inject(7, frame(9, size=125))
    state = pair.right.queue_state(5, LOSSLESS)
    assert (state["packets"], state["drops_packets"]) == (3, 2)
    assert pair.right.port_stats(1)["pauses_sent"] == 0


# --- interfaces ---


def test_pauses_on_an_interface_are_real_frames_and_hold_its_peer_back(veths: Veths, echo: Path) -> None:
    fabric = engine.Fabric("real")
    switch = fabric.add_switch("s1", priority_queues=4)
    switch.load(echo)
    switch.tap(5)
    queue_to(switch, 9, 5, LOSSLESS)
    switch.hold_queue(5, hold=True)
    veths.add("in1", "out1")
    link = veths.enter(lambda: fabric.attach(switch, 1, "in1", rate_bps=100_000_000))
    assert isinstance(link, engine.Link)
    host = veths.enter(lambda: packet_socket("out1"))
    switch.set_buffer(engine.Buffer(10**6, pfc=engine.Pfc((LOSSLESS,), 100_000, xoff_bytes=2_000)))
    fabric.start()
    sent = frame(9, size=1_000)
    for _ in range(50):
        host.send(sent)  # type: ignore[attr-defined]
    while (got := host.recv(2048)) == sent:  # type: ignore[attr-defined]
        pass  # the socket sees its own frames as well
    assert meaning(got) == ("pause", {LOSSLESS: 65_535})  # 336 ms
    with veths.enter(lambda: packet_socket("in1")) as own:  # type: ignore[attr-defined]
        assert got[6:12] == own.getsockname()[4]  # by which a NIC knows whom it came from
    assert wait_for(lambda: link.interface_stats()["received"] == 50)
    assert link.stats()["b_to_a"]["queue_packets"] > 0  # as a NIC would have it: the pause came in time for these
    switch.hold_queue(5, hold=False)
    assert wait_for(lambda: switch.port_stats(5)["sent_packets"] == 50)
    while meaning(got) != ("pause", {LOSSLESS: 0}):
        got = host.recv(2048)  # type: ignore[attr-defined]
    host.send(pause({LOSSLESS: 65_535}))  # type: ignore[attr-defined]
    assert wait_for(lambda: switch.queue_state(1, LOSSLESS)["paused"] == 1)
    host.close()  # type: ignore[attr-defined]
    fabric.close()

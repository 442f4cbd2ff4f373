"""The traffic manager in virtual time against a model of it in plain Python (tm_model.py), on random traffic."""

from __future__ import annotations

import os
import struct
import tempfile
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

import engine
from engine.tests.frames import frame, mac, number, pause, port
from engine.tests.tm_model import Clock, Model, Packet, Pool, TieError

PRIORITY = 11
"""The echo program's action that sets port and priority."""

PORTS = (1, 2, 3)
DELAY = 700


class Bed:
    """One switch with a link from each port to a neighbor that has no program, and a capture of each link.

    A frame for MAC 8 * port + priority is queued there.
    """

    def __init__(self, echo: Path, folder: Path, rates: dict[int, int], priorities: int) -> None:
        self.fabric = engine.Fabric("virtual")
        self.switch = self.fabric.add_switch("s1", priority_queues=priorities)
        self.switch.load(echo)
        self.links = {}
        for n, rate in rates.items():
            neighbor = self.fabric.add_switch(f"n{n}")
            self.links[n] = self.fabric.connect(self.switch, n, neighbor, 1, rate_bps=rate, delay_ns=DELAY)
            self.links[n].capture(folder / f"{n}.pcap")
            for p in range(priorities):
                action = ("action", PRIORITY, port(n) + number(p))
                self.switch.entry_insert(0, mac(8 * n + p), None, None, None, 0, action)
        self.folder = folder

    def arrive(self, n: int, priority: int, packet: Packet) -> None:
        payload = packet.tag.to_bytes(4, "big")
        self.switch.inject(packet.came_in, frame(8 * n + priority, payload, size=packet.length))

    def sent(self, n: int) -> list[tuple[int, object]]:
        """As Model.sent."""
        self.links[n].capture_stop()
        return [(time, meaning(data)) for time, data in read_pcap(self.folder / f"{n}.pcap")]


def read_pcap(path: Path) -> Iterator[tuple[int, bytes]]:
    data = path.read_bytes()
    offset = 24
    while offset < len(data):
        seconds, ns, length, _ = struct.unpack_from("<IIII", data, offset)
        yield seconds * 10**9 + ns, data[offset + 16 : offset + 16 + length]
        offset += 16 + length


def meaning(data: bytes) -> object:
    """The tag of a data frame, or what a pause frame says, read by 802.1Qbb's layout."""
    if data[12:14] != b"\x88\x08":
        return int.from_bytes(data[34:38], "big")
    assert (data[:6].hex(":"), data[14:16], len(data)) == ("01:80:c2:00:00:01", b"\x01\x01", 60)
    vector, *times = struct.unpack_from("!9H", data, 16)
    assert vector < 256 and data[34:] == bytes(26)
    assert all(time == 0 for c, time in enumerate(times) if not vector >> c & 1)
    return ("pause", {c: times[c] for c in range(8) if vector >> c & 1})


# --- random traffic ---

RATES = st.sampled_from([8_000_000, 99_999_989, 1_000_000_007, 8_000_000, 0])
LENGTHS = st.integers(60, 1500)
STEPS = st.lists(
    st.tuples(
        st.sampled_from([0, 1, 1_009, 5_003, 40_009, 700_001]),  # ns since the last
        st.one_of(
            *[st.tuples(st.just("packet"), st.sampled_from(PORTS), st.integers(0, 2), LENGTHS, st.integers(0, 3))] * 6,
            st.tuples(st.just("hold"), st.sampled_from(PORTS), st.integers(0, 2), st.booleans()),
            st.tuples(st.just("pause"), st.sampled_from(PORTS), st.integers(0, 2), st.sampled_from([0, 1, 1000])),
        ),
    ),
    min_size=30,
    max_size=100,
)
FRACTIONS = st.sampled_from([Fraction(1, 8), Fraction(1, 2), Fraction(1), Fraction(7, 3), Fraction(8)])


@st.composite
def pools(draw: st.DrawFn) -> Pool | None:
    if draw(st.integers(0, 5)) == 0:
        return None
    lossless = draw(st.sampled_from([frozenset(p) for p in ((), (0,), (1, 2), (0, 1, 2), (0, 1, 2))]))
    dynamic = draw(st.booleans())
    reserved = draw(st.sampled_from([0, 0, 500, 2_000]))
    headroom = draw(st.sampled_from([0, 3_000, 6_000, 20_000]))
    needs = 9 * reserved + 3 * len(lossless) * headroom
    return Pool(
        total=needs + draw(st.integers(1, 12_000)),
        alpha=draw(FRACTIONS),
        reserved=reserved,
        lossless=lossless,
        headroom=headroom if lossless else 0,
        xoff_bytes=None if dynamic else draw(st.integers(0, 6_000)),
        xoff_alpha=draw(FRACTIONS) if dynamic else None,
        gap=draw(st.sampled_from([0, 1_500, 3_000])),
        quanta=draw(st.sampled_from([512, 65535])),
    )


@st.composite
def queues(draw: st.DrawFn) -> dict[str, int]:
    """What set_queue is given for one queue."""
    given: dict[str, int] = {}
    if draw(st.booleans()):
        given["depth_packets"] = draw(st.integers(0, 6))
    if draw(st.booleans()):
        given["depth_bytes"] = draw(st.integers(0, 9_000))
    if draw(st.integers(0, 3)) == 0:
        given |= draw(st.sampled_from([{"rate_bps": 7_777_777}, {"rate_bps": 640_000_000}, {"rate_pps": 25_000}]))
    return given


def buffer_of(pool: Pool) -> engine.Buffer:
    pfc = None
    if pool.lossless:
        pfc = engine.Pfc(
            tuple(sorted(pool.lossless)), pool.headroom, pool.xoff_bytes, pool.xoff_alpha, pool.gap, pool.quanta
        )
    return engine.Buffer(pool.total, pool.alpha, pool.reserved, pfc)


def check_state(bed: Bed, model: Model) -> None:
    for (n, p), queue in model.queues.items():
        state = bed.switch.queue_state(n, p)
        assert (state["packets"], state["bytes"]) == (len(queue.packets), queue.size)
        assert {reason: state[f"drops_{reason}"] for reason in queue.drops} == queue.drops
        if model.pool is not None:
            account = model.accounts[n, p]
            assert (state["ingress_bytes"], state["headroom_bytes"], bool(state["xoff"])) == (
                account.pool + account.headroom,
                account.headroom,
                account.xoff,
            )


EXAMPLES = 25 if "PLAIT_ENGINE_SANITIZED" in os.environ else 150


@settings(max_examples=EXAMPLES, deadline=None, suppress_health_check=list(HealthCheck))
@given(
    rates=st.fixed_dictionaries({n: RATES for n in PORTS}),
    pool=pools(),
    limits=st.dictionaries(st.tuples(st.sampled_from(PORTS), st.integers(0, 2)), queues(), max_size=5),
    steps=STEPS,
)
def test_it_does_what_the_model_does(echo: Path, rates, pool, limits, steps) -> None:
    model = Model(rates, 3, DELAY, pool)
    with tempfile.TemporaryDirectory() as folder:
        bed = Bed(echo, Path(folder), rates, 3)
        if pool is not None:
            bed.switch.set_buffer(buffer_of(pool))
        for (n, p), given_limits in limits.items():
            bed.switch.set_queue(n, queue=p, **given_limits)
            queue = model.queues[n, p]
            queue.depth_packets = given_limits.get("depth_packets", queue.depth_packets)
            queue.depth_bytes = given_limits.get("depth_bytes")
            rate = given_limits.get("rate_bps") or given_limits.get("rate_pps")
            queue.shaper = Clock(rate) if rate else None
            queue.counts_packets = "rate_pps" in given_limits
        try:
            play(bed, model, steps)
        except TieError:
            assume(False)
        for n in PORTS:
            assert bed.sent(n) == model.sent[n]
        check_state(bed, model)
        bed.fabric.close()


def play(bed: Bed, model: Model, steps) -> None:
    now = 0
    for tag, (gap, step) in enumerate(steps):
        now += gap
        model.advance(now)
        bed.fabric.run_until(now)
        check_state(bed, model)
        kind, n, p, *rest = step
        if kind == "packet":
            length, came_in = rest
            packet = Packet(tag, length, came_in or 99)  # 99: not linked
            model.arrive(n, p, packet)
            bed.arrive(n, p, packet)
        elif kind == "hold":
            bed.switch.hold_queue(n, p, hold=rest[0])
            model.queues[n, p].held = rest[0]
        elif model.pool is not None and model.pool.lossless:
            model.obey(n, {p: rest[0]})
            bed.switch.inject(n, pause({p: rest[0]}))
    for n in PORTS:
        for p in range(3):
            model.queues[n, p].held = False
            bed.switch.hold_queue(n, p, hold=False)
    model.advance(now + 10**9)
    bed.fabric.run_until(now + 10**9)
    assert not any(queue.packets for queue in model.queues.values())


# --- single cases, computed by hand ---


@pytest.fixture
def held(switch: engine.Switch) -> engine.Switch:
    """Nothing leaves port 1; MAC 8 and 9 go to its priorities 0 and 1. 100 bytes a frame."""
    for p in (0, 1):
        switch.entry_insert(0, mac(8 + p), None, None, None, 0, ("action", PRIORITY, port(1) + number(p)))
    switch.hold_queue(1, hold=True)
    return switch


def offer(switch: engine.Switch, priority: int, count: int) -> int:
    """How many of `count` frames got in."""
    before = switch.queue_state(1, priority)["packets"]
    for _ in range(count):
        switch.inject(2, frame(8 + priority, size=100))
    return switch.queue_state(1, priority)["packets"] - before


@pytest.mark.parametrize(("alpha", "first", "second"), [("1/2", 3, 2), ("1", 5, 3), ("8", 9, 1), ("1/8", 1, 1)])
def test_dynamic_thresholds(held: engine.Switch, alpha: str, first: int, second: int) -> None:
    """A pool of 1,000 bytes: the n-th packet of a queue gets in if 100 n <= alpha * (what is free before it).

    alpha 1: 500 <= 600, not 600 <= 500; then of 500: 300 <= 300. alpha 8: 900 <= 8 * 200, not 1000 <= 8 * 100.
    """
    held.set_buffer(engine.Buffer(1_000, alpha=Fraction(alpha)))
    assert (offer(held, 0, 20), offer(held, 1, 20)) == (first, second)
    state = held.queue_state(1, 0)
    assert (state["drops_shared"], state["drops_packets"]) == (20 - first, 0)
    assert held.port_stats(1)["drops_queue"] == 40 - first - second
    assert held.buffer_state()["used_bytes"] == 100 * (first + second)


def test_a_reserve_is_a_queues_own(held: engine.Switch) -> None:
    """10 queues (5 ports of 2) of 300 bytes each leave a pool of 100; alpha 1 lets a queue have none of it: 100 > 0."""
    held.set_buffer(engine.Buffer(3_100, reserved_bytes=300))
    assert (offer(held, 0, 9), offer(held, 1, 9)) == (4, 3)
    held.set_queue(1, queue=1, reserved_bytes=0)  # its 300 bytes are in the pool now, which is 400 bytes large
    assert held.buffer_state() == {"pool_bytes": 400, "used_bytes": 400, "max_used_bytes": 400}
    assert offer(held, 0, 1) == 0
    with pytest.raises(ValueError, match="buffer of switch s1: 9000 bytes reserved for queues and 0 of headroom leave"):
        held.set_queue(1, queue=1, reserved_bytes=6_300)
    assert held.queue_state(1, 1)["reserved_bytes"] == 0
    held.set_queue(1, queue=1, alpha=Fraction(1, 16))
    state = held.queue_state(1, 1)
    assert (state["alpha_numerator"], state["alpha_denominator"], state["threshold_bytes"]) == (1, 16, 0)


def test_the_buffer_goes_and_comes_while_packets_wait(held: engine.Switch, fabric: engine.Fabric) -> None:
    assert offer(held, 0, 20) == 20
    held.set_buffer(engine.Buffer(1_000))
    assert held.buffer_state()["used_bytes"] == 2_000  # what waits stays
    assert offer(held, 1, 1) == 0
    held.tap(7)  # a port that comes later
    held.hold_queue(1, hold=False)
    fabric.run_until(fabric.now_ns)
    assert held.buffer_state() == {"pool_bytes": 1_000, "used_bytes": 0, "max_used_bytes": 2_000}
    held.hold_queue(1, hold=True)
    assert offer(held, 0, 20) == 5
    held.set_buffer(None)
    assert held.buffer_state() == {"pool_bytes": 0, "used_bytes": 0, "max_used_bytes": 0}
    assert offer(held, 0, 20) == 20
    held.hold_queue(1, hold=False)
    fabric.run()
    assert fabric.packets_alive == 0


def test_ports_that_leave_no_pool_are_refused(fabric: engine.Fabric, held: engine.Switch) -> None:
    other = fabric.add_switch("other")
    held.set_buffer(engine.Buffer(1_100, reserved_bytes=100))
    with pytest.raises(ValueError, match="buffer of switch s1: 1200 bytes reserved for queues and 0 of headroom leave"):
        fabric.connect(held, 8, other, 1, 0, 0)
    with pytest.raises(IndexError, match="port 8 of switch s1: there is none"):
        held.port_stats(8)
    held.set_buffer(engine.Buffer(1_300, reserved_bytes=100))
    fabric.connect(held, 8, other, 1, 0, 0)
    assert held.buffer_state()["pool_bytes"] == 100


def test_held_queues_keep_their_packets(held: engine.Switch, fabric: engine.Fabric) -> None:
    assert (offer(held, 0, 2), offer(held, 1, 2)) == (2, 2)
    held.hold_queue(1, 0, hold=False)
    fabric.run()
    assert [e.frame[5] for e in held.poll_events() if isinstance(e, engine.Sent)] == [8, 8]
    assert [held.queue_state(1, p)["held"] for p in (0, 1)] == [0, 1]
    held.hold_queue(1, hold=False)
    fabric.run()
    assert [e.frame[5] for e in held.poll_events() if isinstance(e, engine.Sent)] == [9, 9]


def test_a_queue_has_a_rate_of_its_own_in_bits_or_packets(bed_of_two: Bed) -> None:
    """Port 1 sends 1 Gb/s. Queue 1: 8 Mb/s is 1 us a byte; 1,000 packets a second are 1 ms a packet."""
    bed = bed_of_two
    bed.switch.set_queue(1, queue=1, rate_bps=8_000_000)
    for tag in range(3):
        bed.arrive(1, 1, Packet(tag, 100, 99))
        bed.arrive(1, 0, Packet(10 + tag, 1000, 99))
    bed.fabric.run()
    bed.switch.set_queue(1, queue=1, rate_pps=1_000)
    assert [bed.switch.queue_state(1, 1)[name] for name in ("rate_bps", "rate_pps")] == [0, 1_000]
    for tag in range(20, 23):
        bed.arrive(1, 1, Packet(tag, 1000, 99))
    bed.fabric.run()
    sent = bed.sent(1)
    assert [tag for _, tag in sent] == [0, 10, 11, 12, 1, 2, 20, 21, 22]
    times = {tag: time for time, tag in sent}
    assert [times[tag] for tag in (0, 1, 2)] == [1_500, 101_500, 201_500]
    # The last of the old rate started at 200,800 - 800 ns, and 1 ms must lie between it and the next.
    assert [times[tag] - times[20] for tag in (20, 21, 22)] == [0, 1_000_000, 2_000_000]


@pytest.fixture
def bed_of_two(echo: Path, tmp_path: Path) -> Iterator[Bed]:
    bed = Bed(echo, tmp_path, {1: 10**9, 2: 10**9}, 2)
    yield bed
    bed.fabric.close()


def test_a_new_rate_holds_for_the_packet_in_service(bed_of_two: Bed) -> None:
    """At 1 bit/s 1,000 bits take 1,000 s; after 100 s there are 900 bits left, which take 900 us at 1 Mb/s."""
    bed = bed_of_two
    bed.links[1].set(rate_bps=1)
    for tag in range(2):
        bed.arrive(1, 0, Packet(tag, 125, 99))
    bed.fabric.run_until(100 * 10**9)
    bed.switch.set_queue(1, rate_bps=10**6)
    bed.fabric.run_until(100 * 10**9 + 10**6)
    assert bed.links[1].stats()["a_to_b"]["packets"] == 1
    bed.arrive(1, 0, Packet(2, 125, 99))
    bed.fabric.run_until(100 * 10**9 + 1_200_000)
    bed.switch.set_queue(1, rate_bps=0)
    bed.fabric.run()
    start = 100 * 10**9
    assert bed.sent(1) == [(start + 900_000 + DELAY, 0), (start + 1_200_000 + DELAY, 1), (start + 1_200_000 + DELAY, 2)]


def test_a_new_rate_of_a_queue_holds_from_its_last_packet_on(bed_of_two: Bed) -> None:
    bed = bed_of_two
    bed.switch.set_queue(1, queue=0, rate_bps=1)
    for tag in range(2):
        bed.arrive(1, 0, Packet(tag, 125, 99))
    bed.fabric.run_until(10**9)
    bed.switch.set_queue(1, queue=0, rate_pps=1)  # a second has gone by since the first
    bed.fabric.run()
    assert bed.sent(1) == [(1_000 + DELAY, 0), (10**9 + 1_000 + DELAY, 1)]


def test_queues_are_checked(switch: engine.Switch) -> None:
    with pytest.raises(IndexError, match="queue 2 of port 1: the port has 2 queues"):
        switch.set_queue(1, queue=2, depth_packets=1)
    with pytest.raises(IndexError, match="queue 2 of port 1: the port has 2 queues"):
        switch.hold_queue(1, 2, hold=True)
    with pytest.raises(IndexError, match="port 9 of switch s1: there is none"):
        switch.queue_state(9, 0)
    with pytest.raises(ValueError, match="in bits or in packets a second, not both"):
        switch.set_queue(1, queue=0, rate_bps=1, rate_pps=1)
    with pytest.raises(ValueError, match="rate_pps of port 1: more than 100000000000000"):
        switch.set_queue(1, rate_pps=10**18)
    with pytest.raises(ValueError, match="port 1 of switch s1: a reserve and alpha need a shared buffer"):
        switch.set_queue(1, reserved_bytes=1)
    assert switch.ports() == [1, 2, 3, 4, 510]


PFC = engine.Pfc((1,), headroom_bytes=1_000, xoff_bytes=1_000)


@pytest.mark.parametrize(
    ("buffer", "message"),
    [
        (engine.Buffer(0), r"buffer\.total_bytes: 0 is not within 1\.\.2\^40-1"),
        (engine.Buffer(1 << 40), r"buffer\.total_bytes: 1099511627776 is not within"),
        (engine.Buffer(9, alpha=Fraction(0)), r"buffer\.alpha: 0 is not positive"),
        (engine.Buffer(9, alpha=Fraction(1, 10**6)), r"buffer\.alpha: 1/1000000 is not positive with numbers of at"),
        (engine.Buffer(9, pfc=engine.Pfc((), 1, 1)), r"pfc\.priorities: \[\] are not one or more"),
        (engine.Buffer(9, pfc=engine.Pfc((8,), 1, 1)), r"pfc\.priorities: 8 is not within 0\.\.7"),
        (engine.Buffer(9, pfc=engine.Pfc((1,), 1)), "exactly one of xoff_bytes and xoff_alpha must be given"),
        (engine.Buffer(9, pfc=engine.Pfc((1,), 1, 1, Fraction(1))), "exactly one of xoff_bytes and xoff_alpha"),
        (engine.Buffer(9, pfc=engine.Pfc((1,), -1, 1)), r"pfc\.headroom_bytes: -1 is not within 0\.\."),
        (engine.Buffer(9, pfc=engine.Pfc((1,), 1, 1, pause_quanta=511)), r"pause_quanta: 511 is not within 512\.\."),
        (engine.Buffer(9, pfc=engine.Pfc((2,), 1, 1)), "lossless priorities of switch s1: its ports have 2 queues"),
        (engine.Buffer(9, reserved_bytes=1), "10 bytes reserved for queues and 0 of headroom leave nothing of its 9"),
    ],
)
def test_buffers_are_checked(switch: engine.Switch, buffer: engine.Buffer, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        switch.set_buffer(buffer)
    assert switch.buffer is None
    assert switch.buffer_state()["pool_bytes"] == 0

"""What the load balancers and RED of p4src/ choose, against plain models that are fed the same queues.

Every test has fixed seeds, so it gives the same outcome in every run; the bounds say how unlikely a right program
would miss them with other seeds. `ALPHA` is that probability for each statistic.
"""

import math
import random
from collections import Counter

import finsy as fy
import pytest
from scapy.layers.inet import IP
from scapy.layers.l2 import Ether

import engine
from controller.load_balancing import Balancing, srpt_entries
from controller.ports import RedCurve
from mininet_topos.tests.examples import dumbbell
from tests.p4_rig import FRAME_BYTES, NS_PER_S, Rig, frame, rig

ALPHA = 1e-6
Z = 4.9  # two-sided normal quantile of ALPHA


def chi_square_bound(freedom: int) -> float:
    """What a chi-square variable exceeds with a probability of at most ALPHA (Laurent and Massart, 2000, lemma 1)."""
    x = math.log(1 / ALPHA)
    return freedom + 2 * math.sqrt(freedom * x) + 2 * x


def assert_fits(seen: Counter[int], expected: dict[int, float]) -> None:
    """Counts against probabilities: nothing impossible occurs, and chi-square is within its bound."""
    total = sum(seen.values())
    possible = {key: share for key, share in expected.items() if share > 0}
    assert set(seen) <= set(possible), (seen, expected)
    statistic = sum((seen[key] - total * share) ** 2 / (total * share) for key, share in possible.items())
    assert statistic < chi_square_bound(len(possible) - 1), (statistic, seen, expected)


def chosen_port(made: Rig, data: bytes) -> int:
    """By the queue that grew: ports are stopped."""
    before = made.depths()
    made.send(data)
    (grown,) = [port for port, depth in made.depths().items() if depth > before[port]]
    return grown


# --- two choices and DRILL: queues that stay in one order ---

PORTS = 6


@pytest.fixture
def stairs():  # type: ignore[no-untyped-def]
    """A function that makes a rig whose port i has the i-th shortest queue, far enough apart to stay in that order."""
    made: list[Rig] = []

    def make(name: str) -> Rig:
        here = Rig(name, PORTS)
        made.append(here)
        for port in here.ports:
            here.route(f"10.9.9.{port}", [port], group=100 + port)
        here.route("10.0.2.7", list(here.ports), group=7)
        for port in here.ports:
            here.fill(port, 700 * (port - 1))
        return here

    yield make
    for each in made:
        each.close()


def test_power_of_two_chooses_the_shorter_of_two_different_ports(stairs) -> None:  # type: ignore[no-untyped-def]
    made = stairs("power_of_two")
    seen = Counter(chosen_port(made, frame("10.0.2.7")) for _ in range(1500))
    pairs = PORTS * (PORTS - 1) / 2
    assert_fits(seen, {port: (PORTS - port) / pairs for port in made.ports})


@pytest.mark.parametrize("d", [1, 2, 3, 4])
def test_drill_without_memory_chooses_the_shortest_of_d_draws(stairs, d: int) -> None:  # type: ignore[no-untyped-def]
    made = stairs("drill")
    made.default("drill_parameters", "set_drill", d=d, m=0)
    seen = Counter(chosen_port(made, frame("10.0.2.7")) for _ in range(600))
    expected = {port: ((PORTS - port + 1) ** d - (PORTS - port) ** d) / PORTS**d for port in made.ports}
    assert_fits(seen, expected)


def drill_model(draw: random.Random, d: int, remembered: list[int], depths: dict[int, int]) -> int:
    """DRILL's choice as its paper says: the least loaded of d draws and what is remembered."""
    return min([draw.choice(list(depths)) for _ in range(d)] + remembered, key=lambda port: depths[port])


@pytest.mark.parametrize(("d", "m"), [(1, 1), (2, 1), (2, 2), (4, 2)])
def test_drill_chooses_as_its_model_does_with_the_same_queues_and_memory(d: int, m: int) -> None:
    """Queues in motion at 90 % load. What is compared is how many ports were less loaded than the chosen one."""
    with rig("drill", PORTS, seed=d * 10 + m) as made:
        rates = {port: 5_000_000 + 1_000_000 * port for port in made.ports}
        made.route("10.0.2.7", list(made.ports), group=7)
        made.default("drill_parameters", "set_drill", d=d, m=m)
        for port, rate_bps in rates.items():
            made.switch.set_queue(port, rate_bps=rate_bps)
        model, arrivals = random.Random(5), random.Random(9)
        mean_ns = 8 * FRAME_BYTES * NS_PER_S / (0.9 * sum(rates.values()))
        by_program, by_model = Counter[int](), Counter[int]()
        now = 0.0
        for _ in range(1500):
            now += arrivals.expovariate(1 / mean_ns)
            made.fabric.run_until(int(now))
            depths, remembered = made.depths(), [each for each in made.remembered(7)[:m] if each]
            enqueued = made.enqueued()
            made.send(frame("10.0.2.7"))
            (program,) = [port for port, count in made.enqueued().items() if count > enqueued[port]]
            assert all(depths[program] <= depths[each] for each in remembered)
            assert made.remembered(7)[0] == program
            for who, port in ((by_program, program), (by_model, drill_model(model, d, remembered, depths))):
                who[sum(depth < depths[port] for depth in depths.values())] += 1
        # Two samples of one distribution.
        ranks = sorted(set(by_program) | set(by_model))
        statistic = sum((by_program[r] - by_model[r]) ** 2 / (by_program[r] + by_model[r]) for r in ranks)
        assert len(ranks) > 2  # or the queues were too quiet to tell
        assert statistic < chi_square_bound(len(ranks) - 1), (by_program, by_model)


# --- spray, ECMP, flowlets ---


def test_random_spray_is_uniform() -> None:
    with rig("spray", 7) as made:
        made.route("10.0.2.7", list(made.ports), group=7)
        seen = Counter(made.send(frame("10.0.2.7"))[0][0] for _ in range(4000))
        assert_fits(seen, dict.fromkeys(made.ports, 1 / 7))


def test_a_set_of_any_number_has_its_turn() -> None:
    """Registers are indexed by the lower 12 bits of a set's number: a larger one would be out of range."""
    with rig("spray", 3) as made:
        made.default("spray_policy", "round_robin")
        made.route("10.0.2.7", list(made.ports), group=0xABC123)
        assert [made.send(frame("10.0.2.7"))[0][0] for _ in range(6)] == [1, 2, 3, 1, 2, 3]


def _three_stages(multipliers: tuple[int, int, int]) -> Counter[tuple[int, ...]]:
    """Ports that 1,500 flows take at three switches in a row, of 4 each."""
    taken: list[tuple[int, ...]] = [()] * 1500
    for multiplier in multipliers:
        with rig("ecmp", 4) as made:
            made.default("switch_seed", "set_seed", odd_multiplier=multiplier)
            made.route("10.0.2.7", list(made.ports))
            for flow in range(len(taken)):
                ((port, _),) = made.send(frame("10.0.2.7", sport=49152 + flow))
                taken[flow] = (*taken[flow], port)
    return Counter(taken)


def test_ecmp_does_not_polarise_over_three_stages() -> None:
    seen = _three_stages((2124926405, 2654435769, 2246822507))
    combinations = {(a, b, c): 1 / 64 for a in range(1, 5) for b in range(1, 5) for c in range(1, 5)}
    assert_fits(seen, combinations)  # type: ignore[arg-type]


def test_with_equal_seeds_it_would() -> None:
    assert {len(set(ports)) for ports in _three_stages((2654435769,) * 3)} == {1}


def test_flowlets_of_a_trace() -> None:
    """A pause up to the gap never changes the port; a longer one draws among 4, so it does 3 times in 4."""
    with rig("flowlet", 4) as made:
        made.route("10.0.2.7", list(made.ports), group=7)
        gap_us = 500
        made.default("flowlet_parameters", "set_gap", us=gap_us)
        pauses = random.Random(3)
        now_us, last, short, long, moved = 1000, None, 0, 0, 0
        for _ in range(4000):
            pause = pauses.choice([pauses.randrange(gap_us + 1), gap_us, gap_us + 1, gap_us + pauses.randrange(1, 900)])
            now_us += pause
            made.fabric.run_until(now_us * 1000)
            ((port, _),) = made.send(frame("10.0.2.7"))
            if last is not None and pause <= gap_us:
                short += 1
                assert port == last, (pause, gap_us)
            elif last is not None:
                long += 1
                moved += port != last
            last = port
        assert short > 1000 and long > 1000
        assert abs(moved - 0.75 * long) < Z * math.sqrt(long * 0.75 * 0.25)


# --- RED ---


def test_red_marks_along_its_curve() -> None:
    """20 depths from 0 to beyond Kmax, 600 packets at each: the share that is marked against the curve."""
    curve = RedCurve(kmin_bytes=20_000, kmax_bytes=160_000, pmax=0.2)
    bins, packets_a_bin, rounds = 20, 150, 4
    marked, expected, variance = [0] * bins, [0.0] * bins, [0.0] * bins
    with rig("ecmp", 1) as made:
        made.write(
            fy.P4TableEntry("red_curve", match=fy.Match({"standard_metadata.egress_port": 1}), action=curve.action())
        )
        for _ in range(rounds):
            made.switch.hold_queue(1, hold=True)
            for _ in range(bins * packets_a_bin):
                made.switch.inject(0, frame("10.9.9.1", tos=2))
            made.fabric.run_until(made.fabric.now_ns)
            assert made.depth(1) == bins * packets_a_bin * FRAME_BYTES
            made.switch.hold_queue(1, hold=False)
            made.fabric.run_until(made.fabric.now_ns)
            left = made.sent()
            assert len(left) == bins * packets_a_bin
            for number, (_, data) in enumerate(left):
                depth = number * FRAME_BYTES  # what it found
                share = 0.0 if depth <= 20_000 else 1.0 if depth > 160_000 else 0.2 * (depth - 20_000) / 140_000
                where = number // packets_a_bin
                marked[where] += data[15] & 3 == 3
                expected[where] += share
                variance[where] += share * (1 - share)
    for where in range(bins):
        assert abs(marked[where] - expected[where]) <= Z * math.sqrt(variance[where]), (where, marked, expected)
    assert expected[0] == marked[0] == 0
    assert marked[-1] == expected[-1] == rounds * packets_a_bin


def test_a_step_marks_all_or_nothing_and_never_what_is_not_ect() -> None:
    curve = RedCurve(kmin_bytes=30 * FRAME_BYTES, kmax_bytes=30 * FRAME_BYTES)
    with rig("ecmp", 2) as made:
        made.write(
            fy.P4TableEntry("red_curve", match=fy.Match({"standard_metadata.egress_port": 1}), action=curve.action())
        )
        for port in (1, 2):  # only port 1 has a curve
            made.switch.hold_queue(port, hold=True)
            for number in range(60):
                made.switch.inject(0, frame(f"10.9.9.{port}", tos=(2, 1, 0)[number % 3]))
        for port in (1, 2):
            made.switch.hold_queue(port, hold=False)
        made.fabric.run_until(made.fabric.now_ns)
        left: dict[int, list[int]] = {1: [], 2: []}
        for port, data in made.sent():
            left[port].append(data[15] & 3)
        was = [(2, 1, 0)[number % 3] for number in range(60)]
        assert left[1] == [3 if ecn and number > 30 else ecn for number, ecn in enumerate(was)]
        assert left[2] == was


# --- deflection, priorities, failover, traces ---


def _dibs(made: Rig, limit: int, min_ttl: int, detours: int) -> None:
    made.default("deflection_ports", "set_detours", min_ttl=min_ttl, count=detours, ports_0_7=0x040302, ports_8_15=0)
    for port in made.ports:
        entry = fy.Match({"standard_metadata.egress_spec": port})
        made.write(fy.P4TableEntry("deflection_limit", match=entry, action=fy.Action("set_limit", bytes=limit)))


def test_dibs_deflects_from_a_full_queue_to_ports_with_room() -> None:
    with rig("dibs", 4) as made:
        _dibs(made, 10 * FRAME_BYTES, 40, 3)
        made.fill(1, 10)
        assert made.send(frame("10.9.9.1")) == []  # exactly at its limit: one more goes in
        made.fill(3, 11)
        tries = 400
        seen = Counter(port for _ in range(tries) for port, _ in made.send(frame("10.9.9.1", ttl=40)))
        # Four draws of three ports miss both that have room once in 81 times; then the full queue itself decides.
        stayed = (made.depth(1) // FRAME_BYTES) - 11
        assert set(seen) == {2, 4} and sum(seen.values()) + stayed == tries
        assert_fits(Counter({**seen, 1: stayed}), {2: 40 / 81, 4: 40 / 81, 1: 1 / 81})


def test_dibs_lets_be_what_has_travelled_far_or_has_nowhere_to_go() -> None:
    with rig("dibs", 4) as made:
        _dibs(made, 10 * FRAME_BYTES, 40, 3)
        made.fill(1, 11)
        assert made.send(frame("10.9.9.1", ttl=39)) == []
        for port in (2, 3, 4):
            made.fill(port, 11)
        assert made.send(frame("10.9.9.1", ttl=64)) == []
        assert made.depth(1) == 13 * FRAME_BYTES


def test_srpt_serves_what_is_nearly_done_first() -> None:
    with rig("srpt", 1) as made:
        made.write(*srpt_entries(dumbbell(), Balancing())["s1"])
        made.switch.hold_queue(1, hold=True)
        classes = random.Random(2).choices(range(64), k=100)
        for number, each in enumerate(classes):
            made.switch.inject(0, frame("10.9.9.1", tos=each << 2, sport=number))
        made.switch.hold_queue(1, hold=False)
        made.fabric.run_until(made.fabric.now_ns)
        left = [(data[15] >> 2, int.from_bytes(data[34:36], "big")) for _, data in made.sent()]
        priority = {
            entry.match["hdr.ipv4.dscp"]: entry.action.args["priority"]
            for entry in srpt_entries(dumbbell(), Balancing())["s1"]
        } | {0: 0}
        assert left == sorted(((each, n) for n, each in enumerate(classes)), key=lambda c: (-priority[c[0]], c[1]))


@pytest.mark.parametrize("name", ["spray", "power_of_two", "drill", "flowlet", "ksp"])
def test_a_dead_port_is_skipped_by_the_next_packet(name: str) -> None:
    with rig(name, 4) as made:
        made.route("10.0.2.7", list(made.ports), group=7)

        def taken(count: int) -> set[int]:
            return {made.send(frame("10.0.2.7", sport=flow))[0][0] for flow in range(count)}

        assert taken(100) == {1, 2, 3, 4}
        made.switch.set_port_up(2, False)
        made.switch.set_port_up(3, False)
        assert taken(100) == {1, 4}
        for port in (1, 4):
            made.switch.set_port_up(port, False)
        made.switch.set_port_up(3, True)
        assert taken(10) == {3}


def test_a_traced_packet_is_copied_to_the_controller_and_unchanged() -> None:
    with rig("ecmp", 2) as made:
        before = made.send(frame("10.9.9.2", psn=77))
        session = 5
        made.switch.clone_session_set(session, [(510, 1)])
        made.write(
            fy.P4TableEntry(
                "trace",
                match=fy.Match({"meta.trace.psn": (77, 0xFFFFFF)}),
                action=fy.Action("trace_to", session=session),
                priority=1,
            )
        )
        assert made.send(frame("10.9.9.2", psn=78)) == [(2, frame_after(frame("10.9.9.2", psn=78)))]
        made.switch.inject(0, frame("10.9.9.2", psn=77))
        made.fabric.run_until(made.fabric.now_ns)
        events = made.switch.poll_events()
        assert [(e.port, e.frame) for e in events if isinstance(e, engine.Sent)] == before
        (copy,) = [e.frame for e in events if isinstance(e, engine.PacketIn)]
        assert copy[9:] == before[0][1]
        head = int.from_bytes(copy[:9], "big")
        ingress_port, egress_port = head >> 63, head >> 54 & 0x1FF
        assert (ingress_port, egress_port) == (0, 2)


def frame_after(data: bytes) -> bytes:
    """The same packet one hop on; this rig has no neighbours, so MACs stay."""
    packet = Ether(data)
    packet[IP].ttl -= 1
    del packet[IP].chksum
    return bytes(packet)

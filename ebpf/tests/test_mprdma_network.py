"""What the paper says MP-RDMA does over parallel paths, seen with the core on a small network in virtual time.

Times are short and paths few, so the bounds are wide.
"""

from __future__ import annotations

import os
import statistics
from collections.abc import Callable
from dataclasses import dataclass

import pytest

from ebpf.c_module import SANITIZE_VARIABLE
from ebpf.models.mprdma import RING, Config
from ebpf.tests.mprdma_history import ffi, lib
from ebpf.tests.mprdma_network import PACKET_BITS, Connection, Network, Path

NEW = 0  # NIC_MPRDMA_NEW

pytestmark = pytest.mark.skipif(SANITIZE_VARIABLE in os.environ, reason="the generated histories do as much")

MS = 1_000_000
FIRST_PSN = (1 << 24) - 1000
SEEDS = [1, 2]


def connection(seed: int, **changes: int) -> Connection:
    shape = {"initial_window": 60, "window": 200, "slots": 64, "delta": 32, "rtt_ns": 16000, "timeout_ns": 200_000}
    return Connection(Config(random_seed=seed, **(shape | changes)), FIRST_PSN)


@dataclass
class Period:
    goodput: float          # Gb/s, all connections
    sent: list[int]         # packets by path
    marks: list[float]      # share of marked packets by path
    again: int              # retransmissions

    @property
    def shares(self) -> list[float]:
        return [sent / sum(self.sent) for sent in self.sent]


def watch(network: Network, ms: float) -> Period:
    def read() -> tuple[list[int], ...]:
        return (
            [c.delivered for c in network.connections],
            [p.sent for p in network.paths],
            [p.arrived for p in network.paths],
            [p.marked for p in network.paths],
            [c.again for c in network.connections],
        )

    start, before = network.now, read()
    network.run(network.now + ms * MS)
    delivered, sent, arrived, marked, again = (
        [b - a for a, b in zip(*pair, strict=True)] for pair in zip(before, read(), strict=True)
    )
    return Period(
        goodput=sum(delivered) * PACKET_BITS / (network.now - start),
        sent=sent,
        marks=[m / a if a else 0.0 for m, a in zip(marked, arrived, strict=True)],
        again=sum(again),
    )


def until(condition: Callable[[], bool], network: Network, ms: float, step_ms: float = 1) -> float | None:
    """Milliseconds until the condition holds; None if that takes longer than `ms`."""
    start = network.now
    while network.now < start + ms * MS:
        if condition():
            return (network.now - start) / MS
        network.run(network.now + step_ms * MS)
    return None


def four_paths(gbps: float = 10, **shape: float) -> list[Path]:
    return [Path(gbps, 8000, **({"k_min": 5, "k_max": 50} | shape)) for _ in range(4)]


@pytest.mark.parametrize("seed", SEEDS)
def test_all_paths_are_filled_evenly(seed: int) -> None:
    network = Network(four_paths(), [connection(seed)], seed)
    watch(network, 3)
    period = watch(network, 2)
    assert period.goodput > 38
    assert max(period.shares) - min(period.shares) < 0.05
    assert period.again == 0


@pytest.mark.parametrize("seed", SEEDS)
def test_a_slow_path_is_pruned(seed: int) -> None:
    """Section 5.2.1, link degradation: 1/40 of the rate, and no marks that would tell."""
    paths = [*four_paths()[:3], Path(0.25, 8000, k_min=1e9, k_max=2e9)]
    network = Network(paths, [connection(seed)], seed)
    watch(network, 2)
    network.connections[0].degrees.clear()
    period = watch(network, 4)
    assert period.shares[3] < 0.01
    assert period.goodput > 0.85 * 30
    # Section 3.3: the out-of-order degree stays around delta.
    degrees = sorted(network.connections[0].degrees)
    assert degrees[int(0.99 * len(degrees))] <= 64


@pytest.mark.parametrize("seed", SEEDS)
def test_paths_of_any_rate_and_marking_have_the_same_marking_ratio(seed: int) -> None:
    """Section 3.2.1, figure 5: 20, 40, 60, 80 Gb/s with Pmax 0.2 to 0.8; F = 2 / (cwnd + 2)."""
    paths = [Path(gbps, 8000, k_min=20, k_max=200, p_max=gbps / 100) for gbps in (20, 40, 60, 80)]
    # As in the fluid model, no path is pruned.
    shape = {"delta": 1 << 15, "slots": 256, "initial_window": 80, "window": 1000}
    network = Network(paths, [connection(seed * 10 + i, **shape) for i in range(5)], seed)
    watch(network, 2)
    windows: list[float] = []
    sums = [0.0] * 4
    periods = 6
    for _ in range(periods):
        period = watch(network, 1)
        windows += [c.cwnd for c in network.connections]
        sums = [a + b for a, b in zip(sums, period.marks, strict=True)]
        assert period.goodput > 0.97 * 200
    expected = 2 / (statistics.mean(windows) + 2)
    for total in sums:
        assert total / periods == pytest.approx(expected, rel=0.3)


@pytest.mark.parametrize("seed", SEEDS)
def test_failed_paths_drain_and_return(seed: int) -> None:
    """Section 5.1.1, figure 11b."""
    paths = four_paths()
    network = Network(paths, [connection(seed)], seed)
    watch(network, 2)
    for path in paths[:3]:
        path.up = False
        watch(network, 2)
        alive = [p for p in paths if p.up]
        period = watch(network, 2)
        assert period.goodput > 0.9 * 10 * len(alive)
        assert sum(share for share, p in zip(period.shares, paths, strict=True) if not p.up) < 0.01
    for path in paths[:3]:
        path.up = True
    took = until(lambda: watch(network, 0.5).goodput > 38, network, ms=200)
    assert took is not None, "probing did not find the paths again"


@pytest.mark.parametrize("loss", [0.005, 0.05, 0.1])
def test_lossy_paths_are_left(loss: float) -> None:
    """Section 5.1.1, figure 11a: three of four paths lose packets; the good one can carry all."""
    paths = [*(Path(40, 5000, loss=loss) for _ in range(3)), Path(40, 5000)]
    last = Path(40, 1000, k_min=20, k_max=20.001, p_max=1)
    network = Network(paths, [connection(1, rtt_ns=12000)], 1, last)
    took = until(lambda: watch(network, 1).goodput > 38, network, ms=60)
    assert took is not None
    assert watch(network, 4).goodput > 37


def test_load_leaves_a_congested_path_and_no_other() -> None:
    """Section 5.2.2, figure 15: a flow that keeps to path 4 takes its rate away."""
    paths = four_paths()
    network = Network(paths, [connection(1)], 1)
    watch(network, 4)
    before = watch(network, 2)
    # Another flow fills the queue of the last path beyond where it marks everything, whatever this one does.
    end = network.now + 4 * MS

    def crowd() -> None:
        paths[3].free_at = max(paths[3].free_at, network.now + 60 * paths[3].service_ns)
        if network.now < end:
            network.at(network.now + paths[3].service_ns, crowd)

    crowd()
    watch(network, 2)
    after = watch(network, 2)
    assert after.sent[3] < 0.05 * before.sent[3]
    for was, is_now in zip(before.sent[:3], after.sent[:3], strict=True):
        assert is_now > 0.95 * was


@pytest.mark.parametrize("lost", [0, 5])
def test_agent_and_nic_in_two_threads_lose_nothing(lost: int) -> None:
    """Each field has one writer, and no lock is shared: whatever they see of each other when, all is delivered."""
    config = Config(initial_window=32, window=64, slots=64, delta=32, rtt_ns=20_000, timeout_ns=1_000_000)
    c = Connection(config, FIRST_PSN, endless=False)
    packets = 60_000
    assert lib.mprdma_race(c.a, c.b, packets, lost, 10_000 * MS) == packets
    assert c.delivered == packets
    # What was let go has left, or waits in the ring or in the agent's hand.
    nic, agent = c.a.sender[0].transport.mprdma, c.a.emitter[0].transport.mprdma
    ring = [c.a.credits[0][at % RING] for at in range(agent.tail, nic.head)]
    waiting = agent.hand_count + sum(credit.count for credit in ring if credit.kind == NEW)
    allowed = (nic.published >> 24) + agent.granted
    assert (allowed - c.a.emitter[0].snd_nxt - waiting) % (1 << 24) == 0


def test_a_credit_without_data_is_given_back() -> None:
    """Agent and NIC may let the last packet go at once."""
    c = Connection(Config(initial_window=2, window=8, slots=64, delta=32), FIRST_PSN, endless=False)
    c.post(3)
    send, ack = ffi.new("struct mprdma_sent *"), ffi.new("struct mprdma_ack *")
    assert [lib.mprdma_next(c.a, 1, False, send) for _ in range(3)] == [1, 1, 0]
    lib.mprdma_data(c.b, send, 0, ack)
    lib.mprdma_take(c.a, ack)
    agent = c.a.emitter[0].transport.mprdma
    assert (agent.granted, c.a.sender[0].transport.mprdma.head) == (2, 1)
    # Before the agent sees the credit, it has sent the third packet by itself.
    agent.granted += 1
    c.a.emitter[0].snd_nxt = c.a.emitter[0].posted
    assert lib.mprdma_next(c.a, 2, True, send) == 0
    assert (agent.granted, agent.tail) == (2, 1)
    # A packet that is posted later finds the window as it should be: two of two are in flight.
    c.post(1)
    assert lib.mprdma_next(c.a, 3, False, send) == 0


@pytest.mark.parametrize("acks_lost, goodput", [(0.001, 38), (0.01, 30)])
def test_lost_acknowledgements_do_not_shrink_the_window(acks_lost: float, goodput: float) -> None:
    """By the paper's accounting alone each would cost a packet of window for ever: 10 to 15 Gb/s at 1 %."""
    network = Network(four_paths(), [connection(1)], 1)
    network.acks_lost = acks_lost
    watch(network, 3)
    assert watch(network, 6).goodput > goodput
    assert network.connections[0].cwnd < 130

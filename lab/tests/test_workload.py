"""Workloads: their statistics with fixed seeds, and the ideal flow completion time by hand.

Statistical tests have a stated probability of failing a right generator; since seeds are fixed, they fail always or
never.
"""

import random
from collections import Counter
from math import exp, log, sqrt
from pathlib import Path

import pytest

from lab.errors import UsageError
from lab.results import ROOT
from lab.workload import arrival_rate, ideal_fct_s, permutation, poisson, wire_bytes
from lab.workload_sizes import SizeDistribution
from mininet_topos.fattree import fattree

HOSTS = [f"h{index}" for index in range(1, 17)]
FILES = sorted((ROOT / "experiments" / "sizes").glob("*.txt"))


def points(path: Path) -> list[tuple[float, float]]:
    """The file, read once more."""
    lines = [line for line in path.read_text().splitlines() if line and line[0] != "#"]
    return [(float(line.split()[0]), float(line.split()[1]) / 100) for line in lines]


def kolmogorov_critical(count: int, error: float) -> float:
    """The deviation that a right generator exceeds with at most this probability (Dvoretzky-Kiefer-Wolfowitz)."""
    return sqrt(log(2 / error) / (2 * count))


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_sizes_follow_the_file(path: Path) -> None:
    """Error probability 1e-6 a file."""
    distribution, rng = SizeDistribution.read(path), random.Random(5)
    count = 20_000
    sizes = sorted(distribution.size_at(rng.random()) for _ in range(count))
    known = points(path)
    assert known[0][0] <= sizes[0]
    assert sizes[-1] <= known[-1][0]

    def share(size: float) -> float:
        for (low, below), (high, above) in zip(known, known[1:], strict=False):
            if size <= high:
                return below + (above - below) * max(0.0, size - low) / (high - low)
        return 1.0

    # Half a byte, since sizes are whole.
    deviation = max(
        max(abs((index + 1) / count - share(size + 0.5)), abs(index / count - share(size - 0.5)))
        for index, size in enumerate(sizes)
        if index + 1 == count or sizes[index + 1] != size
    )
    segments = list(zip(known, known[1:], strict=False))
    widest = max((above - below) / (high - low) for (low, below), (high, above) in segments)
    assert deviation <= kolmogorov_critical(count, 1e-6) + widest
    mean = sum((low + high) / 2 * (above - below) for (low, below), (high, above) in segments)
    assert distribution.mean == pytest.approx(mean)
    assert distribution.scaled(0.1).mean == pytest.approx(mean / 10)


def test_mean_packets_is_that_of_the_sizes() -> None:
    """Against the plain mean over evenly spaced quantiles."""
    distribution = SizeDistribution.read(ROOT / "experiments" / "sizes" / "ali-storage-2019.txt")
    steps = 200_000
    packets = [-(-distribution.size_at((step + 0.5) / steps) // 1024) for step in range(steps)]
    assert distribution.mean_packets(1024) == pytest.approx(sum(packets) / steps, rel=1e-3)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("0 0\nmany 100\n", "x:2: 'many 100' is not `bytes percent`."),
        ("0 0\n10 100 7\n", "x:2: '10 100 7' is not `bytes percent`."),
        ("0 0\n10 101\n", "x:2: '10 101': bytes to 2^40, percent from 0 to 100."),
        ("0 0\n10 nan\n", "x:2: '10 nan': bytes to 2^40, percent from 0 to 100."),
        ("0 0\n10 50\n5 100\n", "x:3: '5 100' is below the line before; both columns ascend."),
        ("0 0\n10 50\n20 40\n", "x:3: '20 40' is below the line before; both columns ascend."),
        ("0 1\n10 100\n", "x: the percents must go from 0 in the first line to 100 in the last."),
        ("# nothing\n", "x: the percents must go from 0 in the first line to 100 in the last."),
        ("0 0\n0 100\n", "x: the percents must go from 0 in the first line to 100 in the last."),
    ],
)
def test_mistakes_in_a_file_of_sizes(text: str, message: str) -> None:
    with pytest.raises(UsageError) as caught:
        SizeDistribution.parse(text, "x", "x")
    assert str(caught.value) == message


def test_a_file_of_sizes_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="cannot read the flow sizes .*none.txt: No such file or directory."):
        SizeDistribution.read(tmp_path / "none.txt")


def test_steps_and_quantiles() -> None:
    distribution = SizeDistribution.parse("100 0\n100 25  # a step\n200 100\n", "x", "x")
    assert [distribution.size_at(share) for share in (0, 0.1, 0.25, 0.625, 1)] == [100, 100, 100, 150, 200]
    assert [distribution.share_above(size) for size in (50, 100, 150, 200)] == [1, 0.75, 0.375, 0]


def test_poisson_arrivals() -> None:
    """Gaps against the exponential distribution (Kolmogorov-Smirnov), pairs against the uniform one (chi-square).

    Error probability 1e-6 each; the chi-square's bound is 1e-6 by Laurent and Massart (2000), lemma 1.
    """
    sizes = SizeDistribution.parse("1 0\n1000 100\n", "x", "x")
    flows = poisson(HOSTS, 250.0, sizes, random.Random(3), flows=12_000)
    assert len(flows) == 12_000
    starts = [flow.start_s for flow in flows]
    assert starts == sorted(starts)
    gaps = sorted(after - before for before, after in zip([0.0, *starts], starts, strict=False))
    deviation = max(
        max(abs((index + 1) / len(gaps) - (1 - exp(-250 * gap))), abs(index / len(gaps) - (1 - exp(-250 * gap))))
        for index, gap in enumerate(gaps)
    )
    assert deviation <= kolmogorov_critical(len(gaps), 1e-6)
    pairs = Counter((flow.src, flow.dst) for flow in flows)
    assert all(src != dst for src, dst in pairs)
    expected, freedom, x = 12_000 / 240, 239, 13.8  # exp(-13.8) = 1e-6
    statistic = sum((pairs[a, b] - expected) ** 2 / expected for a in HOSTS for b in HOSTS if a != b)
    assert statistic <= freedom + 2 * sqrt(freedom * x) + 2 * x
    assert flows == poisson(HOSTS, 250.0, sizes, random.Random(3), flows=12_000)
    assert flows != poisson(HOSTS, 250.0, sizes, random.Random(4), flows=12_000)


def test_poisson_for_a_time() -> None:
    sizes = SizeDistribution.parse("1 0\n1000 100\n", "x", "x")
    flows = poisson(HOSTS, 1000.0, sizes, random.Random(1), duration_s=2.0)
    assert flows[-1].start_s <= 2.0
    # Poisson with mean 2,000: 5 standard deviations, error probability 1e-6.
    assert abs(len(flows) - 2000) <= 5 * sqrt(2000)


def test_the_load_is_what_the_flows_offer() -> None:
    """Bytes with headers over time against the hosts' links.

    Error probability below 1e-4 for the bound of 4 standard deviations.
    """
    sizes = SizeDistribution.read(ROOT / "experiments" / "sizes" / "ali-storage-2019.txt")
    rate = arrival_rate(0.5, [20_000_000] * 16, sizes, 1024)
    count = 20_000
    flows = poisson(HOSTS, rate, sizes, random.Random(2), flows=count)
    wire = [wire_bytes(flow.bytes, 1024) for flow in flows]
    load = 8 * sum(wire) / flows[-1].start_s / (16 * 20_000_000)
    mean = sum(wire) / count
    relative = sqrt(sum((size - mean) ** 2 for size in wire) / count) / mean / sqrt(count) + 1 / sqrt(count)
    assert load == pytest.approx(0.5, rel=4 * relative)


def test_permutations_have_no_fixed_point_and_are_uniform() -> None:
    """Of four hosts nine permutations qualify. Chi-square with 8 degrees of freedom, error probability 1e-6."""
    hosts, rng, count = ["a", "b", "c", "d"], random.Random(7), 9_000
    seen: Counter[tuple[str, ...]] = Counter()
    for _ in range(count):
        flows = permutation(hosts, 1000, rng)
        assert [flow.src for flow in flows] == hosts
        assert sorted(flow.dst for flow in flows) == hosts
        assert all(flow.src != flow.dst and (flow.start_s, flow.bytes) == (0.0, 1000) for flow in flows)
        seen[tuple(flow.dst for flow in flows)] += 1
    assert len(seen) == 9
    statistic = sum((number - count / 9) ** 2 / (count / 9) for number in seen.values())
    assert statistic <= 8 + 2 * sqrt(8 * 13.8) + 2 * 13.8


def test_one_host_has_nobody_to_send_to() -> None:
    sizes = SizeDistribution.parse("1 0\n1000 100\n", "x", "x")
    with pytest.raises(UsageError, match="a permutation needs two hosts"):
        permutation(["h1"], 1, random.Random(1))
    with pytest.raises(UsageError, match="Poisson traffic needs two hosts"):
        poisson(["h1"], 1.0, sizes, random.Random(1), flows=1)


def test_bytes_on_the_wire_by_hand() -> None:
    # Ethernet 14, IPv4 20, UDP 8, BTH 12, ICRC 4; RETH 16 in the first.
    assert wire_bytes(1, 1024) == 58 + 16 + 4  # three pad bytes
    assert wire_bytes(1024, 1024) == 58 + 16 + 1024
    assert wire_bytes(1025, 1024) == 58 + 16 + 1024 + 58 + 4
    assert wire_bytes(3000, 1024) == 3 * 58 + 16 + 3000


def test_the_ideal_fct_by_hand() -> None:
    """h1 to h16 of a k=4 fat-tree: six links of 8 Mb/s (1 us a byte) and 100 us; h1 to h2: two."""
    topology = fattree(4, 8_000_000, 100_000)
    first, rest, ack = 58 + 16 + 1024, 2 * 58 + 952 + 1024, 62
    by_hand = 6 * (100 + first) + rest + 6 * (100 + ack)
    assert ideal_fct_s(topology, "h1", "h16", 3000, 1024) == pytest.approx(by_hand / 1e6)
    near = 2 * (100 + 58 + 16 + 100) + 2 * (100 + ack)
    assert ideal_fct_s(topology, "h1", "h2", 100, 1024) == pytest.approx(near / 1e6)

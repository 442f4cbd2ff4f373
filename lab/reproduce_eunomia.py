"""Eunomia's memory experiment (section 4, figures 9(c), 9(d) and 10), on the NIC's own memory controller.

Twenty connections at once, a share of which has packets out of order. The paper leaves open what a degree of
reordering is; here it is how far ahead a packet may come, in percent of the 256 packets of the cap: the packets of such
a connection arrive in groups of that many, each in an order drawn at random. With 100 % the bitmap reaches its cap.
"""

import json
import random
from array import array
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from statistics import fmean

from ebpf import hd_native
from lab import results
from lab.reproduce_eunomia_plot import draw

NAME = "eunomia/memory"
CONNECTIONS = 20  # section 4
CAP = 256  # packets, and bits
BLOCK_BYTES = 2
SPARE = 2  # bytes of the 24 blocks that the paper's variables and addresses do not fill; Plait's side rows begin there
STATIC_BITMAP = CAP // 8  # bytes a connection
STATIC = STATIC_BITMAP + 9  # head and last packet 4 bytes each, head index 1 byte
SHARES = tuple(range(0, 101, 10))  # percent of the connections
DEGREES = tuple(range(10, 101, 10))  # percent of the cap
PACKETS = 512  # a connection
SEEDS = 3


@dataclass(frozen=True, slots=True)
class MemoryRecord:
    """One run, all connections together: means over time, from the first packet to the last that arrives.

    `total_bytes` counts as the paper does: bitmaps, and 48 bytes of metadata for each connection that has one.
    """

    out_of_order_connections: int  # percent of all
    degree: int  # percent of the cap
    seed: int
    bitmap_bytes: float
    metadata_bytes: float
    total_bytes: float
    peak_bytes: int  # metadata, bitmaps and side rows
    address_bytes: float  # beside: 4 a connection, and 3 in the controller's index for each that has a bitmap
    side_bytes: float  # beside: message ends out of order, which Plait adds
    static_bitmap_bytes: int
    static_bytes: int


UNITS = {
    "out_of_order_connections": "percent of the connections",
    "degree": "percent of the cap of 256 packets",
    "seed": "",
    **{field.name: "bytes" for field in fields(MemoryRecord) if field.name.endswith("_bytes")},
}


@dataclass(frozen=True, slots=True)
class Statement:
    """What the paper says, and what came out here."""

    source: str
    paper: str
    here: str
    holds: bool


@dataclass(frozen=True, slots=True)
class Outcome:
    records: list[MemoryRecord]
    statements: list[Statement]
    folder: Path


def arrivals(degree: int, packets: int, chance: random.Random) -> list[int]:
    """The order in which the packets of a connection come; `degree` 0: in order."""
    order = list(range(packets))
    group = max(1, round(CAP * degree / 100))
    if group == 1:
        return order
    mixed: list[int] = []
    for start in range(0, packets, group):
        some = order[start : start + group]
        chance.shuffle(some)
        mixed += some
    return mixed


def measure(share: int, degree: int, seed: int, packets: int = PACKETS) -> MemoryRecord:
    chance = random.Random(f"{seed} {share} {degree}")
    mixed = round(CONNECTIONS * share / 100)
    orders = [arrivals(degree if index < mixed else 0, packets, chance) for index in range(CONNECTIONS)]
    kinds = [hd_native.RECEIVED] * (packets - 1) + [hd_native.TAIL | hd_native.LAST]
    steps = array("I")
    for turn in zip(*orders, strict=True):  # the connections take turns
        for index, psn in enumerate(turn):
            steps.extend((index, psn, kinds[psn]))
    host = hd_native.HdHost(CONNECTIONS)
    host.reset(0)
    host.run_packed(steps)
    if any(host.expected(index) != packets for index in range(CONNECTIONS)):
        raise AssertionError(f"a packet found no room: {host.memory()}")
    usage, memory = host.usage(), host.memory()
    active = usage.metadata_blocks * BLOCK_BYTES / hd_native.sizes().metadata
    return MemoryRecord(
        share, degree, seed,
        bitmap_bytes=usage.bitmap_blocks * BLOCK_BYTES,
        metadata_bytes=usage.metadata_blocks * BLOCK_BYTES,
        total_bytes=(usage.bitmap_blocks + usage.metadata_blocks) * BLOCK_BYTES,
        peak_bytes=memory.peak_blocks * BLOCK_BYTES,
        address_bytes=CONNECTIONS * hd_native.sizes().idle + 3 * active,
        side_bytes=usage.side_blocks * BLOCK_BYTES,
        static_bitmap_bytes=CONNECTIONS * STATIC_BITMAP,
        static_bytes=CONNECTIONS * STATIC,
    )  # fmt: skip


def at_cap() -> int:
    """Bytes that the controller has given out to one connection with the bitmap at its cap."""
    host = hd_native.HdHost(1)
    host.reset(0)
    host.run([(0, CAP - 1, hd_native.RECEIVED)])
    memory = host.memory()
    return BLOCK_BYTES * (memory.metadata_blocks + memory.bitmap_blocks + memory.side_blocks)


def mean_by_share(records: Sequence[MemoryRecord], of: Callable[[MemoryRecord], float]) -> dict[int, float]:
    """Over all degrees and seeds."""
    shares = sorted({record.out_of_order_connections for record in records})
    return {
        share: fmean(of(record) for record in records if record.out_of_order_connections == share) for share in shares
    }


def crossing(line: dict[int, float], level: float) -> float | None:
    """The share at which a rising line passes a level, between two points by a straight line; None: it does not."""
    points = sorted(line.items())
    for (before, low), (after, high) in zip(points, points[1:], strict=False):
        if low <= level < high:
            return before + (after - before) * (level - low) / (high - low)
    return None


def statements(records: Sequence[MemoryRecord]) -> list[Statement]:
    static = records[0].static_bytes
    highest = max(record.bitmap_bytes / record.static_bitmap_bytes for record in records)
    mean = mean_by_share(records, lambda record: record.total_bytes)
    passed = crossing(mean, static)
    addressed = crossing(mean_by_share(records, lambda record: record.total_bytes + record.address_bytes), static)
    by_degree = [
        crossing(mean_by_share([r for r in records if r.degree == degree], lambda r: r.total_bytes), static)
        for degree in (min(DEGREES), max(DEGREES))
    ]
    low, high = ("never" if share is None else f"{share:.0f} %" for share in by_degree)
    sizes = hd_native.sizes()
    full = at_cap()
    return [
        Statement(
            "§4, fig. 9(c)", "bitmaps alone always take less than the static bitmap",
            f"{100 * highest:.0f} % of the static bitmap at the most, "
            f"{100 * fmean(r.bitmap_bytes / r.static_bitmap_bytes for r in records):.0f} % in the mean",
            highest < 1,
        ),
        Statement(
            "§4, fig. 9(d)", "with metadata, more than the static bitmap where more than 60 % is out of order",
            f"from {'never' if passed is None else f'{passed:.0f} %'} of the connections on, mean of all degrees "
            f"(degree 10 %: {low}, 100 %: {high}; with addresses and index counted: "
            f"{'never' if addressed is None else f'{addressed:.0f} %'})",
            passed is not None and 50 <= passed <= 70,
        ),
        Statement(
            "§4", "48 bytes of metadata a connection", f"{sizes.metadata} bytes", sizes.metadata == 48,
        ),
        Statement(
            "Table 1", "4 bytes idle, 82 bytes for 256 packets out of order",
            f"{sizes.idle} bytes idle; {sizes.idle + full - SPARE} at the cap, and {SPARE} that the 24 blocks of "
            "metadata have beyond variables (16) and relative addresses (30)",
            sizes.idle == 4 and sizes.idle + full - SPARE == 82,
        ),
    ]  # fmt: skip


def run(out: Path | None, seed: int, talk: Callable[[str], None]) -> Outcome:
    """Measures, and writes `memory.csv`, `units.json`, `summary.json` and the pictures into a new folder."""
    results.check_base(out)
    records = []
    for share in SHARES:
        talk(f"{share} % of {CONNECTIONS} connections out of order, degrees {DEGREES[0]} to {DEGREES[-1]} %")
        records += [measure(share, degree, seed + extra) for degree in DEGREES for extra in range(SEEDS)]
    found = statements(records)
    folder = results.new_folder(NAME.replace("/", "-"), out)
    results.write_csv(folder / "memory.csv", records)
    (folder / "units.json").write_text(json.dumps(UNITS, indent=1) + "\n")
    (folder / "summary.json").write_text(
        json.dumps(
            {
                "conditions": conditions(),
                "seed": seed,
                "statements": [asdict(statement) for statement in found],
                "versions": results.versions(),
            },
            indent=1,
        )
        + "\n"
    )
    draw(records, conditions(), folder)
    return Outcome(records, found, folder)


def conditions() -> str:
    return (
        f"{CONNECTIONS} connections at once, {PACKETS} packets each, cap 256 bits, blocks of 16 bits, "
        f"degrees 10 to 100 %, {SEEDS} seeds; the NIC's C, means over time"
    )

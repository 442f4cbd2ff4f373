"""Runs the demo on a fresh laboratory, and writes what it leaves: records, captures, picture, page."""

import json
from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from lab import demo, results, units
from lab.config import LabConfig
from lab.demo import DemoResult
from lab.drawing import draw
from lab.emulation import Emulation
from lab.report import Bar, Cell, Column, Mark, Note, Picture, Section, Table, write_report
from lab.results import LinkRecord, TransferRecord

JSON_FIELDS = frozenset({"src", "dst", "bytes", "seconds", "goodput_bps", "retransmissions", "paths", "sha256_equal"})
RIGHT_ALIGNED = {"bytes", "time", "goodput", "retransmissions", "paths used"}
_GOODPUT = "Goodput counts application bytes from posting the first work request to the last completion."
_BUSIEST = 12
_END_COLOURS = ("#b3261e", "#1b7f4b", "#8a5a00", "#6b3fa0")


def rows(result: DemoResult) -> list[dict[str, Any]]:
    return [
        {
            "transfer": f"{transfer.src} -> {transfer.dst}",
            "bytes": f"{transfer.bytes:,}",
            "time": f"{transfer.seconds:.3f} s",
            "goodput": units.format_rate(transfer.goodput_bps),
            "retransmissions": transfer.retransmissions,
            "paths used": transfer.paths,
            "hash equal": "yes" if transfer.sha256_equal else "NO",
        }
        for transfer in result.transfers
    ]


def verdict(result: DemoResult) -> str:
    count, equal = len(result.transfers), sum(transfer.sha256_equal for transfer in result.transfers)
    total = sum(transfer.bytes for transfer in result.transfers)
    return (
        f"{equal} of {count} destinations hold the source's bytes (SHA-256); "
        f"{units.format_bytes(total)} in {result.seconds:.2f} s, no code running at the receivers"
    )


def run_and_report(
    config: LabConfig, file: Path | None, base: Path | None, talk: Callable[[str], None]
) -> tuple[DemoResult, Path]:
    """The demo from nothing to a results folder; a user's mistake raises before anything is made."""
    path = file or demo.default_file()
    data = demo.read_source(path)
    topology = config.topology()
    pairs = demo.pod_pairs(topology)
    config = config.with_memory(demo.memory_bytes(config, len(pairs), len(data)))
    results.check_base(base)
    patience_s = 60 + 40 * 8 * len(data) * len(pairs) / min(link.rate_bps for link in topology.links)
    with Emulation(config, talk) as lab:
        folder = results.new_folder("demo", base)
        try:
            captured = lab.capture_host_and_core(pairs[0][0], folder)
            talk(f"sending {path} ({units.format_bytes(len(data))}): {', '.join(f'{a} -> {b}' for a, b in pairs)}")
            result = demo.run(lab, pairs, data, patience_s)
            lab.stop_captures()
        except BaseException as error:
            # What was captured until then stays, with the reason beside it.
            (folder / "error.txt").write_text(f"{type(error).__name__}: {error}\n")
            raise
    _write(folder, config, path, result, lab, captured, dict(pairs))
    return result, folder


def _write(
    folder: Path,
    config: LabConfig,
    file: Path,
    result: DemoResult,
    lab: Emulation,
    captured: dict[str, str],
    pairs: dict[str, str],
) -> None:
    configuration: dict[str, Any] = {
        "topology": lab.topology.name,
        "file": str(file),
        **config.describe(),
        **lab.transport(),
        **results.versions(),
    }
    (folder / "config.json").write_text(json.dumps(configuration, indent=1) + "\n")
    (folder / "topology.json").write_text(lab.topology.to_json())
    (folder / "summary.json").write_text(
        json.dumps(
            {
                "ok": result.ok,
                "seconds": result.seconds,
                "transfers": [asdict(transfer) for transfer in result.transfers],
                "nic_events": result.nic_events,
            },
            indent=1,
        )
        + "\n"
    )
    results.write_csv(folder / "transfers.csv", result.transfers)
    results.write_csv(folder / "links.csv", result.links)
    results.write_csv(folder / "ports.csv", result.ports)
    results.write_units(folder)
    load = {(link.source, link.destination): link.load for link in result.links}
    busier = {ends: max(share, load.get(ends[::-1], 0.0)) for ends, share in load.items()}
    colour = {}
    for index, (source, destination) in enumerate(pairs.items()):
        colour[source] = _END_COLOURS[index % len(_END_COLOURS)]
        colour.setdefault(destination, colour[source])
    rate = units.format_rate(min(link.rate_bps for link in lab.topology.links))
    title = f"{lab.topology.name}: {len(pairs)} RDMA WRITEs at once, {rate} links"
    draw(lab.topology, folder / "topology.png", load=busier, title=title, highlight=colour)
    write_report(
        folder / "report.html",
        title=f"Plait demo: {file.name} over {lab.topology.name}",
        verdict=page_verdict(result.transfers),
        sections=[
            Section(
                "Transfers",
                [
                    transfer_table(result.transfers),
                    Note(_GOODPUT),
                ],
            ),
            Section(
                "Topology and load of each link",
                [Picture(folder / "topology.png", "topology with the load of each link")],
            ),
            Section("Links", link_tables(result.links)),
        ],
        configuration=configuration,
        files={
            "transfers.csv": "one row a transfer; units in units.json",
            "links.csv": "one row a link direction, over the time of the transfers",
            "ports.csv": "the P4 program's counters of every port, read over P4Runtime",
            **captured,
            "config.json": "everything that was set, with versions and seed",
            "topology.json": "nodes, ports, addresses, links",
            "summary.json": "all of the above for programs, and what each NIC counted by name",
            "topology.png": "the picture on this page",
        },
    )


def page_verdict(transfers: Sequence[TransferRecord]) -> Mark:
    differ = sum(not transfer.sha256_equal for transfer in transfers)
    if differ:
        return Mark(f"{differ} of {len(transfers)} destinations differ from their source (SHA-256).", False)
    return Mark(
        f"Every destination's memory equals its source ({len(transfers)} of {len(transfers)}, SHA-256).", True
    )


def transfer_table(transfers: Sequence[TransferRecord]) -> Table:
    fastest = max((transfer.goodput_bps for transfer in transfers), default=0.0) or 1.0
    columns = (
        Column("transfer", text=True, close=True), Column("bytes"), Column("time (s)"), Column("goodput"),
        Column("", text=True), Column("retransmissions (packets)"), Column("timeouts"), Column("paths used"),
        Column("first path", text=True, close=True), Column("hash equal"),
    )  # fmt: skip
    rows: list[list[Cell]] = [
        [
            f"{each.src} → {each.dst}", f"{each.bytes:,}", f"{each.seconds:.3f}", units.format_rate(each.goodput_bps),
            Bar(each.goodput_bps / fastest), str(each.retransmissions), str(each.timeouts), str(each.paths),
            each.route, Mark("yes" if each.sha256_equal else "NO", each.sha256_equal),
        ]
        for each in transfers
    ]  # fmt: skip
    return Table(columns, rows)


def link_tables(links: Sequence[LinkRecord]) -> list[Table]:
    columns = (
        Column("from", text=True), Column("to", text=True), Column("rate"), Column("packets"), Column("bytes"),
        Column("load"), Column("largest queue"), Column("drops, queue full"), Column("drops, loss"),
    )  # fmt: skip
    rows = [
        [
            each.source, each.destination, units.format_rate(each.rate_bps), str(each.packets), f"{each.bytes:,}",
            f"{100 * each.load:.1f} %", units.format_bytes(each.max_queue_bytes), str(each.drops_queue),
            str(each.drops_loss),
        ]
        for each in sorted(links, key=lambda link: -link.load)
    ]  # fmt: skip
    return [
        Table(columns, rows[:_BUSIEST], f"The {_BUSIEST} busiest directions", unfolded=True),
        Table(columns, rows, f"All {len(rows)} directions"),
    ]

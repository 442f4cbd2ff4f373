import csv
import dataclasses
from html.parser import HTMLParser
from pathlib import Path

import pytest

from lab import results
from lab.demo_report import link_tables, page_verdict, transfer_table
from lab.drawing import draw
from lab.errors import UsageError
from lab.experiment import FlowRecord, RunRecord
from lab.report import Picture, Section, write_report
from lab.results import LinkRecord, PortRecord, TransferRecord
from mininet_topos.fattree import fattree

TRANSFER = TransferRecord("h1", "h<8>", 1000, 0.5, 16000.0, 3, 1, True, 0, 4, "s1 s2")
LINK = LinkRecord("h1", "s1", 10**8, 7, 700, 0, 2, 1500, 0.25)


def test_columns_are_fields_and_each_measure_has_a_unit(tmp_path: Path) -> None:
    results.write_csv(tmp_path / "transfers.csv", [TRANSFER, dataclasses.replace(TRANSFER, bytes=5)])
    with (tmp_path / "transfers.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert [row["bytes"] for row in rows] == ["1000", "5"]
    assert list(rows[0]) == [field.name for field in dataclasses.fields(TransferRecord)]
    names = {"src", "dst", "source", "destination", "route", "switch", "port"}
    names |= {"balancer", "nic", "workload", "seed", "status"}
    kinds = (TransferRecord, LinkRecord, PortRecord, FlowRecord, RunRecord)
    columns = {field.name for kind in kinds for field in dataclasses.fields(kind)}
    assert columns - names == results.COLUMN_UNITS.keys()


def test_folders_never_collide(tmp_path: Path) -> None:
    made = {results.new_folder("demo", tmp_path) for _ in range(5)}
    assert len(made) == 5
    assert all(folder.is_dir() for folder in made)


def test_a_folder_that_cannot_be_made(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(UsageError, match=r"cannot make the results folder .*: Not a directory\."):
        results.new_folder("demo", tmp_path / "file")


class _References(HTMLParser):
    """Everything that a page would load."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found += [value or "" for name, value in attrs if name in ("src", "href", "data", "srcset")]


@pytest.mark.parametrize("equal", [True, False])
def test_the_report_is_one_file_and_escapes(tmp_path: Path, equal: bool) -> None:
    topology = fattree(4, 10**8, 1000)
    draw(topology, tmp_path / "t.png", load={("s13", "h1"): 0.5}, title="t", highlight={"h1": "#b3261e"})
    transfers = [dataclasses.replace(TRANSFER, sha256_equal=equal)]
    write_report(
        tmp_path / "report.html",
        title="<script>alert(1)</script>",
        verdict=page_verdict(transfers),
        sections=[
            Section("Transfers & links", [transfer_table(transfers), *link_tables([LINK])]),
            Section("Picture", [Picture(tmp_path / "t.png", "what it shows")]),
        ],
        configuration={"file": "<b>&"},
        files={"a<b>.csv": "rows"},
    )
    page = (tmp_path / "report.html").read_text()
    assert "<script>" not in page
    assert "h&lt;8&gt;" in page
    references = _References()
    references.feed(page)
    assert len(references.found) == 1
    assert references.found[0].startswith("data:image/png;base64,")
    verdict = "1 of 1, SHA-256" if equal else "1 of 1 destinations differ from their source"
    assert verdict in page
    assert "Transfers &amp; links" in page
    assert page.count("25.0 %") == 2  # the link's load, among the busiest and among all

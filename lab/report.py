"""The page that a person opens after a run: one file that needs no network."""

import base64
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined

_TEMPLATES = Path(__file__).resolve().parent


@dataclass(frozen=True, slots=True)
class Column:
    """text: names and words, to the left; measures stand to the right.  close: never broken into lines."""

    title: str
    text: bool = False
    close: bool = False


@dataclass(frozen=True, slots=True)
class Bar:
    """A cell that shows a share, 0 to 1, as a length."""

    share: float


@dataclass(frozen=True, slots=True)
class Mark:
    """A cell that is good or bad."""

    text: str
    good: bool


Cell = str | Bar | Mark


@dataclass(frozen=True, slots=True)
class Table:
    """summary: what stands in front of the table and folds it; not folded without."""

    columns: Sequence[Column]
    rows: Sequence[Sequence[Cell]]
    summary: str = ""
    unfolded: bool = False
    kind: str = field(default="table", init=False)


@dataclass(frozen=True, slots=True)
class Picture:
    path: Path  # a PNG; it becomes part of the page
    meaning: str  # for who cannot see it
    kind: str = field(default="picture", init=False)


@dataclass(frozen=True, slots=True)
class Note:
    text: str
    kind: str = field(default="note", init=False)


@dataclass(frozen=True, slots=True)
class Section:
    title: str
    parts: Sequence[Table | Picture | Note]


def write_report(
    path: Path,
    *,
    title: str,
    verdict: Mark,
    sections: Sequence[Section],
    configuration: Mapping[str, object],
    files: Mapping[str, str],
) -> None:
    """files: name in the results folder -> what it holds."""
    environment = Environment(
        loader=FileSystemLoader(_TEMPLATES),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["base64"] = lambda file: base64.b64encode(file.read_bytes()).decode()
    environment.tests |= {"bar": lambda cell: isinstance(cell, Bar), "mark": lambda cell: isinstance(cell, Mark)}
    page = environment.get_template("report.html.j2").render(
        title=title, verdict=verdict, sections=sections, configuration=configuration, files=files
    )
    path.write_text(page)

"""Rows as text: aligned, broken at spaces to fit a terminal, names shortened where that loses nothing."""

from dataclasses import dataclass

from hypothesis import given
from hypothesis import strategies as st

from controller.render import as_text


@dataclass
class Row:
    table: str
    what: str
    count: int | None
    fine: bool = True


def test_names_are_as_short_as_they_are_telling() -> None:
    rows = [Row("ingress.a.t", "x", 1), Row("egress.b.t", "y", 10), Row("ingress.u", "z", 2, False)]
    assert as_text(rows).splitlines() == [
        "table        what  count  fine",
        "ingress.a.t  x         1  yes",
        "egress.b.t   y        10  yes",
        "u            z         2  no",
    ]


def test_lines_fit_where_cells_can_be_broken() -> None:
    rows = [Row("t", "one two three four", 1), Row("u", "five", None)]
    assert as_text(rows, 30).splitlines() == [
        "table  what        count  fine",
        "t      one two         1  yes",
        "       three four",
        "u      five               yes",
    ]
    assert as_text([], 10) == "(none)"


WORDS = st.lists(st.text("abc", min_size=1, max_size=6), min_size=1, max_size=8).map(" ".join)


@given(st.lists(st.builds(Row, st.just("t"), WORDS, st.none()), min_size=1, max_size=5), st.integers(1, 80))
def test_no_word_is_lost_and_no_line_is_longer_than_it_must_be(rows: list[Row], width: int) -> None:
    lines = as_text(rows, width).splitlines()
    words = ["table", "what", "fine", *(word for row in rows for word in ("t", *row.what.split(), "yes"))]
    assert sorted(" ".join(lines).split()) == sorted(words)
    longest = max(map(len, ("what", *(word for row in rows for word in row.what.split()))))
    assert max(map(len, lines)) <= max(width, len("table") + len("fine") + longest + 4)

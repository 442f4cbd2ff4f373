"""Curves: what is printed of them, and that pictures of both are drawn."""

from pathlib import Path

from lab import bench_curves, bench_plots

CURVES = {
    "entries": {kind: [[10, 20.0], [100_000, 400.0]] for kind in bench_curves.KINDS},
    "switches": [[1, 4.8e6], [80, 1.25e6]],
}


def test_every_point_is_printed() -> None:
    text = "\n".join(bench_curves.explain(CURVES))
    for number in ("exact", "lpm", "ternary", "20", "400", "80", "1,250,000"):
        assert number in text


def test_pictures_are_drawn_with_their_conditions(tmp_path: Path) -> None:
    made = bench_plots.draw(CURVES, tmp_path / "new")
    assert {path.name for path in made} == {
        f"switch-{name}.{suffix}" for name in ("entries", "switches") for suffix in ("png", "svg")
    }
    assert all(path.stat().st_size > 5_000 for path in made)
    assert "processor time" in bench_plots.conditions() and "Linux " in bench_plots.conditions()

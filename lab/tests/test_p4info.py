"""P4Info read without protobuf has the names that protobuf reads."""

from pathlib import Path

import finsy as fy
import pytest

from lab.compiling import compile_text
from lab.p4info import find, name_of, read_p4info

ROOT = Path(__file__).resolve().parents[2]
PROGRAMS = [*sorted((ROOT / "p4src").glob("*.p4")), ROOT / "fastswitch" / "tests" / "data" / "everything.p4"]


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda path: path.stem)
def test_the_same_names_as_protobuf(program: Path, tmp_path: Path) -> None:
    path = compile_text(program, "plait").write(tmp_path).p4info
    read, schema = read_p4info(path), fy.P4Schema(path)
    for kind, things in (
        ("tables", schema.tables),
        ("actions", schema.actions),
        ("counters", schema.counters),
        ("direct_counters", schema.direct_counters),
        ("registers", schema.registers),
        ("action_profiles", schema.action_profiles),
        ("digests", schema.digests),
    ):
        assert sorted(map(name_of, read.get(kind, []))) == sorted(thing.name for thing in things)
    for table in schema.tables:
        found = find(read["tables"], table.name)
        assert [field["name"][0] for field in found.get("match_fields", [])] == [
            field.name for field in table.match_fields if not isinstance(field.match_type, str)
        ]


def test_what_can_be_read_of_a_file_that_is_cut_off(tmp_path: Path) -> None:
    assert read_p4info(tmp_path / "nothing") == {}
    (tmp_path / "cut").write_text('tables {\n  preamble {\n    name: "a')
    assert [name_of(table) for table in read_p4info(tmp_path / "cut")["tables"]] == ["a"]
    (tmp_path / "cut").write_text("tables {\n  preamble")
    assert read_p4info(tmp_path / "cut") == {}

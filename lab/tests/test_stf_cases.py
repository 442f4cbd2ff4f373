"""Which cases are chosen."""

import pytest

from lab.errors import UsageError
from lab.stf.cases import Case, from_files, from_folder, read_list


@pytest.fixture(name="folder")
def _folder(tmp_path):
    for name in ("a.p4", "a.stf", "b.p4", "b.stf", "only.p4", "alone.stf", "sub/c.p4", "sub/c.stf"):
        file = tmp_path / name
        file.parent.mkdir(exist_ok=True)
        file.touch()
    return tmp_path


def names(cases):
    return [(case.name, case.tier) for case in cases]


def test_a_program_and_the_files_after_it(folder):
    a, b, stf, other = (folder / name for name in ("a.p4", "b.p4", "a.stf", "b.stf"))
    assert from_files([a, stf, other, b, other]) == [
        Case("a", a, stf),
        Case("b", a, other),
        Case("b", b, other),
    ]


@pytest.mark.parametrize(
    ("files", "text"),
    [
        (["a.stf"], "a.stf: its program must stand before it."),
        (["a.p4"], "a.p4: an .stf file must follow it."),
        (["a.p4", "b.p4", "b.stf"], "a.p4: an .stf file must follow it."),
        (["none.p4", "a.stf"], "none.p4: there is no such file."),
        (["a.p4", "none.stf"], "none.stf: there is no such file."),
        (["sub"], "sub: there is no such file."),
    ],
)
def test_files_that_make_no_case(folder, files, text):
    with pytest.raises(UsageError) as caught:
        from_files([folder / file for file in files])
    assert str(caught.value) == f"{folder}/{text}"


def test_another_kind_of_file(folder):
    (folder / "x.json").touch()
    with pytest.raises(UsageError, match=r"x.json: expected a .p4 or .stf file."):
        from_files([folder / "x.json"])


def test_a_folder_has_its_pairs(folder):
    cases, without = from_folder(folder)
    assert (names(cases), without) == ([("a", ""), ("b", ""), ("sub/c", "")], 0)
    assert cases[2].stf == folder / "sub" / "c.stf"


def test_a_list_of_names(folder):
    (folder / "list").write_text("# chosen\nsub/c\n\n only \na\n")
    cases, without = from_folder(folder, folder / "list")
    assert (names(cases), without) == ([("sub/c", ""), ("a", "")], 1)


def test_a_list_with_tiers(folder):
    (folder / "list.tsv").write_text("group\tname\ttier\nx\tb\tT2\ny\ta\tT1\nz\tonly\tT1\n")
    cases, without = from_folder(folder, folder / "list.tsv")
    assert (names(cases), without) == ([("b", "T2"), ("a", "T1")], 1)
    (folder / "plain.tsv").write_text("name\tgroup\na\tx\n")
    assert read_list(folder / "plain.tsv") == [("a", "")]


def test_a_list_that_cannot_be_used(folder):
    def refused(text, *arguments):
        with pytest.raises(UsageError) as caught:
            from_folder(*arguments)
        assert str(caught.value).replace(str(folder), "D") == text

    bad = folder / "list"
    bad.write_text("a\nnone\n")
    refused("D/none.p4: there is no such file, but D/list names it.", folder, bad)
    bad.write_text("case\ttier\na\tT1\n")
    refused("--list D/list: its first line has no column 'name'.", folder, bad)
    bad.write_bytes(b"\xff\n")
    refused("--list D/list: not text.", folder, bad)
    bad.write_text("only\n")
    refused("D/list: there is no program with an .stf file.", folder, bad)
    refused("--list D/gone: No such file or directory.", folder, folder / "gone")
    refused("D/gone: there is no such folder.", folder / "gone")
    (folder / "empty").mkdir()
    refused("D/empty: there is no program with an .stf file.", folder / "empty")

"""p4c's own programs, where $P4C_TESTDATA names the `testdata` folder of a checkout; and the comparison itself."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from finsy.proto import p4i

from p4front.conformance import run, run_sample, without_empty
from p4front.tests.kit import program_text


def test_p4c_programs() -> None:
    folder = os.environ.get("P4C_TESTDATA")
    if folder is None:
        pytest.skip("P4C_TESTDATA is not set to the testdata folder of a p4c checkout")
    failed = {(item.name, item.bar) for item in run(Path(folder)) if not item.passed}
    assert failed <= {("invalid-hdr-warnings6", "compile")}


def test_empty_messages_do_not_count() -> None:
    one, other = p4i.P4Info(), p4i.P4Info()
    one.type_info.SetInParent()
    one.pkg_info.arch = other.pkg_info.arch = "v1model"
    assert one != other and without_empty(one) == without_empty(other)
    other.tables.add(size=3)
    assert without_empty(one) != without_empty(other)


def test_outcomes_of_a_program(tmp_path: Path) -> None:
    samples, golden = tmp_path / "p4_16_samples", tmp_path / "p4_16_samples_outputs"
    samples.mkdir()
    golden.mkdir()
    (samples / "good.p4").write_text(program_text())
    (samples / "bad.p4").write_text(program_text(ingress="nothing = 1;"))
    (golden / "good.p4.p4info.txtpb").write_text('pkg_info { arch: "v1model" } type_info {}')
    (golden / "bad.p4.p4info.txtpb").write_text('pkg_info { arch: "v1model" } tables { size: 3 }')
    assert [(item.bar, item.passed) for item in run_sample(samples / "good.p4", samples)] == [
        ("p4info", True), ("compile", True),
    ]  # fmt: skip
    compiled, info = run_sample(samples / "bad.p4", samples)
    assert not compiled.passed and "nothing: declaration not found" in compiled.reason and not info.passed
    (samples / "good.p4").write_text(program_text(locals="table t { actions = { NoAction; } }", ingress="t.apply();"))
    info, compiled = run_sample(samples / "good.p4", samples)
    assert compiled.passed and not info.passed and "+tables {" in info.reason

"""Which programs and targets `plait ptf` takes, and what it makes of its runner's words."""

import os
import stat

import pytest
from typer.testing import CliRunner

from lab import cli, ptf_cli
from lab.errors import MissingFeatureError, PlaitError, UsageError


def test_no_program_is_all_of_them_and_twice_is_once():
    every = ptf_cli.check_programs([])
    assert {"ecmp", "drill", "ksp"} <= set(every) and every == sorted(every)
    assert ptf_cli.check_programs(["ksp", "drill", "ksp"]) == ["ksp", "drill"]


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("dril", "no program 'dril' in p4src/: did you mean 'drill'?"),
        ("zzz", f"no program 'zzz' in p4src/: there are {', '.join(ptf_cli.check_programs([]))}."),
    ],
)
def test_an_unknown_program(name, text):
    with pytest.raises(UsageError) as refused:
        ptf_cli.check_programs(["ecmp", name])
    assert str(refused.value) == text


def test_an_unknown_target():
    with pytest.raises(UsageError, match="^--target 'tofino': known are plait, bmv2.$"):
        ptf_cli.check_target("tofino")


def test_what_bmv2_needs_on_path(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    for missing in ("simple_switch_grpc", "p4c-bm2-ss"):
        with pytest.raises(MissingFeatureError, match=f"^--target bmv2: {missing} is not on PATH.$") as refused:
            ptf_cli.check_target("bmv2")
        assert refused.value.exit_code == 3
        program = tmp_path / missing
        program.touch()
        program.chmod(program.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    ptf_cli.check_target("bmv2")
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    with pytest.raises(MissingFeatureError, match="^packet tests need root, for a network namespace"):
        ptf_cli.check_target("plait")


@pytest.fixture(name="says")
def _says(monkeypatch, tmp_path):
    """Puts these lines and this exit code in the place of the runner's."""

    def replace(text, code):
        fake = tmp_path / "python"
        fake.write_text(f"#!/bin/sh\ncat <<'END'\n{text}\nEND\nexit {code}\n")
        fake.chmod(0o755)
        monkeypatch.setattr(ptf_cli.sys, "executable", str(fake))
        monkeypatch.setattr(ptf_cli, "check_target", lambda target: None)

    return replace


def test_results_are_counted_and_a_failure_is_told(says):
    says("noise\necmp.A ... ok\necmp.B ... FAIL\necmp.C ... ERROR\nFAIL: ecmp.B\nAssertionError: port 3", 1)
    ran = CliRunner().invoke(cli.app, ["ptf", "ecmp"])
    assert ran.exit_code == 1
    for line in ("PASS  ecmp.A", "FAIL  ecmp.B", "ERROR ecmp.C", "AssertionError: port 3"):
        assert f"{line}\n" in ran.output
    assert "\n1 of 3 passed on plait in " in ran.output


@pytest.mark.parametrize(("text", "code"), [("no such image", 2), ("ecmp.A ... ok", 9), ("nothing", 0)])
def test_a_runner_that_ends_otherwise_is_an_error(says, text, code):
    says(text, code)
    with pytest.raises(PlaitError, match=rf"^the tests of ecmp did not run to their end \(exit code {code}\):"):
        list(ptf_cli.run_program("ecmp", "plait"))

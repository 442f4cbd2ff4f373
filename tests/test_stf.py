"""`plait stf`, from P4 to packets: cases of our own on the fast switch, and on BMv2 where it is on PATH."""

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from lab.stf.cases import from_folder
from lab.stf.run import Outcome, run_cases

DATA = Path(__file__).parent / "data" / "stf"
CASES, _ = from_folder(DATA)
# P4Runtime of BMv2 has no registers.
UNMAPPED_ON_BMV2 = {"registers": "line 1: register_write: the switch refused a write: UNIMPLEMENTED"}


def missing(*programs):
    return ", ".join(program for program in programs if shutil.which(program) is None)


@pytest.fixture(name="results", scope="module", params=["plait p4front", "plait p4c", "bmv2 p4front", "bmv2 p4c"])
def _results(request):
    """Target, and its results of all cases by name."""
    target, compiler = request.param.split()
    absent = missing(*["simple_switch_grpc"] * (target == "bmv2"), *["p4c-bm2-ss"] * (compiler == "p4c"))
    if absent:
        pytest.skip(f"not on PATH: {absent}")
    return target, {result.name: result for result in run_cases(CASES, target, compiler)}


def test_there_are_enough_cases():
    assert len(CASES) >= 12


@pytest.mark.parametrize("name", [case.name for case in CASES])
def test_a_case_passes(results, name):
    target, by_name = results
    result = by_name[name]
    if target == "bmv2" and name in UNMAPPED_ON_BMV2:
        assert result.outcome is Outcome.UNMAPPED
        assert result.reason.startswith(UNMAPPED_ON_BMV2[name])
    else:
        assert (result.outcome, result.reason) == (Outcome.PASS, "")


PROGRAM = """
#include "begin.p4"
control ingress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) {
    counter(4, CounterType.packets) seen;
    action forward(bit<9> port) { std.egress_spec = port; }
    table route {
        key = { hdr.h.key: exact; }
        actions = { forward; NoAction; }
        const default_action = forward(3);
    }
    apply {
        seen.count(0);
        route.apply();
    }
}
#include "end.p4"
"""
# Text of an STF file; outcome; what the reason holds, where FILE stands for the file's path.
WRONG = [
    ("packet 0 0001020304050607\nexpect 3 0001020304050607", "PASS", ""),
    (
        "packet 0 0001020304050607\nexpect 3 0001020304050608",
        "FAIL",
        "port 3, line 2: expected 0001020304050608, got 0001020304050607",
    ),
    (
        "packet 0 0001020304050607\nexpect 4",
        "FAIL",
        "port 3: 0 packets expected, 1 came: 0001020304050607; port 4: 1 packets expected, 0 came",
    ),
    ("packet 0 00\nexpext 3", "FAIL", "FILE:2: 'expext' is no STF command"),
    ("\nadd none x()", "FAIL", "line 2: there is no table 'none'; there are: ingress.route"),
    (
        "add route key:1 forward(port:1)\nadd route key:1 forward(port:2)",
        "FAIL",
        "line 2: add: the switch refused a write: ALREADY_EXISTS",
    ),
    ("setdefault route forward(port:1)", "FAIL", "line 1: setdefault: the switch refused a write: PERMISSION_DENIED"),
    ("counter_read seen 4", "FAIL", "line 1: counter_read: the switch refused a read: "),
    ("packet 0\nexpect 3", "FAIL", "the switch refused packets: INVALID_ARGUMENT frame for switch s1: 0 bytes"),
    ("packet 1 00\ncheck_counter seen(0) packets == 2", "FAIL", "line 2: counter seen: 1 packets, expected == 2"),
    ("mirroring_add 0 1", "UNMAPPED", "line 1: mirroring_add: P4Runtime has no clone session 0"),
]


def plait_stf(*arguments):
    return subprocess.run(
        [sys.executable, "-m", "lab.cli", "stf", *map(str, arguments)], capture_output=True, text=True, timeout=120
    )


def test_what_goes_wrong_is_told(tmp_path):
    for include in ("begin.p4", "end.p4"):
        shutil.copy(DATA / include, tmp_path)
    for number, (text, _, _) in enumerate(WRONG):
        (tmp_path / f"case{number:02}.p4").write_text(PROGRAM)
        (tmp_path / f"case{number:02}.stf").write_text(text)
    (tmp_path / "zz_broken.p4").write_text(PROGRAM.replace("bit<9> port", "bit<9> prt"))
    (tmp_path / "zz_broken.stf").write_text("packet 0 00\n")
    done = plait_stf("--dir", tmp_path, "--json")
    assert done.returncode == 1, done.stderr
    answer = json.loads(done.stdout)
    assert (answer["total"], answer["pass"]) == (len(WRONG) + 1, 1)
    for number, (case, (_, outcome, reason)) in enumerate(zip(answer["cases"], WRONG, strict=False)):
        assert set(case) == {"name", "tier", "outcome", "reason"}
        assert (case["name"], case["tier"], case["outcome"]) == (f"case{number:02}", "", outcome), case
        if reason:
            assert reason.replace("FILE", str(tmp_path / f"case{number:02}.stf")) in case["reason"]
        else:
            assert case["reason"] == ""
    broken = answer["cases"][-1]
    assert broken["outcome"] == "COMPILE_FAIL" and "zz_broken.p4(5:" in broken["reason"], broken


def test_text_output_and_tiers(tmp_path):
    (tmp_path / "list.tsv").write_text("name\ttier\nexact\tT1\nlpm\tT2\nbegin\tT1\n")
    done = plait_stf("--dir", DATA, "--list", tmp_path / "list.tsv")
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert lines[:4] == ["PASS         exact", "PASS         lpm", "T1: 1 of 1 passed", "T2: 1 of 1 passed"]
    assert lines[4].startswith("2 of 2 passed in ")
    assert done.stderr == f"1 names of {tmp_path}/list.tsv have no .stf file\n"


@pytest.mark.parametrize(
    ("arguments", "code", "text"),
    [
        ([], 2, "give either FILE.p4 FILE.stf … or --dir."),
        (["--list", "x"], 2, "give either FILE.p4 FILE.stf … or --dir."),
        (["x.p4", "--dir", "."], 2, "give either FILE.p4 FILE.stf … or --dir."),
        (["x.p4", "--list", "x"], 2, "--list needs --dir."),
        (["x.p4"], 2, "x.p4: there is no such file."),
        (["--dir", ".", "--target", "tofino"], 2, "--target 'tofino': known are plait, bmv2."),
        (["--dir", ".", "--compiler", "gcc"], 2, "--compiler 'gcc': known are p4front, p4c."),
        (["--dir", ".", "--target", "bmv2"], 3, "--target bmv2: simple_switch_grpc is not on PATH."),
        (["--dir", ".", "--compiler", "p4c"], 3, "--compiler p4c: p4c-bm2-ss is not on PATH."),
    ],
)
def test_wrong_arguments(arguments, code, text, tmp_path, monkeypatch, capsys):
    from lab import cli

    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", "/nowhere")
    monkeypatch.setattr(sys, "argv", ["plait", "stf", *arguments])
    with pytest.raises(SystemExit) as caught:
        cli.main()
    assert caught.value.code == code
    assert capsys.readouterr().err == f"plait: {text}\n"

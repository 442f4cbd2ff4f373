"""The four pairs {p4front, p4c} x {plait-switch, BMv2}, and the interpreter, agree on what leaves p4src/ecmp.p4.

The same entries and the same random packets through each; compared byte for byte, port for port, in order. p4front on
plait-switch always runs; the other pairs run where p4c-bm2-ss and simple_switch_grpc are on PATH.
"""

import json
import shutil
import subprocess
import sys
from collections.abc import Callable
from ipaddress import IPv4Network
from pathlib import Path
from typing import Any

import pytest

from fastswitch.interpreter import Interpreter
from lab.compiling import CompiledProgram, compile_program
from mininet_topos.system import isolated
from tests import agreement
from tests.conftest import ROOT, needs_root

pytestmark = needs_root

NEEDS = {"p4front": None, "plait": None, "p4c": "p4c-bm2-ss", "bmv2": "simple_switch_grpc"}
OTHER_PAIRS = [("p4c", "plait"), ("p4front", "bmv2"), ("p4c", "bmv2")]


@pytest.fixture(scope="module")
def compiled(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], CompiledProgram]:
    made: dict[str, CompiledProgram] = {}

    def compile_with(compiler: str) -> CompiledProgram:
        if compiler not in made:
            folder = tmp_path_factory.mktemp(compiler)
            target = "bmv2" if compiler == "p4c" else "plait"  # the compiler goes with the target
            made[compiler] = compile_program(ROOT / "p4src" / "ecmp.p4", target, folder)
        return made[compiler]

    return compile_with


def through(program: CompiledProgram, target: str, out: Path) -> agreement.Outcome:
    command = isolated([sys.executable, "-m", "tests.agreement", target])
    command += [str(program.p4info), str(program.json), str(out)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=60, check=False)
    log = out.with_suffix(".log")
    assert done.returncode == 0, done.stderr + (log.read_text() if log.exists() else "")
    return agreement.read_outcome(out)


def interpreted(document: dict[str, Any]) -> agreement.Outcome:
    """What the interpreter says must leave."""
    switch = Interpreter(document)
    ids = {each["name"].rpartition(".")[2]: each["id"] for each in document["actions"]}
    names = {name.rpartition(".")[2]: name for name in switch.tables}
    switch.defaults[names["switch_seed"]] = (ids["set_seed"], [agreement.ODD_MULTIPLIER])
    for prefix, ports in agreement.ROUTE_PORTS.items():
        network = IPv4Network(prefix)
        group = [(ids["forward"], [port]) for port in sorted(ports)]
        match = [("lpm", int(network.network_address), network.prefixlen)]
        switch.add_entry(names["ipv4_lpm"], match, ids["forward"], [], group=group)
    for port in agreement.PORTS:
        switch.add_entry(names["neighbor"], [("exact", port)], ids["set_macs"], list(agreement.next_hop(port)))
    outcome: agreement.Outcome = []
    for ingress_port, frames in agreement.rounds():
        out: dict[int, list[bytes]] = {port: [] for port in agreement.PORTS}
        for data in frames:
            packet = switch.parse(data, {"ingress_port": ingress_port, "packet_length": len(data)})
            switch.run("ingress", packet)
            port = switch.standard_value(packet, "egress_spec")
            if port not in out:
                continue
            switch.standard(packet, "egress_port", port)
            switch.standard(packet, "egress_spec", 0)
            switch.run("egress", packet)
            if switch.standard_value(packet, "egress_spec") != 511:
                out[port].append(switch.deparse(packet))
        outcome.append(out)
    return outcome


def differences(one: agreement.Outcome, other: agreement.Outcome) -> list[str]:
    found = []
    for number, (left, right) in enumerate(zip(one, other, strict=True)):
        for port in agreement.PORTS:
            if left[port] == right[port]:
                continue
            mine = [data.hex() for data in left[port] if data not in right[port]]
            theirs = [data.hex() for data in right[port] if data not in left[port]]
            found.append(f"round {number}, port {port}: {mine or 'in another order'} is not {theirs}")
    return found


@pytest.fixture(scope="module")
def ours(compiled: Callable[[str], CompiledProgram], tmp_path_factory: pytest.TempPathFactory) -> agreement.Outcome:
    """p4front on plait-switch."""
    return through(compiled("p4front"), "plait", tmp_path_factory.mktemp("ours") / "out.json")


def report(pair: str, outcome: agreement.Outcome, capsys: pytest.CaptureFixture[str]) -> None:
    sent = sum(len(frames) for _, frames in agreement.rounds())
    left = sum(len(frames) for each in outcome for frames in each.values())
    assert left > sent // 3  # or the packets say little
    with capsys.disabled():
        print(f"{pair}: {sent} packets in, {left} out, compared")


def test_p4front_on_plait_is_what_the_interpreter_says(
    compiled: Callable[[str], CompiledProgram], ours: agreement.Outcome, capsys: pytest.CaptureFixture[str]
) -> None:
    document = json.loads(compiled("p4front").json.read_text())
    assert differences(ours, interpreted(document)) == []
    report("p4front, plait-switch and the interpreter", ours, capsys)


@pytest.mark.parametrize(("compiler", "target"), OTHER_PAIRS)
def test_the_pairs_agree(
    compiler: str,
    target: str,
    compiled: Callable[[str], CompiledProgram],
    ours: agreement.Outcome,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    needed = [name for part in (compiler, target) if (name := NEEDS[part])]
    if missing := [name for name in needed if not shutil.which(name)]:
        pytest.skip(f"{' and '.join(missing)} not on PATH")
    theirs = through(compiled(compiler), target, tmp_path / "out.json")
    assert differences(ours, theirs) == []
    report(f"{compiler} on {target}", theirs, capsys)

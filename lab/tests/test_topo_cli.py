"""`plait topo` and the options of every command that takes a topology."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from lab import cli
from lab.errors import UsageError
from mininet_topos.catalogue import GENERATORS, choose
from mininet_topos.topology import Topology, TopologyError


def run(*words):
    """Output of `plait topo`; its error is raised."""
    result = CliRunner().invoke(cli.app, ["topo", *words])
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result


def shown(*words):
    result = run(*words, "--json")
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)


def test_show_tells_the_properties():
    found = shown("show", "fattree", "--k", "4", "--nodes")
    assert (found["hosts"], found["switches"], found["links"], found["diameter"]) == (16, 20, 48, 6)
    assert found["degrees"] == {"4": 20} and found["layers"] == {"core": 4, "agg": 8, "edge": 8}
    assert found["lengths"] == {"2": 16, "4": 32, "6": 192}
    assert found["bisection"] == {"low_bps": 8 * 10**8, "high_bps": 8 * 10**8, "method": "exact: closed form"}
    assert found["diversity"]["equal_cost_most"] == 4
    (node,) = [node for node in found["nodes"] if node["name"] == "h16"]
    assert node["place"] == "pod 3, rack 1, host 1" and node["ports"] == {"0": "s20"}


@pytest.mark.parametrize("name", sorted(GENERATORS))
def test_what_is_shown_is_what_the_parameters_make(name):
    topology, found = choose(name).build(), shown("show", name)
    assert [found[key] for key in ("name", "hosts", "switches", "links")] == [
        topology.name, len(topology.hosts), len(topology.switches), len(topology.links)
    ]  # fmt: skip


def test_show_for_people():
    text = run("show", "jellyfish", "--switches", "10", "--hosts", "10", "--seed", "4", "--nodes").stdout
    lines = text.splitlines()
    assert lines[0] == "jellyfish-10-4"
    assert any(line.startswith("  switches      10 (10 rack)") for line in lines)
    assert any("bounds: spectral (below), best of several partitions (above)" in line for line in lines)
    assert lines[-1].startswith("  h10   rack 9, host 0, 10.0.9.2/24  [0:s10]")


@pytest.mark.parametrize("name", sorted(GENERATORS))
def test_options_are_the_parameters(name):
    text = CliRunner().invoke(cli.app, ["launch", name, "--help"], env={"COLUMNS": "200"}).output
    for parameter in GENERATORS[name].parameters:
        assert f"--{parameter.name.replace('_', '-')} " in text
        if parameter.name != "seed":
            assert parameter.help.partition("[")[0].strip()[:30] in text
    for option in ("--program", "--target", "--links", "--nic-memory"):
        assert option in text
    listed = CliRunner().invoke(cli.app, ["launch", "--help"], env={"COLUMNS": "200"}).output
    assert f"│ {name} " in listed and "--scale" in listed


def test_export_is_read_back(tmp_path):
    for format_name in ("json", "conweave", "p4lang"):
        file = tmp_path / f"net.{format_name}"
        run("export", "leafspine", "--spines", "3", "--rate", "1G", "--format", format_name, "--out", str(file))
        found = shown("check", str(file))
        assert found["ok"] and (found["format"], found["hosts"], found["switches"]) == (format_name, 16, 7)
        assert shown("show", str(file))["diversity"]["equal_cost_least"] == 3
    exported = run("export", "dumbbell").stdout
    assert Topology.from_json(exported) == choose("dumbbell").build()


def test_export_for_machines(tmp_path):
    found = shown("export", "dumbbell", "--format", "p4lang")
    assert (found["format"], found["leaves_out"]) == ("p4lang", "losses and layers")
    assert json.loads(found["text"])["links"][0] == ["s1-p5", "s2-p5", "50us", 100]
    file = str(tmp_path / "net.json")
    assert shown("export", "dumbbell", "--out", file) == {"format": "json", "leaves_out": "", "file": file}


def test_export_says_what_a_format_has_not():
    command = [sys.executable, "-m", "lab.cli", "topo", "export", "dumbbell", "--format", "conweave"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stderr == "note: conweave has no names, addresses and port numbers\n"
    assert done.stdout.startswith("10 2 9\n8 9\n")


def test_a_file_with_its_rates_scaled(tmp_path):
    file = tmp_path / "net.txt"
    run("export", "mprdma", "--format", "conweave", "--out", str(file))
    assert shown("show", str(file), "--scale", "0.0025")["rates_bps"] == [100_000_000]


def test_draw_writes_the_file_and_tells_places(tmp_path):
    file = tmp_path / "net.svg"
    found = shown("draw", "jellyfish", "--out", str(file), "--layout", "spring")
    assert found["file"] == str(file) and found["layout"] == "spring" and len(found["places"]) == 36
    assert file.read_text().startswith("<?xml")
    assert run("draw", "fattree", "--out", str(file)).stdout == f"{file}\n"


@pytest.mark.parametrize("verb", ["check", "show", "draw", "export"])
def test_a_network_in_two_parts_is_refused(verb, tmp_path):
    whole = choose("dumbbell").build()
    file = tmp_path / "parts.json"
    file.write_text(whole.without(whole.links_between("s1", "s2")).to_json())
    with pytest.raises(TopologyError) as refused:
        run(verb, str(file))
    assert str(refused.value) == f"{file}: links: no path from 'h1' to 'h5': the network is in parts"


def test_the_files_of_the_documentation_are_read(tmp_path):
    page = (Path(__file__).resolve().parents[2] / "docs" / "topologies.md").read_text()
    formats = []
    for text in re.findall(r"^```(?:json|text)\n(.*?)^```$", page, re.MULTILINE | re.DOTALL):
        (tmp_path / "net").write_text(text)
        formats.append(shown("check", str(tmp_path / "net"))["format"])
    assert formats == ["json", "conweave", "htsim", "p4lang"]


def test_check_names_what_is_wrong(tmp_path):
    file = tmp_path / "net.json"
    document = json.loads(choose("dumbbell").build().to_json())
    document["links"][3]["rate_bps"] = -1
    file.write_text(json.dumps(document))
    with pytest.raises(TopologyError) as refused:
        run("check", str(file))
    assert str(refused.value) == f"{file}: links[3].rate_bps: must be positive, is -1"
    result = run("check", str(file), "--json")
    assert result.exit_code == UsageError.exit_code
    expected = {"ok": False, "field": f"{file}: links[3].rate_bps", "reason": "must be positive, is -1"}
    assert json.loads(result.stdout) == expected


def test_list_tells_topologies_and_parameters():
    assert [row["name"] for row in shown("list")] == list(GENERATORS)
    rows = {row["name"]: row for row in shown("list", "leafspine")}
    assert rows["spines"]["default"] == 2 and rows["rate"]["kind"] == "rate"
    assert "hosts_per_leaf" in run("list", "leafspine").stdout


REFUSALS = [
    (["show", "fatree"], "topology: 'fatree' is no topology and no file; did you mean fattree?"),
    (["show", "fattree", "--k", "5"], "k: must be even and from 2 to 254, is 5"),
    (["show", "fattree", "--rate", "fast"], "rate: 'fast' is not a rate such as 100M"),
    (["show", "jellyfish", "--like", "fattree:k=8", "--hosts", "4"], "like: says how many hosts there are: "),
    (["draw", "fattree", "--out", "x.gif"], "--out x.gif: the name must end in .svg, .png, .pdf."),
    (["draw", "fattree", "--out", "/nowhere/x.svg"], "--out /nowhere/x.svg: No such file or directory."),
    (["draw", "fattree", "--layout", "heap"], "--layout 'heap': known are layers, circle, spring."),
    (["export", "fattree", "--format", "yaml"], "--format 'yaml': known are json, conweave, htsim, p4lang, dot,"),
    (["export", "fattree", "--out", "/nowhere/x"], "--out /nowhere/x: No such file or directory."),
    (["check", "/nowhere/x.json"], "/nowhere/x.json: cannot be read: No such file or directory"),
    (["show", "/nowhere/x.json"], "/nowhere/x.json: cannot be read: No such file or directory"),
]


@pytest.mark.parametrize(("words", "message"), REFUSALS, ids=[" ".join(words) for words, _ in REFUSALS])
def test_refusals(words, message):
    with pytest.raises((UsageError, TopologyError)) as refused:
        run(*words)
    assert str(refused.value).startswith(message)


def test_options_of_another_topology_are_not_taken():
    result = run("show", "fattree", "--spines", "4")
    assert result.exit_code == 2 and "No such option: --spines" in result.output

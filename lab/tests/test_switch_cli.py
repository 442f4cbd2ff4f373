"""The verbs for any program on any switch, against plait-switch and, where it is on PATH, BMv2, with everything.p4."""

import asyncio
import json
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import finsy as fy
import pytest
from typer.testing import CliRunner

from controller.connection import controlling
from controller.errors import ControllerError
from controller.targets import Target
from lab import arguments, cli
from lab.compiling import CompiledProgram, compile_text
from lab.errors import PlaitError, UsageError

ROOT = Path(__file__).resolve().parents[2]
EVERYTHING = ROOT / "fastswitch" / "tests" / "data" / "everything.p4"
COMMANDS = {"plait": [sys.executable, "-m", "fastswitch.daemon"], "bmv2": ["simple_switch_grpc"]}


@pytest.fixture(scope="module", params=list(COMMANDS), name="switch")
def _switch(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a switch that runs everything.p4."""
    command = COMMANDS[request.param]
    if shutil.which(command[0]) is None:
        pytest.skip(f"{command[0]} is not on PATH")
    folder = tmp_path_factory.mktemp("switch")
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{probe.getsockname()[1]}"
    written = compile_text(EVERYTHING, "plait").write(folder)
    options = ["--no-p4", "--device-id", "3", "--", "--grpc-server-addr", address, "--cpu-port", "510"]
    with (folder / "log").open("wb") as log, subprocess.Popen([*command, *options], stdout=log, stderr=log) as child:
        try:
            end = time.monotonic() + 10
            while not _listens(address):
                assert child.poll() is None and time.monotonic() < end, (folder / "log").read_text()
            asyncio.run(_load(Target("s", address, 3), written))
            yield f"{address}/3"
        finally:
            child.terminate()


def _listens(address: str) -> bool:
    host, _, port = address.rpartition(":")
    try:
        socket.create_connection((host, int(port)), timeout=1).close()
    except OSError:
        return False
    return True


async def _load(target: Target, program: CompiledProgram) -> None:
    async with controlling(target, fy.SwitchOptions(p4info=program.p4info, p4blob=program.json)):
        pass


def plait(*words: str) -> str:
    """What a command prints; its error is raised."""
    result = CliRunner().invoke(cli.app, list(words))
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    assert result.exit_code == 0, result.output
    return result.stdout


def said(switch: str, *words: str) -> list[str]:
    """What a verb that writes says that it wrote."""
    (texts,) = json.loads(plait(*words[:2], switch, *words[2:], "--json"))["written"].values()
    return list(texts)


def shown(switch: str, *words: str) -> list[dict]:
    return json.loads(plait(*words[:2], switch, *words[2:], "--json"))


def entries(switch: str, table: str) -> list[tuple[dict, str]]:
    return [(row["match"], row["action"]) for row in shown(switch, "table", "dump", table) if not row["default"]]


def test_tables(switch: str) -> None:
    tables = {row["table"].rpartition(".")[2]: row for row in shown(switch, "table", "list")}
    assert tables["lpm_table"]["keys"] == [["hdr.ipv4.dst_addr", "lpm", 32]]
    detail = shown(switch, "table", "show", "exact_table")
    assert isinstance(detail, dict) and detail["actions"][-1] == "drop() (default only)"
    assert (detail["direct_meter"], detail["default"]) == ("ingress.exact_meter", "drop()")
    key = {"hdr.ipv4.dst_addr": "10.1.0.0/16"}
    dry = said(switch, "table", "add", "lpm_table", "dst_addr=10.1.2.3/16", "-a", "forward(7)", "--dry-run")
    assert (dry, entries(switch, "lpm_table")) == (
        ["insert lpm_table hdr.ipv4.dst_addr=10.1.0.0/16 -> forward(port=7)"], []
    )  # fmt: skip
    assert said(switch, "table", "add", "lpm_table", "dst_addr=10.1.2.3/16", "-a", "forward(7)") == dry
    assert entries(switch, "lpm_table") == [(key, "forward(port=7)")]
    said(switch, "table", "set", "lpm_table", "dst_addr=10.1.0.0/16", "-a", "rewrite(0x0a, port=8)")
    assert entries(switch, "lpm_table") == [(key, "rewrite(dst_addr=00:00:00:00:00:0a, port=8)")]
    said(switch, "table", "del", "lpm_table", "dst_addr=10.1.0.0/16")
    assert entries(switch, "lpm_table") == []
    said(
        switch, "table", "add", "range_table", "total_len=10..20", "protocol=6&&&0xff", "-a", "drop", "--priority", "4"
    )
    assert entries(switch, "range_table") == [({"hdr.ipv4.total_len": "10..20", "hdr.ipv4.protocol": "6"}, "drop()")]
    assert len(said(switch, "table", "clear", "range_table")) == 1
    assert entries(switch, "range_table") == []


def test_default_actions(switch: str) -> None:
    def now() -> str:
        return str(shown(switch, "table", "show", "keyless_table")["default"])  # type: ignore[call-overload]

    said(switch, "table", "default", "keyless_table", "-a", "forward(9)")
    assert now() == "forward(port=9)"
    said(switch, "table", "default", "keyless_table", "--reset")
    assert now() == "NoAction()"


def test_groups(switch: str) -> None:
    said(switch, "group", "add-member", "next_hops", "1", "-a", "forward(3)")
    said(switch, "group", "add-member", "next_hops", "2", "-a", "forward(4)")
    assert said(switch, "group", "add", "next_hops", "5", "1", "2*3@4") == [
        "insert next_hops group 5 -> members 1 2*3@4"
    ]
    said(switch, "table", "add", "selector_table", "dst_addr=10.0.0.0/8", "-a", "group(5)")
    found = json.loads(plait("group", "show", switch, "next_hops", "--json"))
    assert [(row["member"], row["action"]) for row in found["members"]] == [
        (1, "forward(port=3)"),
        (2, "forward(port=4)"),
    ]
    (row,) = found["groups"]
    assert (row["group"], row["members"][0][:1], row["members"][1]) == (5, "1", "2*3@4")  # BMv2 tells port 4 of both
    said(switch, "group", "set", "next_hops", "5", "2")
    said(switch, "group", "set-member", "next_hops", "2", "-a", "NoAction")
    (row,) = (row for row in shown(switch, "group", "list") if row["selector"])
    assert (row["members"], row["groups"]) == (2, 1)
    with pytest.raises(ControllerError, match="refused delete next_hops member 2: "):
        said(switch, "group", "del-member", "next_hops", "2")
    said(switch, "table", "clear", "selector_table")
    said(switch, "group", "del", "next_hops", "5")
    for member in "12":
        said(switch, "group", "del-member", "next_hops", member)


def test_counters(switch: str) -> None:
    said(switch, "counter", "set", "port_counter", "-i", "3", "--packets", "4", "--bytes", "500")
    assert shown(switch, "counter", "show", "port_counter") == [{"index": 3, "packets": 4, "bytes": 500}]
    assert len(shown(switch, "counter", "show", "port_counter", "--zeros")) == 16
    assert len(said(switch, "counter", "reset", "port_counter")) == 16
    assert shown(switch, "counter", "show", "port_counter") == []
    key = ["dst_addr=02:00:00:00:00:01", "ingress_port=1"]
    said(switch, "table", "add", "exact_table", *key, "-a", "forward_counted(2)")
    said(switch, "counter", "set", "exact_counter", *key, "--packets", "7")
    match = {"hdr.ethernet.dst_addr": "02:00:00:00:00:01", "std.ingress_port": "1"}
    assert shown(switch, "counter", "show", "exact_counter") == [{"match": match, "packets": 7, "bytes": 0}]
    assert len(said(switch, "counter", "reset", "exact_counter")) == 1
    assert shown(switch, "counter", "show", "exact_counter") == []
    said(switch, "table", "clear", "exact_table")


def test_meters(switch: str) -> None:
    said(switch, "meter", "set", "port_meter", "-i", "2", "--cir", "125KB", "--cburst", "3000", "--pir", "1MB")
    row = {"index": 2, "cir": 125_000, "cburst": 3000, "pir": 1_000_000, "pburst": 3000}
    assert shown(switch, "meter", "show", "port_meter", "-i", "2") == [row]
    assert shown(switch, "meter", "show", "port_meter") == [row]
    said(switch, "meter", "reset", "port_meter", "-i", "2")
    assert shown(switch, "meter", "show", "port_meter") == []
    key = ["dst_addr=02:00:00:00:00:01", "ingress_port=1"]
    said(switch, "table", "add", "exact_table", *key, "-a", "forward_counted(2)")
    said(switch, "meter", "set", "exact_meter", *key, "--cir", "10", "--cburst", "20")
    (row,) = shown(switch, "meter", "show", "exact_meter")
    assert (row["cir"], row["cburst"], row["pir"], row["pburst"]) == (10, 20, 10, 20)
    said(switch, "table", "clear", "exact_table")


def test_registers_or_why_not(switch: str) -> None:
    if "BMv2" in _refusal(switch):
        return
    said(switch, "register", "set", "words", "0xff", "--index", "3")
    assert shown(switch, "register", "show", "words") == [{"index": 3, "value": 255}]
    said(switch, "register", "set", "signed", "-5")
    assert [row["value"] for row in shown(switch, "register", "show", "signed")] == [-5] * 4
    said(switch, "register", "reset", "words")
    assert shown(switch, "register", "show", "words") == []


def _refusal(switch: str) -> str:
    try:
        shown(switch, "register", "show", "words")
    except ControllerError as error:
        assert "BMv2 has no registers over P4Runtime; plait-switch has" in str(error)
        return str(error)
    return ""


def test_replication(switch: str) -> None:
    said(switch, "multicast", "add", "7", "1", "2#1")
    said(switch, "multicast", "set", "7", "3", "2#1")
    (row,) = shown(switch, "multicast", "list")
    assert (row["group"], sorted(row["ports"])) == (7, ["2#1", "3"])
    said(switch, "multicast", "del", "7")
    said(switch, "clone", "add", "5", "510")
    said(switch, "clone", "set", "5", "1")
    assert shown(switch, "clone", "list") == [{"session": 5, "ports": ["1"], "queue": 0, "bytes": 0}]
    said(switch, "clone", "del", "5")
    assert (shown(switch, "multicast", "list"), shown(switch, "clone", "list")) == ([], [])


def test_digests(switch: str) -> None:
    said(switch, "digest", "on", "learn_t", "--at-most", "3", "--wait", "20ms")
    with pytest.raises(PlaitError, match="told nothing of learn_t in 10ms"):
        plait("digest", "listen", switch, "learn_t", "--wait", "10ms")
    said(switch, "digest", "off", "learn_t")


def test_files_of_other_tools(switch: str, tmp_path: Path) -> None:
    commands, runtime = tmp_path / "s1-commands.txt", tmp_path / "s1-runtime.json"
    commands.write_text("table_clear lpm_table\ntable_add lpm_table forward 10.0.0.0/8 => 1\nmirroring_add 9 2\n")
    assert said(switch, "table", "load", str(commands)) == [
        "insert clone session 9 -> ports 2",
        "insert lpm_table hdr.ipv4.dst_addr=10.0.0.0/8 -> forward(port=1)",
    ]
    entry = {"table": "lpm_table", "match": {"dst_addr": ["11.0.0.0", 8]}, "action_name": "NoAction"}
    runtime.write_text(json.dumps({"table_entries": [entry]}))
    said(switch, "table", "load", str(runtime))
    assert [action for _, action in entries(switch, "lpm_table")] == ["forward(port=1)", "NoAction()"]
    # The second time, what is there is emptied first.
    assert said(switch, "clone", "del", "9") and len(said(switch, "table", "load", str(commands))) == 4
    said(switch, "clone", "del", "9")
    commands.write_text("\ntable_ad\n")
    with pytest.raises(ControllerError, match=r"s1-commands.txt:2: table_ad: it is unknown here"):
        said(switch, "table", "load", str(commands))
    said(switch, "table", "clear", "lpm_table")


def test_all_state_is_dumped_and_restored(switch: str, tmp_path: Path) -> None:
    if _refusal(switch):
        with pytest.raises(ControllerError, match="refused read: INTERNAL"):  # it tells nothing of constant_table
            plait("table", "dump", switch, "--all")
        return
    said(switch, "table", "add", "lpm_table", "dst_addr=10.0.0.0/8", "-a", "forward(1)")
    said(switch, "multicast", "add", "7", "1", "2")
    state = tmp_path / "state.json"
    state.write_text(plait("table", "dump", switch, "--all"))
    said(switch, "table", "clear", "--all")
    said(switch, "multicast", "del", "7")
    written = json.loads(plait("table", "restore", str(state), "--json"))["written"]
    assert written == {
        switch: [
            "insert multicast group 7 -> ports 1 2",
            "insert lpm_table hdr.ipv4.dst_addr=10.0.0.0/8 -> forward(port=1)",
            "insert initial_table hdr.ipv4.ttl=64 -> forward(port=1)",  # the program's, and cleared before
        ]
    }
    assert json.loads(plait("table", "restore", str(state), "--json"))["written"] == {switch: []}
    said(switch, "table", "clear", "lpm_table")
    said(switch, "multicast", "del", "7")


MISTAKES = [
    ("table add S lpm_tabel dst_addr=1 -a drop", "no table named 'lpm_tabel': did you mean 'lpm_table'?"),
    ("table add S lpm_table dst_adr=10.0.0.0/8 -a drop", "no key field of lpm_table named 'dst_adr': did you mean"),
    ("table add S lpm_table dst_addr=10.0.0.0/40 -a drop", "hdr.ipv4.dst_addr: prefix length '40' must be from 0"),
    ("table add S lpm_table -a drop", "lpm_table: a match is missing: FIELD=VALUE for hdr.ipv4.dst_addr"),
    ("table add S lpm_table dst_addr=10.0.0.0/8", "lpm_table: an action is missing; there are forward, rewrite, drop"),
    ("table add S lpm_table dst_addr=10.0.0.0/8 -a forwrd(1)", "no action of lpm_table named 'forwrd': did you mean"),
    ("table add S lpm_table dst_addr=10.0.0.0/8 -a forward(512)", "port: 512 does not fit in 9 bits"),
    ("table add S range_table total_len=9..3 -a drop --priority 1", "total_len: 9..3: the range ends before it begins"),
    ("table default S keyless_table", "give the new default action with --action, or --reset for the program's"),
    ("table clear S", "name a table, or give --all for every table"),
    ("table clear S constant_table", "constant_table has no entries that could be deleted: the program fixes them"),
    ("table dump", "name a switch, such as s1, or give --all"),
    ("table dump S lpm_table --all", "--all is for whole switches: leave the table out"),
    ("table load S /nonexistent", "cannot read /nonexistent: No such file or directory"),
    ("table restore /dev/null", "/dev/null is no JSON: Expecting value"),
    ("group add S plain_profile 1 1", "plain_profile has members only: groups need an action selector"),
    ("group add S next_hops 1 1*0", "member '1*0': weight 0: it is from 1 to 2147483647"),
    ("group add S next_hops 1 one", "member 'one': write its number, such as 1, 1*2 with a weight"),
    ("group add S next_hops 0 1", "group 0: it is from 1 to 4294967295"),
    ("counter set S port_counter --packets 1", "which cell? Give --index, or FIELD=VALUE for a direct counter"),
    ("counter show S port_counter -i 16", "port_counter: index 16; it has 16 cells, from 0"),
    ("counter show S exact_counter -i 1", "exact_counter has no indices: its cells are named by their entries' match"),
    ("counter reset S port_counter dst_addr=1", "port_counter is an array: its cells are named by an index"),
    ("meter set S port_meter -i 1 --cir 1KB", "a meter needs --cir, its rate per second, and --cburst, its burst"),
    ("meter set S port_meter -i 1 --cir fast --cburst 1", "--cir 'fast': write bytes, such as 64KB, or packets"),
    ("meter set S port_meter -i 1 --cir 9 --cburst 1 --pir 8", "pir: the peak rate 8 is below the committed rate 9"),
    ("register set S words 0x100000000", "words: 0x100000000 does not fit in 32 bits"),
    ("register set S signed 40000", "signed: 40000 does not fit in 16 bits with a sign"),
    ("multicast add S 1 h1", "port 'h1' is not a number"),
    ("multicast add S 1 2#x", "replica '2#x': after # is an instance from 0 to 65535, such as 3#1"),
    ("multicast del S 0", "group 0: it is from 1 to 4294967295"),
    ("clone del S 99999999999", "session 99999999999: it is from 1 to 4294967295"),
    ("digest on S learn_t --wait 9999999999999s", ": it is from 0 to 9223372036854775807"),
    ("table add S range_table total_len=3 -a drop --priority 99999999999", "priority 99999999999: it is from 1 to"),
    ("table list 127.0.0.1:9/99999999999999999999999", "after / is a device id, a number below 2^64"),
    ("digest on S lern_t", "no digest named 'lern_t': did you mean 'learn_t'?"),
    ("table list 127.0.0.1:9/x", "switch '127.0.0.1:9/x': after / is a device id, a number"),
]


@pytest.mark.parametrize(("words", "message"), MISTAKES)
def test_mistakes_are_named(switch: str, words: str, message: str) -> None:
    with pytest.raises((PlaitError, ControllerError)) as error:
        plait(*(switch if word == "S" else word for word in words.split()))
    assert message in str(error.value)


def test_what_was_meant_by_a_switch() -> None:
    with pytest.raises(UsageError, match=r"no switch 's99' in the running laboratory; it has s1, s2\."):
        arguments.known("switch", "s99", ["s1", "s2"])
    with pytest.raises(UsageError, match=r"no host 'hosst1' in .*; did you mean 'host1'\? It has host1, host2\."):
        arguments.known("host", "hosst1", ["host1", "host2"])

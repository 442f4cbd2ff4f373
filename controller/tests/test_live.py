"""The controller and the verbs against real P4Runtime servers: plait-switch, and BMv2 where it is on PATH."""

import asyncio
import importlib.util
import shutil
import socket
import subprocess
import sys
import time
from pathlib import Path

import finsy as fy
import pytest

from controller import arrays, counters, tables
from controller.control import InstallReport, Program, install, install_entries
from controller.errors import ControllerError, EntryTextError, RefusedError
from controller.parameters import change, curves, set_curves, settings
from controller.policy import Policy
from controller.ports import Marking, RedCurve
from controller.targets import Target
from mininet_topos.topology import Link, Node, Topology

ROOT = Path(__file__).resolve().parents[2]
BALANCED = ["spray", "drill", "flowlet", "ksp", "dibs"]
PROGRAMS = {name: ROOT / "p4src" / f"{name}.p4" for name in ["ecmp", *BALANCED]}
PROGRAMS["zoo"] = Path(__file__).with_name("zoo.p4")


def _plait_switch():
    if not list((ROOT / "engine" / "_build").glob("_engine*.so")) or not importlib.util.find_spec("cffi"):
        pytest.skip("the engine is not built: `make build`")
    return [sys.executable, "-m", "fastswitch.daemon"]


def _bmv2():
    if not shutil.which("simple_switch_grpc"):
        pytest.skip("simple_switch_grpc (BMv2) is not on PATH")
    return ["simple_switch_grpc"]


@pytest.fixture(scope="module")
def programs(tmp_path_factory):
    p4front = pytest.importorskip("p4front.driver")
    folder = tmp_path_factory.mktemp("programs")
    made = {}
    for name, source in PROGRAMS.items():
        compiled = p4front.compile_file(source)
        made[name] = Program(folder / f"{name}.p4info.txtpb", folder / f"{name}.json")
        made[name].p4info.write_text(compiled.p4info_text)
        made[name].json.write_text(compiled.json_text)
    return made


@pytest.fixture(params=[_plait_switch, _bmv2], ids=["plait", "bmv2"])
def target(request, tmp_path):
    """A switch process without interfaces, for each test anew."""
    command = request.param()
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{probe.getsockname()[1]}"
    log = tmp_path / "switch.log"
    with log.open("wb") as output:
        arguments = [*command, "--no-p4", "--device-id", "7", "--", "--grpc-server-addr", address]
        child = subprocess.Popen(arguments, stdout=output, stderr=output, cwd=ROOT)
    try:
        end = time.monotonic() + 10
        while not _listens(address):
            assert child.poll() is None and time.monotonic() < end, log.read_text()
            time.sleep(0.02)
        yield Target("s1", address, 7)
    finally:
        child.terminate()
        child.wait(10)


def _listens(address):
    host, _, port = address.rpartition(":")
    try:
        socket.create_connection((host, int(port)), timeout=1).close()
    except OSError:
        return False
    return True


async def load(target, program):
    """Runs the program, without entries."""
    await install_entries([target], program, {target.name: []}, InstallReport())


def star():
    switch = Node.switch(7, "edge", 0, name="s1")
    hosts = [Node.host(i, f"10.0.{i}.2/24") for i in range(3)]
    return Topology((switch, *hosts), tuple(Link(h.name, 0, "s1", 1 + h.index, 10**9, 1000) for h in hosts))


async def test_install_verify_and_install_again(target, programs):
    first = await install(star(), [target], programs["ecmp"])
    assert (first.inserted, first.modified, first.verified) == (9, 1, 10)
    again = await install(star(), [target], programs["ecmp"])
    assert (again.written, again.verified) == (0, 10)
    other = await install(star(), [target], programs["ecmp"], Policy(seed=5, marking=Marking(min_packets=9)))
    assert (other.inserted, other.modified, other.deleted) == (0, 4, 0)


async def test_another_program_replaces_the_first(target, programs):
    await load(target, programs["zoo"])
    await install(star(), [target], programs["ecmp"])
    assert "ingress.balance.ipv4_lpm" in {row.table for row in await tables.table_list(target)}


async def test_every_kind_of_key(target, programs):
    await load(target, programs["zoo"])
    match = ["ether_type=0x0800&&&0xff00", "ipv4_addr=10.1.0.0/16", "l4_port=1..5", "protocol=17", "ingress_port=3"]
    await tables.table_add(target, "zoo", match, "forward(4)", priority=10)
    await tables.table_add(target, "zoo", ["ingress_port=3"], "drop", priority=1)
    rows = [row for row in await tables.table_dump(target, "zoo") if not row.default]
    assert sorted((row.priority, row.action) for row in rows) == [(1, "drop()"), (10, "forward(port=4)")]
    (first,) = [row for row in rows if row.priority == 10]
    assert first.match == {
        "hdr.ethernet.ether_type": "0x800&&&0xff00",
        "meta.ipv4_addr": "0xa010000&&&0xffff0000",
        "meta.l4_port": "1..5",
        "meta.protocol": "17",
        "standard_metadata.ingress_port": "3",
    }
    assert (first.packets, first.bytes) == (0, 0)
    await tables.table_set(target, "zoo", match, "NoAction", priority=10)
    await tables.table_del(target, "zoo", ["ingress_port=3"], priority=1)
    rows = await tables.table_dump(target, "zoo")
    assert [(row.default, row.action) for row in rows] == [(False, "NoAction()"), (True, "drop()")]


async def test_groups_and_their_weights(target, programs):
    await load(target, programs["zoo"])
    group = "{forward(1)*2, forward(2)}"
    await tables.table_add(target, "routes", ["ipv4_addr=10.0.0.0/8"], group)
    (row,) = await tables.table_dump(target, "routes")
    assert row.match == {"meta.ipv4_addr": "10.0.0.0/8"}
    assert row.action == "{forward(port=1)*2, forward(port=2)}"
    await tables.table_set(target, "routes", ["ipv4_addr=10.0.0.0/8"], "forward(3)")
    (row,) = await tables.table_dump(target, "routes")
    assert row.action == "{forward(port=3)}"


async def test_default_action_of_a_table_without_keys(target, programs):
    await load(target, programs["zoo"])
    await tables.table_default(target, "keyless", "forward(5)")
    (row,) = await tables.table_dump(target, "keyless")
    assert (row.default, row.action) == (True, "forward(port=5)")


async def test_refusals_name_the_entry(target, programs):
    await load(target, programs["zoo"])
    await tables.table_add(target, "routes", ["ipv4_addr=10.0.0.0/8"], "forward(1)")
    with pytest.raises(RefusedError, match=r"refused insert routes meta.ipv4_addr=10.0.0.0/8 .*: ALREADY_EXISTS"):
        await tables.table_add(target, "routes", ["ipv4_addr=10.0.0.0/8"], "forward(1)")
    with pytest.raises(RefusedError, match=r"refused delete routes meta.ipv4_addr=11.0.0.0/8: NOT_FOUND"):
        await tables.table_del(target, "routes", ["ipv4_addr=11.0.0.0/8"])
    for port in range(4):
        await tables.table_add(target, "zoo", [f"ingress_port={port}"], "drop", priority=1)
    # The table is full; BMv2 does not say so, but UNKNOWN.
    full = r"refused insert zoo standard_metadata.ingress_port=9 priority=1 -> drop\(\): (RESOURCE_EXHAUSTED|UNKNOWN)"
    with pytest.raises(RefusedError, match=full):
        await tables.table_add(target, "zoo", ["ingress_port=9"], "drop", priority=1)


async def test_a_wrong_device_id_is_refused(target, programs):
    await load(target, programs["zoo"])
    wrong = Target("s1", target.address, 8)
    # BMv2 takes it for a device that has no program yet.
    for asked in (tables.table_list(wrong), tables.table_default(wrong, "keyless", "NoAction")):
        with pytest.raises(RefusedError, match="NOT_FOUND|device 8 at s1 .* runs no program yet"):
            await asked


async def test_no_program_yet(target):
    with pytest.raises(RefusedError, match="runs no program yet"):
        await tables.table_list(target)
    with pytest.raises(RefusedError, match="runs no program yet"):
        await tables.table_default(target, "keyless", "NoAction")


async def test_a_person_writes_beside_a_connected_controller(target, programs):
    await load(target, programs["zoo"])
    options = fy.SwitchOptions(device_id=7, initial_election_id=10)
    async with fy.Switch("lab", target.address, options) as controller:
        for port in (1, 2):
            await tables.table_default(target, "keyless", f"forward({port})")
            (row,) = await tables.table_dump(target, "keyless")
            assert row.action == f"forward(port={port})"
        async with asyncio.timeout(5):
            while not controller.is_primary:
                await asyncio.sleep(0.01)
        await controller.write([~fy.P4TableEntry("keyless", is_default_action=True, action=fy.Action("NoAction"))])
    # And a controller that starts afterwards, with its usual id below a person's, is primary as well.
    await load(target, programs["zoo"])


async def test_counters(target, programs):
    await install(star(), [target], programs["ecmp"])
    assert await counters.read_port_counters([target]) == {"s1": {}}
    assert len(await arrays.counter_show(target, "port_rx", zeros=True)) == 512


# --- parameters ---

# What install derives for `star` with 1,086-byte frames, and what it is changed to.
PARAMETERS = {
    "spray": ({"spray": "random"}, {"spray": "round-robin"}),
    "drill": ({"d": 2, "m": 1}, {"d": 4}),
    "flowlet": ({"gap": 22}, {"gap": 1000}),
    "ksp": ({"path": "per-flow"}, {"path": "two-choices"}),
    "dibs": ({"deflect-above": 34752, "min-ttl": 40}, {"deflect-above": 10**6, "min-ttl": 0}),
}


@pytest.mark.parametrize("name", BALANCED)
async def test_parameters_are_shown_and_changed(target, programs, name):
    derived, wanted = PARAMETERS[name]
    await install(star(), [target], programs[name])
    shown = {setting.parameter: setting.value for setting in await settings([target])}
    shown.pop("seed", None)
    assert shown == derived
    await change([target], wanted)
    shown = {setting.parameter: setting.value for setting in await settings([target])}
    shown.pop("seed", None)
    assert shown == derived | wanted


@pytest.mark.parametrize(
    ("wanted", "text"),
    [
        ({"gap": 5}, "s1: its program has no parameter 'gap'; it has d, m"),
        ({"D": 5}, "no parameter 'D'; there are spray, path, d, m, gap, deflect-above, min-ttl, seed"),
        ({"d": 5}, "d: 5; 1 to 4 can be"),
        ({"seed": 4}, "seed: 4 is even; an even multiplier loses a bit of every hash"),
        ({"d": 3, "spray": "both"}, "spray: 'both'; it is one of random, round-robin"),
    ],
)
async def test_parameters_that_cannot_be_are_refused_and_nothing_is_written(target, programs, wanted, text):
    await load(target, programs["drill"])
    with pytest.raises(EntryTextError) as refused:
        await change([target], wanted)
    assert str(refused.value) == text
    assert {setting.parameter: setting.value for setting in await settings([target])} == {"d": 2, "m": 1}


async def test_marking_curves_are_shown_and_changed(target, programs):
    await install(star(), [target], programs["ecmp"])
    first = [(each.port, each.curve) for each in await curves([target])]
    assert first == [(port, RedCurve(8688, 8688)) for port in (1, 2, 3)]
    assert await set_curves([target], lambda curve: RedCurve(1000, 9000, 0.25), port=2) == 1
    assert [each.curve for each in await curves([target])][1] == RedCurve(1000, 9000, 0.25)
    with pytest.raises(ControllerError, match="s1: port 9 has no marking curve"):
        await set_curves([target], lambda curve: curve, port=9)
    with pytest.raises(ControllerError, match=r"kmax: 8688 bytes; 9999 \(kmin\) to 4294967295 can be"):
        await set_curves([target], lambda curve: RedCurve(9999, curve.kmax_bytes))
    await load(target, programs["zoo"])
    with pytest.raises(ControllerError, match="s1: its program has no table 'red_curve', so it marks nothing"):
        await curves([target])

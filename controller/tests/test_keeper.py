"""The controller that stays: what it writes to fake switches and what not, and what it repairs on plait-switch."""

import asyncio
import contextlib
import dataclasses
import json
import signal
import socket
import subprocess
import sys

import finsy as fy
import pytest
from finsy.proto import p4r

from controller import reconcile, tables
from controller.connection import reading
from controller.control import Program, read_schema
from controller.daemon import Config, read_ready_line
from controller.decisions import DecisionLog, read_decisions
from controller.errors import RefusedError
from controller.keeper import Keeper
from controller.policy import Policy, Router, parameter_entries
from controller.targets import Target
from controller.tests.fake_switch import DENIED, FakeSwitch, serving
from controller.tests.programs import write_program
from controller.tests.test_live import PROGRAMS, ROOT, _plait_switch
from controller.writing import options
from mininet_topos.fattree import fattree
from mininet_topos.tests.examples import dumbbell

PATIENCE_S = 20


class Running:
    """A keeper at work, and its log."""

    def __init__(self, keeper, path):
        self.keeper = keeper
        self._path = path

    def texts(self, kind=None):
        return [d.text for d in read_decisions(self._path)[0] if kind in (None, d.kind)]

    async def settled(self):
        async with asyncio.timeout(PATIENCE_S):
            await self.keeper.settled.wait()

    async def told(self, text):
        """Waits until the log says it."""
        async with asyncio.timeout(PATIENCE_S):
            while not any(text in line for line in self.texts()):
                await asyncio.sleep(0.01)


@contextlib.asynccontextmanager
async def keeping(folder, topology, targets, program, policy=None):
    path = folder / "controller.log"
    log = DecisionLog(path)
    keeper = Keeper(topology, targets, read_schema(program), policy or Policy(), log)
    task = asyncio.create_task(keeper.run())
    try:
        yield Running(keeper, path)
        assert not task.done(), task.result()
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        log.close()


# --- fake switches ---


class Pair:
    def __init__(self, folder):
        self.folder = folder
        self.program = write_program(folder)
        self.switches = [FakeSwitch(), FakeSwitch()]
        self.targets = []

    def keeping(self, **more):
        return keeping(self.folder, dumbbell(), self.targets, self.program, **more)

    @property
    def writes(self):
        return [len(switch.writes) for switch in self.switches]


@pytest.fixture
async def pair(tmp_path):
    made = Pair(tmp_path)
    async with serving(made.switches[0]) as first, serving(made.switches[1]) as second:
        made.targets = [Target("s1", first, 1), Target("s2", second, 1)]
        yield made


async def test_a_second_controller_writes_nothing(pair):
    async with pair.keeping() as running:
        await running.settled()
        assert (running.keeper.report.verified, running.keeper.report.written) == (20, 20)
    assert pair.writes == [10, 10]
    async with pair.keeping() as running:
        await running.settled()
        assert (running.keeper.report.verified, running.keeper.report.written) == (20, 0)
    assert pair.writes == [10, 10]
    assert [switch.loads for switch in pair.switches] == [1, 1]


async def test_a_restart_mends_routes_and_leaves_parameters_to_people(pair):
    async with pair.keeping() as running:
        await running.settled()
    target, switch = pair.targets[0], pair.switches[0]
    await tables.table_del(target, "ipv4_lpm", ["dst_addr=10.0.2.0/24"])
    await tables.table_set(target, "ipv4_lpm", ["dst_addr=10.0.1.2/32"], "forward(3)")
    await tables.table_add(target, "ipv4_lpm", ["dst_addr=10.9.0.0/16"], "forward(3)")
    await tables.table_set(target, "red_curve", ["egress_port=1"], "NoAction")
    await tables.table_del(target, "red_curve", ["egress_port=2"])
    before = len(switch.writes)
    async with pair.keeping() as running:
        await running.settled()
        report = running.keeper.report
        assert (report.inserted, report.modified, report.deleted) == (2, 1, 1)
        assert "s1: somebody changed entries of red_curve (1); they are left so" in running.texts("switch")
    assert len(switch.writes) == before + 4


async def test_a_person_writes_and_nobody_fights(pair):
    async with pair.keeping() as running:
        await running.settled()
        async with fy.Switch("person", pair.targets[0].address, options()) as person:
            assert person.is_primary
            await running.told("s1: another controller, with election id")
            await person.write([-fy.P4TableEntry("ipv4_lpm", match=fy.Match({"hdr.ipv4.dst_addr": (0x0A000200, 24)}))])
        await running.told("s1: primary again; entries are left as they are")
        await running.settled()
        assert len(pair.switches[0].entries) == 9


async def test_what_a_switch_refuses_is_told_and_not_tried_for_ever(pair):
    pair.switches[0].refuse = lambda update: (DENIED, "not today")
    async with pair.keeping() as running:
        await running.told("left alone until it connects anew")
        await running.settled()
        refusals = [text for text in running.texts("switch") if "not today" in text]
        assert len(refusals) == 3 and "insert red_curve" in refusals[0]
        assert running.keeper.report.switches == 1


async def test_somebody_elses_program_is_left_alone(pair):
    other = p4r.ForwardingPipelineConfig(p4info=read_schema(pair.program).p4info)
    other.cookie.cookie = 5
    pair.switches[0].config.CopyFrom(other)
    async with pair.keeping() as running:
        await running.settled()
        assert "s1: it runs another program, of somebody else; left alone" in running.texts("switch")
    assert pair.writes == [0, 10]


async def test_a_lost_connection_comes_back(tmp_path):
    pair = Pair(tmp_path)
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{probe.getsockname()[1]}"
    async with serving(pair.switches[1]) as second:
        pair.targets = [Target("s1", address, 1), Target("s2", second, 1)]
        async with pair.keeping() as running:
            await running.settled()
            assert any("s1: lost:" in text for text in running.texts("switch"))
            async with serving(pair.switches[0], address):
                await running.told("s1: it had no program; loaded, and entries follow")
                async with asyncio.timeout(PATIENCE_S):
                    while len(pair.switches[0].entries) < 10:
                        await asyncio.sleep(0.01)
                await running.settled()


# --- plait-switch ---


@pytest.fixture(scope="module")
def programs(tmp_path_factory):
    p4front = pytest.importorskip("p4front.driver")
    folder = tmp_path_factory.mktemp("programs")
    made = {}
    for name in ("ecmp", "spray", "ksp"):
        compiled = p4front.compile_file(PROGRAMS[name])
        made[name] = Program(folder / f"{name}.p4info.txtpb", folder / f"{name}.json")
        made[name].p4info.write_text(compiled.p4info_text)
        made[name].json.write_text(compiled.json_text)
    return made


class Fabric:
    """The switches of a fat-tree in one process, wired as `wiring` says, without hosts."""

    def __init__(self, folder, wiring):
        self.folder = folder
        self.topology = fattree(4, 10**9, 1000)
        self.control = folder / "control.sock"
        names = [switch.name for switch in self.topology.switches]
        addresses = {name: f"unix:{folder}/{name}.sock" for name in names}
        self.targets = [Target(s.name, addresses[s.name], s.device_id) for s in self.topology.switches]
        links = [link for link in wiring if link.a in names and link.b in names]
        spec = {
            "switches": [
                {"name": t.name, "device_id": t.device_id, "grpc_addr": t.address, "cpu_port": 510}
                for t in self.targets
            ],
            "links": [{"a": [link.a, link.port_a], "b": [link.b, link.port_b]} for link in links],
            "control": str(self.control),
        }
        (folder / "fabric.json").write_text(json.dumps(spec))

    def ask(self, **request):
        with socket.socket(socket.AF_UNIX) as connection:
            connection.connect(str(self.control))
            connection.sendall(json.dumps(request).encode() + b"\n")
            with connection.makefile() as replies:
                reply = json.loads(replies.readline())
        assert "ok" in reply, reply

    def links(self, *pairs):
        return frozenset(link for pair in pairs for link in self.topology.links_between(*pair))

    async def comes_to_hold(self, program, down=frozenset()):
        """Waits until all switches hold exactly what a fresh start would write."""
        schema = read_schema(program)
        parameters = parameter_entries(self.topology, schema, Policy())
        routes = Router(self.topology, schema, Policy()).entries(down)
        wanted = {name: reconcile.encoded(parameters[name] + routes[name], schema) for name in routes}

        async def differs(target):
            async with reading(target) as reader:
                found = await reader.read(reconcile.question(wanted[target.name], schema))
            return reconcile.difference(reconcile.answer(e.table_entry for e in found), wanted[target.name])

        async with asyncio.timeout(PATIENCE_S):
            while True:
                # A switch that runs no program yet refuses to be read.
                with contextlib.suppress(RefusedError):
                    if not any(await asyncio.gather(*(differs(target) for target in self.targets))):
                        return
                await asyncio.sleep(0.02)


@contextlib.contextmanager
def fabric_of(folder, wiring=None):
    made = Fabric(folder, wiring or fattree(4, 10**9, 1000).links)
    command = [*_plait_switch(), "--fabric", str(folder / "fabric.json")]
    child = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=ROOT)
    try:
        assert child.stdout.readline() == "ready\n"
        yield made
    finally:
        child.terminate()
        child.communicate(timeout=10)


@pytest.mark.parametrize("name", ["ecmp", "spray", "ksp"])
async def test_failures_are_repaired_and_forgotten(tmp_path, programs, name):
    program = programs[name]
    with fabric_of(tmp_path) as fabric:
        async with keeping(tmp_path, fabric.topology, fabric.targets, program) as running:
            await running.settled()
            await fabric.comes_to_hold(program)
            fabric.ask(verb="link_set", link="s5:3", up=False)
            await fabric.comes_to_hold(program, down=fabric.links(("s1", "s5")))
            fabric.ask(verb="switch_set", switch="s2", up=False)
            away = fabric.links(("s1", "s5"), *(("s2", name) for name in ("s5", "s7", "s9", "s11")))
            async with asyncio.timeout(PATIENCE_S):
                while "all 4 links of s2 are down" not in running.texts("link"):
                    await asyncio.sleep(0.01)
            await running.settled()
            entries = Router(fabric.topology, read_schema(program), Policy()).entries(away)
            assert {s.name: len(s.routes) for s in running.keeper._switches.values() if s.name != "s2"} == {
                name: len(found) for name, found in entries.items() if name != "s2"
            }
            fabric.ask(verb="switch_set", switch="s2", up=True)
            fabric.ask(verb="link_set", link="s5:3", up=True)
            await fabric.comes_to_hold(program)
            assert "s1-s5 (s1-eth1:s5-eth3) is down" in running.texts("link")
            assert "s2: it had no program; loaded, and entries follow" in running.texts("switch")


async def test_a_controller_that_starts_during_a_failure_mends_it(tmp_path, programs):
    program = programs["ecmp"]
    with fabric_of(tmp_path) as fabric:
        async with keeping(tmp_path, fabric.topology, fabric.targets, program) as running:
            await running.settled()
        fabric.ask(verb="link_set", link="s5:3", up=False)
        fabric.ask(verb="switch_set", switch="s4", up=False)
        fabric.ask(verb="switch_set", switch="s4", up=True)
        async with keeping(tmp_path, fabric.topology, fabric.targets, program) as running:
            await running.settled()
            await fabric.comes_to_hold(program, down=fabric.links(("s1", "s5")))
        async with keeping(tmp_path, fabric.topology, fabric.targets, program) as running:
            await running.settled()
            assert running.keeper.report.written == 0


async def test_links_that_lead_elsewhere_are_told(tmp_path, programs):
    right = list(fattree(4, 10**9, 1000).links)
    ends = [{link.a, link.b} for link in right]
    one, other, gone = (ends.index(pair) for pair in ({"s1", "s5"}, {"s4", "s8"}, {"s2", "s7"}))
    swapped = list(right)
    swapped[one] = dataclasses.replace(right[one], b=right[other].b, port_b=right[other].port_b)
    swapped[other] = dataclasses.replace(right[other], b=right[one].b, port_b=right[one].port_b)
    del swapped[gone]
    with fabric_of(tmp_path, swapped) as fabric:
        async with keeping(tmp_path, fabric.topology, fabric.targets, programs["ecmp"]) as running:
            await running.told("s7 port 4 should lead")
            assert sorted(running.texts("wiring")) == [
                "s1 port 1 should lead to s5 port 3, and leads to s8 port 4",
                "s2 port 2 should lead to s7 port 4, and leads nowhere that answers",
                "s4 port 2 should lead to s8 port 4, and leads to s5 port 3",
                "s5 port 3 should lead to s1 port 1, and leads to s4 port 2",
                "s7 port 4 should lead to s2 port 2, and leads nowhere that answers",
                "s8 port 4 should lead to s4 port 2, and leads to s1 port 1",
            ]


def test_the_daemon_ends_with_its_laboratory_and_says_what_is_wrong(tmp_path, programs):
    with fabric_of(tmp_path) as fabric:
        (tmp_path / "topology.json").write_text(fabric.topology.to_json())
        lab = subprocess.Popen(["sleep", "60"])
        config = Config(
            tmp_path / "topology.json", programs["ecmp"], tuple(fabric.targets), Policy(weights=(1, 2)),
            tmp_path / "log", lab.pid,
        )  # fmt: skip
        assert Config.from_json(config.to_json()) == config
        (tmp_path / "config.json").write_text(config.to_json())
        command = [sys.executable, "-m", "controller.daemon", "--config", str(tmp_path / "config.json")]
        child = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=ROOT)
        report = read_ready_line(child.stdout.readline())
        assert report.switches == 20 and report.written == 348
        lab.send_signal(signal.SIGKILL)
        lab.wait()
        assert child.communicate(timeout=PATIENCE_S) == ("", None) and child.returncode == 0
        for name, text in (("p4info", "No such file"), ("topology", "No such file")):
            document = json.loads(config.to_json())
            if name == "topology":
                document["topology"] = "/nonexistent"
            else:
                document["program"]["p4info"] = "/nonexistent"
            (tmp_path / "config.json").write_text(json.dumps(document))
            done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, check=False)
            assert done.returncode == 1 and text in done.stderr and "Traceback" not in done.stderr

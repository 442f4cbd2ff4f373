"""Installing, verifying and editing against a fake switch, with the text of every error."""

import asyncio
import re

import finsy as fy
import pytest
from finsy.proto import p4r

from controller import arrays, counters, tables
from controller.control import Program, install
from controller.errors import ControllerError, EntryTextError, RefusedError, SwitchUnreachableError, VerifyError
from controller.policy import Policy
from controller.targets import Target, targets_of
from controller.tests.fake_switch import DENIED, FakeSwitch, serving
from controller.tests.programs import COUNTER, schema, write_program
from mininet_topos.tests.examples import dumbbell

TOPOLOGY = dumbbell()

CURVE = "set_red(kmin_bytes=8688, kmax_bytes=8688, slope_per_byte=0)"  # 8 frames of 1,086 bytes


class Fabric:
    """Two fake switches for the dumbbell, a program for them, and their targets."""

    def __init__(self, folder):
        self.program = write_program(folder)
        self.switches = [FakeSwitch(), FakeSwitch()]
        self.targets = []

    async def install(self, **more):
        return await install(TOPOLOGY, self.targets, self.program, **more)


@pytest.fixture
async def fabric(tmp_path):
    made = Fabric(tmp_path)
    async with serving(made.switches[0]) as first, serving(made.switches[1]) as second:
        made.targets = [Target("s1", first, 1), Target("s2", second, 1)]
        yield made


async def test_install_writes_and_verifies_everything(fabric):
    report = await fabric.install()
    # Per switch: own two hosts, the other network, the seed, three neighbours, three curves.
    assert (report.switches, report.inserted, report.modified, report.deleted) == (2, 2 * 9, 2, 0)
    assert report.verified == 2 * 10
    assert list(report.seconds) == ["routes", "program", "write", "verify"]
    assert [len(switch.entries) for switch in fabric.switches] == [10, 10]


async def test_install_again_writes_nothing_and_keeps_the_program(fabric):
    await fabric.install()
    report = await fabric.install()
    assert report.written == 0 and report.verified == 20
    assert [switch.loads for switch in fabric.switches] == [1, 1]


async def test_install_repairs_only_what_differs(fabric):
    await fabric.install()
    switch, target = fabric.switches[0], fabric.targets[0]
    await tables.table_del(target, "ipv4_lpm", ["dst_addr=10.0.2.0/24"])
    await tables.table_set(target, "red_curve", ["egress_port=1"], "NoAction")
    await tables.table_add(target, "dmac", ["dst_addr=02:00:00:00:00:09"], "NoAction")
    report = await fabric.install()
    assert (report.inserted, report.modified, report.deleted) == (1, 1, 1)
    assert len(switch.entries) == 10


async def test_install_with_another_seed_changes_the_default_action(fabric):
    await fabric.install()
    report = await fabric.install(policy=Policy(seed=9))
    assert (report.inserted, report.modified, report.deleted) == (0, 2, 0)


async def test_missing_entry_is_named(fabric):
    lost = schema().tables["red_curve"].id
    fabric.switches[1].distort = lambda entry: (
        None if entry.table_id == lost and entry.match[0].exact.value == b"\x02" else entry
    )
    text = rf"s2 lacks an entry: red_curve standard_metadata.egress_port=2 -> {re.escape(CURVE)}"
    with pytest.raises(VerifyError, match=text):
        await fabric.install()


async def test_changed_action_is_named(fabric):
    def distort(entry):
        changed = p4r.TableEntry()
        changed.CopyFrom(entry)
        if entry.is_default_action:
            changed.action.action.params[0].value = b"\x07"
        return changed

    fabric.switches[0].distort = distort
    text = r"s1 has another action: switch_seed default -> set_seed\(odd_multiplier=\d+\) was written, "
    with pytest.raises(VerifyError, match=text + r"set_seed\(odd_multiplier=7\) is there"):
        await fabric.install()


async def test_unverified_install_does_not_read_back(fabric):
    lost = schema().tables["red_curve"].id
    fabric.switches[1].distort = lambda entry: None if entry.table_id == lost else entry
    report = await fabric.install(verify=False)
    assert report.verified == 0


async def test_refused_write_names_switch_entry_and_reason(fabric):
    lpm = schema().tables["ipv4_lpm"].id

    def refuse(update):
        entry = update.entity.table_entry
        return (DENIED, "not today") if entry.table_id == lpm and entry.match[0].lpm.prefix_len == 24 else None

    fabric.switches[1].refuse = refuse
    with pytest.raises(RefusedError) as refused:
        await fabric.install()
    where = f"s2 ({fabric.targets[1].address}) refused "
    entry = "insert ipv4_lpm hdr.ipv4.dst_addr=10.0.1.0/24 -> {forward(port=3)}"
    rest = ": PERMISSION_DENIED not today"
    assert str(refused.value) == where + entry + rest


async def test_many_refusals_are_counted(fabric):
    fabric.switches[0].refuse = lambda update: (DENIED, "no")
    with pytest.raises(RefusedError, match="and 5 more"):
        await fabric.install()


async def test_unreachable_switches_are_all_named(fabric):
    targets = [Target("s1", "127.0.0.1:1", 1), Target("s2", "127.0.0.1:2", 1)]
    with pytest.raises(SwitchUnreachableError) as refused:
        await install(TOPOLOGY, targets, fabric.program)
    assert "s1 (127.0.0.1:1) does not answer P4Runtime" in str(refused.value)
    assert "s2 (127.0.0.1:2) does not answer P4Runtime" in str(refused.value)


async def test_another_primary_with_a_higher_id_is_named(fabric):
    options = fy.SwitchOptions(initial_election_id=77)
    async with fy.Switch("other", fabric.targets[0].address, options):
        with pytest.raises(
            RefusedError, match=r"s1 .*: another controller, with the election id 77, is primary; ours is 10"
        ):
            await fabric.install()


@pytest.mark.parametrize(("content", "text"), [(None, "No such file"), ("tables { colour: 3 }", "is not P4Info")])
async def test_unreadable_p4info(fabric, tmp_path, content, text):
    path = tmp_path / "other.txtpb"
    if content is not None:
        path.write_text(content)
    with pytest.raises(ControllerError, match=text):
        await install(TOPOLOGY, fabric.targets, Program(path, fabric.program.json))


# --- the verbs ---


async def test_table_list(fabric):
    await fabric.install()
    rows = {row.table: row for row in await tables.table_list(fabric.targets[0])}
    routes = rows["ingress.balance.ipv4_lpm"]
    assert (routes.keys, routes.actions, routes.size, routes.entries) == (
        [("hdr.ipv4.dst_addr", "lpm", 32)],
        ["forward"],
        4096,
        3,
    )
    assert rows["ingress.balance.per_flow.switch_seed"].entries == 0


async def test_table_dump_text(fabric):
    await fabric.install()
    rows = await tables.table_dump(fabric.targets[0], "red_curve")
    assert tables.as_text(rows).splitlines() == [
        "table      match                            action",
        "red_curve  standard_metadata.egress_port=1  " + CURVE,
        "red_curve  standard_metadata.egress_port=2  " + CURVE,
        "red_curve  standard_metadata.egress_port=3  " + CURVE,
    ]


async def test_table_dump_of_everything_shows_defaults(fabric):
    await fabric.install()
    rows = await tables.table_dump(fabric.targets[0])
    assert len(rows) == 10
    (seed,) = [row for row in rows if row.default]
    assert seed.action.startswith("set_seed(odd_multiplier=")
    assert "default" in tables.as_text(rows)
    assert tables.as_json(rows)[0]["table"] == "egress.mark.red_curve"


async def test_add_set_del_beside_a_connected_controller(fabric):
    await fabric.install()
    target, switch = fabric.targets[0], fabric.switches[0]
    options = fy.SwitchOptions(initial_election_id=10)
    async with fy.Switch("lab", target.address, options) as controller:
        assert controller.is_primary
        zoo = ["ingress_port=1", "ether_type=0x0800&&&0xff00", "l4_dst_port=1..5"]
        await tables.table_add(target, "zoo", zoo, "pair(10.0.0.1, 7)", priority=5)
        await tables.table_set(target, "zoo", zoo, "NoAction", priority=5)
        (row,) = await tables.table_dump(target, "zoo")
        assert row.match == {
            "hdr.ethernet.ether_type": "0x800&&&0xff00",
            "hdr.ipv4.src_addr": "*",
            "meta.l4_dst_port": "1..5",
            "hdr.ipv4.protocol": "*",
            "standard_metadata.ingress_port": "1",
        }
        assert (row.priority, row.action) == (5, "NoAction()")
        await tables.table_del(target, "zoo", zoo, priority=5)
        assert await tables.table_dump(target, "zoo") == []
        # The controller is primary again, and can write.
        await asyncio.wait_for(_until(lambda: controller.is_primary), 5)
        await controller.write(
            [+fy.P4TableEntry("red_curve", match=fy.Match(egress_port=9), action=fy.Action("NoAction"))]
        )
    assert len(switch.entries) == 11


async def _until(condition):
    while not condition():
        await asyncio.sleep(0.01)


async def test_default_changes_the_default_action(fabric):
    await fabric.install()
    await tables.table_default(fabric.targets[0], "switch_seed", "set_seed(9)")
    (row,) = await tables.table_dump(fabric.targets[0], "switch_seed")
    assert (row.default, row.action) == (True, "set_seed(odd_multiplier=9)")


@pytest.mark.parametrize(
    ("verb", "arguments", "message"),
    [
        (tables.table_add, ("ipv4_lmp", [], "NoAction"), "no table named 'ipv4_lmp': did you mean 'ipv4_lpm'?"),
        (
            tables.table_add,
            ("switch_seed", [], "set_seed(1)"),
            "switch_seed has no keys and so no entries: `default` changes",
        ),
        (tables.table_add, ("dmac", ["dst_addr=1"], " "), "dmac: an action is missing; there are deliver, NoAction"),
        (tables.table_add, ("zoo", ["ingress_port=1"], "NoAction"), "zoo needs a priority of at least 1"),
        (tables.table_dump, ("dmca",), "no table named 'dmca': did you mean 'dmac'?"),
        (arrays.counter_show, ("port_rxx",), "no counter named 'port_rxx': did you mean 'port_rx'?"),
    ],
)
async def test_misspelt_verbs(fabric, verb, arguments, message):
    await fabric.install()
    with pytest.raises(EntryTextError) as refused:
        await verb(fabric.targets[0], *arguments)
    assert str(refused.value).startswith(message)


async def test_delete_of_what_is_not_there(fabric):
    await fabric.install()
    with pytest.raises(
        RefusedError, match="refused delete dmac hdr.ethernet.dst_addr=00:00:00:00:00:01: NOT_FOUND"
    ):
        await tables.table_del(fabric.targets[0], "dmac", ["dst_addr=1"])


async def test_a_switch_without_a_program(fabric):
    with pytest.raises(RefusedError, match=r"device 1 at s1 \(.*\) runs no program yet"):
        await tables.table_list(fabric.targets[0])
    with pytest.raises(RefusedError, match=r"device 1 at s1 \(.*\) runs no program yet"):
        await tables.table_add(fabric.targets[0], "dmac", ["dst_addr=1"], "NoAction")


async def test_port_counters(fabric):
    await fabric.install()
    data = p4r.CounterData(packet_count=3, byte_count=300)
    cells = [(1, 4, data), (2, 4, data), (2, 9, data), (1, 5, p4r.CounterData())]
    fabric.switches[0].counters = [
        p4r.CounterEntry(counter_id=COUNTER | number, index=p4r.Index(index=index), data=value)
        for number, index, value in cells
    ]
    found = await counters.read_port_counters(fabric.targets)
    assert found == {
        "s1": {4: counters.PortCounters(3, 300, 3, 300), 9: counters.PortCounters(tx_packets=3, tx_bytes=300)},
        "s2": {},
    }


def test_targets_have_the_fabric_s_addresses():
    assert [(t.name, t.address, t.device_id) for t in targets_of(TOPOLOGY)] == [
        ("s1", "127.0.0.1:9559", 1),
        ("s2", "127.0.0.1:9560", 2),
    ]

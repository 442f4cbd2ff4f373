"""Dump and restore: what a switch held comes back, only differences are written, and bad documents are refused."""

import json
import random

import finsy as fy
import pytest

from controller import tables
from controller.connection import controlling, write
from controller.control import install
from controller.errors import ControllerError
from controller.snapshot import FORMAT, dump_all, restore
from controller.tests.test_live import load, programs, star, target  # noqa: F401 - fixtures
from controller.writing import options


def clone():
    return fy.P4CloneSessionEntry(7, replicas=[1, 2])


def multicast(*ports):
    return fy.P4MulticastGroupEntry(3, replicas=list(ports))


async def _write(target, updates):  # noqa: F811
    async with controlling(target, options()) as switch:
        await write(target, switch, updates)


async def test_everything_comes_back_and_nothing_is_written_twice(target, programs):  # noqa: F811
    await load(target, programs["zoo"])
    await tables.table_add(target, "routes", ["ipv4_addr=10.0.0.0/8"], "{forward(1)*2, forward(2)}")
    await tables.table_add(target, "zoo", ["ingress_port=3", "l4_port=1..5"], "forward(4)", priority=10)
    await tables.table_default(target, "keyless", "forward(5)")
    await _write(target, [+clone(), +multicast(1, 3)])
    saved = json.loads(json.dumps(await dump_all([target])))
    assert await restore([target], saved) == {"s1": []}

    await tables.table_del(target, "zoo", ["ingress_port=3", "l4_port=1..5"], priority=10)
    await tables.table_set(target, "routes", ["ipv4_addr=10.0.0.0/8"], "forward(3)")
    await tables.table_add(target, "routes", ["ipv4_addr=11.0.0.0/8"], "forward(3)")
    await tables.table_default(target, "keyless", "NoAction")
    await _write(target, [-clone(), ~multicast(2)])
    planned = await restore([target], saved, dry_run=True)
    assert len(planned["s1"]) == 6
    assert await dump_all([target]) != saved
    assert await restore([target], saved) == planned
    assert await dump_all([target]) == saved


async def test_a_fabric_from_nothing(target, programs):  # noqa: F811
    await install(star(), [target], programs["ecmp"])
    saved = await dump_all([target])
    await load(target, programs["zoo"])
    await load(target, programs["ecmp"])
    # In a document, order means nothing.
    random.Random(1).shuffle(saved["switches"]["s1"]["entities"])
    assert len((await restore([target], saved))["s1"]) == 10
    report = await install(star(), [target], programs["ecmp"])
    assert report.written == 0


async def test_documents_that_cannot_be_restored_are_refused(target, programs):  # noqa: F811
    await install(star(), [target], programs["ecmp"])
    good = await dump_all([target])
    await load(target, programs["zoo"])
    program = good["switches"]["s1"]["program"]
    for document, text in (
        ([], f"this is no dump of tables: its format must be '{FORMAT}'"),
        ({"format": FORMAT}, "switches: must be an object with a state for each switch"),
        ({"format": FORMAT, "switches": {"s1": 5}}, "switches.s1: must be an object with a program and entities"),
        ({"format": FORMAT, "switches": {"s1": {"program": program}}}, "switches.s1.entities: must be a list"),
        (_with(program, {"colour": 1}), "switches.s1.entities[0]: Message type"),
        (_with(program, 7), "switches.s1.entities[0]: "),
        (_with(program, {"register_entry": {}}), "switches.s1.entities[0]: is no entity that a dump holds"),
        ({"format": FORMAT, "switches": {"s9": good["switches"]["s1"]}}, "the dump has a switch 's9', which is not"),
        (good, "s1 runs another program than the dump was made of"),
    ):
        with pytest.raises(ControllerError) as refused:
            await restore([target], document)
        assert str(refused.value).startswith(text)


def _with(program, entity):
    return {"format": FORMAT, "switches": {"s1": {"program": program, "entities": [entity]}}}

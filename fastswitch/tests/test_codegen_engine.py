"""The generated code under the real engine: its tables, its traffic manager, its services."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pytest

from fastswitch.codegen import compile_json, initial_state, load_program
from fastswitch.interpreter import Interpreter
from fastswitch.tests.codegen_programs import action, assign, call, const, field, one_action, op, param, program, table
from fastswitch.tests.test_codegen_ecmp import FIXTURE, LPM, action_id, roce_frame

engine = pytest.importorskip("engine", reason="the engine is not built", exc_type=ImportError)

THRESHOLD = "egress.mark.ecn_threshold"


@pytest.fixture(scope="session")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("engine")


class OneSwitch:
    """A switch in virtual time that runs a program; what it sends on ports 0 to 9 is seen."""

    def __init__(self, document: dict[str, Any], folder: Path) -> None:
        self.fabric = engine.Fabric("virtual", seed=1)
        self.switch = self.fabric.add_switch("s1", 1, cpu_port=510)
        self.switch.load(compile_json(document, folder))
        self.program = load_program(document)
        state = initial_state(self.program)
        for default in state.defaults:
            self.switch.default_set(default.table, ("action", default.action, default.params))
        for entry in state.entries:
            self.switch.entry_insert(
                entry.table, entry.key, entry.mask, entry.prefix_len, entry.range_high, entry.priority, entry.target
            )
        for port in range(10):
            self.switch.tap(port)

    def __enter__(self) -> OneSwitch:
        return self

    def __exit__(self, *_: object) -> None:
        self.fabric.close()

    def send(self, frame: bytes, port: int = 1) -> list[tuple[int, str]]:
        self.switch.inject(port, frame)
        self.fabric.run()
        self.events = self.switch.poll_events(0)
        return [(each.port, each.frame.hex()) for each in self.events if isinstance(each, engine.Sent)]

    def table(self, name: str) -> int:
        return next(each.index for each in self.program.tables if each.name == name)


def expected(reference: Interpreter, frame: bytes, port: int = 1) -> list[tuple[int, str]]:
    packet = reference.parse(frame, {"ingress_port": port, "packet_length": len(frame)})
    reference.run("ingress", packet)
    out = reference.standard_value(packet, "egress_spec")
    if out == 511:
        return []
    reference.standard(packet, "egress_port", out)
    reference.standard(packet, "egress_spec", 0)
    reference.run("egress", packet)
    if reference.standard_value(packet, "egress_spec") == 511:
        return []
    return [(out, reference.deparse(packet).hex())]


def test_ecmp_through_the_engine(folder: Path) -> None:
    document = json.loads(FIXTURE.read_text())
    reference = Interpreter(document)
    forward = action_id(document, "forward")
    with OneSwitch(document, folder) as one:
        index = next(each.index for each in one.program.actions if each.id == forward)
        members = []
        for port in range(1, 5):
            params = (1).to_bytes(6, "big") + (256 + port).to_bytes(6, "big") + port.to_bytes(2, "big")
            members.append(one.switch.member_create(index, params))
        group = one.switch.group_create()
        one.switch.group_set(group, [(member, 1) for member in members])
        one.switch.entry_insert(one.table(LPM), bytes([10, 0, 0, 0]), None, 8, None, 0, ("group", group))
        reference.add_entry(
            LPM, [("lpm", 0x0A000000, 8)], forward, [], group=[(forward, [1, 256 + port, port]) for port in range(1, 5)]
        )
        pick = random.Random(1)
        seen = set()
        for number in range(200):
            frame = bytearray(roce_frame(number))
            for _ in range(pick.randrange(2)):
                frame[pick.randrange(len(frame))] ^= 1 << pick.randrange(8)
            if pick.random() < 0.1:
                frame = frame[: pick.randrange(len(frame))]
            if len(frame) < 14:
                continue
            got = one.send(bytes(frame))
            assert got == expected(reference, bytes(frame))
            seen |= {port for port, _ in got}
        assert seen == {1, 2, 3, 4}


def test_matches_and_constant_entries(folder: Path) -> None:
    def entry(key: dict[str, Any], value: str, priority: int) -> dict[str, Any]:
        return {
            "match_key": [key, {"match_type": "exact", "key": "0x1"}],
            "action_entry": {"action_id": 0, "action_data": [value]},
            "priority": priority,
        }

    def rows(kind: str, entries: list[dict[str, Any]]) -> dict[str, Any]:
        keys = [(kind, "h", "a"), ("exact", "h", "b")]
        return table(kind, keys, [(0, "set")], default=(0, ["0x63"]), entries=entries)

    ternary = {"match_type": "ternary", "key": "0x1000", "mask": "0xf000"}
    anything = {"match_type": "ternary", "key": "0x0", "mask": "0x0"}
    exactly = {"match_type": "ternary", "key": "0x1234", "mask": "0xffff"}
    programs = {
        "ternary": [entry(exactly, "0x1", 1), entry(ternary, "0x2", 2), entry(anything, "0x3", 3)],
        "lpm": [
            entry({"match_type": "lpm", "key": "0x1200", "prefix_length": 8}, "0x1", 1),
            entry({"match_type": "lpm", "key": "0x0000", "prefix_length": 0}, "0x2", 2),
            entry({"match_type": "lpm", "key": "0x1234", "prefix_length": 16}, "0x3", 3),
        ],
        "range": [
            entry({"match_type": "range", "start": "0x1000", "end": "0x1234"}, "0x1", 1),
            entry({"match_type": "range", "start": "0x0", "end": "0x1fff"}, "0x2", 2),
        ],
    }  # fmt: skip
    for kind, entries in programs.items():
        document = program(
            {"h": [["a", 16], ["b", 8], ["out", 16]]},
            actions=[action(0, "set", [assign(field("h", "out"), param(0))], [("value", 16)])],
            ingress=[rows(kind, entries)],
        )
        reference = Interpreter(document)
        with OneSwitch(document, folder) as one:
            for value in (0x1234, 0x1235, 0x1200, 0x1100, 0x0FFF, 0x2000, 0xFFFF):
                for other in (1, 2):
                    frame = value.to_bytes(2, "big") + bytes([other]) + b"\xee" * 20
                    assert one.send(frame) == expected(reference, frame), (kind, hex(value), other)


def test_digests_logs_and_truncation(folder: Path) -> None:
    vector = {"type": "parameters_vector", "value": [field("h", "v")]}
    body = [
        call("generate_digest", const(1), const(1)),
        call("log_msg", {"type": "string", "value": "v is {}"}, vector),
        call("truncate", const(15)),
        assign(field("standard_metadata", "egress_spec"), op("&", field("h", "v"), const(7))),
    ]
    lists = [{"id": 1, "name": "d", "elements": [field("h", "v"), field("h", "w")]}]
    document = one_action({"h": [["v", 4], ["w", 12]]}, body, learn_lists=lists)
    with OneSwitch(document, folder) as one:
        frame = bytes.fromhex("3abc") + bytes(range(30))
        assert one.send(frame) == [(3, frame[:15].hex())]
        assert [each.fields for each in one.events if isinstance(each, engine.Digest)] == [bytes([3, 0x0A, 0xBC])]
        assert [each.text for each in one.events if isinstance(each, engine.Log)] == ["v is 3"]


def _with_register(name: str) -> dict[str, Any]:
    """Sends packets back by the port they came from, with cell 2 of the register in them."""
    read = call("register_read", field("h", "v"), {"type": "register_array", "value": name}, const(2))
    body = [read, assign(field("standard_metadata", "egress_spec"), field("standard_metadata", "ingress_port"))]
    registers = [{"name": name, "id": 0, "bitwidth": 32, "size": 4}]
    return one_action({"h": [["v", 32]]}, body, register_arrays=registers)


@pytest.mark.parametrize(
    ("name", "seen"),
    [
        ("plait.queue_packets", 3),
        ("ingress.plait.queue_packets", 3),
        ("main.lb.plait.queue_bytes", 60),
        ("complait.queue_packets", 0),
        ("plait_queue_packets", 0),
    ],
)
def test_live_registers_are_known_by_the_end_of_their_names(name: str, seen: int, folder: Path) -> None:
    with OneSwitch(_with_register(name), folder) as one:
        one.switch.hold_queue(2, hold=True)
        for _ in range(3):
            assert one.send(bytes(20), port=2) == []
        assert one.send(bytes(20), port=1) == [(1, (seen.to_bytes(4, "big") + bytes(16)).hex())]

"""The C harness from Python: a generated pipeline and the interpreter behind one interface, to compare them."""

from __future__ import annotations

import ctypes
import functools
import subprocess
from pathlib import Path
from typing import Any, Literal

from fastswitch.codegen import build, compile_json, initial_state, load_program
from fastswitch.codegen.actions import param_offsets
from fastswitch.interpreter import Interpreter

HERE = Path(__file__).parent
ENGINE = HERE.parents[1] / "engine"
STD32 = (
    *("ingress_port", "egress_spec", "egress_port", "instance_type", "packet_length", "enq_timestamp", "enq_qdepth"),
    *("deq_timedelta", "deq_qdepth", "mcast_grp", "egress_rid", "checksum_error", "parser_error", "priority"),
)
REQUESTS = (
    *("clone_session", "clone_field_list", "resubmit_field_list", "recirculate_field_list", "digest_list"),
    "truncate_to",
)


build.TOLERATE_WARNINGS = False  # here a warning is a mistake of the generator


class Std(ctypes.Structure):
    _fields_ = [
        *[(name, ctypes.c_uint32) for name in STD32],
        ("ingress_global_timestamp", ctypes.c_uint64),
        ("egress_global_timestamp", ctypes.c_uint64),
        *[(name, ctypes.c_uint32) for name in REQUESTS],
    ]


class Counter(ctypes.Structure):
    _fields_ = [("cells", ctypes.POINTER(ctypes.c_uint64)), ("size", ctypes.c_uint32)]


class Register(ctypes.Structure):
    _fields_ = [
        ("cells", ctypes.POINTER(ctypes.c_uint8)),
        ("size", ctypes.c_uint32),
        ("cell_bytes", ctypes.c_uint32),
    ]


class Instance(ctypes.Structure):
    _fields_ = [
        ("pipeline", ctypes.c_void_p),
        ("runtime", ctypes.c_void_p),
        ("tables", ctypes.c_void_p),
        ("counters", ctypes.POINTER(Counter)),
        ("registers", ctypes.POINTER(Register)),
        ("meters", ctypes.c_void_p),
        ("now_us", ctypes.c_uint64),
        ("now_ns", ctypes.c_uint64),
        ("drop_port", ctypes.c_uint32),
    ]


@functools.cache
def harness(folder: Path) -> ctypes.CDLL:
    target = folder / "harness.so"
    source = HERE / "codegen_harness.c"
    subprocess.run(
        ["gcc", "-std=gnu11", "-O2", "-g", "-fPIC", "-shared", "-Wall", "-Wextra", "-Werror", f"-I{ENGINE}"]
        + ["-o", str(target), str(source)],
        check=True,
    )
    return declare(ctypes.CDLL(str(target)))


def declare(library: ctypes.CDLL) -> ctypes.CDLL:
    """Gives the harness's functions in `library` their types."""
    pointer, bytes_, u32 = ctypes.c_void_p, ctypes.c_char_p, ctypes.c_uint32
    signatures: dict[str, tuple[Any, list[Any]]] = {
        "harness_open": (pointer, [bytes_]),
        "harness_default": (None, [pointer, u32, u32, bytes_, u32]),
        "harness_entry": (
            pointer,
            [pointer, u32, bytes_, bytes_, bytes_, ctypes.c_int64, u32, bytes_, u32],
        ),
        "harness_group": (None, [pointer]),
        "harness_group_add": (None, [pointer, u32, bytes_, u32]),
        "harness_rule_counter": (None, [pointer, ctypes.c_uint64 * 2]),
        "harness_start": (None, [pointer, bytes_, u32]),
        "harness_std": (ctypes.POINTER(Std), [pointer]),
        "harness_instance": (ctypes.POINTER(Instance), [pointer]),
        "harness_run": (None, [pointer, ctypes.c_char]),
        "harness_copy_field_list": (None, [pointer, u32]),
        "harness_reset_metadata": (None, [pointer]),
        "harness_frame": (u32, [pointer, bytes_, u32]),
        "harness_log": (ctypes.c_char_p, [pointer]),
        "harness_digest": (u32, [pointer, bytes_, ctypes.POINTER(u32)]),
        "harness_meter_color": (None, [pointer, u32, u32, ctypes.c_uint8]),
        "harness_bench": (ctypes.c_double, [pointer, bytes_, u32, u32, u32]),
        "harness_close": (None, [pointer]),
    }
    for name, (result, arguments) in signatures.items():
        function = getattr(library, name)
        function.restype, function.argtypes = result, arguments
    return library


class Compiled:
    """A program as generated code."""

    def __init__(
        self, document: dict[str, Any], folder: Path, sanitize: bool = False, library: ctypes.CDLL | None = None
    ) -> None:
        self.program = load_program(document)
        self.library = library or harness(folder)
        self.path = compile_json(document, folder / "cache", sanitize=sanitize)
        self.handle = self.library.harness_open(str(self.path).encode())
        assert self.handle
        state = initial_state(self.program)
        for default in state.defaults:
            words = self._words_of(default.action, self._split(default.action, default.params))
            self.library.harness_default(self.handle, default.table, default.action, words, len(words))
        for entry in state.entries:
            table = self.program.tables[entry.table]
            mask = entry.mask or b"\xff" * len(entry.key)
            rank = entry.priority
            if entry.prefix_len is not None:
                mask, rank = self._prefix_mask(table, entry.prefix_len), entry.prefix_len
            words = self._words_of(entry.action, self._split(entry.action, entry.params))
            high = entry.range_high or entry.key
            self.library.harness_entry(
                self.handle, entry.table, entry.key, mask, high, rank, entry.action, words, len(words)
            )

    def close(self) -> None:
        self.library.harness_close(self.handle)

    @staticmethod
    def _prefix_mask(table: Any, length: int) -> bytes:
        mask = b""
        for key in table.keys:
            size = (key.width + 7) // 8
            ones = (1 << key.width) - 1
            if key.match == "lpm":
                ones ^= (1 << (key.width - length)) - 1
            mask += ones.to_bytes(size, "big")
        return mask

    def _split(self, action: int, params: bytes) -> list[int]:
        found = []
        for param in self.program.actions[action].params:
            size = (param.width + 7) // 8
            found.append(int.from_bytes(params[:size], "big"))
            params = params[size:]
        return found

    def _words_of(self, action: int, params: list[int]) -> bytes:
        described = self.program.actions[action]
        offsets, total = param_offsets(described)
        words = bytearray(total)
        for param, offset, value in zip(described.params, offsets, params, strict=True):
            size = 8 if param.width <= 64 else (param.width + 7) // 8
            words[offset : offset + size] = value.to_bytes(size, "little" if param.width <= 64 else "big")
        return bytes(words)

    def _action(self, identity: int) -> int:
        return next(action.index for action in self.program.actions if action.id == identity)

    def add_entry(
        self,
        table: str,
        match: list[tuple[Any, ...]],
        action: int,
        params: list[int],
        priority: int = 0,
        group: list[tuple[int, list[int]]] | None = None,
    ) -> Any:
        described = next(each for each in self.program.tables if each.name == table)
        low = mask = high = b""
        rank = priority
        for key, each in zip(described.keys, match, strict=True):
            size, ones = (key.width + 7) // 8, (1 << key.width) - 1
            first = last = each[1]
            if each[0] == "lpm":
                ones ^= (1 << (key.width - each[2])) - 1
                rank = priority or each[2]
                first = last = first & ones
            elif each[0] == "ternary":
                ones = each[2]
                first = last = first & ones
            elif each[0] == "range":
                last = each[2]
            low += first.to_bytes(size, "big")
            high += last.to_bytes(size, "big")
            mask += ones.to_bytes(size, "big")
        index = self._action(action)
        words = self._words_of(index, params) if group is None else b""
        rule = self.library.harness_entry(self.handle, described.index, low, mask, high, rank, index, words, len(words))
        if group is not None:
            self.library.harness_group(rule)
            for member, member_params in group:
                member_index = self._action(member)
                words = self._words_of(member_index, member_params)
                self.library.harness_group_add(rule, member_index, words, len(words))
        return rule

    def add_value(self, name: str, key: bytes) -> None:
        index = next(each.index for each in self.program.value_sets if each.name == name)
        table = len(self.program.tables) + index
        ones = b"\xff" * len(key)
        self.library.harness_entry(self.handle, table, key, ones, key, 0, len(self.program.actions), b"", 0)

    def start(self, frame: bytes, **standard: int) -> None:
        self.library.harness_start(self.handle, frame, len(frame))
        for name, value in standard.items():
            setattr(self.std, name, value)

    @property
    def std(self) -> Any:
        return self.library.harness_std(self.handle).contents

    @property
    def instance(self) -> Any:
        return self.library.harness_instance(self.handle).contents

    def run(self, steps: str) -> None:
        for step in steps:
            self.library.harness_run(self.handle, step.encode())

    def frame(self) -> bytes:
        room = ctypes.create_string_buffer(16384)
        length = self.library.harness_frame(self.handle, room, len(room))
        return room.raw[:length]

    def log(self) -> list[str]:
        return self.library.harness_log(self.handle).decode().splitlines()

    def digest(self) -> tuple[int, bytes]:
        room, length = ctypes.create_string_buffer(8192), ctypes.c_uint32()
        number = self.library.harness_digest(self.handle, room, ctypes.byref(length))
        return number, room.raw[: length.value]

    def counter(self, name: str, cell: int) -> list[int]:
        index = next(each.index for each in self.program.counters if each.name == name)
        cells = self.instance.counters[index].cells
        return [cells[2 * cell], cells[2 * cell + 1]]

    def register(self, name: str) -> list[int]:
        described = next(each for each in self.program.registers if each.name == name)
        found = self.instance.registers[described.index]
        raw = bytes(found.cells[: described.size * found.cell_bytes])
        order: Literal["little", "big"] = "little" if described.width <= 64 else "big"
        return [int.from_bytes(raw[i : i + found.cell_bytes], order) for i in range(0, len(raw), found.cell_bytes)]

    def bench(self, frame: bytes, port: int, rounds: int) -> float:
        return self.library.harness_bench(self.handle, frame, len(frame), port, rounds)


COMPARED_STD = (
    "egress_spec",
    "mcast_grp",
    "checksum_error",
    "parser_error",
    "instance_type",
    "packet_length",
    "egress_rid",
    "priority",
)


def compare(compiled: Compiled, reference: Interpreter, frame: bytes, standard: dict[str, int]) -> dict[str, Any]:
    """Runs a frame through both, asserts that they agree after each step, and returns what came out."""
    standard = {"packet_length": len(frame), **standard}
    compiled.start(frame, **standard)
    packet = reference.parse(frame, standard)
    compiled.run("p")
    _equal("parser_error", compiled.std.parser_error, packet.parser_error)
    _equal("checksum_error", compiled.std.checksum_error, packet.checksum_error)
    compiled.run("i")
    reference.run("ingress", packet)
    _same_std(compiled, reference, packet)
    port = compiled.std.egress_spec
    egress = {"egress_port": port, "enq_qdepth": standard.get("enq_qdepth", 0), "egress_spec": 0}
    for name, value in egress.items():
        setattr(compiled.std, name, value)
        reference.standard(packet, name, value)
    compiled.run("e")
    reference.run("egress", packet)
    _same_std(compiled, reference, packet)
    dropped = compiled.std.egress_spec
    compiled.run("d")
    expected = reference.deparse(packet)
    got = compiled.frame()
    _equal("the frame that leaves", got.hex(), expected.hex())
    return {"port": port, "egress_spec": dropped, "frame": got, "packet": packet}


def _same_std(compiled: Compiled, reference: Interpreter, packet: Any) -> None:
    std = compiled.std
    for name in COMPARED_STD:
        if any(each[0] == name for each in reference.headers.get("standard_metadata", {"fields": []})["fields"]):
            _equal(name, getattr(std, name), reference.standard_value(packet, name))
    requests = packet.requests
    if "clone" in requests:
        _equal("clone_session", std.clone_session, 0x80000000 | requests["clone"][0])
        _equal("clone_field_list", std.clone_field_list, requests["clone"][1])
    for request in ("resubmit", "recirculate"):
        number = requests.get(request, 0)
        _equal(request, getattr(std, f"{request}_field_list"), number + 1 if number else 0)
    _equal("truncate_to", std.truncate_to, requests["truncate"] + 1 if "truncate" in requests else 0)


def _equal(what: str, code: Any, interpreter: Any) -> None:
    assert code == interpreter, f"{what}: {code} in code, {interpreter} in the interpreter"

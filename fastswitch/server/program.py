"""A forwarding pipeline config as a program: P4Info and JSON checked against each other, and the shared object.

Programs do not change, so switches that run the same config share one: a fabric of eighty switches compiles once.
"""

import asyncio
import hashlib
import logging
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from finsy.proto import p4i, p4r

from fastswitch.codegen import model
from fastswitch.codegen.errors import ProgramError
from fastswitch.codegen.load import load_program
from fastswitch.server.errors import invalid_argument
from fastswitch.server.schema import Schema, build_schema

_log = logging.getLogger(__name__)


@dataclass(frozen=True, eq=False)
class Program:
    """What a switch needs to run a config."""

    code: model.Program
    schema: Schema
    shared_object: Path


class ProgramStore:
    """Builds programs in a thread, so that the server keeps answering, and keeps the last ones."""

    def __init__(self, compile_json: Callable[[bytes], Path] | None = None, keep: int = 16) -> None:
        self._compile_json = compile_json or _compile_json
        self._keep = keep
        self._programs: OrderedDict[bytes, asyncio.Task[Program]] = OrderedDict()

    async def build(self, config: p4r.ForwardingPipelineConfig) -> Program:
        """The program of a config; INVALID_ARGUMENT says what is wrong with it."""
        json = device_json(config.p4_device_config)
        return await self.build_json(json, config.p4info)

    async def build_json(self, json: bytes, p4info: p4i.P4Info) -> Program:
        """As `build`; with an empty P4Info the program runs, but P4Runtime sees none of it."""
        key = hashlib.sha256(p4info.SerializeToString(deterministic=True) + b"\0" + json).digest()
        task = self._programs.get(key)
        if task is None:
            copy = p4i.P4Info()
            copy.CopyFrom(p4info)
            task = asyncio.create_task(asyncio.to_thread(self._build, json, copy))
            self._programs[key] = task
            while len(self._programs) > self._keep:
                self._programs.popitem(last=False)
        self._programs.move_to_end(key)
        try:
            return await asyncio.shield(task)
        except asyncio.CancelledError:
            raise
        except BaseException:
            self._programs.pop(key, None)
            raise

    def _build(self, json: bytes, p4info: p4i.P4Info) -> Program:
        try:
            code = load_program(json)
            schema = build_schema(p4info, code)
            shared_object = self._compile_json(json)
        except ProgramError as error:
            invalid_argument(f"p4_device_config: {error}")
        _log.info("program %s: %s", code.name, shared_object)
        return Program(code, schema, shared_object)


def _compile_json(json: bytes) -> Path:
    from fastswitch.codegen import compile_json

    return compile_json(json)


def device_json(device_config: bytes) -> bytes:
    """The BMv2 JSON in a `p4_device_config`: as it is, or wrapped in the old `p4.tmp.P4DeviceConfig`."""
    start = device_config[:64].lstrip()
    if start.startswith(b"{"):
        return device_config
    if not device_config:
        invalid_argument("p4_device_config is empty: the BMv2 JSON is missing")
    wrapped = _bytes_field(device_config, _DEVICE_DATA)
    if wrapped is None or not wrapped[:64].lstrip().startswith(b"{"):
        invalid_argument("p4_device_config is neither a BMv2 JSON nor a p4.tmp.P4DeviceConfig that holds one")
    return wrapped


_DEVICE_DATA = 3  # P4DeviceConfig: bool reassign = 1; Extras extras = 2; bytes device_data = 3


def _bytes_field(data: bytes, number: int) -> bytes | None:
    """The last length-delimited field of a serialized message, or None if it is absent or malformed."""
    position = 0
    found = None
    while position < len(data):
        tag, position = _varint(data, position)
        wire_type = tag & 7
        if wire_type == 0:
            _, position = _varint(data, position)
        elif wire_type == 2:
            length, position = _varint(data, position)
            if length > len(data) - position:
                return None
            if tag >> 3 == number:
                found = data[position : position + length]
            position += length
        else:
            return None
    return found


def _varint(data: bytes, position: int) -> tuple[int, int]:
    value = 0
    for shift in range(0, 70, 7):
        if position >= len(data):
            return 0, len(data)
        byte = data[position]
        position += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, position
    return 0, len(data)

"""The switches that are compared: plait-switch's engine and P4Runtime state in this process, and BMv2 as a child.

Both are given the same updates and frames and say which updates they took, what left, and what they counted.
"""

import os
import queue
import socket
import tempfile
import time
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Protocol, Self

import grpc
from finsy.proto import p4i, p4r, p4r_grpc

import engine
from fastswitch.codegen import compile_json, load_program
from fastswitch.server.dataplane_proto import PACKET_STREAM, PacketStreamRequest, PacketStreamResponse
from fastswitch.server.errors import P4RuntimeError
from fastswitch.server.program import Program
from fastswitch.server.schema import build_schema
from fastswitch.server.state import PipelineState
from mininet_topos.system import Child, end_children, last_lines, start_child
from tests.agreement_reference import LOOP_LIMIT, LOOP_NS, Counters, EndlessError, Sent, entry_key

TIME_STEP_NS = 1_000_000
"""Between two packets of a scenario, unless it says otherwise."""

_PORTS = 511


class Switch(Protocol):
    """A switch with a program."""

    def start(self) -> None:
        """Begins with fresh state."""

    def write(self, updates: Sequence[p4r.Update]) -> list[bool]:
        """Which of the updates it took."""

    def send(self, frames: Sequence[tuple[int, bytes, int]]) -> list[Sent]:
        """Sends frames (port, bytes, ns since the start) and returns all that left because of them."""

    def counters(self) -> Counters:
        """All counters that are not zero."""


def _entities(p4info: p4i.P4Info) -> Iterator[p4r.Entity]:
    for counter in p4info.counters:
        yield p4r.Entity(counter_entry=p4r.CounterEntry(counter_id=counter.preamble.id))
    for direct in p4info.direct_counters:
        entry = p4r.TableEntry(table_id=direct.direct_table_id)
        yield p4r.Entity(direct_counter_entry=p4r.DirectCounterEntry(table_entry=entry))


def _counters(entities: Iterable[p4r.Entity]) -> Counters:
    found: Counters = {}
    for entity in entities:
        key: tuple[int, Any]
        if entity.HasField("counter_entry"):
            data = entity.counter_entry.data
            key = (entity.counter_entry.counter_id, entity.counter_entry.index.index)
        else:
            data = entity.direct_counter_entry.data
            entry = entity.direct_counter_entry.table_entry
            key = (entry.table_id, entry_key(entry))
        if data.packet_count:
            found[key] = (data.packet_count, data.byte_count)
    return found


class Plait:
    """fastswitch: its code generator, engine and P4Runtime state, without processes and sockets, in virtual time."""

    def __init__(self, p4info: p4i.P4Info, json: bytes, seed: int = 1) -> None:
        code = load_program(json)
        self._program = Program(code, build_schema(p4info, code), compile_json(json))
        self._p4info = p4info
        self._seed = seed
        self._fabric: Any = None

    def start(self) -> None:
        self.close()
        self._fabric = engine.Fabric("virtual", seed=self._seed)
        self._switch = self._fabric.add_switch("s1", 1)
        for port in range(_PORTS):
            self._switch.tap(port)
        self._state = PipelineState(self._program, self._switch, lambda port: True)

    def close(self) -> None:
        if self._fabric is not None:
            self._fabric.close()
            self._fabric = None

    def write(self, updates: Sequence[p4r.Update]) -> list[bool]:
        return [self._write(update) for update in updates]

    def _write(self, update: p4r.Update) -> bool:
        copy = p4r.Update()
        copy.CopyFrom(update)
        try:
            self._state.write(copy)
        except P4RuntimeError:
            return False
        return True

    def send(self, frames: Sequence[tuple[int, bytes, int]]) -> list[Sent]:
        out: list[Sent] = []
        for port, frame, when in frames:
            self._fabric.run_until(when)
            self._switch.inject(port, frame)
            self._fabric.run_until(when + LOOP_LIMIT * LOOP_NS + LOOP_NS // 2)
            if self._fabric.packets_alive:
                raise EndlessError
            out += [(each.port, each.frame) for each in self._switch.poll_events() if isinstance(each, engine.Sent)]
        return out

    def counters(self) -> Counters:
        return _counters(found for entity in _entities(self._p4info) for found in self._state.read(entity))


class SwitchDiedError(Exception):
    """A switch's process ended, or does not answer any more."""


class Bmv2:
    """simple_switch_grpc, driven by P4Runtime and by its test port: half-closing that stream drains it."""

    DEVICE_ID = 1
    _READY_S, _ANSWER_S = 20.0, 20.0

    def __init__(self, p4info: p4i.P4Info, json: bytes) -> None:
        self._config = p4r.ForwardingPipelineConfig(p4info=p4info, p4_device_config=json)
        self._folder = tempfile.TemporaryDirectory(prefix="plait-agreement-")
        self._log = Path(self._folder.name, "bmv2.log")
        self._child: Child | None = None
        self._replication: list[p4r.Update] = []  # clone sessions and multicast groups, which outlive a program

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        self._stop()
        self._folder.cleanup()

    def _stop(self) -> None:
        if self._child is not None:
            self._requests.put(None)
            self._channel.close()
            self._packets.close()
            end_children([self._child])
            self._child = None

    def _launch(self) -> None:
        ports = [_free_port() for _ in range(2)]
        addresses = [f"127.0.0.1:{port}" for port in ports]
        flags = ["--device-id", str(self.DEVICE_ID), "--no-p4", "--log-level", "error", "--log-console", "--"]
        flags += ["--grpc-server-addr", addresses[0], "--dp-grpc-server-addr", addresses[1]]
        self._child = start_child(["simple_switch_grpc", *flags], self._log, os.environ)
        self._channel, self._packets = (grpc.insecure_channel(address) for address in addresses)
        try:
            grpc.channel_ready_future(self._channel).result(timeout=self._READY_S)
        except grpc.FutureTimeoutError:
            raise SwitchDiedError(f"BMv2 does not start: {last_lines(self._log)}") from None
        self._stub = p4r_grpc.P4RuntimeStub(self._channel)
        self._stream = self._packets.stream_stream(
            PACKET_STREAM,
            request_serializer=PacketStreamRequest.SerializeToString,
            response_deserializer=PacketStreamResponse.FromString,
        )
        self._requests: queue.SimpleQueue[p4r.StreamMessageRequest | None] = queue.SimpleQueue()
        arbitration = p4r.MasterArbitrationUpdate(device_id=self.DEVICE_ID, election_id=_ELECTION)
        self._requests.put(p4r.StreamMessageRequest(arbitration=arbitration))
        self._messages = self._stub.StreamChannel(iter(self._requests.get, None))
        next(self._messages)

    def start(self) -> None:
        if self._child is not None and self._child.poll() is not None:
            self._stop()
        if self._child is None:
            self._replication.clear()
            self._launch()
        for update in self._replication:
            self._write(p4r.Update(type=p4r.Update.DELETE, entity=update.entity))
        self._replication.clear()
        request = p4r.SetForwardingPipelineConfigRequest(
            device_id=self.DEVICE_ID,
            election_id=_ELECTION,
            action=p4r.SetForwardingPipelineConfigRequest.VERIFY_AND_COMMIT,
            config=self._config,
        )
        self._call(lambda: self._stub.SetForwardingPipelineConfig(request, timeout=self._ANSWER_S))

    def _call(self, call: Any) -> Any:
        try:
            return call()
        except grpc.RpcError as error:
            log = last_lines(self._log)
            self._stop()
            raise SwitchDiedError(f"BMv2: {error.code().name} {error.details()}\n{log}") from None

    def write(self, updates: Sequence[p4r.Update]) -> list[bool]:
        return [self._write(update) for update in updates]

    def _write(self, update: p4r.Update) -> bool:
        request = p4r.WriteRequest(device_id=self.DEVICE_ID, election_id=_ELECTION, updates=[update])
        try:
            self._stub.Write(request, timeout=self._ANSWER_S)
        except grpc.RpcError as error:
            if error.code() in (grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.DEADLINE_EXCEEDED):
                self._stop()
                raise SwitchDiedError(f"BMv2 died of {update}: {last_lines(self._log)}") from None
            return False
        if update.type == p4r.Update.INSERT and update.entity.HasField("packet_replication_engine_entry"):
            self._replication.append(update)
        return True

    def send(self, frames: Sequence[tuple[int, bytes, int]]) -> list[Sent]:
        requests = [PacketStreamRequest(device_id=self.DEVICE_ID, port=port, packet=data) for port, data, _ in frames]
        deadline = time.monotonic() + self._ANSWER_S
        while True:
            try:
                replies = list(self._stream(iter(requests), timeout=self._ANSWER_S))
                return [(reply.port, reply.packet) for reply in replies]
            except grpc.RpcError as error:
                # The last stream may not have ended there yet, and the first program not have started.
                if _is_transient(error) and self._child.poll() is None and time.monotonic() < deadline:
                    continue
                log = last_lines(self._log)
                self._stop()
                raise SwitchDiedError(f"BMv2: {error.code().name} {error.details()}\n{log}") from None

    def counters(self) -> Counters:
        found: Counters = {}
        for entity in _entities(self._config.p4info):
            request = p4r.ReadRequest(device_id=self.DEVICE_ID, entities=[entity])
            replies = self._call(lambda r=request: list(self._stub.Read(r, timeout=self._ANSWER_S)))
            found.update(_counters(each for reply in replies for each in reply.entities))
        return found


_ELECTION = p4r.Uint128(low=1)


def _is_transient(error: grpc.RpcError) -> bool:
    not_ready = error.code() == grpc.StatusCode.UNAVAILABLE and error.details() == "not ready"
    return not_ready or error.code() == grpc.StatusCode.RESOURCE_EXHAUSTED


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])

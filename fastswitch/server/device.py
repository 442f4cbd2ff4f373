"""One switch as P4Runtime sees it: arbitration, the forwarding pipeline config, writes, reads and notifications."""

import asyncio
import logging
import time
from collections import deque
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable, Iterator, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from typing import NoReturn

from finsy.proto import p4i, p4r, rpc_code

from fastswitch.server.arbitration import Arbiter, Controller, Role
from fastswitch.server.engine_api import EngineSwitch
from fastswitch.server.errors import (
    BatchError,
    P4RuntimeError,
    failed_precondition,
    invalid_argument,
    not_found,
    permission_denied,
    unimplemented,
)
from fastswitch.server.program import Program, ProgramStore
from fastswitch.server.reconcile import apply_updates, snapshot
from fastswitch.server.shadow import ShadowSwitch
from fastswitch.server.state import PipelineState
from fastswitch.server.undo import Undo, undo_of

_log = logging.getLogger(__name__)

_YIELD_EVERY = 512  # updates or entities between two turns of the event loop
_ENTITIES_PER_RESPONSE = 1_024
_BYTES_PER_RESPONSE = 1 << 20  # clients refuse messages above 4 MB by default
_READ_AHEAD = 8  # responses that are collected before the client must take some

Send = Callable[[p4r.ReadResponse], Awaitable[None]]

_Set = p4r.SetForwardingPipelineConfigRequest
_Get = p4r.GetForwardingPipelineConfigRequest

# The P4Info id that role limits speak of.
_ID_FIELDS: dict[str | None, Callable[[p4r.Entity], int]] = {
    "table_entry": lambda e: e.table_entry.table_id,
    "action_profile_member": lambda e: e.action_profile_member.action_profile_id,
    "action_profile_group": lambda e: e.action_profile_group.action_profile_id,
    "counter_entry": lambda e: e.counter_entry.counter_id,
    "direct_counter_entry": lambda e: e.direct_counter_entry.table_entry.table_id,
    "meter_entry": lambda e: e.meter_entry.meter_id,
    "direct_meter_entry": lambda e: e.direct_meter_entry.table_entry.table_id,
    "register_entry": lambda e: e.register_entry.register_id,
    "value_set_entry": lambda e: e.value_set_entry.value_set_id,
    "digest_entry": lambda e: e.digest_entry.digest_id,
}


@dataclass(frozen=True, slots=True)
class Saved:
    """A config that was verified and saved: until it is committed, reads and writes address its state."""

    config: p4r.ForwardingPipelineConfig
    state: PipelineState


class _Batches:
    """Entities grouped into responses of a bounded size."""

    def __init__(self) -> None:
        self._response = p4r.ReadResponse()
        self._bytes = 0

    def add(self, entity: p4r.Entity) -> Iterator[p4r.ReadResponse]:
        """Take one more; the response that it does not fit into any more."""
        size = entity.ByteSize()
        full = len(self._response.entities) >= _ENTITIES_PER_RESPONSE or self._bytes + size > _BYTES_PER_RESPONSE
        if full and self._response.entities:
            yield self.last()
        self._response.entities.append(entity)
        self._bytes += size

    def last(self) -> p4r.ReadResponse:
        """What is there so far; nothing is afterwards."""
        response = self._response
        self._response, self._bytes = p4r.ReadResponse(), 0
        return response


class Device:
    """A switch behind the service. All methods run in the server's event loop."""

    def __init__(
        self,
        engine: EngineSwitch,
        programs: ProgramStore,
        *,
        cpu_port: int = 0,
        port_up: Callable[[int], bool] | None = None,
    ) -> None:
        self.engine = engine
        self.name = engine.name
        self.device_id = engine.device_id
        self.cpu_port = cpu_port
        self.arbiter = Arbiter(engine.device_id)
        self.state: PipelineState | None = None
        self._programs = programs
        self._port_up = port_up or (lambda port: True)
        self._config: p4r.ForwardingPipelineConfig | None = None
        self._saved: Saved | None = None
        self.read_stall_s = 5.0
        self.streams: set[asyncio.Event] = set()  # of each open stream, what ends it
        self.started: Callable[[], None] = lambda: None  # called when a program has begun to run
        self._off = False
        self._lock = asyncio.Lock()  # held while state changes or is read

    # Power

    def switch_off(self) -> None:
        """As if the switch had no power: streams end, requests are UNAVAILABLE, and program and entries are lost."""
        self._off = True
        self.state = self._config = self._saved = None
        for cut in self.streams:
            cut.set()

    def switch_on(self) -> None:
        """It answers again, and has no program."""
        self._off = False

    def check_on(self) -> None:
        """UNAVAILABLE while the switch is off."""
        if self._off:
            self.raise_off()

    def raise_off(self) -> NoReturn:
        raise P4RuntimeError(rpc_code.UNAVAILABLE, f"switch {self.name} is switched off")

    # Forwarding pipeline config

    async def load_json(self, json: bytes) -> None:
        """Run a program without P4Info, as simple_switch_grpc does with a JSON on its command line: packets are
        processed, while P4Runtime still waits for a config."""
        program = await self._programs.build_json(json, p4i.P4Info())
        async with self._lock:
            self._commit(program)
            self.state = None

    async def set_config(self, request: p4r.SetForwardingPipelineConfigRequest) -> None:
        """SetForwardingPipelineConfig. Compiling happens outside the lock: the old pipeline stays in use."""
        self._check_pusher(request)
        action = request.action
        if action == _Set.COMMIT:
            if request.HasField("config"):
                invalid_argument("COMMIT takes no config: it commits the saved one")
            if self._saved is None:
                not_found("there is no saved config to commit; VERIFY_AND_SAVE one first")
            saved = self._saved
            program, config = saved.state.program, saved.config
        elif action in (_Set.VERIFY, _Set.VERIFY_AND_SAVE, _Set.VERIFY_AND_COMMIT, _Set.RECONCILE_AND_COMMIT):
            if not request.HasField("config"):
                invalid_argument("the request has no config")
            program = await self._programs.build(request.config)
            config = p4r.ForwardingPipelineConfig()
            config.CopyFrom(request.config)
        else:
            invalid_argument(f"action {action} is not one of SetForwardingPipelineConfig's")
        if action == _Set.VERIFY:
            return
        if action == _Set.VERIFY_AND_SAVE:
            async with self._lock:
                self._check_pusher(request)
                shadow = ShadowSwitch(self.engine, program.code)
                self._saved = Saved(config, PipelineState(program, shadow, self._port_up))
            return
        async with self._lock:
            self.check_on()
            self._check_pusher(request)  # while it compiled, another controller may have become primary
            if action == _Set.COMMIT:
                self._replay(program, snapshot(saved.state))
            elif action == _Set.RECONCILE_AND_COMMIT and self.state is not None:
                self._reconcile(program)
            else:
                self._commit(program)
            self._config = config
            self._saved = None

    def get_config(self, request: p4r.GetForwardingPipelineConfigRequest) -> p4r.GetForwardingPipelineConfigResponse:
        """GetForwardingPipelineConfig: the config that reads and writes are about, as BMv2 has it."""
        config = self._saved.config if self._saved is not None else self._config
        if config is None:
            failed_precondition(_NO_CONFIG)
        wanted = request.response_type
        if wanted not in (_Get.ALL, _Get.COOKIE_ONLY, _Get.P4INFO_AND_COOKIE, _Get.DEVICE_CONFIG_AND_COOKIE):
            invalid_argument(f"response type {wanted} is unknown")
        response = p4r.GetForwardingPipelineConfigResponse()
        response.config.SetInParent()
        if config.HasField("cookie"):
            response.config.cookie.CopyFrom(config.cookie)
        if wanted in (_Get.ALL, _Get.P4INFO_AND_COOKIE):
            response.config.p4info.CopyFrom(config.p4info)
        if wanted in (_Get.ALL, _Get.DEVICE_CONFIG_AND_COOKIE):
            response.config.p4_device_config = config.p4_device_config
        return response

    # Write and read

    async def write(self, request: p4r.WriteRequest) -> None:
        """Write: BatchError says which updates failed. A client that leaves does not end a batch halfway."""
        batch = asyncio.create_task(self._write_batch(request))
        batch.add_done_callback(lambda task: task.cancelled() or task.exception())  # if nobody else asks for it
        await asyncio.shield(batch)

    async def _write_batch(self, request: p4r.WriteRequest) -> None:
        async with self._lock:
            election_id = request.election_id if request.HasField("election_id") else None
            role = self.arbiter.check_write(request.role, election_id)
            state = self._addressed()
            if request.atomicity == p4r.WriteRequest.CONTINUE_ON_ERROR:
                errors = await self._write_each(state, role, request.updates)
            elif request.atomicity == p4r.WriteRequest.ROLLBACK_ON_ERROR:
                errors = await self._write_all_or_none(state, role, request.updates)
            elif request.atomicity == p4r.WriteRequest.DATAPLANE_ATOMIC:
                unimplemented("DATAPLANE_ATOMIC: packets that wait in queues would see a batch in egress only")
            else:
                invalid_argument(f"atomicity {request.atomicity} is unknown")
        if any(errors):
            raise BatchError(errors)

    async def _write_each(
        self, state: PipelineState, role: Role, updates: Iterable[p4r.Update]
    ) -> list[P4RuntimeError | None]:
        errors: list[P4RuntimeError | None] = []
        for number, update in enumerate(updates, 1):
            errors.append(await self._write_one(state, role, update))
            if number % _YIELD_EVERY == 0:
                await asyncio.sleep(0)
        return errors

    async def _write_all_or_none(
        self, state: PipelineState, role: Role, updates: Sequence[p4r.Update]
    ) -> list[P4RuntimeError | None]:
        undos: list[Undo] = []
        for number, update in enumerate(updates):
            error = await self._write_one(state, role, update, undos)
            if error is not None:
                break
            if number % _YIELD_EVERY == 0:
                await asyncio.sleep(0)
        else:
            return []
        for undo in reversed(undos):
            try:
                undo()
            except Exception:
                _log.exception("switch %s: an update could not be taken back", self.name)
        aborted = P4RuntimeError(rpc_code.ABORTED, f"nothing of the batch is applied: its update {number} failed")
        return [error if i == number else aborted for i in range(len(updates))]

    async def read(self, request: p4r.ReadRequest, send: Send) -> None:
        """Read: what the valid requests select, then BatchError if some were not valid.

        All of it is one state: writes wait. A client that reads slowly holds them up only if its answer is long, and
        only so long as it takes a response every `read_stall_s` seconds.
        """
        role = self.arbiter.role(request.role) if request.role else None
        errors: list[P4RuntimeError | None] = []
        waiting: deque[p4r.ReadResponse] = deque()
        async with self._lock, aclosing(self._found(request.entities, role, errors)) as responses:
            async for response in responses:
                waiting.append(response)
                if len(waiting) > _READ_AHEAD:
                    await self._send_in_time(send, waiting.popleft())
        for response in waiting:
            await send(response)
        if any(errors):
            raise BatchError(errors)

    async def _found(
        self, requests: Iterable[p4r.Entity], role: Role | None, errors: list[P4RuntimeError | None]
    ) -> AsyncGenerator[p4r.ReadResponse, None]:
        """Responses to requests; `errors` gets one element for each of these."""
        state = self._addressed()
        batches = _Batches()
        for request in requests:
            error: P4RuntimeError | None = None
            try:
                for number, found in enumerate(state.read(request), 1):
                    if role is None or _allowed(role, found):
                        for response in batches.add(found):
                            yield response
                    if number % _YIELD_EVERY == 0:
                        await asyncio.sleep(0)
            except P4RuntimeError as caught:
                error = caught
            except Exception:
                _log.exception("switch %s: read failed", self.name)
                error = P4RuntimeError(rpc_code.INTERNAL, "internal error of the switch; its log says more")
            errors.append(error)
        yield batches.last()

    async def _send_in_time(self, send: Send, response: p4r.ReadResponse) -> None:
        try:
            await asyncio.wait_for(send(response), self.read_stall_s)
        except TimeoutError:
            text = f"the client took no response for {self.read_stall_s} s; reads hold up writes, so this one ends"
            raise P4RuntimeError(rpc_code.ABORTED, text) from None

    # Stream

    def stream_request(self, controller: Controller, request: p4r.StreamMessageRequest) -> None:
        """A message other than arbitration, from a stream that has arbitrated."""
        kind = request.WhichOneof("update")
        if kind == "packet":
            self._packet_out(controller, request.packet)
        elif kind == "digest_ack":
            self._digest_ack(controller, request.digest_ack)
        else:
            error = p4r.StreamError(canonical_code=rpc_code.INVALID_ARGUMENT, message=f"message '{kind}' is unknown")
            error.other.SetInParent()
            controller.send(p4r.StreamMessageResponse(error=error))

    def packet_in(self, frame: bytes) -> None:
        """A frame that the program sent to the CPU port."""
        if self.state is None:
            return
        message = self.state.packet_in.decode(frame)
        if message is None:
            _log.warning("switch %s: a packet-in of %d bytes is shorter than its header", self.name, len(frame))
            return
        for controller in self.arbiter.listeners():
            if controller.role.receives(message):
                controller.send(p4r.StreamMessageResponse(packet=message))

    def digest(self, list_id: int, data: bytes) -> None:
        """A digest that a packet sent; `list_id` is the JSON's learn list."""
        digest = self.state.digest_of_list.get(list_id) if self.state is not None else None
        if digest is not None:
            self._send_digest(digest.sample(data, time.monotonic_ns()))

    def tick(self) -> None:
        """Regular work: digest timeouts and idle timeouts. Called a few times a second."""
        if self.state is None:
            return
        now = time.monotonic_ns()
        for digest in self.state.digests.values():
            self._send_digest(digest.tick(now))
        for table in self.state.tables.values():
            expired = table.expired()
            if expired:
                notification = p4r.IdleTimeoutNotification(table_entry=expired, timestamp=time.time_ns())
                self._notify(table.schema.id, p4r.StreamMessageResponse(idle_timeout_notification=notification))

    def port_changed(self, port: int) -> None:
        """A port went up or down: members that watch it leave or join their groups."""
        if self.state is not None:
            self.state.port_changed(port)

    # Private part

    def _addressed(self) -> PipelineState:
        """The state that reads and writes are about."""
        return self._saved.state if self._saved is not None else self._running()

    def _running(self) -> PipelineState:
        if self.state is None:
            failed_precondition(_NO_CONFIG)
        return self.state

    def _check_pusher(self, request: p4r.SetForwardingPipelineConfigRequest) -> None:
        election_id = request.election_id if request.HasField("election_id") else None
        role = self.arbiter.check_write(request.role, election_id)
        if role.limits is not None and not role.limits.can_push_pipeline:
            permission_denied(f"role '{role.name}' may not push a pipeline")

    async def _write_one(
        self, state: PipelineState, role: Role, update: p4r.Update, undos: list[Undo] | None = None
    ) -> P4RuntimeError | None:
        try:
            if role.limits is not None and not _allowed(role, update.entity):
                permission_denied(f"role '{role.name}' may not write this entity")
            undo = undo_of(state, update) if undos is not None else None
            steps = state.start(update)
            if steps is not None:
                for _ in steps:
                    await asyncio.sleep(0)
            if undos is not None and undo is not None:
                undos.append(undo)
        except P4RuntimeError as error:
            return error
        except Exception:
            _log.exception("switch %s: write failed", self.name)
            return P4RuntimeError(rpc_code.INTERNAL, "internal error of the switch; its log says more")
        return None

    def _commit(self, program: Program) -> None:
        try:
            self.state = PipelineState(program, self.engine, self._port_up)
        except Exception as error:
            _log.exception("switch %s: the engine does not take the program", self.name)
            self.state = self._config = None  # what runs now is not what clients believe
            raise P4RuntimeError(rpc_code.INTERNAL, f"the engine does not take the program: {error}") from error
        self.started()

    def _reconcile(self, program: Program) -> None:
        """Load the program with what the old one held."""
        old = self._running()
        if old.program is not program:
            self._replay(program, snapshot(old))

    def _replay(self, program: Program, updates: list[p4r.Update]) -> None:
        """Load the program and apply updates; put the old one back if that is not possible."""
        old = self.state
        before = snapshot(old) if old is not None else []
        self._commit(program)
        error = apply_updates(self._running(), updates)
        if error is None:
            return
        self.state = None
        if old is not None:
            self._commit(old.program)
            apply_updates(self._running(), before)
        invalid_argument(f"the forwarding state does not fit the new config: {error.message}")

    def _packet_out(self, controller: Controller, packet: p4r.PacketOut) -> None:
        code, text = 0, ""
        if not self.arbiter.is_listener(controller):
            code, text = rpc_code.PERMISSION_DENIED, "Not primary: only the primary controller may send packets"
        elif self.state is None:
            return  # no config yet: dropped, as PI does
        elif not self.cpu_port:
            code, text = rpc_code.FAILED_PRECONDITION, "the switch has no CPU port; start it with --cpu-port"
        else:
            try:
                self.engine.packet_out(self.cpu_port, self.state.packet_out.encode(packet))
            except P4RuntimeError as error:
                code, text = error.code, error.message
            except (ValueError, OSError) as error:
                code, text = rpc_code.INVALID_ARGUMENT, str(error)
        if code:
            stream_error = p4r.StreamError(canonical_code=code, message=text)
            stream_error.packet_out.packet_out.CopyFrom(packet)
            controller.send(p4r.StreamMessageResponse(error=stream_error))

    def _digest_ack(self, controller: Controller, ack: p4r.DigestListAck) -> None:
        digest = self.state.digests.get(ack.digest_id) if self.state is not None else None
        if digest is not None:
            digest.acknowledge(ack.list_id)
            return
        text = f"no digest has id 0x{ack.digest_id:08x}"
        stream_error = p4r.StreamError(canonical_code=rpc_code.INVALID_ARGUMENT, message=text)
        stream_error.digest_list_ack.digest_list_ack.CopyFrom(ack)
        controller.send(p4r.StreamMessageResponse(error=stream_error))

    def _send_digest(self, message: p4r.DigestList | None) -> None:
        if message is not None:
            self._notify(message.digest_id, p4r.StreamMessageResponse(digest=message))

    def _notify(self, p4_id: int, message: p4r.StreamMessageResponse) -> None:
        for controller in self.arbiter.listeners():
            if controller.role.may_write(p4_id):
                controller.send(message)


_NO_CONFIG = "No forwarding pipeline config is set for this device; push one with SetForwardingPipelineConfig"


def _allowed(role: Role, entity: p4r.Entity) -> bool:
    id_of = _ID_FIELDS.get(entity.WhichOneof("entity"))
    return id_of is None or role.may_write(id_of(entity))

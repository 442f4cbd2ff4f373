"""One switch, for as long as the controller runs: connection, election, program, port states, packets.

A session comes up by itself, and again whenever the connection is lost, with pauses that double from 50 ms to 1 s. It
never fights: while another controller has a higher election id it only watches, and asks to be primary when that one
has left.
"""

from __future__ import annotations

import asyncio
import contextlib
import random
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Protocol

import finsy as fy
import grpc
import grpc.aio
from finsy.proto import U128, gnmi, gnmi_grpc, p4r, rpc_code

from controller import defaults
from controller.connection import Reader, batches, translated
from controller.errors import ControllerError, SwitchUnreachableError
from controller.targets import Target

_FIRST_PAUSE_S, _LONGEST_PAUSE_S = 0.05, 1.0
_INTERFACE_STATE = gnmi.Path(elem=[gnmi.PathElem(name=name) for name in ("interfaces", "interface", "state")])
_SetConfig, _GetConfig = p4r.SetForwardingPipelineConfigRequest, p4r.GetForwardingPipelineConfigRequest


class Listener(Protocol):
    """What hears of sessions; all calls come from the event loop and return at once."""

    def session_primary(self, session: Session) -> None:
        """It may write from now on, and the ports' states are known if the switch tells them."""

    def session_backup(self, session: Session, primary_id: int) -> None:
        """Another controller is primary."""

    def session_lost(self, session: Session, reason: str) -> None:
        """The connection is lost, or could not be made; further failures to make it are not told."""

    def session_port(self, session: Session, port: int, up: bool) -> None:
        """A port's state changed."""

    def session_packet(self, session: Session, packet: p4r.PacketIn) -> None:
        """A packet for the controller."""


class Session:
    """`ports`: number -> is up; empty while unknown, and where the switch does not tell (`tells_ports`)."""

    def __init__(self, target: Target, schema: fy.P4Schema, listener: Listener) -> None:
        self.target = target
        self.schema = schema
        self.primary = False
        self.tried = asyncio.Event()  # it has come up, or failed to
        self.ports: dict[int, bool] = {}
        self.tells_ports = True
        self._ports_known = False
        self._port_numbers: dict[str, int] = {}  # by interface
        self._listener = listener
        self._client: fy.P4Client | None = None
        self._election_id = defaults.ELECTION_ID
        self._heard_election = False

    @property
    def name(self) -> str:
        return self.target.name

    @property
    def connected(self) -> bool:
        return self._heard_election

    # --- coming up, staying up ---

    async def run(self) -> None:
        """Until cancelled."""
        pause = _FIRST_PAUSE_S
        while True:
            client = fy.P4Client(self.target.address, wait_for_ready=False)
            reason = "the connection ended"
            try:
                await client.open()
                with translated(self.target, "a controller"):
                    await self._serve(client)
            except ControllerError as error:
                reason = str(error)
            except RuntimeError as error:  # finsy's answer to the end of a stream
                reason = f"{self.name} ({self.target.address}): {error}"
            finally:
                self._client = None
                await client.close()
            if self._heard_election:
                pause = _FIRST_PAUSE_S
            tell = self._heard_election or not self.tried.is_set()
            self.primary = self._heard_election = self._ports_known = False
            self.ports.clear()
            if tell:
                self._listener.session_lost(self, reason)
            self.tried.set()
            # Switches that were lost together are not asked together for ever.
            await asyncio.sleep(pause * random.uniform(0.75, 1.25))
            pause = min(2 * pause, _LONGEST_PAUSE_S)

    async def _serve(self, client: fy.P4Client) -> None:
        self._election_id = defaults.ELECTION_ID
        await self._ask_to_lead(client)
        watch: asyncio.Task[None] | None = None
        try:
            while True:
                message = await client.receive()
                match message.WhichOneof("update"):
                    case "arbitration":
                        self._client = client
                        watch = watch or asyncio.create_task(self._watch_ports(client))
                        await self._elected(client, message.arbitration)
                    case "packet":
                        self._listener.session_packet(self, message.packet)
        finally:
            if watch is not None:
                watch.cancel()

    async def _ask_to_lead(self, client: fy.P4Client) -> None:
        asked = p4r.MasterArbitrationUpdate(device_id=self.target.device_id, election_id=U128.encode(self._election_id))
        await client.send(p4r.StreamMessageRequest(arbitration=asked))

    async def _elected(self, client: fy.P4Client, told: p4r.MasterArbitrationUpdate) -> None:
        highest = U128.decode(told.election_id)
        was_primary, self.primary = self.primary, told.status.code == rpc_code.OK
        first, self._heard_election = not self._heard_election, True
        if told.status.code == rpc_code.NOT_FOUND:
            # Nobody leads. An id below one that the switch has seen cannot.
            self._election_id = max(self._election_id, highest)
            await self._ask_to_lead(client)
        elif not self.primary and (was_primary or first):
            self._listener.session_backup(self, highest)
            self.tried.set()
        elif self.primary and not was_primary:
            self._tell_primary()

    def _tell_primary(self) -> None:
        if self.primary and (self._ports_known or not self.tells_ports):
            self._listener.session_primary(self)
            self.tried.set()

    async def _watch_ports(self, client: fy.P4Client) -> None:
        """Hears of ports over gNMI, for as long as the connection lasts."""
        stub = gnmi_grpc.gNMIStub(client.channel)  # type: ignore[no-untyped-call]
        asked = gnmi.SubscriptionList(
            prefix=gnmi.Path(target=self.name),
            subscription=[gnmi.Subscription(path=_INTERFACE_STATE, mode=gnmi.SubscriptionMode.ON_CHANGE)],
            mode=gnmi.SubscriptionList.STREAM,
            encoding=gnmi.Encoding.PROTO,
        )
        while True:
            call = stub.Subscribe()
            try:
                await call.write(gnmi.SubscribeRequest(subscribe=asked))
                while (message := await call.read()) is not grpc.aio.EOF:
                    if message.sync_response:
                        self._ports_known = True
                        self._tell_primary()
                    else:
                        self._port_news(message.update)
            except grpc.RpcError:
                pass  # the status is the call's
            if await call.code() is grpc.StatusCode.UNIMPLEMENTED:
                self.tells_ports = False
                self._tell_primary()
                return
            await asyncio.sleep(_FIRST_PAUSE_S)

    def _port_news(self, news: gnmi.Notification) -> None:
        states: dict[str, bool] = {}
        for update in news.update:
            name = next((e.key["name"] for e in update.path.elem if "name" in e.key), "")
            match update.path.elem[-1].name if update.path.elem else "":
                case "ifindex":
                    self._port_numbers[name] = update.val.uint_val or update.val.int_val
                case "oper-status":
                    states[name] = update.val.string_val == "UP"
        for name, up in states.items():
            port = self._port_numbers.get(name)
            if port is not None and self.ports.get(port) != up:
                known = port in self.ports
                self.ports[port] = up
                if known:
                    self._listener.session_port(self, port, up)

    # --- requests; SwitchUnreachableError while there is no connection ---

    @contextlib.contextmanager
    def _asking(self, what: str) -> Iterator[fy.P4Client]:
        """The client, whose errors are translated."""
        lost = f"{self.name} ({self.target.address}): there is no connection"
        if self._client is None:
            raise SwitchUnreachableError(lost)
        try:
            with translated(self.target, what, self.schema):
                yield self._client
        except asyncio.CancelledError:
            task = asyncio.current_task()
            if task is not None and task.cancelling():
                raise
            # The connection was closed while we waited: so grpc ends requests that are under way.
            raise SwitchUnreachableError(lost) from None

    async def program_cookie(self) -> int | None:
        """That of the program which the switch runs; None if it runs none."""
        request = _GetConfig(device_id=self.target.device_id, response_type=_GetConfig.COOKIE_ONLY)
        with self._asking("to tell its program") as client:
            try:
                config = (await client.request(request)).config
            except fy.P4ClientError as error:
                if error.code is fy.GRPCStatusCode.FAILED_PRECONDITION:
                    return None
                raise
        return config.cookie.cookie if config.HasField("cookie") else 0

    async def load_program(self) -> None:
        """Runs the program of `schema`, with fresh state."""
        request = _SetConfig(
            device_id=self.target.device_id,
            election_id=U128.encode(self._election_id),
            action=_SetConfig.VERIFY_AND_COMMIT,
            config=self.schema.get_pipeline_config(),
        )
        with self._asking("the program") as client:
            await client.request(request)

    async def read(self, wanted: Sequence[Any]) -> list[p4r.Entity]:
        with self._asking("read") as client:
            return await Reader(self.target, client, self.schema).read(wanted)

    async def write(self, updates: Sequence[p4r.Update]) -> None:
        """In batches; RefusedError names the updates that were refused."""
        for batch in batches(updates):
            request = p4r.WriteRequest(
                device_id=self.target.device_id, election_id=U128.encode(self._election_id), updates=batch
            )
            with self._asking("a write") as client:
                await client.request(request)

    async def send_packet(self, payload: bytes, metadata: Mapping[str, int]) -> None:
        """metadata: of the program's packet_out header, all of it."""
        with self._asking("a packet") as client:
            await client.send(fy.P4PacketOut(payload, **metadata).encode_update(self.schema))

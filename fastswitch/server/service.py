"""The gRPC service: one server for all switches of a process, bound to one port per switch, routed by device id."""

import asyncio
import logging
import socket
from collections.abc import AsyncIterator, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

import grpc
import grpc.aio
from finsy.proto import gnmi_grpc, p4r, p4r_grpc
from google.protobuf.message import DecodeError

from fastswitch.server.arbitration import Controller
from fastswitch.server.decoding import DecodingInterceptor
from fastswitch.server.device import Device
from fastswitch.server.errors import (
    DETAILS_KEY,
    BatchError,
    P4RuntimeError,
    failed_precondition,
    not_found,
    permission_denied,
    resource_exhausted,
)
from fastswitch.server.gnmi import GnmiService, Interfaces
from fastswitch.server.outbox import Outbox

_log = logging.getLogger(__name__)

API_VERSION = "1.5.0"
_MAX_RECEIVE = 256 << 20
_DRAIN = 0.5  # seconds that a stream which ends waits for its client to take what is queued
_TICK = 0.25  # seconds

_Context = Any  # grpc.aio.ServicerContext is generic in the stubs only


@dataclass(frozen=True)
class Tls:
    """Server certificate, and the authority whose clients are accepted."""

    cert: Path
    key: Path
    cacert: Path | None = None
    with_client_auth: bool = False

    def credentials(self) -> grpc.ServerCredentials:
        """gRPC's form; OSError if a file cannot be read."""
        pair = (self.key.read_bytes(), self.cert.read_bytes())
        root = self.cacert.read_bytes() if self.cacert is not None else None
        return grpc.ssl_server_credentials([pair], root, self.with_client_auth)


class PortInUseError(OSError):
    """A gRPC address cannot be bound."""


class P4RuntimeServer(p4r_grpc.P4RuntimeServicer):
    """P4Runtime for a set of devices.

    server = P4RuntimeServer([Device(engine_switch, programs)])
    await server.start(["127.0.0.1:9559"])
    ...
    await server.stop()
    """

    def __init__(
        self, devices: Iterable[Device], tls: Tls | None = None, interfaces: Sequence[Interfaces] = ()
    ) -> None:
        """interfaces: of the devices, for gNMI, which is served where there are some."""
        self._devices = {device.device_id: device for device in devices}
        self._interfaces = interfaces
        self._tls = tls
        self._server: grpc.aio.Server | None = None
        self._ticker: asyncio.Task[None] | None = None

    async def start(self, addresses: Sequence[str]) -> list[int]:
        """Bind every address and serve; the bound ports. PortInUseError names an address that is taken."""
        options = [
            ("grpc.max_receive_message_length", _MAX_RECEIVE),
            ("grpc.max_send_message_length", -1),
            ("grpc.max_metadata_size", 64 << 10),
            ("grpc.so_reuseport", 0),  # or a second daemon would silently share the port
        ]
        server = grpc.aio.server(options=options, interceptors=[DecodingInterceptor()])
        p4r_grpc.add_P4RuntimeServicer_to_server(self, server)  # type: ignore[no-untyped-call]
        if self._interfaces:
            gnmi_grpc.add_gNMIServicer_to_server(GnmiService(self._interfaces, _abort), server)  # type: ignore[no-untyped-call]
        ports = [bind(server, address, self._tls) for address in addresses]
        await server.start()
        self._server = server
        self._ticker = asyncio.create_task(self._tick())
        return ports

    async def stop(self, grace: float = 0.2) -> None:
        """Close all streams and stop serving."""
        if self._ticker is not None:
            self._ticker.cancel()
        if self._server is not None:
            await self._server.stop(grace)

    async def _tick(self) -> None:
        while True:
            await asyncio.sleep(_TICK)
            for device in self._devices.values():
                try:
                    device.tick()
                except Exception:
                    _log.exception("switch %s: regular work failed", device.name)

    def _device(self, device_id: int) -> Device:
        device = self._devices.get(device_id)
        if device is None:
            known = ", ".join(str(i) for i in sorted(self._devices)[:10])
            more = ", ..." if len(self._devices) > 10 else ""
            not_found(f"no device has id {device_id}; this server has {known}{more}")
        device.check_on()
        return device

    # The RPCs. Names are the protocol's.

    async def Capabilities(self, request: p4r.CapabilitiesRequest, context: _Context) -> p4r.CapabilitiesResponse:  # type: ignore[override]
        """The version of the API, which all devices share."""
        try:
            if request.device_id:
                self._device(request.device_id)
        except P4RuntimeError as error:
            await _abort(context, error)
        return p4r.CapabilitiesResponse(p4runtime_api_version=API_VERSION)

    async def SetForwardingPipelineConfig(  # type: ignore[override]
        self, request: p4r.SetForwardingPipelineConfigRequest, context: _Context
    ) -> p4r.SetForwardingPipelineConfigResponse:
        """Push a program."""
        try:
            await self._device(request.device_id).set_config(request)
        except Exception as error:
            await _abort(context, error)
        return p4r.SetForwardingPipelineConfigResponse()

    async def GetForwardingPipelineConfig(  # type: ignore[override]
        self, request: p4r.GetForwardingPipelineConfigRequest, context: _Context
    ) -> p4r.GetForwardingPipelineConfigResponse:
        """The program that runs."""
        try:
            return self._device(request.device_id).get_config(request)
        except Exception as error:
            await _abort(context, error)

    async def Write(self, request: p4r.WriteRequest, context: _Context) -> p4r.WriteResponse:  # type: ignore[override]
        """A batch of updates."""
        try:
            await self._device(request.device_id).write(request)
        except Exception as error:
            await _abort(context, error)
        return p4r.WriteResponse()

    async def Read(self, request: p4r.ReadRequest, context: _Context) -> None:  # type: ignore[override]
        """A batch of queries."""
        try:
            await self._device(request.device_id).read(request, context.write)
        except Exception as error:
            await _abort(context, error)

    async def StreamChannel(  # type: ignore[override]
        self, requests: AsyncIterator[p4r.StreamMessageRequest], context: _Context
    ) -> None:
        """A controller's session: arbitration, packets, digests."""
        stream = _Stream(self)
        outbox = stream.outbox
        tasks = [
            asyncio.create_task(stream.handle_all(requests)),
            asyncio.create_task(outbox.overflowed.wait()),
            asyncio.create_task(outbox.send_all(context.write)),
            asyncio.create_task(stream.cut.wait()),
        ]
        try:
            await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            stream.check_on()
            if outbox.overflowed.is_set():
                resource_exhausted("the client does not read its stream: arbitration messages pile up")
            await tasks[0]
        except Exception as error:
            stream.close()  # before the status, which waits behind what the client has not read
            await outbox.drain(_DRAIN)
            await _abort(context, error)
        else:
            await outbox.drain(_DRAIN)
        finally:
            for task in tasks:
                task.cancel()
            try:
                await asyncio.gather(*tasks, return_exceptions=True)
            finally:
                # Also where gRPC cancels us in the middle of that: a stream that stays would keep its election id.
                stream.close()


class _Stream:
    """One StreamChannel: at most one controller of one device."""

    def __init__(self, server: P4RuntimeServer) -> None:
        self.outbox = Outbox()
        self.cut = asyncio.Event()  # the device was switched off
        self._server = server
        self._device: Device | None = None
        self._controller: Controller | None = None

    async def handle_all(self, requests: AsyncIterator[p4r.StreamMessageRequest]) -> None:
        """The client's messages until it sends no more; P4RuntimeError ends the stream."""
        async for request in requests:
            self._handle(request)

    def check_on(self) -> None:
        """UNAVAILABLE if the stream's device was switched off meanwhile, or since."""
        if self._device is not None and self.cut.is_set():
            self._device.raise_off()

    def close(self) -> None:
        """The stream is over."""
        if self._device is not None:
            self._device.streams.discard(self.cut)
        if self._controller is not None and self._device is not None:
            self._device.arbiter.leave(self._controller)
            self._controller = None
            if self.outbox.dropped:
                dropped, name = self.outbox.dropped, self._device.name
                _log.warning("switch %s: %d notifications were dropped: a client did not read them", name, dropped)

    def _handle(self, request: p4r.StreamMessageRequest) -> None:
        if request.WhichOneof("update") == "arbitration":
            self._arbitrate(request.arbitration)
        elif self._controller is None or self._device is None:
            permission_denied("the first message of a stream must be an arbitration update")
        else:
            self._device.stream_request(self._controller, request)

    def _arbitrate(self, update: p4r.MasterArbitrationUpdate) -> None:
        if self._device is None:
            self._device = self._server._device(update.device_id)
            self._device.streams.add(self.cut)
        elif self._device.device_id != update.device_id:
            failed_precondition(
                f"this stream belongs to device {self._device.device_id}, not {update.device_id}; open one per device"
            )
        self._controller = self._device.arbiter.update(self._controller, update, self.outbox.put)


def bind(server: grpc.aio.Server, address: str, tls: Tls | None = None) -> int:
    """Bind an address; the bound port. PortInUseError names an address that is taken."""
    _check_free(address)
    try:
        port = server.add_secure_port(address, tls.credentials()) if tls else server.add_insecure_port(address)
    except RuntimeError:
        port = 0
    if port == 0:
        raise PortInUseError(f"cannot listen on {address}")
    return int(port)


def _check_free(address: str) -> None:
    """Bind an address for a moment: the system says why it cannot be, while gRPC only fails and logs."""
    if address.startswith("unix:"):
        return
    host, _, port = address.rpartition(":")
    try:
        family, kind, _, _, where = socket.getaddrinfo(host.strip("[]"), int(port), type=socket.SOCK_STREAM)[0]
        with socket.socket(family, kind) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind(where)
    except OSError as error:
        raise PortInUseError(f"cannot listen on {address}: {error.strerror or error}") from None


async def _abort(context: _Context, error: Exception) -> NoReturn:
    """End the RPC with the status of an exception. Anything unforeseen is INTERNAL and logged, never a crash."""
    if context.done():
        raise asyncio.CancelledError  # the client has left, and what it left of is of no interest
    if isinstance(error, P4RuntimeError):
        await context.abort(error.status_code, error.message)
    elif isinstance(error, BatchError):
        trailer = error.trailer()
        metadata = ((DETAILS_KEY, trailer),) if trailer is not None else ()
        await context.abort(grpc.StatusCode.UNKNOWN, error.message, metadata)
    elif isinstance(error, grpc.aio.AbortError):
        raise error
    elif isinstance(error, DecodeError):
        await context.abort(grpc.StatusCode.INVALID_ARGUMENT, str(error))
    else:
        _log.error("an RPC failed", exc_info=error)
        await context.abort(grpc.StatusCode.INTERNAL, f"internal error: {type(error).__name__}; the log says more")
    raise AssertionError("abort returned")

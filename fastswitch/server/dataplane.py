"""A switch's ports over gRPC: BMv2's test port, `--dp-grpc-server-addr`.

As in simple_switch_grpc, what a client writes arrives at ports, what leaves at any port comes back with the id of the
packet it stems from, one client is served at a time, and the answer is UNAVAILABLE until a program is loaded.  When the
client half-closes, the stream ends after the last packet has left the switch, whatever queues it waited in.

Unlike there, a packet that cannot be injected ends the stream with a status that says why.
"""

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import Any, Protocol

import grpc
import grpc.aio
from google.protobuf.message import DecodeError

from fastswitch.server import dataplane_proto as proto
from fastswitch.server.decoding import DecodingInterceptor
from fastswitch.server.service import bind

PORTS = 512

_WAITING_PAUSE = 1_024  # packets that wait for the client: beyond, none are read from it
_WAITING_LIMIT = 100_000  # beyond, they are lost, and the stream ends with DATA_LOSS
_Code = grpc.StatusCode


class EnginePorts(Protocol):
    """What the service asks of `engine.Switch`."""

    device_id: int

    @property
    def has_program(self) -> bool: ...
    def tap(self, port: int) -> None: ...
    def inject(self, port: int, frame: bytes, tag: int = 0) -> None: ...
    def drain(self, tag: int = 0) -> None: ...
    def set_port_up(self, port: int, up: bool) -> None: ...
    def stats(self) -> dict[str, int]: ...


class DataplaneServer:
    """Serves all ports of one switch but its CPU and drop ports. All methods run in the event loop.

    `take_events` hands over events of the switch that wait, to `sent` and `drained` among others, and returns whether
    there may be more; `port_changed` hears of ports that go up or down.
    """

    def __init__(
        self,
        switch: EnginePorts,
        *,
        reserved: set[int],
        take_events: Callable[[], bool],
        port_changed: Callable[[int], None],
    ) -> None:
        self._switch = switch
        self._take_events = take_events
        self._port_changed = port_changed
        self._ports_down: set[int] = set()
        self._stream: _Stream | None = None
        self._drains: dict[int, asyncio.Future[None]] = {}
        self._drain_tag = 0
        self._release: asyncio.Task[None] | None = None
        self._server: grpc.aio.Server | None = None
        for port in range(PORTS):
            if port not in reserved:
                switch.tap(port)

    async def start(self, address: str) -> int:
        """Listen; the bound port. PortInUseError if that is not possible."""
        server = grpc.aio.server(options=[("grpc.so_reuseport", 0)], interceptors=[DecodingInterceptor()])
        stream = grpc.stream_stream_rpc_method_handler(
            self._packet_stream,
            proto.PacketStreamRequest.FromString,
            proto.PacketStreamResponse.SerializeToString,
        )
        status = grpc.unary_unary_rpc_method_handler(
            self._set_port_oper_status,
            proto.SetPortOperStatusRequest.FromString,
            proto.SetPortOperStatusResponse.SerializeToString,
        )
        handlers = {"PacketStream": stream, "SetPortOperStatus": status}
        server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(proto.SERVICE, handlers),))
        port = bind(server, address)
        await server.start()
        self._server = server
        return port

    async def stop(self) -> None:
        """End the stream and stop serving."""
        if self._server is not None:
            await self._server.stop(0.2)
        if self._release is not None:
            self._release.cancel()

    def port_up(self, port: int) -> bool:
        """The operational status that a client set; up if none did."""
        return port not in self._ports_down

    # Events of the switch

    def sent(self, port: int, frame: bytes, tag: int) -> None:
        """A packet left the switch. Without a client it goes nowhere."""
        if self._stream is not None:
            self._stream.send(
                proto.PacketStreamResponse(id=tag, device_id=self._switch.device_id, port=port, packet=frame)
            )

    def drained(self, tag: int) -> None:
        """No packet is left that was injected before `drain(tag)`."""
        done = self._drains.pop(tag, None)
        if done is not None and not done.done():
            done.set_result(None)

    # RPCs

    async def _packet_stream(self, requests: AsyncIterator[Any], context: Any) -> None:
        if not self._switch.has_program:
            await context.abort(_Code.UNAVAILABLE, "not ready: no program is loaded")
        if self._stream is not None:
            await context.abort(_Code.RESOURCE_EXHAUSTED, "only one client authorized at a time")
        stream = self._stream = _Stream(context)
        lost_before = self._switch.stats()["drops_event"]
        refused: _Refused | None = None
        try:
            try:
                async for request in requests:
                    self._inject(request)
                    while self._take_events():
                        await asyncio.sleep(0)
                    await stream.room()
            except _Refused as error:
                refused = error
            except DecodeError as error:
                refused = _Refused(_Code.INVALID_ARGUMENT, str(error))
            finally:
                # Also for a client that cancels: what it left must not reach the next one.
                self._release = asyncio.create_task(self._drain_and_release())
            await asyncio.shield(self._release)
            await stream.flush()
        finally:
            stream.close()
        lost = self._switch.stats()["drops_event"] - lost_before + stream.lost
        if refused is None and lost:
            refused = _Refused(_Code.DATA_LOSS, f"{lost} packets or digests were lost: they came faster than they went")
        if refused is not None:
            await context.abort(refused.code, refused.text)

    def _inject(self, request: Any) -> None:
        device_id = self._switch.device_id
        if request.device_id != device_id:
            raise _Refused(_Code.INVALID_ARGUMENT, f"device id {request.device_id}: this is device {device_id}")
        try:
            self._switch.inject(request.port, request.packet, request.id)
        except (IndexError, ValueError) as error:
            raise _Refused(_Code.INVALID_ARGUMENT, str(error)) from None
        except MemoryError as error:
            raise _Refused(_Code.RESOURCE_EXHAUSTED, str(error)) from None

    async def _drain_and_release(self) -> None:
        self._drain_tag += 1
        tag = self._drain_tag
        done = self._drains[tag] = asyncio.get_running_loop().create_future()
        self._switch.drain(tag)
        await done
        self._stream = None

    async def _set_port_oper_status(self, request: Any, context: Any) -> Any:
        port = request.port
        if request.device_id != self._switch.device_id:
            await context.abort(_Code.INVALID_ARGUMENT, f"Invalid device id {request.device_id}")
        if request.oper_status not in (proto.STATUS_UP, proto.STATUS_DOWN):
            await context.abort(_Code.INVALID_ARGUMENT, f"Invalid oper status {request.oper_status}")
        up = request.oper_status == proto.STATUS_UP
        try:
            self._switch.set_port_up(port, up)
        except IndexError as error:
            await context.abort(_Code.INVALID_ARGUMENT, str(error))
        if up != self.port_up(port):
            (self._ports_down.discard if up else self._ports_down.add)(port)
            self._port_changed(port)
        return proto.SetPortOperStatusResponse()


class _Refused(Exception):
    """A request that ends its stream."""

    def __init__(self, code: grpc.StatusCode, text: str) -> None:
        super().__init__(text)
        self.code = code
        self.text = text


class _Stream:
    """What waits to be written to the client."""

    def __init__(self, context: Any) -> None:
        self.lost = 0  # a client that does not read: a program may make packets without end
        self._context = context
        self._queue: asyncio.Queue[Any] = asyncio.Queue(_WAITING_LIMIT)
        self._room = asyncio.Event()
        self._room.set()
        self._writer = asyncio.create_task(self._write())

    def send(self, response: Any) -> None:
        try:
            self._queue.put_nowait(response)
        except asyncio.QueueFull:
            self.lost += 1
        if self._queue.qsize() > _WAITING_PAUSE:
            self._room.clear()

    async def room(self) -> None:
        """Wait until the client has taken enough of what came back."""
        await self._room.wait()

    async def flush(self) -> None:
        """Write all that waits; returns early if the client is gone."""
        written = asyncio.create_task(self._queue.join())
        await asyncio.wait({written, self._writer}, return_when=asyncio.FIRST_COMPLETED)
        written.cancel()

    def close(self) -> None:
        self._writer.cancel()

    async def _write(self) -> None:
        while True:
            response = await self._queue.get()
            try:
                await self._context.write(response)
            finally:
                self._queue.task_done()
            if self._queue.qsize() <= _WAITING_PAUSE:
                self._room.set()

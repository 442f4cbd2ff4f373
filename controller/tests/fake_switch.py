"""A P4Runtime server that keeps entries and elects a primary, and can be told to misbehave."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import grpc
from finsy.proto import p4r, p4r_grpc, rpc_status
from google.protobuf.any_pb2 import Any as AnyMessage

from controller.entries import identity

OK, INVALID, NOT_FOUND, EXISTS, DENIED, PRECONDITION, UNKNOWN = 0, 3, 5, 6, 7, 9, 2


class FakeSwitch(p4r_grpc.P4RuntimeServicer):
    """One device.  `refuse` sees every update first; `distort` sees every entry that is read."""

    def __init__(self) -> None:
        self.config = p4r.ForwardingPipelineConfig()
        self.entries: dict[object, p4r.TableEntry] = {}
        self.counters: list[p4r.CounterEntry] = []
        self.elections: dict[object, int] = {}
        self.highest = 0
        self.queues: dict[object, asyncio.Queue] = {}
        self.writes: list[p4r.Update] = []
        self.loads = 0
        self.refuse: Callable[[p4r.Update], tuple[int, str] | None] = lambda _update: None
        self.distort: Callable[[p4r.TableEntry], p4r.TableEntry | None] = lambda entry: entry

    # --- election ---

    def _primary(self) -> int | None:
        top = max(self.elections.values(), default=0)
        return top if top >= self.highest else None

    def _tell(self, stream: object) -> None:
        primary = self._primary()
        mine = self.elections[stream]
        code = NOT_FOUND if primary is None else OK if mine == primary else EXISTS
        answer = p4r.MasterArbitrationUpdate(device_id=1, status=rpc_status.Status(code=code))
        answer.election_id.high, answer.election_id.low = divmod(self.highest, 1 << 64)
        self.queues[stream].put_nowait(p4r.StreamMessageResponse(arbitration=answer))

    async def StreamChannel(self, requests, context):  # noqa: N802 (gRPC's name)
        stream, self.queues[stream] = (key := object()), asyncio.Queue()
        assert key is stream

        async def listen() -> None:
            async for request in requests:
                wanted = request.arbitration.election_id.high << 64 | request.arbitration.election_id.low
                if wanted in self.elections.values() and self.elections.get(stream) != wanted:
                    self.queues[stream].put_nowait(None)
                    return
                self.elections[stream] = wanted
                changed = wanted > self.highest
                self.highest = max(self.highest, wanted)
                for other in list(self.elections) if changed else [stream]:
                    self._tell(other)

        listener = asyncio.create_task(listen())
        try:
            while True:
                message = await self.queues[stream].get()
                if message is None:
                    await context.abort(grpc.StatusCode.INVALID_ARGUMENT, "Election id already exists")
                await context.write(message)
        finally:
            listener.cancel()
            self.queues.pop(stream, None)
            was_primary = self.elections.pop(stream, None) == self.highest
            for other in self.elections if was_primary else ():
                self._tell(other)

    # --- pipeline ---

    async def Capabilities(self, request, context):  # noqa: N802
        return p4r.CapabilitiesResponse(p4runtime_api_version="1.3.0")

    async def GetForwardingPipelineConfig(self, request, context):  # noqa: N802
        if not self.config.HasField("p4info"):
            await context.abort(
                grpc.StatusCode.FAILED_PRECONDITION, "No forwarding pipeline config set for this device"
            )
        return p4r.GetForwardingPipelineConfigResponse(config=self.config)

    async def SetForwardingPipelineConfig(self, request, context):  # noqa: N802
        await self._only_primary(request, context)
        self.config.CopyFrom(request.config)
        self.entries.clear()
        self.loads += 1
        return p4r.SetForwardingPipelineConfigResponse()

    async def _only_primary(self, request, context) -> None:
        if (request.election_id.high << 64 | request.election_id.low) != self._primary():
            await context.abort(grpc.StatusCode.PERMISSION_DENIED, "Not primary")

    # --- entries ---

    async def Write(self, request, context):  # noqa: N802
        await self._only_primary(request, context)
        results = [self._update(update) for update in request.updates]
        if any(code for code, _ in results):
            status = rpc_status.Status(code=UNKNOWN, message="write failed")
            for code, text in results:
                detail = AnyMessage()
                detail.Pack(p4r.Error(canonical_code=code, message=text))
                status.details.append(detail)
            context.set_trailing_metadata((("grpc-status-details-bin", status.SerializeToString()),))
            await context.abort(grpc.StatusCode.UNKNOWN, "write failed")
        return p4r.WriteResponse()

    def _update(self, update: p4r.Update) -> tuple[int, str]:
        refused = self.refuse(update)
        if refused:
            return refused
        entry = update.entity.table_entry
        key = identity(entry)
        if update.type == p4r.Update.INSERT and key in self.entries:
            return EXISTS, "Match entry exists"
        if update.type != p4r.Update.INSERT and key not in self.entries and not entry.is_default_action:
            return NOT_FOUND, "Cannot find match entry"
        self.writes.append(update)
        if update.type == p4r.Update.DELETE:
            del self.entries[key]
        else:
            self.entries[key] = entry
        return OK, ""

    async def Read(self, request, context):  # noqa: N802
        reply = p4r.ReadResponse()
        for entity in request.entities:
            if entity.HasField("counter_entry"):
                wanted = entity.counter_entry.counter_id
                cells = (cell for cell in self.counters if cell.counter_id == wanted)
                reply.entities.extend(p4r.Entity(counter_entry=cell) for cell in cells)
                continue
            wanted = entity.table_entry
            for entry in self.entries.values():
                same_table = wanted.table_id in (0, entry.table_id)
                if same_table and entry.is_default_action == wanted.is_default_action:
                    shown = self.distort(entry)
                    if shown is not None:
                        reply.entities.append(p4r.Entity(table_entry=shown))
        yield reply


@asynccontextmanager
async def serving(switch: FakeSwitch, address: str = "127.0.0.1:0") -> AsyncIterator[str]:
    """Runs the switch and gives its address."""
    server = grpc.aio.server()
    p4r_grpc.add_P4RuntimeServicer_to_server(switch, server)
    port = server.add_insecure_port(address)
    await server.start()
    try:
        yield f"127.0.0.1:{port}"
    finally:
        await server.stop(None)

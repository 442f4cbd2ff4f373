"""What the P4Runtime tests share: compiled programs, a pipeline over the in-memory engine, a raw client."""

import asyncio
import functools
import os
import subprocess
import tempfile
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

import grpc
import grpc.aio
import pytest
from finsy.proto import U128, p4i, p4r, p4r_grpc, rpc_status
from google.protobuf import text_format

from fastswitch.codegen import load_program
from fastswitch.server.device import Device
from fastswitch.server.errors import P4RuntimeError
from fastswitch.server.program import Program, ProgramStore
from fastswitch.server.schema import build_schema
from fastswitch.server.service import P4RuntimeServer
from fastswitch.server.state import PipelineState
from fastswitch.tests.fake_engine import FakeSwitch

DATA = Path(__file__).parent / "data"
EVERYTHING = DATA / "everything.p4"
ECMP = Path(__file__).parents[2] / "p4src" / "ecmp.p4"

INSERT, MODIFY, DELETE = p4r.Update.INSERT, p4r.Update.MODIFY, p4r.Update.DELETE


@functools.cache
def compiled(source: Path) -> tuple[p4i.P4Info, bytes]:
    """P4Info and JSON of a program, by p4front; by the p4c in $PLAIT_TEST_P4C where that is set."""
    p4c = os.environ.get("PLAIT_TEST_P4C")
    if p4c:
        return _by_p4c(p4c, source)
    import p4front

    result = p4front.compile_file(source)
    return result.p4info, result.json_text.encode()


def _by_p4c(p4c: str, source: Path) -> tuple[p4i.P4Info, bytes]:
    with tempfile.TemporaryDirectory() as scratch:
        info, json = Path(scratch) / "p4info.txtpb", Path(scratch) / "program.json"
        command = [p4c, "--p4runtime-files", str(info), "-o", str(json), str(source)]
        subprocess.run(command, check=True, capture_output=True)
        return text_format.Parse(info.read_text(), p4i.P4Info()), json.read_bytes()


@functools.cache
def program(source: Path = EVERYTHING) -> Program:
    """The program without a shared object: for the in-memory engine."""
    p4info, json = compiled(source)
    code = load_program(json)
    return Program(code, build_schema(p4info, code), Path("/dev/null"))


def new_state(engine: FakeSwitch | None = None, source: Path = EVERYTHING, down: frozenset[int] = frozenset()) -> Any:
    """A pipeline over the in-memory engine, which it gives as `.engine`."""
    engine = engine or fake_engine(source)
    state = PipelineState(program(source), engine, lambda port: port not in down)
    state.engine = engine
    return state


def fake_engine(source: Path = EVERYTHING, **arguments: Any) -> FakeSwitch:
    """An in-memory switch that knows the sizes of the program's arrays and tables."""
    code = program(source).code
    engine = FakeSwitch(**arguments)
    engine.table_sizes = {table.index: table.size for table in code.tables}
    engine.counter_sizes = {array.index: array.size for array in code.counters}
    engine.register_sizes = {array.index: (array.size, (array.width + 7) // 8) for array in code.registers}
    return engine


def config(source: Path = EVERYTHING, cookie: int | None = None) -> p4r.ForwardingPipelineConfig:
    """The forwarding pipeline config of a program."""
    p4info, json = compiled(source)
    made = p4r.ForwardingPipelineConfig(p4info=p4info, p4_device_config=json)
    if cookie is not None:
        made.cookie.cookie = cookie
    return made


class Names:
    """P4Info ids by name, for writing messages."""

    def __init__(self, p4info: p4i.P4Info) -> None:
        self.ids = {
            noun.preamble.alias: noun.preamble.id
            for group in (
                p4info.tables,
                p4info.actions,
                p4info.action_profiles,
                p4info.counters,
                p4info.direct_counters,
                p4info.meters,
                p4info.registers,
                p4info.value_sets,
                p4info.digests,
            )
            for noun in group
        }
        self._tables = {table.preamble.alias: table for table in p4info.tables}

    def action(self, name: str, *values: bytes) -> p4r.Action:
        params = [p4r.Action.Param(param_id=i, value=value) for i, value in enumerate(values, 1)]
        return p4r.Action(action_id=self.ids[name], params=params)

    def table_action(self, name: str, *values: bytes) -> p4r.TableAction:
        return p4r.TableAction(action=self.action(name, *values))

    def entry(self, table: str, *matches: Any, **fields: Any) -> p4r.TableEntry:
        """Matches in the order of the key; None leaves a field out."""
        infos = self._tables[table].match_fields
        message = p4r.TableEntry(table_id=self.ids[table], **fields)
        for info, match in zip(infos, matches, strict=False):
            if match is not None:
                match.field_id = info.id
                message.match.append(match)
        return message


def names(source: Path = EVERYTHING) -> Names:
    return Names(compiled(source)[0])


def exact(value: bytes) -> p4r.FieldMatch:
    return p4r.FieldMatch(exact=p4r.FieldMatch.Exact(value=value))


def lpm(value: bytes, prefix_len: int) -> p4r.FieldMatch:
    return p4r.FieldMatch(lpm=p4r.FieldMatch.LPM(value=value, prefix_len=prefix_len))


def ternary(value: bytes, mask: bytes) -> p4r.FieldMatch:
    return p4r.FieldMatch(ternary=p4r.FieldMatch.Ternary(value=value, mask=mask))


def range_(low: bytes, high: bytes) -> p4r.FieldMatch:
    return p4r.FieldMatch(range=p4r.FieldMatch.Range(low=low, high=high))


def optional(value: bytes) -> p4r.FieldMatch:
    return p4r.FieldMatch(optional=p4r.FieldMatch.Optional(value=value))


def update(kind: int, **entity: Any) -> p4r.Update:
    return p4r.Update(type=kind, entity=p4r.Entity(**entity))


def insert(entry: p4r.TableEntry) -> p4r.Update:
    return update(INSERT, table_entry=entry)


def modify(entry: p4r.TableEntry) -> p4r.Update:
    return update(MODIFY, table_entry=entry)


def delete(entry: p4r.TableEntry) -> p4r.Update:
    return update(DELETE, table_entry=entry)


@contextmanager
def refused(code: int, text: str) -> Iterator[None]:
    """What runs inside is refused with this code and text."""
    with pytest.raises(P4RuntimeError, match=text) as caught:
        yield
    assert caught.value.code == code


def read(state: PipelineState, **entity: Any) -> list[Any]:
    """The entities of one read, as the messages inside them."""
    found = list(state.read(p4r.Entity(**entity)))
    return [getattr(each, each.WhichOneof("entity")) for each in found]


class RawClient:
    """A P4Runtime client that hides nothing."""

    def __init__(self, channel: grpc.aio.Channel, device_id: int = 1) -> None:
        self.stub = p4r_grpc.P4RuntimeStub(channel)
        self.device_id = device_id
        self.election_id: int | None = None
        self.role = ""
        self._stream: Any = None

    async def arbitrate(
        self, election_id: int | None = 1, role: p4r.Role | None = None, device_id: int | None = None
    ) -> p4r.MasterArbitrationUpdate:
        """Send an arbitration message and take the next answer."""
        await self.send_arbitration(election_id, role, device_id)
        return (await self.receive()).arbitration

    async def send_arbitration(
        self, election_id: int | None = 1, role: p4r.Role | None = None, device_id: int | None = None
    ) -> None:
        message = p4r.MasterArbitrationUpdate(device_id=self.device_id if device_id is None else device_id, role=role)
        if election_id is not None:
            message.election_id.CopyFrom(U128.encode(election_id))
        self.election_id = election_id
        self.role = role.name if role is not None else ""
        await self.send(p4r.StreamMessageRequest(arbitration=message))

    async def send(self, message: p4r.StreamMessageRequest) -> None:
        if self._stream is None:
            self._stream = self.stub.StreamChannel()
        await self._stream.write(message)

    async def receive(self, timeout: float = 3.0) -> p4r.StreamMessageResponse:
        return await asyncio.wait_for(self._stream.read(), timeout)

    async def silent(self, seconds: float = 0.15) -> bool:
        """Whether nothing arrives for a while. The stream is of no use afterwards if something was under way."""
        read_task = asyncio.ensure_future(self._stream.read())
        done, _ = await asyncio.wait([read_task], timeout=seconds)
        return not done

    async def leave(self) -> None:
        """Close the stream."""
        self._stream.cancel()
        self._stream = None

    async def finish(self) -> None:
        """End the stream politely: no more requests."""
        await self._stream.done_writing()

    async def set_config(
        self,
        config_: p4r.ForwardingPipelineConfig | None,
        action: int = p4r.SetForwardingPipelineConfigRequest.VERIFY_AND_COMMIT,
    ) -> None:
        request = p4r.SetForwardingPipelineConfigRequest(
            device_id=self.device_id, role=self.role, action=action, config=config_
        )
        self._identify(request)
        await self.stub.SetForwardingPipelineConfig(request)

    async def get_config(self, response_type: int = 0) -> p4r.ForwardingPipelineConfig:
        request = p4r.GetForwardingPipelineConfigRequest(device_id=self.device_id, response_type=response_type)
        return (await self.stub.GetForwardingPipelineConfig(request)).config

    async def write(self, *updates: p4r.Update, **fields: Any) -> None:
        request = p4r.WriteRequest(device_id=self.device_id, role=self.role, updates=updates, **fields)
        self._identify(request)
        await self.stub.Write(request)

    async def read(self, *entities: p4r.Entity) -> list[p4r.Entity]:
        found = []
        request = p4r.ReadRequest(device_id=self.device_id, role=self.role, entities=entities)
        async for response in self.stub.Read(request):
            found.extend(response.entities)
        return found

    def _identify(self, request: Any) -> None:
        if self.election_id is not None:
            request.election_id.CopyFrom(U128.encode(self.election_id))


@asynccontextmanager
async def serving(*devices: Device) -> AsyncIterator[str]:
    """A server on a free loopback port; its address."""
    server = P4RuntimeServer(devices)
    port = (await server.start(["127.0.0.1:0"]))[0]
    try:
        yield f"127.0.0.1:{port}"
    finally:
        await server.stop(grace=0)


@asynccontextmanager
async def connected(
    address: str, device_id: int = 1, options: Sequence[tuple[str, Any]] = ()
) -> AsyncIterator[RawClient]:
    """A client on a connection of its own."""
    async with grpc.aio.insecure_channel(address, [("grpc.max_metadata_size", 1 << 20), *options]) as channel:
        yield RawClient(channel, device_id)


def fake_device(source: Path = EVERYTHING, **arguments: Any) -> Device:
    """A device over the in-memory engine: nothing is compiled to C."""
    engine = fake_engine(source, **arguments)
    return Device(engine, ProgramStore(lambda json: Path("/dev/null")), cpu_port=510)


def error_codes(error: grpc.RpcError) -> list[int]:
    """The canonical code of each update, from the trailer."""
    return [detail.canonical_code for detail in error_details(error)]


def error_details(error: grpc.RpcError) -> list[p4r.Error]:
    trailers = {key: value for key, value in error.trailing_metadata()}  # type: ignore[attr-defined]
    status = rpc_status.Status.FromString(trailers["grpc-status-details-bin"])
    assert status.code == error.code().value[0]  # type: ignore[attr-defined]
    details = []
    for packed in status.details:
        detail = p4r.Error()
        assert packed.Unpack(detail)
        details.append(detail)
    return details


def failing(code, text=""):
    """An RPC inside ends with this status."""
    return _Failing(code, text)


class _Failing:
    def __init__(self, code, text):
        self.code, self.text = code, text

    def __enter__(self):
        self._raises = pytest.raises(grpc.aio.AioRpcError, match=self.text or None)
        self._caught = self._raises.__enter__()
        return self

    def __exit__(self, *details):
        handled = self._raises.__exit__(*details)
        self.error = self._caught.value
        assert self.error.code() == self.code, self.error
        return handled

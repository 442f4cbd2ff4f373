"""Connections to switches: reading beside whoever controls them, and writing as their primary controller.

Reading takes no part in the election of a primary, so it never disturbs the laboratory's controller. Writing does: the
election id decides who may write, see `controller.defaults`.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import asynccontextmanager
from typing import Any

import finsy as fy
from finsy.proto import p4r

from controller.describe import describe
from controller.errors import ControllerError, RefusedError, SwitchUnreachableError
from controller.targets import Target

CONNECT_TIMEOUT_S = 15.0

# Updates in one write request: large enough to amortise a round trip, small enough for gRPC's 4 MB messages.
BATCH_UPDATES = 500

_UNREACHABLE = (fy.GRPCStatusCode.UNAVAILABLE, fy.GRPCStatusCode.DEADLINE_EXCEEDED)

# finsy tells the log what this package raises as errors.
logging.getLogger("finsy").setLevel(logging.ERROR)


class Reader:
    """Reads what a switch holds.  `schema` describes the program that the switch runs."""

    def __init__(self, target: Target, client: fy.P4Client, schema: fy.P4Schema) -> None:
        self.target = target
        self.schema = schema
        self._client = client

    async def read(self, wanted: Sequence[Any]) -> list[p4r.Entity]:
        """The entities that match those given (finsy's, with empty fields for wildcards); ControllerError."""
        request = p4r.ReadRequest(
            device_id=self.target.device_id, entities=[entity.encode(self.schema) for entity in wanted]
        )
        if not wanted:
            return []
        with translated(self.target, "read"):
            return [entity async for reply in self._client.request_iter(request) for entity in reply.entities]


class translated:  # noqa: N801 (reads as a statement)
    """Turns finsy's errors into ControllerErrors that name the switch, its address and what was asked of it."""

    def __init__(self, target: Target, request: str, schema: fy.P4Schema | None = None) -> None:
        self.where = f"{target.name} ({target.address})"
        self.request = request
        self.schema = schema

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if isinstance(error, TimeoutError):
            raise SwitchUnreachableError(f"{self.where}: no answer to {self.request} in time") from None
        if isinstance(error, fy.P4ClientError):
            if error.code in _UNREACHABLE:
                reason = f"{self.where} does not answer P4Runtime: {error.message or error.code.name}"
                raise SwitchUnreachableError(reason) from None
            raise RefusedError(f"{self.where} refused {self._reasons(error)}") from None

    def _reasons(self, error: fy.P4ClientError) -> str:
        """Every refused update with its reason, a line each; the request and its reason where there are none."""
        details = [
            f"{_update_text(detail.subvalue, self.schema)}: {detail.canonical_code.name} {detail.message}".rstrip()
            for detail in error.details.values()
        ]
        if not details:
            return f"{self.request}: {error.code.name} {error.message}".rstrip()
        shown = details[:5] + ([f"… and {len(details) - 5} more"] if len(details) > 5 else [])
        return "\n  ".join(shown)


def _update_text(update: Any, schema: fy.P4Schema | None) -> str:
    if not isinstance(update, p4r.Update) or schema is None:
        return "an update"
    return describe(update, schema)


@asynccontextmanager
async def reading(target: Target) -> AsyncIterator[Reader]:
    """A connection for reading; RefusedError if the switch runs no program yet."""
    client = fy.P4Client(target.address, wait_for_ready=False)
    await client.open()
    try:
        request = p4r.GetForwardingPipelineConfigRequest(
            device_id=target.device_id,
            response_type=p4r.GetForwardingPipelineConfigRequest.ResponseType.P4INFO_AND_COOKIE,
        )
        try:
            with translated(target, "to tell its program"):
                config = (await client.request(request)).config
        except RefusedError as error:
            if "FAILED_PRECONDITION" in str(error):
                raise _no_program(target) from None
            raise
        if not config.HasField("p4info"):
            raise _no_program(target)
        yield Reader(target, client, fy.P4Schema(config.p4info))
    finally:
        await client.close()


def _no_program(target: Target) -> RefusedError:
    return RefusedError(f"device {target.device_id} at {target.name} ({target.address}) runs no program yet")


@asynccontextmanager
async def controlling(target: Target, options: fy.SwitchOptions) -> AsyncIterator[fy.Switch]:
    """A connection as the switch's primary controller; RefusedError if another controller is and stays it.

    If `options` hold a program, the switch runs it on entry: loaded, or already there.
    """
    switch = fy.Switch(target.name, target.address, options(device_id=target.device_id))
    try:
        with translated(target, "the program" if options.p4blob else "a controller"):
            async with asyncio.timeout(CONNECT_TIMEOUT_S):
                await switch.__aenter__()
    except (RuntimeError, ValueError) as error:  # finsy's answers to a server that breaks the protocol
        raise RefusedError(
            f"{target.name} ({target.address}) is no P4Runtime switch that we understand: {error}"
        ) from None
    try:
        if not switch.is_primary:
            raise RefusedError(
                f"{target.name} ({target.address}): another controller, with the election id {switch.primary_id}, is "
                f"primary; ours is {switch.election_id}"
            )
        if not switch.p4info.exists:
            raise _no_program(target)
        yield switch
    finally:
        await switch.__aexit__(None, None, None)


async def write(target: Target, switch: fy.Switch, updates: Sequence[Any]) -> None:
    """Writes finsy's updates (`+entry`, `~entry`, `-entry`) in batches; RefusedError names those that were refused."""
    for batch in batches(updates):
        with translated(target, "a write", switch.p4info):
            await switch.write(batch)


def batches(updates: Sequence[Any], size: int = BATCH_UPDATES) -> Iterable[Sequence[Any]]:
    return (updates[start : start + size] for start in range(0, len(updates), size))


async def each(targets: Sequence[Target], work: Any) -> list[Any]:
    """Runs `work(target)` for all targets at once; raises one ControllerError that names all that failed."""
    results = await asyncio.gather(*(work(target) for target in targets), return_exceptions=True)
    failures = [result for result in results if isinstance(result, BaseException)]
    for failure in failures:
        if not isinstance(failure, ControllerError):
            raise failure
    if len(failures) > 1:
        first = "\n".join(str(failure) for failure in failures[:5])
        more = f"\n… and {len(failures) - 5} more switches" if len(failures) > 5 else ""
        raise type(failures[0])(first + more)
    if failures:
        raise failures[0]
    return results

"""The verbs by which people meet digests: what a program tells its controller, such as addresses that it learned."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from typing import Any

import finsy as fy
from finsy.proto import p4r

from controller import text
from controller.connection import Reader, controlling, reading
from controller.data import plain
from controller.errors import RefusedError
from controller.targets import Target
from controller.values import bounded
from controller.writing import carry_out, delete, options


@dataclass(frozen=True, slots=True)
class DigestRow:
    """A digest of the program; the rest is None while it is off. Times are milliseconds."""

    digest: str
    on: bool
    at_most: int | None
    wait_ms: float | None
    again_ms: float | None


@dataclass(frozen=True, slots=True)
class Told:
    """One message of a digest."""

    digest: str
    list_id: int
    values: Any


async def digest_list(target: Target) -> list[DigestRow]:
    async with reading(target) as reader:
        configs = await _configs(reader)
        rows = []
        for known in reader.schema.digests:
            config = configs.get(known.id)
            if config is None:
                rows.append(DigestRow(known.name, False, None, None, None))
            else:
                times = (config.max_timeout_ns / 1e6, config.ack_timeout_ns / 1e6)
                rows.append(DigestRow(known.name, True, config.max_list_size, *times))
    return sorted(rows, key=lambda row: row.digest)


async def _configs(reader: Reader) -> dict[int, Any]:
    """The configuration of each digest that is on."""
    found = []
    for known in reader.schema.digests:
        try:
            found += [entity.digest_entry for entity in await reader.read([fy.P4DigestEntry(known.name)])]
        except RefusedError as error:
            if "NOT_FOUND" not in str(error):  # so BMv2 says that it is off
                raise
    return {entry.digest_id: entry.config for entry in found if entry.HasField("config")}


async def digest_on(
    target: Target, digest: str, at_most: int, wait_ns: int, again_ns: int, dry_run: bool = False
) -> list[str]:
    """Lists of at most `at_most` values after at most `wait_ns`; a value again after `again_ns` without answer."""

    async def plan(reader: Reader) -> Sequence[Any]:
        known = text.find("digest", digest, reader.schema.digests)
        bounded("values of a list:", at_most, 1, (1 << 31) - 1)
        for time in (wait_ns, again_ns):
            bounded("nanoseconds:", time, 0, (1 << 63) - 1)
        entry = fy.P4DigestEntry(known.name, max_list_size=at_most, max_timeout_ns=wait_ns, ack_timeout_ns=again_ns)
        return [~entry if known.id in await _configs(reader) else +entry]

    return await carry_out(target, plan, dry_run)


async def digest_off(target: Target, digest: str, dry_run: bool = False) -> list[str]:
    async def plan(reader: Reader) -> Sequence[Any]:
        known = text.find("digest", digest, reader.schema.digests)
        return [delete(p4r.Entity(digest_entry=p4r.DigestEntry(digest_id=known.id)))]

    return await carry_out(target, plan, dry_run)


async def listen(target: Target, digest: str) -> AsyncIterator[Told]:
    """Messages of a digest that is on, each acknowledged, until the caller stops.

    Listening takes the laboratory's controller its place as primary, since P4Runtime tells the primary only.
    """
    async with controlling(target, options()) as switch:
        known = text.find("digest", digest, switch.p4info.digests)
        lists: Any = switch.read_digests(known.alias)  # an async generator, not declared as one
        async with aclosing(lists):
            async for told in lists:
                yield Told(known.name, told.list_id, [plain(value) for value in told.data])
                await switch.write([told.ack()])

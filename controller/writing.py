"""Writing as a person does, beside the laboratory's controller: plan from what the switch says, then write, or tell.

Asks for the highest election id for as long as it takes, so that the laboratory's controller is primary afterwards.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Any

import finsy as fy
from finsy.proto import p4r

from controller import defaults
from controller.connection import Reader, controlling, reading, write
from controller.describe import describe
from controller.errors import EntryTextError
from controller.targets import Target

Plan = Callable[[Reader], Awaitable[Sequence[Any]]]


async def carry_out(target: Target, plan: Plan, dry_run: bool = False) -> list[str]:
    """Writes the updates that `plan` makes, in their order; returns what each was, in words.

    dry_run: nothing is written. ControllerErrors of the plan, RefusedError for what the switch refuses.
    """
    async with reading(target) as reader:
        updates = [encoded(update, reader.schema) for update in await plan(reader)]
        texts = [describe(update, reader.schema) for update in updates]
    if updates and not dry_run:
        async with controlling(target, options()) as switch:
            await write(target, switch, updates)
    return texts


def options() -> fy.SwitchOptions:
    return fy.SwitchOptions(initial_election_id=defaults.personal_election_id())


def encoded(update: Any, schema: fy.P4Schema) -> p4r.Update:
    if isinstance(update, p4r.Update):
        return update
    try:
        message = update.encode_update(schema)
    except ValueError as error:
        raise EntryTextError(str(error)) from None
    assert isinstance(message, p4r.Update)
    return message


def delete(entity: p4r.Entity) -> p4r.Update:
    return p4r.Update(type=p4r.Update.DELETE, entity=entity)


def modify(entity: p4r.Entity) -> p4r.Update:
    return p4r.Update(type=p4r.Update.MODIFY, entity=entity)

"""Files of other tools, written to a switch: `sN-runtime.json` of p4lang's tutorials, commands of simple_switch_CLI."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import finsy as fy

from controller.command_file import read_command_file
from controller.connection import Reader
from controller.errors import EntryTextError
from controller.runtime_json import read_runtime_json
from controller.targets import Target
from controller.writing import carry_out, delete


async def load_file(target: Target, name: str, document: str, dry_run: bool = False) -> list[str]:
    """Writes what a file says; EntryTextError names the file and the place in it, and nothing was written then.

    What begins with `{` is a runtime.json, everything else a command file.
    """

    async def plan(reader: Reader) -> Sequence[Any]:
        if document.lstrip().startswith("{"):
            try:
                return read_runtime_json(document, reader.schema)
            except EntryTextError as error:
                raise EntryTextError(f"{name}: {error}") from None
        try:
            commands = read_command_file(document, reader.schema)
        except EntryTextError as error:
            raise EntryTextError(f"{name}:{error}") from None
        cleared = await reader.read([fy.P4TableEntry(table) for table in commands.clear])
        return [*(delete(entity) for entity in cleared if not entity.table_entry.is_const), *commands.updates]

    return await carry_out(target, plan, dry_run)

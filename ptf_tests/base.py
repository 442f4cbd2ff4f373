"""What the PTF tests of all programs share: a switch with a program loaded, and table verbs as people write them."""

import asyncio
from collections.abc import Coroutine
from typing import Any

import finsy as fy
import ptf.testutils
from ptf.base_tests import BaseTest

from controller import arrays, tables
from controller.connection import controlling, reading, write
from controller.defaults import personal_election_id
from controller.targets import Target

# One loop for all tests: gRPC's threads outlive a loop that is closed after each call.
_loop = asyncio.Runner()


class SwitchTest(BaseTest):
    """Adds entries with `add`, and removes them all after the test."""

    def setUp(self) -> None:
        super().setUp()
        self.dataplane = ptf.dataplane_instance
        self.dataplane.flush()
        self.target = Target(
            "s1", ptf.testutils.test_param_get("grpcaddr"), int(ptf.testutils.test_param_get("device_id"))
        )
        self._added: list[tuple[str, list[str]]] = []

    def tearDown(self) -> None:
        for table, match in reversed(self._added):
            _loop.run(tables.table_del(self.target, table, match))
        super().tearDown()

    def add(self, table: str, match: list[str], action: str) -> None:
        _loop.run(tables.table_add(self.target, table, match, action))
        self._added.append((table, match))

    def add_entry(self, table: str, match: str, entry: fy.P4TableEntry) -> None:
        """An entry that has no text; `match` is its match as text."""

        async def insert() -> None:
            options = fy.SwitchOptions(initial_election_id=personal_election_id())
            async with controlling(self.target, options) as switch:
                await write(self.target, switch, [+entry])

        _loop.run(insert())
        self._added.append((table, [match]))

    def delete(self, table: str, match: list[str]) -> None:
        _loop.run(tables.table_del(self.target, table, match))

    def counted(self, counter: str) -> dict[int, tuple[int, int]]:
        """Packets and bytes of the cells that counted anything."""
        rows = _loop.run(arrays.counter_show(self.target, counter))
        return {row.index: (row.packets, row.bytes) for row in rows}

    def wait_for(self, work: Coroutine[Any, Any, Any]) -> None:
        _loop.run(work)

    def register(self, name: str, index: int) -> int:
        async def read() -> int:
            async with reading(self.target) as reader:
                (entity,) = await reader.read([fy.P4RegisterEntry(name, index=index)])
            return int.from_bytes(entity.register_entry.data.bitstring, "big")

        return _loop.run(read())

    def set_default(self, table: str, action: str) -> None:
        _loop.run(tables.table_default(self.target, table, action))

"""What the PTF tests of all programs share: a switch with a program loaded, and table verbs as people write them."""

import asyncio
import subprocess
import time
from collections.abc import Coroutine, Iterator
from contextlib import contextmanager
from typing import Any

import finsy as fy
import ptf.testutils
from ptf.base_tests import BaseTest

from controller import counters, tables
from controller.connection import reading
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

    def delete(self, table: str, match: list[str]) -> None:
        _loop.run(tables.table_del(self.target, table, match))

    def counted(self, counter: str) -> dict[int, tuple[int, int]]:
        """Packets and bytes of the cells that counted anything."""
        rows = _loop.run(counters.counters_show(self.target, counter))
        return {row.index: (row.packets, row.bytes) for row in rows}

    def wait_for(self, work: Coroutine[Any, Any, None]) -> None:
        _loop.run(work)

    def register(self, name: str, index: int) -> int:
        async def read() -> int:
            async with reading(self.target) as reader:
                (entity,) = await reader.read([fy.P4RegisterEntry(name, index=index)])
            return int.from_bytes(entity.register_entry.data.bitstring, "big")

        return _loop.run(read())

    @contextmanager
    def dead_port(self, port: int) -> Iterator[None]:
        """A port without carrier; BMv2, which tells its programs nothing of links, is told by its controller."""
        if ptf.testutils.test_param_get("target") == "bmv2":
            self.set_default("port_liveness", f"set_dead_ports(mask={1 << port})")
            yield
            self.set_default("port_liveness", "set_dead_ports(mask=0)")
            return
        self.dataplane.port_remove(0, port)  # whose reader does not outlive its interface
        self._set_carrier(port, "down")
        yield
        self._set_carrier(port, "up")
        self.dataplane.port_add(f"ptf{port}", 0, port)

    def _set_carrier(self, port: int, state: str) -> None:
        """Returns when the switch has seen it."""
        subprocess.run(["ip", "link", "set", f"ptf{port}", state], check=True)
        end = time.monotonic() + 5
        while self.register("plait.port_up", port) != (state == "up"):
            assert time.monotonic() < end, f"the switch does not see that port {port} is {state}"

    def set_default(self, table: str, action: str) -> None:
        _loop.run(tables.table_set(self.target, table, [], action))

"""What the PTF tests of all programs share: a switch with a program loaded, and table verbs as people write them."""

import asyncio

import ptf.testutils
from ptf.base_tests import BaseTest

from controller import tables
from controller.targets import Target


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
            asyncio.run(tables.table_del(self.target, table, match))
        super().tearDown()

    def add(self, table: str, match: list[str], action: str) -> None:
        asyncio.run(tables.table_add(self.target, table, match, action))
        self._added.append((table, match))

    def set_default(self, table: str, action: str) -> None:
        asyncio.run(tables.table_set(self.target, table, [], action))

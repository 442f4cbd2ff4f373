"""An engine switch without a data plane: it holds what is written to a config that is saved but not yet committed.

Its state is that of `PipelineState` alone; it only says when a table is full and gives back what arrays were told.
"""

from collections.abc import Iterable, Sequence
from itertools import count
from pathlib import Path

from engine import TableFull
from fastswitch.codegen import model
from fastswitch.server.engine_api import Count, EngineSwitch, Replica, Target
from fastswitch.server.errors import resource_exhausted

_MAX_CELLS = 1 << 20  # of arrays: a client decides how many are written


class _Stopped:
    """The clock of a switch without packets."""

    now_ns = 0


class ShadowSwitch:
    """Fits `EngineSwitch`."""

    def __init__(self, like: EngineSwitch, code: model.Program) -> None:
        self.name = like.name
        self.device_id = like.device_id
        self.priority_queues = like.priority_queues
        self.fabric = _Stopped()
        self._room = {table.index: table.size for table in code.tables}
        self._counter_sizes = {array.index: array.size for array in code.counters}
        self._registers = {array.index: (array.size, bytes((array.width + 7) // 8)) for array in code.registers}
        self._handles = count(1)
        self._counters: dict[tuple[int, int], Count] = {}
        self._cells: dict[tuple[int, int], bytes] = {}
        self._entry_counters: dict[tuple[int, int], Count] = {}

    def load(self, so_path: Path) -> None: ...

    def entry_insert(
        self,
        table: int,
        key: bytes,
        mask: bytes | None,
        prefix_len: int | None,
        range_high: bytes | None,
        priority: int,
        target: Target,
    ) -> int:
        room = self._room.get(table)
        if room is not None:
            if room == 0:
                raise TableFull(f"table {table}")
            self._room[table] = room - 1
        return next(self._handles)

    def entry_modify(self, table: int, handle: int, target: Target) -> None: ...

    def entry_delete(self, table: int, handle: int) -> None:
        if table in self._room:
            self._room[table] += 1
        self._entry_counters.pop((table, handle), None)

    def entry_counter(self, table: int, handle: int) -> Count:
        return self._entry_counters.get((table, handle), (0, 0))

    def entry_counter_set(self, table: int, handle: int, packets: int, bytes_: int) -> None:
        self._entry_counters[table, handle] = packets, bytes_

    def entry_last_hit(self, table: int, handle: int) -> int:
        return 0

    def entry_meter_set(self, table: int, handle: int, cir: int, cburst: int, pir: int, pburst: int) -> None: ...
    def entry_meter_clear(self, table: int, handle: int) -> None: ...

    def entry_meter_counts(self, table: int, handle: int) -> list[Count]:
        return [(0, 0)] * 3

    def entry_meter_counts_set(self, table: int, handle: int, counts: Sequence[Count]) -> None: ...
    def default_set(self, table: int, target: Target | None) -> None: ...

    def member_create(self, action: int, params: bytes) -> int:
        return next(self._handles)

    def member_modify(self, member: int, action: int, params: bytes) -> None: ...
    def member_delete(self, member: int) -> None: ...

    def group_create(self) -> int:
        return next(self._handles)

    def group_set(self, group: int, members: list[tuple[int, int]]) -> None: ...
    def group_delete(self, group: int) -> None: ...

    def counter_read(self, counter: int, cell: int) -> Count:
        return self._counters.get((counter, cell), (0, 0))

    def counter_read_all(self, counter: int) -> Iterable[Count]:
        return (self.counter_read(counter, cell) for cell in range(self._counter_sizes[counter]))

    def counter_write(self, counter: int, cell: int, packets: int, bytes_: int) -> None:
        self._check_room()
        self._counters[counter, cell] = packets, bytes_

    def register_read(self, register: int, cell: int) -> bytes:
        return self._cells.get((register, cell), self._registers[register][1])

    def register_read_all(self, register: int) -> Iterable[bytes]:
        return (self.register_read(register, cell) for cell in range(self._registers[register][0]))

    def register_write(self, register: int, cell: int, value: bytes) -> None:
        self._check_room()
        self._cells[register, cell] = value

    def _check_room(self) -> None:
        if len(self._counters) + len(self._cells) >= _MAX_CELLS:
            resource_exhausted(f"more than {_MAX_CELLS} cells are written to a config that is not committed yet")

    def meter_set(self, meter: int, cell: int, cir: int, cburst: int, pir: int, pburst: int) -> None: ...
    def meter_clear(self, meter: int, cell: int) -> None: ...

    def meter_counts(self, meter: int, cell: int) -> list[Count]:
        return [(0, 0)] * 3

    def meter_counts_set(self, meter: int, cell: int, counts: Sequence[Count]) -> None: ...
    def multicast_set(self, group: int, replicas: list[Replica]) -> None: ...
    def multicast_delete(self, group: int) -> None: ...
    def clone_session_set(self, session: int, replicas: list[Replica], truncate: int, priority: int) -> None: ...
    def clone_session_delete(self, session: int) -> None: ...
    def packet_out(self, port: int, frame: bytes) -> None: ...

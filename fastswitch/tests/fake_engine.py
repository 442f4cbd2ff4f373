"""An engine switch in memory: the tests of the P4Runtime server look at what arrives in the data plane."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

from engine import TableFull

Key = tuple[bytes, bytes | None, int | None, bytes | None, int]


class FakeSwitch:
    """Keeps what the control API was told. Handles are never used twice."""

    def __init__(self, name: str = "s1", device_id: int = 1, table_size: int = 1024) -> None:
        self.name = name
        self.device_id = device_id
        self.priority_queues = 4
        self.table_size = table_size
        self.table_sizes: dict[int, int] = {}
        self.register_sizes: dict[int, tuple[int, int]] = {}  # cells, bytes
        self.counter_sizes: dict[int, int] = {}
        self.loads = 0
        self.fabric = SimpleNamespace(now_ns=0)
        self._handle = 0
        self._reset()

    def _reset(self) -> None:
        self.entries: dict[int, dict[int, tuple[Key, Any]]] = {}
        self._keys: set[tuple[int, Key]] = set()
        self.defaults: dict[int, Any] = {}
        self.entry_counters: dict[int, tuple[int, int]] = {}
        self.entry_meters: dict[int, tuple[int, ...]] = {}
        self.members: dict[int, tuple[int, bytes]] = {}
        self.groups: dict[int, list[tuple[int, int]]] = {}
        self.counters: dict[tuple[int, int], tuple[int, int]] = {}
        self.registers: dict[tuple[int, int], bytes] = {}
        self.meters: dict[tuple[int, int], tuple[int, ...] | None] = {}
        self.colors: dict[tuple[str, int, int], list[tuple[int, int]]] = {}
        self.multicast: dict[int, list[tuple[int, int]]] = {}
        self.clones: dict[int, tuple[list[tuple[int, int]], int, int]] = {}
        self.sent: list[tuple[int, bytes]] = []
        self.last_hit: dict[int, int] = {}

    def _new(self) -> int:
        self._handle += 1
        return self._handle

    def load(self, so_path: Path) -> None:
        self.loads += 1
        self._reset()

    def entry_insert(self, table, key, mask, prefix_len, range_high, priority, target) -> int:
        entries = self.entries.setdefault(table, {})
        if len(entries) >= self.table_sizes.get(table, self.table_size):
            raise TableFull(f"table {table}")
        full_key = (key, mask, prefix_len, range_high, priority)
        assert (table, full_key) not in self._keys, "duplicate key reached the engine"
        self._keys.add((table, full_key))
        handle = self._new()
        entries[handle] = (full_key, target)
        self.entry_counters[handle] = (0, 0)
        return handle

    def entry_modify(self, table, handle, target) -> None:
        self.entries[table][handle] = (self.entries[table][handle][0], target)

    def entry_delete(self, table, handle) -> None:
        key, _ = self.entries[table].pop(handle)
        self._keys.remove((table, key))

    def entry_counter(self, table, handle) -> tuple[int, int]:
        return self.entry_counters[handle]

    def entry_counter_set(self, table, handle, packets, bytes_) -> None:
        self.entry_counters[handle] = (packets, bytes_)

    def entry_meter_set(self, table, handle, *numbers) -> None:
        self.entry_meters[handle] = numbers

    def entry_meter_clear(self, table, handle) -> None:
        self.entry_meters.pop(handle, None)

    def entry_last_hit(self, table, handle) -> int:
        return self.last_hit.get(handle, 0)

    def default_set(self, table, target) -> None:
        self.defaults[table] = target

    def member_create(self, action, params) -> int:
        handle = self._new()
        self.members[handle] = (action, params)
        return handle

    def member_modify(self, member, action, params) -> None:
        assert member in self.members
        self.members[member] = (action, params)

    def member_delete(self, member) -> None:
        assert all(member != used for seats in self.groups.values() for used, _ in seats), "member is in a group"
        del self.members[member]

    def group_create(self) -> int:
        handle = self._new()
        self.groups[handle] = []
        return handle

    def group_set(self, group, members) -> None:
        assert all(member in self.members for member, _ in members)
        self.groups[group] = list(members)

    def group_delete(self, group) -> None:
        del self.groups[group]

    def counter_read(self, counter, cell) -> tuple[int, int]:
        return self.counters.get((counter, cell), (0, 0))

    def counter_read_all(self, counter) -> list[tuple[int, int]]:
        return [self.counter_read(counter, cell) for cell in range(self.counter_sizes[counter])]

    def counter_write(self, counter, cell, packets, bytes_) -> None:
        self.counters[counter, cell] = (packets, bytes_)

    def register_read(self, register, cell) -> bytes:
        return self.registers.get((register, cell), bytes(self.register_sizes[register][1]))

    def register_read_all(self, register) -> list[bytes]:
        return [self.register_read(register, cell) for cell in range(self.register_sizes[register][0])]

    def register_write(self, register, cell, value) -> None:
        assert len(value) == self.register_sizes[register][1]
        self.registers[register, cell] = value

    def meter_set(self, meter, cell, *numbers) -> None:
        self.meters[meter, cell] = numbers

    def meter_clear(self, meter, cell) -> None:
        self.meters.pop((meter, cell), None)

    def meter_counts(self, meter, cell) -> list[tuple[int, int]]:
        return list(self.colors.get(("array", meter, cell), [(0, 0)] * 3))

    def meter_counts_set(self, meter, cell, counts) -> None:
        self.colors["array", meter, cell] = list(counts)

    def entry_meter_counts(self, table, handle) -> list[tuple[int, int]]:
        return list(self.colors.get(("entry", table, handle), [(0, 0)] * 3))

    def entry_meter_counts_set(self, table, handle, counts) -> None:
        self.colors["entry", table, handle] = list(counts)

    def multicast_set(self, group, replicas) -> None:
        self.multicast[group] = replicas

    def multicast_delete(self, group) -> None:
        del self.multicast[group]

    def clone_session_set(self, session, replicas, truncate, priority) -> None:
        self.clones[session] = (replicas, truncate, priority)

    def clone_session_delete(self, session) -> None:
        del self.clones[session]

    def packet_out(self, port, frame) -> None:
        self.sent.append((port, frame))

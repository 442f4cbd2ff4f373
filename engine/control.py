"""Control of one switch's tables, profiles and arrays: the part of Switch that the P4Runtime server drives.

Everything goes by index into the program's descriptors; byte strings are big-endian.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from engine._library import check, ffi, lib, new_error, unsigned

Target = tuple[Any, ...]
"""("action", action_index, params) | ("member", handle) | ("group", handle)"""

Replica = tuple[int, int]
"""(port, replica instance)"""

_TARGET_KINDS = {"action": lib.PLAIT_TARGET_ACTION, "member": lib.PLAIT_TARGET_MEMBER, "group": lib.PLAIT_TARGET_GROUP}
_TARGET, _HANDLE = ffi.typeof("struct plait_target *"), ffi.typeof("uint64_t *")
_NULL = ffi.NULL
_MAX_INDEX = (1 << 32) - 1
_RATE_BITS = 64
_CELLS_AT_ONCE = 256


def _flat(target: Target) -> tuple[int, int, Any, int]:
    """The fields of the C struct."""
    kind = target[0] if target else None
    if kind not in _TARGET_KINDS or len(target) != (3 if kind == "action" else 2):
        raise ValueError(
            f"target {target!r}: one of ('action', index, params), ('member', handle), ('group', handle) is expected"
        )
    index = target[1]
    if index.__class__ is not int or not 0 <= index <= _MAX_INDEX:
        unsigned(f"{kind} index", index)  # says what is wrong
    params = target[2] if kind == "action" else None
    return _TARGET_KINDS[kind], index, params or _NULL, len(params or b"")


def _target(target: Target) -> tuple[Any, Any]:
    """The C struct, and what must stay alive as long as it."""
    kind, index, params, length = _flat(target)
    alive = ffi.from_buffer(params) if length else _NULL
    return ffi.new(_TARGET, (kind, index, alive, length)), alive


class Control:
    """Mixed into Switch, which owns the C switch and says whether it still lives."""

    def _handle(self) -> Any:
        raise NotImplementedError

    # --- entries ------------------------------------------------------------------------------------------------

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
        """Inserts an entry and returns its handle. Raises TableFull, EntryExists, ValueError or IndexError."""
        if not -(1 << 31) <= priority < 1 << 31:
            raise ValueError(f"priority: {priority} does not fit into 32 bits")
        if prefix_len is not None and not 0 <= prefix_len < 1 << 31:
            raise ValueError(f"prefix_len: {prefix_len} is out of range")
        kind, index, params, params_length = _flat(target)
        handle, error = ffi.new(_HANDLE), new_error()
        # Structs would take longer to fill than the insertion takes.
        result = lib.plait_control_entry_insert_flat(
            self._handle(),
            unsigned("table", table),
            key,
            len(key),
            _NULL if mask is None else mask,
            len(mask or b""),
            _NULL if range_high is None else range_high,
            len(range_high or b""),
            -1 if prefix_len is None else prefix_len,
            priority,
            kind,
            index,
            params,
            params_length,
            handle,
            error,
        )
        check(result, error)
        return int(handle[0])

    def entry_modify(self, table: int, handle: int, target: Target) -> None:
        struct, _alive = _target(target)
        error = new_error()
        table, handle = unsigned("table", table), unsigned("entry handle", handle, 64)
        check(lib.plait_control_entry_modify(self._handle(), table, handle, struct, error), error)

    def entry_delete(self, table: int, handle: int) -> None:
        error = new_error()
        table, handle = unsigned("table", table), unsigned("entry handle", handle, 64)
        check(lib.plait_control_entry_delete(self._handle(), table, handle, error), error)

    def entry_count(self, table: int) -> int:
        error = new_error()
        return check(lib.plait_control_entry_count(self._handle(), unsigned("table", table), error), error)

    def _entry_counter(self, table: int, handle: int) -> tuple[int, int, int]:
        cells, error = ffi.new("uint64_t[3]"), new_error()
        table, handle = unsigned("table", table), unsigned("entry handle", handle, 64)
        call = lib.plait_control_entry_counter
        check(call(self._handle(), table, handle, cells, cells + 1, cells + 2, error), error)
        return int(cells[0]), int(cells[1]), int(cells[2])

    def entry_counter(self, table: int, handle: int) -> tuple[int, int]:
        """(packets, bytes) of the direct counter."""
        return self._entry_counter(table, handle)[:2]

    def entry_last_hit(self, table: int, handle: int) -> int:
        """ns of the fabric's clock when the entry was last hit; 0: never."""
        return self._entry_counter(table, handle)[2]

    def entry_counter_set(self, table: int, handle: int, packets: int, bytes_: int) -> None:
        error = new_error()
        table, handle = unsigned("table", table), unsigned("entry handle", handle, 64)
        packets, bytes_ = unsigned("packets", packets, 64), unsigned("bytes", bytes_, 64)
        check(lib.plait_control_entry_counter_set(self._handle(), table, handle, packets, bytes_, error), error)

    def default_set(self, table: int, target: Target | None) -> None:
        """What a miss runs; None: nothing."""
        struct, _alive = _target(target) if target is not None else (ffi.NULL, None)
        error = new_error()
        check(lib.plait_control_default_set(self._handle(), unsigned("table", table), struct, error), error)

    def default_counter(self, table: int) -> tuple[int, int]:
        cells, error = ffi.new("uint64_t[2]"), new_error()
        table = unsigned("table", table)
        check(lib.plait_control_default_counter(self._handle(), table, cells, cells + 1, error), error)
        return int(cells[0]), int(cells[1])

    # --- action profiles ----------------------------------------------------------------------------------------

    def member_create(self, action: int, params: bytes) -> int:
        handle, error = ffi.new("uint32_t *"), new_error()
        call = lib.plait_control_member_create
        check(call(self._handle(), unsigned("action", action), params, len(params), handle, error), error)
        return int(handle[0])

    def member_modify(self, member: int, action: int, params: bytes) -> None:
        error = new_error()
        member, action = unsigned("member", member), unsigned("action", action)
        check(lib.plait_control_member_modify(self._handle(), member, action, params, len(params), error), error)

    def member_delete(self, member: int) -> None:
        error = new_error()
        check(lib.plait_control_member_delete(self._handle(), unsigned("member", member), error), error)

    def group_create(self) -> int:
        handle, error = ffi.new("uint32_t *"), new_error()
        check(lib.plait_control_group_create(self._handle(), handle, error), error)
        return int(handle[0])

    def group_set(self, group: int, members: Sequence[tuple[int, int]]) -> None:
        """Replaces the group's members, given as (member handle, weight)."""
        handles = ffi.new("uint32_t[]", [unsigned("member", m) for m, _ in members])
        weights = ffi.new("uint32_t[]", [unsigned("weight", w) for _, w in members])
        error = new_error()
        call = lib.plait_control_group_set
        check(call(self._handle(), unsigned("group", group), handles, weights, len(members), error), error)

    def group_delete(self, group: int) -> None:
        error = new_error()
        check(lib.plait_control_group_delete(self._handle(), unsigned("group", group), error), error)

    # --- arrays -------------------------------------------------------------------------------------------------

    def _array_size(self, kind: str, index: int) -> int:
        raise NotImplementedError

    def _register_bytes(self, index: int) -> int:
        raise NotImplementedError

    def _counters(self, index: int, first: int, count: int) -> list[tuple[int, int]]:
        cells, error = ffi.new("struct plait_counter_cell[]", count), new_error()
        index, first = unsigned("counter", index), unsigned("counter cell", first)
        check(lib.plait_control_counter_read(self._handle(), index, first, count, cells, error), error)
        return [(int(cells[i].packets), int(cells[i].bytes)) for i in range(count)]

    def counter_read(self, index: int, cell: int) -> tuple[int, int]:
        """(packets, bytes)"""
        return self._counters(index, cell, 1)[0]

    def counter_read_all(self, index: int) -> Iterator[tuple[int, int]]:
        """All cells, read as they are taken; those far apart are not of the same instant."""
        size = self._array_size("counters", index)
        return (cell for first, count in _chunks(size) for cell in self._counters(index, first, count))

    def counter_write(self, index: int, cell: int, packets: int, bytes_: int) -> None:
        error = new_error()
        index, cell = unsigned("counter", index), unsigned("counter cell", cell)
        packets, bytes_ = unsigned("packets", packets, 64), unsigned("bytes", bytes_, 64)
        check(lib.plait_control_counter_write(self._handle(), index, cell, packets, bytes_, error), error)

    def _registers(self, index: int, first: int, count: int) -> list[bytes]:
        width = self._register_bytes(unsigned("register", index))
        cells, error = ffi.new("uint8_t[]", max(1, count * width)), new_error()
        first = unsigned("register cell", first)
        check(lib.plait_control_register_read(self._handle(), index, first, count, cells, error), error)
        data = bytes(ffi.buffer(cells, count * width))
        return [data[i * width : (i + 1) * width] for i in range(count)]

    def register_read(self, index: int, cell: int) -> bytes:
        """The cell, big-endian, (width + 7) // 8 bytes."""
        return self._registers(index, cell, 1)[0]

    def register_read_all(self, index: int) -> Iterator[bytes]:
        """All cells, read as they are taken; those far apart are not of the same instant."""
        size = lib.plait_control_register_size(self._handle(), unsigned("register", index))
        return (cell for first, count in _chunks(size) for cell in self._registers(index, first, count))

    def register_write(self, index: int, cell: int, value: bytes) -> None:
        error = new_error()
        index, cell = unsigned("register", index), unsigned("register cell", cell)
        check(lib.plait_control_register_write(self._handle(), index, cell, value, len(value), error), error)

    def meter_set(self, index: int, cell: int, cir: int, cburst: int, pir: int, pburst: int) -> None:
        """Rates a second and bursts, in bytes or packets as the meter counts."""
        error = new_error()
        index, cell = unsigned("meter", index), unsigned("meter cell", cell)
        rates = [unsigned("meter rate or burst", v, _RATE_BITS) for v in (cir, cburst, pir, pburst)]
        check(lib.plait_control_meter_set(self._handle(), index, cell, *rates, error), error)

    def meter_clear(self, index: int, cell: int) -> None:
        """Back to unconfigured: always green."""
        error = new_error()
        index, cell = unsigned("meter", index), unsigned("meter cell", cell)
        check(lib.plait_control_meter_clear(self._handle(), index, cell, error), error)

    def entry_meter_set(self, table: int, handle: int, cir: int, cburst: int, pir: int, pburst: int) -> None:
        error = new_error()
        table, handle = unsigned("table", table), unsigned("entry handle", handle, 64)
        rates = [unsigned("meter rate or burst", v, _RATE_BITS) for v in (cir, cburst, pir, pburst)]
        check(lib.plait_control_entry_meter_set(self._handle(), table, handle, *rates, error), error)

    def entry_meter_clear(self, table: int, handle: int) -> None:
        error = new_error()
        table, handle = unsigned("table", table), unsigned("entry handle", handle, 64)
        check(lib.plait_control_entry_meter_clear(self._handle(), table, handle, error), error)

    def meter_counts(self, index: int, cell: int) -> list[tuple[int, int]]:
        """(packets, bytes) that the meter marked green, yellow and red."""
        index, cell = unsigned("meter", index), unsigned("meter cell", cell)
        return self._read_counts(lib.plait_control_meter_counts, index, cell)

    def meter_counts_set(self, index: int, cell: int, counts: Sequence[tuple[int, int]]) -> None:
        index, cell = unsigned("meter", index), unsigned("meter cell", cell)
        self._write_counts(lib.plait_control_meter_counts_set, index, cell, counts)

    def entry_meter_counts(self, table: int, handle: int) -> list[tuple[int, int]]:
        table, handle = unsigned("table", table), unsigned("entry handle", handle, 64)
        return self._read_counts(lib.plait_control_entry_meter_counts, table, handle)

    def entry_meter_counts_set(self, table: int, handle: int, counts: Sequence[tuple[int, int]]) -> None:
        table, handle = unsigned("table", table), unsigned("entry handle", handle, 64)
        self._write_counts(lib.plait_control_entry_meter_counts_set, table, handle, counts)

    def _read_counts(self, call: Any, where: int, which: int) -> list[tuple[int, int]]:
        cells, error = ffi.new("struct plait_counter_cell[]", lib.PLAIT_COLORS), new_error()
        check(call(self._handle(), where, which, cells, error), error)
        return [(int(cell.packets), int(cell.bytes)) for cell in cells]

    def _write_counts(self, call: Any, where: int, which: int, counts: Sequence[tuple[int, int]]) -> None:
        if len(counts) != lib.PLAIT_COLORS:
            raise ValueError(f"meter counts: {len(counts)} pairs for {lib.PLAIT_COLORS} colors")
        pairs = [(unsigned("packets", packets, 64), unsigned("bytes", bytes_, 64)) for packets, bytes_ in counts]
        cells, error = ffi.new("struct plait_counter_cell[]", pairs), new_error()
        check(call(self._handle(), where, which, cells, error), error)

    # --- replication --------------------------------------------------------------------------------------------

    def multicast_set(self, group: int, replicas: Sequence[Replica]) -> None:
        """Replicas leave in this order."""
        array = _replicas(replicas)
        error = new_error()
        call = lib.plait_control_multicast_set
        check(call(self._handle(), unsigned("multicast group", group), array, len(replicas), error), error)

    def multicast_delete(self, group: int) -> None:
        error = new_error()
        check(lib.plait_control_multicast_delete(self._handle(), unsigned("multicast group", group), error), error)

    def clone_session_set(
        self, session: int, replicas: Sequence[Replica], truncate: int = 0, priority: int = 0
    ) -> None:
        """`truncate` in bytes; 0: whole packets. Copies wait in queue `priority`; ValueError if ports lack it."""
        array = _replicas(replicas)
        error = new_error()
        session, truncate = unsigned("clone session", session), unsigned("truncate", truncate)
        call = lib.plait_control_clone_session_set
        priority = unsigned("priority", priority)
        check(call(self._handle(), session, array, len(replicas), truncate, priority, error), error)

    def clone_session_delete(self, session: int) -> None:
        error = new_error()
        check(lib.plait_control_clone_session_delete(self._handle(), unsigned("clone session", session), error), error)


def _chunks(size: int) -> Iterator[tuple[int, int]]:
    """(first, count) of reads that each hold up packets only briefly."""
    for first in range(0, size, _CELLS_AT_ONCE):
        yield first, min(_CELLS_AT_ONCE, size - first)


def _replicas(replicas: Sequence[Replica]) -> Any:
    return ffi.new("struct plait_replica[]", [(unsigned("port", p), unsigned("instance", i)) for p, i in replicas])

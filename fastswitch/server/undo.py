"""What takes an update back, for batches that are all or none (ROLLBACK_ON_ERROR).

`undo_of` is asked before an update is applied; its result is called if the update succeeded and a later one of the
batch did not, the last update first. Keys are looked up anew then: what was deleted and put back has other handles.

Put back are entries with their direct resources, members, groups, arrays, replication, value sets and digests. What
packets changed meanwhile stays changed: counters go back only where the update set or removed them. A meter that is put
back starts with full buckets, and a digest with nothing to acknowledge.
"""

from collections.abc import Callable

from finsy.proto import p4r, rpc_code

from fastswitch.server.errors import P4RuntimeError, unimplemented
from fastswitch.server.state import PipelineState
from fastswitch.server.tables import TableState

Undo = Callable[[], None]

_INSERT, _MODIFY, _DELETE = p4r.Update.INSERT, p4r.Update.MODIFY, p4r.Update.DELETE
_MAX_CELLS = 1 << 16  # of arrays: their values are held until the batch is over


def undo_of(state: PipelineState, update: p4r.Update) -> Undo:
    """See above. UNIMPLEMENTED if the update is too large to be taken back."""
    entity = update.entity
    kind = entity.WhichOneof("entity")
    try:
        maker = _MAKERS.get(kind, _restoring)
        return maker(state, update)
    except P4RuntimeError as error:
        if error.code == rpc_code.UNIMPLEMENTED:
            raise
        return _nothing  # there is nothing to change: the update itself will say so


def _nothing() -> None:
    pass


def _write(state: PipelineState, update_type: int, entity: p4r.Entity) -> None:
    state.write(p4r.Update(type=update_type, entity=entity))  # type: ignore[arg-type]


def _copy(entity: p4r.Entity) -> p4r.Entity:
    copy = p4r.Entity()
    copy.CopyFrom(entity)
    return copy


def _table(state: PipelineState, update: p4r.Update) -> Undo:
    request = update.entity.table_entry
    table = state.tables[state.program.schema.tables.find(request.table_id).id]
    if update.type == _INSERT:
        return lambda: table.delete(request)
    if request.is_default_action:
        return table.keep_default()
    entry = table.find(request)
    previous = entry.message
    previous.is_const = False
    if entry.meter is not None:
        previous.meter_config.CopyFrom(entry.meter)
    deletes = update.type == _DELETE
    if table.schema.direct_counter and (deletes or request.HasField("counter_data")):
        previous.counter_data.CopyFrom(table.counter(entry))
    colors = table.colors(entry) if table.schema.direct_meter else None
    idle_since = table.idle_since(entry)

    def put_back() -> None:
        if deletes:
            table.insert(previous)
            table.find(previous).inserted_ns = idle_since
        else:
            if not request.HasField("action"):
                previous.ClearField("action")  # the entry may be constant but for its direct resources
            table.modify(previous)
        if colors is not None and (deletes or request.HasField("meter_counter_data")):
            table.set_colors(table.find(previous), colors)

    return put_back


def _direct(state: PipelineState, update: p4r.Update) -> Undo:
    entity = update.entity
    is_counter = entity.WhichOneof("entity") == "direct_counter_entry"
    key = (entity.direct_counter_entry if is_counter else entity.direct_meter_entry).table_entry
    table: TableState = state.tables[state.program.schema.tables.find(key.table_id).id]
    entry = table.find(key)
    if is_counter:
        data = table.counter(entry)
        return lambda: table.write_counter(table.find(key), data)
    config = entry.meter
    colors = table.colors(entry) if table.schema.direct_meter else None
    resets = entity.direct_meter_entry.HasField("counter_data")

    def put_back() -> None:
        table.write_meter(table.find(key), config)
        if resets and colors is not None:
            table.set_colors(table.find(key), colors)

    return put_back


def _keyed(state: PipelineState, update: p4r.Update) -> Undo:
    """Members, groups and replication: a read of the key gives what is there."""
    entity = update.entity
    if update.type == _INSERT:
        return lambda: _write(state, _DELETE, entity)
    found = [_copy(each) for each in state.read(entity)]
    back = _INSERT if update.type == _DELETE else _MODIFY

    def put_back() -> None:
        for each in found:
            _write(state, back, each)

    return put_back


def _meter(state: PipelineState, update: p4r.Update) -> Undo:
    request = update.entity.meter_entry
    meter = state.meters[state.program.schema.meters.find(request.meter_id).id]
    restore = _restoring(state, update)
    if not request.HasField("counter_data"):
        return restore
    cells = [request.index.index] if request.HasField("index") else range(meter.schema.size)
    counts = [(cell, meter.counts(cell)) for cell in cells]

    def put_back() -> None:
        restore()
        for cell, count in counts:
            meter.set_counts(cell, count)

    return put_back


def _digest(state: PipelineState, update: p4r.Update) -> Undo:
    found = [_copy(each) for each in state.read(update.entity)]
    if not found:
        return lambda: _write(state, _DELETE, update.entity)
    back = _INSERT if update.type == _DELETE else _MODIFY
    return lambda: _write(state, back, found[0])


def _restoring(state: PipelineState, update: p4r.Update) -> Undo:
    """Arrays and value sets, which always exist: MODIFY to what a read gives."""
    request = _copy(update.entity)
    if request.HasField("meter_entry"):
        request.meter_entry.ClearField("counter_data")
    found = []
    for each in state.read(request):
        found.append(_copy(each))
        if len(found) > _MAX_CELLS:
            unimplemented(f"ROLLBACK_ON_ERROR: an update of more than {_MAX_CELLS} cells cannot be taken back")

    def put_back() -> None:
        for each in found:
            _write(state, _MODIFY, each)

    return put_back


_MAKERS: dict[str | None, Callable[[PipelineState, p4r.Update], Undo]] = {
    "table_entry": _table,
    "direct_counter_entry": _direct,
    "direct_meter_entry": _direct,
    "action_profile_member": _keyed,
    "action_profile_group": _keyed,
    "packet_replication_engine_entry": _keyed,
    "meter_entry": _meter,
    "digest_entry": _digest,
}

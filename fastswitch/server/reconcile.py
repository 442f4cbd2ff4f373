"""The forwarding state of a pipeline as updates that would recreate it (for RECONCILE_AND_COMMIT)."""

from finsy.proto import p4r

from fastswitch.server.errors import P4RuntimeError
from fastswitch.server.state import PipelineState

# Order matters: groups need their members, entries need both. The flag says which update recreates an entity.
_PARTS: list[tuple[p4r.Entity, bool]] = [
    (p4r.Entity(action_profile_member=p4r.ActionProfileMember()), True),
    (p4r.Entity(action_profile_group=p4r.ActionProfileGroup()), True),
    (p4r.Entity(table_entry=p4r.TableEntry(counter_data=p4r.CounterData(), meter_config=p4r.MeterConfig())), True),
    (p4r.Entity(table_entry=p4r.TableEntry(is_default_action=True)), False),
    (p4r.Entity(counter_entry=p4r.CounterEntry()), False),
    (p4r.Entity(meter_entry=p4r.MeterEntry()), False),
    (p4r.Entity(register_entry=p4r.RegisterEntry()), False),
    (p4r.Entity(value_set_entry=p4r.ValueSetEntry()), False),
    (p4r.Entity(digest_entry=p4r.DigestEntry()), True),
    (
        p4r.Entity(
            packet_replication_engine_entry=p4r.PacketReplicationEngineEntry(
                multicast_group_entry=p4r.MulticastGroupEntry()
            )
        ),
        True,
    ),
    (
        p4r.Entity(
            packet_replication_engine_entry=p4r.PacketReplicationEngineEntry(
                clone_session_entry=p4r.CloneSessionEntry()
            )
        ),
        True,
    ),
]


def snapshot(state: PipelineState) -> list[p4r.Update]:
    """Updates that recreate the state. What clients cannot change or have not (constant entries, unchanged defaults,
    zero cells) is left out."""
    updates = []
    for request, insert in _PARTS:
        for entity in state.read(request):
            if not _is_initial(state, entity):
                update_type = p4r.Update.INSERT if insert else p4r.Update.MODIFY
                updates.append(p4r.Update(type=update_type, entity=entity))
    return updates


def apply_updates(state: PipelineState, updates: list[p4r.Update]) -> P4RuntimeError | None:
    """Apply a snapshot to a fresh pipeline; the first error, if there is one."""
    for table in state.tables.values():
        table.delete_initial()  # the snapshot has those that are still there
    for update in updates:
        try:
            state.write(update)
        except P4RuntimeError as error:
            return error
    return None


def _is_initial(state: PipelineState, entity: p4r.Entity) -> bool:
    kind = entity.WhichOneof("entity")
    if kind == "table_entry":
        return state.tables[entity.table_entry.table_id].is_of_program(entity.table_entry)
    if kind == "counter_entry":
        return entity.counter_entry.data == p4r.CounterData()
    if kind == "meter_entry":
        return not entity.meter_entry.HasField("config")
    if kind == "register_entry":
        return not any(entity.register_entry.data.bitstring) and not entity.register_entry.data.bool
    if kind == "value_set_entry":
        return not entity.value_set_entry.members
    return False

"""Everything a running pipeline holds, and the dispatch of updates and reads to it."""

from collections.abc import Callable, Iterator
from typing import NoReturn

from finsy.proto import p4r

from fastswitch.server.arrays import (
    NO_COUNTS,
    CounterArray,
    MeterArray,
    RegisterArray,
    check_color_reset,
    color_data,
    only_modify,
)
from fastswitch.server.digests import DigestState
from fastswitch.server.engine_api import EngineSwitch
from fastswitch.server.errors import invalid_argument, unimplemented
from fastswitch.server.packetio import PacketHeader
from fastswitch.server.pre import ReplicationState
from fastswitch.server.profiles import ProfileState
from fastswitch.server.program import Program
from fastswitch.server.tables import Entry, TableState
from fastswitch.server.value_sets import ValueSetState

_INSERT, _MODIFY, _DELETE = p4r.Update.INSERT, p4r.Update.MODIFY, p4r.Update.DELETE


class PipelineState:
    """State of one program on one switch. Creating it loads the program into the engine."""

    def __init__(self, program: Program, engine: EngineSwitch, port_up: Callable[[int], bool]) -> None:
        engine.load(program.shared_object)
        self.program = program
        schema = program.schema
        code = program.code
        self._schema = schema
        self._load_hidden_tables(engine)
        self.profiles = {i: ProfileState(profile, engine, port_up) for i, profile in schema.profiles.items()}
        self.tables: dict[int, TableState] = {}
        for i, table in schema.tables.items():
            profile, meter = self.profiles.get(table.profile_id), schema.direct_meters.get(table.direct_meter)
            self.tables[i] = TableState(table, engine, profile, meter)
        counters = {array.name: array.index for array in code.counters}
        meters = {array.name: array.index for array in code.meters}
        registers = {array.name: array.index for array in code.registers}
        self.counters = {i: CounterArray(s, engine, counters.get(s.name)) for i, s in schema.counters.items()}
        self.meters = {i: MeterArray(s, engine, meters.get(s.name)) for i, s in schema.meters.items()}
        self.registers = {i: RegisterArray(s, engine, registers.get(s.name)) for i, s in schema.registers.items()}
        self.value_sets = {i: ValueSetState(s, engine, code) for i, s in schema.value_sets.items()}
        self.digests = {i: DigestState(digest) for i, digest in schema.digests.items()}
        self.digest_of_list = {d.schema.list_id: d for d in self.digests.values() if d.schema.list_id is not None}
        self.replication = ReplicationState(engine, port_up)
        self.packet_in = PacketHeader(schema.packet_in)
        self.packet_out = PacketHeader(schema.packet_out)
        self._writers: dict[str | None, Callable[[int, p4r.Entity], Iterator[None] | None]] = {
            "table_entry": self._write_table,
            "action_profile_member": self._write_member,
            "action_profile_group": self._write_group,
            "counter_entry": self._write_counter,
            "direct_counter_entry": self._write_direct_counter,
            "meter_entry": self._write_meter,
            "direct_meter_entry": self._write_direct_meter,
            "register_entry": self._write_register,
            "packet_replication_engine_entry": self._write_replication,
            "value_set_entry": self._write_value_set,
            "digest_entry": self._write_digest,
        }
        self._readers: dict[str | None, Callable[[p4r.Entity], Iterator[p4r.Entity]]] = {
            "table_entry": self._read_table,
            "action_profile_member": self._read_member,
            "action_profile_group": self._read_group,
            "counter_entry": self._read_counter,
            "direct_counter_entry": self._read_direct_counter,
            "meter_entry": self._read_meter,
            "direct_meter_entry": self._read_direct_meter,
            "register_entry": self._read_register,
            "packet_replication_engine_entry": self._read_replication,
            "value_set_entry": self._read_value_set,
            "digest_entry": self._read_digest,
        }

    def write(self, update: p4r.Update) -> None:
        """Apply one update; P4RuntimeError if it cannot be."""
        for _ in self.start(update) or ():
            pass

    def start(self, update: p4r.Update) -> Iterator[None] | None:
        """Apply one update, or what is left to do, in steps; either may raise P4RuntimeError."""
        entity = update.entity
        kind = entity.WhichOneof("entity")
        writer = self._writers.get(kind)
        if writer is None:
            _refuse_kind(kind)
        update_type = update.type
        if update_type not in (_INSERT, _MODIFY, _DELETE):
            invalid_argument(f"update type {update_type} is not INSERT, MODIFY or DELETE")
        return writer(update_type, entity)

    def read(self, entity: p4r.Entity) -> Iterator[p4r.Entity]:
        """The entities that a request selects."""
        kind = entity.WhichOneof("entity")
        reader = self._readers.get(kind)
        if reader is None:
            _refuse_kind(kind)
        return reader(entity)

    def port_changed(self, port: int) -> None:
        """A port went up or down."""
        for profile in self.profiles.values():
            profile.port_changed(port)
        self.replication.port_changed(port)

    def _load_hidden_tables(self, engine: EngineSwitch) -> None:
        visible = {table.name for table in self._schema.tables.values()}
        for table in self.program.code.tables:
            if table.name in visible:
                continue
            if table.default is not None:
                engine.default_set(table.index, ("action", table.default.action.index, table.default.params))
            for e in table.entries:
                target = ("action", e.call.action.index, e.call.params)
                engine.entry_insert(table.index, e.key, e.mask, e.prefix_length, e.range_high, e.priority, target)  # type: ignore[arg-type]

    # Writers

    def _write_table(self, update_type: int, entity: p4r.Entity) -> None:
        entry = entity.table_entry
        table = self.tables.get(entry.table_id)
        if table is None:
            self._schema.tables.find(entry.table_id)
            raise AssertionError("every table of the schema has a state")
        if update_type == _INSERT:
            table.insert(entry)
        elif update_type == _MODIFY:
            table.modify(entry)
        else:
            table.delete(entry)

    def _write_member(self, update_type: int, entity: p4r.Entity) -> None:
        member = entity.action_profile_member
        profile = self._profile(member.action_profile_id)
        if update_type == _INSERT:
            profile.insert_member(member)
        elif update_type == _MODIFY:
            profile.modify_member(member)
        else:
            profile.delete_member(member)

    def _write_group(self, update_type: int, entity: p4r.Entity) -> None:
        group = entity.action_profile_group
        profile = self._profile(group.action_profile_id)
        if update_type == _INSERT:
            profile.insert_group(group)
        elif update_type == _MODIFY:
            profile.modify_group(group)
        else:
            profile.delete_group(group)

    def _write_counter(self, update_type: int, entity: p4r.Entity) -> Iterator[None]:
        only_modify(update_type, "counters")
        self._schema.counters.find(entity.counter_entry.counter_id)
        return self.counters[entity.counter_entry.counter_id].modify(entity.counter_entry)

    def _write_meter(self, update_type: int, entity: p4r.Entity) -> Iterator[None]:
        only_modify(update_type, "meters")
        self._schema.meters.find(entity.meter_entry.meter_id)
        return self.meters[entity.meter_entry.meter_id].modify(entity.meter_entry)

    def _write_register(self, update_type: int, entity: p4r.Entity) -> Iterator[None]:
        only_modify(update_type, "registers")
        self._schema.registers.find(entity.register_entry.register_id)
        return self.registers[entity.register_entry.register_id].modify(entity.register_entry)

    def _write_direct_counter(self, update_type: int, entity: p4r.Entity) -> None:
        only_modify(update_type, "direct counters")
        request = entity.direct_counter_entry
        table = self._direct_table(request.table_entry.table_id, "direct counter")
        entry = table.find(request.table_entry)
        if request.HasField("data"):
            table.write_counter(entry, request.data)

    def _write_direct_meter(self, update_type: int, entity: p4r.Entity) -> None:
        only_modify(update_type, "direct meters")
        request = entity.direct_meter_entry
        table = self._direct_table(request.table_entry.table_id, "direct meter")
        entry = table.find(request.table_entry)
        if request.HasField("counter_data"):
            check_color_reset(request.counter_data)
        table.write_meter(entry, request.config if request.HasField("config") else None)
        if request.HasField("counter_data"):
            table.set_colors(entry, NO_COUNTS)

    def _write_replication(self, update_type: int, entity: p4r.Entity) -> None:
        self.replication.write(update_type, entity.packet_replication_engine_entry)

    def _write_value_set(self, update_type: int, entity: p4r.Entity) -> None:
        only_modify(update_type, "value sets")
        self._schema.value_sets.find(entity.value_set_entry.value_set_id)
        self.value_sets[entity.value_set_entry.value_set_id].modify(entity.value_set_entry)

    def _write_digest(self, update_type: int, entity: p4r.Entity) -> None:
        self._schema.digests.find(entity.digest_entry.digest_id)
        self.digests[entity.digest_entry.digest_id].write(update_type, entity.digest_entry)

    # Readers: id 0 means all objects of the kind

    def _read_table(self, entity: p4r.Entity) -> Iterator[p4r.Entity]:
        request = entity.table_entry
        if request.table_id:
            self._schema.tables.find(request.table_id)
            tables = [self.tables[request.table_id]]
        else:
            if request.match or request.priority:
                invalid_argument("a read of all tables takes neither match nor priority")
            tables = list(self.tables.values())
        for table in tables:
            for entry in table.read(request):
                yield p4r.Entity(table_entry=entry)

    def _read_member(self, entity: p4r.Entity) -> Iterator[p4r.Entity]:
        request = entity.action_profile_member
        if request.member_id and not request.action_profile_id:
            invalid_argument("a member id without an action profile id means nothing")
        for profile in self._profiles(request.action_profile_id):
            for member in profile.read_members(request.member_id):
                yield p4r.Entity(action_profile_member=member)

    def _read_group(self, entity: p4r.Entity) -> Iterator[p4r.Entity]:
        request = entity.action_profile_group
        if request.group_id and not request.action_profile_id:
            invalid_argument("a group id without an action profile id means nothing")
        for profile in self._profiles(request.action_profile_id):
            for group in profile.read_groups(request.group_id):
                yield p4r.Entity(action_profile_group=group)

    def _read_counter(self, entity: p4r.Entity) -> Iterator[p4r.Entity]:
        request = entity.counter_entry
        if request.counter_id:
            self._schema.counters.find(request.counter_id)
        for i in [request.counter_id] if request.counter_id else list(self.counters):
            for cell in self.counters[i].read(request):
                yield p4r.Entity(counter_entry=cell)

    def _read_meter(self, entity: p4r.Entity) -> Iterator[p4r.Entity]:
        request = entity.meter_entry
        if request.meter_id:
            self._schema.meters.find(request.meter_id)
        for i in [request.meter_id] if request.meter_id else list(self.meters):
            for cell in self.meters[i].read(request):
                yield p4r.Entity(meter_entry=cell)

    def _read_register(self, entity: p4r.Entity) -> Iterator[p4r.Entity]:
        request = entity.register_entry
        if request.register_id:
            self._schema.registers.find(request.register_id)
        for i in [request.register_id] if request.register_id else list(self.registers):
            for cell in self.registers[i].read(request):
                yield p4r.Entity(register_entry=cell)

    def _read_direct_counter(self, entity: p4r.Entity) -> Iterator[p4r.Entity]:
        request = entity.direct_counter_entry.table_entry
        for table, entry in self._direct_entries(request, "direct counter"):
            data = table.counter(entry)
            yield p4r.Entity(direct_counter_entry=p4r.DirectCounterEntry(table_entry=_key_of(entry), data=data))

    def _read_direct_meter(self, entity: p4r.Entity) -> Iterator[p4r.Entity]:
        request = entity.direct_meter_entry
        for table, entry in self._direct_entries(request.table_entry, "direct meter"):
            message = p4r.DirectMeterEntry(table_entry=_key_of(entry), config=entry.meter)
            if request.HasField("counter_data"):
                message.counter_data.CopyFrom(color_data(table.colors(entry)))
            yield p4r.Entity(direct_meter_entry=message)

    def _read_replication(self, entity: p4r.Entity) -> Iterator[p4r.Entity]:
        for message in self.replication.read(entity.packet_replication_engine_entry):
            yield p4r.Entity(packet_replication_engine_entry=message)

    def _read_value_set(self, entity: p4r.Entity) -> Iterator[p4r.Entity]:
        wanted = entity.value_set_entry.value_set_id
        if wanted:
            self._schema.value_sets.find(wanted)
        for i in [wanted] if wanted else list(self.value_sets):
            for message in self.value_sets[i].read():
                yield p4r.Entity(value_set_entry=message)

    def _read_digest(self, entity: p4r.Entity) -> Iterator[p4r.Entity]:
        wanted = entity.digest_entry.digest_id
        if wanted:
            self._schema.digests.find(wanted)
        for i in [wanted] if wanted else list(self.digests):
            for message in self.digests[i].read():
                yield p4r.Entity(digest_entry=message)

    # Private part

    def _profile(self, profile_id: int) -> ProfileState:
        self._schema.profiles.find(profile_id)
        return self.profiles[profile_id]

    def _profiles(self, profile_id: int) -> list[ProfileState]:
        return [self._profile(profile_id)] if profile_id else list(self.profiles.values())

    def _direct_table(self, table_id: int, what: str) -> TableState:
        table = self._schema.tables.find(table_id)
        if not (table.direct_counter if what == "direct counter" else table.direct_meter):
            invalid_argument(f"table '{table.name}' has no {what}")
        return self.tables[table_id]

    def _direct_entries(self, request: p4r.TableEntry, what: str) -> Iterator[tuple[TableState, Entry]]:
        if request.table_id:
            tables = [self._direct_table(request.table_id, what)]
        else:
            of = (lambda t: t.schema.direct_counter) if what == "direct counter" else (lambda t: t.schema.direct_meter)
            tables = [table for table in self.tables.values() if of(table)]
        for table in tables:
            if request.match or request.is_default_action:
                yield table, table.find(request)
            else:
                for entry in list(table.entries.values()):
                    yield table, entry


def _key_of(entry: Entry) -> p4r.TableEntry:
    message = entry.message
    key = p4r.TableEntry(table_id=message.table_id, priority=message.priority)
    key.is_default_action = message.is_default_action
    key.match.extend(message.match)
    return key


def _refuse_kind(kind: str | None) -> NoReturn:
    if kind is None:
        invalid_argument("the entity is empty")
    unimplemented(f"{kind} is not supported")

"""Entries of one table of one switch.

An entry keeps the message the client sent, made canonical: reads answer with it. Its key in the engine's form,
with the priority, identifies it.
"""

from collections.abc import Callable, Iterator, Sequence

from finsy.proto import p4r

from engine import TableFull
from fastswitch.server.arrays import NO_COUNTS, check_color_reset, check_meter_config, color_data, counter_data
from fastswitch.server.engine_api import Count, EngineSwitch, Target
from fastswitch.server.errors import (
    P4RuntimeError,
    already_exists,
    invalid_argument,
    not_found,
    permission_denied,
    resource_exhausted,
)
from fastswitch.server.match import FieldKey
from fastswitch.server.profiles import ProfileState, Reference
from fastswitch.server.schema import DirectResource, Table

EntryKey = tuple[bytes, bytes | None, int | None, bytes | None, int]

_DIRECT = ("counter_data", "meter_config", "meter_counter_data")


class Entry:
    """One entry: the canonical message, serialized; the engine's handle; and what the entry refers to."""

    __slots__ = ("data", "handle", "inserted_ns", "is_const", "meter", "reference", "reported_ns", "ttl_ns")

    def __init__(self, message: p4r.TableEntry, handle: int, reference: Reference | None) -> None:
        self.keep(message)
        self.handle = handle
        self.reference = reference
        self.meter: p4r.MeterConfig | None = None
        self.is_const = False
        self.inserted_ns = 0  # fabric's clock; kept for tables with idle timeout
        self.reported_ns = 0  # when an idle timeout was last reported

    def keep(self, message: p4r.TableEntry) -> None:
        """Make this the entry's message. Its bytes are made faster, and are smaller, than a copy of it."""
        self.data = message.SerializeToString()
        self.ttl_ns = message.idle_timeout_ns

    @property
    def message(self) -> p4r.TableEntry:
        """The message, the caller's own."""
        return p4r.TableEntry.FromString(self.data)


class TableState:
    """A table's entries and its default action. A table that the JSON lacks keeps entries without an engine."""

    def __init__(
        self,
        schema: Table,
        engine: EngineSwitch,
        profile: ProfileState | None,
        direct_meter: DirectResource | None,
    ) -> None:
        self.schema = schema
        self.entries: dict[EntryKey, Entry] = {}
        self._engine = engine
        self._index = schema.code.index if schema.code is not None else -1
        self._profile = profile
        self._direct_meter = direct_meter
        self._initial_default = _initial_default(schema)
        self.default = self._new_default()
        self._reset_engine_default()
        self._load_initial_entries()

    # Write

    def insert(self, request: p4r.TableEntry) -> None:
        """INSERT of an entry."""
        schema = self.schema
        if request.is_default_action:
            invalid_argument(f"the default entry of '{schema.name}' always exists; use MODIFY")
        if schema.is_const:
            permission_denied(f"table '{schema.name}' is constant")
        if not schema.key.fields:
            invalid_argument(f"table '{schema.name}' has no key: it has only a default entry")
        key = self._key(request)
        if key in self.entries:
            already_exists(f"table '{schema.name}' already has this entry")
        if not request.HasField("action"):
            invalid_argument(f"an entry of '{schema.name}' needs an action")
        direct = self._check_extras(request)
        target, reference = self._target(request.action)
        try:
            handle = self._engine_insert(key, target)
        except P4RuntimeError:
            if reference is not None and self._profile is not None:
                self._profile.release(reference)
            raise
        entry = Entry(_without_direct(request) if direct else request, handle, reference)
        if schema.idle_timeout:
            entry.inserted_ns = entry.reported_ns = int(self._engine.fabric.now_ns)
        self.entries[key] = entry
        if direct:
            self._write_direct(entry, request, inserted=True)

    def modify(self, request: p4r.TableEntry) -> None:
        """MODIFY of an entry, or of the default entry."""
        if request.is_default_action:
            self._modify_default(request)
            return
        key = self._key(request)
        entry = self._find(key)
        if request.HasField("action"):
            if entry.is_const:
                permission_denied(f"table '{self.schema.name}' is constant: the actions of its entries are fixed")
            direct = self._check_extras(request)
            target, reference = self._target(request.action)
            if self._index >= 0:
                self._engine.entry_modify(self._index, entry.handle, target)
            self._release(entry)
            entry.reference = reference
            entry.keep(_without_direct(request) if direct else request)
        else:
            self._check_extras(request)
        self._write_direct(entry, request, inserted=False)

    def delete(self, request: p4r.TableEntry) -> None:
        """DELETE of an entry: only its key matters."""
        if request.is_default_action:
            invalid_argument(f"the default entry of '{self.schema.name}' cannot be deleted; MODIFY resets it")
        if self.schema.is_const:
            permission_denied(f"table '{self.schema.name}' is constant")
        key = self._key(request)
        entry = self._find(key)
        if self._index >= 0:
            self._engine.entry_delete(self._index, entry.handle)
        del self.entries[key]
        self._release(entry)

    # Read

    def read(self, request: p4r.TableEntry) -> Iterator[p4r.TableEntry]:
        """The entries a request selects: by match, priority, action, and metadata, where it sets them."""
        if request.is_default_action:
            if request.HasField("time_since_last_hit"):
                invalid_argument("default entries have no idle timeout")
            yield self._complete(self.default, request)
            return
        if request.HasField("time_since_last_hit") and request.table_id and not self.schema.idle_timeout:
            invalid_argument(f"table '{self.schema.name}' has no idle timeout")
        for entry in self._select(request):
            yield self._complete(entry, request)

    def find(self, request: p4r.TableEntry) -> Entry:
        """The one entry with the request's key, or the default entry; for direct counters and meters."""
        if request.is_default_action:
            return self.default
        return self._find(self._key(request))

    def counter(self, entry: Entry) -> p4r.CounterData:
        """The direct counter of an entry. Misses are not counted, as in BMv2."""
        if entry is self.default or self._index < 0:
            return p4r.CounterData()
        packets, bytes_ = self._engine.entry_counter(self._index, entry.handle)
        return counter_data(packets, bytes_)

    def write_counter(self, entry: Entry, data: p4r.CounterData) -> None:
        """Set the direct counter of an entry."""
        if data.byte_count < 0 or data.packet_count < 0:
            invalid_argument("counters are not negative")
        if entry is not self.default and self._index >= 0:
            self._engine.entry_counter_set(self._index, entry.handle, data.packet_count, data.byte_count)

    def write_meter(self, entry: Entry, config: p4r.MeterConfig | None) -> None:
        """Configure the direct meter of an entry; None makes it green again."""
        if config is not None:
            assert self._direct_meter is not None
            check_meter_config(config, self._direct_meter.meter_type)
            kept = p4r.MeterConfig()
            kept.CopyFrom(config)
            config = kept
        if entry is not self.default and self._index >= 0:
            if config is not None:
                numbers = (config.cir, config.cburst, config.pir, config.pburst)
                self._engine.entry_meter_set(self._index, entry.handle, *numbers)
            elif entry.meter is not None:
                self._engine.entry_meter_clear(self._index, entry.handle)
        entry.meter = config

    def colors(self, entry: Entry) -> Sequence[Count]:
        """What the direct meter of an entry marked green, yellow and red."""
        if entry is self.default or self._index < 0:
            return NO_COUNTS
        return self._engine.entry_meter_counts(self._index, entry.handle)

    def set_colors(self, entry: Entry, counts: Sequence[Count]) -> None:
        """Set what `colors` gives."""
        if entry is not self.default and self._index >= 0:
            self._engine.entry_meter_counts_set(self._index, entry.handle, counts)

    def keep_default(self) -> Callable[[], None]:
        """What puts the default action back as it is now."""
        message, meter = self.default.message, self.default.meter

        def put_back() -> None:
            self.default = self._new_default()
            self._reset_engine_default()
            if message != self.default.message:
                self._modify_default(message)
            self.default.meter = meter

        return put_back

    def idle_since(self, entry: Entry) -> int:
        """When a packet last hit the entry, or when it was inserted, in nanoseconds of the fabric's clock."""
        if self._index < 0 or entry is self.default:
            return entry.inserted_ns
        return max(self._engine.entry_last_hit(self._index, entry.handle), entry.inserted_ns)

    # Private part

    def _key(self, request: p4r.TableEntry) -> EntryKey:
        schema = self.schema
        priority = request.priority
        if schema.key.needs_priority:
            if priority <= 0:
                invalid_argument(
                    f"table '{schema.name}' has ternary, range or optional fields: priority {priority} must be above 0"
                )
        elif priority != 0:
            invalid_argument(f"table '{schema.name}' takes no priority, but {priority} was given")
        return *schema.key.encode(request.match), priority

    def _find(self, key: EntryKey) -> Entry:
        entry = self.entries.get(key)
        if entry is None:
            not_found(f"table '{self.schema.name}' has no such entry")
        return entry

    def _target(self, action: p4r.TableAction) -> tuple[Target, Reference | None]:
        if self._profile is not None:
            return self._profile.acquire(action)
        if action.WhichOneof("type") != "action":
            invalid_argument(f"table '{self.schema.name}' has no action profile: its entries need an action")
        call = action.action
        use = self.schema.use_of(call.action_id, default=False)
        return ("action", use.index, use.action.encode(call)), None

    def _engine_insert(self, key: EntryKey, target: Target) -> int:
        schema = self.schema
        if self._index < 0:
            if schema.size and len(self.entries) >= schema.size:
                resource_exhausted(f"table '{schema.name}' is full ({schema.size} entries)")
            return 0
        try:
            return self._engine.entry_insert(self._index, *key, target)
        except TableFull:
            resource_exhausted(f"table '{schema.name}' is full ({len(self.entries)} entries)")

    def _release(self, entry: Entry) -> None:
        if entry.reference is not None and self._profile is not None:
            self._profile.release(entry.reference)
        entry.reference = None

    def _check_extras(self, request: p4r.TableEntry) -> bool:
        """Fields besides key and action; whether there are any of direct resources."""
        schema = self.schema
        if request.is_const:
            invalid_argument("is_const is set by the server only")
        if not schema.idle_timeout and request.idle_timeout_ns:
            invalid_argument(f"table '{schema.name}' has no idle timeout")
        if request.idle_timeout_ns < 0:
            invalid_argument(f"idle timeout {request.idle_timeout_ns} ns is negative")
        if request.HasField("time_since_last_hit"):
            invalid_argument("time_since_last_hit is set by the server only")
        direct = False
        if request.HasField("meter_counter_data"):
            direct = True
            if self._direct_meter is None:
                invalid_argument(f"table '{schema.name}' has no direct meter")
            check_color_reset(request.meter_counter_data)
        if request.HasField("counter_data"):
            direct = True
            if not schema.direct_counter:
                invalid_argument(f"table '{schema.name}' has no direct counter")
            if request.counter_data.byte_count < 0 or request.counter_data.packet_count < 0:
                invalid_argument("counters are not negative")
        if request.HasField("meter_config"):
            direct = True
            if self._direct_meter is None:
                invalid_argument(f"table '{schema.name}' has no direct meter")
            check_meter_config(request.meter_config, self._direct_meter.meter_type)
        return direct

    def _write_direct(self, entry: Entry, request: p4r.TableEntry, *, inserted: bool) -> None:
        if request.HasField("counter_data"):
            self.write_counter(entry, request.counter_data)
        if self._direct_meter is not None:
            if request.HasField("meter_config"):
                self.write_meter(entry, request.meter_config)
            elif not inserted:
                self.write_meter(entry, None)
            if request.HasField("meter_counter_data"):
                self.set_colors(entry, NO_COUNTS)

    def _modify_default(self, request: p4r.TableEntry) -> None:
        schema = self.schema
        if request.match or request.priority:
            invalid_argument(f"the default entry of '{schema.name}' has neither match nor priority")
        if request.idle_timeout_ns or request.HasField("time_since_last_hit"):
            invalid_argument("default entries have no idle timeout")
        if self._profile is not None:
            permission_denied(f"table '{schema.name}' has an action profile: its default action is fixed")
        direct = self._check_extras(request)
        if not request.HasField("action"):
            if schema.has_const_default:
                if not (request.HasField("counter_data") or request.HasField("meter_config")):
                    permission_denied(f"the default action of '{schema.name}' is constant")
                self._write_direct(self.default, request, inserted=False)
                return
            self.default = self._new_default()
            self._reset_engine_default()
            return
        if schema.has_const_default:
            permission_denied(f"the default action of '{schema.name}' is constant")
        if request.action.WhichOneof("type") != "action":
            invalid_argument(f"the default entry of '{schema.name}' needs an action")
        call = request.action.action
        use = schema.use_of(call.action_id, default=True)
        params = use.action.encode(call)
        if self._index >= 0:
            self._engine.default_set(self._index, ("action", use.index, params))
        self.default.keep(_without_direct(request) if direct else request)
        self._write_direct(self.default, request, inserted=False)

    def _reset_engine_default(self) -> None:
        if self._index < 0:
            return
        default = self.schema.code.default if self.schema.code else None
        target: Target | None = ("action", default.action.index, default.params) if default is not None else None
        self._engine.default_set(self._index, target)

    def _new_default(self) -> Entry:
        message = p4r.TableEntry(table_id=self.schema.id, is_default_action=True)
        if self._initial_default is not None:
            message.action.action.CopyFrom(self._initial_default)
        return Entry(message, 0, None)

    def _load_initial_entries(self) -> None:
        code = self.schema.code
        if code is None:
            return
        names = {use.index: use for use in self.schema.actions.values()}
        widths = [(key.width + 7) // 8 for key in code.keys]
        for initial in code.entries:
            parts = _split_key(widths, initial.key, initial.mask, initial.prefix_length, initial.range_high)
            message = p4r.TableEntry(table_id=self.schema.id, is_const=self.schema.is_const)
            message.match.extend(self.schema.key.decode(parts))
            if self.schema.key.needs_priority:
                message.priority = initial.priority
            use = names.get(initial.call.action.index)
            if use is not None:
                sizes = [(param.width + 7) // 8 for param in initial.call.action.params]
                message.action.action.CopyFrom(use.action.decode(_split(initial.call.params, sizes)))
            key = self._key(message)  # in the form that clients' requests take
            if key in self.entries:
                continue  # of equal entries the first one wins
            target: Target = ("action", initial.call.action.index, initial.call.params)
            entry = Entry(message, self._engine.entry_insert(self._index, *key, target), None)
            entry.is_const = self.schema.is_const
            self.entries[key] = entry

    def _select(self, request: p4r.TableEntry) -> list[Entry]:
        schema = self.schema
        priority = request.priority
        if request.match:
            wanted = schema.key.encode(request.match)
            if priority or not schema.key.needs_priority:
                entry = self.entries.get((*wanted, priority))
                chosen = [entry] if entry is not None else []
            else:
                chosen = [entry for key, entry in self.entries.items() if key[:4] == wanted]
        else:
            chosen = list(self.entries.values())
            if priority:
                chosen = [entry for entry in chosen if entry.message.priority == priority]
        action_id = request.action.action.action_id
        if action_id:  # members, groups and parameters are no filters; p4runtime-shell sends them all the same
            chosen = [entry for entry in chosen if entry.message.action.action.action_id == action_id]
        if request.metadata:
            chosen = [entry for entry in chosen if entry.message.metadata == request.metadata]
        if request.controller_metadata:
            wanted_cookie = request.controller_metadata
            chosen = [entry for entry in chosen if entry.message.controller_metadata == wanted_cookie]
        return chosen

    def _complete(self, entry: Entry, request: p4r.TableEntry) -> p4r.TableEntry:
        """The entry's message, with what the request asks for beyond it."""
        message = entry.message
        if self.schema.direct_counter and request.HasField("counter_data"):
            message.counter_data.CopyFrom(self.counter(entry))
        if entry.meter is not None and request.HasField("meter_config"):
            message.meter_config.CopyFrom(entry.meter)
        if self._direct_meter is not None and request.HasField("meter_counter_data"):
            message.meter_counter_data.CopyFrom(color_data(self.colors(entry)))
        if self.schema.idle_timeout and request.HasField("time_since_last_hit"):
            message.time_since_last_hit.elapsed_ns = self.idle_ns(entry)
        return message

    def is_of_program(self, message: p4r.TableEntry) -> bool:
        """Whether a fresh table has this entry or default action anyway, so that it need not be put there again."""
        if message.is_default_action:
            return self.schema.has_const_default or message == self._new_default().message
        return self.entries[self._key(message)].is_const

    def delete_initial(self) -> None:
        """Delete the entries that the program brought and that clients may delete."""
        for entry in [entry for entry in self.entries.values() if not entry.is_const]:
            self.delete(entry.message)

    def expired(self) -> list[p4r.TableEntry]:
        """Entries that no packet has hit for their idle timeout; each is reported once per timeout."""
        if not self.schema.idle_timeout or self._index < 0:
            return []
        found = []
        now = int(self._engine.fabric.now_ns)
        for entry in self.entries.values():
            ttl = entry.ttl_ns
            if ttl and now - entry.reported_ns >= ttl and self.idle_ns(entry) >= ttl:
                entry.reported_ns = now
                found.append(entry.message)
        return found

    def idle_ns(self, entry: Entry) -> int:
        """Nanoseconds since a packet last hit the entry, or since it was inserted."""
        if self._index < 0 or entry is self.default:
            return 0
        return max(0, int(self._engine.fabric.now_ns) - self.idle_since(entry))


def _without_direct(request: p4r.TableEntry) -> p4r.TableEntry:
    """A copy without what belongs to direct resources."""
    message = p4r.TableEntry()
    message.CopyFrom(request)
    for name in _DIRECT:
        message.ClearField(name)  # type: ignore[arg-type]
    return message


def _initial_default(schema: Table) -> p4r.Action | None:
    """The program's default action as a message. The JSON knows its arguments in every version of p4c."""
    code = schema.code
    if code is not None and code.default is not None:
        for use in schema.actions.values():
            if use.index == code.default.action.index:
                sizes = [(param.width + 7) // 8 for param in code.default.action.params]
                return use.action.decode(_split(code.default.params, sizes))
        return None
    initial = schema.initial_default
    if initial is None:
        return None
    params = [p4r.Action.Param(param_id=arg.param_id, value=arg.value) for arg in initial.arguments]
    return p4r.Action(action_id=initial.action_id, params=params)


def _split(data: bytes, sizes: list[int]) -> list[bytes]:
    parts = []
    offset = 0
    for size in sizes:
        parts.append(data[offset : offset + size])
        offset += size
    return parts


def _split_key(
    sizes: list[int], value: bytes, mask: bytes | None, prefix_len: int | None, high: bytes | None
) -> list[FieldKey]:
    values = _split(value, sizes)
    masks = _split(mask, sizes) if mask is not None else [b"\xff" * size for size in sizes]
    highs = _split(high, sizes) if high is not None else values
    return [
        (v, m, h, _prefix_of(m) if prefix_len is None else prefix_len)
        for v, m, h in zip(values, masks, highs, strict=True)
    ]


def _prefix_of(mask: bytes) -> int:
    return int.from_bytes(mask, "big").bit_count()

"""P4Runtime messages: random ones that a P4Info allows, and what structural mutations make of them."""

from __future__ import annotations

import random
from typing import Any

from finsy.proto import p4i, p4r
from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.message import Message

from fuzz.mutation import HOSTILE_TEXTS

_NUMBERS = (0, 1, 2, 3, 255, 510, 511, 512, 65535, 1 << 24, (1 << 31) - 1, (1 << 32) - 1, (1 << 63) - 1, (1 << 64) - 1)
_MAX_BYTES = 600


class Messages:
    """Entities of one program, by its P4Info."""

    def __init__(self, p4info: p4i.P4Info, rng: random.Random) -> None:
        self._info = p4info
        self._rng = rng
        self._actions = {action.preamble.id: action for action in p4info.actions}

    def value(self, width: int) -> bytes:
        """Canonical: the shortest form of a number of `width` bits."""
        rng = self._rng
        number = rng.choice([0, 1, (1 << width) - 1, rng.randrange(8), rng.getrandbits(width or 1)])
        number &= (1 << width) - 1
        return number.to_bytes(max(1, (number.bit_length() + 7) // 8), "big")

    def entity(self) -> p4r.Entity:
        """Any entity that can be written."""
        makers = [self.table_entry] * 8 + [self._member, self._group] * 2
        makers += [self._counter, self._direct_counter, self._meter, self._direct_meter, self._register]
        makers += [self._value_set, self._multicast, self._clone, self._digest]
        while True:
            made = self._rng.choice(makers)()
            if made is not None:
                return made

    def update(self) -> p4r.Update:
        """A write of one entity."""
        kind = self._rng.choice([p4r.Update.INSERT, p4r.Update.INSERT, p4r.Update.MODIFY, p4r.Update.DELETE])
        return p4r.Update(type=kind, entity=self.entity())

    def query(self) -> p4r.Entity:
        """What a read asks for: an entity, or a wildcard of its kind."""
        made = self.entity()
        if self._rng.random() < 0.5:
            kind = made.WhichOneof("entity")
            assert kind is not None
            made.ClearField(kind)
            getattr(made, kind).SetInParent()
        return made

    def stream(self) -> p4r.StreamMessageRequest:
        """A message of a controller that has arbitrated."""
        rng = self._rng
        request = p4r.StreamMessageRequest()
        kind = rng.random()
        if kind < 0.6:
            request.packet.payload = rng.randbytes(rng.choice([0, 1, 14, 60, rng.randrange(1500), 10_300]))
            for header in self._info.controller_packet_metadata:
                if header.preamble.name == "packet_out":
                    for field in header.metadata:
                        request.packet.metadata.add(metadata_id=field.id, value=self.value(field.bitwidth))
        elif kind < 0.8:
            digest = rng.choice([each.preamble.id for each in self._info.digests] or [1])
            request.digest_ack.digest_id, request.digest_ack.list_id = digest, rng.randrange(5)
        else:
            request.arbitration.device_id = 1
            request.arbitration.election_id.low = rng.choice(_NUMBERS)
        return request

    # Entities

    def table_entry(self) -> p4r.Entity | None:
        """An entry, or a default one."""
        rng = self._rng
        table = rng.choice(self._info.tables)
        entry = p4r.TableEntry(table_id=table.preamble.id)
        if rng.random() < 0.08:
            entry.is_default_action = True
        else:
            for field in table.match_fields:
                self._match(entry, field)
            if any(field.match_type in (3, 4, 5) or field.match_type == 6 for field in table.match_fields):
                entry.priority = rng.randrange(1, 20)
        self._table_action(entry, table)
        if rng.random() < 0.1:
            entry.meter_config.SetInParent()
        if rng.random() < 0.1:
            entry.counter_data.packet_count = rng.choice([0, 5, -1])
        if rng.random() < 0.1:
            entry.idle_timeout_ns = rng.choice([0, 1, 10**9])
        if rng.random() < 0.1:
            entry.metadata = rng.randbytes(4)
        return p4r.Entity(table_entry=entry)

    def _match(self, entry: p4r.TableEntry, info: p4i.MatchField) -> None:
        rng = self._rng
        width = info.bitwidth
        match = p4r.FieldMatch(field_id=info.id)
        number = int.from_bytes(self.value(width), "big")
        full = (1 << width) - 1

        def text(value: int) -> bytes:
            return value.to_bytes(max(1, (value.bit_length() + 7) // 8), "big")

        if info.match_type == p4i.MatchField.EXACT:
            match.exact.value = text(number)
        elif rng.random() < 0.2:
            return  # don't care
        elif info.match_type == p4i.MatchField.LPM:
            length = rng.randrange(1, width + 1)
            match.lpm.value, match.lpm.prefix_len = text(number >> (width - length) << (width - length)), length
        elif info.match_type == p4i.MatchField.TERNARY:
            mask = int.from_bytes(self.value(width), "big") or full
            match.ternary.value, match.ternary.mask = text(number & mask), text(mask)
        elif info.match_type == p4i.MatchField.RANGE:
            low, high = sorted((number, int.from_bytes(self.value(width), "big")))
            match.range.low, match.range.high = text(low), text(high)
        else:
            match.optional.value = text(number)
        entry.match.append(match)

    def _action(self, identity: int) -> p4r.Action:
        info = self._actions[identity]
        params = [p4r.Action.Param(param_id=each.id, value=self.value(each.bitwidth)) for each in info.params]
        return p4r.Action(action_id=identity, params=params)

    def _table_action(self, entry: p4r.TableEntry, table: p4i.Table) -> None:
        rng = self._rng
        identity = rng.choice(table.action_refs).id
        if not table.implementation_id:
            entry.action.action.CopyFrom(self._action(identity))
            return
        match rng.randrange(3):
            case 0:
                entry.action.action_profile_member_id = rng.randrange(1, 6)
            case 1:
                entry.action.action_profile_group_id = rng.randrange(1, 4)
            case _:
                for _ in range(rng.randrange(4)):
                    one = entry.action.action_profile_action_set.action_profile_actions.add()
                    one.action.CopyFrom(self._action(rng.choice(table.action_refs).id))
                    one.weight = rng.randrange(1, 4)

    def _member(self) -> p4r.Entity | None:
        profile = self._profile()
        if profile is None:
            return None
        table = next(each for each in self._info.tables if each.implementation_id == profile.preamble.id)
        member = p4r.ActionProfileMember(
            action_profile_id=profile.preamble.id,
            member_id=self._rng.randrange(1, 6),
            action=self._action(self._rng.choice(table.action_refs).id),
        )
        return p4r.Entity(action_profile_member=member)

    def _group(self) -> p4r.Entity | None:
        profile = self._profile()
        if profile is None:
            return None
        rng = self._rng
        group = p4r.ActionProfileGroup(action_profile_id=profile.preamble.id, group_id=rng.randrange(1, 4))
        group.max_size = rng.choice([0, 0, 4, 8])
        for member in rng.sample(range(1, 6), rng.randrange(4)):
            group.members.add(member_id=member, weight=rng.randrange(1, 4))
        return p4r.Entity(action_profile_group=group)

    def _profile(self) -> p4i.ActionProfile | None:
        return self._rng.choice(self._info.action_profiles) if self._info.action_profiles else None

    def _index(self, size: int) -> p4r.Index:
        return p4r.Index(index=self._rng.randrange(max(size, 1)))

    def _counter(self) -> p4r.Entity | None:
        if not self._info.counters:
            return None
        info = self._rng.choice(self._info.counters)
        entry = p4r.CounterEntry(counter_id=info.preamble.id, index=self._index(info.size))
        entry.data.byte_count = self._rng.choice([0, 1, (1 << 63) - 1, -1])
        return p4r.Entity(counter_entry=entry)

    def _direct_counter(self) -> p4r.Entity | None:
        made = self.table_entry()
        assert made is not None
        made.table_entry.ClearField("action")
        entry = p4r.DirectCounterEntry(table_entry=made.table_entry)
        entry.data.packet_count = self._rng.randrange(100)
        return p4r.Entity(direct_counter_entry=entry)

    def _config(self) -> p4r.MeterConfig:
        cir, burst = self._rng.choice([0, 1, 10**6, (1 << 63) - 1]), self._rng.choice([0, 1, 10**4, (1 << 62)])
        return p4r.MeterConfig(cir=cir, cburst=burst, pir=max(cir, self._rng.choice([0, 10**7])), pburst=burst)

    def _meter(self) -> p4r.Entity | None:
        if not self._info.meters:
            return None
        info = self._rng.choice(self._info.meters)
        entry = p4r.MeterEntry(meter_id=info.preamble.id, index=self._index(info.size), config=self._config())
        return p4r.Entity(meter_entry=entry)

    def _direct_meter(self) -> p4r.Entity | None:
        made = self.table_entry()
        assert made is not None
        made.table_entry.ClearField("action")
        return p4r.Entity(direct_meter_entry=p4r.DirectMeterEntry(table_entry=made.table_entry, config=self._config()))

    def _register(self) -> p4r.Entity | None:
        if not self._info.registers:
            return None
        info = self._rng.choice(self._info.registers)
        entry = p4r.RegisterEntry(register_id=info.preamble.id, index=self._index(info.size))
        entry.data.bitstring = self.value(info.type_spec.bitstring.bit.bitwidth or 8)
        return p4r.Entity(register_entry=entry)

    def _value_set(self) -> p4r.Entity | None:
        if not self._info.value_sets:
            return None
        info = self._rng.choice(self._info.value_sets)
        entry = p4r.ValueSetEntry(value_set_id=info.preamble.id)
        for _ in range(self._rng.randrange(5)):
            member = entry.members.add()
            for field in info.match:
                one = member.match.add(field_id=field.id)
                one.exact.value = self.value(field.bitwidth)
        return p4r.Entity(value_set_entry=entry)

    def _replicas(self, to: Any) -> None:
        for instance in range(self._rng.randrange(4)):
            to.add(egress_port=self._rng.choice([0, 1, 2, 510, 511, 512]), instance=instance)

    def _multicast(self) -> p4r.Entity:
        made = p4r.Entity()
        group = made.packet_replication_engine_entry.multicast_group_entry
        group.multicast_group_id = self._rng.randrange(1, 5)
        self._replicas(group.replicas)
        return made

    def _clone(self) -> p4r.Entity:
        made = p4r.Entity()
        session = made.packet_replication_engine_entry.clone_session_entry
        session.session_id = self._rng.randrange(1, 5)
        session.packet_length_bytes = self._rng.choice([0, 0, 1, 64, 20_000])
        self._replicas(session.replicas)
        return made

    def _digest(self) -> p4r.Entity | None:
        if not self._info.digests:
            return None
        entry = p4r.DigestEntry(digest_id=self._rng.choice(self._info.digests).preamble.id)
        entry.config.max_list_size = self._rng.randrange(4)
        entry.config.max_timeout_ns = self._rng.choice([0, 10**6])
        return p4r.Entity(digest_entry=entry)


def mutate(rng: random.Random, message: Message, changes: int = 3) -> None:
    """Changes some fields of a message, wherever inside: set, cleared, repeated, of another size."""
    for _ in range(rng.randrange(1, changes + 1)):
        inside = list(_inside(message))
        _change(rng, rng.choice(inside))


def _inside(message: Message) -> Any:
    yield message
    for field, value in message.ListFields():
        if field.type == FieldDescriptor.TYPE_MESSAGE:
            for each in value if field.is_repeated else [value]:
                if isinstance(each, Message):
                    yield from _inside(each)


def _change(rng: random.Random, message: Message) -> None:
    fields = list(message.DESCRIPTOR.fields)
    if not fields:
        return
    present = [field for field, _ in message.ListFields()]
    field = rng.choice(present) if present and rng.random() < 0.7 else rng.choice(fields)
    if rng.random() < 0.15:
        message.ClearField(field.name)
        return
    is_message = field.type == FieldDescriptor.TYPE_MESSAGE
    if field.is_repeated:
        items = getattr(message, field.name)
        if is_message and field.message_type.GetOptions().map_entry:
            return
        kind = rng.random()
        if len(items) and kind < 0.3:
            del items[rng.randrange(len(items))]
        elif is_message:
            for _ in range(rng.choice([1, 1, 1, 3, 20])):
                items.add()
                if len(items) > 1:
                    items[-1].CopyFrom(items[rng.randrange(len(items) - 1)])
        else:
            items.extend([_scalar(rng, field)] * rng.choice([1, 1, 100]))
    elif is_message:
        getattr(message, field.name).SetInParent()
    else:
        setattr(message, field.name, _scalar(rng, field))


_SIZES = {
    FieldDescriptor.CPPTYPE_INT32: (-(1 << 31), (1 << 31) - 1),
    FieldDescriptor.CPPTYPE_ENUM: (-(1 << 31), (1 << 31) - 1),
    FieldDescriptor.CPPTYPE_UINT32: (0, (1 << 32) - 1),
    FieldDescriptor.CPPTYPE_INT64: (-(1 << 63), (1 << 63) - 1),
    FieldDescriptor.CPPTYPE_UINT64: (0, (1 << 64) - 1),
}


def _scalar(rng: random.Random, field: FieldDescriptor) -> Any:
    kind = field.cpp_type
    if kind in _SIZES:
        low, high = _SIZES[kind]
        number = rng.choice([*_NUMBERS, -1, -(1 << 31), -(1 << 63), rng.getrandbits(8), rng.getrandbits(32)])
        return min(max(number, low), high)
    if kind == FieldDescriptor.CPPTYPE_BOOL:
        return rng.random() < 0.5
    if kind == FieldDescriptor.CPPTYPE_STRING:
        if field.type == FieldDescriptor.TYPE_BYTES:
            size = rng.choice([0, 1, 2, 4, 6, 16, rng.randrange(_MAX_BYTES)])
            return rng.choice([rng.randbytes(size), bytes(size), b"\xff" * size])
        return rng.choice([text for text in HOSTILE_TEXTS if text.isascii() or text == "ñ"])
    return rng.choice([0.0, -1.0, 1e308, float("nan")])

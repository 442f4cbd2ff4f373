"""A v1model switch in plain Python: the interpreter of the JSON, P4Runtime's updates, and a traffic manager.

What comes between the pipelines is BMv2's order of decisions: at the end of ingress clone, resubmit, multicast, drop,
unicast; at the end of egress clone, drop, recirculate, send.  Queues are empty and take no time.
"""

import random
from dataclasses import replace
from typing import Any

from finsy.proto import p4i, p4r

from fastswitch.interpreter import Entry, Interpreter, Packet
from tests.agreement_packets import Json

Sent = tuple[int, bytes]
"""A frame that left, with its port."""

Counters = dict[tuple[int, Any], tuple[int, int]]
"""Packets and bytes by id and index, or by the id of a table and `entry_key`."""

DROP_PORT, PORT_MASK = 511, 511
NORMAL, INGRESS_CLONE, EGRESS_CLONE, RECIRCULATED, REPLICATED, RESUBMITTED = 0, 1, 2, 4, 5, 6
LOOP_NS = 100  # what plait-switch lets pass before a resubmitted or recirculated packet is back
LOOP_LIMIT = 8
EGRESS_LIMIT = 64
QUEUES = 1  # of a port, as both switches have by default; packets of a higher priority are dropped


class EndlessError(Exception):
    """A packet is resubmitted or recirculated again and again."""


class XoshiroRandom:
    """xoshiro256++ seeded by splitmix64 (Blackman and Vigna): the numbers that plait-switch's random() draws."""

    _FULL = (1 << 64) - 1

    def __init__(self, seed: int) -> None:
        self._state = []
        for _ in range(4):
            seed = seed + 0x9E3779B97F4A7C15 & self._FULL
            z = (seed ^ seed >> 30) * 0xBF58476D1CE4E5B9 & self._FULL
            z = (z ^ z >> 27) * 0x94D049BB133111EB & self._FULL
            self._state.append(z ^ z >> 31)

    def _rotate(self, value: int, by: int) -> int:
        return (value << by | value >> (64 - by)) & self._FULL

    def next(self) -> int:
        s = self._state
        result = self._rotate(s[0] + s[3] & self._FULL, 23) + s[0] & self._FULL
        t = s[1] << 17 & self._FULL
        s[2] ^= s[0]
        s[3] ^= s[1]
        s[1] ^= s[2]
        s[0] ^= s[3]
        s[2] ^= t
        s[3] = self._rotate(s[3], 45)
        return result

    def between(self, low: int, high: int) -> int:
        span = high - low + 1
        reject_below = (1 << 64) % span
        while (value := self.next()) < reject_below:
            pass
        return low + value % span


class _Guessing(Interpreter):
    """An interpreter in which what P4 leaves open is drawn: random numbers, and fields of invalid headers."""

    def __init__(self, document: Json, guess: random.Random) -> None:
        super().__init__(document, guess.randint)
        self._guess = guess

    def get(self, packet: Packet, header: str | None, name: str) -> int:
        if header is not None and name != "$valid$" and not self.is_valid(packet, header):
            width, signed = self.width(header, name)
            if isinstance(width, int) and (header, name) not in packet.fields:
                return self._guess.getrandbits(width) - (1 << (width - 1) if signed else 0)
        return super().get(packet, header, name)

    def _operation(self, packet: Packet, node: Json, params: list[int]) -> Any:
        if node["op"] in ("==", "!="):
            names = [self._varbit_name(node[side]) for side in ("left", "right")]
            if any(name is not None and not self.is_valid(packet, name[0]) for name in names):
                return bool(self._guess.getrandbits(1))
        return super()._operation(packet, node, params)


class Reference:
    """One switch with one program. `guess` None: random() is plait-switch's with that seed, and time is given."""

    def __init__(self, document: Json, p4info: p4i.P4Info, seed: int = 1, guess: random.Random | None = None) -> None:
        self._guess = guess
        if guess is None:
            numbers = XoshiroRandom(seed)
            numbers.next()  # the fabric has drawn one for its links
            self.switch = Interpreter(document, numbers.between)
        else:
            self.switch = _Guessing(document, guess)
        for name in self.switch.registers:
            if name.rpartition("plait.")[1:] == ("plait.", "port_up"):
                self.switch.registers[name] = [1] * len(self.switch.registers[name])
        self._tables = {each.preamble.id: each for each in p4info.tables}
        self._actions = {each.preamble.id: each for each in p4info.actions}
        self._counters = {each.preamble.id: each.preamble.name for each in p4info.counters}
        self._registers = {each.preamble.id: each.preamble.name for each in p4info.registers}
        self._field_lists = {each["id"]: each["elements"] for each in document.get("field_lists", [])}
        self._counted = {each.direct_table_id for each in p4info.direct_counters}
        self._members: dict[tuple[int, int], p4r.Action] = {}
        self._groups: dict[tuple[int, int], p4r.ActionProfileGroup] = {}
        self._multicast: dict[int, list[p4r.Replica]] = {}
        self._sessions: dict[int, p4r.CloneSessionEntry] = {}
        self._written: list[tuple[p4r.TableEntry, Entry]] = []
        self.now_ns = 0

    # -- control

    def write(self, update: p4r.Update) -> None:
        kind = update.entity.WhichOneof("entity")
        if kind == "table_entry":
            self._write_entry(update.entity.table_entry)
        elif kind == "action_profile_member":
            member = update.entity.action_profile_member
            self._members[(member.action_profile_id, member.member_id)] = member.action
        elif kind == "action_profile_group":
            group = update.entity.action_profile_group
            self._groups[(group.action_profile_id, group.group_id)] = group
        elif kind == "register_entry":
            entry = update.entity.register_entry
            cells = self.switch.registers[self._registers[entry.register_id]]
            cells[entry.index.index] = int.from_bytes(entry.data.bitstring, "big")
        else:
            pre = update.entity.packet_replication_engine_entry
            if pre.WhichOneof("type") == "multicast_group_entry":
                group_entry = pre.multicast_group_entry
                self._multicast[group_entry.multicast_group_id] = list(group_entry.replicas)
            else:
                self._sessions[pre.clone_session_entry.session_id] = pre.clone_session_entry

    def _call_of(self, table: Json, action: p4r.Action) -> tuple[int, list[int]]:
        """Action id of the JSON and arguments: a table's ids, since several actions may have one name."""
        info = self._actions[action.action_id]
        name = info.preamble.name
        # An action that the program never runs may be missing there.
        ids = table.get("action_ids", [])
        found = next(i for i in ids if self.switch.actions[i]["name"] == name)
        given = {each.param_id: int.from_bytes(each.value, "big") for each in action.params}
        return found, [given[param.id] for param in info.params]

    def _write_entry(self, entry: p4r.TableEntry) -> None:
        info = self._tables[entry.table_id]
        name = info.preamble.name
        table = self.switch.tables[name]
        if entry.is_default_action:
            self.switch.defaults[name] = self._call_of(table, entry.action.action)
            return
        given = {each.field_id: each for each in entry.match}
        match = [_match(each, given.get(each.id)) for each in info.match_fields]
        kind = entry.action.WhichOneof("type")
        group = None
        call: tuple[int, list[int]] = (0, [])
        if kind == "action":
            call = self._call_of(table, entry.action.action)
        elif kind == "action_profile_member_id":
            call = self._call_of(table, self._members[(info.implementation_id, entry.action.action_profile_member_id)])
        elif kind == "action_profile_group_id":
            wanted = self._groups[(info.implementation_id, entry.action.action_profile_group_id)]
            group = []
            for each in sorted(wanted.members, key=lambda member: member.member_id):
                call_of = self._call_of(table, self._members[(info.implementation_id, each.member_id)])
                group += [call_of] * each.weight
        else:
            group = []
            for action in entry.action.action_profile_action_set.action_profile_actions:
                group += [self._call_of(table, action.action)] * action.weight
        made = self.switch.add_entry(name, match, call[0], call[1], entry.priority, group)
        self._written.append((entry, made))

    def counters(self) -> Counters:
        """All counters that are not zero."""
        found: Counters = {}
        for number, name in self._counters.items():
            for index, (packets, octets) in enumerate(self.switch.counters.get(name, ())):
                if packets:
                    found[(number, index)] = (packets, octets)
        for entry, made in self._written:
            if made.hits and entry.table_id in self._counted:
                found[(entry.table_id, entry_key(entry))] = (made.hits, made.bytes)
        return found

    # -- packets

    def send(self, port: int, frame: bytes, now_ns: int) -> list[Sent]:
        """What leaves because of a frame, in the order in which it does; EndlessError."""
        self._out: list[Sent] = []
        self._loop: list[tuple[bytes, dict[str, int], dict[tuple[str, str], int]]] = []
        self._egress_runs = 0
        self.now_ns = now_ns
        first = {"ingress_port": port, "packet_length": len(frame), "ingress_global_timestamp": self._us()}
        self._ingress(frame, first, {})
        for turn in range(LOOP_LIMIT + 1):
            if not self._loop:
                return self._out
            waiting, self._loop = self._loop, []
            self.now_ns = now_ns + (turn + 1) * LOOP_NS
            for data, standard, carried in waiting:
                self._ingress(data, standard, carried)
        raise EndlessError

    def _us(self) -> int:
        if self._guess is not None:
            return self._guess.randrange(1, 1 << 33)
        return self.now_ns // 1000

    def _ingress(self, frame: bytes, standard: dict[str, int], carried: dict[tuple[str, str], int]) -> None:
        switch = self.switch
        packet = switch.parse(frame, standard, carried)
        switch.run("ingress", packet)
        requests = packet.requests
        if (clone := requests.pop("clone", None)) is not None:
            self._clone_ingress(packet, frame, clone)
        if listed := requests.pop("resubmit", 0):
            length = switch.standard_value(packet, "packet_length")
            again = {"instance_type": RESUBMITTED, "packet_length": length}
            self._loop.append((frame, again, self._kept(packet, listed)))
            return
        group = switch.standard_value(packet, "mcast_grp")
        port = switch.standard_value(packet, "egress_spec")
        if group:
            switch.standard(packet, "instance_type", REPLICATED)
            for replica in self._multicast.get(group, []):
                self._egress(_copied(packet), replica.egress_port, replica.instance)
        elif port != DROP_PORT:
            switch.standard(packet, "instance_type", NORMAL)
            self._egress(packet, port, switch.standard_value(packet, "egress_rid"))

    def _kept(self, packet: Packet, field_list: int) -> dict[tuple[str, str], int]:
        kept = {}
        for each in self._field_lists.get(field_list, ()):
            if each["type"] == "field":
                header, name = each["value"]
                kept[(header, name)] = self.switch.get(packet, header, name)
        return kept

    def _reset_metadata(self, packet: Packet, standard: dict[str, int], kept: dict[tuple[str, str], int]) -> None:
        for header, name in list(packet.fields):
            if header in self.switch.metadata:
                del packet.fields[(header, name)]
        for name, value in standard.items():
            self.switch.standard(packet, name, value)
        packet.fields.update(kept)

    def _clone_ingress(self, packet: Packet, frame: bytes, clone: tuple[int, int]) -> None:
        session = self._sessions.get(clone[0])
        if session is None:
            return
        copy = self.switch.parse(frame, {"instance_type": INGRESS_CLONE, "packet_length": len(frame)})
        copy.requests["arrival_length"] = packet.requests["arrival_length"]
        standard = {"instance_type": INGRESS_CLONE, "packet_length": len(frame)}
        self._reset_metadata(copy, standard, self._kept(packet, clone[1]))
        for replica in session.replicas:
            self._egress(_copied(copy), replica.egress_port, replica.instance)

    def _egress(self, packet: Packet, port: int, rid: int) -> None:
        switch = self.switch
        self._egress_runs += 1
        if self._egress_runs > EGRESS_LIMIT:
            raise EndlessError
        if switch.standard_value(packet, "priority") >= QUEUES:
            return
        for name in ("clone", "resubmit", "recirculate", "digest"):
            packet.requests.pop(name, None)
        now = self._us()
        for name, value in (
            ("egress_port", port),
            ("egress_rid", rid),
            ("egress_spec", (DROP_PORT + 1) & PORT_MASK),
            ("egress_global_timestamp", now),
            ("enq_timestamp", now & 0xFFFFFFFF),
            ("enq_qdepth", 0),
            ("deq_timedelta", 0),
            ("deq_qdepth", 0),
        ):
            switch.standard(packet, name, value)
        switch.run("egress", packet)
        clone = packet.requests.pop("clone", None)
        copies = []
        if clone is not None and (session := self._sessions.get(clone[0])) is not None:
            copy = _copied(packet)
            copy.requests.pop("truncate", None)
            copy.requests.pop("recirculate", None)
            length = switch.standard_value(packet, "packet_length")
            standard = {"instance_type": EGRESS_CLONE, "packet_length": length}
            self._reset_metadata(copy, standard, self._kept(packet, clone[1]))
            copies = [(_copied(copy), replica.egress_port, replica.instance) for replica in session.replicas]
        if switch.standard_value(packet, "egress_spec") != DROP_PORT:
            frame = switch.deparse(packet)
            if listed := packet.requests.get("recirculate"):
                again = {"instance_type": RECIRCULATED, "packet_length": len(frame)}
                self._loop.append((frame, again, self._kept(packet, listed)))
            else:
                self._out.append((port, frame))
        for copied, to, instance in copies:
            self._egress(copied, to, instance)


def entry_key(entry: p4r.TableEntry) -> tuple[int, tuple[bytes, ...]]:
    """What tells an entry from the others of its table."""
    return entry.priority, tuple(sorted(each.SerializeToString(deterministic=True) for each in entry.match))


def _copied(packet: Packet) -> Packet:
    return replace(
        packet,
        fields=dict(packet.fields),
        varbits=dict(packet.varbits),
        valid=set(packet.valid),
        filled=dict(packet.filled),
        requests=dict(packet.requests),
        digests=[],
    )


def _match(info: p4i.MatchField, given: p4r.FieldMatch | None) -> tuple[Any, ...]:
    """A field's match as the interpreter has it."""
    width = info.bitwidth
    if info.match_type == p4i.MatchField.EXACT:
        assert given is not None
        return ("exact", int.from_bytes(given.exact.value, "big"))
    if info.match_type == p4i.MatchField.LPM:
        return ("lpm", int.from_bytes(given.lpm.value, "big"), given.lpm.prefix_len) if given else ("lpm", 0, 0)
    if info.match_type == p4i.MatchField.TERNARY:
        value, mask = (given.ternary.value, given.ternary.mask) if given else (b"", b"")
        return ("ternary", int.from_bytes(value, "big"), int.from_bytes(mask, "big"))
    if info.match_type == p4i.MatchField.RANGE:
        if given is None:
            return ("range", 0, (1 << width) - 1)
        return ("range", int.from_bytes(given.range.low, "big"), int.from_bytes(given.range.high, "big"))
    full = (1 << width) - 1
    return ("ternary", int.from_bytes(given.optional.value, "big"), full) if given else ("ternary", 0, 0)

"""Action profiles and selectors: members, groups, and one-shot sets.

An entry of an indirect table holds a reference; whatever is referenced cannot be deleted. One-shot sets are
immutable, so entries with equal sets share one group of the engine.

Weights become repetitions in the engine's group. A member whose watch port is down is left out of its groups.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field

from finsy.proto import p4r

from fastswitch.server.engine_api import EngineSwitch, Target
from fastswitch.server.errors import (
    already_exists,
    failed_precondition,
    invalid_argument,
    not_found,
    resource_exhausted,
    unimplemented,
)
from fastswitch.server.schema import ActionUse, Profile

_SUM_OF_WEIGHTS = p4r.ActionProfileActionSet.SUM_OF_WEIGHTS
_MAX_WEIGHT_SUM = 65_536  # repetitions in one group of the engine, if P4Info sets no limit


@dataclass(slots=True, eq=False)
class Member:
    """A member that a client programmed, or one of a one-shot set."""

    handle: int
    action_id: int = 0
    message: p4r.ActionProfileMember | None = None
    users: int = 0  # entries and groups


@dataclass(slots=True, eq=False)
class Seat:
    """A member's place in a group."""

    member: Member
    weight: int
    watch_port: int | None


@dataclass(slots=True, eq=False)
class Group:
    """A group that a client programmed, or a one-shot set (`key` is then its serialized message)."""

    handle: int
    seats: list[Seat] = field(default_factory=list)
    message: p4r.ActionProfileGroup | None = None
    key: bytes = b""
    users: int = 0  # entries


Reference = Member | Group


class ProfileState:
    """Contents of one profile of one switch."""

    def __init__(self, schema: Profile, engine: EngineSwitch, port_up: Callable[[int], bool]) -> None:
        self.schema = schema
        self._engine = engine
        self._port_up = port_up
        self.members: dict[int, Member] = {}
        self.groups: dict[int, Group] = {}
        self._sets: dict[bytes, Group] = {}
        self._set_members = 0
        self._limit = schema.max_group_size or _MAX_WEIGHT_SUM

    # What table entries refer to

    def acquire(self, action: p4r.TableAction) -> tuple[Target, Reference]:
        """The engine's target of an entry's action, and the reference to give back with `release`."""
        kind = action.WhichOneof("type")
        reference: Reference
        if kind == "action_profile_member_id":
            self._refuse_mixing(one_shot=False)
            reference = self._member(action.action_profile_member_id)
            reference.users += 1
            return ("member", reference.handle), reference
        if kind == "action_profile_group_id":
            self._need_selector("a group")
            self._refuse_mixing(one_shot=False)
            reference = self._group(action.action_profile_group_id)
            reference.users += 1
            return ("group", reference.handle), reference
        if kind == "action_profile_action_set":
            self._need_selector("an action set")
            self._refuse_mixing(one_shot=True)
            reference = self._set(action.action_profile_action_set)
            reference.users += 1
            return ("group", reference.handle), reference
        invalid_argument(f"the table is implemented by '{self.schema.name}': the entry needs a member, group or set")

    def release(self, reference: Reference) -> None:
        """An entry no longer refers to `reference`."""
        reference.users -= 1
        if reference.users == 0 and isinstance(reference, Group) and reference.key:
            del self._sets[reference.key]
            self._engine.group_delete(reference.handle)
            for seat in reference.seats:
                self._engine.member_delete(seat.member.handle)
            self._set_members -= len(reference.seats)

    # Members

    def insert_member(self, message: p4r.ActionProfileMember) -> None:
        """INSERT of a member."""
        self._refuse_mixing(one_shot=False)
        if message.member_id in self.members:
            already_exists(f"member {message.member_id} of '{self.schema.name}' already exists")
        if message.member_id == 0:
            invalid_argument("member id 0 is reserved for wildcard reads")
        use, params = self._encode(message)
        self._check_room(1)
        handle = self._engine.member_create(use.index, params)
        self.members[message.member_id] = Member(handle, use.action.id, _copy_member(message))

    def modify_member(self, message: p4r.ActionProfileMember) -> None:
        """MODIFY of a member: takes effect in every group and entry that uses it."""
        member = self._member(message.member_id)
        use, params = self._encode(message)
        self._engine.member_modify(member.handle, use.index, params)
        member.action_id = use.action.id
        member.message = _copy_member(message)

    def delete_member(self, message: p4r.ActionProfileMember) -> None:
        """DELETE of a member that nothing refers to."""
        member = self._member(message.member_id)
        if member.users:
            failed_precondition(
                f"member {message.member_id} of '{self.schema.name}' is still used by {member.users} groups or entries"
            )
        self._engine.member_delete(member.handle)
        del self.members[message.member_id]

    def read_members(self, member_id: int) -> Iterator[p4r.ActionProfileMember]:
        """One member, if it exists, or all with id 0."""
        chosen = self.members.values() if member_id == 0 else [self.members.get(member_id)]
        for member in chosen:
            if member is not None and member.message is not None:
                yield member.message

    # Groups

    def insert_group(self, message: p4r.ActionProfileGroup) -> None:
        """INSERT of a group; it may be empty."""
        self._need_selector("a group")
        self._refuse_mixing(one_shot=False)
        if message.group_id in self.groups:
            already_exists(f"group {message.group_id} of '{self.schema.name}' already exists")
        if message.group_id == 0:
            invalid_argument("group id 0 is reserved for wildcard reads")
        seats = self._seats(message)
        group = Group(self._engine.group_create())
        self._settle(group, seats, message)
        self.groups[message.group_id] = group

    def modify_group(self, message: p4r.ActionProfileGroup) -> None:
        """MODIFY of a group's members; its max_size stays."""
        group = self._group(message.group_id)
        assert group.message is not None
        if message.max_size != group.message.max_size:
            invalid_argument(
                f"group {message.group_id} of '{self.schema.name}' was inserted with max_size "
                f"{group.message.max_size}, which cannot change to {message.max_size}"
            )
        self._settle(group, self._seats(message), message)

    def delete_group(self, message: p4r.ActionProfileGroup) -> None:
        """DELETE of a group that no entry refers to."""
        group = self._group(message.group_id)
        if group.users:
            failed_precondition(
                f"group {message.group_id} of '{self.schema.name}' is still used by {group.users} entries"
            )
        self._engine.group_delete(group.handle)
        for seat in group.seats:
            seat.member.users -= 1
        del self.groups[message.group_id]

    def read_groups(self, group_id: int) -> Iterator[p4r.ActionProfileGroup]:
        """One group, if it exists, or all with id 0."""
        chosen = self.groups.values() if group_id == 0 else [self.groups.get(group_id)]
        for group in chosen:
            if group is not None and group.message is not None:
                yield group.message

    def port_changed(self, port: int) -> None:
        """A port went up or down: groups with a member that watches it are set anew."""
        for group in [*self.groups.values(), *self._sets.values()]:
            if any(seat.watch_port == port for seat in group.seats):
                self._program(group)

    # Private part

    def _member(self, member_id: int) -> Member:
        member = self.members.get(member_id)
        if member is None:
            not_found(f"'{self.schema.name}' has no member {member_id}")
        return member

    def _group(self, group_id: int) -> Group:
        group = self.groups.get(group_id)
        if group is None:
            not_found(f"'{self.schema.name}' has no group {group_id}")
        return group

    def _need_selector(self, what: str) -> None:
        if not self.schema.with_selector:
            invalid_argument(f"'{self.schema.name}' is an action profile without a selector: it cannot hold {what}")

    def _refuse_mixing(self, *, one_shot: bool) -> None:
        name = self.schema.name
        if one_shot and (self.members or self.groups):
            invalid_argument(f"'{name}' is programmed with members and groups: action sets cannot be mixed in")
        if not one_shot and self._sets:
            invalid_argument(f"'{name}' is programmed with action sets: members and groups cannot be mixed in")

    def _check_room(self, more: int) -> None:
        name, size = self.schema.name, self.schema.size
        used = len(self.members) + self._set_members
        if size and used + more > size:
            resource_exhausted(f"'{name}' holds {used} of {size} members; {more} more do not fit")

    def _encode(self, message: p4r.ActionProfileMember) -> tuple[ActionUse, bytes]:
        if not message.HasField("action"):
            invalid_argument(f"member {message.member_id} needs an action")
        use = self._use_of(message.action)
        return use, use.action.encode(message.action)

    def _use_of(self, action: p4r.Action) -> ActionUse:
        # A compiler drops tables that decide nothing from the JSON, where alone an action has its index.
        table = next((table for table in self.schema.tables if table.code is not None), None)
        if table is None:
            invalid_argument(f"no table of the program uses '{self.schema.name}'")
        return table.use_of(action.action_id, default=False)

    def _seats(self, message: p4r.ActionProfileGroup) -> list[Seat]:
        schema = self.schema
        if message.max_size < 0:
            invalid_argument(f"group {message.group_id}: max_size {message.max_size} is negative")
        if schema.max_group_size and message.max_size > schema.max_group_size:
            invalid_argument(
                f"group {message.group_id}: max_size {message.max_size} is above the {schema.max_group_size} "
                f"of '{schema.name}'"
            )
        seats = []
        seen = set()
        for member in message.members:
            if member.member_id in seen:
                invalid_argument(f"group {message.group_id} has member {member.member_id} twice; use its weight")
            seen.add(member.member_id)
            weight = self._weight(member.weight)
            seats.append(Seat(self._member(member.member_id), weight, _watch_port(member)))
        self._check_sum(seat.weight for seat in seats)
        size = len(seats) if schema.sum_of_members else sum(seat.weight for seat in seats)
        limit = message.max_size or self._limit
        if size > limit:
            unit = "members" if schema.sum_of_members else "the sum of weights"
            resource_exhausted(f"group {message.group_id}: {size} is above its size of {limit} ({unit})")
        return seats

    def _weight(self, weight: int) -> int:
        schema = self.schema
        if schema.weights_disallowed:
            if weight:
                invalid_argument(f"'{schema.name}' takes no weights")
            return 1
        if weight <= 0:
            invalid_argument(f"weight {weight} of a member is not positive")
        if schema.max_member_weight and weight > schema.max_member_weight:
            invalid_argument(f"weight {weight} is above the {schema.max_member_weight} of '{schema.name}'")
        return weight

    @staticmethod
    def _check_sum(weights: Iterable[int]) -> None:
        total = sum(weights)
        if total > _MAX_WEIGHT_SUM:
            resource_exhausted(f"the sum of weights {total} is above the engine's {_MAX_WEIGHT_SUM}")

    def _settle(self, group: Group, seats: list[Seat], message: p4r.ActionProfileGroup) -> None:
        for seat in seats:
            seat.member.users += 1
        for seat in group.seats:
            seat.member.users -= 1
        group.seats = seats
        group.message = p4r.ActionProfileGroup()
        group.message.CopyFrom(message)
        self._program(group)

    def _program(self, group: Group) -> None:
        alive = [s for s in group.seats if s.watch_port is None or self._port_up(s.watch_port)]
        self._engine.group_set(group.handle, [(seat.member.handle, seat.weight) for seat in alive])

    def _set(self, message: p4r.ActionProfileActionSet) -> Group:
        schema = self.schema
        own_size = p4r.ActionProfileActionSet.SUM_OF_MEMBERS if schema.sum_of_members else _SUM_OF_WEIGHTS
        if message.action_selection_mode not in (0, p4r.ActionProfileActionSet.HASH):
            unimplemented(f"'{schema.name}': sets take the selector's own selection mode only, which is HASH")
        if message.size_semantics not in (0, own_size):
            unimplemented(f"'{schema.name}': sets take the selector's own size semantics only")
        key = message.SerializeToString(deterministic=True)
        group = self._sets.get(key)
        if group is not None:
            return group
        encoded: list[tuple[int, bytes, int, int | None]] = []
        for item in message.action_profile_actions:
            use = self._use_of(item.action)
            encoded.append((use.index, use.action.encode(item.action), self._weight(item.weight), _watch_port(item)))
        self._check_sum(weight for _, _, weight, _ in encoded)
        size = len(encoded) if schema.sum_of_members else sum(weight for _, _, weight, _ in encoded)
        if size > self._limit:
            unit = "actions" if schema.sum_of_members else "the sum of weights"
            resource_exhausted(f"the action set has {size} ({unit}); '{schema.name}' allows {self._limit}")
        self._check_room(len(encoded))
        # Encoding made the strings canonical: the same set may be there under its canonical form.
        canonical = message.SerializeToString(deterministic=True)
        if canonical != key and canonical in self._sets:
            return self._sets[canonical]
        group = Group(self._engine.group_create(), key=canonical)
        for index, params, weight, watch_port in encoded:
            group.seats.append(Seat(Member(self._engine.member_create(index, params)), weight, watch_port))
        self._set_members += len(encoded)
        self._program(group)
        self._sets[canonical] = group
        return group


def _copy_member(message: p4r.ActionProfileMember) -> p4r.ActionProfileMember:
    copy = p4r.ActionProfileMember()
    copy.CopyFrom(message)
    return copy


def _watch_port(holder: p4r.ActionProfileGroup.Member | p4r.ActionProfileAction) -> int | None:
    kind = holder.WhichOneof("watch_kind")
    if kind == "watch_port":
        if not holder.watch_port:
            return None
        if len(holder.watch_port) > 8:
            invalid_argument(f"watch port 0x{holder.watch_port[:20].hex()} is no port of the switch")
        return int.from_bytes(holder.watch_port, "big")
    if kind == "watch":
        return holder.watch or None
    return None

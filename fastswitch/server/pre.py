"""The packet replication engine: multicast groups and clone sessions.

A replica goes to the first port that is up of its own and its backups' (P4Runtime 1.5); where none is, to its own, as
replicas without backups do: the packet passes egress and is lost on the link.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from finsy.proto import p4r

from fastswitch.server.engine_api import EngineSwitch, Replica
from fastswitch.server.errors import (
    already_exists,
    invalid_argument,
    not_found,
    out_of_range,
    resource_exhausted,
)

MAX_ID = 32_767  # BMv2's limit for both kinds
_MAX_PORT = 511  # multicast knows the ports of a 9-bit field only
_MAX_FRAME = 10_240  # bytes; the engine's: no frame is longer, so a longer limit truncates nothing
_MAX_INSTANCE = 65_535  # egress_rid is 16 bits wide

Choices = list[list[Replica]]
"""Per replica where it may go, the best first."""


@dataclass(slots=True)
class Group:
    """A multicast group."""

    message: p4r.MulticastGroupEntry
    choices: Choices


@dataclass(slots=True)
class Session:
    """A clone session."""

    message: p4r.CloneSessionEntry
    choices: Choices


class ReplicationState:
    """Multicast groups and clone sessions of one switch."""

    def __init__(self, engine: EngineSwitch, port_up: Callable[[int], bool]) -> None:
        self._engine = engine
        self._port_up = port_up
        self.groups: dict[int, Group] = {}
        self.sessions: dict[int, Session] = {}

    def write(self, update_type: int, request: p4r.PacketReplicationEngineEntry) -> None:
        """One update of either kind."""
        kind = request.WhichOneof("type")
        if kind == "multicast_group_entry":
            self._write_group(update_type, request.multicast_group_entry)
        elif kind == "clone_session_entry":
            self._write_session(update_type, request.clone_session_entry)
        else:
            invalid_argument("a packet replication entry is either a multicast group or a clone session")

    def read(self, request: p4r.PacketReplicationEngineEntry) -> Iterator[p4r.PacketReplicationEngineEntry]:
        """One entry, or all of its kind with id 0."""
        kind = request.WhichOneof("type")
        if kind == "multicast_group_entry":
            group_id = request.multicast_group_entry.multicast_group_id
            groups = self.groups.values() if group_id == 0 else [self._group(group_id)]
            for group in list(groups):
                yield p4r.PacketReplicationEngineEntry(multicast_group_entry=group.message)
        elif kind == "clone_session_entry":
            session_id = request.clone_session_entry.session_id
            sessions = self.sessions.values() if session_id == 0 else [self._session(session_id)]
            for session in list(sessions):
                yield p4r.PacketReplicationEngineEntry(clone_session_entry=session.message)
        else:
            invalid_argument("a packet replication entry is either a multicast group or a clone session")

    def port_changed(self, port: int) -> None:
        """A port went up or down: replicas with backups move."""
        for group in self.groups.values():
            if _depends_on(group.choices, port):
                self._program_group(group)
        for session in self.sessions.values():
            if _depends_on(session.choices, port):
                self._program_session(session)

    def _write_group(self, update_type: int, request: p4r.MulticastGroupEntry) -> None:
        group_id = request.multicast_group_id
        _check_id(group_id, "multicast group")
        if update_type == p4r.Update.INSERT:
            if group_id in self.groups:
                already_exists(f"multicast group {group_id} already exists")
        else:
            self._group(group_id)
        if update_type == p4r.Update.DELETE:
            self._engine.multicast_delete(group_id)
            del self.groups[group_id]
            return
        group = Group(p4r.MulticastGroupEntry(), _choices(request.replicas, f"multicast group {group_id}"))
        group.message.CopyFrom(request)
        self._program_group(group)
        self.groups[group_id] = group

    def _write_session(self, update_type: int, request: p4r.CloneSessionEntry) -> None:
        session_id = request.session_id
        what = f"clone session {session_id}"
        _check_id(session_id, "clone session")
        if update_type == p4r.Update.INSERT:
            if session_id in self.sessions:
                already_exists(f"{what} already exists")
        else:
            self._session(session_id)
        if update_type == p4r.Update.DELETE:
            self._engine.clone_session_delete(session_id)
            del self.sessions[session_id]
            return
        queues = self._engine.priority_queues
        if request.class_of_service >= queues:
            invalid_argument(
                f"{what}: class of service {request.class_of_service} is a queue, and ports have {queues} "
                "(--priority-queues)"
            )
        if request.packet_length_bytes < 0:
            invalid_argument(f"{what}: packet length {request.packet_length_bytes} is negative")
        session = Session(p4r.CloneSessionEntry(), _choices(request.replicas, what))
        session.message.CopyFrom(request)
        self._program_session(session)
        self.sessions[session_id] = session

    def _program_group(self, group: Group) -> None:
        try:
            self._engine.multicast_set(group.message.multicast_group_id, self._alive(group.choices))
        except ValueError as error:  # the engine's own limits
            resource_exhausted(str(error))

    def _program_session(self, session: Session) -> None:
        message = session.message
        truncate = message.packet_length_bytes if message.packet_length_bytes < _MAX_FRAME else 0
        replicas = self._alive(session.choices)
        try:
            self._engine.clone_session_set(message.session_id, replicas, truncate, message.class_of_service)
        except ValueError as error:
            resource_exhausted(str(error))

    def _alive(self, choices: Choices) -> list[Replica]:
        return [
            next((place for place in places if self._port_up(place[0])), places[0]) if len(places) > 1 else places[0]
            for places in choices
        ]

    def _group(self, group_id: int) -> Group:
        if group_id not in self.groups:
            not_found(f"multicast group {group_id} does not exist")
        return self.groups[group_id]

    def _session(self, session_id: int) -> Session:
        if session_id not in self.sessions:
            not_found(f"clone session {session_id} does not exist")
        return self.sessions[session_id]


def _depends_on(choices: Choices, port: int) -> bool:
    return any(len(places) > 1 and any(place[0] == port for place in places) for places in choices)


def _check_id(number: int, what: str) -> None:
    if number == 0:
        invalid_argument(f"{what} id 0 is reserved for wildcard reads")
    if number > MAX_ID:
        out_of_range(f"{what} id {number} is not within 1..{MAX_ID}")


def _choices(replicas: Iterable[p4r.Replica], what: str) -> Choices:
    """Each replica and its backups. Pairs of port and instance are unique; so are ports within a replica."""
    choices: Choices = []
    seen = set()
    for replica in replicas:
        places: list[Replica] = []
        for one in (replica, *replica.backup_replicas):
            place = _place(one, what)
            if place in seen:
                invalid_argument(f"{what}: port {place[0]} with instance {place[1]} is given twice")
            if any(place[0] == port for port, _ in places):
                invalid_argument(f"{what}: port {place[0]} is its own backup")
            seen.add(place)
            places.append(place)
        choices.append(places)
    return choices


def _place(replica: p4r.Replica | p4r.BackupReplica, what: str) -> Replica:
    if isinstance(replica, p4r.Replica) and replica.WhichOneof("port_kind") == "egress_port":
        port = replica.egress_port
    else:
        if not replica.port:
            invalid_argument(f"{what}: a replica has no port")
        if len(replica.port) > 1 and replica.port[0] == 0:
            replica.port = replica.port.lstrip(b"\0") or b"\0"
        port = int.from_bytes(replica.port[:9], "big")
    if port > _MAX_PORT:
        invalid_argument(f"{what}: port {port} is above {_MAX_PORT}")
    if replica.instance > _MAX_INSTANCE:
        invalid_argument(f"{what}: instance {replica.instance} is above {_MAX_INSTANCE}")
    return port, replica.instance

"""The packet replication engine: multicast groups and clone sessions."""

from collections.abc import Iterable, Iterator

from finsy.proto import p4r

from fastswitch.server.engine_api import EngineSwitch, Replica
from fastswitch.server.errors import (
    already_exists,
    invalid_argument,
    not_found,
    out_of_range,
    resource_exhausted,
    unimplemented,
)

MAX_ID = 32_767  # BMv2's limit for both kinds
_MAX_PORT = 511  # multicast knows the ports of a 9-bit field only
_MAX_FRAME = 10_240  # bytes; the engine's: no frame is longer, so a longer limit truncates nothing
_MAX_INSTANCE = 65_535  # egress_rid is 16 bits wide


class ReplicationState:
    """Multicast groups and clone sessions of one switch."""

    def __init__(self, engine: EngineSwitch) -> None:
        self._engine = engine
        self.groups: dict[int, p4r.MulticastGroupEntry] = {}
        self.sessions: dict[int, p4r.CloneSessionEntry] = {}

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
                yield p4r.PacketReplicationEngineEntry(multicast_group_entry=group)
        elif kind == "clone_session_entry":
            session_id = request.clone_session_entry.session_id
            sessions = self.sessions.values() if session_id == 0 else [self._session(session_id)]
            for session in list(sessions):
                yield p4r.PacketReplicationEngineEntry(clone_session_entry=session)
        else:
            invalid_argument("a packet replication entry is either a multicast group or a clone session")

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
        replicas = _replicas(request.replicas, f"multicast group {group_id}")
        try:
            self._engine.multicast_set(group_id, replicas)
        except ValueError as error:  # the engine's own limits
            resource_exhausted(str(error))
        stored = p4r.MulticastGroupEntry()
        stored.CopyFrom(request)
        self.groups[group_id] = stored

    def _write_session(self, update_type: int, request: p4r.CloneSessionEntry) -> None:
        session_id = request.session_id
        _check_id(session_id, "clone session")
        if update_type == p4r.Update.INSERT:
            if session_id in self.sessions:
                already_exists(f"clone session {session_id} already exists")
        else:
            self._session(session_id)
        if update_type == p4r.Update.DELETE:
            self._engine.clone_session_delete(session_id)
            del self.sessions[session_id]
            return
        if request.class_of_service:
            unimplemented(f"clone session {session_id}: classes of service are not supported")
        if request.packet_length_bytes < 0:
            invalid_argument(f"clone session {session_id}: packet length {request.packet_length_bytes} is negative")
        replicas = _replicas(request.replicas, f"clone session {session_id}")
        truncate = request.packet_length_bytes if request.packet_length_bytes < _MAX_FRAME else 0
        try:
            self._engine.clone_session_set(session_id, replicas, truncate)
        except ValueError as error:
            resource_exhausted(str(error))
        stored = p4r.CloneSessionEntry()
        stored.CopyFrom(request)
        self.sessions[session_id] = stored

    def _group(self, group_id: int) -> p4r.MulticastGroupEntry:
        if group_id not in self.groups:
            not_found(f"multicast group {group_id} does not exist")
        return self.groups[group_id]

    def _session(self, session_id: int) -> p4r.CloneSessionEntry:
        if session_id not in self.sessions:
            not_found(f"clone session {session_id} does not exist")
        return self.sessions[session_id]


def _check_id(number: int, what: str) -> None:
    if number == 0:
        invalid_argument(f"{what} id 0 is reserved for wildcard reads")
    if number > MAX_ID:
        out_of_range(f"{what} id {number} is not within 1..{MAX_ID}")


def _replicas(replicas: Iterable[p4r.Replica], what: str) -> list[Replica]:
    result: list[Replica] = []
    seen = set()
    for replica in replicas:
        if replica.backup_replicas:
            unimplemented(f"{what}: backup replicas are not supported")
        kind = replica.WhichOneof("port_kind")
        if kind is None or (kind == "port" and not replica.port):
            invalid_argument(f"{what}: a replica has no port")
        if kind == "port":
            if len(replica.port) > 1 and replica.port[0] == 0:
                replica.port = replica.port.lstrip(b"\0") or b"\0"
            port = int.from_bytes(replica.port[:9], "big")
        else:
            port = replica.egress_port
        if port > _MAX_PORT:
            invalid_argument(f"{what}: port {port} is above {_MAX_PORT}")
        if replica.instance > _MAX_INSTANCE:
            invalid_argument(f"{what}: instance {replica.instance} is above {_MAX_INSTANCE}")
        pair = (port, replica.instance)
        if pair in seen:
            invalid_argument(f"{what}: port {port} with instance {replica.instance} is given twice")
        seen.add(pair)
        result.append(pair)
    return result

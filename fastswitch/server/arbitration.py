"""Who may write to one switch: election ids and roles (specification, "Client Arbitration").

Per role the live controller with the highest election id seen is primary. When the primary leaves, nobody is
primary until a controller asks again with an id at least as high; all are told NOT_FOUND. When the last controller
of a role leaves, the role starts afresh: a controller that connects later with a lower id is not locked out until
the switch restarts, which is how simple_switch_grpc behaves.

A client that never sends election ids (old PTF tests) is never primary, but may write while nobody is.
"""

from collections.abc import Callable
from dataclasses import dataclass, field

from finsy.proto import U128, p4r, rpc_code, rpc_status, stratum
from google.protobuf.any_pb2 import Any

from fastswitch.server.errors import (
    failed_precondition,
    invalid_argument,
    not_found,
    permission_denied,
    resource_exhausted,
)

_MAX_CONTROLLERS = 64  # live streams of one role; the specification asks for a limit

Send = Callable[[p4r.StreamMessageResponse], None]


@dataclass(eq=False, slots=True)
class Controller:
    """One open stream that has sent an arbitration message."""

    send: Send
    role: "Role"
    election_id: int | None


@dataclass(eq=False, slots=True)
class Role:
    """A role, its live controllers, and its limits. The role "" is the default one: full access."""

    name: str
    config: Any | None = None
    limits: stratum.P4RoleConfig | None = None
    controllers: list[Controller] = field(default_factory=list)
    highest: int | None = None  # election id
    primary: Controller | None = None

    def may_write(self, p4_id: int) -> bool:
        """Whether the role may change the object with this P4Info id."""
        limits = self.limits
        return limits is None or p4_id in limits.exclusive_p4_ids or p4_id in limits.shared_p4_ids

    def receives(self, packet: p4r.PacketIn) -> bool:
        """Whether packet-ins go to the role's primary."""
        limits = self.limits
        if limits is None:
            return True
        if not limits.receives_packet_ins:
            return False
        if not limits.HasField("packet_in_filter"):
            return True
        wanted = limits.packet_in_filter
        return any(m.metadata_id == wanted.metadata_id and m.value == wanted.value for m in packet.metadata)


class Arbiter:
    """The roles of one switch."""

    def __init__(self, device_id: int) -> None:
        self._device_id = device_id
        self._roles: dict[str, Role] = {"": Role("")}

    def update(self, controller: Controller | None, request: p4r.MasterArbitrationUpdate, send: Send) -> Controller:
        """Handle an arbitration message of a stream; `controller` is None for its first one."""
        name = request.role.name if request.HasField("role") else ""
        config, limits = _role_config(request)
        election_id = U128.decode(request.election_id) if request.HasField("election_id") else None
        role = self._roles.get(name) or Role(name)
        if controller is not None:
            if controller.role.name != name:
                failed_precondition(
                    f"this stream has role '{controller.role.name}', not '{name}'; open a new stream for another role"
                )
            role = controller.role
        self._refuse_overlap(name, limits)
        for other in role.controllers:
            if election_id is not None and other is not controller and other.election_id == election_id:
                invalid_argument(f"Election ID {election_id} is already used by another controller of role '{name}'")
        if controller is None:
            if len(role.controllers) >= _MAX_CONTROLLERS:
                resource_exhausted(f"role '{name}' has {_MAX_CONTROLLERS} controllers already")
            controller = Controller(send, role, election_id)
            role.controllers.append(controller)
            self._roles[name] = role
        controller.election_id = election_id

        if election_id is not None and (role.highest is None or election_id >= role.highest):
            role.highest, role.primary = election_id, controller
            role.config, role.limits = config, limits
            self._notify(role.controllers, role)
        elif role.primary is controller:
            role.primary = None  # it downgraded itself
            self._notify(role.controllers, role)
        else:
            self._notify([controller], role)
        return controller

    def leave(self, controller: Controller) -> None:
        """The controller's stream is closed."""
        role = controller.role
        role.controllers.remove(controller)
        if not role.controllers:
            self._forget(role)
        elif role.primary is controller:
            role.primary = None
            self._notify(role.controllers, role)

    def check_write(self, role_name: str, election_id: p4r.Uint128 | None) -> Role:
        """The role of a write; NOT_FOUND or PERMISSION_DENIED if the writer is not its primary."""
        role = self._roles.get(role_name)
        if role is None:
            not_found(f"no controller has opened a stream with role '{role_name}'")
        if election_id is None:
            if role.primary is not None:
                permission_denied("Not primary: the request has no election id, but there is a primary controller")
            return role
        number = U128.decode(election_id)
        if role.primary is None:
            permission_denied(f"Not primary: nobody is (election id {number}); open a stream and send an arbitration")
        if number != role.primary.election_id:
            permission_denied(f"Not primary: election id {number} is not the primary's {role.primary.election_id}")
        return role

    def role(self, name: str) -> Role:
        """The role with this name; NOT_FOUND if no controller ever opened it."""
        role = self._roles.get(name)
        if role is None:
            not_found(f"no controller has opened a stream with role '{name}'")
        return role

    def listeners(self) -> list[Controller]:
        """Who gets notifications: every role's primary; in a role nobody ever led, those without election ids."""
        chosen = []
        for role in self._roles.values():
            if role.primary is not None:
                chosen.append(role.primary)
            elif role.highest is None:
                chosen += [controller for controller in role.controllers if controller.election_id is None]
        return chosen

    def is_listener(self, controller: Controller) -> bool:
        """Whether the controller may take part in packet I/O."""
        return controller in self.listeners()

    def _refuse_overlap(self, name: str, limits: stratum.P4RoleConfig | None) -> None:
        """What one role has for itself no other role may have so, as in Stratum, whose scheme this is."""
        if limits is None:
            return
        for other in self._roles.values():
            if other.name == name or other.limits is None:
                continue
            common = set(limits.exclusive_p4_ids).intersection(other.limits.exclusive_p4_ids)
            if common:
                taken = f"0x{min(common):08x}"
                invalid_argument(f"role config of '{name}': {taken} is in the exclusive_p4_ids of role '{other.name}'")

    def _forget(self, role: Role) -> None:
        if role.name:
            del self._roles[role.name]
        else:
            self._roles[""] = Role("")

    def _notify(self, controllers: list[Controller], role: Role) -> None:
        for controller in controllers:
            if controller is role.primary:
                status = rpc_status.Status(code=rpc_code.OK, message="Is primary")
            elif role.primary is not None:
                status = rpc_status.Status(code=rpc_code.ALREADY_EXISTS, message="Is backup")
            else:
                status = rpc_status.Status(code=rpc_code.NOT_FOUND, message="Is backup, and there is no primary")
            message = p4r.MasterArbitrationUpdate(device_id=self._device_id, status=status)
            if role.highest is not None:
                message.election_id.CopyFrom(U128.encode(role.highest))
            if role.name:
                message.role.name = role.name
                if role.config is not None:
                    message.role.config.CopyFrom(role.config)
            controller.send(p4r.StreamMessageResponse(arbitration=message))


def _role_config(request: p4r.MasterArbitrationUpdate) -> tuple[Any | None, stratum.P4RoleConfig | None]:
    """The role's configuration as sent and as read; Stratum's message is the one scheme that is understood."""
    if not request.role.HasField("config"):
        return None, None
    config = Any()
    config.CopyFrom(request.role.config)
    limits = stratum.P4RoleConfig()
    if not config.Is(limits.DESCRIPTOR):
        known = limits.DESCRIPTOR.full_name
        invalid_argument(f"role config of type '{config.type_url}' is unknown; {known} is supported")
    if not request.role.name:
        invalid_argument("the default role has full access: it takes no role config")
    config.Unpack(limits)
    return config, limits

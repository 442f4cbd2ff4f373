"""BMv2's test port, `p4.bm.DataplaneInterface`: its messages and method paths, for server and clients.

Field numbers are those of `services/p4/bm/dataplane_interface.proto` in p4lang/behavioral-model. They stand here as a
descriptor, in a pool of its own, so that nothing is generated and a process may load BMv2's own module as well.
"""

from typing import Any

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

SERVICE = "p4.bm.DataplaneInterface"
PACKET_STREAM = f"/{SERVICE}/PacketStream"
SET_PORT_OPER_STATUS = f"/{SERVICE}/SetPortOperStatus"

STATUS_UNKNOWN, STATUS_DOWN, STATUS_UP = range(3)
"""PortOperStatus."""

_PACKAGE = "p4.bm"
_Field = descriptor_pb2.FieldDescriptorProto
_PACKET = (("id", _Field.TYPE_UINT64), ("device_id", _Field.TYPE_UINT64), ("port", _Field.TYPE_UINT32),
           ("packet", _Field.TYPE_BYTES))  # fmt: skip
_STATUS = (("device_id", _Field.TYPE_UINT64), ("port", _Field.TYPE_UINT32), ("oper_status", _Field.TYPE_ENUM))
_MESSAGES = {
    "PacketStreamRequest": _PACKET,
    "PacketStreamResponse": _PACKET,
    "SetPortOperStatusRequest": _STATUS,
    "SetPortOperStatusResponse": (),
}


def _pool() -> descriptor_pool.DescriptorPool:
    file = descriptor_pb2.FileDescriptorProto(name="dataplane_interface", package=_PACKAGE, syntax="proto3")
    for name, fields in _MESSAGES.items():
        message = file.message_type.add(name=name)
        for number, (field_name, kind) in enumerate(fields, 1):
            field = message.field.add(name=field_name, number=number, type=kind, label=_Field.LABEL_OPTIONAL)
            if kind == _Field.TYPE_ENUM:
                field.type_name = f".{_PACKAGE}.PortOperStatus"
    status = file.enum_type.add(name="PortOperStatus")
    for number, value in enumerate(("OPER_STATUS_UNKNOWN", "OPER_STATUS_DOWN", "OPER_STATUS_UP")):
        status.value.add(name=value, number=number)
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return pool


def _message(name: str) -> Any:
    return message_factory.GetMessageClass(_POOL.FindMessageTypeByName(f"{_PACKAGE}.{name}"))


_POOL = _pool()
PacketStreamRequest = _message("PacketStreamRequest")
PacketStreamResponse = _message("PacketStreamResponse")
SetPortOperStatusRequest = _message("SetPortOperStatusRequest")
SetPortOperStatusResponse = _message("SetPortOperStatusResponse")

"""Packet-in and packet-out: P4Runtime metadata to and from the header in front of the frame.

The header's fields are packed bit by bit in P4Info's order, as the program's parser and deparser see them.
"""

from finsy.proto import p4r

from fastswitch.server.errors import invalid_argument
from fastswitch.server.schema import MetadataField


class PacketHeader:
    """One `@controller_header`; without fields it is no header at all."""

    def __init__(self, fields: list[MetadataField]) -> None:
        self._fields = {field.id: field for field in fields}
        self._bits = sum(field.bits.width for field in fields)
        self.size = (self._bits + 7) // 8

    def encode(self, message: p4r.PacketOut) -> bytes:
        """The frame: header, then payload. Missing metadata is zero; unknown metadata is refused."""
        values: dict[int, int] = {}
        for metadata in message.metadata:
            field = self._fields.get(metadata.metadata_id)
            if field is None:
                known = ", ".join(f"{f.id} ({f.name})" for f in self._fields.values()) or "none"
                invalid_argument(f"packet_out has no metadata {metadata.metadata_id}; it has {known}")
            if field.id in values:
                invalid_argument(f"{field.what} is given twice")
            canonical = field.bits.canonical(metadata.value, field.what)
            values[field.id] = int.from_bytes(field.bits.padded(canonical), "big")
        packed = 0
        for field in self._fields.values():
            packed = packed << field.bits.width | values.get(field.id, 0)
        packed <<= self.size * 8 - self._bits
        return packed.to_bytes(self.size, "big") + message.payload

    def decode(self, frame: bytes) -> p4r.PacketIn | None:
        """The message for a frame sent to the CPU port; None if it is shorter than the header."""
        if len(frame) < self.size:
            return None
        packed = int.from_bytes(frame[: self.size], "big")
        position = self.size * 8
        message = p4r.PacketIn(payload=frame[self.size :])
        for field in self._fields.values():
            position -= field.bits.width
            number = packed >> position & ((1 << field.bits.width) - 1)
            value = field.bits.from_padded(field.bits.encode_int(number))
            message.metadata.append(p4r.PacketMetadata(metadata_id=field.id, value=value))
        return message

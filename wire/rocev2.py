"""How RoCEv2's headers follow each other, and its trailer: the part of the scapy layers that is no field table.

The classes of layers.py (generated) derive from those here.  Which extension headers follow a BTH depends on its
opcode (IBTA vol. 1, table 39); `EXTENSIONS` is that table.  A packet that is too short for a header it announces
dissects as Raw from there on: a dissector must survive what it is there to show.
"""

from __future__ import annotations

from enum import IntEnum
from typing import Any, ClassVar

from scapy.config import conf
from scapy.fields import XIntField
from scapy.layers.inet import IP, UDP
from scapy.packet import Packet, bind_top_down

from wire.codes import BTH_LEN, ICRC_BYTES, ROCEV2_UDP_PORT, BthExtension, BthOpcode
from wire.icrc import icrc

_RETH, _AETH, _IMMDT, _IETH, _ATOMIC, _ATOMIC_ACK = "reth", "aeth", "immdt", "ieth", "atomic_eth", "atomic_ack_eth"

# Plait's own header, which stands first, by the BTH's `extension`.
OWN_HEADER: dict[int, tuple[str, ...]] = {BthExtension.DATA: ("xdata",), BthExtension.ACK: ("xack",)}

# Headers (by their names in headers.p4) that an opcode calls for, in order.  A CNP's reserved bytes are payload.
EXTENSIONS: dict[int, tuple[str, ...]] = {
    BthOpcode.RC_SEND_FIRST: (),
    BthOpcode.RC_SEND_MIDDLE: (),
    BthOpcode.RC_SEND_LAST: (),
    BthOpcode.RC_SEND_LAST_IMM: (_IMMDT,),
    BthOpcode.RC_SEND_ONLY: (),
    BthOpcode.RC_SEND_ONLY_IMM: (_IMMDT,),
    BthOpcode.RC_WRITE_FIRST: (_RETH,),
    BthOpcode.RC_WRITE_MIDDLE: (),
    BthOpcode.RC_WRITE_LAST: (),
    BthOpcode.RC_WRITE_LAST_IMM: (_IMMDT,),
    BthOpcode.RC_WRITE_ONLY: (_RETH,),
    BthOpcode.RC_WRITE_ONLY_IMM: (_RETH, _IMMDT),
    BthOpcode.RC_READ_REQUEST: (_RETH,),
    BthOpcode.RC_READ_RESPONSE_FIRST: (_AETH,),
    BthOpcode.RC_READ_RESPONSE_MIDDLE: (),
    BthOpcode.RC_READ_RESPONSE_LAST: (_AETH,),
    BthOpcode.RC_READ_RESPONSE_ONLY: (_AETH,),
    BthOpcode.RC_ACKNOWLEDGE: (_AETH,),
    BthOpcode.RC_ATOMIC_ACKNOWLEDGE: (_AETH, _ATOMIC_ACK),
    BthOpcode.RC_COMPARE_SWAP: (_ATOMIC,),
    BthOpcode.RC_FETCH_ADD: (_ATOMIC,),
    BthOpcode.RC_SEND_LAST_INVALIDATE: (_IETH,),
    BthOpcode.RC_SEND_ONLY_INVALIDATE: (_IETH,),
    BthOpcode.RC_READ_ACKNOWLEDGE: (_AETH,),
    BthOpcode.CNP: (),
}
_WRITES = {code for code in BthOpcode if code.name.startswith("RC_WRITE")}


def header_chain(opcode: int, extension: int) -> tuple[str, ...]:
    """The headers after a BTH.  With a DATA extension every WRITE packet has a RETH (IRN, "First packet issues")."""
    own, following = OWN_HEADER.get(extension, ()), EXTENSIONS.get(opcode, ())
    if extension == BthExtension.DATA and opcode in _WRITES and _RETH not in following:
        following = (_RETH, *following)
    return (*own, *following)


_missing = set(BthOpcode) - set(EXTENSIONS)
assert not _missing, f"EXTENSIONS lacks {_missing}"


def names(codes: type[IntEnum]) -> dict[int, str]:
    return {int(code): code.name for code in codes}


class RoceLayer(Packet):
    """A RoCEv2 header, found by its name in headers.p4."""

    header_name: ClassVar[str]
    header_bytes: ClassVar[int]
    by_header: ClassVar[dict[str, type[RoceLayer]]] = {}

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if "header_name" in cls.__dict__:
            cls.by_header[cls.header_name] = cls

    def guess_payload_class(self, payload: bytes) -> type[Packet]:
        transport: Packet | None = self
        while isinstance(transport, RoceLayer) and not isinstance(transport, TransportLayer):
            transport = transport.underlayer
        if not isinstance(transport, TransportLayer):
            return conf.raw_layer
        chain = (transport.header_name, *header_chain(transport.opcode, transport.extension))
        following = chain[chain.index(self.header_name) + 1 :] if self.header_name in chain else ()
        layer = self.by_header.get(following[0]) if following else None
        return layer if layer is not None and len(payload) >= layer.header_bytes else conf.raw_layer


class ICRCField(XIntField):
    """The four trailing bytes as they are on the wire, most significant first; None means: compute when building.

    It takes no bytes where it stands: `TransportLayer` cuts it off and appends it, as it follows all payload.
    """

    def __init__(self, name: str) -> None:
        super().__init__(name, None)

    def addfield(self, pkt: Packet, s: bytes, val: int | None) -> bytes:
        return s

    def getfield(self, pkt: Packet, s: bytes) -> tuple[bytes, int | None]:  # type: ignore[override]
        return s, None


class TransportLayer(RoceLayer):
    """The base transport header: owns the ICRC field."""

    def do_dissect(self, s: bytes) -> bytes:
        body, trailer = s[:-ICRC_BYTES], s[-ICRC_BYTES:]
        payload = super().do_dissect(body)
        self.raw_packet_cache = None  # a cached header would be built without post_build, hence without the trailer
        self.fields["icrc"] = int.from_bytes(trailer, "big")
        return payload

    def post_build(self, pkt: bytes, pay: bytes) -> bytes:
        body = pkt + pay
        trailer = self._computed_icrc(body) if self.icrc is None else self.icrc.to_bytes(ICRC_BYTES, "big")
        return body + trailer

    def _computed_icrc(self, body: bytes) -> bytes:
        """Zero bytes where there is no IPv4 below: the ICRC is not defined for a BTH by itself."""
        placeholder = bytes(ICRC_BYTES)
        udp = self.underlayer
        if not isinstance(udp, UDP) or not isinstance(udp.underlayer, IP):
            return placeholder
        ip = udp.underlayer
        # The outer layers are built after this one, so build them here for the lengths that the ICRC covers.
        segment = udp.post_build(udp.self_build(), body + placeholder)
        datagram = ip.post_build(ip.self_build(), segment)
        return icrc(datagram[:-ICRC_BYTES])


class _Port4791(Packet):
    """Never instantiated: decides whether a datagram's bytes can be a BTH at all."""

    @classmethod
    def dispatch_hook(cls, _pkt: bytes | None = None, *args: Any, **kwargs: Any) -> type[Packet]:
        long_enough = _pkt is not None and len(_pkt) >= BTH_LEN + ICRC_BYTES
        return RoceLayer.by_header["bth"] if long_enough else conf.raw_layer


def bind(transport: type[TransportLayer]) -> None:
    """Puts `transport` over UDP port 4791, before all other bindings.

    The source port carries entropy or a virtual path, so it may be any service's port; first match wins in scapy.
    """
    UDP.payload_guess = [({"dport": ROCEV2_UDP_PORT}, _Port4791), *UDP.payload_guess]
    bind_top_down(UDP, transport, dport=ROCEV2_UDP_PORT)

"""What a controller learns and tells by packets: where links really lead (LLDP), and who has an address (ARP).

LLDP leaves every port that should lead to a switch, and comes in somewhere: a port that leads elsewhere than the
topology says, or nowhere, is told. ARP requests for a host's address or a gateway's are answered with the MAC of the
port that they came in by, since switches route; others are not answered.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Iterable, Mapping
from typing import Any

import finsy as fy
from finsy.proto import p4r

from controller.decisions import DecisionLog
from controller.errors import ControllerError
from controller.frames import ArpRequest, Lldp
from controller.session import Session
from mininet_topos.topology import Link, Topology

# An LLDP frame is sent so often, with this pause in between, until it is heard: links may lose packets.
_TRIES, _PAUSE_S = 4, 0.25

# Names in p4src/include/roce_parser.p4.
_PACKET_OUT, _EGRESS = "packet_out", "egress_port"
_PACKET_IN, _INGRESS = "packet_in", "ingress_port"

Port = tuple[str, int]


def _fields(header: Any) -> list[str]:
    return [field.name for field in header.metadata]


class Neighborhood:
    """`unchecked`: ports whose wiring the next `check` looks at."""

    def __init__(
        self, topology: Topology, sessions: Mapping[str, Session], schema: fy.P4Schema, log: DecisionLog
    ) -> None:
        self._topology = topology
        self._sessions = sessions
        self._schema = schema
        self._log = log
        fields = {header.alias: _fields(header) for header in schema.controller_packet_metadata}
        self._fields = fields.get(_PACKET_OUT, [])
        self._speaks = _EGRESS in self._fields and _INGRESS in fields.get(_PACKET_IN, [])
        self._peers: dict[Port, Port] = {}
        for link in topology.links:
            if not any(topology.node(name).is_host for name, _ in link.ends):
                a, b = link.ends
                self._peers[a], self._peers[b] = b, a
        self._known = {host.address for host in topology.hosts} | {host.gateway for host in topology.hosts}
        self._heard: dict[Port, Port] = {}  # where what was sent by a port came in
        self._told: dict[Port, str] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self.unchecked: set[Port] = set(self._peers)

    # --- packets in ---

    def packet(self, session: Session, packet: p4r.PacketIn) -> None:
        """Takes what a switch handed up."""
        if not self._speaks:
            return
        message = fy.P4PacketIn.decode(p4r.StreamMessageResponse(packet=packet), self._schema)
        port = int(message.metadata.get(_INGRESS, 0))
        if (said := Lldp.decode(message.payload)) is not None:
            self._heard[said.switch, said.port] = session.name, port
        elif (asked := ArpRequest.decode(message.payload)) is not None:
            self._answer(session, port, asked)

    def _answer(self, session: Session, port: int, asked: ArpRequest) -> None:
        if str(asked.target) not in self._known or asked.target == asked.sender:
            return
        reply = asked.reply(self._topology.mac(session.name, port))
        task = asyncio.create_task(self._send(session.name, port, reply))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _send(self, switch: str, port: int, frame: bytes) -> None:
        # The session tells where a switch is lost; who asked will ask again.
        with contextlib.suppress(ControllerError):
            await self._sessions[switch].send_packet(frame, {**dict.fromkeys(self._fields, 0), _EGRESS: port})

    # --- wiring ---

    def look_at(self, links: Iterable[Link]) -> None:
        """The ends of these are to be checked."""
        self.unchecked |= {end for link in links for end in link.ends if end in self._peers}

    async def check(self) -> None:
        """Looks at all unchecked ports, and tells what is not as the topology says."""
        ports, self.unchecked = self.unchecked, set()
        if not self._speaks:
            return
        left = {port for port in ports if self._can_speak(port)}
        for port in left:
            self._heard.pop(port, None)
        for _ in range(_TRIES):
            for switch, number in sorted(left):
                frame = Lldp(switch, number).encode(self._topology.mac(switch, number))
                await self._send(switch, number, frame)
            await asyncio.sleep(_PAUSE_S)
            left -= self._heard.keys()
            if not left:
                break
        # What is down, or was meanwhile, is no miswiring.
        self._tell(port for port in ports - self.unchecked if self._can_speak(port))

    def _can_speak(self, port: Port) -> bool:
        ends = port, self._peers[port]
        return all(self._sessions[switch].primary and self._sessions[switch].ports.get(n, True) for switch, n in ends)

    def _tell(self, ports: Iterable[Port]) -> None:
        checked = wrong = 0
        for port in sorted(ports):
            peer, found = self._peers[port], self._heard.get(port)
            checked += 1
            leads = "nowhere that answers" if found is None else f"to {found[0]} port {found[1]}"
            text = (
                ""
                if found == peer
                else f"{port[0]} port {port[1]} should lead to {peer[0]} port {peer[1]}, and leads {leads}"
            )
            wrong += bool(text)
            if text and self._told.get(port) != text:
                self._log.add("wiring", text, port=list(port), expected=list(peer), found=list(found or ()))
            self._told[port] = text
        if checked and not wrong:
            self._log.add("wiring", f"{checked} ports lead where the topology says")

"""One switch with a program of p4src/ in virtual time: P4Runtime's state over the engine, without processes."""

from __future__ import annotations

import functools
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import finsy as fy
from finsy.proto import p4i, p4r
from scapy.layers.inet import IP, UDP
from scapy.layers.l2 import Ether

import engine
import p4front
from controller.defaults import CPU_PORT
from controller.routes import DESTINATION, FORWARD, ROUTES, SET_NEXT_HOPS, pack_ports
from fastswitch.codegen import compile_json, load_program
from fastswitch.server.program import Program
from fastswitch.server.schema import build_schema
from fastswitch.server.state import PipelineState
from tests.conftest import ROOT
from wire.layers import BTH

NS_PER_S = 1_000_000_000
FRAME_BYTES = 14 + 20 + 8 + 12 + 4


@functools.cache
def compiled(name: str, feedback: bool = False) -> tuple[Program, fy.P4Schema]:
    """feedback: as for BMv2, with a queue register that only the program writes (its own name is bound to queues)."""
    found = p4front.compile_file(ROOT / "p4src" / f"{name}.p4", defines=("PLAIT_FEEDBACK",) if feedback else ())
    if feedback:
        bound, free = "plait.queue_bytes", "alone.queue_bytes"  # of one length, which P4Info holds as well
        info = p4i.P4Info.FromString(found.p4info.SerializeToString().replace(bound.encode(), free.encode()))
        json = found.json_text.replace(bound, free).encode()
    else:
        info, json = found.p4info, found.json_text.encode()
    code = load_program(json)
    return Program(code, build_schema(info, code), compile_json(json)), fy.P4Schema(info)


@functools.cache
def _template(dst: str, tos: int, ttl: int) -> bytes:
    packet = Ether(src="02:00:0a:00:00:02", dst="06:00:00:01:00:01") / IP(src="10.0.0.2", dst=dst, ttl=ttl, tos=tos)
    return bytes(packet / UDP(sport=0, dport=4791, chksum=0) / BTH(opcode=0x04, psn=0))


def frame(dst: str, *, sport: int = 50000, tos: int = 2, ttl: int = 64, psn: int = 0) -> bytes:
    """A RoCEv2 packet of FRAME_BYTES bytes; its ICRC is that of source port and PSN 0."""
    data = _template(dst, tos, ttl)
    return data[:34] + sport.to_bytes(2, "big") + data[36:51] + psn.to_bytes(3, "big") + data[54:]


class Rig:
    """Ports 1 to `ports`, unlimited in rate until told otherwise; packets enter by port 0."""

    def __init__(self, name: str, ports: int, seed: int = 1, feedback: bool = False) -> None:
        program, self.schema = compiled(name, feedback)
        self.program = program.code
        self.ports = range(1, ports + 1)
        self.fabric = engine.Fabric("virtual", seed=seed)
        self.switch = self.fabric.add_switch("s1", 1, cpu_port=CPU_PORT, priority_queues=8)
        for port in (0, *self.ports):
            self.switch.tap(port)
            self.switch.set_queue(port, depth_packets=1_000_000)
        self.state = PipelineState(program, self.switch, lambda port: True)

    def write(self, *entities: Any, modify: bool = False) -> None:
        kind: Any = p4r.Update.MODIFY if modify else p4r.Update.INSERT
        for entity in entities:
            self.state.write(p4r.Update(type=kind, entity=entity.encode(self.schema)))

    def default(self, table: str, action: str, **arguments: int) -> None:
        self.write(fy.P4TableEntry(table, is_default_action=True, action=fy.Action(action, **arguments)), modify=True)

    def route(self, address: str, ports: Sequence[int], group: int = 1) -> None:
        """A host route over these ports."""
        match = fy.Match({DESTINATION: (address, 32)})
        action: Any = fy.IndirectAction([(1, fy.Action(FORWARD, port=port)) for port in ports])
        if self.schema.tables[ROUTES].action_profile is None:
            action = fy.Action(SET_NEXT_HOPS, group=group, **pack_ports("s1", ports))
        self.write(fy.P4TableEntry(ROUTES, match=match, action=action))

    def send(self, data: bytes, port: int = 0) -> list[tuple[int, bytes]]:
        """Sends one frame; what left by then."""
        self.switch.inject(port, data)
        self.fabric.run_until(self.fabric.now_ns)
        return self.sent()

    def sent(self) -> list[tuple[int, bytes]]:
        return [(each.port, each.frame) for each in self.switch.poll_events() if isinstance(each, engine.Sent)]

    def depth(self, port: int) -> int:
        """Bytes that wait for a port."""
        return self.switch.port_stats(port)["queue_bytes"]

    def depths(self) -> dict[int, int]:
        return {port: self.depth(port) for port in self.ports}

    def enqueued(self) -> dict[int, int]:
        """Packets that ever entered the queue of a port."""
        return {port: self.switch.queue_state(port, 0)["enqueued_packets"] for port in self.ports}

    def remembered(self, group: int) -> list[int]:
        """The ports that drill.p4 remembers for a set of all ports in order, the best first; 0: none."""
        registers = [array.name for array in self.program.registers]
        found = [registers.index(f"ingress.balance.{name}") for name in ("best", "second_best")]
        return [int.from_bytes(self.switch.register_read(each, group), "big") for each in found]

    def fill(self, port: int, packets: int) -> None:
        """Stops a port and puts packets into its queue, past the load balancer."""
        self.switch.hold_queue(port, hold=True)
        data = frame(f"10.9.9.{port}", tos=0)
        for _ in range(packets):
            self.switch.inject(0, data)
        self.fabric.run_until(self.fabric.now_ns)

    def close(self) -> None:
        self.fabric.close()


@contextmanager
def rig(name: str, ports: int = 4, seed: int = 1, feedback: bool = False) -> Iterator[Rig]:
    """A switch with a host route 10.9.9.N to each port N alone."""
    made = Rig(name, ports, seed, feedback)
    try:
        for port in made.ports:
            made.route(f"10.9.9.{port}", [port], group=100 + port)
        yield made
    finally:
        made.close()

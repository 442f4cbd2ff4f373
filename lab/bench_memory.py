"""Packet-hops a second over memory links: a fat-tree in virtual time, one thread, every host sending to another pod."""

import asyncio
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Self

import finsy as fy
from finsy.proto import p4r

import engine
import engine.bench
from controller.control import Program, read_schema
from controller.policy import fabric_entries
from fastswitch.server.device import Device
from fastswitch.server.program import ProgramStore
from lab import bench_frames
from lab.compiling import CompiledProgram
from mininet_topos.topology import Topology

FRAME_BYTES = 1086  # 1,024 bytes of payload in a RoCEv2 WRITE
_PRIORITY_QUEUES = 8  # as in a laboratory: srpt names them all
_INTERVAL_NS = 100  # between two frames of a host


@dataclass(frozen=True, slots=True)
class HopRate:
    """Packet-hops a second: of the wall clock, and of the processor time that this thread had."""

    per_second: float
    per_cpu_second: float


class MemoryFabric:
    """A topology of switches that run a program with its entries, their links in memory.

    A frame ends where it would reach its host. In a topology of one switch that would be before any queue, so there
    its host links lead to a switch without program, which drops what comes.
    """

    def __init__(self, topology: Topology, program: CompiledProgram) -> None:
        self._topology = topology
        schema = read_schema(Program(program.p4info, program.json))
        self._fabric = engine.Fabric("virtual", seed=1)
        try:
            self._switches = {
                node.name: self._fabric.add_switch(node.name, node.device_id or 0, priority_queues=_PRIORITY_QUEUES)
                for node in topology.switches
            }
            self._connect()
            asyncio.run(_load(self._switches, program, fabric_entries(topology, schema), schema))
        except BaseException:
            self._fabric.close()
            raise

    def _connect(self) -> None:
        topology, switches = self._topology, self._switches
        for link in topology.links:
            if link.a in switches and link.b in switches:
                ends = (switches[link.a], link.port_a, switches[link.b], link.port_b)
                self._fabric.connect(*ends, rate_bps=link.rate_bps, delay_ns=link.delay_ns)
        if len(switches) == 1:
            sink = self._fabric.add_switch("sink", device_id=0)
            for number, host in enumerate(topology.hosts, 1):
                at = topology.host_port(host.name)
                self._fabric.connect(switches[at.node.name], at.node_port, sink, number, rate_bps=0, delay_ns=1000)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._fabric.close()

    def round(self, hops: int) -> HopRate:
        """Sends frames that make about `hops` hops in all, if each crosses five switches, and waits for the last."""
        hosts = self._topology.hosts
        count = max(1, hops // (min(5, len(self._switches)) * len(hosts)))
        for index, host in enumerate(hosts):
            peer = hosts[(index + len(hosts) // 2) % len(hosts)]  # in another pod: five switches away
            at = self._topology.host_port(host.name)
            frame = bench_frames.write_packet(host, peer, self._topology.gateway_mac(host.name), FRAME_BYTES)
            self._switches[at.node.name].generate(
                at.node_port, frame, count, interval_ns=_INTERVAL_NS, start_ns=self._fabric.now_ns
            )
        rate = engine.bench.hops_per_second(self._fabric)
        return HopRate(rate.per_second, rate.packets / rate.cpu_seconds)


async def _load(switches: dict[str, Any], program: CompiledProgram, wanted: Any, schema: fy.P4Schema) -> None:
    store = ProgramStore()
    for name, switch in switches.items():
        device = Device(switch, store, cpu_port=0, port_up=lambda port: True)
        config = p4r.ForwardingPipelineConfig(p4info=schema.p4info, p4_device_config=program.json.read_bytes())
        await device.set_config(
            p4r.SetForwardingPipelineConfigRequest(
                device_id=switch.device_id,
                action=p4r.SetForwardingPipelineConfigRequest.VERIFY_AND_COMMIT,
                config=config,
            )
        )
        updates = [
            p4r.Update(
                type=p4r.Update.MODIFY if entry.is_default_action else p4r.Update.INSERT, entity=entry.encode(schema)
            )
            for entry in wanted[name]
        ]
        await device.write(p4r.WriteRequest(device_id=switch.device_id, updates=updates))

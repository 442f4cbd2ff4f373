"""`plait bench switch`: packets a second of the ECMP program.

- veth: source -> veth -> switch -> veth -> sink, against a bare AF_PACKET forwarder with the same batching, and against
  BMv2 where it is on PATH. All contenders run in turn, several rounds, in one network namespace of their own, and
  each figure is the median of its rounds: compare ratios, not absolute figures. The source runs at the lowest priority,
  since it would starve a switch of several threads, such as BMv2, of its cores.
- memory: a k=4 fat-tree of 20 switches in virtual time, one thread, every host sending to another pod: five switches
  a packet. Median of as many rounds.
"""

import asyncio
import json
import shutil
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from finsy.proto import p4r

import engine
import engine.bench
from controller.control import Program, install, read_schema
from controller.errors import SwitchUnreachableError
from controller.policy import fabric_entries
from controller.targets import Target
from fastswitch.server.device import Device
from fastswitch.server.program import ProgramStore
from lab import bench_frames
from lab.compiling import CompiledProgram, compile_program
from lab.config import DEFAULT_PROGRAM
from lab.doctor import require_laboratory
from lab.errors import MissingFeatureError, PlaitError
from mininet_topos.fattree import fattree
from mininet_topos.system import ip_batch, isolated
from mininet_topos.topology import Link, Node, Topology

_ROUNDS = 3
_FRAME_BYTES = 1086  # 1,024 bytes of payload in a RoCEv2 WRITE
_HOPS = 400_000
_READY_S = 20.0


def run(seconds: float, talk: Callable[[str], None]) -> dict[str, Any]:
    """{"veth": {"pps", "bare_pps", "ratio", "bmv2_pps", "bmv2_ratio"}, "memory": {"packet_hops_per_s"}}

    Packets a second that reached the sink; BMv2's are None where it is not on PATH. `seconds` is the time of each
    measurement of each round. MissingFeatureError where no network namespace can be made.
    """
    require_laboratory()
    with tempfile.TemporaryDirectory(prefix="plait-bench-") as folder:
        program = compile_program(DEFAULT_PROGRAM, "plait", Path(folder))
        talk("memory links, virtual time …")
        memory = {"packet_hops_per_s": _memory_hops(program)}
        talk(f"veth, {_ROUNDS} rounds of {seconds:g} s each …")
        # In a namespace that ends with its process, so that nothing can stay behind.
        command = isolated([sys.executable, "-m", "lab.bench_switch", str(seconds), folder])
        child = subprocess.run(command, capture_output=True, text=True, check=False)
        if child.returncode != 0:
            reason = child.stderr.strip().splitlines()[-1:] or ["no message"]
            raise MissingFeatureError(f"the veth measurement failed: {reason[0]}")
        return {"veth": json.loads(child.stdout), "memory": memory}


def explain(result: dict[str, Any]) -> str:
    veth, memory = result["veth"], result["memory"]
    lines = [
        f"ecmp.p4, {_FRAME_BYTES}-byte RoCEv2 frames",
        f"  over veth (median of {_ROUNDS} rounds; the source runs beside them at the lowest priority)",
        f"    bare AF_PACKET forwarder {veth['bare_pps']:12,.0f} packets/s",
        f"    plait-switch             {veth['pps']:12,.0f} packets/s = {veth['ratio']:.2f} x bare",
    ]
    if veth["bmv2_pps"] is None:
        lines.append("    BMv2                     simple_switch_grpc is not on PATH")
    else:
        lines.append(f"    BMv2                     {veth['bmv2_pps']:12,.0f} packets/s")
        lines.append(f"    plait-switch is {veth['bmv2_ratio']:.1f} x BMv2")
    hops = memory["packet_hops_per_s"]
    lines.append(f"  over memory links, 20 switches, one thread, virtual time: {hops:,.0f} packet-hops/s")
    return "\n".join(lines)


# --- memory links ---


def _memory_hops(program: CompiledProgram) -> float:
    topology = fattree(4, rate_bps=100 * 10**9, delay_ns=1000)
    schema = read_schema(Program(program.p4info, program.json))
    wanted = fabric_entries(topology, schema)
    rates = []
    with engine.Fabric("virtual", seed=1) as fabric:
        switches = {node.name: fabric.add_switch(node.name, node.device_id or 0) for node in topology.switches}
        for link in topology.links:
            if link.a in switches and link.b in switches:
                ends = (switches[link.a], link.port_a, switches[link.b], link.port_b)
                fabric.connect(*ends, rate_bps=link.rate_bps, delay_ns=link.delay_ns)
        asyncio.run(_load(switches, program, wanted, schema))
        hosts = topology.hosts
        for _ in range(_ROUNDS):
            for index, host in enumerate(hosts):
                peer = hosts[(index + len(hosts) // 2) % len(hosts)]  # in another pod: five switches away
                attached = topology.host_port(host.name)
                frame = bench_frames.write_packet(host, peer, topology.gateway_mac(host.name), _FRAME_BYTES)
                count = _HOPS // (5 * len(hosts))
                switches[attached.node.name].generate(
                    attached.node_port, frame, count, interval_ns=100, start_ns=fabric.now_ns
                )
            rates.append(engine.bench.hops_per_second(fabric).per_second)
    return statistics.median(rates)


async def _load(switches: dict[str, Any], program: CompiledProgram, wanted: Any, schema: Any) -> None:
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


# --- veth: the rest runs in a network namespace of its own ---


def _one_switch() -> Topology:
    nodes = (Node.switch(1, "edge", 0), Node.host(0, "10.0.0.2/24"), Node.host(1, "10.0.1.2/24"))
    links = tuple(Link("s1", port, f"h{port}", 0, 10**12, 0) for port in (1, 2))
    return Topology(nodes, links, name="one-switch")


class _Contender:
    """Two veth pairs: what is sent into `a0` arrives at `a1`, and what is sent into `b0` arrives at `b1`, the sink."""

    def __init__(self, name: str) -> None:
        self.a0, self.a1, self.b0, self.b1 = (f"{name}{end}" for end in ("a0", "a1", "b0", "b1"))
        ip_batch(
            [f"link add {one} type veth peer name {other}" for one, other in ((self.a0, self.a1), (self.b0, self.b1))]
            + [f"link set {name} up" for name in (self.a0, self.a1, self.b0, self.b1)]
        )
        self.rates: list[float] = []


def _measure(seconds: float, folder: Path) -> dict[str, float | None]:
    topology = _one_switch()
    source, sink = topology.hosts
    frame = bench_frames.write_packet(source, sink, topology.gateway_mac(source.name), _FRAME_BYTES)
    ip_batch(["link set lo up"])
    contenders = {name: _Contender(name) for name in ("bare", "plait")}
    program = Program(folder / "ecmp.p4info.txtpb", folder / "ecmp.json")
    commands = {"plait": [sys.executable, "-m", "fastswitch.daemon", "--die-with-parent"]}
    if shutil.which("simple_switch_grpc"):
        contenders["bmv2"] = _Contender("bmv2")
        commands["bmv2"] = ["simple_switch_grpc"]
    children = []
    try:
        for index, (name, command) in enumerate(commands.items()):
            ends = contenders[name]
            target = Target(name, f"127.0.0.1:{9559 + index}", 1 + index)
            flags = ["--device-id", str(target.device_id), "--no-p4", "-i", f"1@{ends.a1}", "-i", f"2@{ends.b0}"]
            with (folder / f"{name}.log").open("wb") as log:
                children.append(
                    subprocess.Popen(
                        [*command, *flags, "--", "--grpc-server-addr", target.address], stdout=log, stderr=log
                    )
                )
            asyncio.run(_install_patiently(topology, target, program))
        for _ in range(_ROUNDS):
            for name, ends in contenders.items():
                if name == "bare":
                    rate = engine.bench.bare_forwarding(ends.a0, ends.a1, ends.b0, ends.b1, frame, seconds)
                else:
                    rate = engine.bench.delivered(ends.a0, ends.b1, frame, seconds)
                ends.rates.append(rate.per_second)
    finally:
        for child in children:
            child.terminate()
        for child in children:
            child.wait()
    median = {name: statistics.median(ends.rates) for name, ends in contenders.items()}
    bmv2 = median.get("bmv2")
    return {
        "pps": median["plait"],
        "bare_pps": median["bare"],
        "ratio": median["plait"] / median["bare"],
        "bmv2_pps": bmv2,
        "bmv2_ratio": median["plait"] / bmv2 if bmv2 else None,
    }


async def _install_patiently(topology: Topology, target: Target, program: Program) -> None:
    """Installs as soon as the switch answers."""
    loop = asyncio.get_running_loop()
    deadline = loop.time() + _READY_S
    while True:
        try:
            wanted = Target("s1", target.address, target.device_id)
            await install(topology, [wanted], program)
            return
        except SwitchUnreachableError as error:
            if loop.time() > deadline:
                raise PlaitError(f"{target.name} did not answer within {_READY_S:.0f} s: {error}") from error
            await asyncio.sleep(0.1)


if __name__ == "__main__":
    print(json.dumps(_measure(float(sys.argv[1]), Path(sys.argv[2]))))

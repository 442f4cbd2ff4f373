"""`plait bench switch`: packets a second of the ECMP program.

- veth: source -> veth -> switch -> veth -> sink, against a bare AF_PACKET forwarder with the same batching, and against
  BMv2 where it is on PATH. All contenders run in turn, several rounds, in one network namespace of their own, and
  each figure is the median of its rounds: compare ratios, not absolute figures. The source runs at the lowest priority,
  since it would starve a switch of several threads, such as BMv2, of its cores.
- memory: a k=4 fat-tree of 20 switches in virtual time, one thread, every host sending to another pod: five switches
  a packet. Median of as many rounds. `--program` measures other programs so, in turn with the ECMP program.
- curves: a look-up against the entries of its table, and a packet-hop against the switches of the process.
"""

import asyncio
import json
import shutil
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import engine.bench
from controller.control import Program, install
from controller.errors import SwitchUnreachableError
from controller.targets import Target
from lab import bench_curves, bench_frames
from lab.bench_memory import FRAME_BYTES, HopRate, MemoryFabric
from lab.compiling import DEFINES, CompiledProgram, compile_program, compile_with
from lab.config import DEFAULT_PROGRAM
from lab.doctor import require_laboratory
from lab.errors import MissingFeatureError, PlaitError, UsageError
from mininet_topos.fattree import fattree
from mininet_topos.system import ip_batch, isolated
from mininet_topos.topology import Topology

_ROUNDS = 3
_HOPS = 400_000
_YARDSTICK = "ecmp"
PROGRAMS = DEFAULT_PROGRAM.parent
_READY_S = 20.0


def run(
    seconds: float, talk: Callable[[str], None], out: Path | None = None, program_name: str | None = None
) -> dict[str, Any]:
    """{"veth": {"pps", "bare_pps", "ratio", "bmv2_pps", "bmv2_ratio"}, "memory": {"packet_hops_per_s",
    "packet_hops_per_cpu_s"}, "curves": {"entries": {kind: [[entries, ns]]}, "switches": [[switches, packet-hops/s]]}}

    Packets a second that reached the sink; BMv2's are None where it is not on PATH. `seconds` is the time of each
    measurement of each round over veth. `out`: a folder for pictures of the curves, listed as "pictures".
    `program_name`, or "all": adds "programs": {name: {"packet_hops_per_s", "packet_hops_per_cpu_s", "ratio_to_ecmp"}}.
    UsageError for an unknown program, MissingFeatureError where no network namespace can be made.
    """
    names = program_names(program_name) if program_name else []
    require_laboratory()
    with tempfile.TemporaryDirectory(prefix="plait-bench-") as folder:
        program = compile_program(DEFAULT_PROGRAM, "plait", Path(folder))
        talk("memory links, virtual time …")
        rate = _memory_hops(program)
        result: dict[str, Any] = {
            "memory": {"packet_hops_per_s": rate.per_second, "packet_hops_per_cpu_s": rate.per_cpu_second}
        }
        talk("look-ups against entries, packet-hops against switches …")
        curves = {"entries": bench_curves.lookups(), "switches": bench_curves.hops(program)}
        result["curves"] = curves
        if out is not None:
            from lab import bench_plots

            result["pictures"] = [str(path) for path in bench_plots.draw(curves, out)]
        if names:
            talk(f"programs over memory links: {', '.join(names)} …")
            result["programs"] = _programs(names, Path(folder))
        talk(f"veth, {_ROUNDS} rounds of {seconds:g} s each …")
        # In a namespace that ends with its process, so that nothing can stay behind.
        command = isolated([sys.executable, "-m", "lab.bench_switch", str(seconds), folder])
        child = subprocess.run(command, capture_output=True, text=True, check=False)
        if child.returncode != 0:
            reason = child.stderr.strip().splitlines()[-1:] or ["no message"]
            raise MissingFeatureError(f"the veth measurement failed: {reason[0]}")
        return {"veth": json.loads(child.stdout), **result}


def explain(result: dict[str, Any]) -> str:
    veth, memory = result["veth"], result["memory"]
    lines = [
        f"ecmp.p4, {FRAME_BYTES}-byte RoCEv2 frames",
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
    own = memory["packet_hops_per_cpu_s"]
    lines.append(f"  over memory links, 20 switches, one thread, virtual time: {hops:,.0f} packet-hops/s")
    lines.append(f"    ({own:,.0f} a second of processor time, which a busy machine does not shorten)")
    lines += bench_curves.explain(result["curves"])
    if "programs" in result:
        lines.append("  programs over memory links, 20 switches: packet-hops a second of processor time, ratio to ecmp")
        for name, each in result["programs"].items():
            lines.append(f"    {name:<16} {each['packet_hops_per_cpu_s']:12,.0f}  {each['ratio_to_ecmp']:5.2f}")
    lines += [f"  {path}" for path in result.get("pictures", ())]
    return "\n".join(lines)


# --- memory links ---


def _memory_hops(program: CompiledProgram) -> HopRate:
    with MemoryFabric(fattree(4, rate_bps=100 * 10**9, delay_ns=1000), program) as fabric:
        return _median([fabric.round(_HOPS) for _ in range(_ROUNDS)])


def _median(rates: list[HopRate]) -> HopRate:
    return HopRate(
        statistics.median(rate.per_second for rate in rates), statistics.median(rate.per_cpu_second for rate in rates)
    )


def _programs(names: list[str], folder: Path) -> dict[str, dict[str, float]]:
    """By program: its packet-hops a second over memory links, and their ratio to ecmp's, measured in turn."""
    topology = fattree(4, rate_bps=100 * 10**9, delay_ns=1000)
    rates: dict[str, list[HopRate]] = {name: [] for name in dict.fromkeys([_YARDSTICK, *names])}
    with ExitStack() as stack:
        fabrics = {
            name: stack.enter_context(MemoryFabric(topology, compile_program(PROGRAMS / f"{name}.p4", "plait", folder)))
            for name in rates
        }
        for _ in range(_ROUNDS):
            for name, fabric in fabrics.items():
                rates[name].append(fabric.round(_HOPS))
    yardstick = _median(rates[_YARDSTICK]).per_cpu_second
    return {
        name: {
            "packet_hops_per_s": (rate := _median(rounds)).per_second,
            "packet_hops_per_cpu_s": rate.per_cpu_second,
            "ratio_to_ecmp": rate.per_cpu_second / yardstick,
        }
        for name, rounds in rates.items()
    }


def program_names(wanted: str) -> list[str]:
    """`all`, or one program of p4src/; UsageError names those that there are."""
    known = sorted(path.stem for path in PROGRAMS.glob("*.p4"))
    if wanted != "all" and wanted not in known:
        raise UsageError(f"--program {wanted!r}: known are {', '.join(known)} and all.")
    return known if wanted == "all" else [wanted]


# --- veth: the rest runs in a network namespace of its own ---


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
    topology = bench_curves.one_switch()
    source, sink = topology.hosts
    frame = bench_frames.write_packet(source, sink, topology.gateway_mac(source.name), FRAME_BYTES)
    # /sys shows the interfaces of the namespace in which it was mounted; BMv2 reads there which of its ports are up.
    subprocess.run(["mount", "-t", "sysfs", "sysfs", "/sys"], check=True)
    ip_batch(["link set lo up"])
    contenders = {name: _Contender(name) for name in ("bare", "plait")}
    commands = {"plait": [sys.executable, "-m", "fastswitch.daemon", "--die-with-parent"]}
    if shutil.which("simple_switch_grpc"):
        contenders["bmv2"] = _Contender("bmv2")
        commands["bmv2"] = ["simple_switch_grpc"]
    children = []
    try:
        for index, (name, command) in enumerate(commands.items()):
            ends = contenders[name]
            target = Target(name, f"127.0.0.1:{9559 + index}", 1 + index)
            (folder / name).mkdir()
            compiled = compile_with(DEFAULT_PROGRAM, "p4front", DEFINES[name]).write(folder / name)
            flags = ["--device-id", str(target.device_id), "--no-p4", "-i", f"1@{ends.a1}", "-i", f"2@{ends.b0}"]
            with (folder / f"{name}.log").open("wb") as log:
                children.append(
                    subprocess.Popen(
                        [*command, *flags, "--", "--grpc-server-addr", target.address], stdout=log, stderr=log
                    )
                )
            asyncio.run(_install_patiently(topology, target, Program(compiled.p4info, compiled.json)))
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
    if silent := [name for name, rate in median.items() if rate == 0]:
        raise PlaitError(f"no frame came through {' and '.join(silent)}")
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

"""`plait bench control`: how fast switches are programmed over P4Runtime.

- inserts: one client over loopback gRPC writes batches into one exact table, each batch when the last is answered;
  median of several rounds, each into an empty table. BMv2 does the same where it is on PATH.
- pipeline: SetForwardingPipelineConfig of the ECMP program, with an empty cache of compiled programs and with a full
  one, each in a new process.
- fabric: one process with the 80 switches of a k=8 fat-tree, links in memory, compiled program in the cache: from its
  start until every switch runs the program, and its memory once all entries are in.
- paths: all k = 8 shortest paths between the 80 switches of a Jellyfish network with a k=8 fat-tree's equipment, found,
  and read from disk.
- laboratories: see `lab.bench_launch`; as root only.
"""

import contextlib
import json
import os
import shutil
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import finsy as fy
import grpc
from finsy.proto import U128, p4i, p4r, p4r_grpc

from controller.control import Program, read_schema
from controller.policy import fabric_entries
from lab import bench_launch
from lab.compiling import CompiledProgram, compile_program
from lab.config import DEFAULT_PROGRAM
from lab.errors import PlaitError
from lab.results import ROOT
from mininet_topos.fabric import long_options
from mininet_topos.fattree import fattree
from mininet_topos.topology import Topology

_ENTRIES = 100_000
_BATCH = 1_000
_ROUNDS = 3
_K = 8
_PATHS = 8
_READY_S = 30.0
_TABLE_PROGRAM = Path(__file__).with_suffix(".p4")
_PLAIT = (sys.executable, "-m", "fastswitch.daemon", "--die-with-parent")
_BMV2 = "simple_switch_grpc"
_Stub = p4r_grpc.P4RuntimeStub
_ELECTION_ID = U128.encode(1)


def run(
    talk: Callable[[str], None],
    *,
    entries: int = _ENTRIES,
    rounds: int = _ROUNDS,
    k: int = _K,
    launches: Sequence[str] = bench_launch.TOPOLOGIES,
) -> dict[str, Any]:
    """{"inserts_per_s", "bmv2_inserts_per_s", "pipeline_cold_s", "pipeline_warm_s", "fabric80_start_s",
    "fabric80_rss_mb", "ksp80_s", "ksp80_from_disk_s", "k4_first_byte_s", "k8_launch_s", "k8_tables_s", "k8_rss_mb",
    "repair_s", "launches", "conditions"}

    BMv2's figure is None where it is not on PATH; those of laboratories (`launches`, see `bench_launch.run`) are None
    without root, or where the topology is not among them. PlaitError if a switch or a laboratory does not come up.
    """
    with tempfile.TemporaryDirectory(prefix="plait-bench-") as name:
        folder = Path(name)
        table = compile_program(_TABLE_PROGRAM, "plait", folder)
        ecmp = compile_program(DEFAULT_PROGRAM, "plait", folder)
        environment = os.environ | {"XDG_CACHE_HOME": str(folder / "cache")}
        talk(f"{entries:,} inserts, {rounds} rounds …")
        inserts = _inserts("plait", table, folder, environment, entries, rounds)
        bmv2 = _inserts("bmv2", table, folder, environment, entries, rounds) if shutil.which(_BMV2) else None
        talk("pipeline pushes …")
        cold, warm = (_push_seconds(ecmp, folder, environment) for _ in range(2))
        talk(f"fabric of a k={k} fat-tree …")
        fabric = _fabric(fattree(k, rate_bps=100 * 10**6, delay_ns=50_000), ecmp, folder, environment)
        talk("shortest paths …")
        found, read = (_paths_seconds(k, environment) for _ in range(2))
    launched = bench_launch.run(talk, launches) if os.geteuid() == 0 else []
    by_topology = {each["topology"]: each for each in launched}
    first, large = (by_topology.get(f"fattree:k={size}", {}) for size in (4, _K))
    return {
        "inserts_per_s": inserts,
        "bmv2_inserts_per_s": bmv2,
        "pipeline_cold_s": cold,
        "pipeline_warm_s": warm,
        "fabric80_start_s": fabric["start_s"],
        "fabric80_rss_mb": fabric["rss_mb"],
        "ksp80_s": found,
        "ksp80_from_disk_s": read,
        "k4_first_byte_s": first.get("first_byte_s"),
        "k8_launch_s": large.get("launch_s"),
        "k8_tables_s": large.get("tables_s"),
        "k8_rss_mb": large.get("rss_mb"),
        "repair_s": large.get("repair_s"),
        "launches": launched,
        "conditions": {
            "inserts": entries,
            "batch": _BATCH,
            "rounds": rounds,
            "table": "one exact key of 48 bits, one parameter",
            "program": DEFAULT_PROGRAM.name,
            "cores": os.cpu_count(),
            **fabric["conditions"],
        },
    }


def explain(result: dict[str, Any]) -> str:
    how = result["conditions"]
    bmv2 = result["bmv2_inserts_per_s"]
    beside = f"{bmv2:12,.0f} inserts/s" if bmv2 is not None else f"     {_BMV2} is not on PATH"
    return "\n".join(
        [
            f"P4Runtime over loopback, one client, batches of {how['batch']:,} into {how['table']}",
            f"  plait-switch {result['inserts_per_s']:12,.0f} inserts/s"
            f" (median of {how['rounds']} rounds of {how['inserts']:,})",
            f"  BMv2         {beside}",
            f"SetForwardingPipelineConfig of {how['program']}",
            f"  cold         {result['pipeline_cold_s']:12.2f} s",
            f"  from cache   {result['pipeline_warm_s']:12.2f} s",
            f"{how['switches']} switches in one process, {how['links']} links in memory, {how['program']} from cache",
            f"  start        {result['fabric80_start_s']:12.2f} s until all run the program",
            f"  memory       {result['fabric80_rss_mb']:12.0f} MB with {how['entries']:,} entries,"
            f" which took {how['entries_s']:.2f} s more",
            f"k = 8 shortest paths between {how['switches']} switches of a Jellyfish network",
            f"  found        {result['ksp80_s']:12.2f} s",
            f"  from disk    {result['ksp80_from_disk_s']:12.2f} s",
            bench_launch.explain(result["launches"]) if result["launches"] else "no laboratories: they need root",
        ]
    )


# --- switches ---


@contextlib.contextmanager
def _switch(
    command: Sequence[str], address: str, log: Path, environment: Mapping[str, str]
) -> Iterator[tuple[subprocess.Popen[bytes], _Stub]]:
    """A running switch process and a client of it, as soon as it answers."""
    with log.open("wb") as output:
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=output, stderr=output, env=environment)
    try:
        with grpc.insecure_channel(address, [("grpc.initial_reconnect_backoff_ms", 20)]) as channel:
            stub = _Stub(channel)  # type: ignore[no-untyped-call]
            _await_answer(process, stub, log)
            yield process, stub
    except grpc.RpcError as error:
        raise PlaitError(f"{command[0]} refused a request: {error}") from error
    finally:
        process.terminate()
        process.wait()


def _await_answer(process: subprocess.Popen[bytes], stub: _Stub, log: Path) -> None:
    deadline = time.monotonic() + _READY_S
    while True:
        try:
            stub.Capabilities(p4r.CapabilitiesRequest(), timeout=1)
            return
        except grpc.RpcError as error:
            if process.poll() is not None or time.monotonic() > deadline:
                last = log.read_text(errors="replace").strip().splitlines()[-1:]
                raise PlaitError(f"the switch did not come up: {last[0] if last else error}") from None
            time.sleep(0.005)


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@contextlib.contextmanager
def _one(target: str, folder: Path, environment: Mapping[str, str]) -> Iterator[_Stub]:
    """One switch without ports or program."""
    address = f"127.0.0.1:{_free_port()}"
    command = [*(_PLAIT if target == "plait" else (_BMV2,)), "--device-id", "1", "--no-p4"]
    if target == "bmv2":
        command += ["--log-level", "off"]
        if "--thrift-port" in long_options([_BMV2]):  # else every BMv2 of the machine takes the same one
            command += ["--thrift-port", str(_free_port())]
    command += ["--", "--grpc-server-addr", address]
    with _switch(command, address, folder / f"{target}.log", environment) as (_, stub):
        yield stub


@contextlib.contextmanager
def _primary(stub: _Stub, device_id: int) -> Iterator[None]:
    """Be the primary controller: BMv2 takes writes from no one else."""
    arbitration = p4r.MasterArbitrationUpdate(device_id=device_id, election_id=_ELECTION_ID)
    ended: list[None] = []

    def requests() -> Iterator[p4r.StreamMessageRequest]:
        yield p4r.StreamMessageRequest(arbitration=arbitration)
        while not ended:
            time.sleep(0.01)

    stream = stub.StreamChannel(requests())
    try:
        next(stream)
        yield
    finally:
        ended.append(None)
        stream.cancel()


def _push(
    stub: _Stub, device_id: int, p4info: p4i.P4Info, device_config: bytes, election_id: p4r.Uint128 | None = None
) -> None:
    config = p4r.ForwardingPipelineConfig(p4info=p4info, p4_device_config=device_config)
    action = p4r.SetForwardingPipelineConfigRequest.VERIFY_AND_COMMIT
    stub.SetForwardingPipelineConfig(
        p4r.SetForwardingPipelineConfigRequest(
            device_id=device_id, election_id=election_id, action=action, config=config
        )
    )


# --- measurements ---


def _inserts(
    target: str, program: CompiledProgram, folder: Path, environment: Mapping[str, str], entries: int, rounds: int
) -> float:
    schema = read_schema(Program(program.p4info, program.json))
    requests = [
        p4r.WriteRequest(
            device_id=1,
            election_id=_ELECTION_ID,
            updates=[_forwarding(schema, number) for number in range(first, min(first + _BATCH, entries))],
        )
        for first in range(0, entries, _BATCH)
    ]
    rates = []
    with _one(target, folder, environment) as stub, _primary(stub, 1):
        for _ in range(rounds):
            _push(stub, 1, schema.p4info, program.json.read_bytes(), _ELECTION_ID)
            started = time.perf_counter()
            for request in requests:
                stub.Write(request)
            rates.append(entries / (time.perf_counter() - started))
    return statistics.median(rates)


def _forwarding(schema: fy.P4Schema, number: int) -> p4r.Update:
    entry = fy.P4TableEntry(
        "forwarding",
        match=fy.P4TableMatch({"hdr.ethernet.dst_addr": 0x020000000000 + number * 0x9E3779B1 % (1 << 32)}),
        action=fy.P4TableAction("forward", port=number % 511),
    )
    return p4r.Update(type=p4r.Update.INSERT, entity=entry.encode(schema))


def _push_seconds(program: CompiledProgram, folder: Path, environment: Mapping[str, str]) -> float:
    schema = read_schema(Program(program.p4info, program.json))
    device_config = program.json.read_bytes()
    with _one("plait", folder, environment) as stub, _primary(stub, 1):
        started = time.perf_counter()
        _push(stub, 1, schema.p4info, device_config, _ELECTION_ID)
        return time.perf_counter() - started


def _fabric(
    topology: Topology, program: CompiledProgram, folder: Path, environment: Mapping[str, str]
) -> dict[str, Any]:
    schema = read_schema(Program(program.p4info, program.json))
    device_config = program.json.read_bytes()
    switches = {node.name: node.device_id or 0 for node in topology.switches}
    links = [link for link in topology.links if link.a in switches and link.b in switches]
    addresses = {name: f"unix:{folder}/{name}.sock" for name in switches}
    document = {
        "switches": [
            {"name": name, "device_id": number, "grpc_addr": addresses[name]} for name, number in switches.items()
        ],
        "links": [
            {"a": [link.a, link.port_a], "b": [link.b, link.port_b], "rate_bps": link.rate_bps, "delay_ns": 0}
            for link in links
        ],
    }
    file = folder / "fabric.json"
    file.write_text(json.dumps(document))
    batches = {
        name: p4r.WriteRequest(
            device_id=switches[name],
            updates=[
                p4r.Update(
                    type=p4r.Update.MODIFY if entry.is_default_action else p4r.Update.INSERT,
                    entity=entry.encode(schema),
                )
                for entry in entries
            ],
        )
        for name, entries in fabric_entries(topology, schema).items()
    }
    command = [*_PLAIT, "--fabric", str(file)]
    started = time.perf_counter()
    with _switch(command, next(iter(addresses.values())), folder / "fabric.log", environment) as (process, stub):
        for number in switches.values():
            _push(stub, number, schema.p4info, device_config)
        pushed = time.perf_counter()
        for batch in batches.values():
            stub.Write(batch)
        written = time.perf_counter()
        rss_kb = _resident_kb(process.pid)
    return {
        "start_s": pushed - started,
        "rss_mb": rss_kb / 1024,
        "conditions": {
            "switches": len(switches),
            "links": len(links),
            "entries": sum(len(batch.updates) for batch in batches.values()),
            "entries_s": written - pushed,
        },
    }


def _paths_seconds(k: int, environment: Mapping[str, str]) -> float:
    """In a process of its own, whose cache is the environment's; without its imports."""
    program = (
        "import igraph, time\n"
        "from mininet_topos.catalogue import parse_choice\n"
        "from mininet_topos.k_paths import k_shortest_paths\n"
        f"topology = parse_choice('jellyfish:like=fattree:k={k}').build()\n"
        "started = time.perf_counter()\n"
        "switches = [switch.name for switch in topology.switches]\n"
        f"assert sum(1 for _ in k_shortest_paths(topology, {_PATHS}, between=switches))\n"
        "print(time.perf_counter() - started)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], env=environment, cwd=ROOT, capture_output=True, text=True, check=False
    )
    if done.returncode != 0:
        raise PlaitError(f"shortest paths: {done.stderr.strip()}")
    return float(done.stdout)


def _resident_kb(pid: int) -> int:
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1])
    raise PlaitError(f"process {pid} shows no resident memory")

"""A laboratory in real time: Mininet fabric, P4 switches, controller and NICs, up on entry and gone on exit."""

import asyncio
import dataclasses
import random
import shutil
import signal
import sys
import time
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from pathlib import Path
from types import FrameType, TracebackType
from typing import Any

from controller import defaults
from controller.control import InstallReport, Program, install
from controller.counters import read_port_counters
from controller.parameters import change
from controller.policy import Policy
from fastswitch.control import Client, ControlError
from lab import clean, compiling, controller_process, running
from lab.bmv2_view import Bmv2View
from lab.config import LabConfig
from lab.doctor import require_laboratory
from lab.errors import MissingFeatureError, PlaitError
from lab.fabric_view import FabricView
from lab.nic_daemon import NicDaemon
from lab.nics import HostNic, plain
from lab.plait_view import PlaitView
from lab.results import LinkRecord, PortRecord
from mininet_topos.fabric import CONTROL_SOCKET
from mininet_topos.network import LabNetwork
from mininet_topos.system import NetworkError
from rdma.verbs import QP

_BMV2_PROGRAMS = ("simple_switch_grpc", "p4c-bm2-ss")
_PLAIT_SWITCH = (sys.executable, "-m", "fastswitch.daemon", "--die-with-parent")

_INTERRUPTED = "interrupted; everything was removed"

# What the transports send before headers; IBTA's path MTUs are powers of two, and this one fits Ethernet's 1,500.
PATH_MTU_BYTES = 1024


class Emulation:
    """A running laboratory, as a context manager.

        with Emulation(config, talk) as lab: …

    Entering takes the machine's laboratory lock (LabRunningError if another holds it), removes what a killed laboratory
    left, and brings everything up; PlaitError says in a sentence what could not be.  Leaving removes everything, also
    after an error, Ctrl-C or SIGTERM.
    """

    def __init__(
        self,
        config: LabConfig,
        talk: Callable[[str], None],
        policy: Policy | None = None,
        *,
        controller_stays: bool = False,
    ) -> None:
        """controller_stays: a controller writes the entries and goes on to repair them, as a process of its own."""
        self.config = config
        self._controller_stays = controller_stays
        self._policy = policy or Policy(seed=config.seed)
        self.topology = config.topology()
        self.network: LabNetwork
        self.installed: InstallReport
        self._talk = talk
        self._stack = ExitStack()
        self._view: FabricView
        self._nic: NicDaemon
        self._random = random.Random(config.seed)

    # --- up and down ---

    def __enter__(self) -> "Emulation":
        try:
            return self._enter()
        except KeyboardInterrupt:
            self._talk(_INTERRUPTED)
            raise

    def _enter(self) -> "Emulation":
        require_laboratory()
        if self.config.target == "bmv2":
            _require_bmv2()
        # An error in the program is the user's to see even while another laboratory runs.
        text = compiling.compile_text(self.config.program, self.config.target)
        self._talk(f"compiled {self.config.program.name} in {text.seconds:.2f} s")
        with self._stack as stack:
            stack.enter_context(running.hold_lock())
            self._end_on_sigterm(stack)
            removed = clean.remove_leftovers()
            if removed.processes or removed.interfaces:
                self._talk(f"a killed laboratory was found: {removed}")
            try:
                self._bring_up(stack, text)
            except (NetworkError, ControlError) as error:
                raise PlaitError(f"the network could not be brought up: {error}") from error
            # Everything is up: from now on __exit__ takes it down.
            self._stack = stack.pop_all()
        return self

    def fault(self) -> str:
        """Which process of the laboratory has ended, how, and the end of its log; "" while all run."""
        return self.network.runner.fault() or self._nic.fault()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stack.close()
        if kind is KeyboardInterrupt:
            self._talk(_INTERRUPTED)

    def _bring_up(self, stack: ExitStack, text: compiling.CompiledText) -> None:
        config, started = self.config, time.monotonic()
        self.network = LabNetwork(
            self.topology,
            lab=self.topology.name,
            target=config.target,  # type: ignore[arg-type] # checked by LabConfig
            links=config.links if config.target == "plait" else "veth",  # type: ignore[arg-type]
            seed=config.seed,
            priority_queues=config.priority_queues,
            switch_command=_PLAIT_SWITCH if config.target == "plait" else None,
        )
        stack.callback(_forget)
        running.write_topology(self.topology)
        running.write_record(self._record())
        for limit in self.network.limits:
            self._talk(f"note: {limit}")
        program = text.write(running.RUN_DIR)
        stack.callback(self.network.stop)
        control = self._start_controller(stack, Program(program.p4info, program.json))
        self.network.start()
        running.write_record(dataclasses.replace(self._record(), pids={h.name: h.pid for h in self.network.hosts}))
        hosts, switches = len(self.topology.hosts), len(self.topology.switches)
        self._talk(f"{self.topology.name} is up: {hosts} hosts, {switches} switches ({config.target})")
        self._nic = stack.enter_context(
            NicDaemon(self.network, config.nic_memory_bytes, PATH_MTU_BYTES, self._rtt_ns(), config.transports)
        )
        self.installed = control()
        self._talk(f"{self.installed.verified} table entries written over P4Runtime and read back equal")
        self._nic.await_ready()
        self._talk(f"XDP NICs are up on {hosts} hosts; ready after {time.monotonic() - started:.1f} s")
        self._view = self._make_view()
        stack.callback(self._view.close)

    def _start_controller(self, stack: ExitStack, program: Program) -> Callable[[], InstallReport]:
        """Returns what waits until all switches hold their entries."""
        if not self._controller_stays:
            return lambda: asyncio.run(install(self.topology, self.network.targets, program, self._policy))
        controller_process.configure(running.topology_path(), program, self.network.targets, self._policy)
        # It comes up while the network does.
        child = controller_process.start(self.topology.name, wait_for_all=True)
        stack.callback(child.wait)
        stack.callback(controller_process.stop)
        return lambda: controller_process.await_ready(child)

    def _make_view(self) -> FabricView:
        if self.config.target == "bmv2":
            return Bmv2View(self.network)
        return PlaitView(self.network)

    def _record(self) -> running.LabRecord:
        return running.LabRecord.of_this_process(
            name=self.topology.name,
            target=self.config.target,
            switches={
                target.name: running.SwitchRecord(target.address, target.device_id) for target in self.network.targets
            },
            hosts={host.name: str(self.verbs_socket(host.name)) for host in self.topology.hosts},
        )

    @staticmethod
    def _end_on_sigterm(stack: ExitStack) -> None:
        """SIGTERM and SIGHUP (a closed terminal) end the laboratory as an exception does, so that it is taken down."""

        def end(number: int, frame: FrameType | None) -> None:
            raise SystemExit(128 + number)

        for number in (signal.SIGTERM, signal.SIGHUP):
            stack.callback(signal.signal, number, signal.signal(number, end))

    # --- what experiments use ---

    def reload(self, program: Path, policy: Policy, parameters: Mapping[str, int | str]) -> None:
        """Replaces the program of all switches on the running network: fresh state, other entries, parameters set.

        What waits in queues is dropped. Controller errors name what the program lacks.
        """
        written = compiling.compile_text(program, self.config.target).write(running.RUN_DIR)
        loaded, election_id = Program(written.p4info, written.json), defaults.personal_election_id()
        asyncio.run(install(self.topology, self.network.targets, loaded, policy, election_id=election_id))
        if parameters:
            asyncio.run(change(self.network.targets, parameters))

    def verbs_socket(self, host: str) -> Path:
        return running.RUN_DIR / f"{host}.rdma.sock"

    def connect(
        self,
        a: str,
        qp_a: QP,
        b: str,
        qp_b: QP,
        numbers: random.Random | None = None,
        nic: HostNic | None = None,
        mark_remaining: bool = False,
    ) -> None:
        """Brings two queue pairs of hosts a and b to RTS, each with the other as its peer.

        numbers: draws the first PSNs and UDP source ports; without, those of the laboratory's seed go on.
        nic: transport and settings; the laboratory's first transport without.  mark_remaining: see
        `QP.modify_rts`.
        """
        nic = nic or plain(self.config.transports[0])
        draw = (numbers or self._random).getrandbits
        psn_a, psn_b = draw(24), draw(24)
        for here, qp, there, peer, rq_psn, sq_psn in (
            (a, qp_a, b, qp_b, psn_b, psn_a),
            (b, qp_b, a, qp_a, psn_a, psn_b),
        ):
            qp.modify_rtr(
                dest_qpn=peer.qp_num,
                dest_ip=self.topology.node(there).address,
                rq_psn=rq_psn,
                path_mtu=PATH_MTU_BYTES,
                # The dynamic ports of RFC 6335, section 6; IBTA Annex A17.9.2 leaves the choice to the sender.
                udp_source_port=49152 + draw(14),
                **nic.rtr(),
            )
            window = {"window_packets": self.window_packets(here, there)}
            qp.modify_rts(sq_psn=sq_psn, mark_remaining=mark_remaining, **(window | nic.rts()))

    def window_packets(self, src: str, dst: str) -> int:
        """The fixed window: two bandwidth-delay products of the pair's path, so that jitter does not stall it."""
        frame = PATH_MTU_BYTES + 62
        return max(16, 2 * self.topology.bdp_bytes(src, dst, frame) // frame)

    def transport(self) -> dict[str, object]:
        """What the hosts' NICs run, for results."""
        return {
            "transport": ", ".join(self.config.transports),
            "path_mtu_bytes": PATH_MTU_BYTES,
            "rtt_ns": self._rtt_ns(),
            "window": "fixed, two bandwidth-delay products of the pair's path",
        }

    def link_counters(self) -> Mapping[tuple[str, str], Mapping[str, int]]:
        return self._view.counters()

    def link_records(self, before: Mapping[tuple[str, str], Mapping[str, int]], seconds: float) -> list[LinkRecord]:
        """What each link direction carried since `before`, with its load over `seconds`."""
        now = self._view.counters()
        rates = {}
        for link in self.topology.links:
            rates[link.a, link.b] = rates[link.b, link.a] = link.rate_bps
        records = []
        for ends, counters in now.items():
            past = before.get(ends, {})
            grown = {name: value - past.get(name, 0) for name, value in counters.items()}
            records.append(
                LinkRecord(
                    source=ends[0],
                    destination=ends[1],
                    rate_bps=rates[ends],
                    packets=grown["packets"],
                    bytes=grown["bytes"],
                    drops_queue=grown["drops_queue"],
                    drops_loss=grown["drops_loss"],
                    max_queue_bytes=counters["max_queue_bytes"],
                    load=min(1.0, 8 * grown["bytes"] / (seconds * rates[ends])),
                )
            )
        return records

    def port_records(self) -> list[PortRecord]:
        """The P4 program's own counters of every port that saw a packet."""
        counters = asyncio.run(read_port_counters(self.network.targets))
        return [
            PortRecord(switch, port, **dataclasses.asdict(counted))
            for switch, ports in counters.items()
            for port, counted in ports.items()
        ]

    def flows(self) -> Any:
        """What each link direction carried of each flow since the laboratory began: see `FabricView.flows`."""
        return self._view.flows()

    def set_queue_depth(self, packets: int) -> None:
        """How many packets may wait in every queue of every switch port; for --target plait only."""
        with Client(running.RUN_DIR / CONTROL_SOCKET) as fabric:
            for switch in self.topology.switches:
                for neighbor in self.topology.neighbors(switch.name):
                    fabric.queue_set(switch.name, neighbor.port, depth_packets=packets)

    def capture_host(self, host: str, path: Path) -> None:
        """Captures the link of `host` into a pcap file until `stop_captures`."""
        self._view.capture(self.topology.host_port(host).link, path)

    def capture_host_and_core(self, host: str, folder: Path) -> dict[str, str]:
        """Captures the link of `host` and one link of its edge switch upwards; returns file name -> what it holds."""
        attached = self.topology.host_port(host)
        above = next(peer for peer in self.topology.neighbors(attached.node.name) if not peer.node.is_host)
        captured = {}
        for link in (attached.link, above.link):
            file = f"{link.name.replace(':', '--')}.pcap"
            self._view.capture(link, folder / file)
            captured[file] = f"every packet of the link {link.name}; see `plait inspect` or tcpdump -r"
        return captured

    def stop_captures(self) -> None:
        self._view.stop_captures()

    def _rtt_ns(self) -> int:
        from mininet_topos.paths import max_rtt_ns

        return max_rtt_ns(self.topology, PATH_MTU_BYTES + 62)


def _require_bmv2() -> None:
    missing = [name for name in _BMV2_PROGRAMS if shutil.which(name) is None]
    if missing:
        raise MissingFeatureError(f"--target bmv2 needs BMv2 and p4c: {missing[0]} is not on PATH.")


def _forget() -> None:
    clean.remove_files()

"""The agent: `python -m rdma.daemon --config nic.json`, one process for all RDMA hosts of a lab.

It loads the XDP RNIC, attaches it to each host, sends for all of them, and serves `<run_dir>/<host>.rdma.sock` for
each.  When all is up it prints `ready`.  SIGTERM or SIGINT takes everything down again; so does its death, but for the
sockets.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import dataclasses
import functools
import logging
import mmap
import os
import resource
import signal
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from ebpf import bpf_syscall, netns
from ebpf.c_module import BuildError
from ebpf.loader import Nic, NicError, NicSizes
from rdma.allocate import Ranges, SlotNumbers
from rdma.config import HEADER_BYTES, ConfigError, HostConfig, NicConfig, load
from rdma.server import HostServer
from rdma.session import Session, Shared
from rdma.transmit import Engine, EngineError
from wire.codes import QPN_BITS

EXIT_OK, EXIT_FAILED, EXIT_USAGE = 0, 1, 2
GRACE_SECONDS = 0.05  # long after any packet that the NIC was handling
SOCKET_SUFFIX = ".rdma.sock"


class DaemonError(Exception):
    """The daemon cannot start; the text says why."""


def _open_namespace(host: HostConfig) -> int:
    try:
        return netns.open_namespace(host.pid if host.pid is not None else host.netns)
    except OSError as error:
        where = f"process {host.pid}" if host.pid is not None else f"network namespace {host.netns!r}"
        raise DaemonError(f"host {host.name}: {where}: {error.strerror}") from error


def _check_mtu(config: NicConfig, host: HostConfig, namespace: int) -> None:
    try:
        mtu = netns.interface(namespace, host.interface).mtu
    except LookupError as error:
        raise DaemonError(f"host {host.name}: {error}") from error
    if mtu < config.mtu + HEADER_BYTES:
        raise DaemonError(
            f"host {host.name}: {host.interface} has an MTU of {mtu}; a path MTU of {config.mtu} needs "
            f"{config.mtu + HEADER_BYTES}"
        )


def attach_hosts(nic: Nic, engine: Engine, config: NicConfig) -> dict[str, int]:
    """Brings all hosts up; returns their slots by name."""
    slots = {}
    with contextlib.ExitStack() as opened:
        own = netns.open_namespace(None)
        opened.callback(os.close, own)
        # Hosts may share a namespace with each other or with us; each is searched for peers once.
        namespaces = {os.fstat(own).st_ino: own}
        for host in config.hosts:
            namespace = _open_namespace(host)
            opened.callback(os.close, namespace)
            namespaces.setdefault(os.fstat(namespace).st_ino, namespace)
            _check_mtu(config, host, namespace)
            slots[host.name] = nic.add_host(namespace, host.interface, host.mac, host.rate_bps)
            engine.add_host(slots[host.name], namespace, host.interface, host.mac, host.ipv4, host.rate_bps)
        nic.cover_peers(list(namespaces.values()))
    return slots


def _raise_file_limit() -> None:
    """A host takes four file descriptors and each client some more; the usual soft limit of 1,024 is soon reached."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


def _later(action: Callable[[], None]) -> None:
    asyncio.get_running_loop().call_later(GRACE_SECONDS, action)


def _shared(nic: Nic, engine: Engine, config: NicConfig) -> Shared:
    return Shared(
        engine=engine,
        arena=Ranges("bytes of registered memory", config.memory_bytes // mmap.PAGESIZE * mmap.PAGESIZE, mmap.PAGESIZE),
        arena_fd=nic.map_fd("arena"),
        arena_bytes=nic.arena_bytes,
        transports=nic.transports,
        qps_fd=bpf_syscall.read_only_map(nic.map_fd("qps")),
        qp_slots=nic.defines["NIC_MAX_QPS"],
        qpns=SlotNumbers("queue pairs", nic.defines["NIC_MAX_QPS"], QPN_BITS),
        keys=SlotNumbers("memory keys", nic.defines["NIC_MAX_REGIONS"], 32),
        rqs=Ranges("receive queues", nic.defines["NIC_MAX_RQS"]),
        receives=Ranges("receives", nic.defines["NIC_MAX_RECVS"]),
        config=config,
        later=_later,
    )


async def _serve(shared: Shared, slots: dict[str, int], ready: Callable[[], None]) -> None:
    """Serves all hosts' sockets until SIGTERM or SIGINT."""
    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    run_dir = Path(shared.config.run_dir)
    run_dir.mkdir(parents=True, exist_ok=True)
    servers: list[HostServer] = []
    try:
        for host in shared.config.hosts:
            session = functools.partial(Session, shared, host, slots[host.name])
            servers.append(HostServer(run_dir / f"{host.name}{SOCKET_SUFFIX}", session))
            servers[-1].listen()
        ready()
        await stop.wait()
    finally:
        for server in servers:
            await server.close()


def run(config: NicConfig, ready: Callable[[], None]) -> None:
    """Brings everything up, serves until told to stop, and takes everything down in reverse."""
    _raise_file_limit()
    with contextlib.ExitStack() as stack:
        nic = stack.enter_context(
            Nic(
                NicSizes(
                    memory_bytes=config.memory_bytes,
                    hosts=len(config.hosts),
                    queue_pairs=config.queue_pairs,
                    regions=config.regions,
                    receive_queues=config.receive_queues,
                    receives=config.receives,
                ),
                transports=(config.transport, *config.transports),
                check_icrc=config.check_icrc,
            )
        )
        engine = Engine(nic)
        stack.callback(engine.close)
        if config.exit_with_parent:
            engine.die_with_parent()
        shared = _shared(nic, engine, config)
        slots = attach_hosts(nic, engine, config)
        engine.start(failed=lambda: os.kill(os.getpid(), signal.SIGTERM))
        asyncio.run(_serve(shared, slots, ready))
        engine.check()


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m rdma.daemon", description="The RDMA agent of all hosts of a lab.")
    parser.add_argument("--config", type=Path, required=True, help="nic.json")
    parser.add_argument("--exit-with-parent", action="store_true", help="end when the process that started this does")
    options = parser.parse_args(arguments)
    logging.basicConfig(stream=sys.stderr, format="%(name)s: %(message)s")
    try:
        config = load(options.config)
        if options.exit_with_parent:
            config = dataclasses.replace(config, exit_with_parent=True)
        run(config, lambda: print("ready", flush=True))
    except ConfigError as error:
        print(f"error: {error}", file=sys.stderr)
        return EXIT_USAGE
    except (DaemonError, NicError, EngineError, BuildError, OSError) as error:
        print(f"error: {error}", file=sys.stderr)
        return EXIT_FAILED
    return EXIT_OK


if __name__ == "__main__":
    sys.exit(main())

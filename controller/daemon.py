"""`python -m controller.daemon --config FILE`: the controller of a laboratory, a process of its own.

It says `ready` with what it did as JSON, on one line, when all switches hold what they should, and stays. It may end or
be killed at any time: switches go on by themselves, and the next one takes over from what they hold.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import dataclasses
import gc
import json
import os
import signal
import sys
from dataclasses import dataclass
from ipaddress import IPv4Network
from pathlib import Path
from typing import Any

from controller.control import InstallReport, Program, read_schema
from controller.decisions import DecisionLog
from controller.errors import ControllerError
from controller.keeper import Keeper
from controller.load_balancing import Balancing
from controller.overrides import Override
from controller.policy import Policy
from controller.ports import Marking
from controller.targets import Target
from mininet_topos.topology import Topology

EXIT_OK, EXIT_FAILED = 0, 1
READY = "ready "

# Objects: entries are in no cycles, and looking for some costs a part of every repair.
_GC_THRESHOLD = 100_000


@dataclass(frozen=True, slots=True)
class Config:
    """topology: a file as `Topology.to_json` writes it. log: see `controller.decisions`. lab_pid: the process whose end
    is the laboratory's, and so the controller's; 0 for none."""

    topology: Path
    program: Program
    targets: tuple[Target, ...]
    policy: Policy
    log: Path
    lab_pid: int = 0

    def to_json(self) -> str:
        document = dataclasses.asdict(self)
        return json.dumps(document, indent=1, default=str) + "\n"

    @classmethod
    def from_json(cls, text: str) -> Config:
        """Reads what `to_json` wrote; KeyError, TypeError or ValueError for anything else."""
        document: dict[str, Any] = json.loads(text)
        return cls(
            topology=Path(document["topology"]),
            program=Program(**{name: Path(path) for name, path in document["program"].items()}),
            targets=tuple(Target(**target) for target in document["targets"]),
            policy=_policy(document["policy"]),
            log=Path(document["log"]),
            lab_pid=int(document["lab_pid"]),
        )


def _policy(document: dict[str, Any]) -> Policy:
    overrides = tuple(
        Override(each["switch"], IPv4Network(each["destination"]), tuple(each["ports"]))
        for each in document["overrides"]
    )
    nested = {
        "marking": Marking(**document["marking"]),
        "balancing": Balancing(**document["balancing"]),
        "weights": tuple(document["weights"]),
        "overrides": overrides,
    }
    return Policy(**{**document, **nested})


def ready_line(report: InstallReport) -> str:
    return READY + json.dumps(dataclasses.asdict(report))


def read_ready_line(line: str) -> InstallReport | None:
    """What a line of the daemon's output says, if it is the one."""
    return InstallReport(**json.loads(line.removeprefix(READY))) if line.startswith(READY) else None


async def _run(config: Config, wait_for_all: bool) -> None:
    topology = Topology.from_json(config.topology.read_text())
    log = DecisionLog(config.log)
    keeper = Keeper(topology, config.targets, read_schema(config.program), config.policy, log)
    loop = asyncio.get_running_loop()
    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    if config.lab_pid:
        with contextlib.suppress(ProcessLookupError):
            loop.add_reader(os.pidfd_open(config.lab_pid), stop.set)
    log.add("start", f"controller {os.getpid()} of {topology.name or 'a topology'}, {len(config.targets)} switches")
    work = asyncio.create_task(keeper.run(wait_for_all))
    tell = asyncio.create_task(_tell_ready(keeper, log))
    ended = asyncio.create_task(stop.wait())
    done, _ = await asyncio.wait((work, ended), return_when=asyncio.FIRST_COMPLETED)
    for task in (work, tell, ended):
        task.cancel()
    if work in done:
        work.result()
    log.add("stop", f"controller {os.getpid()} ends; switches go on by themselves")
    log.close()


async def _tell_ready(keeper: Keeper, log: DecisionLog) -> None:
    await keeper.settled.wait()
    report = keeper.report
    log.add(
        "start",
        f"{report.switches} switches hold {report.verified} entries, read back equal; {report.written} written now",
        switches=report.switches,
        entries=report.verified,
        written=report.written,
    )
    print(ready_line(report), flush=True)


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="controller.daemon", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--config", type=Path, required=True, help="as controller.daemon.Config writes it")
    parser.add_argument("--wait-for-all", action="store_true", help="write nothing before every switch has come up")
    options = parser.parse_args(argv)
    gc.set_threshold(_GC_THRESHOLD)
    try:
        config = Config.from_json(options.config.read_text())
        asyncio.run(_run(config, options.wait_for_all))
    except (OSError, KeyError, TypeError, ValueError) as error:
        print(f"{options.config}: {error}", file=sys.stderr)
        return EXIT_FAILED
    except ControllerError as error:
        print(error, file=sys.stderr)
        return EXIT_FAILED
    return EXIT_OK


if __name__ == "__main__":
    sys.exit(main())

"""`python -m mininet_topos.mn_controller TOPOLOGY P4INFO JSON`: the controller of a network that `mn` made.

It ends with the process that started it, and keeps its log beside the topology.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

from controller import daemon
from controller.control import Program
from controller.policy import Policy
from controller.targets import targets_of
from mininet_topos.topology import Topology


def main(arguments: list[str]) -> int:
    topology, p4info, json = map(Path, arguments)
    config = daemon.Config(
        topology=topology,
        program=Program(p4info, json),
        targets=targets_of(Topology.from_json(topology.read_text())),
        policy=Policy(),
        log=topology.with_name("controller.log"),
        lab_pid=os.getppid(),
    )
    file = topology.with_name("controller.json")
    file.write_text(config.to_json())
    return daemon.main(["--config", str(file), "--wait-for-all"])


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

"""`plait launch`: a laboratory that stays up while its command line is open."""

import sys
from pathlib import Path
from typing import Annotated

import typer

from lab.topology_options import topology_command
from mininet_topos.catalogue import Choice


def launch(
    chosen: Choice,
    program: Annotated[
        Path | None, typer.Option(help=r"P4 program of the switches.  \[default: p4src/ecmp.p4]")
    ] = None,
    target: Annotated[
        str, typer.Option(help="What runs the P4 program: `plait` (the fast switch) or `bmv2`.")
    ] = "plait",
    links: Annotated[
        str, typer.Option(help="Links between switches: `memory` (fast) or `veth` (each visible to tcpdump).")
    ] = "memory",
    nic: Annotated[
        str, typer.Option(help="Transport of the hosts' NICs: gbn, irn, mprdma, eunomia, ideal; several with commas.")
    ] = "gbn",
    seed: Annotated[
        int, typer.Option(min=0, max=2**64 - 1, help="Seed of hashes and losses, and of a random topology.")
    ] = 1,
    routing: Annotated[
        str, typer.Option(help="`shortest` paths, or `up-down`: up and then only down a tree of layers.")
    ] = "shortest",
    overrides: Annotated[
        Path | None, typer.Option(help="TOML file of routes that are to be otherwise; see docs/controller.md.")
    ] = None,
    nic_memory: Annotated[
        int, typer.Option(min=1, max=10**6, help="Memory for RDMA regions, MB, all hosts together.")
    ] = 256,
) -> None:
    """Brings a laboratory up and opens Mininet's command line on it.

    Example: plait launch leafspine --spines 2 --leaves 4 --program p4src/spray.p4 --nic irn
    """
    from lab.config import LabConfig
    from lab.controller_process import policy_from_options
    from lab.emulation import Emulation
    from lab.nics import parse_transports
    from lab.prompt import Prompt
    from mininet_topos.topology import interface_name

    config = LabConfig.from_options(
        chosen,
        links=links,
        target=target,
        program=program,
        seed=seed,
        nic_memory_bytes=nic_memory * 10**6,
        transports=parse_transports(nic),
    )
    policy = policy_from_options(seed, routing, overrides, config.topology())
    with Emulation(config, _talk, policy, controller_stays=True) as lab:
        first = lab.topology.host_port(lab.topology.hosts[0].name)
        interface = interface_name(first.node.name, first.node_port)
        _talk(
            f"from another terminal: plait table list s1, plait shell s1, tcpdump -ni {interface}, "
            f"plait controller log; `exit` ends it all"
        )
        Prompt(lab, _talk)


def _talk(text: str) -> None:
    print(text, file=sys.stderr)


app = topology_command(launch)

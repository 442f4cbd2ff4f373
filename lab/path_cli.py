"""`plait path`: the path that packets take through the running laboratory, with the queue that each hop found."""

import asyncio
import json
from dataclasses import asdict
from typing import Annotated

import typer

from controller.targets import Target
from lab import units
from lab.errors import PlaitError
from lab.running import running_lab, running_topology

HostArgument = Annotated[str, typer.Argument(help="Host, such as h1, or its address.")]
JsonOption = Annotated[bool, typer.Option("--json", help="Print the result as JSON on stdout.")]


def path(
    src: HostArgument,
    dst: HostArgument,
    sport: Annotated[int | None, typer.Option(min=0, max=65535, help="UDP source port.  [default: any]")] = None,
    psn: Annotated[int | None, typer.Option(min=0, max=2**24 - 1, help="Sequence number.  [default: any]")] = None,
    count: Annotated[int, typer.Option(min=1, max=10_000, help="Stop after the paths of this many packets.")] = 1,
    wait: Annotated[str, typer.Option(help="Stop after this time.")] = "10s",
    as_json: JsonOption = False,
) -> None:
    """The path of RoCEv2 packets from SRC to DST, told by copies that the switches make; the packets are not changed.

    Example: plait path h1 h8 --count 3
    """
    from controller.tracing import Selection
    from lab.path_trace import collect, complete, find_host, text
    from wire.codes import ROCEV2_UDP_PORT

    lab, topology = running_lab(), running_topology()
    source, destination = find_host(topology, src), find_host(topology, dst)
    selection = Selection(source.address, destination.address, ROCEV2_UDP_PORT, sport, psn)
    targets = [Target(name, record.address, record.device_id) for name, record in lab.switches.items()]
    patience_s = units.parse_time(wait) / 1e9
    found = asyncio.run(collect(targets, selection, topology, count, patience_s))
    if not found:
        raise PlaitError(f"no chosen packet from {source.name} to {destination.name} in {wait}.")
    if as_json:
        print(json.dumps([{**asdict(each), "complete": complete(each)} for each in found]))
    else:
        print("\n\n".join(text(each, topology) for each in found))

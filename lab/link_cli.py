"""`plait link …`: the links of the running laboratory, and their failures."""

from dataclasses import dataclass
from typing import Annotated

import typer

from lab.arguments import JsonOption, show
from lab.completion import nodes
from lab.running import running_lab, running_topology
from lab.units import format_rate

app = typer.Typer(no_args_is_help=True, help="List links, take them down and up again.")

End = Annotated[
    str, typer.Argument(help="Node, such as s1; or one of its ports, s1:3 or s1-eth3.", autocompletion=nodes)
]


@dataclass(frozen=True, slots=True)
class LinkRow:
    a: str
    b: str
    rate: str
    delay_us: float
    loss: float
    up: bool
    why: str


@app.command("list")
def list_links(as_json: JsonOption = False) -> None:
    """All links: ends, rate, one-way delay, loss, and whether they are up.

    Example: plait link list
    """
    from lab import links

    rows = [
        LinkRow(
            f"{state.link.a}:{state.link.port_a}",
            f"{state.link.b}:{state.link.port_b}",
            format_rate(state.link.rate_bps),
            state.link.delay_ns / 1000,
            state.link.loss,
            state.up,
            state.why,
        )
        for state in links.states(running_lab(), running_topology()).values()
    ]
    show(rows, as_json)


@app.command("down")
def down(a: End, b: End, as_json: JsonOption = False) -> None:
    """Takes the links between two nodes down: nothing passes, and both ends know.

    Example: plait link down s1 s5
    """
    _set(a, b, False, as_json)


@app.command("up")
def up(a: End, b: End, as_json: JsonOption = False) -> None:
    """Takes the links between two nodes up again.

    Example: plait link up s1 s5
    """
    _set(a, b, True, as_json)


@dataclass(frozen=True, slots=True)
class ChangeRow:
    link: str
    up: bool


def _set(a: str, b: str, wanted: bool, as_json: bool) -> None:
    from lab import links

    lab, topology = running_lab(), running_topology()
    changed = links.chosen(topology, a, b)
    for link in changed:
        links.set_up(lab, topology, link, wanted)
    show([ChangeRow(link.name, wanted) for link in changed], as_json)

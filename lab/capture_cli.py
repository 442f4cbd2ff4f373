"""`plait capture`: the packets of any link of the running laboratory as they pass, links in memory too."""

from typing import Annotated

import typer

from lab.completion import links


def capture(
    link: Annotated[
        str,
        typer.Argument(
            help="Link: s1-s5 between two nodes, h1 for a host's, or one end as s1-eth2.", autocompletion=links
        ),
    ],
    expression: Annotated[
        list[str] | None, typer.Argument(metavar="[FILTER]...", help="As tcpdump takes it, such as udp port 4791.")
    ] = None,
    write: Annotated[
        str | None, typer.Option("--write", "-w", help="Write pcap to a file, or to stdout with `-`.")
    ] = None,
    count: Annotated[int | None, typer.Option("--count", "-c", min=1, help="Stop after this many packets.")] = None,
) -> None:
    """Shows a link's packets, both directions, until Ctrl-C: as tcpdump prints them, or as pcap for other tools.

    Example: plait capture h1 --count 5 udp port 4791

    For Wireshark: plait capture s1-s5 -w - | wireshark -k -i -
    """
    from lab.capture import show_link

    raise typer.Exit(show_link(link, " ".join(expression or ()), write, count))

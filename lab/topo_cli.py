"""`plait topo`: look at topologies, draw, convert and check them, without a laboratory."""


import typer

from lab.topology_options import topology_command
from mininet_topos.catalogue import Choice

app = typer.Typer(no_args_is_help=True, help="Topologies without a laboratory: properties, pictures, files.")


def export(chosen: Choice) -> None:
    """Writes a topology as a file of the format that you name.

    Example: plait topo export leafspine --spines 4 --leaves 8 > net.json
    """
    print(chosen.build().to_json(), end="")


app.add_typer(topology_command(export), name="export")

"""Commands that take a topology: `plait launch leafspine --spines 4`, `plait topo show net.json`.

Each such command is a group with a sub-command for every topology of `mininet_topos.catalogue`, made from its
parameters, so that `--help` tells exactly those; any other word is a file.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Annotated, Any, get_type_hints

import typer
from typer.core import TyperGroup

from mininet_topos.catalogue import FILE_PARAMETERS, GENERATORS, Choice, Generator, Parameter, find_generator

# What a command does with the topology that was chosen, and with its own options.
Work = Callable[..., None]

_TYPES: dict[str, type] = {"count": int, "number": float, "rate": str, "time": str, "text": str}
_PANEL = "Topology"
_FILES = "Instead of a topology's name: a file, in any format of `plait topo export`. Its options: "


def topology_command(work: Work) -> typer.Typer:
    """A group whose sub-commands call `work(choice, **options)`; options and help are those of `work`.

    `seed` may be an option of `work` and a parameter of a topology: it is given once and goes to both.
    """

    class Topologies(TyperGroup):
        def list_commands(self, ctx: Any) -> list[str]:
            return list(GENERATORS)

        def get_command(self, ctx: Any, cmd_name: str) -> Any:
            app = typer.Typer(add_completion=False, rich_markup_mode="rich")
            generator = find_generator(cmd_name)
            app.command(cmd_name, help=_help(work, generator), short_help=generator.summary)(_bound(work, generator))
            return typer.main.get_command(app)

    files = _FILES + ", ".join(f"--{parameter.name}" for parameter in FILE_PARAMETERS) + "."
    return typer.Typer(
        cls=Topologies,
        no_args_is_help=True,
        help=inspect.getdoc(work),
        epilog=files,
        subcommand_metavar="TOPOLOGY|FILE [OPTIONS]",
        rich_markup_mode="rich",
    )


def _help(work: Work, generator: Generator) -> str:
    text = (inspect.getdoc(work) or "").partition("\n")[0]
    return f"{text}\n\n{generator.name}: {generator.summary}."


def _bound(work: Work, generator: Generator) -> Callable[..., None]:
    """`work` for one topology, with a signature that Typer makes options of."""
    hints = get_type_hints(work, include_extras=True)
    own = [
        parameter.replace(annotation=hints[parameter.name])
        for parameter in list(inspect.signature(work).parameters.values())[1:]
    ]
    shared = {parameter.name for parameter in own}
    both = shared & {parameter.name for parameter in generator.parameters}
    assert both <= {"seed"}, f"{both} would mean two things"
    added = [_option(parameter) for parameter in generator.parameters if parameter.name not in shared]

    def run(**options: Any) -> None:
        values = {p.name: options[p.name] for p in generator.parameters if options[p.name] is not None}
        work(Choice(generator, generator.read(values)), **{name: options[name] for name in shared})

    parameters = [*added, *(each.replace(kind=inspect.Parameter.KEYWORD_ONLY) for each in own)]
    run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    run.__annotations__ = {each.name: each.annotation for each in parameters}
    return run


def _option(parameter: Parameter) -> inspect.Parameter:
    shown = "" if parameter.default is None else f"  [default: {parameter.default}]"
    # Brackets are not Rich's markup here.
    text = f"{parameter.help}{shown}".replace("[", r"\[")
    option = typer.Option(help=text, show_default=False, rich_help_panel=_PANEL)
    kind = inspect.Parameter.KEYWORD_ONLY
    annotation: Any = Annotated[_TYPES[parameter.kind] | None, option]
    return inspect.Parameter(parameter.name, kind, default=None, annotation=annotation)

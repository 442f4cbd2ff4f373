"""`plait multicast …` and `plait clone …`: ports to which packets are copied."""

from typing import Annotated, Any

import typer

from lab.arguments import DryRun, JsonOption, Switch, names_for, run, show, target_of, write
from lab.completion import nodes

multicast = typer.Typer(no_args_is_help=True, help="Multicast groups.")
clone = typer.Typer(no_args_is_help=True, help="Clone sessions.")

Group = Annotated[int, typer.Argument(help="Number of the group, from 1.")]
Session = Annotated[int, typer.Argument(help="Number of the session, from 1.")]
Ports = Annotated[
    list[str],
    typer.Argument(help="Ports: 3, or h1 (the port to it), or 3#1 for instance 1 (egress_rid).", autocompletion=nodes),
]
Queue = Annotated[int, typer.Option(min=0, help="Queue of the copies (class of service).")]
Cut = Annotated[int, typer.Option("--bytes", min=0, help="Copies hold this many bytes at the most; 0 is all.")]


@multicast.command("list")
def list_groups(switch: Switch, as_json: JsonOption = False) -> None:
    """The multicast groups of a switch.

    Example: plait multicast list s1
    """
    from controller import replication

    show(run(replication.multicast_list(target_of(switch))), as_json)


@multicast.command("add")
def add_group(switch: Switch, group: Group, ports: Ports, dry_run: DryRun = False, as_json: JsonOption = False) -> None:
    """Makes a group of ports.

    Example: plait multicast add s1 7 1 2#1
    """
    _multicast("add", switch, group, ports, dry_run, as_json)


@multicast.command("set")
def change_group(
    switch: Switch, group: Group, ports: Ports, dry_run: DryRun = False, as_json: JsonOption = False
) -> None:
    """Gives a group other ports.

    Example: plait multicast set s1 7 1 2 3
    """
    _multicast("set", switch, group, ports, dry_run, as_json)


@multicast.command("del")
def delete_group(switch: Switch, group: Group, dry_run: DryRun = False, as_json: JsonOption = False) -> None:
    """Deletes a group.

    Example: plait multicast del s1 7
    """
    _multicast("del", switch, group, [], dry_run, as_json)


def _multicast(verb: str, switch: str, group: int, ports: list[str], dry_run: bool, as_json: bool) -> None:
    from controller import replication

    names = names_for(switch)
    write(switch, replication.multicast_write, verb, group, ports, names=names, dry_run=dry_run, as_json=as_json)


@clone.command("list")
def list_sessions(switch: Switch, as_json: JsonOption = False) -> None:
    """The clone sessions of a switch.

    Example: plait clone list s1
    """
    from controller import replication

    show(run(replication.clone_list(target_of(switch))), as_json)


@clone.command("add")
def add_session(
    switch: Switch, session: Session, ports: Ports, queue: Queue = 0, size: Cut = 0, dry_run: DryRun = False,
    as_json: JsonOption = False,
) -> None:  # fmt: skip
    """Makes a session that copies packets to ports.

    Example: plait clone add s1 5 510 --bytes 128
    """
    _clone("add", switch, session, ports, queue=queue, bytes_=size, dry_run=dry_run, as_json=as_json)


@clone.command("set")
def change_session(
    switch: Switch, session: Session, ports: Ports, queue: Queue = 0, size: Cut = 0, dry_run: DryRun = False,
    as_json: JsonOption = False,
) -> None:  # fmt: skip
    """Replaces a session's ports, queue and length.

    Example: plait clone set s1 5 1 2
    """
    _clone("set", switch, session, ports, queue=queue, bytes_=size, dry_run=dry_run, as_json=as_json)


@clone.command("del")
def delete_session(switch: Switch, session: Session, dry_run: DryRun = False, as_json: JsonOption = False) -> None:
    """Deletes a session.

    Example: plait clone del s1 5
    """
    _clone("del", switch, session, [], dry_run=dry_run, as_json=as_json)


def _clone(verb: str, switch: str, session: int, ports: list[str], **more: Any) -> None:
    from controller import replication

    write(switch, replication.clone_write, verb, session, ports, names=names_for(switch), **more)

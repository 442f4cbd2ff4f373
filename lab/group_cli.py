"""`plait group …`: action profiles and selectors of any program: members, and groups of members."""

import json
from typing import Annotated

import typer

from controller import render
from lab.arguments import DryRun, JsonOption, Switch, names_for, run, show, target_of, terminal_width, write
from lab.completion import named

app = typer.Typer(no_args_is_help=True, help="Members and groups of action profiles and selectors.")

_PROFILES = named("action_profiles")
Profile = Annotated[
    str, typer.Argument(help="Action profile, by any unique end of its name.", autocompletion=_PROFILES)
]
Member = Annotated[int, typer.Argument(help="Number of the member, from 1.")]
Group = Annotated[int, typer.Argument(help="Number of the group, from 1.")]
Action = Annotated[str, typer.Option("--action", "-a", help="Such as 'forward(port=3)'.")]
Members = Annotated[
    list[str] | None, typer.Argument(help="Members: 1, or 1*3 with weight 3, or 1@2 watching port 2 (or 1@h1).")
]
MaxSize = Annotated[int, typer.Option(min=0, help="Largest sum of weights; 0 is the program's.")]


@app.command("list")
def list_profiles(switch: Switch, as_json: JsonOption = False) -> None:
    """The action profiles of the switch's program, with the numbers of members and groups.

    Example: plait group list s1
    """
    from controller import groups

    show(run(groups.profile_list(target_of(switch))), as_json)


@app.command("show")
def show_profile(
    switch: Switch,
    profile: Annotated[
        str | None, typer.Argument(help="Action profile.  [default: all]", show_default=False, autocompletion=_PROFILES)
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Members with their actions, and groups with their members.

    Example: plait group show s1 action_selector
    """
    from controller import groups

    members, found = run(groups.profile_show(target_of(switch), profile))
    if as_json:
        print(json.dumps({"members": render.as_json(members), "groups": render.as_json(found)}))
        return
    print(render.as_text(members, terminal_width()) if members else "no members")
    print(f"\n{render.as_text(found, terminal_width())}" if found else "no groups")


@app.command("add")
def add(
    switch: Switch, profile: Profile, group: Group, members: Members = None, max_size: MaxSize = 0,
    dry_run: DryRun = False, as_json: JsonOption = False,
) -> None:  # fmt: skip
    """Makes a group of members.

    Example: plait group add s1 action_selector 1 1 2*3
    """
    _group("add", switch, profile, group, members, max_size, dry_run, as_json)


@app.command("set")
def change(
    switch: Switch, profile: Profile, group: Group, members: Members = None, max_size: MaxSize = 0,
    dry_run: DryRun = False, as_json: JsonOption = False,
) -> None:  # fmt: skip
    """Gives a group other members.

    Example: plait group set s1 action_selector 1 2 3@h1
    """
    _group("set", switch, profile, group, members, max_size, dry_run, as_json)


@app.command("del")
def delete(
    switch: Switch, profile: Profile, group: Group, dry_run: DryRun = False, as_json: JsonOption = False
) -> None:
    """Deletes a group; its members stay.

    Example: plait group del s1 action_selector 1
    """
    _group("del", switch, profile, group, None, 0, dry_run, as_json)


def _group(
    verb: str, switch: str, profile: str, group: int, members: list[str] | None, max_size: int, dry_run: bool,
    as_json: bool,
) -> None:  # fmt: skip
    from controller import groups

    write(
        switch, groups.group_write, verb, profile, group, members or [], max_size,
        names=names_for(switch), dry_run=dry_run, as_json=as_json,
    )  # fmt: skip


@app.command("add-member")
def add_member(
    switch: Switch, profile: Profile, member: Member, action: Action, dry_run: DryRun = False,
    as_json: JsonOption = False,
) -> None:  # fmt: skip
    """Makes a member: an action with its arguments.

    Example: plait group add-member s1 action_selector 1 -a 'forward(port=h1)'
    """
    _member("add", switch, profile, member, action, dry_run, as_json)


@app.command("set-member")
def change_member(
    switch: Switch, profile: Profile, member: Member, action: Action, dry_run: DryRun = False,
    as_json: JsonOption = False,
) -> None:  # fmt: skip
    """Gives a member another action, in all groups and entries that use it.

    Example: plait group set-member s1 action_selector 1 -a 'forward(port=2)'
    """
    _member("set", switch, profile, member, action, dry_run, as_json)


@app.command("del-member")
def delete_member(
    switch: Switch, profile: Profile, member: Member, dry_run: DryRun = False, as_json: JsonOption = False
) -> None:
    """Deletes a member that nothing uses.

    Example: plait group del-member s1 action_selector 1
    """
    _member("del", switch, profile, member, None, dry_run, as_json)


def _member(
    verb: str, switch: str, profile: str, member: int, action: str | None, dry_run: bool, as_json: bool
) -> None:
    from controller import groups

    write(
        switch, groups.member_write, verb, profile, member, action,
        names=names_for(switch), dry_run=dry_run, as_json=as_json,
    )  # fmt: skip

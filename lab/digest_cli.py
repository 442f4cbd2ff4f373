"""`plait digest …`: what programs tell their controller."""

import json
from contextlib import aclosing
from typing import Annotated, Any

import typer

from lab.arguments import DryRun, JsonOption, Switch, run, show, target_of, write
from lab.completion import named
from lab.errors import PlaitError
from lab.units import parse_time

app = typer.Typer(no_args_is_help=True, help="Turn digests on and off, and listen to them.")

Digest = Annotated[str, typer.Argument(help="Digest, by any unique end of its name.", autocompletion=named("digests"))]


@app.command("list")
def list_digests(switch: Switch, as_json: JsonOption = False) -> None:
    """The digests of the switch's program, and which are on.

    Example: plait digest list s1
    """
    from controller import digests

    show(run(digests.digest_list(target_of(switch))), as_json)


@app.command("on")
def turn_on(
    switch: Switch,
    digest: Digest,
    at_most: Annotated[int, typer.Option(min=1, help="Values in a list at the most.")] = 1,
    wait: Annotated[str, typer.Option(help="How long values may wait for a list to fill.")] = "0ms",
    again: Annotated[str, typer.Option(help="A value is told again this long after, unless acknowledged.")] = "1s",
    dry_run: DryRun = False,
    as_json: JsonOption = False,
) -> None:
    """Has the switch tell a digest's values.

    Example: plait digest on 127.0.0.1:9559 learn_t --at-most 10 --wait 100ms
    """
    from controller import digests

    times = (parse_time(wait), parse_time(again))
    write(switch, digests.digest_on, digest, at_most, *times, dry_run=dry_run, as_json=as_json)


@app.command("off")
def turn_off(switch: Switch, digest: Digest, dry_run: DryRun = False, as_json: JsonOption = False) -> None:
    """Has the switch be silent again.

    Example: plait digest off 127.0.0.1:9559 learn_t
    """
    from controller import digests

    write(switch, digests.digest_off, digest, dry_run=dry_run, as_json=as_json)


@app.command("listen")
def listen(
    switch: Switch,
    digest: Digest,
    count: Annotated[int | None, typer.Option(min=1, help="Stop after this many lists.")] = None,
    wait: Annotated[str | None, typer.Option(help="Stop after this time, such as 10s.")] = None,
    as_json: JsonOption = False,
) -> None:
    """Prints what a digest tells, a line a value, until Ctrl-C.

    Example: plait digest listen 127.0.0.1:9559 learn_t --wait 100ms
    """
    patience_s = parse_time(wait) / 1e9 if wait else None
    heard = run(_listen(switch, digest, count, patience_s, as_json))
    if not heard and patience_s is not None:
        raise PlaitError(f"{switch} told nothing of {digest} in {wait}.")


async def _listen(switch: str, digest: str, count: int | None, patience_s: float | None, as_json: bool) -> int:
    import asyncio
    from contextlib import suppress

    from controller import digests

    heard = 0
    told: Any = digests.listen(target_of(switch), digest)
    with suppress(TimeoutError):
        async with asyncio.timeout(patience_s), aclosing(told):
            async for each in told:
                for value in each.values:
                    print(json.dumps({"digest": each.digest, "value": value}) if as_json else _text(value), flush=True)
                heard += 1
                if heard == count:
                    break
    return heard


def _text(value: Any) -> str:
    if isinstance(value, dict):
        return "  ".join(f"{name}={_text(member)}" for name, member in value.items())
    return str(value)

"""`plait counter …`, `plait meter …`, `plait register …`: cells of any program, by index or by their entries' match."""

from typing import Annotated

import typer

from lab.arguments import DryRun, JsonOption, Match, Priority, Switch, names_for, run, show, target_of, write
from lab.completion import named
from lab.errors import UsageError
from lab.units import parse_packet_rate, parse_size

counter = typer.Typer(no_args_is_help=True, help="Read, set and reset counters, direct ones too.")
meter = typer.Typer(no_args_is_help=True, help="Read and set the rates of meters, direct ones too.")
register = typer.Typer(
    no_args_is_help=True, help="Read and write registers (plait-switch; BMv2 has none over P4Runtime)."
)

_NAME = "{}, by any unique end of its name."
Counter = Annotated[
    str, typer.Argument(help=_NAME.format("Counter"), autocompletion=named("counters", "direct_counters"))
]
Meter = Annotated[str, typer.Argument(help=_NAME.format("Meter"), autocompletion=named("meters", "direct_meters"))]
Register = Annotated[str, typer.Argument(help=_NAME.format("Register"), autocompletion=named("registers"))]
Index = Annotated[int | None, typer.Option("--index", "-i", help="One cell of an array.  [default: all]")]
Zeros = Annotated[bool, typer.Option("--zeros", help="Also cells that hold nothing.")]
Rate = Annotated[str | None, typer.Option(help="Committed rate: 125KB or 1000 (bytes or packets) per second.")]


@counter.command("list")
def list_counters(switch: Switch, as_json: JsonOption = False) -> None:
    """The counters of the switch's program.

    Example: plait counter list s1
    """
    from controller import arrays

    show(run(arrays.counter_list(target_of(switch))), as_json)


@counter.command("show")
def show_counter(
    switch: Switch, counter: Counter, index: Index = None, zeros: Zeros = False, as_json: JsonOption = False
) -> None:
    """The cells of a counter that counted anything.

    Example: plait counter show s1 port_tx
    """
    from controller import arrays

    show(run(arrays.counter_show(target_of(switch), counter, index, zeros)), as_json)


@counter.command("set")
def set_counter(
    switch: Switch, counter: Counter, match: Match = None, index: Index = None, priority: Priority = None,
    packets: Annotated[int, typer.Option(help="Packets to go on from.")] = 0,
    size: Annotated[int, typer.Option("--bytes", help="Bytes to go on from.")] = 0,
    dry_run: DryRun = False, as_json: JsonOption = False,
) -> None:  # fmt: skip
    """Sets a cell: of an array by --index, of a direct counter by the match of its entry.

    Example: plait counter set s1 port_tx --index 1 --packets 10 --bytes 1000
    """
    from controller import arrays

    if index is None and not match:
        raise UsageError("which cell? Give --index, or FIELD=VALUE for a direct counter; `reset` zeroes all.")
    write(
        switch, arrays.counter_set, counter, index, packets, size, match or [], priority,
        names=names_for(switch), dry_run=dry_run, as_json=as_json,
    )  # fmt: skip


@counter.command("reset")
def reset_counter(
    switch: Switch, counter: Counter, match: Match = None, index: Index = None, priority: Priority = None,
    dry_run: DryRun = False, as_json: JsonOption = False,
) -> None:  # fmt: skip
    """Sets a counter's cells to zero, all of them or one.

    Example: plait counter reset s1 port_tx --index 1
    """
    from controller import arrays

    write(
        switch, arrays.counter_set, counter, index, 0, 0, match or [], priority,
        names=names_for(switch), dry_run=dry_run, as_json=as_json,
    )  # fmt: skip


@meter.command("list")
def list_meters(switch: Switch, as_json: JsonOption = False) -> None:
    """The meters of the switch's program.

    Example: plait meter list s1
    """
    from controller import arrays

    show(run(arrays.meter_list(target_of(switch))), as_json)


@meter.command("show")
def show_meter(
    switch: Switch, meter: Meter, index: Index = None,
    unset: Annotated[bool, typer.Option("--all", help="Also cells without limit.")] = False,
    as_json: JsonOption = False,
) -> None:  # fmt: skip
    """The cells of a meter that have a limit: rates per second, bursts, in the meter's unit.

    Example: plait meter show 127.0.0.1:9559 port_meter
    """
    from controller import arrays

    show(run(arrays.meter_show(target_of(switch), meter, index, unset)), as_json)


@meter.command("set")
def set_meter(
    switch: Switch, meter: Meter, match: Match = None, index: Index = None, priority: Priority = None,
    cir: Rate = None,
    cburst: Annotated[str | None, typer.Option(help="Committed burst, such as 64KB or 100.")] = None,
    pir: Annotated[str | None, typer.Option(help="Peak rate.  [default: the committed rate]")] = None,
    pburst: Annotated[str | None, typer.Option(help="Peak burst.  [default: the committed burst]")] = None,
    dry_run: DryRun = False, as_json: JsonOption = False,
) -> None:  # fmt: skip
    """Sets the rates of a cell (RFC 2698): by --index, or of a direct meter by the match of its entry.

    Example: plait meter set 127.0.0.1:9559 port_meter --index 1 --cir 125KB --cburst 3000
    """
    from controller import arrays

    if cir is None or cburst is None:
        raise UsageError("a meter needs --cir, its rate per second, and --cburst, its burst.")
    if index is None and not match:
        raise UsageError("which cell? Give --index, or FIELD=VALUE for a direct meter.")
    rates = (_amount("--cir", cir), _amount("--cburst", cburst))
    peaks = (_amount("--pir", pir) if pir else rates[0], _amount("--pburst", pburst) if pburst else rates[1])
    write(
        switch, arrays.meter_set, meter, index, (*rates, *peaks), match or [], priority,
        names=names_for(switch), dry_run=dry_run, as_json=as_json,
    )  # fmt: skip


@meter.command("reset")
def reset_meter(
    switch: Switch, meter: Meter, match: Match = None, index: Index = None, priority: Priority = None,
    dry_run: DryRun = False, as_json: JsonOption = False,
) -> None:  # fmt: skip
    """Takes the limits of a meter's cells away, of all or of one.

    Example: plait meter reset 127.0.0.1:9559 port_meter --index 1
    """
    from controller import arrays

    write(
        switch, arrays.meter_set, meter, index, None, match or [], priority,
        names=names_for(switch), dry_run=dry_run, as_json=as_json,
    )  # fmt: skip


def _amount(option: str, text: str) -> int:
    """Bytes or packets: `1500`, `64KB`, `10k`."""
    for parse in (parse_size, parse_packet_rate):
        try:
            return parse(text)
        except UsageError:
            continue
    raise UsageError(f"{option} {text!r}: write bytes, such as 64KB, or packets, such as 1000 or 10k.")


@register.command("list")
def list_registers(switch: Switch, as_json: JsonOption = False) -> None:
    """The registers of the switch's program.

    Example: plait register list s1
    """
    from controller import arrays

    show(run(arrays.register_list(target_of(switch))), as_json)


@register.command("show")
def show_register(
    switch: Switch, register: Register, index: Index = None, zeros: Zeros = False, as_json: JsonOption = False
) -> None:
    """The cells of a register that are not zero.

    Example: plait register show 127.0.0.1:9559 words --zeros
    """
    from controller import arrays

    show(run(arrays.register_show(target_of(switch), register, index, zeros)), as_json)


@register.command("set", context_settings={"ignore_unknown_options": True})
def set_register(
    switch: Switch, register: Register, value: Annotated[str, typer.Argument(help="A number, such as 7 or 0xff.")],
    index: Index = None, dry_run: DryRun = False, as_json: JsonOption = False,
) -> None:  # fmt: skip
    """Writes a cell, or without --index all cells.

    Example: plait register set 127.0.0.1:9559 words 0xff --index 3
    """
    from controller import arrays

    write(switch, arrays.register_set, register, index, value, dry_run=dry_run, as_json=as_json)


@register.command("reset")
def reset_register(
    switch: Switch, register: Register, index: Index = None, dry_run: DryRun = False, as_json: JsonOption = False
) -> None:
    """Sets cells to zero, all of them or one.

    Example: plait register reset 127.0.0.1:9559 words
    """
    from controller import arrays

    write(switch, arrays.register_set, register, index, "0", dry_run=dry_run, as_json=as_json)

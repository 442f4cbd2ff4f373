"""`plait queue …`: queues and shared buffers of the running laboratory's switches, over the fabric's control socket.

Quantities are written as people write them: `100M` bits per second, `64KB`, `50p` packets, `1/8`.
"""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
from rich.table import Table

from lab import completion
from lab.arguments import known
from lab.errors import MissingFeatureError, UsageError
from lab.running import running_lab
from lab.units import format_bytes, format_rate, parse_depth, parse_packet_rate, parse_rate, parse_size

if TYPE_CHECKING:
    from fastswitch.control import Client

app = typer.Typer(no_args_is_help=True, help="Show, limit and pause queues; share a switch's buffer; flow control.")

Switch = Annotated[
    str, typer.Argument(help="Switch of the running laboratory, such as s1.", autocompletion=completion.switches)
]
Port = Annotated[int, typer.Argument(min=0, help="Number of the port.")]
Priority = Annotated[int | None, typer.Argument(min=0, help="One queue of the port; all of them without.")]
JsonOption = Annotated[bool, typer.Option("--json", help="Print the result as JSON on stdout.")]
SocketOption = Annotated[
    Path | None, typer.Option("--socket", help="Control socket of a plait-switch that runs without a laboratory.")
]

UNLIMITED = "unlimited"
_NO_DEPTH = (1 << 63) - 1
_DROPS = ("drops_packets", "drops_bytes", "drops_shared", "drops_headroom")


def _client(switch: str, path: Path | None) -> "Client":
    from fastswitch.control import Client

    if path is not None:
        return Client(path)
    lab = running_lab()
    known("switch", switch, lab.switches)
    if lab.target == "bmv2":
        raise MissingFeatureError(
            "plait queue needs the fast switch (--target plait). BMv2 takes a queue's rate in packets per second and "
            "depth in packets over Thrift only (simple_switch_CLI: set_queue_rate, set_queue_depth); it cannot show or "
            "pause queues, limit bytes, share a buffer or do priority flow control."
        )
    from controller.defaults import RUN_DIR
    from mininet_topos.fabric import CONTROL_SOCKET

    return Client(RUN_DIR / CONTROL_SOCKET)


@app.command("list")
def list_queues(switch: Switch, as_json: JsonOption = False, socket: SocketOption = None) -> None:
    """All queues of a switch: what waits, limits, drops, pauses.

    Example: plait queue list s1
    """
    _print(_read(switch, None, None, socket), as_json)


@app.command("show")
def show(
    switch: Switch, port: Port, priority: Priority = None, as_json: JsonOption = False, socket: SocketOption = None
) -> None:
    """The queues of one port, or one of them, with drops by reason.

    Example: plait queue show s1 3
    """
    rows = _read(switch, port, priority, socket)
    if as_json:
        print(json.dumps(rows))
        return
    for row in rows:
        print(f"{switch} port {row['port']} priority {row['priority']}")
        for name, value in _details(row):
            print(f"  {name:28} {value}")


@app.command("set")
def change(
    switch: Switch,
    port: Port,
    priority: Priority = None,
    rate: Annotated[
        str | None, typer.Option(help="Bits per second, such as 100M: of the port, or of one queue at the most.")
    ] = None,
    rate_pps: Annotated[
        str | None, typer.Option(help="Packets per second of each queue, as BMv2's set_queue_rate, such as 1000.")
    ] = None,
    depth: Annotated[
        list[str] | None, typer.Option(help="What may wait in each queue: 50p packets, 64KB; give it once for each.")
    ] = None,
    reserved: Annotated[str | None, typer.Option(help="Bytes of the shared buffer that are the queue's own.")] = None,
    alpha: Annotated[str | None, typer.Option(help="Its share of the pool's free bytes, such as 1/2 or 8.")] = None,
    as_json: JsonOption = False,
    socket: SocketOption = None,
) -> None:
    """Sets rate and depth of a port's queues, or of one; `unlimited` takes a rate or a depth in bytes away.

    Example: plait queue set s1 3 --rate 100M --depth 50p
    """
    changes: dict[str, Any] = {"queue": priority}
    if rate is not None:
        changes["rate_bps"] = 0 if rate == UNLIMITED else parse_rate(rate)
    if rate_pps is not None:
        changes["rate_pps"] = 0 if rate_pps == UNLIMITED else parse_packet_rate(rate_pps)
    for text in depth or ():
        packets, size = (None, _NO_DEPTH) if text == UNLIMITED else parse_depth(text)
        changes |= {"depth_packets": packets} if packets is not None else {"depth_bytes": size}
    if reserved is not None:
        changes["reserved_bytes"] = parse_size(reserved)
    if alpha is not None:
        changes["alpha"] = alpha
    if len(changes) == 1:
        raise UsageError("nothing to set: give --rate, --rate-pps, --depth, --reserved or --alpha.")
    with _client(switch, socket) as client:
        client.queue_set(switch, port, **changes)
        _tell(client.queues(switch, port, priority), as_json)


@app.command("pause")
def pause(
    switch: Switch, port: Port, priority: Priority = None, as_json: JsonOption = False, socket: SocketOption = None
) -> None:
    """Stops serving a queue, or all of a port's; packets still enter, as far as its depth allows.

    Example: plait queue pause s1 3
    """
    with _client(switch, socket) as client:
        client.queue_hold(switch, port, hold=True, queue=priority)
        _tell(client.queues(switch, port, priority), as_json)


@app.command("resume")
def resume(
    switch: Switch, port: Port, priority: Priority = None, as_json: JsonOption = False, socket: SocketOption = None
) -> None:
    """Goes on serving what `plait queue pause` stopped.

    Example: plait queue resume s1 3
    """
    with _client(switch, socket) as client:
        client.queue_hold(switch, port, hold=False, queue=priority)
        _tell(client.queues(switch, port, priority), as_json)


@app.command("buffer")
def buffer(
    switch: Switch,
    total: Annotated[str | None, typer.Option(help="Size of the shared buffer, such as 12MB.")] = None,
    alpha: Annotated[str, typer.Option(help="Each queue's share of the pool's free bytes.")] = "1",
    reserved: Annotated[str, typer.Option(help="Bytes that are each queue's own.")] = "0",
    lossless: Annotated[str | None, typer.Option(help="Priorities with flow control, such as 3 or 3,4.")] = None,
    xoff: Annotated[
        str | None, typer.Option(help="Pause a peer beyond 64KB, or 1/8 of the pool's free bytes, a priority.")
    ] = None,
    xon_gap: Annotated[str | None, typer.Option(help="Resume this far below XOFF.  [default: 3036]")] = None,
    headroom: Annotated[str | None, typer.Option(help="What a paused peer may still send, by priority.")] = None,
    off: Annotated[bool, typer.Option("--off", help="Take the shared buffer away.")] = False,
    as_json: JsonOption = False,
    socket: SocketOption = None,
) -> None:
    """Shows the switch's shared buffer; with --total or --off, sets it.

    Example: plait queue buffer s1 --total 12MB --alpha 1/2 --lossless 3 --xoff 64KB --headroom 30KB
    """
    document = None if off else _document(total, alpha, reserved, lossless, xoff, xon_gap, headroom)
    with _client(switch, socket) as client:
        if off or document is not None:
            client.buffer_set(switch, document)
            return
        found = client.buffer(switch)
    if as_json:
        print(json.dumps(found))
    elif found["buffer"] is None:
        print(f"{switch} has no shared buffer: each queue has limits of its own")
    else:
        state = found["state"]
        print(f"{switch}: {json.dumps(found['buffer'])}")
        used, most, pool = (format_bytes(state[f"{name}_bytes"]) for name in ("used", "max_used", "pool"))
        print(f"pool {pool}, used {used}, at the most {most}")


def _document(
    total: str | None,
    alpha: str,
    reserved: str,
    lossless: str | None,
    xoff: str | None,
    xon_gap: str | None,
    headroom: str | None,
) -> dict[str, Any] | None:
    """The buffer as in fabric.json, or None where none is given."""
    given = {"--lossless": lossless, "--xoff": xoff, "--xon-gap": xon_gap, "--headroom": headroom}
    if total is None:
        if any(value is not None for value in given.values()) or alpha != "1" or reserved != "0":
            raise UsageError("a shared buffer needs --total, such as --total 12MB.")
        return None
    document: dict[str, Any] = {
        "total_bytes": parse_size(total),
        "alpha": alpha,
        "reserved_bytes": parse_size(reserved),
    }
    if lossless is None:
        for option in (name for name, value in given.items() if value is not None):
            raise UsageError(f"{option} is for flow control: give its priorities, such as --lossless 3.")
        return document
    if xoff is None or headroom is None:
        raise UsageError("flow control needs --xoff, such as 64KB or 1/8, and --headroom, such as 30KB.")
    try:
        priorities = [int(priority) for priority in lossless.split(",")]
    except ValueError:
        raise UsageError(f"priorities {lossless!r} are not numbers with commas between, such as 3,4.") from None
    pfc: dict[str, Any] = {"priorities": priorities, "headroom_bytes": parse_size(headroom)}
    pfc |= {"xoff_alpha": xoff} if "/" in xoff else {"xoff_bytes": parse_size(xoff)}
    if xon_gap is not None:
        pfc["xon_gap_bytes"] = parse_size(xon_gap)
    return document | {"pfc": pfc}


def _tell(rows: list[dict[str, Any]], as_json: bool) -> None:
    """After a change: for machines what the queues are like now, for people nothing."""
    if as_json:
        print(json.dumps(rows))


def _read(switch: str, port: int | None, priority: int | None, socket: Path | None) -> list[dict[str, Any]]:
    with _client(switch, socket) as client:
        return client.queues(switch, port, priority)


def _rate(row: dict[str, Any]) -> str:
    if row["rate_pps"]:
        return f"{row['rate_pps']:,} p/s"
    return format_rate(row["rate_bps"]) if row["rate_bps"] else "-"


def _port_rate(row: dict[str, Any]) -> str:
    return format_rate(row["port_rate_bps"]) if row["port_rate_bps"] else UNLIMITED


def _depth(row: dict[str, Any]) -> str:
    packets = UNLIMITED if row["depth_packets"] is None else f"{row['depth_packets']}p"
    return packets if row["depth_bytes"] is None else f"{packets}, {format_bytes(row['depth_bytes'])}"


def _state(row: dict[str, Any]) -> str:
    words = {"held": "paused here", "paused": "paused by its peer", "xoff": "pauses its peer"}
    return ", ".join(text for name, text in words.items() if row[name])


def _details(row: dict[str, Any]) -> list[tuple[str, str]]:
    details = [
        ("waiting", f"{row['packets']} packets, {format_bytes(row['bytes'])}"),
        ("enqueued since the start", f"{row['enqueued_packets']:,} packets"),
        ("rate of the port", _port_rate(row)),
        ("rate of the queue", _rate(row)),
        ("depth", _depth(row)),
        ("state", _state(row) or "served"),
        ("paused by its peer for", f"{row['paused_ns'] / 1e9:.6f} s"),
        *((name.replace("_", ": "), f"{row[name]:,} packets") for name in _DROPS),
    ]
    if row["alpha"] is not None:
        details += [
            ("shared buffer", f"{format_bytes(row['reserved_bytes'])} + {row['alpha']} x free"),
            ("may hold now", format_bytes(row["threshold_bytes"])),
            ("came in here and waits", format_bytes(row["ingress_bytes"])),
            ("of that in headroom", f"{format_bytes(row['headroom_bytes'])}, at the most "
             f"{format_bytes(row['max_headroom_bytes'])}"),
            ("pauses of the peer begun", f"{row['xoffs']:,}"),
        ]  # fmt: skip
    return details


def _print(rows: list[dict[str, Any]], as_json: bool) -> None:
    if as_json:
        print(json.dumps(rows))
        return
    table = Table()
    for name in ("port", "priority", "packets", "bytes"):
        table.add_column(name, justify="right")
    for name in ("port rate", "queue rate", "depth"):
        table.add_column(name)
    table.add_column("drops", justify="right")
    table.add_column("state")
    for row in rows:
        drops = sum(row[name] for name in _DROPS)
        counts = [str(row[name]) for name in ("port", "priority", "packets", "bytes")]
        table.add_row(*counts, _port_rate(row), _rate(row), _depth(row), f"{drops:,}", _state(row))
    console = Console()
    Console(width=None if console.is_terminal else 160).print(table)

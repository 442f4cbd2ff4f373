"""The `plait` command: what it is called with, and what it prints.  The work is in the modules it imports late,
so that `plait --help` is quick.

stdout is the result, stderr the talk; `--json` is for machines; exit codes are those of `lab.errors`.
"""

import json
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table
from typer.core import TyperGroup

from lab import (
    array_cli,
    balancing_cli,
    capture_cli,
    completion,
    controller_cli,
    digest_cli,
    group_cli,
    host_cli,
    invoke,
    launch_cli,
    link_cli,
    nic_cli,
    path_cli,
    ptf_cli,
    queue_cli,
    replication_cli,
    reproduce_cli,
    run_cli,
    stf_cli,
    switch_cli,
    table_cli,
    topo_cli,
)

RUN, LOOK, BUILD = "Run", "Look and touch", "Build and measure"


class _Verbs(TyperGroup):
    """`plait h1 CMD` is short for `plait host exec h1 CMD`."""

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        if args and args[0] not in self.commands and host_cli.is_host(args[0]):
            args = ["host", "exec", *args]
        return super().resolve_command(ctx, args)


app = typer.Typer(
    cls=_Verbs,
    add_completion=True,
    no_args_is_help=True,
    help="A laboratory for RDMA over many paths: P4 switches, an XDP RDMA NIC, Mininet fabrics.",
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
)
bench = typer.Typer(no_args_is_help=True, help="Measure speed; every figure is printed with its conditions.")
app.add_typer(launch_cli.app, name="launch", rich_help_panel=RUN)
app.command(rich_help_panel=RUN)(run_cli.run)
app.command(rich_help_panel=RUN)(reproduce_cli.reproduce)
app.add_typer(topo_cli.app, name="topo", rich_help_panel=LOOK)
app.add_typer(link_cli.app, name="link", rich_help_panel=LOOK)
app.add_typer(switch_cli.app, name="switch", rich_help_panel=LOOK)
app.add_typer(controller_cli.app, name="controller", rich_help_panel=LOOK)
app.add_typer(table_cli.app, name="table", rich_help_panel=LOOK)
app.add_typer(group_cli.app, name="group", rich_help_panel=LOOK)
app.add_typer(array_cli.counter, name="counter", rich_help_panel=LOOK)
app.add_typer(array_cli.meter, name="meter", rich_help_panel=LOOK)
app.add_typer(array_cli.register, name="register", rich_help_panel=LOOK)
app.add_typer(replication_cli.multicast, name="multicast", rich_help_panel=LOOK)
app.add_typer(replication_cli.clone, name="clone", rich_help_panel=LOOK)
app.add_typer(digest_cli.app, name="digest", rich_help_panel=LOOK)
app.add_typer(host_cli.app, name="host", rich_help_panel=LOOK)
app.command(rich_help_panel=LOOK)(capture_cli.capture)
app.add_typer(nic_cli.app, name="nic", rich_help_panel=LOOK)
app.add_typer(queue_cli.app, name="queue", rich_help_panel=LOOK)
app.add_typer(balancing_cli.lb, name="lb", rich_help_panel=LOOK)
app.add_typer(balancing_cli.aqm, name="aqm", rich_help_panel=LOOK)
app.command(rich_help_panel=LOOK)(path_cli.path)
app.command(rich_help_panel=BUILD)(stf_cli.stf)
app.command(rich_help_panel=BUILD)(ptf_cli.ptf)
app.add_typer(bench, name="bench", rich_help_panel=BUILD)

JsonOption = Annotated[bool, typer.Option("--json", help="Print the result as JSON on stdout.")]
TargetOption = Annotated[str, typer.Option(help="What runs the P4 program: `plait` (the fast switch) or `bmv2`.")]
LinksOption = Annotated[
    str, typer.Option(help="Links between switches: `memory` (fast) or `veth` (each visible to tcpdump).")
]
RateOption = Annotated[str, typer.Option(help="Rate of every link, such as 100M or 1G (bits per second).")]
DelayOption = Annotated[str, typer.Option(help="One-way delay of every link, such as 50us.")]
LossOption = Annotated[float, typer.Option(min=0.0, max=0.9, help="Probability that a link loses a packet.")]
SeedOption = Annotated[int, typer.Option(min=0, max=2**64 - 1, help="Seed of hashes and losses.")]
ProgramOption = Annotated[Path | None, typer.Option(help="P4 program of the switches.  [default: p4src/ecmp.p4]")]


def talk(text: str) -> None:
    print(text, file=sys.stderr)


def print_table(title: str, rows: list[dict[str, Any]], right: set[str]) -> None:
    table = Table(title=title, title_justify="left", title_style="bold")
    for name in rows[0] if rows else ():
        table.add_column(name, justify="right" if name in right else "left")
    for row in rows:
        table.add_row(*map(str, row.values()))
    # Wide enough for every column where stdout is a file or a pipe.
    Console(width=None if sys.stdout.isatty() else 160).print(table)


@app.command(rich_help_panel=RUN)
def demo(
    file: Annotated[Path | None, typer.Option(help="What to send.  [default: the Python interpreter's binary]")] = None,
    k: Annotated[int, typer.Option(help="Ports of a fat-tree switch: k^3/4 hosts, 5k^2/4 switches.")] = 4,
    loss: LossOption = 0.0,
    rate: RateOption = "100M",
    delay: DelayOption = "50us",
    links: LinksOption = "memory",
    target: TargetOption = "plait",
    program: ProgramOption = None,
    seed: SeedOption = 1,
    out: Annotated[
        Path | None, typer.Option(help="Folder in which the results folder is made.  [default: out]")
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """A fat-tree of P4 switches carries RDMA WRITEs between XDP hosts; proves the bytes equal.

    Example: plait demo --loss 0.01
    """
    from lab import demo_report
    from lab.config import LabConfig
    from mininet_topos.catalogue import choose

    chosen = choose("fattree", {"k": k, "rate": rate, "delay": delay, "loss": loss})
    config = LabConfig.from_options(chosen, links=links, target=target, program=program, seed=seed)
    result, folder = demo_report.run_and_report(config, file, out, talk)
    if as_json:
        print(json.dumps({
            "ok": result.ok,
            "transfers": [
                {name: value for name, value in asdict(transfer).items() if name in demo_report.JSON_FIELDS}
                for transfer in result.transfers
            ],
            "out": str(folder),
        }))  # fmt: skip
    else:
        print_table("RDMA WRITE, all at once", demo_report.rows(result), demo_report.RIGHT_ALIGNED)
        print(f"{demo_report.verdict(result)}\nresults: {folder}  (open {folder}/report.html)")
    if not result.ok:
        raise typer.Exit(1)


@app.command(rich_help_panel=LOOK)
def shell(
    switch: Annotated[
        str,
        typer.Argument(help="Switch of the running laboratory, such as s1.", autocompletion=completion.switches),
    ],
) -> None:
    """Opens p4runtime-shell on a switch of the running laboratory.

    Example: plait shell s1
    """
    from lab import shell as p4runtime_shell

    raise typer.Exit(p4runtime_shell.open_on(switch))


@app.command(rich_help_panel=LOOK)
def inspect(
    file: Annotated[Path, typer.Argument(help="A pcap or pcapng file, or `-` for stdin.", allow_dash=True)],
    count: Annotated[int | None, typer.Option(help="Stop after this many packets.")] = None,
    summary: Annotated[bool, typer.Option("--summary", help="One row a flow instead of one a packet.")] = False,
    reorder: Annotated[bool, typer.Option("--reorder", help="How far each flow's packets are out of order.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Prints the RoCEv2 headers of a capture.

    Example: plait inspect out/demo-…/h1-eth0.pcap --count 20
    """
    from lab import inspect as inspection

    arguments = [str(file), *(["--count", str(count)] if count is not None else [])]
    arguments += ["--summary"] * summary + ["--reorder"] * reorder + ["--json"] * as_json
    raise typer.Exit(inspection.main(arguments))


@app.command(
    rich_help_panel=BUILD,
    context_settings={"allow_extra_args": True, "ignore_unknown_options": True},
    add_help_option=False,
)
def compile(context: typer.Context) -> None:  # noqa: A001 - the verb users type
    """Compiles P4-16 (v1model) to P4Info and BMv2 JSON, with p4c-bm2-ss's flags.

    Example: plait compile --p4runtime-files ecmp.p4info.txtpb -o ecmp.json p4src/ecmp.p4
    """
    from p4front.__main__ import main as compiler

    raise typer.Exit(compiler(context.args, prog="plait compile"))


@bench.command("switch")
def bench_switch(
    seconds: Annotated[float, typer.Option(min=0.1, max=3600, help="Time of each measurement.")] = 3.0,
    program: Annotated[
        str | None, typer.Option(help="Also measures this program of p4src/, or `all`, against ecmp over memory links.")
    ] = None,
    out: Annotated[Path | None, typer.Option(help="Folder for pictures of the curves, as PNG and SVG.")] = None,
    as_json: JsonOption = False,
) -> None:
    """The ECMP program over veth against a bare forwarder, over memory links, and curves of its costs.

    Example: plait bench switch --program all
    """
    from lab import bench_switch as measurement

    result = measurement.run(seconds, talk, out, program)
    print(json.dumps(result) if as_json else measurement.explain(result))


@bench.command("control")
def bench_control(as_json: JsonOption = False) -> None:
    """Table inserts, pipeline pushes and a fabric of 80 switches, over P4Runtime.

    Example: plait bench control --json
    """
    from lab import bench_control as measurement

    result = measurement.run(talk)
    print(json.dumps(result) if as_json else measurement.explain(result))


@bench.command("nic")
def bench_nic(
    megabytes: Annotated[int, typer.Option(min=1, max=4096, help="What each stream carries, MB.")] = 128,
    as_json: JsonOption = False,
) -> None:
    """Nanoseconds a packet of the XDP programs, against an empty one; streams from host to host, with any transport.

    Example: plait bench nic
    """
    from lab import bench_nic as measurement

    result = measurement.run(talk, megabytes * 10**6)
    print(json.dumps(result) if as_json else measurement.explain(result))


@app.command(rich_help_panel=BUILD)
def doctor(as_json: JsonOption = False) -> None:
    """Says what this machine offers, and what follows from what is missing.

    Example: plait doctor
    """
    from lab import doctor as examination

    found = list(examination.findings())
    if as_json:
        print(json.dumps([asdict(finding) for finding in found]))
    else:
        print_table(
            "This machine",
            [
                {
                    "what": finding.name,
                    "": "yes" if finding.ok else ("MISSING" if finding.required else "no"),
                    "detail": finding.detail if finding.ok else f"{finding.detail}: {finding.consequence}",
                }
                for finding in found
            ],
            set(),
        )
    if any(finding.required and not finding.ok for finding in found):
        raise typer.Exit(3)


@app.command(rich_help_panel=BUILD)
def clean(as_json: JsonOption = False) -> None:
    """Removes what a killed laboratory left: processes, interfaces, sockets.

    Example: plait clean
    """
    from lab.clean import clean as remove

    removed = remove()
    print(json.dumps(asdict(removed)) if as_json else removed)


def main() -> None:
    sys.exit(invoke.run())


if __name__ == "__main__":
    main()

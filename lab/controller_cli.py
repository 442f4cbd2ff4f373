"""`plait controller …`: the controller of the running laboratory, and what it decided."""

import json
import time
from dataclasses import asdict
from typing import Annotated

import typer

from lab.arguments import JsonOption
from lab.errors import PlaitError
from lab.running import running_lab

app = typer.Typer(no_args_is_help=True, help="The controller: its decisions; end it and start it again.")

_LOOK_S = 0.1


@app.command("log")
def log(
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Go on until Ctrl-C.")] = False,
    as_json: JsonOption = False,
) -> None:
    """What the controller saw and what it did about it, a line each.

    Example: plait controller log
    """
    from controller.decisions import read_decisions
    from lab.controller_process import LOG

    running_lab()
    if not LOG.exists():
        raise PlaitError("this laboratory has no controller that stays; `plait launch` starts one.")
    offset = 0
    while True:
        found, offset = read_decisions(LOG, offset)
        for decision in found:
            print(json.dumps(asdict(decision)) if as_json else decision, flush=True)
        if not follow:
            break
        time.sleep(_LOOK_S)


@app.command("status")
def status(as_json: JsonOption = False) -> None:
    """Whether the controller runs, and where its log is.

    Example: plait controller status
    """
    from lab import controller_process

    running_lab()
    pid = controller_process.running_pid()
    if as_json:
        print(json.dumps({"pid": pid, "log": str(controller_process.LOG)}))
    else:
        print(f"{'not running' if pid is None else f'running, pid {pid}'}; log: {controller_process.LOG}")


@app.command("start")
def start() -> None:
    """Starts the controller, if it has ended: it reads what switches hold, and writes only what is wrong.

    Example: plait controller start
    """
    from lab import controller_process

    lab = running_lab()
    report = controller_process.await_ready(controller_process.start(lab.name))
    print(f"{report.switches} switches hold {report.verified} entries, {report.written} written now")


@app.command("stop")
def stop() -> None:
    """Ends the controller: switches go on with the entries that they have.

    Example: plait controller stop
    """
    from lab import controller_process

    running_lab()
    if not controller_process.stop():
        raise PlaitError("the controller does not run.")


@app.command("restart")
def restart() -> None:
    """Ends the controller, if it runs, and starts it again.

    Example: plait controller restart
    """
    from lab import controller_process

    running_lab()
    controller_process.stop()
    start()

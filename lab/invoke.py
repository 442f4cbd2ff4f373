"""The `plait` command inside a running process: what its main does, and what a laboratory's prompt does with a line."""

import io
import os
import sys
from collections.abc import Sequence
from contextlib import redirect_stdout, suppress


def run(words: Sequence[str] | None = None) -> int:
    """Runs plait with these words, or those of the process; prints what a user did wrong, and returns the exit code."""
    from lab.cli import app

    try:
        app(args=words if words is None else list(words), prog_name="plait")
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else int(end.code is not None)
    except KeyboardInterrupt:  # before the verb has begun
        print(file=sys.stderr)  # after the terminal's ^C
        return 130
    except Exception as error:
        code = _exit_code(error)
        if code is None:
            raise
        print(str(error) if hasattr(error, "diagnostics") else f"plait: {error}", file=sys.stderr)
        return code
    return 0


def _exit_code(error: Exception) -> int | None:
    """None for what is no user's mistake. Classes are looked for only now: their modules are slow to import."""
    from controller.errors import ControllerError
    from fastswitch.control import ControlError
    from lab.errors import PlaitError, UsageError
    from mininet_topos.topology import TopologyError
    from p4front import CompileError
    from rdma.verbs import VerbsError

    if isinstance(error, PlaitError | CompileError):
        return error.exit_code
    if isinstance(error, TopologyError | ControllerError):
        return UsageError.exit_code
    if isinstance(error, ControlError | VerbsError):
        return PlaitError.exit_code
    return None


def verbs() -> dict[str, tuple[str, ...]]:
    """Every verb, with its own verbs where it has some, in the order of `plait --help`."""
    import typer

    from lab.cli import app

    commands = getattr(typer.main.get_command(app), "commands", {})
    return {name: tuple(getattr(command, "commands", ())) for name, command in commands.items()}


def complete(line: str) -> list[str]:
    """What may come next on a line without `plait`, by the protocol of the shells' completion."""
    from lab.cli import app

    words = f"plait {line}"
    asked = {
        "_PLAIT_COMPLETE": "complete_bash",
        "COMP_WORDS": words,
        "COMP_CWORD": str(len(words.split()) - (not words[-1].isspace())),
    }
    told = io.StringIO()
    os.environ.update(asked)
    try:
        with redirect_stdout(told), suppress(SystemExit):
            app(args=[], prog_name="plait")
    finally:
        for name in asked:
            del os.environ[name]
    return [offered for offered in told.getvalue().splitlines() if offered]

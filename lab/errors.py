"""Errors a user meets, each with the exit code of the `plait` command."""

from typing import ClassVar


class PlaitError(Exception):
    """Something the user can act on: printed as one sentence, without a traceback."""

    exit_code: ClassVar[int] = 1


class UsageError(PlaitError):
    """A wrong argument or file."""

    exit_code = 2


class MissingFeatureError(PlaitError):
    """This machine lacks what the command needs: root, a kernel feature, a program on PATH."""

    exit_code = 3


class LabRunningError(PlaitError):
    """A laboratory is running on this machine (for commands that need none)."""

    exit_code = 4


class NoLabError(PlaitError):
    """No laboratory is running on this machine (for commands that need one)."""

    exit_code = 5

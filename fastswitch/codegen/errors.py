"""The one error that a program can cause: the JSON is malformed, or uses something that is not implemented."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


class ProgramError(ValueError):
    """A BMv2 JSON that cannot be run.  The message names the construct and where it stands in the document.

    >>> str(ProgramError("actions[3]", "unknown primitive 'teleport'"))
    "actions[3]: unknown primitive 'teleport'"
    """

    def __init__(self, where: str, problem: str) -> None:
        super().__init__(f"{where}: {problem}")
        self.where = where
        self.problem = problem


def no_such(where: str, what: str, name: str, known: Iterable[str]) -> ProgramError:
    """A name that does not exist, with the nearest one that does."""
    close = difflib.get_close_matches(name, list(known)[:2000], n=1)
    hint = f". Did you mean {close[0][:80]!r}?" if close else ""
    return ProgramError(where, f"no {what} named {name[:80]!r}{hint}")

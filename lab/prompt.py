"""The command line of a laboratory: Mininet's, with plait's verbs, which also tells when a process has ended.

A line is plait's if its first word is one of plait's verbs. Where Mininet has a command of that name too (`link`,
`switch`), it is plait's if the second word is one of that verb's own, as in `link down s1 s2`; else Mininet's.
"""

import difflib
import readline
import shlex
import subprocess
import sys
from collections.abc import Callable

from mininet.cli import CLI

from lab import invoke
from lab.emulation import Emulation

# Only a shell knows what to do with these: `table dump --all > state.json`, `capture h1 &`.
_SHELL_WORDS = frozenset(("|", "<", ">", ">>", "&", "&&", "||", ";"))


class Prompt(CLI):
    """Returns from its constructor when the user leaves, as Mininet's does."""

    prompt = "plait> "
    helpStr = CLI.helpStr.replace("mininet>", "plait>")

    def __init__(self, lab: Emulation, talk: Callable[[str], None]) -> None:
        self._lab = lab
        self._talk = talk
        self._told = ""
        self._verbs = invoke.verbs()
        super().__init__(lab.network)

    @classmethod
    def initReadline(cls) -> None:  # noqa: N802 (Mininet's name)
        super().initReadline()
        readline.set_completer_delims(" \t\n")  # names hold dots and dashes, and matches `=`

    def onecmd(self, line: str) -> bool:
        words = line.split()
        if words and words[0] == "plait":  # people type it out of habit
            line, words = line.split(None, 1)[1] if words[1:] else "help", words[1:]
        if words and self._is_ours(words):
            self._run(line)
            return False
        return bool(super().onecmd(line))

    def _is_ours(self, words: list[str]) -> bool:
        verb = words[0]
        if verb not in self._verbs:
            return False
        return not hasattr(self, f"do_{verb}") or (len(words) > 1 and words[1] in (*self._verbs[verb], "--help"))

    def _run(self, line: str) -> None:
        try:
            words = shlex.split(line)
        except ValueError as error:
            self._talk(f"plait: {line!r}: {error}")
            return
        if _SHELL_WORDS.intersection(shlex.shlex(line, posix=False, punctuation_chars=True)):
            subprocess.call(f"{shlex.quote(sys.executable)} -m lab.cli {line}", shell=True)
            return
        invoke.run(words)

    def do_help(self, line: str) -> None:
        """Lists the commands; `help VERB` explains one."""
        words = line.split()
        if words and words[0] in self._verbs and not hasattr(self, f"do_{words[0]}"):
            invoke.run([*words, "--help"])
            return
        super().do_help(line)
        if not line:
            print("Verbs of plait, here without `plait`; `help VERB` explains one:\n")
            self.columnize(list(self._verbs), 78)
            print()

    def default(self, line: str) -> None:
        first = line.split()[0]
        if first in self.mn:
            super().default(line)
            return
        known = [*self._verbs, *self.mn, *(name.removeprefix("do_") for name in self.get_names() if name[:3] == "do_")]
        near = difflib.get_close_matches(first, known, n=1, cutoff=0.6)
        hint = f"did you mean {near[0]!r}?" if near else "`help` lists what there is."
        self._talk(f"plait: no command {first!r}: {hint}")

    def completenames(self, text: str, *ignored: object) -> list[str]:
        own = [name for name in (*self._verbs, *self.mn) if name.startswith(text)]
        return [f"{name} " for name in sorted({*super().completenames(text, *ignored), *own})]

    def completedefault(self, text: str, line: str, begin: int, end: int) -> list[str]:  # type: ignore[override]
        if self._is_ours(line[:end].split()) or line.split()[0] in self._verbs:
            offered = invoke.complete(line[:end])
        else:
            offered = list(self.mn)  # names of nodes, in a command for a node
        # The shell would leave a space after a finished word; a field awaits its value.
        return [name if name.endswith(("=", "(")) else f"{name} " for name in offered if name.startswith(text)]

    def postcmd(self, stop: bool, line: str) -> bool:
        fault = self._lab.fault()
        if fault != self._told and not stop:
            self._told = fault
            self._talk(f"plait: {fault}\nThis laboratory no longer works as a whole; `exit` removes it.")
        return stop

"""Mininet's command line on a laboratory, which tells when one of the laboratory's processes has ended."""

from collections.abc import Callable

from mininet.cli import CLI

from lab.emulation import Emulation


class Prompt(CLI):
    """Returns from its constructor when the user leaves, as Mininet's does."""

    def __init__(self, lab: Emulation, talk: Callable[[str], None]) -> None:
        self._lab = lab
        self._talk = talk
        self._told = ""
        super().__init__(lab.network)

    def postcmd(self, stop: bool, line: str) -> bool:
        fault = self._lab.fault()
        if fault != self._told and not stop:
            self._told = fault
            self._talk(f"plait: {fault}\nThis laboratory no longer works as a whole; `exit` removes it.")
        return stop

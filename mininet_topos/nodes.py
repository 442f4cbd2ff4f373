"""Mininet's nodes, interfaces and links as the laboratory uses them.

Mininet's own classes run a shell for every node and a command for every setting, which takes seconds for a fat-tree.
Here `LabNetwork` sets everything up in batches; these classes only keep Mininet's books, so that its command line
(`nodes`, `net`, `links`, `h1 ping h2`, `link s1 s2 down`) works on them.
"""

from __future__ import annotations

import os
import pty
import select
import signal
import termios
from collections.abc import Callable, Sequence
from contextlib import suppress
from subprocess import Popen
from typing import Any

from mininet.link import Intf, Link
from mininet.node import Host, Node, Switch

from mininet_topos.system import NetworkError

# How Mininet's shells say that they are ready: the prompt.
_SENTINEL = chr(127)

# Where termios.tcgetattr has the flags that hold ECHO.
_LOCAL_MODES = 3


class LabHost(Host):
    """A host in a network namespace of its own.  Its shell starts without waiting; `await_shell` waits.

    `environment` is that of the shell, and so of everything started from it.
    """

    shell: Popen[bytes] | None

    def __init__(self, name: str, environment: dict[str, str], **params: Any) -> None:
        self._environment = environment
        super().__init__(name, inNamespace=True, **params)

    def startShell(self, mnopts: str | None = None) -> None:  # noqa: N802 (Mininet's name)
        """Starts bash in a new network namespace, without the round trips that Mininet's own version makes."""
        self.master, self.slave = pty.openpty()
        attributes = termios.tcgetattr(self.slave)
        attributes[_LOCAL_MODES] &= ~termios.ECHO
        termios.tcsetattr(self.slave, termios.TCSANOW, attributes)
        command = ["mnexec", mnopts or "-cdn", "env", "PS1=" + _SENTINEL]
        command += ["bash", "--norc", "--noediting", "-is", "mininet:" + self.name]
        tty = self.slave
        self.shell = Popen(command, stdin=tty, stdout=tty, stderr=tty, close_fds=False, env=self._environment)
        # As long as we had this end open as well, reading from a shell that died would wait for ever.
        os.close(self.slave)
        self.stdin = os.fdopen(self.master, "r")
        self.stdout = self.stdin
        self.pid = self.shell.pid
        self.pollOut = select.poll()
        self.pollOut.register(self.stdout)
        self.outToNode[self.stdout.fileno()] = self
        self.inToNode[self.stdin.fileno()] = self
        self.execed = False
        self.lastCmd = self.lastPid = None
        self.readbuf = ""
        self.waiting = True

    def await_shell(self) -> None:
        """Waits for the prompt: from then on the namespace of `pid` is the host's own."""
        self.waitOutput()

    def read(self, size: int = 1024) -> str:
        try:
            return str(super().read(size))
        except OSError:
            raise NetworkError(f"{self.name}: its shell has ended") from None

    def cleanup(self) -> None:
        """Closes our end of the terminal and waits for the shell."""
        shell, self.shell = self.shell, None
        if shell:
            self.stdin.close()
            shell.wait()

    def terminate_soon(self) -> None:
        """Tells the shell and what runs in it to end, without waiting."""
        if self.shell and self.shell.poll() is None:
            # It may end by itself just now, or not lead its group yet; `cleanup` closes its terminal in any case.
            with suppress(ProcessLookupError):
                os.killpg(self.shell.pid, signal.SIGHUP)


class LabSwitch(Switch):
    """A switch that another process runs; commands for it run in the root namespace, where its interfaces are."""

    def __init__(self, name: str, device_id: int, environment: dict[str, str], **params: Any) -> None:
        self._environment = environment
        # Not Switch.__init__: that would configure the loopback interface with a shell and ifconfig.
        Node.__init__(self, name, **{**params, "inNamespace": False})
        self.dpid = self.defaultDpid(f"{device_id:x}")
        self.opts, self.listenPort, self.controlIntf = "", None, None
        self.pid = os.getpid()

    def startShell(self, mnopts: str | None = None) -> None:  # noqa: N802 (Mininet's name)
        """Does nothing: the shell starts with the first command, and most switches never get one."""

    def sendCmd(self, *cmd: Any, **kwargs: Any) -> None:  # noqa: N802 (Mininet's name)
        self._need_shell()
        super().sendCmd(*cmd, **kwargs)

    def cmd(self, *args: Any, **kwargs: Any) -> Any:
        self._need_shell()
        return super().cmd(*args, **kwargs)

    def _need_shell(self) -> None:
        if not self.shell:
            super().startShell()

    def _popen(self, cmd: list[str], **params: Any) -> Any:
        return super()._popen(cmd, **{"env": self._environment, **params})

    def start(self, controllers: object) -> None:
        """Does nothing: `LabNetwork` starts switches, all of them at once."""

    def stop(self, deleteIntfs: bool = True) -> None:  # noqa: N803 (Mininet's name)
        """Does nothing: `LabNetwork` stops switches and deletes interfaces, all of them at once."""


class LabIntf(Intf):
    """An interface that is already as it should be: nothing is run when it is added to a node.

    It goes up and down with its link, of which the switch is told: an interface set down by hand would lose its routes.
    """

    def __init__(self, name: str, node: Any, port: int, link: LabLink, mac: str) -> None:
        super().__init__(name, node=node, port=port, link=link, mac=mac, moveIntfFn=lambda *_: None)

    def config(self, **_params: Any) -> dict[str, Any]:  # type: ignore[override]
        return {}

    def set_address(self, address: str, prefix_length: int) -> None:
        """Notes the address that the interface has; sets nothing."""
        self.ip, self.prefixLen = address, prefix_length

    def updateIP(self) -> str | None:  # noqa: N802 (Mininet's name)
        """The address, without asking the kernel: `h1 ping h2` does, for each name, and addresses do not change."""
        return self.ip

    def ifconfig(self, *args: str) -> str:
        """Returns what ifconfig prints; "up" and "down" act on the link, and return an error text or ""."""
        if args in (("up",), ("down",)):
            return self.link.set_up(args == ("up",))
        return str(super().ifconfig(*args))

    def isUp(self, setUp: bool = False) -> bool:  # noqa: N802, N803 (Mininet's names)
        return self.link.is_up

    def status(self) -> str:
        return "OK" if self.link.is_up else "DOWN"


class LabLink(Link):
    """A link that is already there, as a veth pair or in a switch's memory: only Mininet's books are kept."""

    def __init__(self, ends: Sequence[tuple[Any, int, str, str]], change: Callable[[bool], str]) -> None:
        """`ends`: of both, node, port, interface name and MAC. `change` takes the link up or down."""
        self.is_up = True
        self._change = change
        self.intf1, self.intf2 = (LabIntf(name, node, port, self, mac) for node, port, name, mac in ends)

    def set_up(self, up: bool) -> str:
        """Takes the link up or down; returns an error text or ""."""
        failure = self._change(up)
        if not failure:
            self.is_up = up
        return failure

    def stop(self) -> None:
        """Does nothing: `LabNetwork` deletes interfaces, all of them at once."""

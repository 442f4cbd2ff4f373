"""Fixtures: the echo program (pipeline_echo.c), switches that run it, and namespaces with veths."""

from __future__ import annotations

import os
import subprocess
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from engine.build import build_with_tests

ROOT = Path(__file__).resolve().parents[2]
build_with_tests(ROOT, sanitize=bool(os.environ.get("PLAIT_ENGINE_SANITIZED")))

import engine  # noqa: E402  (its names need what build has made)


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "root: needs root (namespaces, packet sockets)")


@pytest.fixture(scope="session")
def echo() -> Path:
    suffix = "-sanitized" if os.environ.get("PLAIT_ENGINE_SANITIZED") else ""
    return ROOT / "engine" / "_build" / f"pipeline_echo{suffix}.so"


@pytest.fixture
def fabric() -> Iterator[engine.Fabric]:
    with engine.Fabric("virtual", seed=7) as made:
        yield made


@pytest.fixture
def switch(fabric: engine.Fabric, echo: Path) -> engine.Switch:
    """CPU port 510, taps on ports 1 to 4."""
    made = fabric.add_switch("s1", 1, cpu_port=510, priority_queues=2)
    made.load(echo)
    for port in range(1, 5):
        made.tap(port)
    return made


class Veths:
    """Pairs in a namespace of their own: `inside` is what an engine attaches to, `outside` the host's end."""

    def __init__(self, namespace: str) -> None:
        self.namespace = namespace

    def run(self, command: str) -> str:
        full = ["ip", "netns", "exec", self.namespace, *command.split()]
        return subprocess.run(full, check=True, capture_output=True, text=True).stdout

    def add(self, inside: str, outside: str) -> None:
        self.run(f"ip link add {inside} type veth peer name {outside}")
        for name in (inside, outside):
            self.run(f"sysctl -qw net.ipv6.conf.{name}.disable_ipv6=1")
            self.run(f"ip link set {name} up")

    def enter(self, work: Callable[[], object]) -> object:
        """Runs `work` in a thread that has entered the namespace: sockets it opens stay there."""
        import threading

        result: list[object] = []
        failure: list[BaseException] = []

        def body() -> None:
            try:
                with open(f"/run/netns/{self.namespace}") as handle:
                    setns(handle.fileno())
                result.append(work())
            except BaseException as error:
                failure.append(error)

        thread = threading.Thread(target=body)
        thread.start()
        thread.join()
        if failure:
            raise failure[0]
        return result[0]


def setns(fd: int) -> None:
    """os.setns exists from Python 3.12 on."""
    import ctypes

    libc = ctypes.CDLL(None, use_errno=True)
    if libc.setns(fd, 0x40000000):
        raise OSError(ctypes.get_errno(), "setns")


@pytest.fixture
def veths() -> Iterator[Veths]:
    if os.geteuid() != 0:
        pytest.skip("needs root: namespaces and packet sockets")
    name = f"plait-test-{uuid.uuid4().hex[:8]}"
    subprocess.run(["ip", "netns", "add", name], check=True)
    try:
        yield Veths(name)
    finally:
        subprocess.run(["ip", "netns", "del", name], check=True)

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from ebpf.loader import Nic, NicError, NicSizes, transport_names
from rdma.tests.lab import Lab, Link, Network, lab


@pytest.fixture(scope="session")
def can_run() -> None:
    """Skips, with the reason, where namespaces or XDP are not to be had."""
    if os.geteuid() != 0:
        pytest.skip("namespaces and XDP need root")
    if not shutil.which("ip"):
        pytest.skip("iproute2 is not installed")
    try:
        Nic(NicSizes(memory_bytes=4096, hosts=1, queue_pairs=1, regions=1, doorbell_pages=1)).close()
    except NicError as error:
        pytest.skip(f"no XDP here: {error}")


@pytest.fixture(scope="module")
def direct(can_run: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    """Two hosts on one veth pair."""
    with lab(tmp_path_factory.mktemp("direct")) as made:
        yield made


@pytest.fixture
def folder(can_run: None, tmp_path: Path) -> Path:
    return tmp_path


@pytest.fixture
def rough() -> Link:
    return Link(loss=0.02, repeat=0.02, reorder=0.01, mark=0.1)


@pytest.fixture(scope="session")
def all_transports(can_run: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Network]:
    """Made once, since every transport takes time to load."""
    link = Link()
    settings = {"transports": list(transport_names()), "min_timeout_us": 8000, "window_packets": 32}
    with lab(tmp_path_factory.mktemp("network"), link, rate_bps=300_000_000, **settings) as made:
        yield Network(made, link)


@pytest.fixture
def network(all_transports: Network) -> Iterator[Network]:
    """Two hosts that have all transports, and a link that starts out well-behaved."""
    all_transports.behave()
    yield all_transports
    all_transports.link.answer = None
    all_transports.made.forget_devices()

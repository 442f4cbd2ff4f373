from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from ebpf.loader import Nic, NicError, NicSizes
from rdma.tests.lab import Lab, Link, lab


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

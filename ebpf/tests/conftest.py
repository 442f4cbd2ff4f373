from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from ebpf.loader import NicError
from ebpf.tests.rigs import Bench, NativeRig, XdpRig


@pytest.fixture(scope="session")
def xdp_rig() -> Iterator[XdpRig]:
    if os.geteuid() != 0:
        pytest.skip("loading an XDP program needs root")
    try:
        rig = XdpRig()
    except NicError as error:
        pytest.skip(f"no XDP here: {error}")
    yield rig
    rig.close()


@pytest.fixture(params=["native", "xdp"])
def bench(request: pytest.FixtureRequest) -> Bench:
    """The NIC with one connected queue pair, in user space and in the kernel."""
    return Bench(NativeRig() if request.param == "native" else request.getfixturevalue("xdp_rig"))


@pytest.fixture
def native() -> Bench:
    return Bench(NativeRig())

"""Shared by the tests that make networks: one at a time on a machine, as for laboratories."""

import fcntl
import os
import time

import pytest
from hypothesis import settings

from controller.defaults import RUN_DIR

_PATIENCE_S = 60

# How long an example takes is the machine's affair.
settings.register_profile("plait", deadline=None)
settings.load_profile("plait")


@pytest.fixture(scope="module")
def _only_network():
    if os.geteuid() != 0:
        yield
        return
    RUN_DIR.mkdir(parents=True, exist_ok=True)
    with (RUN_DIR / "lock").open("a") as lock:
        end = time.monotonic() + _PATIENCE_S
        while True:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if time.monotonic() > end:
                    pytest.skip("a laboratory is running on this machine")
                time.sleep(0.1)
        yield
        fcntl.flock(lock, fcntl.LOCK_UN)


@pytest.fixture
def only_network(_only_network):
    """Holds the machine's laboratory lock (`lab.running`): names of interfaces are the machine's."""

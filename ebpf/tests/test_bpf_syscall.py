"""Maps for reading only."""

from __future__ import annotations

import os

import pytest

from ebpf.bpf_syscall import read_element, read_only_map
from ebpf.tests.rigs import QP_BYTES, SLOTS, XdpRig


def test_a_read_only_map_shows_what_is_written(xdp_rig: XdpRig) -> None:
    fd = read_only_map(xdp_rig.nic.map_fd("qps"))
    try:
        for slot in (0, SLOTS - 1):
            xdp_rig.qps[slot].config.local_ip = 0x0A000001 + slot
            assert read_element(fd, slot, QP_BYTES)[12:16] == (0x0A000001 + slot).to_bytes(4, "little")
        with pytest.raises(OSError, match="No such file or directory"):
            read_element(fd, SLOTS, QP_BYTES)
    finally:
        os.close(fd)

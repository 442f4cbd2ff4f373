"""What the loader says when it cannot, and that the benchmark measures what it claims."""

from __future__ import annotations

import os
import sys

import pytest

from ebpf import bench, loader
from ebpf.loader import Nic, NicError, NicSizes
from ebpf.tests import packets as p
from ebpf.tests.rigs import OTHER_MAC, PASS, QPN, RKEY, TRANSPORTS, VA, Bench, XdpRig


def test_no_bcc(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "bcc", None)
    with pytest.raises(NicError, match="install python3-bpfcc"):
        Nic()


def test_no_headers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loader.platform, "release", lambda: "0.0-none")
    with pytest.raises(NicError, match="/lib/modules/0.0-none/build .* install linux-headers"):
        loader._check_headers()


def test_sizes() -> None:
    sizes = NicSizes(memory_bytes=(3 << 20) + 1, hosts=4, queue_pairs=1000)
    assert sizes.defines() == {
        "NIC_MAX_HOSTS": 8,
        "NIC_MAX_QPS": 1024,
        "NIC_MAX_REGIONS": 4096,
        "NIC_MAX_RQS": 4096,
        "NIC_MAX_RECVS": 65536,
        "NIC_CHUNK_SHIFT": 20,
        "NIC_CHUNKS": 4,
        "NIC_DOORBELL_PAGES": 64,
    }
    with pytest.raises(NicError, match="must be positive"):
        NicSizes(memory_bytes=0)


def test_hosts_are_distinct_and_bounded(xdp_rig: XdpRig) -> None:
    nic = xdp_rig.nic
    with pytest.raises(NicError, match="two hosts have the MAC address"):
        nic.register_host("02:00:00:00:00:01", 1)
    nic.register_host("02:00:00:00:00:09", 1)
    with pytest.raises(NicError, match="no room for more than 3 hosts"):
        nic.register_host("02:00:00:00:00:0a", 1)


def test_a_frame_that_came_to_another_hosts_interface_is_nobodys(xdp_rig: XdpRig) -> None:
    """A switch that delivers to the wrong port must not look as if it delivered to the right one."""
    rig = Bench(xdp_rig)
    stray = p.frame(p.WRITE_ONLY, 100, QPN, b"abcd", p.reth(VA, RKEY, 4), ends=p.with_ends(dst_mac=OTHER_MAC))
    assert rig.receive(stray) == (PASS, stray)
    assert rig.events(host=0) == {"PASSED_TO_KERNEL": 1}
    assert rig.events() == {}


def test_the_benchmark_runs(xdp_rig: XdpRig) -> None:
    """It says itself if a packet was not taken as meant."""
    result = bench.run(repeat=200, rounds=3, transports=("gbn", "eunomia"))
    assert result["empty_ns"] > 0
    for transport, cases in (("gbn", 4), ("eunomia", 3)):
        figures = result["transports"][transport]
        assert len(figures) == cases and min(figures.values()) > 0


def test_transports_that_are_not_there() -> None:
    with pytest.raises(NicError, match="no transport 'tcp'; there are gbn, "):
        Nic(transports=("gbn", "tcp"))
    with pytest.raises(NicError, match="no transport is wanted; there are gbn, "):
        Nic(transports=())


def test_a_queue_pair_whose_transport_is_not_loaded_gets_nothing() -> None:
    """The agent refuses such queue pairs; were there one, its packets are dropped and counted."""
    if os.geteuid() != 0:
        pytest.skip("loading an XDP program needs root")
    try:
        rig = XdpRig(("gbn",))
    except NicError as error:
        pytest.skip(f"no XDP here: {error}")
    bench = Bench(rig)
    bench.qp.config.transport = TRANSPORTS.index("irn")
    bench.receive(p.frame(p.WRITE_ONLY, 100, QPN, b"abcd", p.reth(VA, RKEY, 4)))
    assert bench.events() == {"DROP_QP_STATE": 1}
    rig.close()

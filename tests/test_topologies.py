"""RDMA over topologies other than the fat-tree: on a laboratory that is up, with programs that use all their paths."""

import mmap
from pathlib import Path

import pytest

from lab import demo
from lab.config import LabConfig
from lab.emulation import Emulation
from mininet_topos.catalogue import choose
from mininet_topos.k_paths import k_shortest_paths
from tests.conftest import needs_root

ROOT = Path(__file__).resolve().parent.parent


def transfers(chosen, program, pairs, size=200_000):
    """The topology, and what became of a WRITE for each pair of hosts."""
    config = LabConfig.from_options(chosen, program=ROOT / "p4src" / f"{program}.p4", nic_memory_bytes=8 << 20)
    with mmap.mmap(-1, size) as data, Emulation(config, lambda text: None) as lab:
        data[:] = bytes(i * 7 & 0xFF for i in range(size))
        result = demo.run(lab, pairs, data, timeout_s=60)
    assert result.ok
    return lab.topology, result.transfers


@needs_root
def test_spray_over_a_leaf_spine_uses_all_spines():
    chosen = choose("leafspine", {"spines": 3, "leaves": 2, "hosts_per_leaf": 1, "parallel": 2})
    _, (sent,) = transfers(chosen, "spray", [("h1", "h2")])
    assert sent.sha256_equal and sent.paths == 3


@needs_root
def test_a_flow_over_jellyfish_takes_one_of_the_k_shortest_paths():
    chosen = choose("jellyfish", {"switches": 8, "ports": 4, "hosts": 8})
    pairs = [("h1", "h5"), ("h6", "h2")]
    topology, sent = transfers(chosen, "ksp", pairs)
    known = {(a, b): {path.switches for path in paths} for a, b, paths in k_shortest_paths(topology, 8)}
    for (src, dst), transfer in zip(pairs, sent, strict=True):
        ends = tuple(topology.host_port(host).node.name for host in (src, dst))
        assert transfer.paths == 1 and tuple(transfer.route.split()) in known[ends]


@needs_root
def test_a_file_is_a_laboratory(tmp_path):
    file = tmp_path / "net.txt"
    file.write_text("5 2 4\n3 4\n0 3 100Gbps 1us 0\n1 3 100Gbps 1us 0\n2 4 100Gbps 1us 0\n3 4 100Gbps 1us 0\n")
    topology, (sent,) = transfers(choose(str(file), {"scale": 0.001}), "ecmp", [("h1", "h3")])
    assert topology.name == "net" and sent.sha256_equal and sent.route == "s1 s2"


@needs_root
def test_an_impossible_topology_makes_nothing():
    from mininet_topos.topology import TopologyError

    with pytest.raises(TopologyError, match="k: must be even"):
        Emulation(LabConfig.from_options(choose("fattree", {"k": 3})), lambda text: None)

"""Traffic for experiments: which flows start when, and how long each would take alone.  Pure, and the seed's alone."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass

from lab.errors import UsageError
from lab.workload_sizes import SizeDistribution
from mininet_topos import paths
from mininet_topos.topology import Topology
from wire.codes import BTH_LEN, ETHERNET_LEN, ICRC_BYTES, IPV4_LEN, RETH_LEN, UDP_LEN

# Of every data packet; the first of a WRITE has a RETH as well.
PACKET_HEADERS_BYTES = ETHERNET_LEN + IPV4_LEN + UDP_LEN + BTH_LEN + ICRC_BYTES
_PAD_UNIT = 4

IDEAL_FCT = (
    "ideal FCT = base RTT of the pair for the flow's first packet (delays, serialisation at every link of a shortest "
    "path, the ACK's way back; empty queues) + its other packets with headers / rate of the slower host link"
)


@dataclass(frozen=True, slots=True)
class Flow:
    """One RDMA WRITE of `bytes`, posted start_s after the workload's beginning."""

    start_s: float
    src: str
    dst: str
    bytes: int


def permutation(hosts: Sequence[str], size: int, rng: random.Random) -> list[Flow]:
    """Every host sends `size` bytes to one other and receives from one other, all at once.

    Uniform among the permutations without a fixed point. UsageError with fewer than two hosts.
    """
    if len(hosts) < 2:
        raise UsageError("a permutation needs two hosts.")
    while True:  # a random permutation has no fixed point with probability 1/e or more
        receivers = rng.sample(hosts, len(hosts))
        if all(src != dst for src, dst in zip(hosts, receivers, strict=True)):
            return [Flow(0.0, src, dst, size) for src, dst in zip(hosts, receivers, strict=True)]


def poisson(
    hosts: Sequence[str],
    flows_per_s: float,
    sizes: SizeDistribution,
    rng: random.Random,
    *,
    flows: int | None = None,
    duration_s: float | None = None,
) -> list[Flow]:
    """Independent arrivals, until `flows` or `duration_s`; source and destination uniform among different hosts."""
    if len(hosts) < 2:
        raise UsageError("Poisson traffic needs two hosts.")
    found: list[Flow] = []
    at = 0.0
    while flows is None or len(found) < flows:
        at += rng.expovariate(flows_per_s)
        if duration_s is not None and at > duration_s:
            break
        src, dst = rng.sample(hosts, 2)
        found.append(Flow(at, src, dst, sizes.size_at(rng.random())))
    return found


def arrival_rate(load: float, host_rates_bps: Sequence[int], sizes: SizeDistribution, payload_bytes: int) -> float:
    """Flows a second of all hosts together, so that their payload with headers (without pad bytes) takes the share
    `load` of all hosts' links."""
    mean_wire = sizes.mean + RETH_LEN + PACKET_HEADERS_BYTES * sizes.mean_packets(payload_bytes)
    return load * sum(host_rates_bps) / (8 * mean_wire)


def packets_of(size: int, payload_bytes: int) -> int:
    return max(1, -(-size // payload_bytes))


def wire_bytes(size: int, payload_bytes: int) -> int:
    """Bytes of a WRITE's data packets, Ethernet header to ICRC."""
    # Only the last packet's payload is no multiple of 4.
    return size + -size % _PAD_UNIT + RETH_LEN + PACKET_HEADERS_BYTES * packets_of(size, payload_bytes)


def ideal_fct_s(topology: Topology, src: str, dst: str, size: int, payload_bytes: int) -> float:
    """IDEAL_FCT, in seconds: from posting the WRITE to its acknowledgement in a network without other traffic."""
    first = wire_bytes(min(size, payload_bytes), payload_bytes)
    rest = wire_bytes(size, payload_bytes) - first
    return paths.rtt_ns(topology, src, dst, first) / 1e9 + 8 * rest / paths.bottleneck_bps(topology, src, dst)

"""What the NICs deliver from host to host through one switch, against a bare AF_PACKET forwarder in its place.

- stream: one queue pair posts WRITEs, several outstanding, from h1 to h2; packets a second and goodput at the
  requester, from the first post to the last completion.
- bare: a source thread, a forwarder without any program, and a counting sink over the same kind of veth pairs, with
  frames of the same length, in the same run.
- queue pairs: the same bytes over 1 to 1,000 queue pairs at once.

Links are far faster than the machine, so what is measured is the machine: look at ratios.
"""

import json
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import ExitStack
from typing import Any

from lab import bench_frames
from lab.config import LabConfig
from lab.emulation import PATH_MTU_BYTES, Emulation
from lab.errors import PlaitError
from lab.nics import TRANSPORTS, HostNic
from mininet_topos.catalogue import parse_choice
from mininet_topos.system import ip_batch, isolated
from rdma.verbs import CQ, MR, QP, Access, Device, Opcode, SendWR

QUEUE_PAIRS = (1, 10, 100, 1000)
_TOPOLOGY = "dumbbell:left=2,right=0,rate=100G,delay=0us"
_MESSAGE_BYTES, _OUTSTANDING = 1 << 20, 4
_WINDOW_PACKETS = 256
_ROUNDS = 3
_BARE_S = 1.0
_WAIT_S = 60.0
_HEADER_BYTES = 74  # Ethernet to BTH, RETH, ICRC


def run(talk: Callable[[str], None], stream_bytes: int) -> dict[str, Any]:
    """{"bare_pps", "streams": {transport: {"pps", "goodput_bps", "ratio", "retransmissions"}},
    "queue_pairs": [[queue pairs, goodput in bit/s, packets sent again]]}

    pps: payload packets a second; ratio: to bare_pps. Medians of 3 rounds. PlaitError if a transfer does not end well.
    """
    bare = statistics.median(_bare_pps() for _ in range(_ROUNDS))
    config = LabConfig.from_options(parse_choice(_TOPOLOGY), nic_memory_bytes=8 << 20, transports=TRANSPORTS)
    streams: dict[str, dict[str, float]] = {}
    with Emulation(config, talk) as lab:
        for name in TRANSPORTS:
            rounds = [_Stream(lab, name, 1).transfer(stream_bytes) for _ in range(_ROUNDS)]
            pps = statistics.median(each["pps"] for each in rounds)
            streams[name] = {
                "pps": pps,
                "goodput_bps": statistics.median(each["goodput_bps"] for each in rounds),
                "ratio": pps / bare,
                "retransmissions": statistics.median(each["retransmissions"] for each in rounds),
            }
            talk(f"{name}: {streams[name]['goodput_bps'] / 1e9:.2f} Gb/s")
        curve = []
        for count in QUEUE_PAIRS:
            each = _Stream(lab, "gbn", count).transfer(stream_bytes)
            curve.append([count, each["goodput_bps"], each["retransmissions"]])
    return {"bare_pps": bare, "streams": streams, "queue_pairs": curve}


def explain(result: dict[str, Any]) -> str:
    lines = [
        f"one stream of {_MESSAGE_BYTES >> 20} MiB WRITEs in packets of {PATH_MTU_BYTES} bytes, through one switch",
        f"  bare AF_PACKET forwarder     {result['bare_pps']:10,.0f} packets/s",
    ]
    for name, each in result["streams"].items():
        lines.append(
            f"  {name:<28} {each['pps']:10,.0f} packets/s = {each['ratio']:.2f} x bare, "
            f"{each['goodput_bps'] / 1e9:.2f} Gb/s, {each['retransmissions']:.0f} sent again"
        )
    lines.append("  gbn, the same bytes over so many queue pairs at once: Gb/s")
    lines.append("    queue pairs " + "".join(f"{count:>9,}" for count, *_ in result["queue_pairs"]))
    lines.append("    goodput     " + "".join(f"{rate / 1e9:9.2f}" for _, rate, _ in result["queue_pairs"]))
    lines.append("    sent again  " + "".join(f"{again:9,.0f}" for *_, again in result["queue_pairs"]))
    return "\n".join(lines)


class _Stream:
    """`count` connected queue pairs from h1 to h2."""

    def __init__(self, lab: Emulation, transport: str, count: int) -> None:
        self._lab, self._count = lab, count
        self._nic = HostNic(transport, transport, {"window_packets": _WINDOW_PACKETS, "slots": _WINDOW_PACKETS})

    def transfer(self, total_bytes: int) -> dict[str, float]:
        """Moves so many bytes, an equal share over each queue pair."""
        with ExitStack() as stack:
            one, other = (stack.enter_context(Device.open(self._lab.verbs_socket(name))) for name in ("h1", "h2"))
            pd, peer_pd = one.alloc_pd(), other.alloc_pd()
            source = pd.reg_mr(_MESSAGE_BYTES)
            target = peer_pd.reg_mr(_MESSAGE_BYTES, Access.LOCAL_WRITE | Access.REMOTE_WRITE)
            share = total_bytes // self._count
            size = min(_MESSAGE_BYTES, share // _OUTSTANDING)
            messages = share // size
            cq = one.create_cq(self._count * _OUTSTANDING)
            peer_cq = other.create_cq(1)
            pairs: list[QP] = []
            for _ in range(self._count):
                pair = pd.create_qp(cq, max_send_wr=_OUTSTANDING)
                peer = peer_pd.create_qp(peer_cq, max_send_wr=1)
                self._lab.connect("h1", pair, "h2", peer, nic=self._nic)
                pairs.append(pair)
            seconds = _drive(pairs, cq, source, target, size, messages)
            sent = [pair.stats() for pair in pairs]
        moved = self._count * messages * size
        return {
            "pps": moved / PATH_MTU_BYTES / seconds,
            "goodput_bps": 8 * moved / seconds,
            "retransmissions": sum(stats["retransmissions"] for stats in sent),
        }


def _drive(pairs: list[QP], cq: CQ, source: MR, target: MR, size: int, messages: int) -> float:
    """Posts `messages` WRITEs on each queue pair, _OUTSTANDING at a time; seconds to the last completion."""

    def write(number: int) -> SendWR:
        sg = source.sge(length=size)
        return SendWR(number, Opcode.RDMA_WRITE, sg, remote_addr=target.addr, rkey=target.rkey)

    left = [messages] * len(pairs)
    started = time.monotonic()
    for index, pair in enumerate(pairs):
        first = min(_OUTSTANDING, messages)
        pair.post_send(*(write(index) for _ in range(first)))
        left[index] -= first
    missing = messages * len(pairs)
    while missing:
        done = cq.wait(_WAIT_S, num_entries=256)
        if not done:
            raise PlaitError(f"{missing} WRITEs of a stream were not done after {_WAIT_S:.0f} s")
        for completion in done:
            if not completion.ok:
                raise PlaitError(f"a WRITE of a stream ended with {completion.status}")
            missing -= 1
            if left[completion.wr_id]:
                left[completion.wr_id] -= 1
                pairs[completion.wr_id].post_send(write(completion.wr_id))
    return time.monotonic() - started


def _bare_pps() -> float:
    """In a namespace that ends with its process, so that nothing can stay behind."""
    command = isolated([sys.executable, "-m", "lab.bench_stream"])
    child = subprocess.run(command, capture_output=True, text=True, check=False)
    if child.returncode:
        reason = child.stderr.strip().splitlines()[-1:] or ["no message"]
        raise PlaitError(f"the bare forwarder could not be measured: {reason[0]}")
    return float(json.loads(child.stdout))


def _measure_bare() -> float:
    import engine.bench
    from lab.bench_curves import one_switch

    a0, a1, b0, b1 = ends = [f"plait{number}" for number in range(4)]
    ip_batch(
        [f"link add {a} type veth peer name {b}" for a, b in ((a0, a1), (b0, b1))] + [f"link set {n} up" for n in ends]
    )
    source, sink = one_switch().hosts
    frame = bench_frames.write_packet(source, sink, source.mac, PATH_MTU_BYTES + _HEADER_BYTES)
    return engine.bench.bare_forwarding(a0, a1, b0, b1, frame, _BARE_S).per_second


if __name__ == "__main__":
    print(json.dumps(_measure_bare()))

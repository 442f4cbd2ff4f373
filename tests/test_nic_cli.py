"""`plait nic` beside a laboratory whose hosts have sent something: counters, queue pairs, bitmaps, errors."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator

import pytest

from lab.config import LabConfig
from lab.emulation import Emulation
from lab.results import ROOT
from mininet_topos.catalogue import parse_choice
from rdma.verbs import QP, Access, Device, Opcode, SendWR
from tests.conftest import needs_root

pytestmark = needs_root

LENGTH = 100 * 1024


@pytest.fixture(scope="module")
def queue_pair() -> Iterator[QP]:
    """Of h1, by which 100 packets have gone to h2."""
    config = LabConfig.from_options(parse_choice("dumbbell:left=2,right=0,rate=100M"), transports=("irn",))
    with (
        Emulation(config, lambda text: None) as lab,
        Device.open(lab.verbs_socket("h1")) as one,
        Device.open(lab.verbs_socket("h2")) as other,
    ):
        pd, peer_pd = one.alloc_pd(), other.alloc_pd()
        source, target = pd.reg_mr(LENGTH), peer_pd.reg_mr(LENGTH, Access.LOCAL_WRITE | Access.REMOTE_WRITE)
        cq = one.create_cq(4)
        pair, peer = pd.create_qp(cq), peer_pd.create_qp(other.create_cq(4))
        lab.connect("h1", pair, "h2", peer)
        pair.post_send(SendWR(1, Opcode.RDMA_WRITE, source.sge(), remote_addr=target.addr, rkey=target.rkey))
        (completion,) = cq.wait(20)
        assert completion.ok
        yield pair


def nic(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "lab.cli", "nic", *arguments], cwd=ROOT, capture_output=True, text=True, timeout=30
    )


def test_show_gives_counters_and_queue_pairs(queue_pair: QP) -> None:
    sender, receiver = (json.loads(nic("show", host, "--json").stdout) for host in ("h1", "h2"))
    assert receiver["counters"]["REQUEST_PLACED"] == 100
    assert receiver["counters"]["bytes_placed"] == LENGTH
    assert sender["counters"]["ACK_RECEIVED"] == receiver["counters"]["replies_sent"]
    (there,) = sender["queue_pairs"]
    assert (there["qpn"], there["transport"], there["state"]) == (queue_pair.qp_num, "irn", "RTS")
    text = nic("show", "h2").stdout
    assert "REQUEST_PLACED" in text and "1 queue pair" in text


def test_a_queue_pair_s_numbers_are_those_of_the_transfer(queue_pair: QP) -> None:
    shown = json.loads(nic("qp", "h1", f"{queue_pair.qp_num:#x}", "--json").stdout)
    sent = shown["requests_sent"]
    assert (sent["snd_una"], sent["in_flight"]) == (sent["snd_nxt"], 0)
    (peer,) = json.loads(nic("show", "h2", "--json").stdout)["queue_pairs"]
    assert peer["requests_received"]["expected"] == sent["snd_nxt"]
    assert (peer["requests_received"]["msn"], peer["requests_received"]["bitmap"]) == (1, "")
    assert "requests sent" in nic("qp", "h1", str(queue_pair.qp_num)).stdout


def test_watch_looks_as_often_as_it_is_told(queue_pair: QP) -> None:
    lines = nic("watch", "h1", hex(queue_pair.qp_num), "--count", "3", "--every", "0.01", "--json").stdout.splitlines()
    times = [json.loads(line)["time_s"] for line in lines]
    assert len(times) == 3 and times == sorted(times)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("show", "h11"), "no host 'h11' in the running laboratory; did you mean 'h1'?"),
        (("qp", "h1", "seven"), "queue pair 'seven': expected a number, such as 0x1a2b01."),
        (("qp", "h2", "1"), "no queue pair 1 on h2; it has 0x"),
    ],
)
def test_mistakes_are_named(queue_pair: QP, arguments: tuple[str, ...], message: str) -> None:
    result = nic(*arguments)
    assert result.returncode != 0
    assert message in " ".join(result.stderr.split())


def test_memory_needs_no_laboratory_and_keeps_the_papers_bounds() -> None:
    rows = {row["mechanism"]: row for row in json.loads(nic("memory", "--json").stdout)}
    assert int(rows["mprdma"]["total"]) <= 66  # MP-RDMA, table 1
    assert rows["eunomia"]["total"] == "4-82"  # Eunomia, table 1
    assert int(rows["dcqcn"]["total"]) <= 60  # MP-RDMA, section 1

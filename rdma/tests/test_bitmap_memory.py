"""A queue pair that ends with packets out of order gives its host's bitmap memory back (Eunomia)."""

from __future__ import annotations

import os
import struct
from collections.abc import Iterator

import pytest

from ebpf.loader import NicError
from ebpf.tests import packets as p
from ebpf.tests.rigs import HOST_IP, HOST_MAC, MTU, TX, XdpRig
from rdma.transmit import Engine, ip_number
from wire.codes import BthOpcode

EXTENSION_DATA = 1
QPNS = (0x111111, 0x222222)


@pytest.fixture
def rig() -> Iterator[XdpRig]:
    if os.geteuid() != 0:
        pytest.skip("loading an XDP program needs root")
    try:
        made = XdpRig(("eunomia",))
    except NicError as error:
        pytest.skip(f"no XDP here: {error}")
    yield made
    made.close()


def early_packet(qpn: int, number: int) -> bytes:
    """A packet of a WRITE of no bytes, whose place in the connection is all that matters."""
    xdata = struct.pack("!IIII", 0, 0, 0, 0)
    reth = p.reth(0, 0, 0)
    return p.frame(int(BthOpcode.RC_WRITE_ONLY), number, qpn, b"", xdata + reth, resv7=EXTENSION_DATA)


def test_it_comes_back_with_the_next_request(rig: XdpRig) -> None:
    engine = Engine(rig.nic)
    namespace = os.open("/proc/self/ns/net", os.O_RDONLY)
    try:
        engine.add_host(rig.host, namespace, "lo", HOST_MAC, HOST_IP, 0)
        cq, _ = engine.create_cq(16)
        for rq, qpn in enumerate(QPNS):
            engine.create_rq(rq, rq, 1, shared=False)
            engine.create_qp(qpn, host=rig.host, pd=1, rq=rq, max_send_wr=1, send_cq=cq, recv_cq=cq)
            engine.to_rtr(
                qpn, p.ENDS.src_mac, remote_qpn=1, remote_ip=ip_number(p.ENDS.src_ip), udp_source_port=50_000,
                path_mtu=MTU, pkey=0xFFFF, receive_psn=0, transport=engine.transports["eunomia"], slots=16, rtt_ns=1000,
            )  # fmt: skip
        memory = rig.host_states[rig.host].memory.stats
        assert rig.receive(early_packet(QPNS[0], 200))[0] == TX
        held = list(memory.blocks)
        assert held == [24, 13, 3]
        engine.destroy_qp(QPNS[0])
        assert list(memory.blocks) == held
        assert rig.receive(early_packet(QPNS[1], 1))[0] == TX
        assert list(memory.blocks) == [24, 1, 3]
        assert (memory.connections, memory.reclaimed) == (1, 1)
    finally:
        engine.close()
        os.close(namespace)

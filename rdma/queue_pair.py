"""Queue pairs and shared receive queues: posting work, and the states IBTA gives them (vol. 1, section 10.3.1)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from rdma.protocol import POST_MAX
from rdma.work import RecvWR, SendWR

if TYPE_CHECKING:
    from rdma.verbs import CQ, PD, Device


def _post(device: Device, op: str, member: str, encoded: Sequence[dict[str, Any]], **whose: int) -> None:
    for first in range(0, len(encoded), POST_MAX):
        device.call(op, **whose, **{member: encoded[first : first + POST_MAX]})


class SRQ:
    """A shared receive queue: its queue pairs take receives from it in the order of need."""

    def __init__(self, pd: PD, handle: int, max_wr: int) -> None:
        self.pd = pd
        self.handle = handle
        self.max_wr = max_wr

    def post_recv(self, *requests: RecvWR) -> None:
        """Posts in order.  On an error, its text says how many of the batch went in."""
        _post(self.pd.device, "post_srq_recv", "receives", [wr.encode() for wr in requests], srq=self.handle)

    def destroy(self) -> None:
        """EBUSY while a queue pair uses it."""
        self.pd.device.call("destroy_srq", srq=self.handle)


class QP:
    """A queue pair of the reliable connection service.  It is made in INIT, so that receives can be posted at once."""

    def __init__(self, pd: PD, qp_num: int, send_cq: CQ, recv_cq: CQ) -> None:
        self.pd = pd
        self.qp_num = qp_num
        self.send_cq = send_cq
        self.recv_cq = recv_cq

    def modify_rtr(
        self,
        dest_qpn: int,
        dest_ip: str,
        rq_psn: int,
        dest_mac: str | None = None,
        path_mtu: int | None = None,
        udp_source_port: int | None = None,
        transport: str | None = None,
        congestion: str | None = None,
        slots: int | None = None,
        delta: int | None = None,
        priority: int | None = None,
        min_rnr_timer: int | None = None,
        credits: bool | None = None,
        hold_last: bool | None = None,
        selective: bool | None = None,
    ) -> dict[str, int]:
        """INIT to RTR.  What is None has the agent's default; both ends must choose alike.  Returns what was chosen.

        dest_mac: the next hop's (default: the host's gateway).
        path_mtu: payload bytes, 256 to 4096.
        udp_source_port: picks the path; of MP-RDMA, the first of its virtual paths.
        transport: one of `Device.transports`.
        congestion: "window", "dcqcn" or "none".
        slots: packets that this end tracks out of order, a power of two up to 256 (IRN's BDP cap, MP-RDMA's L).
        delta: packets by which MP-RDMA's paths may differ (section 3.3).
        priority: PFC priority, 0 to 7, also the class selector of the packets' DSCP.
        min_rnr_timer: what a sender is told to wait where no receive is posted, a code of IBTA vol. 1, table 45.
        credits: end-to-end flow control by AETH credits (IBTA vol. 1, section 9.7.7.2).
        hold_last: Eunomia, appendix A.1: this end holds an early last WRITE packet, and its sender need not delay it.
        selective: Eunomia over selective repeat rather than go-back-N.
        """
        return self.pd.device.call(
            "modify_qp_rtr",
            qpn=self.qp_num,
            dest_qpn=dest_qpn,
            dest_ip=dest_ip,
            dest_mac=dest_mac,
            rq_psn=rq_psn,
            path_mtu=path_mtu,
            udp_source_port=udp_source_port,
            transport=transport,
            congestion=congestion,
            slots=slots,
            delta=delta,
            priority=priority,
            min_rnr_timer=min_rnr_timer,
            credits=credits,
            hold_last=hold_last,
            selective=selective,
        )

    def modify_rts(
        self,
        sq_psn: int,
        window_packets: int | None = None,
        initial_window: int | None = None,
        probe_per_mille: int | None = None,
        alpha_per_mille: int | None = None,
        timeout_us: int | None = None,
        retry_cnt: int | None = None,
        rnr_retry: int | None = None,
        max_rd_atomic: int | None = None,
        mark_remaining: bool = False,
    ) -> dict[str, int]:
        """RTR to RTS; what is None has the agent's default.  Returns what was chosen.

        window_packets: most packets in flight; at most the peer's slots, for a transport that has them.
        initial_window, probe_per_mille, alpha_per_mille: MP-RDMA's IW in packets (section 3.2), p (3.5), alpha (3.4).
        timeout_us: first retransmission timeout; it doubles.
        retry_cnt: timeouts in a row before RETRY_EXC_ERR, 0 to 7.
        rnr_retry: the same for a receiver that is not ready; 7: without end.
        max_rd_atomic: READs and atomics outstanding, 1 to 16.
        mark_remaining: data packets say in their DSCP how much of their message is left (p4src/include/codes.p4), for
        switches that schedule by it.
        """
        return self.pd.device.call(
            "modify_qp_rts",
            qpn=self.qp_num,
            sq_psn=sq_psn,
            window_packets=window_packets,
            initial_window=initial_window,
            probe_per_mille=probe_per_mille,
            alpha_per_mille=alpha_per_mille,
            timeout_us=timeout_us,
            retry_cnt=retry_cnt,
            rnr_retry=rnr_retry,
            max_rd_atomic=max_rd_atomic,
            mark_remaining=mark_remaining,
        )

    def modify_error(self) -> None:
        """Any state to ERROR: what is outstanding completes with WR_FLUSH_ERR."""
        self.pd.device.call("modify_qp_error", qpn=self.qp_num)

    def post_send(self, *requests: SendWR) -> None:
        """Posts in order.  On an error, its text says how many of the batch went in.

        Memory that is not there becomes a completion with LOC_PROT_ERR, as everything that happens later.
        """
        _post(self.pd.device, "post_send", "requests", [wr.encode() for wr in requests], qpn=self.qp_num)

    def post_recv(self, *requests: RecvWR) -> None:
        """Posts in order.  On an error, its text says how many of the batch went in."""
        _post(self.pd.device, "post_recv", "receives", [wr.encode() for wr in requests], qpn=self.qp_num)

    @property
    def state(self) -> str:
        """INIT, RTR, RTS or ERROR."""
        return self.pd.device.call("query_qp", qpn=self.qp_num)["state"]

    def stats(self) -> dict[str, int]:
        """Counters of this queue pair by name: struct rdma_qp_stats of rdma/csrc/api.h."""
        return self.pd.device.call("query_qp", qpn=self.qp_num)["stats"]

    def destroy(self) -> None:
        self.pd.device.call("destroy_qp", qpn=self.qp_num)


def connect(one: QP, other: QP, psns: tuple[int, int] = (0, 0), rtr: dict[str, Any] | None = None, **rts: Any) -> None:
    """Connects two queue pairs of one process: `one` starts at psns[0], `other` at psns[1].

    rtr, rts: arguments of modify_rtr and modify_rts, for both.  The next hop is each host's gateway, or the peer itself
    where it has none.
    """
    for here, there, receives in ((one, other, psns[1]), (other, one, psns[0])):
        near, far = here.pd.device, there.pd.device
        here.modify_rtr(there.qp_num, far.ipv4, receives, dest_mac=near.gateway_mac or far.mac, **(rtr or {}))
    for here, sends in ((one, psns[0]), (other, psns[1])):
        here.modify_rts(sends, **rts)

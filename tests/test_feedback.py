"""What a program compiled with PLAIT_FEEDBACK knows of a queue, packet by packet, against a queue in plain Python."""

from itertools import islice

import pytest

from tests.feedback_staleness import PROBE, PROBE_FRAME, RATE_BPS, TX_NS, Seen, arrivals_ns, quantile
from tests.p4_rig import Rig


def modelled(arrivals: list[int]) -> list[Seen]:
    """A queue that serves a packet in TX_NS. What is known of it is what waited when its last packet left it."""
    starts: list[int] = []  # when each packet left the queue
    found = []
    for number, now in enumerate(arrivals):
        gone = sum(start <= now for start in starts)
        then = starts[gone - 1] if gone else 0
        joined = sum(arrival <= then for arrival in arrivals[:number]) if gone else 0
        fed = joined - gone
        found.append(Seen(fed, number - gone, now // 1000 - then // 1000, number - joined))
        starts.append(max(now, starts[-1] + TX_NS) if starts else now)
    return found


@pytest.mark.parametrize(("load", "burst"), [(0.5, 1), (0.95, 1), (0.6, 8)])
def test_what_is_known_is_what_the_last_packet_left_behind(load: float, burst: int) -> None:
    arrivals = list(islice(arrivals_ns(load, burst, 11), 800))
    made = Rig(PROBE, 2, feedback=True)
    try:
        made.switch.set_queue(2, rate_bps=RATE_BPS)
        for now in arrivals:
            made.fabric.run_until(now)
            made.switch.inject(1, PROBE_FRAME)
        made.fabric.run_until(arrivals[-1] + len(arrivals) * TX_NS)
        seen = [Seen.of(data) for _, data in made.sent()]
    finally:
        made.close()
    assert seen == modelled(arrivals)
    assert any(each.fed != each.found for each in seen)  # or nothing would have been stale


def test_bursts_come_at_the_load_they_are_said_to() -> None:
    for load, burst in ((0.3, 1), (0.6, 32)):
        times = list(islice(arrivals_ns(load, burst, 5), 20_000))
        assert times == sorted(times)
        assert len(times) * TX_NS / times[-1] == pytest.approx(load, rel=0.05)


def test_quantiles() -> None:
    assert [quantile([5, 1, 4, 2, 3], share) for share in (0, 0.5, 0.99)] == [1, 3, 5]

"""What BMv2 promises around the traffic manager: replication, clones, resubmit, metadata, queues, bound registers."""

from __future__ import annotations

import random
import select
from pathlib import Path

import pytest

import engine
from engine.tests.frames import frame, mac, number, port, telemetry

FORWARD, DROP, MULTICAST, CLONE_I2E, DIGEST, RESUBMIT, RECIRCULATE, WIDE, METERED, CLONE_E2E, EGRESS_DROP, PRIORITY = (
    range(12)
)
QUEUE_BYTES, QUEUE_PACKETS, PORT_UP = 1, 2, 3
LOST_IN_PARSER = 77
"""Metadata that the parser of the echo program writes."""


def program(switch: engine.Switch, destination: int, action: int, params: bytes) -> int:
    return switch.entry_insert(0, mac(destination), None, None, None, 0, ("action", action, params))


def sent(switch: engine.Switch) -> list[engine.Sent]:
    return [event for event in switch.poll_events() if isinstance(event, engine.Sent)]


def test_unicast_and_what_egress_sees(switch: engine.Switch) -> None:
    program(switch, 9, FORWARD, port(2))
    switch.inject(3, frame(9, b"payload"))
    (out,) = sent(switch)
    assert out.port == 2
    assert out.frame[34:].startswith(b"payload")
    seen = telemetry(out.frame)
    assert (seen.instance_type, seen.ingress_port, seen.egress_rid, seen.lose) == (0, 3, 0, LOST_IN_PARSER)


def test_drops_are_counted_by_cause(switch: engine.Switch) -> None:
    program(switch, 1, DROP, b"")
    program(switch, 2, EGRESS_DROP, port(1))
    program(switch, 3, FORWARD, port(400))
    program(switch, 4, MULTICAST, number(99))
    program(switch, 5, PRIORITY, port(1) + number(2))
    for destination in range(1, 6):
        switch.inject(1, frame(destination))
    assert sent(switch) == []
    stats = switch.stats()
    causes = ("drops_ingress", "drops_egress", "drops_no_port", "drops_unknown_group", "drops_priority")
    assert [stats[cause] for cause in causes] == [1] * 5
    assert stats["received"] == 5


def test_multicast_keeps_the_order_of_replicas(switch: engine.Switch, fabric: engine.Fabric) -> None:
    program(switch, 9, MULTICAST, number(7))
    switch.multicast_set(7, [(3, 30), (1, 10), (3, 31), (2, 20)])
    switch.inject(1, frame(9, b"x"))
    out = sent(switch)
    assert [(o.port, telemetry(o.frame).egress_rid) for o in out] == [(3, 30), (1, 10), (3, 31), (2, 20)]
    assert {telemetry(o.frame).instance_type for o in out} == {5}
    switch.multicast_delete(7)
    switch.inject(1, frame(9))
    assert sent(switch) == []
    assert fabric.packets_alive == 0


def test_ingress_clone_is_the_packet_as_it_came_with_its_field_list(switch: engine.Switch) -> None:
    program(switch, 9, CLONE_I2E, port(1) + number(5))
    switch.clone_session_set(5, [(3, 8), (510, 9)], truncate=40)
    switch.inject(2, frame(9, b"abcdefghij", size=100))
    events = switch.poll_events()
    original = next(e for e in events if isinstance(e, engine.Sent) and e.port == 1)
    clone = next(e for e in events if isinstance(e, engine.Sent) and e.port == 3)
    (punted,) = (e for e in events if isinstance(e, engine.PacketIn))
    assert len(original.frame) == 100
    assert len(clone.frame) == len(punted.frame) == 40
    seen = telemetry(clone.frame)
    assert (seen.instance_type, seen.egress_rid, seen.ingress_port) == (1, 8, 0)
    assert (seen.keep, seen.lose) == (1234, 0)  # the parser's metadata is reset as well
    assert telemetry(punted.frame).egress_rid == 9


def test_egress_clone_has_the_headers_of_the_end_of_egress(switch: engine.Switch, fabric: engine.Fabric) -> None:
    program(switch, 9, CLONE_E2E, port(1) + number(6))
    switch.clone_session_set(6, [(2, 4)])
    switch.inject(3, frame(9))
    fabric.run()
    by_port = {o.port: telemetry(o.frame) for o in sent(switch)}
    assert (by_port[1].instance_type, by_port[1].lose) == (0, 55)
    assert (by_port[2].instance_type, by_port[2].egress_rid, by_port[2].keep, by_port[2].lose) == (2, 4, 1234, 0)


def test_a_clone_waits_in_the_queue_of_its_session(switch: engine.Switch, fabric: engine.Fabric) -> None:
    program(switch, 9, CLONE_I2E, port(2) + number(5))
    program(switch, 8, FORWARD, port(3))
    switch.clone_session_set(5, [(3, 0)], priority=1)
    switch.set_queue(3, rate_bps=8_000)
    for _ in range(3):
        switch.inject(1, frame(8))
    switch.inject(1, frame(9))
    fabric.run()
    on_wire = [telemetry(o.frame).instance_type for o in sent(switch) if o.port == 3]
    assert on_wire == [0, 1, 0, 0]  # the first was being sent already
    with pytest.raises(ValueError, match="clone session 5: queue 2, but ports have 2"):
        switch.clone_session_set(5, [(3, 0)], priority=2)


def test_a_clone_to_no_session_is_no_clone(switch: engine.Switch) -> None:
    program(switch, 9, CLONE_I2E, port(1) + number(5))
    switch.inject(2, frame(9))
    assert [o.port for o in sent(switch)] == [1]


def test_the_last_digest_of_a_packet_is_sent(switch: engine.Switch) -> None:
    program(switch, 9, DIGEST, port(1))
    switch.inject(2, frame(9))
    digests = [e for e in switch.poll_events() if isinstance(e, engine.Digest)]
    assert digests == [engine.Digest(1, mac(1))]


def test_events_come_in_portions_and_end_with_their_program(switch: engine.Switch, echo: Path) -> None:
    program(switch, 9, DIGEST, port(1))
    for _ in range(5):
        switch.inject(2, frame(9))
    assert len(switch.poll_events(at_most=4)) == 4
    assert select.select([switch.event_fd], [], [], 0)[0]
    switch.load(echo)  # a digest of the old program could not be read with the new one's schema
    assert not select.select([switch.event_fd], [], [], 0)[0]
    assert switch.poll_events() == []
    assert switch.stats()["drops_event"] == 6


@pytest.mark.parametrize(("action", "loops"), [(RESUBMIT, 3), (RECIRCULATE, 4)])
def test_loops_keep_only_the_field_list(switch: engine.Switch, fabric: engine.Fabric, action: int, loops: int) -> None:
    program(switch, 9, action, port(1) + number(loops))
    switch.inject(2, frame(9))
    fabric.run()
    (out,) = sent(switch)
    seen = telemetry(out.frame)
    assert seen.keep == loops
    assert (seen.instance_type, seen.ingress_port) == (0, 0)
    assert switch.stats()["processed"] == loops + 1
    assert switch.stats()["received"] == 1


def test_an_endless_resubmission_ends_with_the_clock(switch: engine.Switch, fabric: engine.Fabric) -> None:
    program(switch, 9, RESUBMIT, port(1) + number(60_000))
    for _ in range(1100):
        switch.inject(2, frame(9))
    assert switch.stats()["drops_loop"] == 1100 - 1024
    fabric.run_until(10_000)
    assert fabric.now_ns == 10_000


def test_queue_depths_are_those_of_bmv2(switch: engine.Switch, fabric: engine.Fabric) -> None:
    """enq_qdepth counts before the push, deq_qdepth after the pop; times are in us."""
    program(switch, 9, FORWARD, port(1))
    switch.set_queue(1, rate_bps=8_000_000)  # 1 byte/us
    for _ in range(4):
        switch.inject(2, frame(9, size=100))
    live = [int.from_bytes(switch.register_read(r, 1), "big") for r in (QUEUE_BYTES, QUEUE_PACKETS)]
    assert live == [300, 3]  # the first one is on the wire
    assert switch.port_stats(1)["queue_bytes"] == 300
    fabric.run()
    seen = [telemetry(o.frame) for o in sent(switch)]
    assert [s.enq_qdepth for s in seen] == [0, 0, 1, 2]
    assert [s.deq_qdepth for s in seen] == [0, 2, 1, 0]
    assert [s.deq_timedelta for s in seen] == [0, 100, 200, 300]
    assert fabric.now_ns == 300_000
    assert switch.register_read(QUEUE_BYTES, 1) == bytes(4)


def test_tail_drop_by_packets_and_by_bytes(switch: engine.Switch, fabric: engine.Fabric) -> None:
    program(switch, 9, FORWARD, port(1))
    switch.set_queue(1, rate_bps=1_000, depth_packets=3)
    for _ in range(10):
        switch.inject(2, frame(9, size=100))
    assert switch.port_stats(1)["drops_queue"] == 6
    switch.set_queue(1, depth_packets=1000, depth_bytes=550, queue=0)
    for _ in range(10):
        switch.inject(2, frame(9, size=100))
    stats = switch.port_stats(1)
    assert (stats["drops_queue"], stats["queue_bytes"], stats["max_queue_packets"]) == (14, 500, 5)
    fabric.run()
    assert len(sent(switch)) == 6


def test_strict_priority(switch: engine.Switch, fabric: engine.Fabric) -> None:
    switch.set_queue(1, rate_bps=1_000_000)
    program(switch, 8, PRIORITY, port(1) + number(0))
    program(switch, 9, PRIORITY, port(1) + number(1))
    for destination in (8, 8, 8, 9, 9):
        switch.inject(2, frame(destination))
    fabric.run()
    assert [o.frame[5] for o in sent(switch)] == [8, 9, 9, 8, 8]


def test_bound_registers_have_the_size_of_the_ports_at_most(switch: engine.Switch) -> None:
    assert [len(list(switch.register_read_all(r))) for r in (QUEUE_BYTES, PORT_UP)] == [512, 64]
    up = list(switch.register_read_all(PORT_UP))
    assert [n for n, cell in enumerate(up) if cell != b"\0"] == [1, 2, 3, 4]


def test_loading_again_starts_afresh(switch: engine.Switch, fabric: engine.Fabric, echo: Path) -> None:
    program(switch, 9, FORWARD, port(1))
    switch.set_queue(1, rate_bps=1_000)
    for _ in range(5):
        switch.inject(2, frame(9))
    switch.load(echo)
    assert switch.stats()["drops_reload"] == 4
    assert fabric.packets_alive == 0
    assert (switch.entry_count(0), switch.counter_read(0, 2)) == (0, (0, 0))
    switch.inject(2, frame(9))
    fabric.run()
    assert switch.stats()["drops_ingress"] == 1


def test_short_frames_are_harmless(switch: engine.Switch) -> None:
    switch.default_set(0, ("action", FORWARD, port(1)))
    for length in range(1, 40):
        switch.inject(1, frame(9)[:length])
    assert [len(o.frame) for o in sent(switch)] == list(range(1, 40))


def test_packet_out_arrives_at_the_cpu_port(switch: engine.Switch) -> None:
    program(switch, 9, FORWARD, port(510))
    switch.packet_out(510, frame(9))
    (event,) = switch.poll_events()
    assert isinstance(event, engine.PacketIn)
    assert telemetry(event.frame).ingress_port == 510


def test_port_0_is_no_cpu_port_where_there_is_none(fabric: engine.Fabric, echo: Path) -> None:
    without = fabric.add_switch("without", cpu_port=0)
    without.load(echo)
    without.tap(0)
    without.default_set(0, ("action", FORWARD, port(0)))
    without.inject(1, frame(9))
    fabric.run()
    (event,) = without.poll_events()
    assert event == engine.Sent(0, event.frame)


def test_no_packet_is_lost_uncounted(switch: engine.Switch, fabric: engine.Fabric) -> None:
    """Every action, few queue places, slow ports, a reload: what came or was copied was sent, dropped or waits."""
    draw = random.Random(1)
    switch.set_queue(1, rate_bps=10**6, depth_packets=3)
    switch.multicast_set(7, [(1, 0), (2, 1), (400, 2)])
    switch.clone_session_set(7, [(1, 8), (510, 9)])
    params = {FORWARD: port(1), DROP: b"", MULTICAST: number(7), EGRESS_DROP: port(1), PRIORITY: port(1) + number(2)}
    for action in (CLONE_I2E, CLONE_E2E):
        params[action] = port(2) + number(7)
    for action in (RESUBMIT, RECIRCULATE):
        params[action] = port(1) + number(2)
    for destination, action in enumerate(params):
        program(switch, destination, action, params[action])
    for _ in range(3000):
        switch.inject(draw.randrange(512), frame(draw.randrange(len(params) + 1), size=draw.randrange(14, 200)))
        fabric.run_until(fabric.now_ns + draw.randrange(200_000))
        stats = switch.stats()
        ports = [switch.port_stats(number) for number in (1, 2, 3, 4, 510)]
        out = sum(each["sent_packets"] + each["drops_queue"] for each in ports)
        dropped = sum(count for name, count in stats.items() if name.startswith("drops_") and name != "drops_event")
        assert stats["received"] + stats["copies"] == out + dropped + fabric.packets_alive
    assert stats["copies"] > 500 and all(stats[f"drops_{cause}"] for cause in ("ingress", "egress", "no_port"))
    assert ports[0]["drops_queue"] > 0


def test_programs_and_ports_are_checked(fabric: engine.Fabric, switch: engine.Switch, tmp_path: Path) -> None:
    empty = fabric.add_switch("empty")
    with pytest.raises(ValueError, match="switch empty has no program"):
        empty.entry_insert(0, b"", None, None, None, 0, ("action", 0, b""))
    with pytest.raises(ValueError, match="switch empty has no program"):
        empty.describe()
    (tmp_path / "no.so").write_bytes(b"not a shared object")
    with pytest.raises(ValueError, match=r"no\.so"):
        empty.load(tmp_path / "no.so")
    with pytest.raises(IndexError, match="port 511 of switch s1"):
        switch.tap(511)
    with pytest.raises(engine.EntryExists, match="port 1 of switch s1 is the CPU port or tapped"):
        switch.tap(1)
    with pytest.raises(ValueError, match="0 bytes are not in"):
        switch.inject(1, b"")
    with pytest.raises(IndexError, match="port 600"):
        switch.inject(600, frame(1))
    with pytest.raises(ValueError, match="'s1' exists"):
        fabric.add_switch("s1")


def test_a_closed_fabric_says_so(echo: Path) -> None:
    fabric = engine.Fabric("virtual")
    switch = fabric.add_switch("s")
    fabric.close()
    fabric.close()
    with pytest.raises(ValueError, match="the fabric is closed"):
        switch.load(echo)


def test_description(switch: engine.Switch) -> None:
    described = switch.describe()
    assert described.program == "echo"
    route = described.table["route"]
    assert (route.kind, route.keys[0].match, route.size) == (
        engine.TableKind.INDIRECT_SELECTOR,
        engine.Match.LPM,
        200_000,
    )
    (wide,) = described.actions_named("wide")
    assert (wide.id, wide.params_length) == (8, 13)
    assert described.register["wide"].width == 100
    assert described.learn[0].widths == (48,)

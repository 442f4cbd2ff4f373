"""Draining a real-time fabric: the event comes when no packet is left, after those of all packets."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

import engine
from engine.switch import MAX_WAITING_EVENTS
from engine.tests.conftest import Veths
from engine.tests.frames import frame, mac, port

FORWARD = 0


@pytest.fixture
def switch(echo: Path) -> Iterator[engine.Switch]:
    """One that runs, and forwards frames for address 9 to port 1, which is tapped."""
    with engine.Fabric("real") as fabric:
        made = fabric.add_switch("s1")
        made.load(echo)
        made.entry_insert(0, mac(9), None, None, None, 0, ("action", FORWARD, port(1)))
        made.tap(1)
        fabric.start()
        yield made


def until_drained(switch: engine.Switch) -> list[engine.switch.Event]:
    events: list[engine.switch.Event] = []
    while not events or not isinstance(events[-1], engine.Drained):
        found = switch.poll_events(timeout=10.0)
        assert found, "no event for ten seconds"
        events += found
    return events


def test_an_idle_fabric_is_drained_at_once(switch: engine.Switch) -> None:
    switch.drain(5)
    assert until_drained(switch) == [engine.Drained(5)]


def test_drained_comes_after_the_queue_is_empty_and_packets_keep_their_tags(switch: engine.Switch) -> None:
    switch.set_queue(1, rate_bps=10_000_000)  # 100 us a packet
    for tag in range(1, 201):
        switch.inject(0, frame(9, size=125), tag)
    assert switch.port_stats(1)["queue_packets"] > 0, "the queue is empty already: the test proves nothing"
    switch.drain(1 << 63)
    events = until_drained(switch)
    assert [event.tag for event in events] == [*range(1, 201), 1 << 63]
    assert switch.fabric.packets_alive == 0


def test_drained_is_not_lost_when_events_are(switch: engine.Switch) -> None:
    beyond = 10
    for _ in range(MAX_WAITING_EVENTS + beyond):
        switch.inject(0, frame(9))
    switch.drain(3)
    events = until_drained(switch)
    assert len(events) == MAX_WAITING_EVENTS + 1
    assert switch.stats()["drops_event"] == beyond


def test_drained_survives_a_new_program(switch: engine.Switch, echo: Path) -> None:
    switch.set_queue(1, rate_bps=1_000)  # a second a packet
    for _ in range(20):
        switch.inject(0, frame(9, size=125))
    switch.drain(3)
    switch.load(echo)
    assert until_drained(switch)[-1] == engine.Drained(3)
    assert switch.stats()["drops_reload"] > 0


def test_a_later_drain_replaces_one_that_waits(switch: engine.Switch, echo: Path) -> None:
    switch.set_queue(1, rate_bps=1_000)
    for _ in range(3):
        switch.inject(0, frame(9, size=125))
    switch.drain(1)
    switch.drain(2)
    switch.load(echo)
    assert [event for event in until_drained(switch) if isinstance(event, engine.Drained)] == [engine.Drained(2)]


def test_drain_is_for_real_time_without_interfaces(echo: Path, veths: Veths) -> None:
    with engine.Fabric() as fabric, pytest.raises(ValueError, match="drain: the fabric's clock is virtual"):
        fabric.add_switch("s1").drain()
    with engine.Fabric("real") as fabric:
        made = fabric.add_switch("s1")
        veths.add("in0", "out0")
        veths.enter(lambda: fabric.attach(made, 1, "in0"))
        with pytest.raises(ValueError, match="drain: the fabric has interfaces"):
            made.drain()


def test_the_state_of_a_port_without_link(switch: engine.Switch) -> None:
    switch.set_port_up(1, False)
    switch.inject(0, frame(9))
    switch.drain()
    assert [type(event) for event in until_drained(switch)] == [engine.Sent, engine.Drained], "packets pass as before"
    for number in (2, 511, 512):
        with pytest.raises(IndexError, match=f"port {number} of switch s1: there is no such port without link"):
            switch.set_port_up(number, True)

"""Tables through the binding against plain Python models."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import engine
from engine.tests.frames import frame, ipv4, mac, number, port, telemetry

FORWARD, DROP, MEMBERS = 0, 1, 16
MAC, ROUTE, ACL, VRF, TINY = range(5)
EXAMPLES = settings(
    max_examples=15 if os.environ.get("PLAIT_ENGINE_SANITIZED") else 60,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)

prefixes = st.tuples(st.integers(0, 255), st.integers(0, 3), st.integers(0, 32))


def address(high: int, low: int) -> int:
    """Few distinct addresses, spread over both ends, so that prefixes nest."""
    return high << 24 | low


def covers(rule: tuple[int, int], value: int) -> bool:
    base, length = rule
    return length == 0 or (base ^ value) >> (32 - length) == 0


@EXAMPLES
@given(
    rules=st.lists(prefixes, max_size=40),
    probes=st.lists(st.tuples(st.integers(0, 255), st.integers(0, 3)), max_size=20),
)
def test_longest_prefix_wins(echo: Path, rules: list[tuple[int, int, int]], probes: list[tuple[int, int]]) -> None:
    with engine.Fabric("virtual") as fabric:
        switch = fabric.add_switch("s")
        switch.load(echo)
        model: dict[tuple[int, int], int] = {}
        for index, (high, low, length) in enumerate(rules):
            value = address(high, low)
            key = (value >> (32 - length) << (32 - length) if length else 0, length)
            out = 1 + index
            member = switch.member_create(FORWARD, port(out))
            arguments = (ROUTE, value.to_bytes(4, "big"), None, length, None, 0, ("member", member))
            if key in model:
                with pytest.raises(engine.EntryExists):
                    switch.entry_insert(*arguments)
            else:
                switch.entry_insert(*arguments)
                model[key] = out
        for out in range(1, len(rules) + 1):
            switch.tap(out)
        for high, low in probes:
            value = address(high, low)
            hits = [rule for rule in model if covers(rule, value)]
            switch.inject(0, ipv4(".".join(str(b) for b in value.to_bytes(4, "big"))))
            sent = switch.poll_events()
            if hits:
                assert [event.port for event in sent] == [model[max(hits, key=lambda rule: rule[1])]]
            else:
                assert sent == []


@EXAMPLES
@given(
    st.lists(
        st.tuples(st.sampled_from(["insert", "delete", "modify"]), st.integers(0, 9), st.integers(1, 4)), max_size=60
    )
)
def test_exact_follows_a_dictionary(echo: Path, steps: list[tuple[str, int, int]]) -> None:
    with engine.Fabric("virtual") as fabric:
        switch = fabric.add_switch("s")
        switch.load(echo)
        for out in range(1, 5):
            switch.tap(out)
        model: dict[int, tuple[int, int]] = {}
        for verb, key, out in steps:
            target = ("action", FORWARD, port(out))
            if verb == "insert" and key in model:
                with pytest.raises(engine.EntryExists):
                    switch.entry_insert(MAC, mac(key), None, None, None, 0, target)
            elif verb == "insert":
                model[key] = (switch.entry_insert(MAC, mac(key), None, None, None, 0, target), out)
            elif key in model and verb == "modify":
                switch.entry_modify(MAC, model[key][0], target)
                model[key] = (model[key][0], out)
            elif key in model:
                handle, _ = model.pop(key)
                switch.entry_delete(MAC, handle)
                with pytest.raises(IndexError, match="no such entry in table mac"):
                    switch.entry_counter(MAC, handle)
        assert switch.entry_count(MAC) == len(model)
        for key in range(10):
            switch.inject(0, frame(key))
            assert [e.port for e in switch.poll_events()] == ([model[key][1]] if key in model else [])


def test_groups_spread_by_weight_in_order_of_handle(switch: engine.Switch) -> None:
    first, second, third = (switch.member_create(FORWARD, port(n)) for n in (1, 2, 3))
    group = switch.group_create()
    switch.group_set(group, [(third, 1), (first, 2), (second, 1)])
    switch.entry_insert(ROUTE, bytes([10, 0, 0, 0]), None, 8, None, 0, ("group", group))
    for last in range(4):
        switch.inject(0, ipv4(f"10.0.0.{last}", source="10.0.0.0"))
    seen = [event.port for event in switch.poll_events() if isinstance(event, engine.Sent)]
    assert sorted(seen) == [1, 1, 2, 3]
    switch.group_set(group, [])
    switch.inject(0, ipv4("10.0.0.1"))
    assert switch.poll_events() == []


def test_modifying_a_member_changes_all_that_use_it(switch: engine.Switch) -> None:
    member = switch.member_create(FORWARD, port(1))
    group = switch.group_create()
    switch.group_set(group, [(member, 3)])
    switch.entry_insert(ROUTE, bytes([10, 0, 0, 0]), None, 8, None, 0, ("group", group))
    switch.entry_insert(ROUTE, bytes([11, 0, 0, 0]), None, 8, None, 0, ("member", member))
    switch.member_modify(member, FORWARD, port(2))
    for destination in ("10.1.1.1", "11.1.1.1"):
        switch.inject(0, ipv4(destination))
    assert [event.port for event in switch.poll_events()] == [2, 2]
    with pytest.raises(engine.InUse, match="still use it"):
        switch.member_delete(member)


def test_an_insert_refused_when_the_hash_had_to_grow_leaves_it_sound(switch: engine.Switch) -> None:
    handles = []
    for key in range(200):
        target = ("action", FORWARD, port(1))
        handles.append(switch.entry_insert(MAC, mac(key), None, None, None, 0, target))
        with pytest.raises(engine.EntryExists):
            switch.entry_insert(MAC, mac(key), None, None, None, 0, target)
        switch.entry_delete(MAC, handles[0])
        handles[0] = switch.entry_insert(MAC, mac(0), None, None, None, 0, target)
    for key in range(0, 200, 2):
        switch.entry_delete(MAC, handles[key])
    for key in range(200):
        switch.inject(0, frame(key))
        assert len(switch.poll_events()) == key % 2


def test_errors_name_what_is_wrong(switch: engine.Switch) -> None:
    forward = ("action", FORWARD, port(1))
    with pytest.raises(ValueError, match="key for table mac: 5 bytes given, 6 expected"):
        switch.entry_insert(MAC, bytes(5), None, None, None, 0, forward)
    with pytest.raises(ValueError, match=r"key for table vrf: field vrf exceeds 12 bits"):
        switch.entry_insert(VRF, b"\xf0\0\1\2\3\4", None, 8, None, 0, forward)
    with pytest.raises(ValueError, match=r"prefix_len for table vrf, field dst: 33 is not in 0\.\.32"):
        switch.entry_insert(VRF, bytes(6), None, 33, None, 0, forward)
    with pytest.raises(ValueError, match="mask for table acl: field dst needs one"):
        switch.entry_insert(ACL, bytes(7), None, None, bytes(7), 1, forward)
    with pytest.raises(ValueError, match="optional field proto takes all ones or all zeros"):
        switch.entry_insert(ACL, bytes(7), bytes(6) + b"\x01", None, bytes(7), 1, forward)
    with pytest.raises(ValueError, match="field port: low exceeds high"):
        switch.entry_insert(ACL, bytes(4) + b"\0\2\0", bytes(7), None, bytes(4) + b"\0\1\0", 1, forward)
    with pytest.raises(ValueError, match="the table has no action profile"):
        switch.entry_insert(MAC, mac(1), None, None, None, 0, ("member", 0))
    with pytest.raises(ValueError, match="parameter port of action forward: value exceeds 9 bits"):
        switch.entry_insert(MAC, mac(1), None, None, None, 0, ("action", FORWARD, b"\2\0"))
    with pytest.raises(ValueError, match="is expected"):
        switch.entry_insert(MAC, mac(1), None, None, None, 0, ("port", 1))
    with pytest.raises(IndexError, match="table index 9: the program has 5 tables"):
        switch.entry_insert(9, mac(1), None, None, None, 0, forward)
    with pytest.raises(IndexError, match="table: -1"):
        switch.entry_insert(-1, mac(1), None, None, None, 0, forward)
    with pytest.raises(IndexError, match="member handle 3: no such member"):
        switch.entry_insert(ROUTE, bytes(4), None, 8, None, 0, ("member", 3))
    for key in range(2):
        switch.entry_insert(TINY, bytes([key]), None, None, None, 0, forward)
    with pytest.raises(engine.TableFull, match="table tiny is full: 2 entries"):
        switch.entry_insert(TINY, b"\7", None, None, None, 0, forward)


def test_direct_counter_default_and_last_hit(switch: engine.Switch, fabric: engine.Fabric) -> None:
    handle = switch.entry_insert(MAC, mac(9), None, None, None, 0, ("action", FORWARD, port(1)))
    fabric.run_until(5_000)
    switch.inject(3, frame(9, size=100))
    assert switch.entry_counter(MAC, handle) == (1, 100)
    assert switch.entry_last_hit(MAC, handle) == 5_000
    switch.entry_counter_set(MAC, handle, 40, 4_000)
    switch.inject(3, frame(9, size=100))
    assert switch.entry_counter(MAC, handle) == (41, 4_100)
    assert switch.counter_read(0, 3) == (2, 200)
    assert len(list(switch.counter_read_all(0))) == 512
    switch.default_set(MAC, ("action", FORWARD, port(4)))
    switch.poll_events()
    switch.inject(3, frame(8))
    assert [e.port for e in switch.poll_events()] == [4]
    switch.default_set(MAC, None)
    switch.inject(3, frame(8))
    assert switch.poll_events() == []


def test_a_wide_parameter_reaches_the_program(switch: engine.Switch) -> None:
    value = bytes(range(13))
    switch.entry_insert(MAC, mac(9), None, None, None, 0, ("action", 7, value))
    switch.inject(1, frame(9))
    assert switch.register_read(4, 0) == value
    assert [len(cell) for cell in switch.register_read_all(4)] == [13] * 4


def test_registers_and_direct_meter(switch: engine.Switch) -> None:
    switch.register_write(0, 3, b"\x00\x01\x02\x03")
    assert list(switch.register_read_all(0))[3] == b"\x00\x01\x02\x03"
    with pytest.raises(ValueError, match="shows live state"):
        switch.register_write(1, 0, bytes(4))
    with pytest.raises(IndexError, match="register cell 16: the array has 16 cells"):
        switch.register_read(0, 16)
    handle = switch.entry_insert(MAC, mac(9), None, None, None, 0, ("action", 8, port(1)))
    switch.entry_meter_set(MAC, handle, 1, 100, 1, 150)
    for _ in range(3):
        switch.inject(1, frame(9, size=60))
    assert len(switch.poll_events()) == 2  # 150 bytes of peak burst hold two frames of 60
    switch.entry_meter_clear(MAC, handle)
    switch.inject(1, frame(9, size=70))
    assert len(switch.poll_events()) == 1
    assert switch.entry_meter_counts(MAC, handle) == [(2, 60 + 70), (1, 60), (1, 60)]
    switch.entry_meter_counts_set(MAC, handle, [(0, 0), (5, 6), (0, 0)])
    assert switch.entry_meter_counts(MAC, handle) == [(0, 0), (5, 6), (0, 0)]
    switch.meter_counts_set(0, 15, [(1, 2), (3, 4), (5, 6)])
    assert [switch.meter_counts(0, cell) for cell in (14, 15)] == [[(0, 0)] * 3, [(1, 2), (3, 4), (5, 6)]]
    with pytest.raises(IndexError, match="meter cell 16"):
        switch.meter_counts(0, 16)
    with pytest.raises(ValueError, match="2 pairs for 3 colors"):
        switch.meter_counts_set(0, 0, [(0, 0)] * 2)
    with pytest.raises(ValueError, match="cir 3 exceeds pir 2"):
        switch.meter_set(0, 0, 3, 1, 2, 1)
    other = switch.entry_insert(TINY, b"\1", None, None, None, 0, ("action", FORWARD, port(1)))
    with pytest.raises(ValueError, match="table tiny has no direct meter"):
        switch.entry_meter_set(TINY, other, 1, 1, 1, 1)


def test_telemetry_is_parsed_as_written(switch: engine.Switch) -> None:
    switch.entry_insert(MAC, mac(9), None, None, None, 0, ("action", 11, port(1) + number(1)))
    switch.inject(6, frame(9))
    (event,) = switch.poll_events()
    assert telemetry(event.frame).ingress_port == 6

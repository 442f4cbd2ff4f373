"""Where a packet's message is found, and which timer is due first: against lists in Python."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from rdma.tests.units import NEVER, ffi, lib

OPERATIONS = (lib.UNIT_AT, lib.UNIT_CANCEL, lib.UNIT_TAKE)


@dataclass
class Jobs:
    """The C ring and, beside it, a list of (first, packets)."""

    capacity: int
    start: int
    model: list[tuple[int, int]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.ring = ffi.new("struct rdma_jobs *")
        assert lib.rdma_jobs_init(self.ring, self.capacity) == 0
        self.tail = self.start

    def push(self, packets: int) -> None:
        job = lib.rdma_jobs_room(self.ring)
        assert (job == ffi.NULL) == (len(self.model) == self.capacity)
        if job == ffi.NULL:
            assert lib.rdma_jobs_grow(self.ring) == 0
            self.capacity *= 2
            job = lib.rdma_jobs_room(self.ring)
        job[0] = {"first": self.tail, "packets": packets, "wr_id": self.tail * 7}
        lib.rdma_jobs_push(self.ring)
        self.model.append((self.tail, packets))
        self.tail += packets

    def pop(self) -> None:
        if self.model:
            lib.rdma_jobs_pop(self.ring)
            self.model.pop(0)

    def find(self, sequence: int) -> None:
        found = lib.rdma_jobs_find(self.ring, sequence)
        holders = [first for first, packets in self.model if first <= sequence < first + packets]
        assert [found.first] == holders if found != ffi.NULL else not holders
        if holders:
            assert found.wr_id == found.first * 7

    def close(self) -> None:
        lib.rdma_jobs_free(self.ring)


@settings(max_examples=200, deadline=None)
@given(
    capacity=st.integers(1, 5),
    start=st.sampled_from([0, (1 << 24) - 3, (1 << 40) + 5]),
    steps=st.lists(
        st.tuples(st.just("push"), st.integers(1, 40) | st.just(1 << 21))
        | st.tuples(st.just("pop"), st.just(0))
        | st.tuples(st.just("find"), st.integers(-5, 300)),
        max_size=60,
    ),
)
def test_a_packets_message_is_found(capacity: int, start: int, steps: list[tuple[str, int]]) -> None:
    jobs = Jobs(capacity, start)
    for what, number in steps:
        if what == "push":
            jobs.push(number)
        elif what == "pop":
            jobs.pop()
        else:
            jobs.find(max(0, (jobs.model[0][0] if jobs.model else start) + number))
    for first, packets in list(jobs.model):
        for sequence in (first, first + packets - 1, first + packets):
            jobs.find(sequence)
    jobs.close()


@settings(max_examples=200, deadline=None)
@given(
    steps=st.lists(
        st.tuples(st.sampled_from(OPERATIONS), st.integers(0, 7), st.integers(0, 50)),
        max_size=80,
    )
)
def test_timers_come_due_in_order(steps: list[tuple[int, int, int]]) -> None:
    c: Any = ffi.new("struct unit_timer_step[]", [{"op": op, "qp": qp, "time": time} for op, qp, time in steps])
    assert lib.unit_timers(8, c, len(steps)) == 0
    due: dict[int, int] = {}
    for (op, qp, time), step in zip(steps, c, strict=True):
        if op == lib.UNIT_AT:
            due[qp] = min(time, due.get(qp, time))
        elif op == lib.UNIT_CANCEL:
            due.pop(qp, None)
        elif due and min(due.values()) <= time:
            # Of several that are due at once, any may be first.
            earliest = min(due.values())
            assert due.pop(step.taken) == earliest
        else:
            assert step.taken == -1
        assert step.next == min(due.values(), default=NEVER)


"""Yardsticks: a frame source, the bare AF_PACKET forwarder, and packet-hops a second in virtual time."""

from __future__ import annotations

import os
import threading
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from engine._library import check, failure, ffi, lib, new_error, unsigned
from engine.describe import Match
from engine.fabric import Fabric, interface_name

_LOWEST_PRIORITY = 19  # nice(1)


class Stop:
    """Told to a source or forwarder that runs in another thread."""

    def __init__(self) -> None:
        self.flag: Any = ffi.new("int *")

    def set(self) -> None:
        self.flag[0] = 1


def source(
    interface: str, frame: bytes, seconds: float | None = None, count: int | None = None, stop: Stop | None = None
) -> int:
    """Sends copies of `frame` with sendmmsg for `seconds` or until `count` are sent; returns how many were."""
    if seconds is None and count is None and stop is None:
        raise ValueError("source: one of seconds, count and stop says when to end")
    sent, error = ffi.new("uint64_t *"), new_error()
    flag = (stop or Stop()).flag
    number = unsigned("count", count or 0, 64)
    call = lib.plait_bench_source
    check(call(interface_name(interface), frame, len(frame), number, seconds or 0.0, flag, sent, error), error)
    return int(sent[0])


def forward(if_a: str, if_b: str, stop: Stop) -> int:
    """Forwards frames both ways between two interfaces until `stop`; returns how many."""
    forwarded, error = ffi.new("uint64_t *"), new_error()
    call = lib.plait_bench_forward
    check(call(interface_name(if_a), interface_name(if_b), stop.flag, forwarded, error), error)
    return int(forwarded[0])


def received(interface: str) -> int:
    """Frames that an interface of this thread's network namespace has received.

    From /proc/thread-self, which follows the thread; /sys shows the namespace in which it was mounted.
    """
    name = interface_name(interface).decode()
    for line in Path("/proc/thread-self/net/dev").read_text().splitlines():
        known, colon, values = line.partition(":")
        if colon and known.strip() == name:
            return int(values.split()[1])  # after received bytes
    raise ValueError(f"no interface {name} in this network namespace")


@dataclass(frozen=True, slots=True)
class Rate:
    """What a measurement saw."""

    packets: int
    seconds: float
    cpu_seconds: float = 0.0  # of the calling thread, where it does the work

    @property
    def per_second(self) -> float:
        return self.packets / self.seconds


def hops_per_second(fabric: Fabric, until_ns: int | None = None) -> Rate:
    """Runs a virtual fabric (to its end, or until a time) and counts runs of ingress pipelines by wall clock."""
    before, start, cpu_start = fabric.hops, time.perf_counter(), time.thread_time()
    if until_ns is None:
        fabric.run()
    else:
        fabric.run_until(until_ns)
    return Rate(fabric.hops - before, time.perf_counter() - start, time.thread_time() - cpu_start)


def lookup_ns(match: Match, entries: int, lookups: int = 2_000_000) -> float:
    """ns of this thread's time a look-up among random 32-bit keys.

    Exact, LPM (/8 to /32) or ternary (32 masks, 64 priorities); every look-up hits.
    """
    error = new_error()
    result = float(
        lib.plait_bench_lookup(int(match), unsigned("entries", entries), unsigned("lookups", lookups), error)
    )
    if result < 0:
        raise failure(error)
    return result


def bare_forwarding(from_interface: str, if_a: str, if_b: str, sink: str, frame: bytes, seconds: float) -> Rate:
    """Packets a second that pass the bare forwarder: sent into `from_interface`, counted at `sink`."""
    stop = Stop()
    worker = threading.Thread(target=forward, args=(if_a, if_b, stop), daemon=True)
    worker.start()
    time.sleep(0.1)  # its sockets are open by then
    try:
        return delivered(from_interface, sink, frame, seconds)
    finally:
        stop.set()
        worker.join()


def delivered(from_interface: str, sink: str, frame: bytes, seconds: float) -> Rate:
    """Packets that reach `sink` while a source sends into `from_interface`; what lies between runs already."""
    thread = threading.get_native_id()
    usual = os.getpriority(os.PRIO_PROCESS, thread)
    # The source takes what CPU the others leave, or it would starve those that need more than one core.
    os.setpriority(os.PRIO_PROCESS, thread, _LOWEST_PRIORITY)
    try:
        before, start = received(sink), time.perf_counter()
        source(from_interface, frame, seconds=seconds)
        return Rate(received(sink) - before, time.perf_counter() - start)
    finally:
        os.setpriority(os.PRIO_PROCESS, thread, usual)

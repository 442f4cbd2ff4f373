"""DCQCN's reaction and notification points as the paper states them (Zhu et al., SIGCOMM 2015, section 3.1).

Rates in bit/s and times in ns, as floats.  Beside each value runs a bound of the error that the fixed point formats of
ebpf/core/dcqcn.h are allowed there.
"""

from __future__ import annotations

from dataclasses import dataclass, field

ALPHA_UNIT = 2.0**-30


@dataclass(frozen=True, slots=True)
class Parameters:
    line_rate: int
    min_rate: int
    additive: int  # R_AI
    hyper: int  # R_HAI
    alpha_period: int  # K
    timer_period: int  # T
    byte_period: int  # B
    gain: float  # g
    stages: int  # F
    clamp_target: bool


@dataclass(slots=True)
class ReactionPoint:
    parameters: Parameters
    rate: float = 0
    target: float = 0
    alpha: float = 1
    alpha_time: int | None = None  # of the timer's next event; None before the first CNP
    timer_time: int | None = None
    bytes: int = 0
    timer_events: int = 0
    byte_events: int = 0
    rate_error: float = 0
    target_error: float = 0
    alpha_error: float = 0
    raised: list[str] = field(default_factory=list)  # which of the three increases there were, for tests to look at

    def __post_init__(self) -> None:
        self.rate = self.target = self.parameters.line_rate

    def cnp(self, now: int) -> None:
        p = self.parameters
        if p.clamp_target or self.timer_events:
            self.target, self.target_error = self.rate, self.rate_error
        self.rate_error += self.rate * self.alpha_error / 2 + 2
        self.rate = max(p.min_rate, self.rate * (1 - self.alpha / 2))
        self.alpha = (1 - p.gain) * self.alpha + p.gain
        self._round_alpha()
        self.alpha_time, self.timer_time = now + p.alpha_period, now + p.timer_period
        self.bytes = self.timer_events = self.byte_events = 0

    def _round_alpha(self) -> None:
        self.alpha_error = (1 - self.parameters.gain) * self.alpha_error + ALPHA_UNIT

    def _increase(self) -> None:
        p = self.parameters
        if max(self.timer_events, self.byte_events) <= p.stages:
            self.raised.append("fast recovery")
        elif min(self.timer_events, self.byte_events) > p.stages:
            self.raised.append("hyper")
            self.target += p.hyper
        else:
            self.raised.append("additive")
            self.target += p.additive
        self.target = min(self.target, p.line_rate)
        self.rate = (self.rate + self.target) / 2
        self.rate_error = (self.rate_error + self.target_error) / 2 + 1

    def sent(self, count: int) -> None:
        if self.timer_time is None:
            return
        self.bytes += count
        while self.bytes >= self.parameters.byte_period:
            self.bytes -= self.parameters.byte_period
            self.byte_events += 1
            self._increase()

    def advance(self, now: int) -> None:
        while self.alpha_time is not None and self.alpha_time <= now:
            self.alpha_time += self.parameters.alpha_period
            self.alpha *= 1 - self.parameters.gain
            self._round_alpha()
        while self.timer_time is not None and self.timer_time <= now:
            self.timer_time += self.parameters.timer_period
            self.timer_events += 1
            self._increase()


class NotificationPoint:
    def __init__(self, interval: int) -> None:
        self.interval = interval
        self.last: int | None = None

    def marked(self, now: int) -> bool:
        """Whether this marked packet is answered by a CNP."""
        if self.last is not None and now < self.last + self.interval:
            return False
        self.last = now
        return True

"""Scenarios: what is written to a fresh switch and what is sent to it then, and whether two switches agree on it."""

import random
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

from finsy.proto import p4i, p4r

from tests.agreement_entries import EntryDrawer, constants, encode
from tests.agreement_packets import Json, ParserWalk, Pool, frame
from tests.agreement_reference import Counters, EndlessError, Reference, Sent
from tests.agreement_switches import TIME_STEP_NS, Switch

PORTS = (1, 2, 3, 4)
_GUESSES = (12, 200)


@dataclass(frozen=True)
class Scenario:
    """Updates of a fresh switch, then frames: (port, bytes, ns at which it arrives)."""

    updates: tuple[p4r.Update, ...]
    frames: tuple[tuple[int, bytes, int], ...]

    def __str__(self) -> str:
        lines = ["updates:"] + [" ".join(str(each).split()) for each in self.updates]
        lines += ["packets:"] + [f"at {when} ns by port {port}: {data.hex()}" for port, data, when in self.frames]
        return "\n".join(lines)


@dataclass(frozen=True)
class Subject:
    """A program as one compiler wrote it."""

    name: str
    p4info: p4i.P4Info
    document: Json
    json: bytes

    def open_ends(self) -> list[str]:
        """What BMv2 may do otherwise than plait-switch, by right: found in the JSON, not by the program's name."""
        found = []
        if any(op == "modify_field_rng_uniform" for op, _ in constants(self.document)):
            found.append("random numbers")
        timed = ("ingress_global_timestamp", "egress_global_timestamp", "enq_timestamp", "deq_timedelta")
        if any(_reads(self.document, name) for name in timed):
            found.append("time")
        if self.document.get("meter_arrays"):
            found.append("meters")
        return found

    def is_sequential(self) -> bool:
        """Whether packets must be sent to BMv2 one by one: its queues would fill, or its egress threads would race."""
        if any(_reads(self.document, name) for name in ("enq_qdepth", "deq_qdepth")) or self.open_ends():
            return True
        return bool(self.document.get("register_arrays"))


def _reads(document: Json, name: str) -> bool:
    """Whether anything but its declaration names a field of standard metadata."""
    parts = {key: value for key, value in document.items() if key not in ("header_types", "field_aliases")}
    return f"'{name}'" in str(parts)


class Drawer:
    """Draws scenarios for a program."""

    def __init__(self, subject: Subject, other: Subject | None = None) -> None:
        self._entries = EntryDrawer(subject.p4info, subject.document, other.document if other else None)
        self._walk = ParserWalk(subject.document)
        # Those of the traffic manager's state are only read.
        self._registers = [
            each
            for each in subject.p4info.registers
            if each.type_spec.HasField("bitstring") and not each.preamble.name.startswith("plait.")
        ]

    def draw(self, draw: random.Random, packets: int, for_bmv2: bool) -> Scenario:
        """`for_bmv2`: without what it refuses (values of registers) or orders otherwise (weights in groups)."""
        pool = Pool()
        updates = self._entries.draw(draw, pool, weights=not for_bmv2)
        if not for_bmv2:
            updates += self._register_updates(draw, pool)
        now, frames = 0, []
        for _ in range(packets):
            # From back to back to longer than any timeout, mostly at whole microseconds.
            now += draw.choice((1_000, 10_000, 100_000, 1_000_000, 50_000_000, 1_001_000)) + TIME_STEP_NS
            frames.append((PORTS[draw.randrange(len(PORTS))], frame(draw, pool, self._walk), now))
        # Flows: a frame comes again.
        for _ in range(packets // 4):
            if len(frames) > 1:
                at = 1 + draw.randrange(len(frames) - 1)
                frames[at] = (*frames[draw.randrange(at)][:2], frames[at][2])
        return Scenario(tuple(updates), tuple(frames))

    def _register_updates(self, draw: random.Random, pool: Pool) -> list[p4r.Update]:
        updates = []
        for info in self._registers:
            width = info.type_spec.bitstring.bit.bitwidth
            if not width:
                continue
            for index in sorted(draw.sample(range(min(info.size, 8)), draw.randrange(min(info.size, 8) + 1))):
                entry = p4r.RegisterEntry(register_id=info.preamble.id, index=p4r.Index(index=index))
                entry.data.bitstring = encode(pool.draw(draw, width), width)
                updates.append(p4r.Update(type=p4r.Update.MODIFY, entity=p4r.Entity(register_entry=entry)))
        return updates


@dataclass
class Outcome:
    """What a switch made of a scenario; `sent` has the frames that left for each that was sent."""

    taken: list[bool]
    sent: list[list[Sent]]
    counters: Counters
    grouped: bool = False  # all that left is in the first, in no order

    def without_order(self) -> list[Counter[Sent]]:
        if self.grouped:
            return [Counter(self.sent[0])] if self.sent else []
        return [Counter(each) for each in self.sent]


@dataclass
class Tally:
    """What was compared."""

    packets: int = 0
    left: int = 0
    scenarios: int = 0
    by_chance: int = 0  # packets on which a switch was right within what P4 leaves open
    skipped: Counter[str] = field(default_factory=Counter)

    def add(self, other: "Tally") -> None:
        self.packets += other.packets
        self.left += other.left
        self.scenarios += other.scenarios
        self.by_chance += other.by_chance
        self.skipped += other.skipped


def through(switch: Switch, scenario: Scenario, one_by_one: bool = True) -> Outcome:
    """Runs a scenario; EndlessError, SwitchDiedError."""
    switch.start()
    taken = switch.write(scenario.updates)
    batches = [[each] for each in scenario.frames] if one_by_one else [scenario.frames]
    sent = [switch.send(batch) for batch in batches]
    return Outcome(taken, sent, switch.counters(), grouped=not one_by_one)


def referred(
    subject: Subject, scenario: Scenario, taken: Sequence[bool] = (), guess: random.Random | None = None
) -> Outcome:
    """What the reference says; of the updates it takes those in `taken`, or all."""
    reference = Reference(subject.document, subject.p4info, guess=guess)
    all_taken = list(taken) or [True] * len(scenario.updates)
    for update, took in zip(scenario.updates, all_taken, strict=True):
        if took:
            reference.write(update)
    return Outcome(all_taken, [reference.send(*each) for each in scenario.frames], reference.counters())


def difference(one: Outcome, other: Outcome, scenario: Scenario) -> str:
    """The first difference in words, or ""."""
    for number, (mine, theirs) in enumerate(zip(one.taken, other.taken, strict=True)):
        if mine != theirs:
            first, second = ("takes", "refuses") if mine else ("refuses", "takes")
            return f"update {number}: the first {first} and the other {second} {_line(scenario.updates[number])}"
    left, right = one.without_order(), other.without_order()
    if len(left) != len(right):
        left, right = ([sum(each, Counter())] for each in (left, right))
    for number, (mine, theirs) in enumerate(zip(left, right, strict=True)):
        if mine != theirs:
            where = f"packet {number}" if len(left) > 1 or len(scenario.frames) == 1 else "the packets"
            return f"{where}: {_sent(mine - theirs)} is not {_sent(theirs - mine)}"
    if one.counters != other.counters:
        every = sorted({*one.counters, *other.counters}, key=str)
        key = next(each for each in every if one.counters.get(each) != other.counters.get(each))
        return f"counter {key}: {one.counters.get(key, (0, 0))} is not {other.counters.get(key, (0, 0))}"
    return ""


def _line(update: p4r.Update) -> str:
    return " ".join(str(update).split())


def _sent(frames: Counter[Sent]) -> str:
    return ", ".join(f"{port}:{data.hex()}" for port, data in frames.elements()) or "nothing"


def within_chance(subject: Subject, scenario: Scenario, outcome: Outcome) -> tuple[bool, int]:
    """Whether the outcome is one that P4 allows, and on how many packets it is so only by chance.

    The reference runs several times with other random numbers, times and contents of invalid headers. Where its runs
    agree, the outcome must too: ports, lengths, and every byte that they agree on. Counters are compared if they agree.
    """
    runs: list[Outcome] = []
    for guesses in _GUESSES:
        while len(runs) < guesses:
            runs.append(referred(subject, scenario, outcome.taken, random.Random(len(runs))))
        right, chance = _within(runs, outcome)
        # Runs that all agree are not made to disagree by more of them.
        if right or all(run == runs[0] for run in runs):
            break
    return right, chance


def _within(runs: list[Outcome], outcome: Outcome) -> tuple[bool, int]:
    chance = 0
    for number, left in enumerate(outcome.sent):
        allowed = [sorted(run.sent[number]) for run in runs]
        if all(each == sorted(left) for each in allowed):
            continue
        chance += 1
        if len(left) not in {len(each) for each in allowed}:
            return False, 0
        if not all(_allowed(sent, [one for each in allowed for one in each]) for sent in left):
            return False, 0
    if all(run.counters == runs[0].counters for run in runs) and outcome.counters != runs[0].counters:
        return False, 0
    return True, chance


def _allowed(sent: Sent, seen: list[Sent]) -> bool:
    port, data = sent
    alike = [other for to, other in seen if to == port and len(other) == len(data)]
    if not alike:
        # A port drawn from many: then at least one of the right length must have varied in its port.
        alike = [other for _, other in seen if len(other) == len(data)]
        if not alike or len({to for to, _ in seen}) < 3:
            return False
    return all(data[i] == alike[0][i] or len({other[i] for other in alike}) > 1 for i in range(len(data)))


def shrunk(scenario: Scenario, differs: Callable[[Scenario], bool]) -> Scenario:
    """A small scenario that still differs: frames and updates left out, halves first."""
    for name in ("frames", "updates"):
        size = max(1, len(getattr(scenario, name)) // 2)
        while size:
            start = 0
            while start < len(getattr(scenario, name)):
                whole = getattr(scenario, name)
                smaller = replace(scenario, **{name: whole[:start] + whole[start + size :]})
                try:
                    keeps = differs(smaller)
                except (EndlessError, KeyError, StopIteration):
                    keeps = False
                if keeps:
                    scenario = smaller
                else:
                    start += size
            size //= 2
    return scenario

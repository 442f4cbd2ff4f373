"""{p4front, p4c} x {plait-switch, BMv2} and the reference interpreter agree on every program of p4src/.

p4front on plait-switch is held to the reference always; the other pairs where p4c-bm2-ss and simple_switch_grpc are on
PATH. `python -m tests.agreement` compares more packets, and other programs.
"""

import copy
import random
import shutil
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.agreement import BMV2, FEEDBACK, P4C, PROGRAMS, Report, by_p4front, compare_pairs, scenarios
from tests.agreement_reference import EndlessError
from tests.agreement_scenarios import Drawer, Scenario, Subject, difference, referred, shrunk, through
from tests.agreement_switches import Plait

_SCENARIOS, _PACKETS, _PACKETS_OF_PAIRS = 25, 8, 480

programs = pytest.mark.parametrize("program", PROGRAMS, ids=[program.stem for program in PROGRAMS])


@programs
def test_p4front_on_plait_switch_is_what_the_reference_says(program: Path, capsys: pytest.CaptureFixture[str]) -> None:
    subject = by_p4front(program)
    drawer, switch = Drawer(subject), Plait(subject.p4info, subject.json)
    counts = {"packets": 0, "left": 0}

    @settings(max_examples=_SCENARIOS, derandomize=True, deadline=None, suppress_health_check=list(HealthCheck))
    @given(st.randoms(use_true_random=False))
    def agree(draw: random.Random) -> None:
        scenario = drawer.draw(draw, _PACKETS, for_bmv2=False)
        try:
            outcome = through(switch, scenario)
            assert difference(outcome, referred(subject, scenario, outcome.taken), scenario) == "", str(scenario)
        except EndlessError:
            return
        counts["packets"] += len(scenario.frames)
        counts["left"] += sum(map(len, outcome.sent))

    agree()
    switch.close()
    assert counts["left"] > counts["packets"] // 20  # or the packets say little
    with capsys.disabled():
        print(f"{program.stem}: {counts['packets']} packets in, {counts['left']} out")


@programs
def test_the_pairs_agree(program: Path, capsys: pytest.CaptureFixture[str]) -> None:
    if missing := [name for name in (P4C, BMV2) if not shutil.which(name)]:
        pytest.skip(f"{' and '.join(missing)} not on PATH")
    report = Report(program.stem)
    compare_pairs(program, FEEDBACK, _PACKETS_OF_PAIRS, 1, report)
    with capsys.disabled():
        print(report)
    assert report.differences == []


# ----------------------------------------------------------------------------------------------------------------------
# A comparison that finds nothing must be able to find something


@pytest.fixture(scope="module")
def ecmp() -> Subject:
    return by_p4front(next(program for program in PROGRAMS if program.stem == "ecmp"))


def _altered(subject: Subject) -> Subject:
    """The program with one constant changed: it subtracts 2 of the TTL."""
    document = copy.deepcopy(subject.document)
    ttl = [
        parameters[1]["value"]["value"]["left"]["value"]
        for action in document["actions"]
        for primitive in action["primitives"]
        for parameters in [primitive["parameters"]]
        if primitive["op"] == "assign" and parameters[0]["value"] == ["ipv4", "ttl"]
    ]
    assert len(ttl) == 1
    node = ttl[0]["right"]
    assert int(node["value"], 16) in (1, 255)
    node["value"] = hex((2 * int(node["value"], 16)) & 0xFF)
    return Subject(subject.name, subject.p4info, document, subject.json)


def test_a_wrong_switch_is_found_and_the_scenario_made_small(ecmp: Subject) -> None:
    wrong = _altered(ecmp)
    switch = Plait(ecmp.p4info, ecmp.json)

    def differ(scenario: Scenario) -> str:
        outcome = through(switch, scenario)
        return difference(outcome, referred(wrong, scenario, outcome.taken), scenario)

    found = next(scenario for scenario in scenarios(ecmp, 2_400, 1, for_bmv2=False) if differ(scenario))
    small = shrunk(found, lambda scenario: bool(differ(scenario)))
    assert len(small.frames) == 1 and len(small.updates) < len(found.updates)
    assert differ(small).startswith("packet 0: ")
    switch.close()


def test_differences_of_each_kind_have_words(ecmp: Subject) -> None:
    switch = Plait(ecmp.p4info, ecmp.json)
    every = scenarios(ecmp, 480, 1, for_bmv2=False)
    scenario = next(each for each in every if any(through(switch, each).sent))
    outcome = through(switch, scenario)
    refused, silent, miscounted = (copy.deepcopy(outcome) for _ in range(3))
    refused.taken[0] = False
    assert difference(outcome, refused, scenario).startswith("update 0: the first takes and the other refuses type: ")
    silent.sent = [[] for _ in silent.sent]
    assert difference(outcome, silent, scenario).endswith(" is not nothing")
    miscounted.counters[next(iter(miscounted.counters))] = (99, 99)
    assert difference(outcome, miscounted, scenario).endswith(" is not (99, 99)")
    switch.close()

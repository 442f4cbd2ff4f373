"""Experiments: what a file may say and how mistakes in it are told; what is made of the measurements."""

import dataclasses
import tomllib
from pathlib import Path

import finsy as fy
import pytest

from controller.errors import ControllerError
from controller.policy import Policy, fabric_entries
from lab.compiling import compile_text
from lab.config import DEFAULT_PROGRAM
from lab.errors import UsageError
from lab.experiment import (
    FlowRecord,
    RunRecord,
    alone,
    captured_hosts,
    flow_record,
    flows_of,
    laboratories,
    memory_bytes,
    percentile,
    run_record,
)
from lab.experiment_config import Balancer, Experiment, parse_experiment, read_experiment
from lab.experiment_plots import draw
from lab.experiment_report import finding, headroom, rows
from lab.experiment_traffic import FlowResult, TrafficResult
from lab.reorder import Order
from lab.results import ROOT
from lab.workload import Flow
from mininet_topos.fattree import fattree

GOOD = """
seeds = [3, 4]
[topology]
k = 4
rate = "20M"
delay = "10us"
[[balancer]]
program = "ecmp"
weights = [3, 1]
[[balancer]]
name = "in turn"
program = "spray"
parameters = { spray = "round-robin" }
[[balancer]]
program = "flowlet"
parameters = { gap = "1ms" }
[[workload]]
kind = "permutation"
size = "64KiB"
[[workload]]
kind = "poisson"
sizes = "sizes/web-search.txt"
scale = 0.1
load = 0.5
duration = "100ms"
"""
PLACE = ROOT / "experiments" / "x.toml"


def parsed(text: str) -> Experiment:
    return parse_experiment(tomllib.loads(text), text, PLACE)


def test_a_whole_file() -> None:
    experiment = parsed(GOOD)
    assert (experiment.name, experiment.seeds, str(experiment.lab.chosen)) == (
        "x", (3, 4), "fattree:k=4,rate=20M,delay=10us"
    )  # fmt: skip
    ecmp, spray, flowlet = experiment.balancers
    assert (ecmp.name, ecmp.program, ecmp.weights) == ("ecmp", DEFAULT_PROGRAM, (3, 1))
    assert (spray.name, spray.program.name, spray.parameters) == ("in turn", "spray.p4", {"spray": "round-robin"})
    assert flowlet.parameters == {"gap": 1000}
    same, poisson = experiment.workloads
    assert same.size_bytes == 65536
    assert poisson.sizes is not None
    assert (poisson.sizes.size_at(1), poisson.load, poisson.duration_s) == (3_000_000, 0.5, 0.1)


def test_the_experiments_of_the_project_can_be_read() -> None:
    files = sorted((ROOT / "experiments").glob("*.toml"))
    assert files
    for file in files:
        experiment = read_experiment(file)
        topology = experiment.lab.topology()
        for workload in experiment.workloads:
            for seed in experiment.seeds:
                assert flows_of(workload, topology, seed)


def test_any_topology_with_its_parameters(tmp_path: Path) -> None:
    leafspine = GOOD.replace("k = 4", 'kind = "leafspine"\nspines = 3\nspine_rate = "5M"')
    topology = parsed(leafspine).lab.topology()
    assert topology.name == "leafspine-3x4" and {link.rate_bps for link in topology.links} == {20_000_000, 5_000_000}
    (tmp_path / "net.json").write_text(topology.to_json())
    rates = 'k = 4\nrate = "20M"\ndelay = "10us"'
    file = parsed(GOOD.replace(rates, f'kind = "{tmp_path}/net.json"\nscale = 0.5')).lab.topology()
    assert {link.rate_bps for link in file.links} == {10_000_000, 2_500_000}


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("seeds = [3, 4]", "seds = [3, 4]", "x.toml: unknown key 'seds'; did you mean seeds?"),
        ("seeds = [3, 4]", "colour = 1", "x.toml: unknown key 'colour'; known are topology, balancer, nic, workload,"),
        ("seeds = [3, 4]", "seeds = []", "x.toml: seeds = []: expected one whole number or more, such as [1, 2]."),
        ("seeds = [3, 4]", "seeds = [3, 3]", "x.toml: seeds = [3, 3]: a seed occurs twice."),
        ("seeds = [3, 4]", 'name = "a/b"', "x.toml: name = 'a/b': letters, digits, - and _ only."),
        ("seeds = [3, 4]", 'sample_every = "10ns"', "x.toml: sample_every: it is 1ms or more."),
        ("seeds = [3, 4]", 'timeout = "soon"', "x.toml: timeout: time 'soon' is not a number with a unit"),
        (
            "seeds = [3, 4]",
            "losses = [1]",
            "x.toml: losses = [1]: expected one probability or more, such as [0, 0.001].",
        ),
        ("seeds = [3, 4]", "losses = [0.1, 0.1]", "x.toml: losses = [0.1, 0.1]: a probability occurs twice."),
        (
            '[[workload]]\nkind = "poisson"',
            '[[nic]]\n[[workload]]\nkind = "poisson"',
            "[[nic]] 1: transport is missing;",
        ),
        ("k = 4", 'k = "4"', "x.toml: [topology]: k = '4': expected a whole number."),
        ("k = 4", "k = true", "x.toml: [topology]: k = True: expected a whole number."),
        ("k = 4", "spines = 4", "x.toml: [topology]: unknown key 'spines'; known are kind, k, rate, delay, loss,"),
        ("k = 4", "priority_queues = 9", "x.toml: [topology]: priority_queues = 9: it is from 1 to 8."),
        ("k = 4", "queue_packets = 0", "x.toml: [topology]: queue_packets = 0: it is from 1 to 100000."),
        ("k = 4", 'kind = "ring"', "x.toml: [topology]: kind = 'ring' is no topology and no file; known are fattree, "),
        ('rate = "20M"', "", "x.toml: [topology]: rate is missing; it is a rate such as 100M."),
        ('rate = "20M"', "rate = 20", "x.toml: [topology]: rate = 20: expected a rate such as 100M."),
        ('rate = "20M"', 'rate = "fast"', "x.toml: [topology]: rate: 'fast' is not a rate such as 100M."),
        ('program = "ecmp"', 'program = "ecpm"', "x.toml: [[balancer]] 1: program = 'ecpm': "),
        ('program = "ecmp"', "", "x.toml: [[balancer]] 1: program is missing; it is the name of a program of p4src/"),
        ('name = "in turn"', 'name = "ecmp"', "x.toml: [[balancer]] 2: another balancer is called 'ecmp'."),
        ("weights = [3, 1]", "mark_remaining = 1", "[[balancer]] 1: mark_remaining = 1: expected true or false."),
        ("weights = [3, 1]", "weights = [0]", "x.toml: [[balancer]] 1: weights = [0]: expected whole numbers from 1"),
        ('"round-robin"', '"round"', "x.toml: [[balancer]] 2: parameters: spray: 'round'; it is one of random, round"),
        ("spray = ", "spay = ", "x.toml: [[balancer]] 2: parameters: no parameter 'spay'; there are spray, path, d,"),
        ('gap = "1ms"', "gap = 1.5", "x.toml: [[balancer]] 3: parameters: gap = 1.5: expected a whole number or text"),
        ('"permutation"', '"incast"', "x.toml: [[workload]] 1: kind = 'incast': known are permutation, poisson."),
        ('size = "64KiB"', 'size = "1KB"\nload = 1', "[[workload]] 1: unknown key 'load'; known are kind, name, size."),
        ("web-search", "websearch", "sizes/websearch.txt: No such file or directory."),
        ("load = 0.5", "load = 5", "x.toml: [[workload]] 2: load = 5: it is from 0.01 to 2."),
        ('duration = "100ms"', "", "x.toml: [[workload]] 2: give either flows or duration."),
        ('duration = "100ms"', "flows = 9999", "x.toml: [[workload]] 2: flows = 9999: it is from 1 to 1000."),
    ],
)
def test_a_mistake_is_told_with_its_place(old: str, new: str, message: str) -> None:
    assert GOOD.count(old) == 1
    with pytest.raises(UsageError) as caught:
        parsed(GOOD.replace(old, new))
    assert message in str(caught.value)


def test_no_balancers_and_no_toml(tmp_path: Path) -> None:
    text = GOOD[: GOOD.index("[[balancer]]")] + GOOD[GOOD.index("[[workload]]") :]
    with pytest.raises(UsageError, match=r"x.toml: balancer is missing; it is one \[\[balancer\]\] table or more."):
        parsed(text)
    (tmp_path / "x.toml").write_text("k = = 3")
    with pytest.raises(UsageError, match="x.toml is not TOML: Invalid value"):
        read_experiment(tmp_path / "x.toml")
    with pytest.raises(UsageError, match="cannot read the experiment .*none.toml: No such file or directory."):
        read_experiment(tmp_path / "none.toml")


def test_too_many_flows_for_the_nics() -> None:
    experiment = parsed(GOOD.replace("100ms", "100s").replace("0.1", "0.001"))
    with pytest.raises(UsageError, match="its duration gives more than 1000 flows; 1 to 1000 can be."):
        flows_of(experiment.workloads[1], experiment.lab.topology(), 1)


def balancer(name: str, program: str) -> Balancer:
    return Balancer(name, Path(program), {}, ())


def test_a_program_never_follows_itself_in_a_laboratory() -> None:
    a, b, c, d = balancer("a", "x"), balancer("b", "x"), balancer("c", "y"), balancer("d", "x")
    assert list(laboratories([a])) == [[a]]
    assert list(laboratories([a, c, b, d])) == [[a, c, b], [d]]
    assert list(laboratories([a, b, d])) == [[a], [b], [d]]


def test_small_parts() -> None:
    assert percentile([], 0.99) == 0
    assert percentile([5.0], 0.99) == 5
    assert percentile(list(range(1, 101)), 0.99) == 99
    assert percentile(list(range(1, 201)), 0.99) == 198
    assert percentile([3.0, 1.0, 2.0], 0.5) == 2
    hosts = [f"h{index}" for index in range(1, 17)]
    assert captured_hosts(hosts, 4) == ["h1", "h5", "h9", "h13"]
    assert captured_hosts(hosts, 99) == hosts
    assert captured_hosts(hosts, 0) == []
    flows = [Flow(0, "a", "b", 5000), Flow(0, "a", "c", 100), Flow(0, "b", "a", 1)]
    # a out 8 KiB, b, c and a in, b out: a page each at the least, and a page beside each; twice, and slack.
    assert memory_bytes([flows, flows[:1]]) == 2 * 4096 * ((2 + 1) + (2 + 1) + 2 + 2 + 2) + (1 << 20)


def test_flows_alone_do_not_meet() -> None:
    topology = fattree(2, 10**7, 1000)
    flows = alone(topology)
    assert all(flow.src != flow.dst for flow in flows)
    # 16 KiB with headers take 14 ms at 10 Mb/s.
    assert all(after.start_s - before.start_s > 0.028 for before, after in zip(flows, flows[1:], strict=False))


RUN = RunRecord(
    balancer="ecmp", nic="gbn", loss=0.0, workload="w", seed=1, flows=10, failed=0,
    slowdown_mean=2.0, slowdown_median=1.5,
    slowdown_p99=4.0, fct_mean_s=0.1, goodput_bps=5e6, packets_sent=100, retransmitted_share=0.0, timeouts=0,
    early_placed=0, naks=0,
    seq_errors=0, captured_packets=50, out_of_order_share=0.0, mean_extent=0.0, max_extent=0, queue_mean_bytes=1000.0,
    queue_max_bytes=5000, marked_share=0.1, drops_loss=0, drops_queue=0, seconds=1.0, idle_share=0.5, late_p99_s=0.001,
    alone_slowdown=1.05,
)  # fmt: skip


def test_a_record_by_hand() -> None:
    """Two flows of h1 and h2 under one switch, at 8 Mb/s (1 us a byte) and no delay; a third that failed."""
    topology = fattree(4, 8_000_000, 0)
    # Two links there and back: 2 x 1,098 + 2 x 62 us for a packet with 1,024 bytes of payload.
    ideal = (2 * 1098 + 2 * 62) / 1e6
    done = FlowResult(Flow(0.0, "h1", "h2", 1024), 0.001, 0.001 + 2 * ideal, "SUCCESS", 4, 1, 0)
    slow = FlowResult(Flow(0.5, "h2", "h1", 1024), 0.5, 0.5 + 6 * ideal, "SUCCESS", 6, 3, 1)
    lost = FlowResult(Flow(0.6, "h1", "h2", 9000), 0.6, 2.0, "RETRY_EXC_ERR", 10, 1, 7)
    named = ("ecmp", "irn", 0.1, "w", 1)
    records = [flow_record(topology, named, flow) for flow in (done, slow, lost)]
    assert [record.ideal_fct_s for record in records[:2]] == pytest.approx([ideal, ideal])
    assert [record.slowdown for record in records] == pytest.approx([2, 6, 0], abs=1e-5)
    assert records[0].late_s == pytest.approx(0.001)
    order = Order()
    for psn in (1, 2, 4, 3, 3):
        order.add(psn)
    # A host's own direction is no switch's queue.
    queues = [{("s13", "h1"): 1000, ("s13", "s5"): 0, ("h1", "s13"): 9}, {("s13", "h1"): 3000, ("s13", "s5"): 0}]
    nic = {"REQUEST_PLACED": 6, "REQUEST_DUPLICATE": 1, "REQUEST_SEQ_ERROR": 1, "REQUEST_BEYOND": 2, "ce_marked": 5}
    nic |= {"REQUEST_OUT_OF_ORDER": 0, "REQUEST_NO_BITMAP": 0, "NAK_RECEIVED": 2}
    traffic = TrafficResult([done, slow, lost], 2.0, nic, queues, {"drops_queue": 4, "drops_loss": 3}, 0.25)
    run = run_record(topology, named, traffic, records, [order], 1.1)
    assert (run.flows, run.failed, run.timeouts, run.seq_errors, run.drops_queue) == (3, 1, 8, 3, 4)
    assert (run.nic, run.loss, run.naks, run.early_placed, run.drops_loss) == ("irn", 0.1, 2, 0, 3)
    assert (run.slowdown_mean, run.slowdown_p99) == (pytest.approx(4, abs=1e-5), pytest.approx(6, abs=1e-5))
    assert run.goodput_bps == pytest.approx(8 * 2048 / 2.0)
    assert run.retransmitted_share == pytest.approx(5 / 20)
    assert (run.captured_packets, run.out_of_order_share, run.mean_extent) == (4, 0.25, 1)
    assert (run.queue_mean_bytes, run.queue_max_bytes) == (1000, 3000)
    assert run.marked_share == 0.5
    assert (run.idle_share, run.alone_slowdown) == (0.25, 1.1)


def test_rows_show_the_spread_over_seeds_by_workload() -> None:
    runs = [
        RUN,
        dataclasses.replace(RUN, workload="v"),
        dataclasses.replace(RUN, seed=2, slowdown_mean=3.0, retransmitted_share=0.25),
        dataclasses.replace(RUN, workload="v", seed=2),
    ]
    first, second = rows(runs)
    assert (first["workload"], first["load balancer"], second["workload"]) == ("w", "ecmp", "v")
    assert (first["slowdown mean"], second["slowdown mean"]) == ("2.5 (2-3)", "2")
    assert (first["sent again %"], first["goodput Mb/s"]) == ("12.5 (0-25)", "5")


def test_the_finding_says_who_reorders() -> None:
    spray = dataclasses.replace(RUN, balancer="spray", slowdown_mean=6.0, out_of_order_share=0.2)
    worse = dataclasses.replace(RUN, balancer="ksp", slowdown_mean=2.5, out_of_order_share=0.005)
    assert finding([worse, RUN, spray]) == (
        "w: ecmp has the least mean slowdown; out of order 1 % of packets or more: spray 6.00; "
        "less: ecmp 2.00, ksp 2.50."
    )
    assert finding([RUN, dataclasses.replace(RUN, workload="v")]) == (
        "w: ecmp has the least mean slowdown; less: ecmp 2.00.\nv: ecmp has the least mean slowdown; less: ecmp 2.00."
    )


def test_with_several_nics_the_finding_says_what_each_makes_of_spraying() -> None:
    other = {"nic": "irn", "slowdown_mean": 3.0}
    runs = [
        RUN,
        dataclasses.replace(RUN, balancer="spray", slowdown_mean=6.0),
        dataclasses.replace(RUN, **other),
        dataclasses.replace(RUN, balancer="spray", **{**other, "slowdown_mean": 1.5}),
    ]
    assert finding(runs) == (
        "w: gbn has a mean slowdown of 2.00 with ecmp; spray 6.00, a loss. "
        "irn has a mean slowdown of 3.00 with ecmp; spray 1.50, a win."
    )
    table = rows([*runs, dataclasses.replace(RUN, loss=0.001)])
    assert [(row["loss"], row["NIC"], row["load balancer"]) for row in table] == [
        ("0 %", "gbn", "ecmp"), ("0 %", "gbn", "spray"), ("0 %", "irn", "ecmp"), ("0 %", "irn", "spray"),
        ("0.1 %", "gbn", "ecmp"),
    ]  # fmt: skip


def test_a_busy_machine_is_told() -> None:
    assert headroom([RUN]).good
    for busy in ({"idle_share": 0.01}, {"alone_slowdown": 1.6}):
        mark = headroom([RUN, dataclasses.replace(RUN, **busy)])
        assert not mark.good
        assert mark.text.startswith("the machine was busy, so look at ratios only: processors idle")


FLOW = FlowRecord(
    balancer="ecmp", nic="gbn", loss=0.0, workload="w", seed=1, src="h1", dst="h2", bytes=1000,
    start_s=0.0, late_s=0.0, fct_s=0.02,
    ideal_fct_s=0.01, slowdown=2.0, status="SUCCESS", packets_sent=1, retransmissions=0, timeouts=0,
)  # fmt: skip


def test_pictures_also_of_flows_that_all_failed(tmp_path: Path) -> None:
    failed = dataclasses.replace(FLOW, balancer="b", fct_s=0.0, slowdown=0.0, status="RETRY_EXC_ERR")
    runs = [RUN, dataclasses.replace(RUN, balancer="b", failed=10, slowdown_mean=0.0, slowdown_p99=0.0)]
    made = draw([FLOW, failed], runs, "conditions", tmp_path)
    assert len(made) == 5
    assert all(path.read_bytes().startswith(b"\x89PNG") for path in made)


def test_weights_are_those_of_the_members(tmp_path: Path) -> None:
    topology = fattree(4, 10**7, 1000)
    found = fabric_entries(topology, _schema("ecmp", tmp_path), Policy(weights=(3, 1)))
    sets = [
        [(weight, port) for (weight, port), _ in entry.action.action_set]
        for entry in found["s13"]
        if isinstance(entry.action, fy.IndirectAction)
    ]
    # An edge switch: one next hop to each of its two hosts, ports 3 and 4 upwards for everybody else.
    assert sorted(map(tuple, sets))[:2] == [((1, 1),), ((1, 2),)]
    assert all(members == [(3, 3), (1, 4)] for members in sets if len(members) == 2)
    with pytest.raises(ControllerError, match="weights: the program has no groups of next hops at ipv4_lpm"):
        fabric_entries(topology, _schema("spray", tmp_path), Policy(weights=(3, 1)))


def _schema(program: str, folder: Path) -> fy.P4Schema:
    return fy.P4Schema(compile_text(DEFAULT_PROGRAM.parent / f"{program}.p4", "plait").write(folder).p4info)

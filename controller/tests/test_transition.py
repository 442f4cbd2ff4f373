"""Routes after failures, and the way there: at every moment of a change, what works before and after goes on working.

The oracle walks packets over the entries that switches hold at that moment, and knows nothing of ranks or rounds.
"""

import networkx
import pytest
from finsy.proto import p4r
from hypothesis import given, settings
from hypothesis import strategies as st

from controller.destinations import destinations, levels_of, remaining
from controller.errors import ControllerError
from controller.named_paths import PATH_LABEL
from controller.policy import Policy, Router
from controller.routes import DESTINATION, ROUTES
from controller.tests.programs import schema
from controller.tests.walk import all_walks, lookup
from controller.transition import key_of, rounds
from mininet_topos.fattree import fattree
from mininet_topos.tests.examples import dumbbell, random_topologies

P4INFO = schema()


def core_links(topology):
    return [link for link in topology.links if not any(topology.node(name).is_host for name, _ in link.ends)]


def routed(ranked):
    return {name: [entry for _, entry in found] for name, found in ranked.items()}


def graph_of(topology, down):
    graph = networkx.Graph()
    graph.add_nodes_from(switch.name for switch in topology.switches)
    graph.add_edges_from((link.a, link.b) for link in core_links(topology) if link not in down)
    return graph


def moments(before, after, order):
    """What switches hold after each single switch of each round, in any order within a round."""
    held = {name: {key_of(entry): entry for _, entry in found} for name, found in before.items()}
    for step in rounds(held, after):
        for name in order.draw(st.permutations(sorted(step.changes))) if order else sorted(step.changes):
            for change in step.changes[name]:
                if change.kind == p4r.Update.DELETE:
                    del held[name][change.key]
                else:
                    assert (change.key in held[name]) == (change.kind == p4r.Update.MODIFY)
                    held[name][change.key] = change.entry
            yield {switch: list(entries.values()) for switch, entries in held.items()}


def dies(walk, topology, down):
    """Whether a walk uses a dead link, or ends where there is no route."""
    if walk[-1] is None:
        return True
    return any(
        all(link in down for link in topology.links_between(a, b)) for a, b in zip(walk[:-2], walk[1:-1], strict=True)
    )


@st.composite
def failures(draw):
    """A topology, and two sets of dead links: as they are before and after something fails or comes back."""
    topology = draw(st.one_of(random_topologies(), st.just(fattree(4, 10**9, 1000))))
    links = core_links(topology)
    subsets = st.sets(st.sampled_from(links), max_size=3) if links else st.just(set())
    return topology, frozenset(draw(subsets)), frozenset(draw(subsets))


@settings(deadline=None, max_examples=40)
@given(failures(), st.data())
def test_at_every_moment_there_is_no_loop_and_what_works_goes_on(case, data):
    topology, before_down, after_down = case
    router = Router(topology, P4INFO, Policy())
    before, after = router.ranked(before_down), router.ranked(after_down)
    graph = graph_of(topology, after_down)
    hosts = topology.hosts[:: max(1, len(topology.hosts) // 4)]
    was_well = {}
    for held in moments(before, after, data):
        for src in hosts:
            for dst in hosts:
                if src is dst:
                    continue
                ends = [topology.host_port(host.name).node.name for host in (src, dst)]
                walks = all_walks(topology, held, src.name, dst.name)  # asserts that there is no loop
                if not networkx.has_path(graph, *ends):
                    continue
                well = not any(dies(walk, topology, after_down) for walk in walks)
                assert well or not was_well.get((src, dst), False), f"{walks} broke"
                was_well[src, dst] = well
    final = routed(after)
    for src in hosts:
        for dst in hosts:
            ends = [topology.host_port(host.name).node.name for host in (src, dst)]
            if src is not dst and networkx.has_path(graph_of(topology, after_down), *ends):
                walks = all_walks(topology, final, src.name, dst.name)
                assert not any(dies(walk, topology, after_down) for walk in walks)


def test_the_last_moment_is_what_a_fresh_start_writes():
    topology = fattree(4, 10**9, 1000)
    router = Router(topology, P4INFO, Policy())
    down = frozenset(core_links(topology)[:5])
    *_, last = moments(router.ranked(), router.ranked(down), None)
    fresh = Router(topology, P4INFO, Policy()).entries(down)
    assert {name: {key_of(e): e for e in found} for name, found in last.items()} == {
        name: {key_of(e): e for e in found} for name, found in fresh.items()
    }
    assert rounds({name: {key_of(e): e for e in found} for name, found in fresh.items()}, router.ranked(down)) == []


@settings(deadline=None, max_examples=30)
@given(random_topologies(), st.data())
def test_after_any_single_failure_every_pair_that_can_be_is_reached(topology, data):
    links = core_links(topology)
    if not links:
        return
    down = frozenset([data.draw(st.sampled_from(links))])
    entries = Router(topology, P4INFO, Policy()).entries(down)
    graph = graph_of(topology, down)
    for src in topology.hosts:
        for dst in topology.hosts:
            ends = [topology.host_port(host.name).node.name for host in (src, dst)]
            if src is not dst:
                walks = all_walks(topology, entries, src.name, dst.name)
                reached = {walk[-1] for walk in walks} == {dst.name}
                assert reached == networkx.has_path(graph, *ends)
                assert not reached or not any(dies(walk, topology, down) for walk in walks)


def test_weights_stay_with_their_ports_when_others_fail():
    topology = fattree(4, 10**9, 1000)
    router = Router(topology, P4INFO, Policy(weights=(1, 3)))
    edge, first = "s13", topology.links_between("s13", "s5")

    def weights(down=frozenset()):
        (entry,) = [e for e in router.entries(down)[edge] if e.match[DESTINATION] == (0x0A010000, 24)]
        return {action.args["port"]: weight for (weight, _), action in entry.action.action_set}

    assert weights() == {3: 1, 4: 3}
    assert weights(frozenset(first)) == {4: 3}


# --- up-down ---


def _turns_up_after_down(walk, levels):
    heights = [levels[name] for name in walk[:-1]]
    steps = [b - a for a, b in zip(heights, heights[1:], strict=False)]
    return any(a < 0 < b for a, b in zip(steps, steps[1:], strict=False))


@settings(deadline=None, max_examples=25)
@given(st.data())
def test_up_down_never_goes_up_again_and_misses_no_such_path(data):
    topology = fattree(4, 10**9, 1000)
    levels = levels_of(topology)
    down = frozenset(data.draw(st.sets(st.sampled_from(core_links(topology)), max_size=4)))
    entries = Router(topology, P4INFO, Policy(routing="up-down")).entries(down)
    # Up-down paths as paths of a graph of two copies: one where one may still go up, one where one may not.
    graph = networkx.DiGraph()
    for link in core_links(topology):
        for a, b in ((link.a, link.b), (link.b, link.a)) if link not in down else ():
            if levels[b] > levels[a]:
                graph.add_edge((a, "up"), (b, "up"))
            else:
                graph.add_edge((a, "up"), (b, "down"))
                graph.add_edge((a, "down"), (b, "down"))
    for src in topology.hosts[::3]:
        for dst in topology.hosts[1::4]:
            first, last = (topology.host_port(host.name).node.name for host in (src, dst))
            if first == last:
                continue
            walks = all_walks(topology, entries, src.name, dst.name)
            reachable = (first, "up") in graph and any(
                (last, way) in graph and networkx.has_path(graph, (first, "up"), (last, way)) for way in ("up", "down")
            )
            assert {walk[-1] for walk in walks} == ({dst.name} if reachable else {None})
            assert not any(_turns_up_after_down(walk, levels) for walk in walks)


def test_without_failures_up_down_is_shortest_in_a_tree():
    topology = fattree(4, 10**9, 1000)
    one, other = (destinations(topology, routing=routing) for routing in ("shortest", "up-down"))
    assert {name: set(routes) for name, routes in one.items()} == {name: set(routes) for name, routes in other.items()}


def test_up_down_wants_layers():
    text = r"routing up-down: .* is no tree of layers: s1-eth3:s2-eth3 joins two switches that are 0 and 0 links from"
    with pytest.raises(ControllerError, match=text):
        Router(dumbbell(), P4INFO, Policy(routing="up-down"))


# --- names ---


def _named(topology, program_schema, k=3):
    return Router(topology, program_schema, Policy(paths=k))


def test_names_of_a_pair_change_only_if_one_of_its_paths_fails(ksp_schema):
    topology = fattree(4, 10**9, 1000)
    router = _named(topology, ksp_schema)
    link = topology.links_between("s5", "s13")[0]
    before, after = router.entries(), router.entries(frozenset([link]))
    for name in ("s17", "s18"):
        groups = [
            {e.match[DESTINATION]: e.action.args["group"] for e in entries[name] if e.table_id == ROUTES}
            for entries in (before, after)
        ]
        changed = {prefix for prefix in groups[0] if groups[0][prefix] != groups[1][prefix]}
        assert changed <= {(0x0A000000, 24)}
    # Nothing that is left refers to the dead link's ports.
    for name, port in link.ends:
        for entry in after[name]:
            if entry.table_id == PATH_LABEL:
                assert entry.action.args["port"] != port
            elif entry.match[DESTINATION][1] == 24:
                assert port not in lookup([entry], _address(entry))


def _address(entry):
    value = entry.match[DESTINATION][0] + 2
    return ".".join(str(value >> shift & 255) for shift in (24, 16, 8, 0))


def test_names_are_there_before_routes_and_go_last(ksp_schema):
    topology = fattree(4, 10**9, 1000)
    router = _named(topology, ksp_schema)
    down = frozenset(topology.links_between("s5", "s13"))
    held = {name: {key_of(e): e for e in found} for name, found in router.entries().items()}
    steps = rounds(held, router.ranked(down))
    kinds = [{(c.entry.table_id, c.kind) for changes in step.changes.values() for c in changes} for step in steps]
    assert kinds == [
        {(PATH_LABEL, p4r.Update.INSERT)},
        {(ROUTES, p4r.Update.MODIFY)},
        {(PATH_LABEL, p4r.Update.DELETE)},
    ]
    assert [step.drain for step in steps] == [False, False, True]


@pytest.fixture(scope="module")
def ksp_schema(tmp_path_factory):
    import finsy as fy

    from controller.tests.test_live import PROGRAMS

    p4front = pytest.importorskip("p4front.driver")
    return fy.P4Schema(p4front.compile_file(PROGRAMS["ksp"]).p4info)


def test_remaining_keeps_host_links():
    topology = dumbbell()
    assert remaining(topology, frozenset(topology.links)).links == tuple(
        link for link in topology.links if link not in core_links(topology)
    )

from hypothesis import given
from hypothesis import strategies as st

from lab.paths import edges_of_flow, paths_taken


def test_one_path() -> None:
    edges = [("h1", "s1"), ("s1", "s2"), ("s2", "h2")]
    assert paths_taken(edges, "h1", "h2") == [("h1", "s1", "s2", "h2")]


def test_two_paths_and_a_dead_end() -> None:
    edges = [("h1", "s1"), ("s1", "s2"), ("s1", "s3"), ("s2", "s4"), ("s3", "s4"), ("s4", "h2"), ("s3", "s9")]
    assert paths_taken(edges, "h1", "h2") == [("h1", "s1", "s2", "s4", "h2"), ("h1", "s1", "s3", "s4", "h2")]


def test_a_loop_ends() -> None:
    assert paths_taken([("a", "b"), ("b", "a"), ("b", "c")], "a", "c") == [("a", "b", "c")]


@given(st.lists(st.tuples(st.sampled_from("abcdef"), st.sampled_from("abcdef")), max_size=15))
def test_every_path_uses_given_edges_and_repeats_no_node(edges: list[tuple[str, str]]) -> None:
    paths = paths_taken(edges, "a", "f")
    assert len(paths) == len(set(paths))
    for path in paths:
        assert path[0] == "a"
        assert path[-1] == "f"
        assert len(path) == len(set(path))
        assert set(zip(path, path[1:], strict=False)) <= set(edges)


def test_flow_records_are_matched_by_addresses_and_port() -> None:
    flows = {
        ("h1", "s1"): {("10.0.0.2", "10.1.0.2", 17, 50000, 4791): (10, 100)},
        ("s1", "s2"): {("10.0.0.2", "10.1.0.2", 17, 50001, 4791): (10, 100)},
        ("s2", "s1"): {("10.1.0.2", "10.0.0.2", 17, 50000, 4791): (10, 100)},
    }
    assert edges_of_flow(flows, "10.0.0.2", "10.1.0.2") == [("h1", "s1"), ("s1", "s2")]
    assert edges_of_flow(flows, "10.0.0.2", "10.1.0.2", 50001) == [("s1", "s2")]

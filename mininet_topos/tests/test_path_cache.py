"""Paths on disk: what is kept returns, and what is cut off, changed or of another graph does not."""

import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mininet_topos import k_paths, path_cache
from mininet_topos.catalogue import parse_choice

PATHS = [[[0, 1], [2]], [], [[70_000]]]


@pytest.fixture(autouse=True)
def _own_folder(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))


def test_what_is_stored_is_loaded():
    assert path_cache.load("a", 3) is None
    path_cache.store("a", PATHS)
    assert path_cache.load("a", 3) == PATHS
    assert [path.name for path in path_cache.folder().iterdir()] == ["a"]


def test_a_file_that_was_cut_off_or_changed_counts_as_absent():
    path_cache.store("a", PATHS)
    file = path_cache.folder() / "a"
    whole = file.read_bytes()
    for length in range(len(whole)):
        file.write_bytes(whole[:length])
        assert path_cache.load("a", 3) is None
        file.write_bytes(whole[:length] + bytes([whole[length] ^ 1]) + whole[length + 1 :])
        assert path_cache.load("a", 3) is None
    file.write_bytes(whole)
    assert path_cache.load("a", 3) == PATHS


@given(st.data())
def test_a_key_is_that_of_one_graph_only(data):
    pair = st.tuples(st.integers(0, 4), st.integers(0, 4))
    inputs = st.tuples(st.integers(1, 5), st.lists(pair, max_size=4), st.lists(pair, max_size=4), st.integers(1, 4))
    one, other = data.draw(inputs), data.draw(inputs)
    assert (path_cache.key(*one) == path_cache.key(*other)) == (one == other)


def test_the_oldest_files_are_forgotten(monkeypatch):
    monkeypatch.setattr(path_cache, "_KEPT_FILES", 3)
    for number in range(6):
        path_cache.store(str(number), PATHS)
    assert len(list(path_cache.folder().iterdir())) == 3


def test_a_folder_that_cannot_be_is_no_error(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    path_cache.store("a", PATHS)
    assert path_cache.load("a", 3) is None


def test_large_networks_are_computed_once(monkeypatch):
    topology = parse_choice("jellyfish:switches=30,ports=5,hosts=30").build()
    first = list(k_paths.k_shortest_paths(topology, 4))
    assert len(list(path_cache.folder().iterdir())) == 1
    monkeypatch.setattr(k_paths, "_yen", None)  # would fail if it were called
    assert list(k_paths.k_shortest_paths(topology, 4)) == first
    with pytest.raises(TypeError):
        list(k_paths.k_shortest_paths(topology, 5))
    with pytest.raises(TypeError):
        list(k_paths.k_shortest_paths(topology.without(topology.links[:1]), 4))


WRITER = """
from mininet_topos import path_cache
paths = [[[n] * 50] * 8 for n in range(300)]
for _ in range(15):
    path_cache.store("same", paths)
    found = path_cache.load("same", 300)
    assert found is None or found == paths
"""


def test_several_writers_never_show_half_a_file():
    writers = [subprocess.Popen([sys.executable, "-c", WRITER]) for _ in range(2)]
    for _ in range(50):
        found = path_cache.load("same", 300)
        assert found is None or (len(found) == 300 and all(len(paths) == 8 for paths in found))
    assert [writer.wait() for writer in writers] == [0, 0]
    assert [path.name for path in path_cache.folder().iterdir()] == ["same"]

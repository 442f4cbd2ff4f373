"""Received packets against expected ones, also against a regular expression that says the same."""

import re

from hypothesis import given
from hypothesis import strategies as st

from lab.stf.compare import difference, matches
from lab.stf.syntax import Expect


def expect(port, pattern=None, exact=False, line=1):
    return Expect(line, "expect", port, pattern, exact)


def test_prefix_and_exact():
    assert matches(expect(0, "0102"), b"\1\2\3")
    assert not matches(expect(0, "0102", exact=True), b"\1\2\3")
    assert matches(expect(0, "0102", exact=True), b"\1\2")
    assert not matches(expect(0, "0102"), b"\1")
    assert matches(expect(0, "0*02"), b"\7\2") and not matches(expect(0, "0*02"), b"\x17\2")
    assert matches(expect(0, "01F"), b"\1\xff"), "half a byte"
    assert matches(expect(0), b"") and matches(expect(0), b"anything")
    assert matches(expect(0, "", exact=True), b"") and not matches(expect(0, "", exact=True), b"x")


@given(st.text("0123456789ABCDEF*", max_size=12), st.binary(max_size=6), st.booleans())
def test_matches_is_the_regular_expression(pattern, data, exact):
    oracle = pattern.replace("*", ".") + ("$" if exact else "")
    assert matches(expect(0, pattern, exact), data) == bool(re.match(oracle, data.hex().upper()))


def test_ports_are_apart_and_in_order():
    expects = [expect(1, "01"), expect(2, "02"), expect(1, "03")]
    assert difference(expects, [(2, b"\2"), (1, b"\1"), (1, b"\3")]) == ""
    text = difference(expects, [(1, b"\3"), (1, b"\1"), (2, b"\2")])
    assert text == "port 1, line 1: expected 01, got 03; port 1, line 1: expected 03, got 01"


def test_counts_are_equal():
    assert difference([expect(4, "01")], []) == "port 4: 1 packets expected, 0 came"
    assert difference([], [(7, b"\1")]) == "port 7: 0 packets expected, 1 came: 01"
    assert difference([], [(7, b"\1")] * 5) == "port 7: 0 packets expected, 5 came: 01, 01, 01, …"
    assert difference([expect(1)], [(1, b"a"), (1, b"b")]) == "port 1: 1 packets expected, 2 came: 61, 62"


def test_a_long_packet_is_shown_in_part():
    text = difference([expect(1, "00", line=9)], [(1, b"\xff" * 100)])
    assert text == f"port 1, line 9: expected 00, got {'FF' * 64}… (100 bytes)"

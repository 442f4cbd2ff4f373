"""Bytestrings: canonical form, ranges, signs, translated names."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fastswitch.server.codec import Bits, SdnString, SignedBits, TranslatedBits
from fastswitch.server.errors import P4RuntimeError


def shortest(value: int) -> bytes:
    return value.to_bytes(max(1, (value.bit_length() + 7) // 8), "big")


@given(st.integers(1, 300), st.data(), st.integers(0, 5))
def test_every_value_of_the_width_survives_and_becomes_shortest(width, data, zeros):
    value = data.draw(st.integers(0, (1 << width) - 1))
    bits = Bits(width)
    canonical = bits.canonical(b"\0" * zeros + shortest(value), "x")
    assert canonical == shortest(value)
    padded = bits.padded(canonical)
    assert len(padded) == (width + 7) // 8 and int.from_bytes(padded, "big") == value
    assert bits.from_padded(padded) == canonical


@given(st.integers(1, 300), st.data())
def test_a_value_beyond_the_width_is_refused(width, data):
    value = data.draw(st.integers(1 << width, 1 << (width + 20)))
    with pytest.raises(P4RuntimeError, match=f"x: value 0x.* is out of range of {width} bits"):
        Bits(width).canonical(shortest(value), "x")


def test_the_empty_string_is_refused():
    for bits in (Bits(8), SignedBits(8)):
        with pytest.raises(P4RuntimeError, match="x: the value is empty; zero is one zero byte"):
            bits.canonical(b"", "x")


@pytest.mark.parametrize(
    ("width", "given_", "canonical"),
    [  # the specification's table of valid bytestrings
        (8, b"\x63", b"\x63"),
        (8, b"\x9d", b"\x9d"),
        (8, b"\xff\x9d", b"\x9d"),
        (12, b"\xfd\x1d", b"\xfd\x1d"),
        (16, b"\x00\x00", b"\x00"),
        (16, b"\xff\xff", b"\xff"),
    ],
)
def test_signed_values_take_the_shortest_twos_complement(width, given_, canonical):
    bits = SignedBits(width)
    assert bits.canonical(given_, "x") == canonical
    assert bits.from_padded(bits.padded(canonical)) == canonical


@pytest.mark.parametrize(("width", "given_"), [(8, b"\x00\x9d"), (12, b"\x8d\x1d")])
def test_signed_values_out_of_range_are_refused(width, given_):
    with pytest.raises(P4RuntimeError, match=f"out of range of a signed {width}-bit number"):
        SignedBits(width).canonical(given_, "x")


def test_a_translated_width_must_fit_both_sides():
    bits = TranslatedBits(9, 32)
    assert bits.padded(bits.canonical(b"\x00\x00\x01\xff", "port")) == b"\x01\xff"
    with pytest.raises(P4RuntimeError, match="out of range of 9 bits"):
        bits.canonical(b"\x02\x00", "port")


def test_names_become_numbers_and_come_back():
    bits = SdnString(9)
    assert bits.padded(bits.canonical(b"7", "port")) == b"\x00\x07"
    name = bits.canonical(b"eth0", "port")
    assert bits.padded(name) == b"\x01\x7f"  # 383: above what decimal names usually are, below the drop port
    assert bits.from_padded(b"\x01\x7f") == b"eth0"
    assert bits.from_padded(b"\x00\x07") == b"7"
    assert bits.from_padded(b"\x00\x2a") == b"42"
    assert bits.padded(bits.canonical(b"eth0", "port")) == b"\x01\x7f"


def test_names_take_every_number_and_reserved_ports_last():
    bits = SdnString(9)
    numbers = [int.from_bytes(bits.padded(bits.canonical(b"p%d_" % i, "port")), "big") for i in range(512)]
    assert sorted(numbers) == list(range(512))
    assert min(numbers[:384]) == 0 and max(numbers[:384]) == 383


def test_names_run_out():
    bits = SdnString(1)
    bits.canonical(b"a", "port")
    bits.canonical(b"b", "port")
    with pytest.raises(P4RuntimeError, match="no number is left for the name b'c'"):
        bits.canonical(b"c", "port")

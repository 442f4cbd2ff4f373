"""24-bit serial arithmetic against Python's integers."""

from __future__ import annotations

from hypothesis import example, given
from hypothesis import strategies as st

from ebpf.tests.rigs import lib

PSN = st.integers(0, (1 << 24) - 1)
HALF = 1 << 23


@given(PSN, st.integers(0, (1 << 32) - 1))
@example((1 << 24) - 1, 1)
@example(0, (1 << 24) - 1)
def test_add_is_modulo_2_to_24(psn: int, count: int) -> None:
    assert lib.nic_native_psn_add(psn, count) == (psn + count) % (1 << 24)


@given(PSN, st.integers(-HALF, HALF - 1))
@example(0xFFFFFF, 1)
@example(0, -1)
@example(5, -HALF)
@example(5, HALF - 1)
def test_distance_undoes_add(base: int, ahead: int) -> None:
    assert lib.nic_native_psn_distance((base + ahead) % (1 << 24), base) == ahead

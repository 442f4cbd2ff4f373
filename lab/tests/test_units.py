import pytest

from lab.errors import UsageError
from lab.units import format_bytes, format_rate, parse_rate, parse_size, parse_time


@pytest.mark.parametrize(
    ("text", "bps"), [("100M", 10**8), ("1.5Gbps", 1_500_000_000), ("2500000", 2_500_000), ("10 kbit/s", 10_000)]
)
def test_rates(text: str, bps: int) -> None:
    assert parse_rate(text) == bps


@pytest.mark.parametrize(("text", "size"), [("1500", 1500), ("20KB", 20_000), ("64KiB", 65_536), ("1.5 mb", 1_500_000)])
def test_sizes(text: str, size: int) -> None:
    assert parse_size(text) == size


@pytest.mark.parametrize(("text", "ns"), [("50us", 50_000), ("1.5ms", 1_500_000), ("200ns", 200), ("2s", 2 * 10**9)])
def test_times(text: str, ns: int) -> None:
    assert parse_time(text) == ns


@pytest.mark.parametrize(
    ("parse", "text", "message"),
    [
        (parse_rate, "fast", "rate 'fast' is not a number with a unit, such as 100M or 10Gbps."),
        (parse_rate, "0M", "rate '0M': need a positive number of k, M or G bits per second, such as 100M."),
        (parse_rate, "10 parsec", "rate '10 parsec': need a positive number"),
        (parse_size, "10 kb/s", "size '10 kb/s': the unit must be B, KB, MB, GB, KiB, MiB or GiB."),
        (parse_size, "big", "size 'big' is not a number with a unit, such as 20KB or 64KiB."),
        (parse_time, "10", "time '10': the unit must be ns, us, ms or s."),
        (parse_time, "-1s", "time '-1s' is not a number with a unit"),
    ],
)
def test_errors_say_what_is_wrong(parse, text: str, message: str) -> None:
    with pytest.raises(UsageError) as error:
        parse(text)
    assert message in str(error.value)


def test_formats() -> None:
    assert format_bytes(6_831_736) == "6.83 MB"
    assert format_rate(94_500_000) == "94.5 Mb/s"

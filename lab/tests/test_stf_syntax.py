"""STF text to statements."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lab.stf.syntax import (
    Add,
    Call,
    CheckCounter,
    Command,
    Expect,
    Packet,
    SetDefault,
    StfError,
    Value,
    number,
    parse,
)

LINES = [
    ("packet 3 0A 0b0C", Packet(1, "packet", 3, b"\x0a\x0b\x0c")),
    ("PACKET 0", Packet(1, "packet", 0, b"")),
    ("expect 5", Expect(1, "expect", 5, None, False)),
    ("expect 5 $", Expect(1, "expect", 5, "", True)),
    ("Expect 511 1* *f a$ # why", Expect(1, "expect", 511, "1**FA", True)),
    ("expect 1 abc", Expect(1, "expect", 1, "ABC", False)),
    ("wait", Command(1, "wait", "", ())),
    ("no_packet", Command(1, "no_packet", "", ())),
    ("remove ALL", Command(1, "remove", "", ())),
    ("setdefault a.b c()", SetDefault(1, "setdefault", "a.b", Call("c", ()))),
    (
        "add t 100 data.f2:0x04**0404 c4_6(val4:0x4040, port:2)",
        Add(
            1,
            "add",
            "t",
            100,
            (("data.f2", Value("0x04**0404")),),
            Call("c4_6", (("val4", Value("0x4040")), ("port", Value("2")))),
            None,
        ),
    ),
    (
        'add "odd name" h[2].x:1/8 f$0.y:0b1* "x y".act() = A',
        Add(
            1,
            "add",
            "odd name",
            None,
            (("h[2].x", Value("1", 8)), ("f$0.y", Value("0b1*"))),
            Call("x y.act", ()),
            "A",
        ),
    ),
    ("add t act(p:1)", Add(1, "add", "t", None, (), Call("act", (("p", Value("1")),)), None)),
    ("mc_node_create 400 6 7", Command(1, "mc_node_create", "", (400, 6, 7))),
    ("register_write a.b 3 0xff", Command(1, "register_write", "a.b", (3, 255))),
    ("meter_set_rates m 2 0.5:16 1:24", Command(1, "meter_set_rates", "m", (2,), ((0.5, 16), (1.0, 24)))),
    ("meter_array_set_rates m 0.001:1 2:3", Command(1, "meter_array_set_rates", "m", (), ((0.001, 1), (2.0, 3)))),
    ("check_counter c(10) packets == 2", CheckCounter(1, "check_counter", "c", 10, "packets", "==", 2)),
    ("check_counter c($A) Bytes<=0x10", CheckCounter(1, "check_counter", "c", "A", "bytes", "<=", 16)),
    ("check_counter c($A)", CheckCounter(1, "check_counter", "c", "A", "packets", None, 0)),
]


@pytest.mark.parametrize(("text", "statement"), LINES, ids=[text for text, _ in LINES])
def test_a_line_is_a_statement(text, statement):
    assert parse(text, "x.stf") == [statement]


def test_lines_count_from_one_and_comments_are_nothing():
    text = '\n# packet 0 00\n   \n\tpacket 1 00\r\n###\nsetdefault "a#b" c() # "d"\n'
    found = parse(text, "x.stf")
    assert [(statement.line, statement.verb) for statement in found] == [(4, "packet"), (6, "setdefault")]
    assert found[1].table == "a#b"


WRONG = [
    ("paket 0 00", "'paket' is no STF command"),
    ("0 00", "'0 00' does not start with a command"),
    ("packet", "packet needs a port number, not ''"),
    ("packet x 00", "packet needs a port number, not 'x'"),
    ("packet 512 00", "port 512 is not within 0..511"),
    ("expect 99999999999 00", "expect needs a port number, not '99999999999'"),
    ("packet 0 0", "packet data '0' is not an even number of hexadecimal digits"),
    ("packet 0 0*", "packet data '0*' is not an even number of hexadecimal digits"),
    ("expect 0 0g", "expected data '0g' is not hexadecimal digits, '*', and '$' at the end"),
    ("expect 0 00$00", "expected data '00$00' is not hexadecimal digits, '*', and '$' at the end"),
    ("add t", "expected a name before 'the end of the line'"),
    ("add t k:1", "expected a name before 'the end of the line'"),
    ("add t k: act()", "expected a number before 'act'"),
    ("add t k:1.5 act()", "'1.5' is no whole number"),
    ("add t k:1/0x* act()", "'0x*' is no whole number"),
    ("add t act(1)", "expected a name before '1'"),
    ("add t act(a:1 b:2)", "expected ',' before 'b'"),
    ("add t act(a:1,)", "expected a name before ')'"),
    ("add t act() = ", "expected a name before 'the end of the line'"),
    ("add t act() more", "'more' is too much"),
    ("add t h[x].y:1 act()", "expected a number before 'x'"),
    ("add t k:0xzz act()", "'0xzz act()' is not understood"),
    ("add t k:1 & act()", "'& act()' is not understood"),
    ('add "t act()', "'\"t act()' is not understood"),
    ("setdefault t", "expected a name before 'the end of the line'"),
    ("remove t", "expected 'all' before 't'"),
    ("wait 5", "'5' is too much"),
    ("mirroring_add 5", "mirroring_add needs 2 numbers, not 1"),
    ("mc_node_create 5", "mc_node_create needs 2 or more numbers, not 1"),
    ("counter_write c 1 2 3 4", "counter_write needs 3 numbers, not 4"),
    ("counter_read 5", "expected a name before '5'"),
    ("meter_set_rates m 1 0.5:1", "meter_set_rates needs 2 pairs rate:burst, not 1"),
    ("meter_set_rates m 1 0.5:1 0.5:1.5", "'1.5' is no whole number"),
    ("check_counter c(1) widgets == 2", "a counter counts packets or bytes, not 'widgets'"),
    ("check_counter c(1) packets = 2", "'=' is none of == != < <= > >="),
]


@pytest.mark.parametrize(("line", "text"), WRONG, ids=[line for line, _ in WRONG])
def test_a_wrong_line_is_named(line, text):
    with pytest.raises(StfError) as caught:
        parse(f"packet 0 00\n{line}\n", "dir/x.stf")
    assert str(caught.value) == f"dir/x.stf:2: {text}"


@given(st.text())
def test_any_text_is_read_or_refused(text):
    try:
        parse(text, "x.stf")
    except StfError as error:
        assert str(error).startswith("x.stf:")


@given(st.text('addkeyctpmrsv _.,:()[]=*$#"0123456789xb/<>!\n', max_size=60))
def test_text_of_the_language_is_read_or_refused(text):
    try:
        parse("add t " + text, "x.stf")
    except StfError as error:
        assert str(error).startswith("x.stf:")


@given(st.binary(max_size=40), st.integers(0, 511))
def test_packets_keep_their_bytes(data, port):
    spaced = data.hex(" ", 2)
    packet, expect = parse(f"packet {port} {spaced}\nexpect {port} {spaced} $", "x.stf")
    assert (packet.port, packet.data) == (port, data)
    assert (expect.port, expect.pattern, expect.exact) == (port, data.hex().upper(), True)


@given(st.integers(0, 1 << 130))
def test_numbers_in_all_bases(value):
    assert [number(text) for text in (str(value), f"0{value}", hex(value), bin(value), oct(value))] == [value] * 5

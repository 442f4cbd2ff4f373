"""Matches and actions as people write them: what is understood, and the text of every refusal."""

import contextlib

import finsy as fy
import pytest
from hypothesis import given
from hypothesis import strategies as st

from controller import entries, text
from controller.errors import EntryTextError
from controller.tests.programs import schema

SCHEMA = schema()
ROUTES = SCHEMA.tables["ipv4_lpm"]
ZOO = SCHEMA.tables["zoo"]
DMAC = SCHEMA.tables["dmac"]
ECN = SCHEMA.tables["red_curve"]
PORT = "standard_metadata.ingress_port=1"

UNDERSTOOD = [
    (ROUTES, ["hdr.ipv4.dst_addr=10.0.0.0/24"], {"hdr.ipv4.dst_addr": (0x0A000000, 24)}),
    (ROUTES, ["dst_addr=10.0.0.9/24"], {"hdr.ipv4.dst_addr": (0x0A000000, 24)}),
    (ROUTES, ["dst_addr = 10.0.0.9"], {"hdr.ipv4.dst_addr": (0x0A000009, 32)}),
    (ROUTES, ["dst_addr=0x0a000009/32"], {"hdr.ipv4.dst_addr": (0x0A000009, 32)}),
    (ROUTES, ["dst_addr=0.0.0.0/0"], {}),
    (ROUTES, ["dst_addr=*"], {}),
    (ROUTES, [], {}),
    (DMAC, ["dst_addr=02:00:00:00:00:01"], {"hdr.ethernet.dst_addr": 0x020000000001}),
    (ZOO, [PORT, "ether_type=0x0801&&&0xff00"], {"hdr.ethernet.ether_type": (0x0800, 0xFF00)}),
    (ZOO, [PORT, "ether_type=2048"], {"hdr.ethernet.ether_type": (0x0800, 0xFFFF)}),
    (ZOO, [PORT, "src_addr=10.1.0.0/16"], {"hdr.ipv4.src_addr": (0x0A010000, 0xFFFF0000)}),
    (ZOO, [PORT, "src_addr=10.1.2.3&&&255.0.0.255"], {"hdr.ipv4.src_addr": (0x0A000003, 0xFF0000FF)}),
    (ZOO, [PORT, "l4_dst_port=1..5"], {"meta.l4_dst_port": (1, 5)}),
    (ZOO, [PORT, "l4_dst_port=7"], {"meta.l4_dst_port": (7, 7)}),
    (ZOO, [PORT, "l4_dst_port=0..65535"], {}),
    (ZOO, [PORT, "protocol=17"], {"hdr.ipv4.protocol": 17}),
    (ZOO, [PORT, "protocol=*", "ether_type=0&&&0"], {}),
]


@pytest.mark.parametrize(("table", "texts", "expected"), UNDERSTOOD, ids=[" ".join(t) for _, t, _ in UNDERSTOOD])
def test_match_is_understood(table, texts, expected):
    found = dict(text.parse_match(table, texts))
    found.pop("standard_metadata.ingress_port", None)
    assert found == expected


MATCH_REFUSALS = [
    (ROUTES, ["dst_adr=1"], "no key field of ipv4_lpm named 'dst_adr': did you mean 'dst_addr'?"),
    (ROUTES, ["quux=1"], "no key field of ipv4_lpm named 'quux': there are hdr.ipv4.dst_addr"),
    (ROUTES, ["10.0.0.0/24"], "'10.0.0.0/24': a match is FIELD=VALUE"),
    (ROUTES, ["dst_addr=1", "dst_addr=2"], "hdr.ipv4.dst_addr is given twice"),
    (ROUTES, ["dst_addr=10.0.0.0/33"], "hdr.ipv4.dst_addr: prefix length '33' must be from 0 to 32"),
    (ROUTES, ["dst_addr=10.0.0.0/x"], "hdr.ipv4.dst_addr: prefix length 'x' must be from 0 to 32"),
    (ROUTES, ["dst_addr=10.0.0"], "hdr.ipv4.dst_addr: '10.0.0' is not a number or an IPv4 address"),
    (ROUTES, ["dst_addr=0x1ffffffff"], "hdr.ipv4.dst_addr: 0x1ffffffff does not fit in 32 bits"),
    (ROUTES, ["dst_addr=-1"], "hdr.ipv4.dst_addr: -1 does not fit in 32 bits"),
    (DMAC, ["dst_addr=02:00:00"], "hdr.ethernet.dst_addr: '02:00:00' is not a number or a MAC address"),
    (DMAC, [], "dmac: the exact key hdr.ethernet.dst_addr is missing"),
    (DMAC, ["dst_addr=*"], "hdr.ethernet.dst_addr: an exact key needs a value"),
    (ZOO, ["protocol=6"], "zoo: the exact key standard_metadata.ingress_port is missing"),
    (ZOO, [PORT, "protocol=x"], "hdr.ipv4.protocol: 'x' is not a number"),
    (ZOO, [PORT, "l4_dst_port=5..1"], "meta.l4_dst_port: 5..1: the range ends before it begins"),
    (ZOO, [PORT, "l4_dst_port=1..x"], "meta.l4_dst_port: 'x' is not a number"),
    (ZOO, [PORT, "ether_type=1&&&0x1ffff"], "hdr.ethernet.ether_type: 0x1ffff does not fit in 16 bits"),
]


@pytest.mark.parametrize(("table", "texts", "message"), MATCH_REFUSALS, ids=[m for _, _, m in MATCH_REFUSALS])
def test_match_refusals(table, texts, message):
    with pytest.raises(EntryTextError) as refused:
        text.parse_match(table, texts)
    assert str(refused.value) == message


HOP = "forward(port=3)"
CALL = "deliver(src_mac=02:00:00:00:00:01, dst_mac=02:00:00:00:00:02, port=3)"

ACTIONS = [
    (DMAC, CALL, CALL),
    (DMAC, "deliver(02:00:00:00:00:01,0x020000000002,3)", CALL),
    (DMAC, "ingress.deliver ( 02:00:00:00:00:01 , port = 3, dst_mac=02:00:00:00:00:02 )", CALL),
    (DMAC, "NoAction", "NoAction()"),
    (DMAC, "NoAction()", "NoAction()"),
    (ZOO, "tag(label=fast)", "tag(label=fast)"),
    (ZOO, "pair(10.0.0.1, 7)", "pair(ip_src=10.0.0.1, count=7)"),
    (ROUTES, "forward(3)", "{forward(port=3)}"),
    (ROUTES, "{forward(port=3)*2, forward(4) }", "{forward(port=3)*2, forward(port=4)}"),
    (ROUTES, "member(7)", "member(7)"),
    (ROUTES, "group(0x10)", "group(16)"),
]


@pytest.mark.parametrize(("table", "written", "shown"), ACTIONS, ids=[written for _, written, _ in ACTIONS])
def test_action_is_understood_and_shown(table, written, shown):
    message = text.parse_action(table, written).encode_table_action(table)
    assert entries.action_text(message, table) == shown


ACTION_REFUSALS = [
    (DMAC, "delivr(1)", "no action of dmac named 'delivr': did you mean 'deliver'?"),
    (DMAC, "set_seed(1)", "no action of dmac named 'set_seed': there are NoAction, ingress.deliver"),
    (DMAC, "deliver", "deliver: src_mac, dst_mac, port missing; it is deliver(src_mac, dst_mac, port)"),
    (DMAC, "deliver(1, 2)", "deliver: port missing; it is deliver(src_mac, dst_mac, port)"),
    (DMAC, "deliver(1,2,3,4)", "deliver: '4' is one argument too many; it is deliver(src_mac, dst_mac, port)"),
    (DMAC, "deliver(1, src_mac=1)", "deliver: src_mac is given twice"),
    (DMAC, "deliver(prt=1)", "no parameter of deliver named 'prt': did you mean 'port'?"),
    (DMAC, "deliver(1, 2, 512)", "port: 512 does not fit in 9 bits"),
    (DMAC, "deliver(1, 2, 3", "'deliver(1, 2, 3': expected ')' before 'the end'"),
    (DMAC, "deliver(1 2)", "'deliver(1 2)': expected ')' before '2'"),
    (DMAC, "NoAction(1)", "NoAction: '1' is one argument too many; it is NoAction()"),
    (DMAC, "NoAction NoAction", "'NoAction NoAction': nothing may follow after the action, but there is 'NoAction'"),
    (DMAC, "", "'' ends too early"),
    (DMAC, "{NoAction}", "dmac takes one action an entry, not a set: it has no action profile"),
    (DMAC, "member(1)", "no action of dmac named 'member': there are NoAction, ingress.deliver"),
    (ROUTES, "{" + HOP + "*0}", f"'{{{HOP}*0}}': a weight is a number from 1, not '0'"),
    (ROUTES, "{" + HOP, f"'{{{HOP}': expected '}}' before 'the end'"),
    (ROUTES, "{}", "no action of ipv4_lpm named '}': there are ingress.balance.forward"),
    (ROUTES, "member(x)", "member: 'x' is not a number or an IPv4 address"),
]


@pytest.mark.parametrize(("table", "written", "message"), ACTION_REFUSALS, ids=[w for _, w, _ in ACTION_REFUSALS])
def test_action_refusals(table, written, message):
    with pytest.raises(EntryTextError) as refused:
        text.parse_action(table, written)
    assert str(refused.value) == message


@given(st.text(alphabet="forwad(){},=*123 .:", max_size=40))
def test_no_action_text_crashes(written):
    for table in (DMAC, ROUTES):
        with contextlib.suppress(EntryTextError):
            text.parse_action(table, written)


@given(st.text(max_size=30))
def test_no_match_text_crashes(written):
    for name in ("ether_type", "src_addr", "l4_dst_port", "protocol"):
        with contextlib.suppress(EntryTextError):
            text.parse_match(ZOO, [PORT, f"{name}={written}"]).encode(ZOO)


@given(
    st.integers(0, 0xFFFF), st.integers(0, 0xFFFF), st.integers(0, 2**32 - 1), st.integers(0, 2**32 - 1),
    st.integers(0, 65535), st.integers(0, 65535), st.integers(0, 255),
)  # fmt: skip
def test_what_is_shown_is_understood(ether, ether_mask, address, address_mask, low, high, protocol):
    low, high = sorted((low, high))
    written = [PORT, f"ether_type={ether}&&&{ether_mask}", f"src_addr={address}&&&{address_mask}"]
    written += [f"l4_dst_port={low}..{high}", f"protocol={protocol}"]
    message = fy_entry(written)
    shown = entries.match_texts(message, ZOO)
    again = fy_entry([f"{name}={value}" for name, value in shown.items()])
    assert entries.identity(again) == entries.identity(message)


def fy_entry(written):
    entry = fy.P4TableEntry("zoo", match=text.parse_match(ZOO, written), priority=1)
    return entry.encode(SCHEMA).table_entry


@pytest.mark.parametrize(
    ("table", "priority", "message"),
    [
        (ZOO, None, "zoo needs a priority of at least 1: the larger wins"),
        (ZOO, 0, "zoo needs a priority of at least 1: the larger wins"),
        (ROUTES, 5, "ipv4_lpm takes no priority: it has exact and lpm keys only"),
    ],
)
def test_priority_refusals(table, priority, message):
    with pytest.raises(EntryTextError) as refused:
        text.check_priority(table, priority)
    assert str(refused.value) == message


def test_ambiguous_names_are_listed():
    class Named:
        def __init__(self, name):
            self.name = name

    with pytest.raises(EntryTextError, match="table 't' is ambiguous: a.t, b.t"):
        text.find("table", "t", [Named("a.t"), Named("b.t")])
    with pytest.raises(EntryTextError, match="no table named 't': there are none"):
        text.find("table", "t", [])

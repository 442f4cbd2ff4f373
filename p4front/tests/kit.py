"""What several tests share: a whole program to put pieces into, and the tools p4front is compared with."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from fastswitch.interpreter import Interpreter
from p4front.driver import Compiled

ROOT = Path(__file__).resolve().parents[2]
P4SRC = ROOT / "p4src"
DROP_PORT = 511

# A whole v1model program; tests replace its parts.
SKELETON = """
#include <core.p4>
#include <v1model.p4>
{declarations}
header eth_t {{ bit<48> dst; bit<48> src; bit<16> kind; }}
header ip_t {{ bit<8> ttl; bit<8> proto; bit<16> sum; bit<32> src; bit<32> dst; }}
struct headers_t {{ eth_t eth; ip_t ip; {headers} }}
struct metadata_t {{ bit<16> flow; bit<8> mark; bool flag; {metadata} }}
parser prs(packet_in pkt, out headers_t hdr, inout metadata_t meta, inout standard_metadata_t sm) {{
    {parser}
}}
{blocks}
control vrf(inout headers_t hdr, inout metadata_t meta) {{ apply {{ {verify} }} }}
control ing(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t sm) {{
    {locals}
    apply {{ {ingress} }}
}}
control egr(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t sm) {{ apply {{ {egress} }} }}
control cmp(inout headers_t hdr, inout metadata_t meta) {{ apply {{ {compute} }} }}
control dep(packet_out pkt, in headers_t hdr) {{ apply {{ pkt.emit(hdr); }} }}
{package}V1Switch(prs(), vrf(), ing(), egr(), cmp(), dep()) main;
"""
PARSER = """
    state start { pkt.extract(hdr.eth); transition select(hdr.eth.kind) { 0x800: ip; default: accept; } }
    state ip { pkt.extract(hdr.ip); transition accept; }
"""


def program_text(**parts: str) -> str:
    """The skeleton with some parts replaced."""
    names = "declarations headers metadata blocks verify locals ingress egress compute package"
    return SKELETON.format(**{**dict.fromkeys(names.split(), ""), "parser": PARSER, **parts})


def tool(name: str) -> str:
    """The path of a program, or a skip that names what is missing; $P4FRONT_ORACLES may hold its folder."""
    path = shutil.which(name, path=os.environ.get("P4FRONT_ORACLES", "") + os.pathsep + os.environ["PATH"])
    if path is None:
        pytest.skip(f"{name} is not on PATH")
    return path


def run_packet(compiled: Compiled, frame: bytes, port: int = 1) -> tuple[int, bytes] | None:
    """Where a packet leaves and its bytes, or None if it is dropped; by the reference interpreter of the JSON."""
    switch = Interpreter(compiled.bmv2_json)
    packet = switch.parse(frame, {"ingress_port": port, "packet_length": len(frame)})
    switch.run("ingress", packet)
    out = packet.fields.get(("standard_metadata", "egress_spec"), 0)
    if out == DROP_PORT:
        return None
    switch.standard(packet, "egress_port", out)
    switch.standard(packet, "egress_spec", 0)
    packet.exited = False
    switch.run("egress", packet)
    dropped = packet.fields.get(("standard_metadata", "egress_spec")) == DROP_PORT
    return None if dropped else (out, switch.deparse(packet))


def ip_frame(ttl: int = 64, proto: int = 17, total: int = 0, src: int = 0x0A000001, dst: int = 0x0A000002) -> bytes:
    """A packet of the skeleton's parser: `eth_t` with kind 0x800, then `ip_t`."""
    eth = (0x112233445566).to_bytes(6, "big") + (0x778899AABBCC).to_bytes(6, "big") + b"\x08\x00"
    return eth + bytes([ttl, proto]) + total.to_bytes(2, "big") + src.to_bytes(4, "big") + dst.to_bytes(4, "big")


def ip_fields(frame: bytes) -> dict[str, int]:
    """The fields of `ip_t` in a packet of `ip_frame`."""
    ends = {"ttl": (14, 15), "proto": (15, 16), "sum": (16, 18), "src": (18, 22), "dst": (22, 26)}
    return {name: int.from_bytes(frame[low:high], "big") for name, (low, high) in ends.items()}

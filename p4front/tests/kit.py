"""What several tests share: a whole program to put pieces into, and the tools p4front is compared with."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
P4SRC = ROOT / "p4src"

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

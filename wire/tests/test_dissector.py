"""The Wireshark dissector: every opcode, with and without Plait's headers, read back by tshark field by field."""

import random
import shutil
import subprocess
from pathlib import Path

import pytest
from scapy.layers.inet import IP, UDP
from scapy.layers.l2 import Ether
from scapy.packet import Packet, Raw
from scapy.utils import wrpcap

from wire.codes import BthExtension, BthOpcode
from wire.generate import ROOT
from wire.layers import BTH
from wire.rocev2 import RoceLayer, header_chain

pytestmark = pytest.mark.skipif(shutil.which("tshark") is None, reason="tshark is not on PATH")
BELOW = Ether(dst="02:00:00:00:00:02", src="02:00:00:00:00:01") / IP(src="10.0.0.1", dst="10.0.0.2") / UDP(sport=49152)


def filled(layer: type[Packet], rng: random.Random, **fixed: int) -> Packet:
    random_values = {f.name: rng.getrandbits(f.size) for f in layer.fields_desc if f.name != "icrc"}
    return layer(**{**random_values, **fixed})


def samples() -> list[Packet]:
    rng = random.Random(4791)
    made = []
    for opcode in BthOpcode:
        for extension in BthExtension:
            packet = BELOW / filled(BTH, rng, opcode=opcode, extension=extension)
            for header in header_chain(opcode, extension):
                packet /= filled(RoceLayer.by_header[header], rng)
            made.append(packet / Raw(rng.randbytes(rng.choice((0, 4, 32)))))
    return made


def tshark(capture: Path, *arguments: str) -> str:
    command = ["tshark", "-X", f"lua_script:{ROOT / 'wire/plait.lua'}", "-r", str(capture), *arguments]
    result = subprocess.run(command, check=True, capture_output=True, text=True)
    assert "Lua" not in result.stderr, result.stderr
    return result.stdout


def expected(packet: Packet) -> dict[str, str]:
    values, layer = {}, packet[BTH]
    while isinstance(layer, RoceLayer):
        names = {field.name for field in layer.fields_desc} - {"icrc"}
        values |= {f"plait.{layer.header_name}.{name}": str(layer.getfieldval(name)) for name in names}
        layer = layer.payload
    return {**values, "plait.payload": bytes(layer).hex(), "plait.icrc": str(int.from_bytes(bytes(packet)[-4:], "big"))}


def test_every_field_of_every_opcode(tmp_path):
    packets = samples()
    wrpcap(str(tmp_path / "all.pcap"), packets)
    wanted = [expected(packet) for packet in packets]
    names = sorted({name for values in wanted for name in values})
    columns = [part for name in names for part in ("-e", name)]
    rows = tshark(tmp_path / "all.pcap", "-T", "fields", *columns, "-E", "separator=|").splitlines()
    assert len(rows) == len(packets)
    for row, values in zip(rows, wanted, strict=True):
        shown = dict(zip(names, row.split("|"), strict=True))
        read = {n: v if n == "plait.payload" else str(int(v, 0)) for n, v in shown.items() if v}
        assert read == {name: value for name, value in values.items() if value}


def test_a_cut_packet_is_no_lua_error(tmp_path):
    whole = [bytes(packet) for packet in samples()]
    cut = [data[:length] for data in whole[::7] for length in range(len(BELOW), len(data), 5)]
    wrpcap(str(tmp_path / "cut.pcap"), [Ether(data) for data in cut])
    assert "Lua Error" not in tshark(tmp_path / "cut.pcap", "-V")

"""Files that users hand in: fabric.json, captures, topologies, STF cases.  Read, or refused by name."""

from __future__ import annotations

import io
import json
import random
import tempfile
from collections.abc import Callable
from pathlib import Path

from scapy.layers.inet import IP, UDP
from scapy.layers.l2 import Ether
from scapy.packet import Raw
from scapy.utils import wrpcap

import p4front
from fastswitch.config import ConfigError, load_fabric
from fuzz.mutation import Mutator, mutated_bytes
from fuzz.packets import ROOT
from fuzz.target import Target
from lab.errors import UsageError
from lab.inspect import inspect
from lab.stf.mapping import Mapper, MappingError, UnmappedError
from lab.stf.names import UnresolvedName
from lab.stf.syntax import StfError, parse
from mininet_topos.fattree import fattree
from mininet_topos.topology import Topology, TopologyError

_FILES = 40
_FABRIC = {
    "seed": 1,
    "switches": [
        {"name": "s1", "device_id": 1, "grpc_addr": "127.0.0.1:9559", "cpu_port": 510, "priority_queues": 2},
        {"name": "s2", "device_id": 2, "grpc_addr": "[::1]:0", "drop_port": 500, "program": "x.json"},
    ],
    "links": [{"a": ["s1", 1], "b": ["s2", 1], "rate_bps": 10**9, "delay_ns": 1000, "loss": 0.5, "queue_packets": 5}],
    "interfaces": [{"switch": "s1", "port": 3, "interface": "eth0", "queue_bytes": 7}],
    "control": "/run/x.sock",
}
_ROCE = bytes.fromhex("0a40ffff00000007800000010102030405060708")  # a BTH and the start of a RETH
_STF = """
# a comment
packet 1 0a0b0c
expect 2 0a** 0c $
expect 3
add exact_table 5 hdr.ethernet.dst_addr:0x01 std.ingress_port:3 ingress.forward_counted(port:7) = $1
add lpm_table ipv4.dst_addr:0x0a000000/8 rewrite(dst_addr:0x1, port:2)
add ternary_table 3 ipv4.src_addr:0x0a****** ipv4.dst_addr:1/32 protocol:6 forward(port:9)
setdefault lpm_table forward(port:1)
check_counter exact_counter($1) packets == 3
check_counter port_counter(2) bytes >= 1
mirroring_add 5 6
mc_mgrp_create 1
mc_node_create 400 1 2 3
mc_node_associate 1 0
register_write words 0 5
register_read words 0
counter_read port_counter 1
meter_set_rates port_meter 1 0.5:100 0.6:100
remove all
wait
no_packet
"""


class Files(Target):
    """Mutations of one kind of file."""

    name = "files"
    sanitized = False
    share = 0.5

    def __init__(self, keep: Path | None = None) -> None:
        super().__init__(keep)
        self._scratch = tempfile.TemporaryDirectory(prefix="plait-fuzz-")
        self._path = Path(self._scratch.name) / "file"
        packets = [Ether() / IP() / UDP(dport=4791) / Raw(_ROCE + bytes(size)) for size in (0, 4, 64, 1024)]
        wrpcap(str(self._path), [*packets, Ether(), Ether() / Raw(b"x" * 50)])
        self._capture = self._path.read_bytes()
        self._fabric = Mutator(_FABRIC)
        self._topology = Mutator(json.loads(fattree(4, 10**9, 1000).to_json()))
        self._p4info = p4front.compile_file(ROOT / "fastswitch" / "tests" / "data" / "everything.p4").p4info

    def close(self) -> None:
        self._scratch.cleanup()

    def case(self, rng: random.Random) -> int:
        kinds: list[Callable[[random.Random], tuple[bytes, Callable[[], None]]]] = [
            *(self._fabric_file, self._capture_file, self._topology_file, self._stf_file),
        ]  # fmt: skip
        for number in range(_FILES):
            data, use = rng.choice(kinds)(rng)
            if rng.random() < 0.3:
                data = mutated_bytes(rng, data)
            self.save(f"{number}-{use.__name__}", data)
            self._path.write_bytes(data)
            use()
        return _FILES

    def _json(self, rng: random.Random, mutator: Mutator) -> bytes:
        return json.dumps(mutator.mutated(rng), ensure_ascii=rng.random() < 0.9).encode(errors="replace")

    def _fabric_file(self, rng: random.Random) -> tuple[bytes, Callable[[], None]]:
        def fabric() -> None:
            try:
                load_fabric(self._path)
            except ConfigError as error:
                assert str(error)

        return self._json(rng, self._fabric), fabric

    def _topology_file(self, rng: random.Random) -> tuple[bytes, Callable[[], None]]:
        def topology() -> None:
            try:
                Topology.from_json(self._path.read_bytes())
            except TopologyError as error:
                assert str(error)

        return self._json(rng, self._topology), topology

    def _capture_file(self, rng: random.Random) -> tuple[bytes, Callable[[], None]]:
        as_json, summary = rng.random() < 0.5, rng.random() < 0.5

        def capture() -> None:
            try:
                inspect(self._path, io.StringIO(), None, as_json, summary)
            except UsageError as error:
                assert str(error)

        return mutated_bytes(rng, self._capture, 20), capture

    def _stf_file(self, rng: random.Random) -> tuple[bytes, Callable[[], None]]:
        lines = _STF.splitlines()
        for _ in range(rng.choice([0, 1, 1, 2, 5])):
            words = rng.choice(lines).split(" ")
            words[rng.randrange(len(words))] = rng.choice(_STF.split())
            lines.append(" ".join(words))
            del lines[rng.randrange(len(lines))]

        def stf() -> None:
            try:
                statements = parse(self._path.read_text(), "case.stf")
            except (StfError, UnicodeDecodeError) as error:
                assert str(error)
                return
            mapper = Mapper(self._p4info)
            for statement in statements:
                try:
                    mapper.writes(statement)
                    mapper.reads(statement)
                except (UnresolvedName, MappingError, UnmappedError) as error:
                    assert str(error)

        return "\n".join(lines).encode(), stf

"""Random packets and table entries for p4src/ecmp.p4, and a process that sends them through one switch.

`unshare --net python -m tests.agreement TARGET P4INFO JSON OUT` writes to OUT what left the switch: JSON, per round and
port the frames in order. Everything is drawn from fixed seeds, so that every switch sees the same.
"""

import asyncio
import json
import random
import select
import socket
import sys
import time
from collections.abc import Iterator
from ipaddress import IPv4Address, IPv4Network
from pathlib import Path

import finsy as fy

from controller.control import Program
from controller.policy import SEED, SET_SEED
from controller.ports import EGRESS_PORT, EGRESS_SPEC, NEIGHBOR, RED, SET_MACS, RedCurve
from controller.routes import DESTINATION, FORWARD, ROUTES
from ptf_tests.runner import PORTS, load, make_ports, running_switch

ODD_MULTIPLIER = 0x85EBCA6B
NO_MARKING = RedCurve(10**9, 10**9)  # no queue is that deep, so marking does not depend on the machine
# Prefix -> ports of its next hops; a port that occurs twice has twice the weight.
ROUTE_PORTS = {
    "0.0.0.0/0": (3,),
    "10.0.1.0/24": (2,),
    "10.0.2.0/24": (2, 3, 4),
    "10.0.3.0/24": (3, 3, 4),
    "10.0.2.128/25": (1,),
    "10.0.2.200/32": (4,),
    **{f"10.9.9.{port}/32": (port,) for port in PORTS},
}
PACKETS_A_ROUND, ROUNDS = 56, 120  # a round enters by one port; with its ends it fits into 64 places, BMv2's queues
_ETHERNET = bytes.fromhex("060000010101 02000a000002")
_PATIENCE_S = 5.0

Outcome = list[dict[int, list[bytes]]]
"""Per round: the frames that left by each port, in order."""


def next_hop(port: int) -> tuple[int, int]:
    """Source and destination MAC of what leaves by `port`."""
    return 0x060000010100 + port, 0x02000A000100 + port


def entries() -> list[fy.P4TableEntry]:
    made = [fy.P4TableEntry(SEED, action=fy.Action(SET_SEED, odd_multiplier=ODD_MULTIPLIER), is_default_action=True)]
    for prefix, ports in ROUTE_PORTS.items():
        network = IPv4Network(prefix)
        members = [(ports.count(port), fy.Action(FORWARD, port=port)) for port in sorted(set(ports))]
        match = fy.Match({DESTINATION: (int(network.network_address), network.prefixlen)} if network.prefixlen else {})
        made.append(fy.P4TableEntry(ROUTES, match=match, action=fy.IndirectAction(members)))
    for port in PORTS[:2]:
        made.append(fy.P4TableEntry(RED, match=fy.Match({EGRESS_PORT: port}), action=NO_MARKING.action()))
    for port in PORTS:
        source, destination = next_hop(port)
        macs = fy.Action(SET_MACS, src_mac=source, dst_mac=destination)
        made.append(fy.P4TableEntry(NEIGHBOR, match=fy.Match({EGRESS_SPEC: port}), action=macs))
    return made


# ----------------------------------------------------------------------------------------------------------------------
# Packets


def checksum(header: bytes) -> int:
    total = sum(int.from_bytes(header[i : i + 2], "big") for i in range(0, len(header), 2))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return total ^ 0xFFFF


def ipv4(
    draw: random.Random, destination: str, body: bytes, protocol: int, ttl: int = 64, options: bytes = b""
) -> bytes:
    """An IPv4 packet with a right checksum; ECN codepoint, DSCP, source and flags are drawn."""
    ihl = 5 + len(options) // 4
    fragment = draw.choice([0x4000, 0x4000, 0, 0x8000, 0x2000, 0x2005, 0x0005, 0x1FFF])
    head = bytes([0x40 | ihl, draw.randrange(256)]) + (4 * ihl + len(body)).to_bytes(2, "big") + draw.randbytes(2)
    head += fragment.to_bytes(2, "big") + bytes([ttl, protocol, 0, 0]) + bytes([10, 0, 0, draw.randrange(1, 4)])
    head += IPv4Address(destination).packed + options
    return head[:10] + checksum(head).to_bytes(2, "big") + head[12:] + body


def frame(draw: random.Random) -> bytes:
    """A frame: mostly IPv4 of every kind, then often broken in one way."""
    kind = draw.randrange(20)
    if kind == 0:  # not IPv4
        ether_type = draw.choice([b"\x08\x06", b"\x86\xdd", b"\x88\xb5", b"\x00\x2e"])
        return _ETHERNET + ether_type + draw.randbytes(draw.randrange(60))
    if kind == 1:
        return _ETHERNET + b"\x08\x00" + draw.randbytes(draw.randrange(1, 80))
    third = draw.choice([1, 2, 2, 3, 3, 7])
    destination = f"10.0.{third}.{draw.choice([1, 2, 127, 128, 200, 255])}"
    ttl = draw.choice([0, 1, 2, 3, 64, 64, 64, 255])
    protocol = draw.choice([17, 17, 17, 17, 6, 1, 0])
    body = draw.randbytes(2) + draw.choice([b"\x12\xb7", b"\x12\xb7", b"\x00\x35"]) + draw.randbytes(draw.randrange(40))
    if draw.random() < 0.1:
        body += bytes(1380)
    options = draw.randbytes(4 * draw.randrange(1, 11)) if draw.random() < 0.15 else b""
    packet = bytearray(_ETHERNET + b"\x08\x00" + ipv4(draw, destination, body, protocol, ttl, options))
    breakage = draw.randrange(12)
    if breakage == 0:  # a bad checksum
        packet[24 + draw.randrange(2)] ^= 1 << draw.randrange(8)
    elif breakage == 1:  # any one bit
        packet[draw.randrange(12, min(len(packet), 60))] ^= 1 << draw.randrange(8)
    elif breakage in (2, 3):  # cut short, at every place
        del packet[draw.randrange(15, min(len(packet), 70)) :]
    elif breakage == 4:  # a header length that is not true, with the checksum of 20 bytes made right
        packet[14] = draw.choice([0x40, 0x44, 0x46, 0x4F, 0x55, 0x65])
        packet[24:26] = bytes(2)
        packet[24:26] = checksum(bytes(packet[14:34])).to_bytes(2, "big")
    elif breakage == 5:  # zero or all ones where the checksum would be
        packet[24:26] = draw.choice([b"\0\0", b"\xff\xff"])
    return bytes(packet)


def rounds() -> Iterator[tuple[int, list[bytes]]]:
    """The port by which a round enters, and its frames; the last ones leave by each port and so end the round."""
    draw = random.Random(20)
    for number in range(ROUNDS):
        ends = [_ETHERNET + b"\x08\x00" + ipv4(draw, f"10.9.9.{port}", b"end", 1) for port in PORTS]
        yield PORTS[number % len(PORTS)], [frame(draw) for _ in range(PACKETS_A_ROUND)] + ends


def is_end(data: bytes) -> bool:
    return data[30:33] == bytes([10, 9, 9]) and data.endswith(b"end")


# ----------------------------------------------------------------------------------------------------------------------
# A switch


def exchange(sockets: dict[int, socket.socket], port: int, frames: list[bytes]) -> dict[int, list[bytes]]:
    """Sends a round and returns what came out by each port, up to the frame that ends the round there."""
    for data in frames:
        sockets[port].send(data)
    out: dict[int, list[bytes]] = {number: [] for number in sockets}
    waiting = set(sockets)
    deadline = time.monotonic() + _PATIENCE_S
    while waiting and (left := deadline - time.monotonic()) > 0:
        for number in [
            n for n in waiting if sockets[n] in select.select([sockets[n] for n in waiting], [], [], left)[0]
        ]:
            data, address = sockets[number].recvfrom(65536)
            if address[2] == socket.PACKET_OUTGOING:
                continue
            out[number].append(data)
            if is_end(data):
                waiting.discard(number)
    return out


def open_port(port: int) -> socket.socket:
    made = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0)
    made.bind((f"ptf{port}", 0x0003))  # ETH_P_ALL
    return made


def main(target: str, p4info: str, program: str, out: str) -> None:
    make_ports()
    with running_switch(target, Path(out).with_suffix(".log")):
        asyncio.run(load(Program(Path(p4info), Path(program)), entries()))
        sockets = {port: open_port(port) for port in PORTS}
        outcome = [exchange(sockets, port, frames) for port, frames in rounds()]
    Path(out).write_text(json.dumps([{port: [f.hex() for f in frames] for port, frames in r.items()} for r in outcome]))


def read_outcome(path: Path) -> Outcome:
    return [
        {int(port): [bytes.fromhex(data) for data in frames] for port, frames in each.items()}
        for each in json.loads(path.read_text())
    ]


if __name__ == "__main__":
    main(*sys.argv[1:])

"""BMv2's test port of a live switch: packets, wrong messages, bytes; every stream drains and ends, the next works."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import grpc
from finsy.proto import U128, p4r
from google.protobuf.message import Message

import p4front
from fastswitch.codegen import load_program
from fastswitch.server import dataplane_proto as proto
from fuzz.daemon import CPU_PORT, Daemon, free_port
from fuzz.frames import Frames
from fuzz.messages import mutate
from fuzz.mutation import mutated_bytes
from fuzz.packets import ROOT
from fuzz.rpc import PATIENCE, SERVICE, Controller, Stream, check_answer
from fuzz.target import Fault, Target

_STREAMS = 8
_PORT = 1


class Ports(Target):
    """Streams of packets, one after another."""

    name = "ports"
    sanitized = False  # the switch's process is

    def __init__(self, keep: Path | None = None) -> None:
        super().__init__(keep)
        self._address = f"127.0.0.1:{free_port()}"
        self._daemon = Daemon("--dp-grpc-server-addr", self._address)
        made = p4front.compile_file(ROOT / "fastswitch" / "tests" / "data" / "everything.p4")
        self._frames = Frames(load_program(made.json_text))
        with grpc.insecure_channel(self._daemon.address) as channel:
            controller = Controller(channel, 1)
            request = p4r.SetForwardingPipelineConfigRequest(device_id=1, election_id=U128.encode(1))
            request.action = p4r.SetForwardingPipelineConfigRequest.VERIFY_AND_COMMIT
            request.config.p4info.CopyFrom(made.p4info)
            request.config.p4_device_config = made.json_text.encode()
            push = channel.unary_unary(SERVICE + "SetForwardingPipelineConfig")
            push(request.SerializeToString(), timeout=PATIENCE)
            controller.end()

    def close(self) -> None:
        self._daemon.close()

    def case(self, rng: random.Random) -> int:
        sent = 0
        with grpc.insecure_channel(self._address) as channel:
            for number in range(_STREAMS):
                self._status(rng, channel)
                sent += self._stream(rng, channel, number)
            self._probe(channel, rng)
        self._daemon.check()
        return sent

    def _stream(self, rng: random.Random, channel: grpc.Channel, number: int) -> int:
        stream = Stream(channel, proto.PACKET_STREAM, proto.PacketStreamResponse)
        count = rng.randrange(40)
        for place in range(count):
            request = proto.PacketStreamRequest(id=place, device_id=1, port=rng.choice([0, 1, 2, 500, 511, 512]))
            request.packet = self._frames.make(rng)
            data = _spoiled(rng, request)
            self.save(f"{number}-{place:02}.bin", data)
            stream.send(data)
        stream.end()
        return count

    def _status(self, rng: random.Random, channel: grpc.Channel) -> None:
        up = rng.choice([proto.STATUS_UP, proto.STATUS_UP, proto.STATUS_DOWN, 7])
        request = proto.SetPortOperStatusRequest(device_id=1, port=rng.choice([0, 1, 2, 600]), oper_status=up)
        data = _spoiled(rng, request)
        try:
            channel.unary_unary(proto.SET_PORT_OPER_STATUS)(data, timeout=PATIENCE)
        except grpc.RpcError as error:
            check_answer("SetPortOperStatus", data, error)

    def _probe(self, channel: grpc.Channel, rng: random.Random) -> None:
        """A packet goes through, and the stream ends after it."""
        up: Any = channel.unary_unary(proto.SET_PORT_OPER_STATUS)
        request = proto.SetPortOperStatusRequest(device_id=1, port=_PORT, oper_status=proto.STATUS_UP)
        up(request.SerializeToString(), timeout=PATIENCE)
        stream = Stream(channel, proto.PACKET_STREAM, proto.PacketStreamResponse)
        packet_out = (_PORT << 7).to_bytes(2, "big")  # everything.p4 sends it where this header says
        request = proto.PacketStreamRequest(id=7, device_id=1, port=CPU_PORT, packet=packet_out + rng.randbytes(60))
        stream.send(request.SerializeToString())
        if stream.end() != 1:
            raise Fault(f"a packet does not come back; the stream: {stream.status()}")


def _spoiled(rng: random.Random, request: Message) -> bytes:
    kind = rng.random()
    if kind < 0.05:
        mutate(rng, request)
    data = request.SerializeToString()
    return mutated_bytes(rng, data) if kind > 0.97 else data

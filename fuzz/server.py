"""A live P4Runtime server: random bytes, mutated messages, mutated programs; it answers, lives and forwards on."""

from __future__ import annotations

import json
import random
import socket
from pathlib import Path

import grpc
from finsy.proto import U128, p4i, p4r
from google.protobuf.message import Message

import p4front
from fuzz.daemon import CPU_PORT, Fabric
from fuzz.messages import Messages, mutate
from fuzz.mutation import Mutator, mutated_bytes
from fuzz.packets import ROOT
from fuzz.rpc import PATIENCE, SERVICE, Controller, check_answer
from fuzz.target import Fault, Target

_Set = p4r.SetForwardingPipelineConfigRequest
_METHODS = ("Write", "Read", "SetForwardingPipelineConfig", "GetForwardingPipelineConfig", "Capabilities")
_REQUESTS = 120
_PUSHES = 3
_ELECTION = (1 << 128) - 1  # so that no mutation takes the primary its place


class Server(Target):
    """One session with a server: a program is pushed, bad requests follow, and at the end a packet must get through."""

    name = "server"
    sanitized = False  # the server's process is
    share = 2.0

    def __init__(self, keep: Path | None = None) -> None:
        super().__init__(keep)
        self._daemon = Fabric()
        self._programs = [self._compile(path) for path in ("fastswitch/tests/data/everything.p4", "p4src/ecmp.p4")]
        self._mutators = [Mutator(json.loads(text)) for _, text in self._programs]

    @staticmethod
    def _compile(path: str) -> tuple[p4i.P4Info, bytes]:
        made = p4front.compile_file(ROOT / path)
        return made.p4info, made.json_text.encode()

    def close(self) -> None:
        self._daemon.close()

    def case(self, rng: random.Random) -> int:
        index = rng.choice([0, 0, 1])
        with grpc.insecure_channel(self._daemon.address, [("grpc.max_metadata_size", 1 << 20)]) as channel:
            session = _Session(self, channel, rng, self._programs[index], self._mutators[index])
            session.push_valid()
            for number in range(_REQUESTS):
                session.request(number)
                self._daemon.check()
            self._noise(rng)
            session.probe(*self._programs[0])
        self._daemon.check()
        return _REQUESTS

    def _noise(self, rng: random.Random) -> None:
        """Bytes that are no HTTP/2, on a connection of their own."""
        host, port = self._daemon.address.split(":")
        preface = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
        with socket.create_connection((host, int(port)), 5) as connection:
            connection.sendall(rng.choice([b"", preface]) + rng.randbytes(rng.randrange(2000)))


class _Session:
    def __init__(
        self,
        target: Target,
        channel: grpc.Channel,
        rng: random.Random,
        program: tuple[p4i.P4Info, bytes],
        json_: Mutator,
    ) -> None:
        self._target = target
        self._channel = channel
        self._rng = rng
        self._p4info, self._json = program
        self._mutator = json_
        self._messages = Messages(self._p4info, rng)
        self._pushes = _PUSHES
        self._stream = Controller(channel, _ELECTION)

    def _config(self) -> p4r.SetForwardingPipelineConfigRequest:
        request = p4r.SetForwardingPipelineConfigRequest(
            device_id=1, action=p4r.SetForwardingPipelineConfigRequest.VERIFY_AND_COMMIT
        )
        request.config.p4info.CopyFrom(self._p4info)
        request.config.p4_device_config = self._json
        request.election_id.CopyFrom(U128.encode(_ELECTION))
        return request

    def push_valid(self) -> None:
        answer = self._call("SetForwardingPipelineConfig", self._config().SerializeToString())
        if answer is not None:
            raise Fault(f"a valid config is refused: {answer}; the primary's stream: {self._stream.status()}")

    def request(self, number: int) -> None:
        """One request, most often one that is nearly right."""
        rng = self._rng
        method, message = self._nearly_right()
        kind = rng.random()
        if kind < 0.75:
            if rng.random() < 0.8:
                mutate(rng, message)
            data = message.SerializeToString()
        elif kind < 0.93:
            data = mutated_bytes(rng, message.SerializeToString())
        else:
            data = rng.randbytes(rng.randrange(300))
        self._target.save(f"{number:03}-{method}.bin", data)
        if method == "StreamChannel":
            self._stream_request(data)
            return
        self._call(method, data)

    def _nearly_right(self) -> tuple[str, Message]:
        rng = self._rng
        kind = rng.random()
        if kind < 0.5:
            write = p4r.WriteRequest(device_id=1)
            write.election_id.CopyFrom(U128.encode(_ELECTION))
            for _ in range(rng.choice([1, 1, 3, 20])):
                write.updates.append(self._messages.update())
            return "Write", write
        if kind < 0.75:
            read = p4r.ReadRequest(device_id=1)
            for _ in range(rng.choice([1, 1, 3])):
                read.entities.append(self._messages.query())
            return "Read", read
        if kind < 0.9:
            return "StreamChannel", self._messages.stream()
        if kind < 0.95 and self._pushes:
            self._pushes -= 1
            config = self._config()
            if rng.random() < 0.6:
                config.config.p4_device_config = json.dumps(self._mutator.mutated(rng)).encode()
            else:
                mutate(rng, config.config.p4info, changes=4)
            config.action = rng.choice(
                [_Set.VERIFY, _Set.VERIFY_AND_SAVE, _Set.VERIFY_AND_COMMIT, _Set.RECONCILE_AND_COMMIT]
            )
            return "SetForwardingPipelineConfig", config
        return "GetForwardingPipelineConfig", p4r.GetForwardingPipelineConfigRequest(device_id=1)

    def _call(self, method: str, data: bytes) -> str | None:
        """The answer's text, None where it is OK.  Fault for an answer that is not documented."""
        path = SERVICE + method
        try:
            if method == "Read":
                for _ in self._channel.unary_stream(path)(data, timeout=PATIENCE):
                    pass
            else:
                self._channel.unary_unary(path)(data, timeout=PATIENCE)
        except grpc.RpcError as error:
            check_answer(method, data, error)
            return str(error.details())
        return None

    def _stream_request(self, data: bytes) -> None:
        """On a stream of its own, after an arbitration with a lower id or none at all."""
        rng = self._rng
        stream = Controller(self._channel, rng.randrange(1, 1000) if rng.random() < 0.7 else None)
        stream.send(data)
        stream.end()

    def probe(self, p4info: p4i.P4Info, text: bytes) -> None:
        """Whether a packet that a controller sends comes back through the program."""
        self._p4info, self._json = p4info, text
        self.push_valid()
        frame = self._rng.randbytes(60)
        request = p4r.StreamMessageRequest()
        request.packet.payload = frame
        request.packet.metadata.add(metadata_id=1, value=CPU_PORT.to_bytes(2, "big"))
        self._stream.send(request.SerializeToString())
        header = 2  # bytes of packet_in, which the server takes off the frame
        for message in self._stream.answers():
            if message.WhichOneof("update") == "packet" and message.packet.payload == frame[header:]:
                self._stream.end()
                return
        raise Fault("a packet-out does not come back: nothing is forwarded")

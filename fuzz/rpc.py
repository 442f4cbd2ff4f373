"""Raw RPCs: bytes in, and a Fault for an answer that is not documented."""

from __future__ import annotations

import queue
from collections.abc import Iterator
from typing import Any

import grpc
from finsy.proto import U128, p4r, rpc_code, rpc_status

from fuzz.target import Fault

SERVICE = "/p4.v1.P4Runtime/"
PATIENCE = 100.0  # seconds for an answer
# What the specification and the server's own documentation have an RPC fail with. UNKNOWN comes with details.
_DOCUMENTED = {
    *("INVALID_ARGUMENT", "NOT_FOUND", "ALREADY_EXISTS", "PERMISSION_DENIED", "FAILED_PRECONDITION"),
    *("RESOURCE_EXHAUSTED", "OUT_OF_RANGE", "UNIMPLEMENTED"),
}
_DOCUMENTED_DETAILS = {getattr(rpc_code, name) for name in (*_DOCUMENTED, "ABORTED", "OK")}


def check_answer(method: str, data: bytes, error: Any) -> None:
    """Fault unless a failed RPC has a code that is documented for it."""
    code = error.code()
    if code.name in _DOCUMENTED and error.details():
        return
    if code.name == "UNKNOWN" and method in ("Write", "Read"):
        trailer = dict(error.trailing_metadata() or ()).get("grpc-status-details-bin")
        if trailer is None and len(data) > 1000:
            return  # too many updates for a trailer that clients accept
        if trailer is not None:
            status = rpc_status.Status.FromString(trailer)
            codes = []
            for packed in status.details:
                detail = p4r.Error()
                packed.Unpack(detail)
                codes.append(detail.canonical_code)
            if codes and set(codes) <= _DOCUMENTED_DETAILS and any(codes):
                return
            raise Fault(f"{method}: details with codes {codes}: {error.details()}")
    raise Fault(f"{method} fails with {code.name}: {error.details()!r}")


class Stream:
    """A bidirectional stream that takes raw bytes; `answer` is the class of what comes."""

    def __init__(self, channel: grpc.Channel, path: str, answer: Any) -> None:
        self._requests: queue.Queue[bytes | None] = queue.Queue()
        self._path = path
        call = channel.stream_stream(path, response_deserializer=answer.FromString)
        self._call = call(self._take(), timeout=PATIENCE)

    def _take(self) -> Iterator[bytes]:
        while (one := self._requests.get()) is not None:
            yield one

    def send(self, data: bytes) -> None:
        self._requests.put(data)

    def answers(self) -> Iterator[Any]:
        """What comes; Fault if the stream ends with a code that is not documented."""
        try:
            yield from self._call
        except grpc.RpcError as error:
            check_answer(self._path, b"", error)

    def status(self) -> str:
        """How it ended, if it has."""
        return "open" if self._call.is_active() else f"{self._call.code()}: {self._call.details()}"

    def end(self) -> int:
        """No more requests; takes what is left of the answers, and counts them."""
        self._requests.put(None)
        return sum(1 for _ in self.answers())


class Controller(Stream):
    """A StreamChannel that has arbitrated for device 1, unless `election_id` is None."""

    def __init__(self, channel: grpc.Channel, election_id: int | None) -> None:
        super().__init__(channel, SERVICE + "StreamChannel", p4r.StreamMessageResponse)
        if election_id is None:
            return
        request = p4r.StreamMessageRequest()
        request.arbitration.device_id = 1
        request.arbitration.election_id.CopyFrom(U128.encode(election_id))
        self.send(request.SerializeToString())
        for answer in self.answers():
            if answer.WhichOneof("update") == "arbitration":
                return

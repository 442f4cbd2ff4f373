"""One switch over gRPC: P4Runtime for its program and tables, BMv2's test port for its packets."""

import queue
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import grpc
from finsy.proto import p4r, p4r_grpc, rpc_code, rpc_status

from fastswitch.server import dataplane_proto as proto
from lab.stf.compare import PortPacket

_START_S, _PUSH_S, _CALL_S = 30.0, 120.0, 30.0
_RETRY_MS = 50
_NOT_READY = "not ready"  # of the test port, without a program
_DETAILS = "grpc-status-details-bin"


class SwitchError(Exception):
    """What a switch answered, or that it did not."""

    def __init__(self, text: str, code: str = "") -> None:
        super().__init__(text)
        self.unimplemented = code == "UNIMPLEMENTED"
        self.lost = code == "UNAVAILABLE"


class Device:
    """The primary controller of a switch, and the one user of its test port."""

    def __init__(self, address: str, dataplane_address: str, device_id: int) -> None:
        options = [
            ("grpc.initial_reconnect_backoff_ms", _RETRY_MS),
            ("grpc.max_reconnect_backoff_ms", _RETRY_MS),
            ("grpc.max_receive_message_length", -1),
        ]
        self._device_id = device_id
        self._election_id = p4r.Uint128(low=1)
        self._channels = [grpc.insecure_channel(where, options) for where in (address, dataplane_address)]
        self._p4runtime = p4r_grpc.P4RuntimeStub(self._channels[0])  # type: ignore[no-untyped-call]
        self._packet_stream = self._channels[1].stream_stream(
            proto.PACKET_STREAM,
            request_serializer=proto.PacketStreamRequest.SerializeToString,
            response_deserializer=proto.PacketStreamResponse.FromString,
        )
        self._to_switch: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self._takes_packets = False
        self._stream: Any = None  # held: without it nobody is primary

    def connect(self, is_alive: Callable[[], bool]) -> None:
        """Wait for the switch to listen, and become its primary. SwitchError if it ends or does not answer."""
        for channel in self._channels:
            self._wait_for(channel, is_alive)
        self._stream = self._p4runtime.StreamChannel(iter(self._to_switch.get, None))
        arbitration = p4r.MasterArbitrationUpdate(device_id=self._device_id, election_id=self._election_id)
        self._to_switch.put(p4r.StreamMessageRequest(arbitration=arbitration))
        try:
            answer = next(self._stream)
        except grpc.RpcError as error:
            raise _switch_error("arbitration", error) from None
        if answer.arbitration.status.code:
            raise SwitchError(f"another controller is primary: {answer.arbitration.status.message}")

    def push(self, p4info: Any, json: bytes) -> None:
        """Start a program, with empty tables."""
        request = p4r.SetForwardingPipelineConfigRequest(
            device_id=self._device_id,
            election_id=self._election_id,
            action=p4r.SetForwardingPipelineConfigRequest.VERIFY_AND_COMMIT,
            config=p4r.ForwardingPipelineConfig(p4info=p4info, p4_device_config=json),
        )
        try:
            self._p4runtime.SetForwardingPipelineConfig(request, timeout=_PUSH_S)
        except grpc.RpcError as error:
            raise _switch_error("the program", error) from None
        if not self._takes_packets:
            self._wait_for_test_port()

    def write(self, updates: Sequence[Any]) -> None:
        """Write entities."""
        request = p4r.WriteRequest(device_id=self._device_id, election_id=self._election_id, updates=updates)
        try:
            self._p4runtime.Write(request, timeout=_CALL_S)
        except grpc.RpcError as error:
            raise _switch_error("a write", error) from None

    def read(self, entity: Any) -> list[Any]:
        """The entities that match."""
        request = p4r.ReadRequest(device_id=self._device_id, entities=[entity])
        try:
            return [found for response in self._p4runtime.Read(request, timeout=_CALL_S) for found in response.entities]
        except grpc.RpcError as error:
            raise _switch_error("a read", error) from None

    def send(self, packets: Sequence[PortPacket]) -> list[PortPacket]:
        """Packets into ports, in order; what came out of ports until the switch held none any more."""
        requests = (
            proto.PacketStreamRequest(device_id=self._device_id, port=port, packet=data) for port, data in packets
        )
        try:
            responses: Iterator[Any] = self._packet_stream(requests, timeout=_CALL_S)
            return [(response.port, response.packet) for response in responses]
        except grpc.RpcError as error:
            raise _switch_error("packets", error) from None

    def close(self) -> None:
        """Close all connections."""
        self._to_switch.put(None)
        for channel in self._channels:
            channel.close()

    def _wait_for_test_port(self) -> None:
        """BMv2 accepts its first program before it starts its ports: until then the test port is UNAVAILABLE."""
        deadline = time.monotonic() + _START_S
        while not self._takes_packets:
            try:
                self.send([])
                self._takes_packets = True
            except SwitchError as error:
                if _NOT_READY not in str(error) or time.monotonic() > deadline:
                    raise

    @staticmethod
    def _wait_for(channel: grpc.Channel, is_alive: Callable[[], bool]) -> None:
        ready = grpc.channel_ready_future(channel)
        for _ in range(int(_START_S / 0.1)):
            try:
                ready.result(timeout=0.1)
                return
            except grpc.FutureTimeoutError:
                if not is_alive():
                    break
        ready.cancel()
        raise SwitchError("it does not listen")


def _switch_error(what: str, error: Any) -> SwitchError:
    """A status with what P4Runtime tells of single updates, spec 10."""
    code, text = error.code(), error.details()
    for key, value in error.trailing_metadata() or ():
        if key != _DETAILS:
            continue
        for detail in rpc_status.Status.FromString(value).details:
            one = p4r.Error()
            if detail.Unpack(one) and one.canonical_code != rpc_code.OK:
                code, text = rpc_code.Code.Name(one.canonical_code), one.message
                return SwitchError(f"the switch refused {what}: {code} {text}", code)
    if code == grpc.StatusCode.DEADLINE_EXCEEDED:
        return SwitchError(f"the switch did not answer to {what} in time")
    return SwitchError(f"the switch refused {what}: {code.name} {text}", code.name)

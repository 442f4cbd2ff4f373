"""Bytes that are no protobuf message: the client's mistake, with its code, on every kind of RPC."""

import grpc
import grpc.aio
import pytest

from fastswitch.tests.server_kit import fake_device, serving

MALFORMED = b"\x0a\xff\xff\xff\xff\x0f"  # a field that is longer than what is left


@pytest.mark.parametrize(
    ("method", "kind"), [("Write", "unary_unary"), ("Read", "unary_stream"), ("StreamChannel", "stream_stream")]
)
async def test_a_malformed_request_is_an_invalid_argument(method, kind, caplog):
    async with serving(fake_device()) as address, grpc.aio.insecure_channel(address) as channel:
        call = getattr(channel, kind)(f"/p4.v1.P4Runtime/{method}")
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            if kind == "unary_unary":
                await call(MALFORMED)
            else:
                async for _ in call(iter([MALFORMED]) if kind == "stream_stream" else MALFORMED):
                    pass
    assert caught.value.code() == grpc.StatusCode.INVALID_ARGUMENT
    assert "Error parsing message" in caught.value.details()
    assert not caplog.records

"""Requests that are no protobuf messages: INVALID_ARGUMENT, where gRPC itself would say UNKNOWN and log a traceback."""

from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import grpc
import grpc.aio
from google.protobuf.message import DecodeError


class DecodingInterceptor(grpc.aio.ServerInterceptor):
    """Takes the decoding of requests over from gRPC.  Handlers that stream must be coroutines, not generators."""

    async def intercept_service(
        self,
        continuation: Callable[[grpc.HandlerCallDetails], Awaitable[grpc.RpcMethodHandler]],
        handler_call_details: grpc.HandlerCallDetails,
    ) -> grpc.RpcMethodHandler:
        """The handler of a call, behind one that decodes."""
        handler: Any = await continuation(handler_call_details)
        if handler is None or handler.request_deserializer is None:
            return handler
        decode = handler.request_deserializer

        async def decoded(data: bytes, context: Any) -> Any:
            try:
                return decode(data)
            except DecodeError as error:
                await context.abort(grpc.StatusCode.INVALID_ARGUMENT, f"the request cannot be decoded: {error}")

        async def unary_unary(data: bytes, context: Any) -> Any:
            return await handler.unary_unary(await decoded(data, context), context)

        async def unary_stream(data: bytes, context: Any) -> Any:
            return await handler.unary_stream(await decoded(data, context), context)

        async def stream_stream(requests: AsyncIterator[bytes], context: Any) -> Any:
            async def all_decoded() -> AsyncIterator[Any]:
                # Raises DecodeError in the handler, which may have to finish writing before it can answer.
                async for data in requests:
                    yield decode(data)

            return await handler.stream_stream(all_decoded(), context)

        serialize = handler.response_serializer
        if handler.unary_unary:
            return grpc.unary_unary_rpc_method_handler(unary_unary, response_serializer=serialize)
        if handler.unary_stream:
            return grpc.unary_stream_rpc_method_handler(unary_stream, response_serializer=serialize)
        return grpc.stream_stream_rpc_method_handler(stream_stream, response_serializer=serialize)


__all__ = ["DecodingInterceptor"]

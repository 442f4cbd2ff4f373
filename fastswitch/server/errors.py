"""Errors of the P4Runtime service: one exception, and how it becomes a gRPC status.

A request-level error is a gRPC status and nothing else. Errors of single updates travel together: the status is
UNKNOWN and its binary details hold one `p4.v1.Error` per update, the successful ones included (specification,
"Error Reporting Messages").
"""

from collections.abc import Sequence
from typing import NoReturn

import grpc
from finsy.proto import p4r, rpc_code, rpc_status
from google.protobuf.any_pb2 import Any

DETAILS_KEY = "grpc-status-details-bin"

# Clients refuse more metadata than they were built for: 8 KB by default, 64 KB in those that expect P4Runtime.
# Messages are shortened to keep to the first limit; details that would break the second are left out.
_SMALL_TRAILER = 7_000
_LARGE_TRAILER = 60_000
_DETAIL_SIZE = 50  # bytes of a detail without its message

_TO_GRPC = {code.value[0]: code for code in grpc.StatusCode}


class P4RuntimeError(Exception):
    """An answer other than OK: a canonical code (`rpc_code.NOT_FOUND`) and a sentence for the developer."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.code = code
        self.message = message

    @property
    def status_code(self) -> grpc.StatusCode:
        """The same code as gRPC's enumeration."""
        return _TO_GRPC[self.code]


class BatchError(Exception):
    """Some elements of a batch failed; `errors[i]` is None where element i succeeded."""

    def __init__(self, errors: Sequence[P4RuntimeError | None]) -> None:
        self.errors = errors
        failed = [(i, error) for i, error in enumerate(errors) if error is not None]
        index, first = failed[0]
        self.message = f"{len(failed)} of {len(errors)} failed; the first, at index {index}: {first.message}"
        super().__init__(self.message)

    def trailer(self) -> bytes | None:
        """The serialized `google.rpc.Status`, or None if no client would accept its size."""
        data = self._status(_SMALL_TRAILER).SerializeToString()
        return data if len(data) <= _LARGE_TRAILER else None

    def _status(self, message_budget: int) -> rpc_status.Status:
        status = rpc_status.Status(code=rpc_code.UNKNOWN, message=self.message)
        left = message_budget - len(self.message) - _DETAIL_SIZE * len(self.errors)
        for error in self.errors:
            detail = p4r.Error(canonical_code=rpc_code.OK)
            if error is not None:
                text = error.message if len(error.message) <= left else ""
                left -= len(text)
                detail = p4r.Error(canonical_code=error.code, message=text)
            packed = Any()
            packed.Pack(detail)
            status.details.append(packed)
        return status


def invalid_argument(message: str) -> NoReturn:
    """Raise INVALID_ARGUMENT."""
    raise P4RuntimeError(rpc_code.INVALID_ARGUMENT, message)


def not_found(message: str) -> NoReturn:
    """Raise NOT_FOUND."""
    raise P4RuntimeError(rpc_code.NOT_FOUND, message)


def already_exists(message: str) -> NoReturn:
    """Raise ALREADY_EXISTS."""
    raise P4RuntimeError(rpc_code.ALREADY_EXISTS, message)


def permission_denied(message: str) -> NoReturn:
    """Raise PERMISSION_DENIED."""
    raise P4RuntimeError(rpc_code.PERMISSION_DENIED, message)


def failed_precondition(message: str) -> NoReturn:
    """Raise FAILED_PRECONDITION."""
    raise P4RuntimeError(rpc_code.FAILED_PRECONDITION, message)


def resource_exhausted(message: str) -> NoReturn:
    """Raise RESOURCE_EXHAUSTED."""
    raise P4RuntimeError(rpc_code.RESOURCE_EXHAUSTED, message)


def out_of_range(message: str) -> NoReturn:
    """Raise OUT_OF_RANGE."""
    raise P4RuntimeError(rpc_code.OUT_OF_RANGE, message)


def unimplemented(message: str) -> NoReturn:
    """Raise UNIMPLEMENTED."""
    raise P4RuntimeError(rpc_code.UNIMPLEMENTED, message)

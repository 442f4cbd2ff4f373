"""The compiled binding, and how its calls fail."""

from __future__ import annotations

import importlib
import os
from typing import Any

from engine.errors import to_exception

# The tests set PLAIT_ENGINE_SANITIZED to run against the core that was built with ASan and UBSan.
_MODULE = "engine._build.sanitized._engine" if os.environ.get("PLAIT_ENGINE_SANITIZED") else "engine._build._engine"

try:
    _engine: Any = importlib.import_module(_MODULE)
except ImportError as error:
    raise ImportError(f"the engine's C core is not built ({error}): run `make build`") from error

ffi: Any = _engine.ffi
lib: Any = _engine.lib


_ERROR = ffi.typeof("struct plait_error *")


def new_error() -> Any:
    return ffi.new(_ERROR)


def failure(error: Any) -> Exception:
    return to_exception(error.code, ffi.string(error.text).decode("utf-8", "replace"))


def check(result: int, error: Any) -> int:
    """The result of a call, or what the call filled into `error`, raised."""
    if result < 0:
        raise failure(error)
    return result


def unsigned(what: str, value: int, bits: int = 32) -> int:
    """An index or quantity that C takes; says which one is wrong before cffi would."""
    if not isinstance(value, int) or not 0 <= value < 1 << bits:
        kind = IndexError if isinstance(value, int) else TypeError
        raise kind(f"{what}: {value!r} is not an integer in 0..2^{bits}-1")
    return value

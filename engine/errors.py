"""The C core's one failure convention (errno and text) as Python exceptions."""

from __future__ import annotations

import errno


class TableFull(Exception):
    """The table holds as many entries as its size guarantees."""


class EntryExists(Exception):
    """An entry with the same match (and priority) is in the table."""


class InUse(ValueError):
    """A member or group that entries or groups still refer to cannot be deleted."""


_BY_CODE: dict[int, type[Exception]] = {
    errno.ENOSPC: TableFull,
    errno.EEXIST: EntryExists,
    errno.EBUSY: InUse,
    errno.EINVAL: ValueError,
    errno.ERANGE: IndexError,
    errno.ENOENT: IndexError,
    errno.ENOMEM: MemoryError,
}

SYSTEM_ERROR = 1 << 16
"""Set in a code that is the operating system's (PLAIT_SYSTEM_ERROR of src/api.h)."""


def to_exception(code: int, text: str) -> Exception:
    """The exception for a code of struct plait_error; OSError for what the operating system refused."""
    if code & SYSTEM_ERROR or code not in _BY_CODE:
        return OSError(code & ~SYSTEM_ERROR, text)
    return _BY_CODE[code](text)

"""Digests: buffered into lists, sent once, and not repeated until the controller acknowledges (or a timeout)."""

import time
from collections.abc import Iterator

from finsy.proto import p4r

from fastswitch.server.errors import already_exists, invalid_argument, not_found
from fastswitch.server.schema import Digest

_MAX_CACHED = 100_000  # samples; a controller that never acknowledges must not fill the memory
_MAX_LIST = 1_000  # samples in one list if the controller sets no limit
_MAX_BUFFER = 10_000  # samples in one list whatever the controller sets


class DigestState:
    """One digest of one switch. `now` is a monotonic clock in nanoseconds."""

    def __init__(self, schema: Digest) -> None:
        self.schema = schema
        self._config: p4r.DigestEntry.Config | None = None
        self._buffer: dict[bytes, None] = {}
        self._buffer_since = 0
        self._cache: dict[int, tuple[int, list[bytes]]] = {}  # list id -> when sent, samples
        self._cached: set[bytes] = set()
        self._next_list = 1

    def write(self, update_type: int, request: p4r.DigestEntry) -> None:
        """INSERT enables the digest, MODIFY reconfigures it, DELETE disables it."""
        name = self.schema.name
        if update_type == p4r.Update.DELETE:
            if self._config is None:
                not_found(f"digest '{name}' is not enabled")
            self._config = None
            self._buffer.clear()
            self._cache.clear()
            self._cached.clear()
            return
        if update_type == p4r.Update.INSERT and self._config is not None:
            already_exists(f"digest '{name}' is already enabled")
        if update_type == p4r.Update.MODIFY and self._config is None:
            not_found(f"digest '{name}' is not enabled")
        config = p4r.DigestEntry.Config()
        config.CopyFrom(request.config)
        for field in ("max_timeout_ns", "max_list_size", "ack_timeout_ns"):
            if getattr(config, field) < 0:
                invalid_argument(f"digest '{name}': {field} {getattr(config, field)} is negative")
        self._config = config

    def read(self) -> Iterator[p4r.DigestEntry]:
        """The configuration, if the digest is enabled."""
        if self._config is not None:
            yield p4r.DigestEntry(digest_id=self.schema.id, config=self._config)

    def sample(self, data: bytes, now: int) -> p4r.DigestList | None:
        """A packet's digest; the list to send now, if it is due."""
        config = self._config
        if config is None or data in self._buffer or data in self._cached:
            return None
        if not self._buffer:
            self._buffer_since = now
        self._buffer[data] = None
        limit = min(config.max_list_size or _MAX_LIST, _MAX_BUFFER)
        if config.max_timeout_ns == 0 or len(self._buffer) >= limit:
            return self._flush(now)
        return None

    def tick(self, now: int) -> p4r.DigestList | None:
        """Forget what was not acknowledged in time; the list whose buffering time is over."""
        config = self._config
        if config is None:
            return None
        for list_id in [i for i, (sent, _) in self._cache.items() if now - sent >= config.ack_timeout_ns]:
            self._drop(list_id)
        if self._buffer and now - self._buffer_since >= config.max_timeout_ns:
            return self._flush(now)
        return None

    def acknowledge(self, list_id: int) -> None:
        """The controller has seen a list; unknown ids (acknowledged too late) are ignored."""
        if list_id in self._cache:
            self._drop(list_id)

    def _flush(self, now: int) -> p4r.DigestList:
        config = self._config
        assert config is not None
        samples = list(self._buffer)
        self._buffer.clear()
        list_id = self._next_list
        self._next_list += 1
        message = p4r.DigestList(digest_id=self.schema.id, list_id=list_id, timestamp=time.time_ns())
        message.data.extend(self.schema.data.decode(sample) for sample in samples)
        if config.ack_timeout_ns > 0 and len(self._cached) + len(samples) <= _MAX_CACHED:
            self._cache[list_id] = (now, samples)
            self._cached.update(samples)
        return message

    def _drop(self, list_id: int) -> None:
        _, samples = self._cache.pop(list_id)
        self._cached.difference_update(samples)

"""What waits to be sent on one stream. A client that does not read must not make the switch's memory grow.

Beyond a limit notifications (packets, digests, idle timeouts, stream errors) are dropped and counted; all of them may
be lost by the specification. Arbitration may not: where it piles up, the stream is over.
"""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable

from finsy.proto import p4r

MAX_BYTES = 4 << 20
MAX_MESSAGES = 10_000
MAX_ARBITRATION = 256


class Outbox:
    """A bounded queue with one consumer. `dropped` counts notifications that found no room."""

    def __init__(self) -> None:
        self.dropped = 0
        self.overflowed = asyncio.Event()  # the client missed arbitration: end the stream
        self._waiting: deque[tuple[p4r.StreamMessageResponse, int]] = deque()
        self._bytes = 0
        self._arbitration = 0
        self._filled = asyncio.Event()
        self._empty = asyncio.Event()
        self._empty.set()

    def put(self, message: p4r.StreamMessageResponse) -> None:
        """Queue a message, or drop it."""
        size = message.ByteSize()
        if message.HasField("arbitration"):
            self._arbitration += 1
            if self._arbitration > MAX_ARBITRATION:
                self.overflowed.set()
        elif self._bytes + size > MAX_BYTES or len(self._waiting) >= MAX_MESSAGES:
            self.dropped += 1
            return
        if self.overflowed.is_set():
            return
        self._waiting.append((message, size))
        self._bytes += size
        self._filled.set()
        self._empty.clear()

    async def send_all(self, write: Callable[[p4r.StreamMessageResponse], Awaitable[None]]) -> None:
        """Give messages to `write`, one at a time, until cancelled. A message counts until it is written."""
        while True:
            await self._filled.wait()
            while self._waiting:
                message, size = self._waiting[0]
                try:
                    await write(message)
                finally:
                    self._waiting.popleft()
                    self._bytes -= size
                    self._arbitration -= message.HasField("arbitration")
            self._filled.clear()
            self._empty.set()

    async def drain(self, seconds: float) -> bool:
        """Wait until all is sent; False if that takes too long."""
        try:
            await asyncio.wait_for(self._empty.wait(), seconds)
        except TimeoutError:
            return False
        return True

"""A host's control socket: accepts clients, splits lines, sends replies with their file descriptors."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import socket
from collections.abc import Callable
from pathlib import Path
from typing import Any

from rdma.protocol import LINE_MAX, RequestError, decode, encode
from rdma.session import Reply, Session

log = logging.getLogger("rdma")


class HostServer:
    """Serves one Unix socket; each client gets a session of its own from `new_session`."""

    CLIENTS_MAX = 1024

    def __init__(self, path: Path, new_session: Callable[[], Session]) -> None:
        self._path = path
        self._new_session = new_session
        self._tasks: set[asyncio.Task[None]] = set()
        self._socket: socket.socket | None = None

    def listen(self) -> None:
        with contextlib.suppress(FileNotFoundError):
            self._path.unlink()
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._socket.setblocking(False)
        before = os.umask(0o177)  # the socket is its user's own
        try:
            self._socket.bind(str(self._path))
        finally:
            os.umask(before)
        self._socket.listen(64)
        self._keep(self._accept(self._socket))

    def _keep(self, work: Any) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _accept(self, listener: socket.socket) -> None:
        while True:
            try:
                client, _ = await asyncio.get_running_loop().sock_accept(listener)
            except OSError as error:  # out of file descriptors: later there may be some again
                log.warning("cannot accept a client: %s", error)
                await asyncio.sleep(0.1)
                continue
            client.setblocking(False)
            if len(self._tasks) > self.CLIENTS_MAX:
                client.close()
            else:
                self._keep(self._serve(client))

    async def _serve(self, client: socket.socket) -> None:
        session = self._new_session()
        try:
            with client:
                await self._requests(client, session)
        except (ConnectionError, BlockingIOError):
            pass  # the client left, or does not read what it asks for
        finally:
            session.close()

    async def _requests(self, client: socket.socket, session: Session) -> None:
        loop = asyncio.get_running_loop()
        pending = b""
        while chunk := await loop.sock_recv(client, LINE_MAX):
            pending += chunk
            *lines, pending = pending.split(b"\n")
            for line in lines:
                await self._answer(client, *_respond(session, line))
            if len(pending) > LINE_MAX:
                too_long = {"id": None, "error": "TOO_LONG", "message": f"a line has at most {LINE_MAX} bytes"}
                await self._answer(client, too_long, ())
                return

    @staticmethod
    async def _answer(client: socket.socket, message: dict[str, Any], descriptors: tuple[int, ...]) -> None:
        data = encode(message)
        if descriptors:
            sent = socket.send_fds(client, [data], list(descriptors))
            data = data[sent:]
        if data:
            await asyncio.get_running_loop().sock_sendall(client, data)

    async def close(self) -> None:
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        if self._socket:
            self._socket.close()
            with contextlib.suppress(FileNotFoundError):
                self._path.unlink()


def _respond(session: Session, line: bytes) -> tuple[dict[str, Any], tuple[int, ...]]:
    number = None
    try:
        request = decode(line)
        number = request.pop("id", None)
        if not isinstance(number, int):
            number = None
            raise RequestError("BAD_VALUE", "a request's id must be an integer")
        reply = session.handle(request)
    except RequestError as error:
        return {"id": number, "error": error.name, "message": str(error)}, ()
    except Exception:  # a fault of ours must not take the other clients along
        log.exception("request failed: %r", line[:200])
        reply = Reply({"error": "INTERNAL", "message": "the agent failed; its log says more"})
        return {"id": number, **reply.members}, ()
    return {"id": number, "ok": True, **reply.members}, reply.descriptors

"""The control socket of a running fabric: link statistics, flows, captures, failures, queues, stop.

A Unix socket (mode 0600) that takes one JSON object per line, `{"verb": "links", ...}`, and answers each with one:
`{"ok": ...}` or `{"error": "..."}`. Switch tables are not reached here; that is P4Runtime's job.
"""

import asyncio
import errno
import inspect
import json
import logging
import os
import socket
from collections.abc import Callable, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any

_log = logging.getLogger(__name__)

MAX_LINE = 64 << 10  # bytes of one request
_MAX_CLIENTS = 32


class ControlError(Exception):
    """The fabric refused a request, or cannot be reached."""


Handler = Callable[..., Any]


class ControlServer:
    """Serves the verbs in `handlers`; a handler's keyword arguments are the request's other members.

    A handler raises ControlError (or ValueError, IndexError, OSError) for a request it cannot serve.
    """

    def __init__(self, path: Path, handlers: Mapping[str, Handler]) -> None:
        self.path = path
        self._handlers = dict(handlers)
        self._server: asyncio.Server | None = None
        self._clients: set[asyncio.Task[None]] = set()

    async def start(self) -> None:
        """Listen. OSError if another fabric listens there; a socket nobody listens on is replaced."""
        _remove_stale(self.path)
        old_mask = os.umask(0o177)  # 0600 from the first moment
        try:
            self._server = await asyncio.start_unix_server(self._accept, self.path, limit=MAX_LINE)
        finally:
            os.umask(old_mask)

    async def stop(self) -> None:
        """Stop listening, end all connections, remove the socket."""
        if self._server is None:
            return
        self._server.close()
        for client in self._clients:
            client.cancel()
        await asyncio.gather(*self._clients, return_exceptions=True)
        self.path.unlink(missing_ok=True)
        self._server = None

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        try:
            if len(self._clients) >= _MAX_CLIENTS:
                writer.write(_line({"error": f"{_MAX_CLIENTS} clients are connected already"}))
                await writer.drain()
                return
            self._clients.add(task)
            await self._serve(reader, writer)
        except (ConnectionError, asyncio.CancelledError):
            pass  # the client went away, or the fabric stops
        finally:
            self._clients.discard(task)
            writer.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while True:
            try:
                line = await reader.readline()
            except ValueError:
                writer.write(_line({"error": f"the request is longer than {MAX_LINE} bytes"}))
                await writer.drain()
                return  # what follows is the rest of that line
            if not line:
                return
            if line.strip():
                writer.write(_line(await self._answer(line)))
                await writer.drain()

    async def _answer(self, line: bytes) -> dict[str, Any]:
        try:
            request = json.loads(line)
        except (ValueError, RecursionError) as error:
            return {"error": f"not JSON: {error}"}
        if not isinstance(request, dict) or not isinstance(request.get("verb"), str):
            return {"error": 'a request is an object with a "verb"'}
        verb = request.pop("verb")
        handler = self._handlers.get(verb)
        if handler is None:
            return {"error": f"no verb '{verb[:80]}'; known are {', '.join(sorted(self._handlers))}"}
        try:
            inspect.signature(handler).bind(**request)
        except TypeError as error:
            return {"error": f"{verb}: {error}"}
        try:
            result = handler(**request)
            if inspect.isawaitable(result):
                result = await result
        except (ControlError, ValueError, TypeError, OverflowError, IndexError) as error:
            return {"error": f"{verb}: {error}"}
        except OSError as error:
            text = error.strerror or str(error)
            return {"error": f"{verb}: {text}" + (f": {error.filename}" if error.filename else "")}
        except Exception:
            _log.exception("control verb %s failed", verb)
            return {"error": f"{verb}: internal error; the log says more"}
        return {"ok": result}


class Client:
    """The other end, blocking. Use it as a context manager, or call `close`.

    with Client("/run/plait/fabric.sock") as fabric:
        fabric.link_set("s1:1", up=False)
        for link in fabric.links():
            print(link["name"], link["a_to_b"]["packets"])
    """

    def __init__(self, path: str | os.PathLike[str], timeout: float = 10.0) -> None:
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._socket.settimeout(timeout)
        try:
            self._socket.connect(os.fspath(path))
        except OSError as error:
            self._socket.close()
            raise ControlError(f"no fabric answers at {os.fspath(path)}: {error.strerror or error}") from None
        self._file = self._socket.makefile("rb")

    def __enter__(self) -> "Client":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close the connection."""
        self._file.close()
        self._socket.close()

    def request(self, verb: str, **arguments: Any) -> Any:
        """One request; the answer's `ok`. ControlError carries the fabric's sentence."""
        try:
            self._socket.sendall(_line({"verb": verb, **arguments}))
            line = self._file.readline()
        except OSError as error:
            raise ControlError(f"{verb}: {error.strerror or error}") from None
        if not line:
            raise ControlError(f"{verb}: the fabric closed the connection")
        answer = json.loads(line)
        if "error" in answer:
            raise ControlError(answer["error"])
        return answer["ok"]

    def status(self) -> dict[str, Any]:
        """Process id, uptime, and per switch its name, device id, gRPC address, program and whether it has a config."""
        return dict(self.request("status"))

    def links(self) -> list[dict[str, Any]]:
        """Per link: name, ends, up, and the statistics of both directions (`a_to_b`, `b_to_a`)."""
        return list(self.request("links"))

    def ports(self) -> list[dict[str, Any]]:
        """Per port that is in use: switch, port and its statistics."""
        return list(self.request("ports"))

    def flows(self, link: str | None = None) -> list[dict[str, Any]]:
        """Packets and bytes per 5-tuple, link and direction, of links that record flows."""
        return list(self.request("flows", link=link))

    def record_flows(self, link: str | None = None) -> None:
        """Start counting flows on a link, or on all."""
        self.request("record_flows", link=link)

    def capture_start(self, link: str, path: str | os.PathLike[str]) -> None:
        """Write both directions of a link into a pcap file with nanosecond times."""
        self.request("capture_start", link=link, path=os.path.abspath(os.fspath(path)))

    def capture_stop(self, link: str) -> None:
        """End a capture and flush its file."""
        self.request("capture_stop", link=link)

    def link_set(
        self,
        link: str,
        *,
        up: bool | None = None,
        rate_bps: int | None = None,
        delay_ns: int | None = None,
        loss: float | None = None,
    ) -> None:
        """Change a link; what is None stays as it is."""
        self.request("link_set", link=link, up=up, rate_bps=rate_bps, delay_ns=delay_ns, loss=loss)

    def switch_set(self, switch: str, *, up: bool) -> None:
        """Take a switch's power, with its program and entries, or give it back."""
        self.request("switch_set", switch=switch, up=up)

    def queue_set(
        self,
        switch: str,
        port: int,
        *,
        rate_bps: int | None = None,
        depth_packets: int | None = None,
        depth_bytes: int | None = None,
        queue: int | None = None,
        rate_pps: int | None = None,
        reserved_bytes: int | None = None,
        alpha: str | None = None,
    ) -> None:
        """Change the queues of a port, or one of them, as engine.Switch.set_queue does."""
        self.request(
            "queue_set",
            switch=switch,
            port=port,
            rate_bps=rate_bps,
            depth_packets=depth_packets,
            depth_bytes=depth_bytes,
            queue=queue,
            rate_pps=rate_pps,
            reserved_bytes=reserved_bytes,
            alpha=alpha,
        )

    def queues(self, switch: str, port: int | None = None, queue: int | None = None) -> list[dict[str, Any]]:
        """Per queue of a switch, or of a port, or the one: port, priority, limits, what waits, drops by reason."""
        return list(self.request("queues", switch=switch, port=port, queue=queue))

    def queue_hold(self, switch: str, port: int, *, hold: bool, queue: int | None = None) -> None:
        """Stop or go on serving a queue, or all of a port's."""
        self.request("queue_hold", switch=switch, port=port, hold=hold, queue=queue)

    def buffer(self, switch: str) -> dict[str, Any]:
        """A switch's shared `buffer` as fabric.json gives it, or None, and how full it is (`state`)."""
        return dict(self.request("buffer", switch=switch))

    def buffer_set(self, switch: str, buffer: Mapping[str, Any] | None) -> None:
        """Give a switch a shared buffer, as in fabric.json, or take it away."""
        self.request("buffer_set", switch=switch, buffer=buffer)

    def stop(self) -> None:
        """Stop the fabric. Returns when it has accepted; its process ends shortly after."""
        self.request("stop")


def _line(message: Mapping[str, Any]) -> bytes:
    return json.dumps(message, separators=(",", ":")).encode() + b"\n"


def _remove_stale(path: Path) -> None:
    """Remove a socket that a killed process left; OSError if a live one listens, or if it is no socket."""
    if not path.exists():
        return
    if not path.is_socket():
        raise OSError(errno.EEXIST, "exists and is no socket", str(path))
    probe = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        probe.settimeout(1.0)
        probe.connect(str(path))
    except OSError:
        path.unlink(missing_ok=True)
    else:
        raise OSError(errno.EADDRINUSE, "another fabric listens there", str(path))
    finally:
        probe.close()

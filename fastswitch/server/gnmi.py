"""gNMI 0.7: which ports there are, and which are up, as controllers learn it of switches that P4Runtime programs.

P4Runtime says nothing of ports; next to it gNMI with OpenConfig's interfaces model does (as in Stratum):

    interfaces/interface[name=…]/state/ifindex        the port's number in P4Runtime
    interfaces/interface[name=…]/state/oper-status    UP or DOWN

Get, and Subscribe with ONCE or ON_CHANGE; a missing name, or "*", is every interface, and a path that ends early is all
below it. A server of several switches needs to be told which one is meant: `prefix.target` is the switch's name (gNMI
specification, section 2.2.2.1).
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from typing import Any

from finsy.proto import gnmi, gnmi_grpc, rpc_code

from fastswitch.server.errors import P4RuntimeError, invalid_argument, not_found, unimplemented

VERSION = "0.7.0"

_LEAVES = ("ifindex", "oper-status")
_PATH = ("interfaces", "interface", "state")
_MODEL = gnmi.ModelData(name="openconfig-interfaces", organization="OpenConfig working group", version="2.5.0")

_Context = Any  # grpc.aio.ServicerContext is generic in the stubs only


class Interfaces:
    """The ports of a switch: `names` by P4Runtime's numbers, and `up` tells whether one is."""

    def __init__(self, switch: str, names: Mapping[int, str], up: Callable[[int], bool]) -> None:
        self.switch = switch
        self._names = dict(names)
        self._up = up
        self._subscribers: list[_Subscriber] = []
        self.off = False

    def changed(self, port: int) -> None:
        """A port went up or down."""
        for subscriber in self._subscribers:
            subscriber.note(port)

    def switch_off(self, off: bool) -> None:
        """As if the switch had no power: subscriptions end, and requests are UNAVAILABLE until it is on again."""
        self.off = off
        for subscriber in self._subscribers if off else ():
            subscriber.end()

    def updates(
        self, leaves: Sequence[tuple[str | None, str]], ports: Sequence[int] | None = None
    ) -> list[gnmi.Update]:
        """Values of (name or None for all, leaf), of these ports or of all."""
        found = []
        for port in sorted(self._names if ports is None else ports):
            name = self._names.get(port)
            for wanted, leaf in leaves:
                if name is not None and wanted in (None, name):
                    value = (
                        {"uint_val": port} if leaf == "ifindex" else {"string_val": "UP" if self._up(port) else "DOWN"}
                    )
                    found.append(gnmi.Update(path=_path(name, leaf), val=gnmi.TypedValue(**value)))
        return found

    def subscribe(self) -> _Subscriber:
        subscriber = _Subscriber()
        self._subscribers.append(subscriber)
        return subscriber

    def unsubscribe(self, subscriber: _Subscriber) -> None:
        self._subscribers.remove(subscriber)

    def check_name(self, name: str) -> None:
        if name not in self._names.values():
            not_found(f"switch {self.switch} has no interface {name!r}; it has {', '.join(self._names.values())}")


class _Subscriber:
    """Ports that changed and were not told yet: at most all of them, however slowly the client reads."""

    def __init__(self) -> None:
        self._ports: set[int] = set()
        self._ended = False
        self._filled = asyncio.Event()

    def note(self, port: int) -> None:
        self._ports.add(port)
        self._filled.set()

    def end(self) -> None:
        self._ended = True
        self._filled.set()

    async def changes(self) -> list[int]:
        """Waits for some; none when the switch was switched off."""
        await self._filled.wait()
        self._filled.clear()
        ports, self._ports = self._ports, set()
        return [] if self._ended else sorted(ports)


class GnmiService(gnmi_grpc.gNMIServicer):
    """gNMI for the switches of a server.  `abort` ends a call with the status of an exception."""

    def __init__(self, interfaces: Sequence[Interfaces], abort: Callable[[_Context, Exception], Any]) -> None:
        self._interfaces = {each.switch: each for each in interfaces}
        self._abort = abort

    async def Capabilities(self, request: gnmi.CapabilityRequest, context: _Context) -> gnmi.CapabilityResponse:
        """What is supported."""
        return gnmi.CapabilityResponse(
            supported_models=[_MODEL], supported_encodings=[gnmi.Encoding.PROTO], gNMI_version=VERSION
        )

    async def Get(self, request: gnmi.GetRequest, context: _Context) -> gnmi.GetResponse:
        """Values, once."""
        try:
            chosen = self._chosen(request.prefix)
            leaves = [leaf for path in request.path for leaf in _leaves(chosen, request.prefix, path)]
            return gnmi.GetResponse(notification=[_notification(request.prefix, chosen.updates(leaves))])
        except P4RuntimeError as error:
            return await self._abort(context, error)  # type: ignore[no-any-return]

    async def Set(self, request: gnmi.SetRequest, context: _Context) -> gnmi.SetResponse:
        """Nothing can be set."""
        return await self._abort(context, P4RuntimeError(rpc_code.UNIMPLEMENTED, "nothing can be set over gNMI"))  # type: ignore[no-any-return]

    async def Subscribe(  # type: ignore[override]
        self, requests: AsyncIterator[gnmi.SubscribeRequest], context: _Context
    ) -> None:
        """Values, then a sync_response, then values as they change."""
        try:
            await self._subscribe(requests, context)
        except Exception as error:
            await self._abort(context, error)

    async def _subscribe(self, requests: AsyncIterator[gnmi.SubscribeRequest], context: _Context) -> None:
        request = await anext(aiter(requests), None)
        if request is None or not request.HasField("subscribe"):
            invalid_argument("the first message of a subscription must be a SubscriptionList")
        wanted = request.subscribe
        chosen = self._chosen(wanted.prefix)
        leaves = list(_subscribed(chosen, wanted))
        subscriber = chosen.subscribe()
        try:
            await context.write(_response(wanted.prefix, chosen.updates(leaves)))
            await context.write(gnmi.SubscribeResponse(sync_response=True))
            while wanted.mode == gnmi.SubscriptionList.STREAM:
                ports = await subscriber.changes()
                if not ports:
                    _off(chosen)
                await context.write(_response(wanted.prefix, chosen.updates(leaves, ports)))
        finally:
            chosen.unsubscribe(subscriber)

    def _chosen(self, prefix: gnmi.Path) -> Interfaces:
        known = ", ".join(list(self._interfaces)[:10]) + (", …" if len(self._interfaces) > 10 else "")
        if not prefix.target:
            if len(self._interfaces) != 1:
                # Not INVALID_ARGUMENT: clients that know P4Runtime only try gNMI, and go on without where it is not.
                unimplemented(f"this server has several switches: prefix.target must name one of {known}")
            (chosen,) = self._interfaces.values()
        elif (found := self._interfaces.get(prefix.target)) is None:
            not_found(f"no switch is named {prefix.target[:80]!r}; this server has {known}")
        else:
            chosen = found
        if chosen.off:
            _off(chosen)
        return chosen


def _off(chosen: Interfaces) -> None:
    raise P4RuntimeError(rpc_code.UNAVAILABLE, f"switch {chosen.switch} is switched off")


def _subscribed(chosen: Interfaces, wanted: gnmi.SubscriptionList) -> Iterator[tuple[str | None, str]]:
    if wanted.mode == gnmi.SubscriptionList.POLL:
        unimplemented("subscriptions of mode POLL: ONCE and STREAM are there")
    for subscription in wanted.subscription:
        target_defined, on_change = gnmi.SubscriptionMode.TARGET_DEFINED, gnmi.SubscriptionMode.ON_CHANGE
        if wanted.mode == gnmi.SubscriptionList.STREAM and subscription.mode not in (target_defined, on_change):
            unimplemented("streams of samples: ON_CHANGE is there")
        yield from _leaves(chosen, wanted.prefix, subscription.path)


def _leaves(chosen: Interfaces, prefix: gnmi.Path, path: gnmi.Path) -> Iterator[tuple[str | None, str]]:
    """The (interface or None for all, leaf) pairs that a path means; NOT_FOUND for what is not there."""
    elements = [*prefix.elem, *path.elem]
    names = [element.name for element in elements]
    text = "/".join(names)[:200]
    above, below = names[: len(_PATH)], names[len(_PATH) :]
    if tuple(above) != _PATH[: len(above)] or len(below) > 1 or (below and below[0] not in _LEAVES):
        not_found(f"no path {text!r}; there are interfaces/interface[name=…]/state/{' and '.join(_LEAVES)}")
    name = elements[1].key.get("name", "*") if len(elements) > 1 else "*"
    if name != "*":
        chosen.check_name(name)
    for leaf in below or _LEAVES:
        yield (None if name == "*" else name), leaf


def _path(name: str, leaf: str) -> gnmi.Path:
    interfaces, interface, state = _PATH
    return gnmi.Path(
        elem=[
            gnmi.PathElem(name=interfaces),
            gnmi.PathElem(name=interface, key={"name": name}),
            gnmi.PathElem(name=state),
            gnmi.PathElem(name=leaf),
        ]
    )


def _notification(prefix: gnmi.Path, updates: Sequence[gnmi.Update]) -> gnmi.Notification:
    # The target comes back, the elements of the prefix do not: paths of updates are whole.
    return gnmi.Notification(timestamp=time.time_ns(), prefix=gnmi.Path(target=prefix.target), update=updates)


def _response(prefix: gnmi.Path, updates: Sequence[gnmi.Update]) -> gnmi.SubscribeResponse:
    return gnmi.SubscribeResponse(update=_notification(prefix, updates))

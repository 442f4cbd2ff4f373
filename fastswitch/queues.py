"""Queues and shared buffers of a running fabric: what fabric.json says of them, and the control socket's verbs.

docs/traffic-manager.md says what each value means.
"""

from collections.abc import Callable, Mapping
from dataclasses import asdict
from fractions import Fraction
from typing import Any

import engine
from engine.buffer import fraction
from fastswitch.config import SwitchSpec, parse_buffer
from fastswitch.control import ControlError

_UNLIMITED = (1 << 64) - 1


def set_up(switch: engine.Switch, spec: SwitchSpec) -> None:
    """Gives a switch whose ports exist the buffer and queues of its spec. ValueError if the buffer is too small."""
    if spec.buffer is not None:
        switch.set_buffer(spec.buffer)
    for queue in spec.queues:
        given = {name: value for name, value in asdict(queue).items() if name not in ("port", "priority")}
        switch.set_queue(queue.port, queue=queue.priority, **given)


class QueueVerbs:
    """Verbs of the control socket. `queue` is a priority; None means all of the port's."""

    def __init__(self, switches: Mapping[str, engine.Switch]) -> None:
        self._switches = switches

    def verbs(self) -> dict[str, Callable[..., Any]]:
        """By name."""
        return {
            "queues": self.queues,
            "queue_set": self.queue_set,
            "queue_hold": self.queue_hold,
            "buffer": self.buffer,
            "buffer_set": self.buffer_set,
        }

    def queues(self, switch: str, port: int | None = None, queue: int | None = None) -> list[dict[str, Any]]:
        """Per queue: port, priority, the port's rate, and engine.Switch.queue_state with None for unlimited depths."""
        chosen = self._switch(switch)
        ports = chosen.ports() if port is None else [_whole("port", port)]
        priorities = range(chosen.priority_queues) if queue is None else [_whole("queue", queue)]
        rows = []
        for number in ports:
            stats = chosen.port_stats(number)
            for priority in priorities:
                state: dict[str, Any] = dict(chosen.queue_state(number, priority))
                for name in ("depth_packets", "depth_bytes"):
                    state[name] = None if state[name] >= _UNLIMITED >> 1 else state[name]
                alpha = state.pop("alpha_numerator"), state.pop("alpha_denominator")
                state["alpha"] = str(Fraction(*alpha)) if alpha[1] else None
                for name in ("held", "paused", "xoff"):
                    state[name] = bool(state[name])
                rows.append({"port": number, "priority": priority, "port_rate_bps": stats["rate_bps"], **state})
        return rows

    def queue_set(
        self,
        switch: str,
        port: int,
        rate_bps: int | None = None,
        depth_packets: int | None = None,
        depth_bytes: int | None = None,
        queue: int | None = None,
        rate_pps: int | None = None,
        reserved_bytes: int | None = None,
        alpha: str | None = None,
    ) -> None:
        """As engine.Switch.set_queue."""
        chosen = self._switch(switch)
        given = {
            "rate_bps": rate_bps,
            "rate_pps": rate_pps,
            "depth_packets": depth_packets,
            "depth_bytes": depth_bytes,
            "reserved_bytes": reserved_bytes,
            "queue": queue,
        }
        changes: dict[str, Any] = {name: value for name, value in given.items() if value is not None}
        for name, value in {"port": port, **changes}.items():
            _whole(name, value)
        if alpha is not None:
            changes["alpha"] = fraction("alpha", alpha)
        chosen.set_queue(port, **changes)

    def queue_hold(self, switch: str, port: int, hold: bool, queue: int | None = None) -> None:
        """As engine.Switch.hold_queue."""
        chosen = self._switch(switch)
        if not isinstance(hold, bool):
            raise ControlError("hold must be true or false")
        chosen.hold_queue(_whole("port", port), None if queue is None else _whole("queue", queue), hold=hold)

    def buffer(self, switch: str) -> dict[str, Any]:
        """The shared buffer as fabric.json gives it, or None, and how full it is."""
        chosen = self._switch(switch)
        return {"buffer": as_document(chosen.buffer), "state": chosen.buffer_state()}

    def buffer_set(self, switch: str, buffer: dict[str, Any] | None) -> None:
        """As engine.Switch.set_buffer; the buffer as in fabric.json."""
        self._switch(switch).set_buffer(None if buffer is None else parse_buffer(buffer))

    def _switch(self, name: str) -> engine.Switch:
        if not isinstance(name, str) or name not in self._switches:
            raise ControlError(f"no switch is named {name!r}; known are {', '.join(self._switches)}")
        return self._switches[name]


def as_document(buffer: engine.Buffer | None) -> dict[str, Any] | None:
    """The JSON object that parse_buffer reads."""
    if buffer is None:
        return None
    document = asdict(buffer)
    document["alpha"] = str(buffer.alpha)
    if buffer.pfc is None:
        del document["pfc"]
    else:
        document["pfc"] = {name: value for name, value in asdict(buffer.pfc).items() if value is not None}
        document["pfc"]["priorities"] = list(buffer.pfc.priorities)
        if buffer.pfc.xoff_alpha is not None:
            document["pfc"]["xoff_alpha"] = str(buffer.pfc.xoff_alpha)
    return document


def _whole(name: str, value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        raise ControlError(f"{name} must be a whole number that is not negative")
    return value

"""The targets by name."""

from __future__ import annotations

from fuzz.packets import Packets
from fuzz.programs import Programs
from fuzz.target import Target

TARGETS: dict[str, type[Target]] = {target.name: target for target in (Packets, Programs)}

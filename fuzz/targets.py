"""The targets by name."""

from __future__ import annotations

from fuzz.documents import Documents
from fuzz.packets import Packets
from fuzz.programs import Programs
from fuzz.server import Server
from fuzz.tables import Tables
from fuzz.target import Target

TARGETS: dict[str, type[Target]] = {target.name: target for target in (Packets, Programs, Documents, Tables, Server)}

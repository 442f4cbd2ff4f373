"""The targets by name."""

from __future__ import annotations

from fuzz.control import Control
from fuzz.documents import Documents
from fuzz.files import Files
from fuzz.packets import Packets
from fuzz.programs import Programs
from fuzz.server import Server
from fuzz.source import Source
from fuzz.switch import Switches
from fuzz.tables import Tables
from fuzz.target import Target

TARGETS: dict[str, type[Target]] = {
    target.name: target for target in (Packets, Programs, Documents, Tables, Switches, Server, Control, Source, Files)
}

"""The targets by name.  Each is imported when it is used: some need large libraries."""

from __future__ import annotations

import importlib

from fuzz.target import Target

TARGETS = {
    "packets": "fuzz.packets:Packets",
    "programs": "fuzz.programs:Programs",
    "json": "fuzz.documents:Documents",
    "tables": "fuzz.tables:Tables",
    "switch": "fuzz.switch:Switches",
    "server": "fuzz.server:Server",
    "ports": "fuzz.ports:Ports",
    "control": "fuzz.control:Control",
    "p4": "fuzz.source:Source",
    "files": "fuzz.files:Files",
    "nic": "fuzz.nic:Nic",
}


def find(name: str) -> type[Target]:
    """The class of a target, which is named as above or as MODULE:CLASS."""
    module, _, member = TARGETS.get(name, name).partition(":")
    return getattr(importlib.import_module(module), member)  # type: ignore[no-any-return]

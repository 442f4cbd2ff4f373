"""The engine: a discrete-event core over a real or virtual clock, switches that run compiled programs, and links.

Names are resolved on first use, so that `engine.build` can be imported while there is no compiled core yet.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from engine.buffer import Buffer, Pfc
    from engine.describe import Action, Array, Key, Learn, Match, Param, Pipeline, Table, TableKind
    from engine.errors import EntryExists, InUse, TableFull
    from engine.fabric import Fabric
    from engine.link import Link
    from engine.switch import Digest, Drained, Log, PacketIn, Sent, Switch

__all__ = [
    "Action",
    "Array",
    "Buffer",
    "Digest",
    "Drained",
    "EntryExists",
    "Fabric",
    "InUse",
    "Key",
    "Learn",
    "Link",
    "Log",
    "Match",
    "PacketIn",
    "Param",
    "Pfc",
    "Pipeline",
    "Sent",
    "Switch",
    "Table",
    "TableFull",
    "TableKind",
]

_HOMES = {
    "buffer": ("Buffer", "Pfc"),
    "describe": ("Action", "Array", "Key", "Learn", "Match", "Param", "Pipeline", "Table", "TableKind"),
    "errors": ("EntryExists", "InUse", "TableFull"),
    "fabric": ("Fabric",),
    "link": ("Link",),
    "switch": ("Digest", "Drained", "Log", "PacketIn", "Sent", "Switch"),
}
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names}
assert sorted(_HOME_OF) == __all__


def __getattr__(name: str) -> Any:
    home = _HOME_OF.get(name)
    if home is None:
        raise AttributeError(f"module 'engine' has no attribute {name!r}")
    value = getattr(importlib.import_module(f"engine.{home}"), name)
    globals()[name] = value
    return value

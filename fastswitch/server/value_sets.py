"""Parser value sets: MODIFY replaces all members.

In the engine a value set is an exact table behind the program's own tables, whose entries all name the action
behind the program's own actions (fastswitch.codegen.descriptors).
"""

from collections.abc import Iterator

from finsy.proto import p4r

from fastswitch.codegen import model
from fastswitch.server.engine_api import EngineSwitch, Target
from fastswitch.server.errors import already_exists, resource_exhausted, unimplemented
from fastswitch.server.schema import ValueSet


class ValueSetState:
    """Members of one value set of one switch."""

    def __init__(self, schema: ValueSet, engine: EngineSwitch, code: model.Program) -> None:
        self.schema = schema
        self._engine = engine
        # One that no state uses has no key in the engine, and nobody who could miss its members.
        used = [v.index for v in code.value_sets if v.name == schema.name and v.key_widths is not None]
        self._table = len(code.tables) + used[0] if used else None
        self._member_action = len(code.actions)
        self._handles: dict[bytes, int] = {}
        self._message = p4r.ValueSetEntry(value_set_id=schema.id)

    def modify(self, request: p4r.ValueSetEntry) -> None:
        """Replace the members. Those that stay are never missing, not even for one packet."""
        schema = self.schema
        if len(request.members) > schema.size:
            resource_exhausted(f"value set '{schema.name}' takes {schema.size} members, not {len(request.members)}")
        wanted: dict[bytes, None] = {}
        for member in request.members:
            value, mask, prefix_len, _ = schema.key.encode(member.match)
            if mask is not None or prefix_len is not None:
                unimplemented(f"value set '{schema.name}': only exact members are supported")
            if value in wanted:
                already_exists(f"value set '{schema.name}': a member is given twice")
            wanted[value] = None
        if self._table is not None:
            for value in self._handles.keys() - wanted.keys():
                self._engine.entry_delete(self._table, self._handles.pop(value))
            for value in wanted.keys() - self._handles.keys():
                target: Target = ("action", self._member_action, b"")
                self._handles[value] = self._engine.entry_insert(self._table, value, None, None, None, 0, target)
        stored = p4r.ValueSetEntry()
        stored.CopyFrom(request)
        self._message = stored

    def read(self) -> Iterator[p4r.ValueSetEntry]:
        """The value set as one entity."""
        yield self._message

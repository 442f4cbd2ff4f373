"""Parser value sets: MODIFY replaces all members."""

from collections.abc import Iterator

from finsy.proto import p4r

from fastswitch.server.errors import already_exists, resource_exhausted, unimplemented
from fastswitch.server.match import Key
from fastswitch.server.schema import ValueSet


class ValueSetState:
    """Members of one value set of one switch."""

    def __init__(self, schema: ValueSet, *, in_parser: bool) -> None:
        self.schema = schema
        self._in_parser = in_parser
        self._message = p4r.ValueSetEntry(value_set_id=schema.id)

    def modify(self, request: p4r.ValueSetEntry) -> None:
        """Replace the members."""
        schema = self.schema
        if len(request.members) > schema.size:
            resource_exhausted(f"value set '{schema.name}' takes {schema.size} members, not {len(request.members)}")
        keys: dict[Key, None] = {}
        for member in request.members:
            key = schema.key.encode(member.match)
            if key in keys:
                already_exists(f"value set '{schema.name}': a member is given twice")
            keys[key] = None
        if self._in_parser:
            unimplemented(f"value set '{schema.name}': the engine's parser has no value sets yet")
        stored = p4r.ValueSetEntry()
        stored.CopyFrom(request)
        self._message = stored

    def read(self) -> Iterator[p4r.ValueSetEntry]:
        """The value set as one entity."""
        yield self._message

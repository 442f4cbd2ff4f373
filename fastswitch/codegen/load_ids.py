"""Checks of the document as a whole: ids are unique within a section, and enumerations are well formed."""

from __future__ import annotations

from .reader import Reader

MAX_ID = 2**31 - 1
# Section -> sections within each of its elements that number their own objects.
_SECTIONS: dict[str, tuple[str, ...]] = {
    "header_types": (),
    "headers": (),
    "header_stacks": (),
    "header_union_types": (),
    "header_unions": (),
    "header_union_stacks": (),
    "extern_instances": (),
    "parse_vsets": (),
    "parsers": ("parse_states",),
    "deparsers": (),
    "calculations": (),
    "counter_arrays": (),
    "meter_arrays": (),
    "register_arrays": (),
    "actions": (),
    "pipelines": ("action_profiles", "tables", "conditionals", "action_calls"),
    "checksums": (),
    "learn_lists": (),
    "field_lists": (),
}


def check_ids(root: Reader) -> None:
    """Objects without an id (old compilers left some out) are told apart by name alone."""
    for section, inner in _SECTIONS.items():
        _unique(root, section)
        for node in root.list_of(section):
            for name in inner:
                _unique(node, name)


def _unique(owner: Reader, section: str) -> None:
    seen: dict[int, Reader] = {}
    for node in owner.list_of(section):
        found = node.optional("id")
        if found is None:
            continue
        identity = found.integer(0, MAX_ID)
        if identity in seen:
            raise found.error(f"id {identity} is taken by {seen[identity].where}")
        seen[identity] = node


def check_enums(root: Reader) -> None:
    """Nothing runs by them, but a malformed one is a malformed document."""
    names: set[str] = set()
    for node in root.list_of("enums"):
        name = node["name"].text()
        if name in names:
            raise node.error(f"a second enum named {name[:80]!r}")
        names.add(name)
        entries: set[object] = set()
        for each in node.list_of("entries"):
            entry, value = each.elements(2)
            for key in (entry.text(), value.integer(-(2**63), 2**63)):
                if key in entries:
                    raise each.error(f"{str(key)[:80]!r} is in enum {name[:80]!r} already")
                entries.add(key)

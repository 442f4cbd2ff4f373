"""Loads header types, header instances, stacks, unions, aliases and error codes."""

from __future__ import annotations

from typing import Any

from .errors import ProgramError, no_such
from .model import Field, Header, HeaderType, Program, Stack, Union, UnionStack
from .reader import Reader

MAX_FIELD_BITS = 4096
MAX_HEADER_BYTES = 2048
MAX_STACK = 256
MAX_PHV_BYTES = 60_000

CORE_ERRORS = (
    "NoError",
    "PacketTooShort",
    "NoMatch",
    "StackOutOfBounds",
    "HeaderTooShort",
    "ParserTimeout",
    "ParserInvalidArgument",
)

REQUIRED_FIELDS = ("ingress_port", "packet_length", "instance_type", "egress_spec", "egress_port")


class Names:
    """Objects of one kind by name; a name that is not there raises ProgramError."""

    def __init__(self, what: str) -> None:
        self.what = what
        self._known: dict[str, Any] = {}

    def add(self, where: Reader, name: str, value: Any) -> None:
        if name in self._known:
            raise where.error(f"a second {self.what} named {name[:80]!r}")
        self._known[name] = value

    def find(self, where: Reader) -> Any:
        name = where.text()
        if name not in self._known:
            raise no_such(where.where, self.what, name, self._known)
        return self._known[name]

    def __contains__(self, name: str) -> bool:
        return name in self._known


class HeaderLoader:
    """Fills the header part of a program, and resolves names of headers for the loaders that come after it."""

    def __init__(self, root: Reader, program: Program) -> None:
        self.program = program
        self.types = Names("header type")
        self.headers = Names("header")
        self.stacks = Names("header stack")
        self.unions = Names("header union")
        self.union_stacks = Names("header union stack")
        self.lengths: dict[int, Reader] = {}  # of P4-14's variable-length header types, by index
        self._union_types: dict[str, tuple[tuple[str, str], ...]] = {}
        self._header_by_id: dict[int, Header] = {}
        self._union_by_id: dict[int, Union] = {}
        for node in root["header_types"].elements():
            self._load_type(node)
        for node in root["headers"].elements():
            self._load_header(node)
        for node in root.list_of("header_stacks"):
            self._load_stack(node)
        for node in root.list_of("header_union_types"):
            self._load_union_type(node)
        for node in root.list_of("header_unions"):
            self._load_union(node)
        for node in root.list_of("header_union_stacks"):
            self._load_union_stack(node)
        for node in root.list_of("field_aliases"):
            self._load_alias(node)
        self._check_standard_metadata(root["headers"])
        self._load_errors(root)
        if sum(8 * len(each.type.fields) + each.type.max_bytes for each in program.headers) > MAX_PHV_BYTES:
            raise ProgramError("headers", f"headers and metadata of more than {MAX_PHV_BYTES} bytes")

    def _load_type(self, node: Reader) -> None:
        name = node["name"].text()
        fields: list[Field] = []
        by_name: dict[str, int] = {}
        fixed_bits = 0
        for each in node["fields"].elements():
            fields.append(self._load_field(each))
            if fields[-1].name in by_name:
                raise each.error(f"a second field named {fields[-1].name[:80]!r}")
            by_name[fields[-1].name] = len(fields) - 1
            fixed_bits += 0 if fields[-1].varbit else fields[-1].width
        varbits = [index for index, each in enumerate(fields) if each.varbit]
        if len(varbits) > 1:
            raise node.error("more than one variable-length field in a header")
        if varbits:
            index = varbits[0]
            longest = node["max_length"].integer(1, MAX_HEADER_BYTES)
            if sum(each.width for each in fields[:index]) % 8 or fixed_bits % 8:
                raise node.error("a variable-length field that does not start at a byte boundary")
            if longest * 8 < fixed_bits:
                raise node.error("'max_length' is smaller than the fixed part of the header")
            fields[index] = Field(fields[index].name, longest * 8 - fixed_bits, varbit=True)
        made = HeaderType(len(self.program.header_types), name, tuple(fields), by_name)
        self.program.header_types.append(made)
        self.types.add(node["name"], name, made)
        if varbits and node.has("length_exp"):
            self.lengths[made.index] = node["length_exp"]

    def _load_field(self, node: Reader) -> Field:
        parts = node.elements()
        if len(parts) not in (2, 3, 4):
            raise node.error("expected [name, width], and whether it is signed, and whether it saturates")
        name = parts[0].text()
        if name == "$valid$":
            raise node.error("'$valid$' is a hidden field and cannot be declared")
        if parts[1].value == "*":
            return Field(name, 0, varbit=True)
        for flag in parts[2:]:
            if flag.value not in (0, 1):  # some versions of p4c write numbers
                raise flag.error("expected true or false")
        signed, saturating = ([bool(flag.value) for flag in parts[2:]] + [False, False])[:2]
        return Field(name, parts[1].integer(1, MAX_FIELD_BITS), signed, saturating=saturating)

    def _load_header(self, node: Reader) -> None:
        header_type: HeaderType = self.types.find(node["header_type"])
        metadata = node.flag("metadata")
        name = node["name"].text()
        if not metadata and (header_type.fixed_bits % 8 or header_type.max_bytes > MAX_HEADER_BYTES):
            raise node.error(
                f"header of type {header_type.name!r} is {header_type.fixed_bits} bits: "
                f"not whole bytes up to {MAX_HEADER_BYTES}"
            )
        made = Header(len(self.program.headers), name, header_type, metadata)
        identity = node["id"].integer(0, 2**31 - 1)
        self._header_by_id[identity] = made
        self.program.headers.append(made)
        self.headers.add(node["name"], name, made)

    def _members(self, node: Reader) -> list[Header]:
        found: list[Header] = []
        nodes = node.elements()
        if len(nodes) > MAX_STACK:
            raise node.error(f"more than {MAX_STACK} members")
        for each in nodes:
            identity = each.integer(0, 2**31 - 1)
            if identity not in self._header_by_id:
                raise each.error(f"no header with id {identity}")
            member = self._header_by_id[identity]
            if member.metadata or member.stack is not None or member.union is not None or member in found:
                raise each.error(f"header {member.name!r} cannot be a member here")
            found.append(member)
        return found

    def _load_stack(self, node: Reader) -> None:
        header_type: HeaderType = self.types.find(node["header_type"])
        members = self._members(node["header_ids"])
        if not 1 <= len(members) <= MAX_STACK:
            raise node.error(f"a stack of {len(members)} headers")
        index = len(self.program.stacks)
        for position, member in enumerate(members):
            if member.type is not header_type:
                raise node.error(f"header {member.name!r} is not of type {header_type.name!r}")
            member.stack, member.position = index, position
        name = node["name"].text()
        made = Stack(index, name, header_type, tuple(member.index for member in members))
        self.program.stacks.append(made)
        self.stacks.add(node["name"], name, made)

    def _load_union_type(self, node: Reader) -> None:
        members = []
        for each in node["headers"].elements():
            name, type_name = each.elements(2)
            members.append((name.text(), self.types.find(type_name).name))
        self._union_types[node["name"].text()] = tuple(members)

    def _union_type(self, node: Reader) -> str:
        name = node["union_type"].text()
        if name not in self._union_types:
            raise no_such(node.where, "header union type", name, self._union_types)
        return name

    def _load_union(self, node: Reader) -> None:
        type_name = self._union_type(node)
        members = self._members(node["header_ids"])
        declared = self._union_types[type_name]
        if not members or [each.type.name for each in members] != [each[1] for each in declared]:
            raise node.error(f"the headers are not those of union type {type_name!r}")
        index = len(self.program.unions)
        for position, member in enumerate(members):
            member.union, member.position = index, position
        name = node["name"].text()
        made = Union(index, name, type_name, tuple(m.index for m in members), tuple(each[0] for each in declared))
        identity = node["id"].integer(0, 2**31 - 1)
        self._union_by_id[identity] = made
        self.program.unions.append(made)
        self.unions.add(node["name"], name, made)

    def _load_union_stack(self, node: Reader) -> None:
        type_name = self._union_type(node)
        index = len(self.program.union_stacks)
        found: list[Union] = []
        for each in node["header_union_ids"].elements():
            identity = each.integer(0, 2**31 - 1)
            member = self._union_by_id.get(identity)
            if member is None or member.type != type_name or member.stack is not None:
                raise each.error(f"no free header union of type {type_name!r} with id {identity}")
            member.stack, member.position = index, len(found)
            found.append(member)
        if not 1 <= len(found) <= MAX_STACK:
            raise node.error(f"a stack of {len(found)} unions")
        name = node["name"].text()
        made = UnionStack(index, name, type_name, tuple(each.index for each in found))
        self.program.union_stacks.append(made)
        self.union_stacks.add(node["name"], name, made)

    def _load_alias(self, node: Reader) -> None:
        alias, target = node.elements(2)
        header_name, field_name = target.elements(2)
        header: Header = self.headers.find(header_name)
        if field_name.text() not in header.type.by_name:
            raise no_such(field_name.where, f"field of {header.name!r}", field_name.text(), header.type.by_name)
        self.program.aliases[(header.name, field_name.text())] = alias.text()

    def _check_standard_metadata(self, where: Reader) -> None:
        """What simple_switch requires of a program; it is also what tells v1model from other architectures."""
        known = {f"{header.name}.{field.name}" for header in self.program.headers for field in header.type.fields}
        known |= set(self.program.aliases.values())
        for name in REQUIRED_FIELDS:
            if f"standard_metadata.{name}" not in known:
                raise where.error(f"v1model requires field standard_metadata.{name}, which is not declared")

    def _load_errors(self, root: Reader) -> None:
        codes = self.program.errors
        taken: set[int] = set()
        for node in root.list_of("errors"):
            name, code = node.elements(2)
            if name.text() in codes or code.integer(0, 2**31 - 2) in taken:
                raise node.error("an error name or code that was declared before")
            codes[name.text()] = code.value
            taken.add(code.value)
        for core in CORE_ERRORS:
            if core not in codes:
                codes[core] = max(codes.values(), default=-1) + 1  # as BMv2 numbers those that a compiler left out

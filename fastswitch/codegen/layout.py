"""Where every field lives: in the PHV (generated struct) or in the packet's standard metadata.

Fields of up to 64 bits are the smallest unsigned integer that holds them, up to 128 bits `plait_u128`, wider ones
64-bit limbs, least significant first; varbits are a length and bytes.  A stored field never has bits above its width.
Every array of headers has two elements more than the program declared: one that always reads as zero and one that
takes the writes that miss the array (see plait_readable, plait_writable).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from . import model
from .emitter import Emitter, identifier
from .model import Field, FieldUse, Header, HeaderExpr, HeaderRef, HeaderType, Program, StackAt, StackLast, UnionMember

STD_BITS = {
    "ingress_port": 32,
    "egress_spec": 32,
    "egress_port": 32,
    "instance_type": 32,
    "packet_length": 32,
    "enq_timestamp": 32,
    "enq_qdepth": 32,
    "deq_timedelta": 32,
    "deq_qdepth": 32,
    "mcast_grp": 32,
    "egress_rid": 32,
    "checksum_error": 32,
    "parser_error": 32,
    "priority": 32,
    "ingress_global_timestamp": 64,
    "egress_global_timestamp": 64,
}
# Names under which BMv2 knows a field of standard metadata; p4c writes them as aliases, older compilers as headers.
_KNOWN_HEADERS = ("standard_metadata", "intrinsic_metadata", "queueing_metadata")

IndexText = Callable[[model.Data], str]


@dataclass(frozen=True, slots=True)
class Place:
    """A C lvalue: `bits` of storage (8 to 128), or limbs (`limbs` > 0)."""

    path: str
    bits: int
    limbs: int = 0
    shared: bool = False  # written by the engine as well, so possibly wider than the field


def storage_bits(width: int) -> int:
    return next(bits for bits in (8, 16, 32, 64, 128) if width <= bits)


class Layout:
    def __init__(self, program: Program) -> None:
        self.program = program
        self.index_text: IndexText | None = None  # set by Expressions: C text of an index
        self._std: dict[tuple[int, int], str] = {}
        for header in program.headers:
            for index, each in enumerate(header.type.fields):
                name = program.aliases.get((header.name, each.name), f"{header.name}.{each.name}")
                owner, _, std = name.rpartition(".")
                if header.metadata and owner in _KNOWN_HEADERS and std in STD_BITS and each.width <= STD_BITS[std]:
                    self._std[(header.index, index)] = std

    # -- names

    @staticmethod
    def type_name(kind: HeaderType) -> str:
        return "struct " + identifier("ht", kind.index, kind.name)

    @staticmethod
    def field_name(kind: HeaderType, index: int) -> str:
        return identifier("f", index, kind.fields[index].name)

    def header(self, header: Header) -> str:
        """C lvalue of a header instance."""
        if header.union is not None:
            return f"{self.union(self.program.unions[header.union])}.{identifier('m', header.position, '')}"
        if header.stack is not None:
            stack = self.program.stacks[header.stack]
            return f"phv->{self.stack_name(stack)}[{header.position}]"
        return f"phv->{identifier('h', header.index, header.name)}"

    def union(self, union: model.Union) -> str:
        if union.stack is not None:
            return f"phv->{self.stack_name(self.program.union_stacks[union.stack])}[{union.position}]"
        return f"phv->{identifier('u', union.index, union.name)}"

    @staticmethod
    def stack_name(stack: model.Stack | model.UnionStack) -> str:
        return identifier("s" if isinstance(stack, model.Stack) else "us", stack.index, stack.name)

    def next_index(self, stack: model.Stack | model.UnionStack) -> str:
        """Number of elements that count as filled: P4's nextIndex."""
        return f"phv->{self.stack_name(stack)}_next"

    @staticmethod
    def size(stack: model.Stack | model.UnionStack) -> int:
        return len(stack.headers if isinstance(stack, model.Stack) else stack.unions)

    def _element(self, stack: model.Stack | model.UnionStack, index: model.Data | None, writing: bool) -> str:
        assert self.index_text is not None
        # Without an index: the last element; on an empty stack that wraps to beyond the array.
        text = f"(uint64_t){self.next_index(stack)} - 1" if index is None else self.index_text(index)
        chooser = "plait_writable" if writing else "plait_readable"
        return f"phv->{self.stack_name(stack)}[{chooser}({text}, {self.size(stack)})]"

    def union_expr(self, union: model.UnionExpr, writing: bool = False) -> str:
        match union:
            case model.UnionRef(found):
                return self.union(found)
            case model.UnionStackAt(stack, index):
                return self._element(stack, index, writing)
            case model.UnionStackLast(stack):
                return self._element(stack, None, writing)
        raise AssertionError(union)

    def union_members(self, union: model.UnionExpr) -> list[Header]:
        match union:
            case model.UnionRef(found):
                one = found
            case model.UnionStackAt(stack) | model.UnionStackLast(stack):
                one = self.program.unions[stack.unions[0]]
            case _:
                raise AssertionError(union)
        return [self.program.headers[index] for index in one.headers]

    def header_expr(self, header: HeaderExpr, writing: bool = False) -> str:
        match header:
            case HeaderRef(found):
                return self.header(found)
            case StackAt(stack, index):
                return self._element(stack, index, writing)
            case StackLast(stack):
                return self._element(stack, None, writing)
            case UnionMember(union, member):
                return f"{self.union_expr(union, writing)}.m{member}"
        raise AssertionError(header)

    @staticmethod
    def kind_of(header: HeaderExpr) -> HeaderType:
        match header:
            case HeaderRef(found):
                return found.type
            case StackAt(stack) | StackLast(stack):
                return stack.type
            case UnionMember():
                return header.type
        raise AssertionError(header)

    def siblings(self, header: HeaderExpr) -> list[str]:
        """Other members of the union that `header` belongs to: at most one of them is valid at a time."""
        match header:
            case HeaderRef(found) if found.union is not None:
                union = self.program.unions[found.union]
                return [self.header(self.program.headers[i]) for i in union.headers if i != found.index]
            case UnionMember(union_expr, member):
                path = self.union_expr(union_expr, writing=True)
                count = len(self.union_members(union_expr))
                return [f"{path}.m{other}" for other in range(count) if other != member]
        return []

    def always_valid(self, header: HeaderExpr) -> bool:
        return isinstance(header, HeaderRef) and header.header.metadata

    # -- fields

    def std_name(self, use: FieldUse) -> str | None:
        if isinstance(use.header, HeaderRef):
            return self._std.get((use.header.header.index, use.index))
        return None

    def place(self, use: FieldUse, writing: bool = False) -> Place:
        std = self.std_name(use)
        if std is not None:
            return Place(f"packet->std.{std}", STD_BITS[std], shared=True)
        path = f"{self.header_expr(use.header, writing)}.{self.field_name(use.type, use.index)}"
        return place_of(path, use.field)

    def varbit(self, use: FieldUse, writing: bool = False) -> str:
        return f"{self.header_expr(use.header, writing)}.{self.field_name(use.type, use.index)}"

    # -- the struct

    def used_types(self) -> list[HeaderType]:
        return list({header.type.index: header.type for header in self.program.headers}.values())

    def emit_structs(self, out: Emitter) -> None:
        for kind in self.used_types():
            out.line(f"{self.type_name(kind)} {{")
            order = sorted(range(len(kind.fields)), key=lambda i: -_alignment(kind.fields[i]))
            users = [header for header in self.program.headers if header.type is kind]
            for index in order:
                if all((header.index, index) in self._std for header in users):
                    continue  # lives in struct plait_std
                out.line(self._member(kind, index))
            out.line("uint8_t valid;")
            out.line("};")
        for name, members in {u.type: u.headers for u in self.program.unions}.items():
            out.line(f"{self._union_type(name)} {{")
            for position, index in enumerate(members):
                out.line(f"{self.type_name(self.program.headers[index].type)} m{position};")
            out.line("};")
        out.line("struct phv {")
        for header in self.program.headers:
            if header.union is None and header.stack is None:
                out.line(f"{self.type_name(header.type)} {identifier('h', header.index, header.name)};")
        for stack in self.program.stacks:
            out.line(f"{self.type_name(stack.type)} {self.stack_name(stack)}[{self.size(stack)} + 2];")
        for union in self.program.unions:
            if union.stack is None:
                out.line(f"{self._union_type(union.type)} {identifier('u', union.index, union.name)};")
        for union_stack in self.program.union_stacks:
            name, size = self.stack_name(union_stack), self.size(union_stack)
            out.line(f"{self._union_type(union_stack.type)} {name}[{size} + 2];")
        every: list[model.Stack | model.UnionStack] = [*self.program.stacks, *self.program.union_stacks]
        for any_stack in every:
            out.line(f"uint32_t {self.stack_name(any_stack)}_next;")
        out.line("int32_t length_change; /* bytes that setValid and setInvalid added: packet_length in egress */")
        out.line("};")

    def _union_type(self, name: str) -> str:
        names = list(dict.fromkeys(union.type for union in self.program.unions))
        return "struct " + identifier("ut", names.index(name), name)

    def _member(self, kind: HeaderType, index: int) -> str:
        each = kind.fields[index]
        name = self.field_name(kind, index)
        if each.varbit:
            return f"struct {{ uint32_t bytes; uint8_t data[{max(each.width // 8, 1)}]; }} {name};"
        if each.width > 128:
            return f"uint64_t {name}[{(each.width + 63) // 64}];"
        bits = storage_bits(each.width)
        return f"{'plait_u128' if bits == 128 else f'uint{bits}_t'} {name};"


def place_of(path: str, field: Field) -> Place:
    if field.width > 128:
        return Place(path, 0, (field.width + 63) // 64)
    return Place(path, storage_bits(field.width))


def _alignment(field: Field) -> int:
    if field.varbit:
        return 4
    return 8 if field.width > 128 else storage_bits(field.width)

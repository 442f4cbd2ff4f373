"""Emits wire.h: constants, enums, and per header a byte-array struct with masked get and set functions.

C bit-fields are not used: their order is the compiler's choice.  Every access is to a constant byte with constant
shifts, which gcc and clang fold into single loads, and which the eBPF verifier follows without help.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import zip_longest

from wire.declarations import Const, Enum, Field, Header, Source, Typedef, WireError
from wire.text import const_literal, member_literal, notice

_PREAMBLE = """\
#ifndef PLAIT_WIRE_H
#define PLAIT_WIRE_H

/*
 * Values that functions take and return are in host order; what lies in a struct's `bytes` is in network order.
 * A set function keeps the low bits of its value that fit the field and leaves the neighbouring fields alone.
 * Structs have alignment 1: a pointer into a packet may be cast to them once its length is checked.
 *
 * No libc, no libbpf: gcc, clang and BCC take this file as it is.
 */
typedef unsigned char wire_u8;
typedef unsigned short wire_u16;
typedef unsigned int wire_u32;
typedef unsigned long long wire_u64;

_Static_assert(sizeof(wire_u8) == 1 && sizeof(wire_u16) == 2 && sizeof(wire_u32) == 4 && sizeof(wire_u64) == 8,
               "fixed-width types");

/* Inlined always: an eBPF program cannot afford a call for a shift. */
#define WIRE_FN static inline __attribute__((always_inline))
"""


def emit(sources: list[Source]) -> str:
    lines = [f"/* {notice(sources)} */", _PREAMBLE]
    for source in sources:
        lines.append(f"/* ---- {source.path} ---- */\n")
        for declaration, following in zip_longest(source.declarations, source.declarations[1:]):
            match declaration:
                case Const():
                    lines.append(f"#define WIRE_{declaration.name.upper()} {_with_suffix(declaration)}")
                    lines.extend([] if isinstance(following, Const) else [""])
                case Typedef():
                    lines.extend(_typedef(declaration))
                case Enum():
                    lines.extend(_enum(declaration))
                case Header():
                    lines.extend(_header(declaration))
    lines.append("#endif")
    return "\n".join(lines) + "\n"


def _with_suffix(const: Const) -> str:
    if const.bits > 64:
        raise WireError(f"const {const.name}: {const.bits} bits do not fit a C integer; 64 are supported")
    return const_literal(const) + _suffix(const.value)


def _suffix(value: int) -> str:
    return "" if value < 1 << 31 else "u" if value < 1 << 32 else "ull"


def _typedef(typedef: Typedef) -> Iterator[str]:
    name = typedef.name.upper()
    yield f"#define WIRE_{name}_BITS {typedef.bits}"
    if typedef.bits <= 64:
        yield f"#define WIRE_{name}_MASK {typedef.mask:#x}{_suffix(typedef.mask)}"
    yield ""


def _enum(enum: Enum) -> Iterator[str]:
    yield f"enum wire_{enum.name} {{"
    for member, value in enum.members:
        if value >= 1 << 31:
            raise WireError(f"enum {enum.name}: {member} = {value:#x} does not fit a C int")
        yield f"\tWIRE_{enum.name.upper()}_{member} = {member_literal(enum, value)},"
    yield "};\n"


def _header(header: Header) -> Iterator[str]:
    struct = f"wire_{header.name}"
    length = f"WIRE_{header.name.upper()}_LEN"
    yield f"#define {length} {header.length}"
    yield f"struct {struct} {{\n\twire_u8 bytes[{length}];\n}};"
    yield f'_Static_assert(sizeof(struct {struct}) == {length}, "{header.name} has no padding");\n'
    for field in header.fields:
        access = _Access(header, field)
        yield f"/* {access.place()} */"
        yield f"WIRE_FN {access.value_type} {struct}_get_{field.name}(const struct {struct} *h)"
        yield f"{{\n\treturn {access.get()};\n}}\n"
        yield f"WIRE_FN void {struct}_set_{field.name}(struct {struct} *h, {access.value_type} v)"
        yield "{"
        yield from (f"\t{statement}" for statement in access.set())
        yield "}\n"


class _Access:
    """The C expressions that read and write one field."""

    def __init__(self, header: Header, field: Field) -> None:
        self.field = field
        self.first = field.offset // 8
        self.last = (field.offset + field.bits - 1) // 8
        self.spare = (self.last + 1) * 8 - (field.offset + field.bits)  # bits of later fields in the last byte
        if self.last - self.first >= 8:
            raise WireError(f"header {header.name}: field {field.name} touches more than 8 bytes")
        self.value_type = _type_for(field.bits)

    def place(self) -> str:
        field = self.field
        kind = "" if field.type_name is None else f", {field.type_name}"
        start = f"byte {self.first}" + (f" bit {7 - field.offset % 8}" if field.bits % 8 or field.offset % 8 else "")
        return f"{field.name}: {start}, {field.bits} bit{'s'[: field.bits > 1]}{kind}"

    def get(self) -> str:
        if self.first == self.last:
            expression = f"h->bytes[{self.first}]"
        else:
            wide = _type_for(max(32, (self.last - self.first + 1) * 8))
            shifts = [(byte, 8 * (self.last - byte)) for byte in range(self.first, self.last + 1)]
            expression = " | ".join(f"({wide})h->bytes[{byte}]" + (f" << {n}" if n else "") for byte, n in shifts)
            expression = f"({expression})".replace(" | ", " |\n\t\t")
        if self.spare:
            expression = f"({expression} >> {self.spare})"
        if self.field.offset % 8:
            expression = f"({expression} & {self.field.mask:#04x})"
        return f"({self.value_type}){expression}"

    def set(self) -> Iterator[str]:
        for byte in range(self.first, self.last + 1):
            shift = 8 * (self.last - byte) - self.spare
            part = f"(v >> {shift})" if shift > 0 else f"(v << {-shift})" if shift < 0 else "v"
            cover = self._cover(byte)
            if cover == 0xFF:
                yield f"h->bytes[{byte}] = (wire_u8){part};"
            else:
                kept = f"(h->bytes[{byte}] & {0xFF ^ cover:#04x})"
                yield f"h->bytes[{byte}] = (wire_u8)({kept} | ({part} & {cover:#04x}));"

    def _cover(self, byte: int) -> int:
        """The bits of this byte that belong to the field."""
        cover = 0xFF
        if byte == self.first:
            cover &= 0xFF >> (self.field.offset % 8)
        if byte == self.last:
            cover &= 0xFF << self.spare
        return cover & 0xFF


def _type_for(bits: int) -> str:
    return f"wire_u{next(size for size in (8, 16, 32, 64) if bits <= size)}"

"""Emits wire.h: constants, enums, and per header a byte-array struct with masked get and set functions.

C bit-fields are not used: their order is the compiler's choice.  Every access is to constant bytes with constant
shifts, which the eBPF verifier follows without help.  Whole bytes are put together by wire_load and wire_store
functions.  gcc and clang fold those into single accesses for machines that allow it; for eBPF they do not, so there the
includer can ask for it (WIRE_WORDS).
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

/*
 * Big-endian integers at any address.  WIRE_WORDS: the machine is little-endian and reads and writes words at any
 * address, but the compiler does not know (eBPF on x86-64 and arm64).
 */
#ifdef WIRE_WORDS
typedef wire_u16 __attribute__((may_alias)) wire_word16;
typedef wire_u32 __attribute__((may_alias)) wire_word32;
typedef wire_u64 __attribute__((may_alias)) wire_word64;
#define WIRE_INTEGER(bits) \\
	WIRE_FN wire_u##bits wire_load##bits(const wire_u8 *at)                                                        \\
	{                                                                                                              \\
		return __builtin_bswap##bits(*(const wire_word##bits *)at);                                            \\
	}                                                                                                              \\
	WIRE_FN void wire_store##bits(wire_u8 *at, wire_u##bits v)                                                     \\
	{                                                                                                              \\
		*(wire_word##bits *)at = __builtin_bswap##bits(v);                                                     \\
	}
WIRE_INTEGER(16)
WIRE_INTEGER(32)
WIRE_INTEGER(64)
#undef WIRE_INTEGER
#else
WIRE_FN wire_u16 wire_load16(const wire_u8 *at)
{
	return (wire_u16)((wire_u32)at[0] << 8 | at[1]);
}

WIRE_FN wire_u32 wire_load32(const wire_u8 *at)
{
	return (wire_u32)wire_load16(at) << 16 | wire_load16(at + 2);
}

WIRE_FN wire_u64 wire_load64(const wire_u8 *at)
{
	return (wire_u64)wire_load32(at) << 32 | wire_load32(at + 4);
}

WIRE_FN void wire_store16(wire_u8 *at, wire_u16 v)
{
	at[0] = (wire_u8)(v >> 8);
	at[1] = (wire_u8)v;
}

WIRE_FN void wire_store32(wire_u8 *at, wire_u32 v)
{
	wire_store16(at, (wire_u16)(v >> 16));
	wire_store16(at + 2, (wire_u16)v);
}

WIRE_FN void wire_store64(wire_u8 *at, wire_u64 v)
{
	wire_store32(at, (wire_u32)(v >> 32));
	wire_store32(at + 4, (wire_u32)v);
}
#endif
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
        pieces = self._pieces()
        if len(pieces) == 1:
            expression = _load(*pieces[0])
        else:
            wide = _type_for(max(32, (self.last - self.first + 1) * 8))
            shifts = [(byte, bits, 8 * (self.last + 1 - byte) - bits) for byte, bits in pieces]
            terms = (f"({wide}){_load(byte, bits)}" + (f" << {n}" if n else "") for byte, bits, n in shifts)
            expression = " | ".join(terms)
            expression = f"({expression})".replace(" | ", " |\n\t\t")
        if self.spare:
            expression = f"({expression} >> {self.spare})"
        if self.field.offset % 8:
            expression = f"({expression} & {self.field.mask:#04x})"
        return f"({self.value_type}){expression}"

    def set(self) -> Iterator[str]:
        if not self.spare and not self.field.offset % 8:
            for byte, bits in self._pieces():
                shift = 8 * (self.last + 1 - byte) - bits
                part = f"(v >> {shift})" if shift else "v"
                if bits == 8:
                    yield f"h->bytes[{byte}] = (wire_u8){part};"
                else:
                    yield f"wire_store{bits}(h->bytes + {byte}, (wire_u{bits}){part});"
            return
        for byte in range(self.first, self.last + 1):
            shift = 8 * (self.last - byte) - self.spare
            part = f"(v >> {shift})" if shift > 0 else f"(v << {-shift})" if shift < 0 else "v"
            cover = self._cover(byte)
            if cover == 0xFF:
                yield f"h->bytes[{byte}] = (wire_u8){part};"
            else:
                kept = f"(h->bytes[{byte}] & {0xFF ^ cover:#04x})"
                yield f"h->bytes[{byte}] = (wire_u8)({kept} | ({part} & {cover:#04x}));"

    def _pieces(self) -> list[tuple[int, int]]:
        """The field's bytes as integers that can be loaded at once: (first byte, bits)."""
        pieces, byte = [], self.first
        while byte <= self.last:
            left = self.last + 1 - byte
            # An odd byte comes first, so that what follows is a whole word: 24 bits are 8 and 16, 48 are 16 and 32.
            size = next(size for size in (1, 2, 4, 8) if left % (2 * size) or left == size)
            pieces.append((byte, 8 * size))
            byte += size
        return pieces

    def _cover(self, byte: int) -> int:
        """The bits of this byte that belong to the field."""
        cover = 0xFF
        if byte == self.first:
            cover &= 0xFF >> (self.field.offset % 8)
        if byte == self.last:
            cover &= 0xFF << self.spare
        return cover & 0xFF


def _load(byte: int, bits: int) -> str:
    return f"h->bytes[{byte}]" if bits == 8 else f"wire_load{bits}(h->bytes + {byte})"


def _type_for(bits: int) -> str:
    return f"wire_u{next(size for size in (8, 16, 32, 64) if bits <= size)}"

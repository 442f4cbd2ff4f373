"""Checksums: verified after parsing, whatever the parser's outcome, and updated before deparsing, in order."""

from __future__ import annotations

from .emitter import Emitter
from .expr import Expressions
from .hashing import Hashes
from .layout import Layout, Place
from .model import Checksum, HeaderRef, Program


def emit_verify(out: Emitter, program: Program, expressions: Expressions, layout: Layout, hashes: Hashes) -> None:
    """A wrong checksum only sets checksum_error; one whose header is invalid is not looked at."""
    out.line("packet->std.checksum_error = 0;")
    for checksum in program.checksums:
        if not checksum.verify:
            continue
        out.source(checksum.source)
        tests = []
        assert isinstance(checksum.target.header, HeaderRef)
        if not checksum.target.header.header.metadata:
            tests.append(f"{layout.header(checksum.target.header.header)}.valid")
        if checksum.condition is not None:
            tests.append(expressions.bool(checksum.condition))
        # Compared in 64 bits: a result wider than the field never fits.
        value = expressions.data_in(checksum.target, 64, 64).text
        tests.append(f"{hashes.call(checksum.calculation)} != {value}")
        out.line(f"if ({' && '.join(tests)})")
        out.line("    packet->std.checksum_error = 1;")


def emit_update(out: Emitter, program: Program, expressions: Expressions, layout: Layout, hashes: Hashes) -> None:
    """Written even if the header is invalid."""
    for checksum in program.checksums:
        if not checksum.update:
            continue
        out.source(checksum.source)
        if checksum.condition is not None:
            out.line(f"if ({expressions.bool(checksum.condition)}) {{")
        else:
            out.line("{")
        _store(out, checksum, layout, hashes)
        out.line("}")


def _store(out: Emitter, checksum: Checksum, layout: Layout, hashes: Hashes) -> None:
    place: Place = layout.place(checksum.target, writing=True)
    width = checksum.target.field.width
    call = hashes.call(checksum.calculation)
    if place.limbs:
        out.line(f"uint64_t sum = {call};")  # first: the field may be among what is summed
        out.line(f"memset({place.path}, 0, sizeof {place.path});")
        out.line(f"{place.path}[0] = sum;")
        return
    if width < 64:
        call = f"({call} & UINT64_C({(1 << width) - 1:#x}))"
    cast = f"(uint{place.bits}_t)" if place.bits < 64 else ""
    out.line(f"{place.path} = {cast}{call};")

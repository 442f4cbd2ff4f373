"""Statements that change headers: storing numbers, validity, extraction, emission, copies."""

from __future__ import annotations

from . import model
from .emitter import Emitter
from .expr import WIDE, Expressions, constant, same_function
from .layout import Layout, Place
from .model import Data, FieldUse, HeaderExpr, HeaderType
from .packing import joined, pack, place_item, unpack


class Stores:
    def __init__(self, layout: Layout, expressions: Expressions) -> None:
        self.layout = layout
        self.expressions = expressions

    # -- numbers

    def assign(self, out: Emitter, target: Data, value: Data) -> None:
        if isinstance(target, model.ValidBit):
            self._assign_validity(out, target.header, value)
            return
        if isinstance(target, model.RegisterCell):
            self._assign_register(out, target.register, target.index, value)
            return
        assert isinstance(target, FieldUse)
        width = target.field.width
        if target.field.saturating:
            value = model.Saturate(value, width, target.field.signed)
        place = self.layout.place(target, writing=True)
        if place.limbs:
            wide = self.expressions.data_in(value, width, WIDE).text
            self.expressions.wide_bits = max(self.expressions.wide_bits, width + 1)
            out.line(f"plait_wide_store({place.path}, {place.limbs}, {width}, {wide});")
            return
        kind = 128 if place.bits == 128 else 64
        found = self.expressions.data_in(value, width, kind)
        interval = self.expressions.interval(value)
        fits = found.full and interval is not None and interval[0] >= 0 and interval[1] < 1 << width
        text = found.text
        if not fits and width < place.bits:
            text = f"({text} & {constant((1 << width) - 1, kind)})"
        self.store_text(out, place, text)

    def _assign_register(self, out: Emitter, register: model.Array, index: Data, value: Data) -> None:
        array, width, count = f"&instance->registers[{register.index}]", register.width, self.expressions.count(index)
        if width > 64:
            wide = self.expressions.data_in(value, width, WIDE).text
            self.expressions.wide_bits = max(self.expressions.wide_bits, width + 1)
            out.line(f"plait_wide_register_set({array}, {count}, plait_wide_mask({wide}, {width}));")
            return
        text = self.expressions.data_in(value, width, 64).text
        if width < 64:
            text = f"({text} & {constant((1 << width) - 1, 64)})"
        out.line(f"plait_register_set({array}, {count}, {text});")

    @staticmethod
    def store_text(out: Emitter, place: Place, text: str) -> None:
        """Stores a number that already fits."""
        cast = "" if place.bits in (64, 128) else f"(uint{place.bits}_t)"
        out.line(f"{place.path} = {cast}{text};")

    def _assign_validity(self, out: Emitter, header: HeaderExpr, value: Data) -> None:
        if self.layout.always_valid(header):
            return
        path = self.layout.header_expr(header, writing=True)
        out.line(f"{path}.valid = (uint8_t)({self.expressions.data_in(value, 1, 64).text} & 1);")
        for sibling in self.layout.siblings(header):
            out.line(f"{sibling}.valid = (uint8_t)({sibling}.valid & !{path}.valid);")

    # -- validity

    def mark_valid(self, out: Emitter, header: HeaderExpr) -> None:
        if self.layout.always_valid(header):
            return
        out.line(f"{self.layout.header_expr(header, writing=True)}.valid = 1;")
        for sibling in self.layout.siblings(header):
            out.line(f"{sibling}.valid = 0;")

    def add_header(self, out: Emitter, header: HeaderExpr) -> None:
        """setValid: zeroes the fields, but of an invalid header only."""
        if self.layout.always_valid(header):
            return
        path = self.layout.header_expr(header, writing=True)
        out.line(f"if (!{path}.valid) {{")
        out.line(f"memset(&{path}, 0, sizeof {path});")
        self.mark_valid(out, header)
        out.line(f"phv->length_change += {self.layout.kind_of(header).fixed_bits // 8};")
        out.line("}")

    def remove_header(self, out: Emitter, header: HeaderExpr) -> None:
        if self.layout.always_valid(header):
            return
        path = self.layout.header_expr(header, writing=True)
        out.line(f"if ({path}.valid) {{")
        out.line(f"{path}.valid = 0;")
        out.line(f"phv->length_change -= {self.byte_count(self.layout.kind_of(header), path)};")
        out.line("}")

    def byte_count(self, kind: HeaderType, path: str) -> str:
        """Bytes of a valid header on the wire, as an int32_t."""
        fixed = str(kind.fixed_bits // 8)
        if kind.varbit is None:
            return fixed
        return f"(int32_t)({fixed} + {path}.{self.layout.field_name(kind, kind.varbit)}.bytes)"

    # -- copies

    def assign_header(self, out: Emitter, target: HeaderExpr, source: HeaderExpr) -> None:
        """Copies a valid header; an invalid one passes on its invalidity only."""
        to = self.layout.header_expr(target, writing=True)
        if self.layout.always_valid(source):
            self._copy_fields(out, target, source)
            return
        out.line(f"if ({self.layout.header_expr(source)}.valid) {{")
        self._copy_fields(out, target, source)
        self.mark_valid(out, target)
        if not self.layout.always_valid(target):
            out.lines("} else {", f"{to}.valid = 0;")
        out.line("}")

    def _copy_fields(self, out: Emitter, target: HeaderExpr, source: HeaderExpr) -> None:
        kind, other = self.layout.kind_of(target), self.layout.kind_of(source)
        for index, (each, twin) in enumerate(zip(kind.fields, other.fields, strict=True)):
            if each.varbit != twin.varbit:
                continue
            to, value = FieldUse(target, kind, index), FieldUse(source, other, index)
            if each.varbit:
                self.assign_varbit(out, to, value)
            else:
                self.assign(out, to, value)

    def assign_varbit(self, out: Emitter, target: FieldUse, source: FieldUse) -> None:
        to, value = self.layout.varbit(target, True), self.layout.varbit(source)
        out.line(f"plait_varbit_copy(&{to}.bytes, {to}.data, sizeof {to}.data, {value}.bytes, {value}.data);")

    # -- bytes

    def emit_load(self, out: Emitter, kind: HeaderType, path: str, first: int, last: int, base: str) -> None:
        """Fields [first, last) of the header at `path` from the bytes at `base`, whose presence was checked."""
        fields = kind.fields[first:last]
        if not fields:
            return
        loads, pieces = unpack([each.width for each in fields], lambda index: f"w{index}")
        out.line("{")
        for index, (offset, size) in enumerate(loads):
            at = f"{base} + {offset}" if offset else base
            out.line(f"uint64_t w{index} = plait_load{8 * size}({at});")
        for index, (each, parts) in enumerate(zip(fields, pieces, strict=True), start=first):
            target = f"{path}.{self.layout.field_name(kind, index)}"
            if each.width <= 64:
                bits = next(bits for bits in (8, 16, 32, 64) if each.width <= bits)
                self.store_text(out, Place(target, bits), joined(parts))
                continue
            limbs = _limbs(parts)
            if each.width <= 128:
                out.line(f"{target} = PLAIT_U128({limbs[1]}, {limbs[0]});")
                continue
            for limb, text in enumerate(limbs):
                out.line(f"{target}[{limb}] = {text};")
        out.line("}")

    def emit_store(self, out: Emitter, kind: HeaderType, path: str, first: int, last: int, base: str) -> None:
        """The reverse of emit_load."""
        items = []
        for index in range(first, last):
            name = f"{path}.{self.layout.field_name(kind, index)}"
            each = kind.fields[index]
            limbs = (each.width + 63) // 64 if each.width > 128 else 0
            bits = 0 if limbs else next(bits for bits in (8, 16, 32, 64, 128) if each.width <= bits)
            items.append(place_item(Place(name, bits, limbs), each.width))
        for word in pack(items):
            at = f"{base} + {word.offset}" if word.offset else base
            out.line(f"plait_store{8 * word.size}({at}, {word.text});")

    def emit_same_functions(self, out: Emitter) -> None:
        """Header equality, one function for each type that is compared."""
        for kind in self.layout.used_types():
            if kind.index not in self.expressions.compared:
                continue
            name = self.layout.type_name(kind)
            out.line(f"static PLAIT_UNUSED bool {same_function(kind)}(const {name} *left, const {name} *right)")
            out.line("{")
            out.line("if (!left->valid || !right->valid)")
            out.line("    return false;")
            for index, each in enumerate(kind.fields):
                field = self.layout.field_name(kind, index)
                if each.varbit:
                    test = (
                        f"left->{field}.bytes != right->{field}.bytes || "
                        f"memcmp(left->{field}.data, right->{field}.data, left->{field}.bytes) != 0"
                    )
                elif each.width > 128:
                    test = f"memcmp(left->{field}, right->{field}, sizeof left->{field}) != 0"
                else:
                    test = f"left->{field} != right->{field}"
                out.lines(f"if ({test})", "    return false;")
            out.line("return true;")
            out.line("}")
            out.line()


def _limbs(pieces: list[tuple[int, str]]) -> list[str]:
    """64-bit limbs, least significant first, of pieces that are most significant first."""
    limbs: list[list[str]] = [[] for _ in range((sum(bits for bits, _ in pieces) + 63) // 64)]
    position = 0
    for bits, text in reversed(pieces):
        limb, shift = divmod(position, 64)
        limbs[limb].append(f"({text} << {shift})" if shift else text)
        if shift + bits > 64:
            limbs[limb + 1].append(f"({text} >> {64 - shift})")
        position += bits
    return ["(" + " | ".join(parts) + ")" for parts in limbs]

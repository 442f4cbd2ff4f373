"""Calculations: one function each.  Where all hashed headers are valid (the usual case) the input is packed at
generation time and hashed from registers; else it is appended bit by bit, because fields of invalid headers are
skipped and what follows them moves."""

from __future__ import annotations

from .algorithms import Algorithm, Crc
from .emitter import Emitter, comment
from .errors import ProgramError
from .expr import constant
from .layout import Layout
from .model import Calculation, Field, FieldUse, HashItem, Header, HeaderRef
from .packing import Item, constant_item, pack, pack_bits, place_item

MAX_INPUT_BYTES = 4096


class Hashes:
    def __init__(self, layout: Layout) -> None:
        self.layout = layout
        self.selectors: list[Calculation] = []

    def call(self, calculation: Calculation) -> str:
        return f"{self.name(calculation)}(instance, packet, phv)"

    def name(self, calculation: Calculation) -> str:
        for index, each in enumerate(self.selectors):
            if each is calculation:
                return f"select_{index}"
        return f"calculation_{calculation.index}"

    def add_selector(self, calculation: Calculation) -> None:
        """Selectors belong to action profiles and are not among the program's named calculations."""
        if not any(each is calculation for each in self.selectors):
            self.selectors.append(calculation)

    def emit(self, out: Emitter) -> None:
        every = [*self.layout.program.calculations, *self.selectors]
        for crc in {_table(each.algorithm.crc): each.algorithm.crc for each in every if each.algorithm.crc}.values():
            _emit_tables(out, crc)
        for calculation in every:
            self._emit_one(out, calculation)

    def _item(self, part: HashItem) -> Item:
        if part.header is None or part.field is None:
            return constant_item(part.constant, part.width)
        return place_item(self.layout.place(FieldUse(HeaderRef(part.header), part.header.type, part.field)), part.width)

    def _emit_one(self, out: Emitter, calculation: Calculation) -> None:
        total = sum(part.width for part in calculation.inputs)
        if total > 8 * MAX_INPUT_BYTES:
            raise ProgramError("calculations", f"{calculation.name[:80]!r} hashes more than {MAX_INPUT_BYTES} bytes")
        out.line(comment(f"{calculation.algorithm_name}: {calculation.name}"))
        out.line(
            f"static inline PLAIT_UNUSED uint64_t {self.name(calculation)}"
            "(struct plait_instance *instance, const struct plait_packet *packet, const struct phv *phv)"
        )
        out.line("{")
        if calculation.algorithm.kind in ("zero", "round_robin"):  # what is hashed does not matter
            state = f"plait_count_calls(&instance->registers[{calculation.state}])"
            out.line(f"return {state if calculation.algorithm.kind == 'round_robin' else '0'};")
            out.line("}")
            out.line()
            return
        headers: dict[int, Header] = {}
        for part in calculation.inputs:
            if part.header is not None and not part.header.metadata:
                headers[part.header.index] = part.header
        fields = [_field(part) for part in calculation.inputs]
        packed = not calculation.payload and not any(field is not None and field.varbit for field in fields)
        if packed:
            valid = " & ".join(f"{self.layout.header(header)}.valid" for header in headers.values())
            if valid:
                out.line(f"if (PLAIT_LIKELY({valid})) {{")
            else:
                out.line("{")
            self._emit_packed(out, calculation, [self._item(part) for part in calculation.inputs])
            out.line("}")
            if not valid:
                out.line("}")
                out.line()
                return
        self._emit_appended(out, calculation, total)
        out.line("}")
        out.line()

    def _emit_packed(self, out: Emitter, calculation: Calculation, items: list[Item]) -> None:
        algorithm, crc = calculation.algorithm, calculation.algorithm.crc
        packed = pack(items)
        if crc is not None and crc.sliced:
            out.line(f"uint32_t crc = {crc.start:#x};")
            for word in packed:
                out.line(f"crc = plait_crc_take{word.size}({_table(crc)}, crc, {word.text});")
            out.line(f"return crc ^ {crc.final_xor:#x};")
        elif algorithm.kind == "csum16":
            out.line("uint64_t sum = 0;")
            for word in packed:
                if word.size == 8:
                    out.line(f"sum = plait_csum_take8(sum, {word.text});")
                else:
                    out.line(f"sum += {_aligned(word.text, word.offset, word.size, 2)};")
            out.line("return plait_csum_fold(sum);")
        elif algorithm.kind == "identity":
            total = sum(item.width for item in items)
            count = min((total + 7) // 8, 8)
            out.line(f"return {pack_bits(items, 0, 8 * count) if count else constant(0, 64)};")
        else:
            size = sum((word.size for word in packed), 0)
            out.line(f"uint8_t bytes[{max(size, 1)}];")
            for word in packed:
                out.line(f"plait_store{8 * word.size}(bytes + {word.offset}, {word.text});")
            if not packed:
                out.line("bytes[0] = 0;")
            out.line(f"return {_over_bytes(algorithm, 'bytes', str(size))};")

    def _emit_appended(self, out: Emitter, calculation: Calculation, total: int) -> None:
        payload = "PLAIT_MAX_FRAME + " if calculation.payload else ""
        out.line(f"uint8_t bytes[{payload}{(total + 7) // 8 + 1}];")
        out.lines("uint32_t used = 0;", "bytes[0] = 0;")
        open_header: Header | None = None
        for part in calculation.inputs:
            header = part.header if part.header is not None and not part.header.metadata else None
            if header is not open_header:
                if open_header is not None:
                    out.line("}")
                if header is not None:
                    out.line(f"if ({self.layout.header(header)}.valid) {{")
                open_header = header
            self._append(out, part)
        if open_header is not None:
            out.line("}")
        out.line("uint32_t count = (used + 7) / 8;")
        if calculation.payload:
            out.lines(
                "uint32_t payload = packet->length - packet->payload_offset;",
                "if (payload > PLAIT_MAX_FRAME)",
                "    payload = PLAIT_MAX_FRAME;",
                "memcpy(bytes + count, packet->data + packet->payload_offset, payload);",
                "count += payload;",
            )
        out.line(f"return {_over_bytes(calculation.algorithm, 'bytes', 'count')};")

    def _append(self, out: Emitter, part: HashItem) -> None:
        field = _field(part)
        if field is not None and field.varbit:
            assert part.header is not None and part.field is not None
            path = f"{self.layout.header(part.header)}.{self.layout.field_name(part.header.type, part.field)}"
            out.line(f"plait_append_bytes(bytes, &used, {path}.data, {path}.bytes);")
            return
        item = self._item(part)
        rest = item.width
        while rest:
            count = rest % 64 or 64
            rest -= count
            out.line(f"plait_append_bits(bytes, &used, {item.slice(rest, count)}, {count});")


def _table(crc: Crc) -> str:
    return f"crc{crc.width}_{crc.polynomial:x}_{'reflected' if crc.reflected else 'plain'}"


def _emit_tables(out: Emitter, crc: Crc) -> None:
    if crc.sliced:
        out.line(f"static const uint32_t {_table(crc)}[8][256] = {{")
        for table in crc.slices(8):
            out.line("{")
            for row in range(0, 256, 8):
                out.line(", ".join(f"{value:#010x}" for value in table[row : row + 8]) + ",")
            out.line("},")
    else:
        out.line(f"static const uint64_t {_table(crc)}[256] = {{")
        table = crc.table()
        for row in range(0, 256, 4):
            out.line(", ".join(f"UINT64_C({value:#x})" for value in table[row : row + 4]) + ",")
    out.line("};")
    out.line()


def _over_bytes(algorithm: Algorithm, bytes_text: str, count: str) -> str:
    crc = algorithm.crc
    if crc is None:
        if algorithm.kind in ("xor16", "xor32"):
            return f"plait_xor_bytes({bytes_text}, {count}, {algorithm.bits // 8})"
        return f"plait_{algorithm.kind}_bytes({bytes_text}, {count})"
    if crc.sliced:
        return f"(plait_crc_sliced({_table(crc)}, {crc.start:#x}, {bytes_text}, {count}) ^ {crc.final_xor:#x})"
    reflected = "true" if crc.reflected else "false"
    start, final = constant(crc.start, 64), constant(crc.final_xor, 64)
    return f"(plait_crc_bytes({_table(crc)}, {start}, {crc.width}, {reflected}, {bytes_text}, {count}) ^ {final})"


def _field(part: HashItem) -> Field | None:
    return part.header.type.fields[part.field] if part.header is not None and part.field is not None else None


def _aligned(text: str, offset: int, size: int, word: int) -> str:
    """A piece of `size` bytes at its place in big-endian words of `word` bytes (only the last piece is ever odd)."""
    shift = 8 * (-(offset + size) % word)
    return f"({text} << {shift})" if shift else text

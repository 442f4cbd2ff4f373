"""Calculations: one function each.  Where all hashed headers are valid (the usual case) the input is packed at
generation time and hashed from registers; else it is appended bit by bit, because fields of invalid headers are
skipped and what follows them moves."""

from __future__ import annotations

from .algorithms import CRCS
from .emitter import Emitter, comment
from .errors import ProgramError
from .expr import constant
from .layout import Layout
from .model import Calculation, Field, FieldUse, HashItem, Header, HeaderRef
from .packing import Item, constant_item, pack, pack_bits, place_item

MAX_INPUT_BYTES = 4096
_SLICED = ("crc16", "crc16_custom", "crc32", "crc32_custom")


class Hashes:
    def __init__(self, layout: Layout) -> None:
        self.layout = layout
        self.selectors: list[Calculation] = []

    def call(self, calculation: Calculation) -> str:
        return f"{self.name(calculation)}(packet, phv)"

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
        for algorithm in dict.fromkeys(each.algorithm for each in every):
            self._emit_tables(out, algorithm)
        for calculation in every:
            self._emit_one(out, calculation)

    @staticmethod
    def _emit_tables(out: Emitter, algorithm: str) -> None:
        if algorithm not in CRCS:
            return
        crc = CRCS[algorithm]
        if algorithm in _SLICED:
            out.line(f"static const uint32_t table_{algorithm}[8][256] = {{")
            for table in crc.slices(8):
                out.line("{")
                for row in range(0, 256, 8):
                    out.line(", ".join(f"{value:#010x}" for value in table[row : row + 8]) + ",")
                out.line("},")
        else:
            out.line(f"static const uint64_t table_{algorithm}[256] = {{")
            table = crc.table()
            for row in range(0, 256, 4):
                out.line(", ".join(f"UINT64_C({value:#x})" for value in table[row : row + 4]) + ",")
        out.line("};")
        out.line()

    def _item(self, part: HashItem) -> Item:
        if part.header is None or part.field is None:
            return constant_item(part.constant, part.width)
        return place_item(self.layout.place(FieldUse(HeaderRef(part.header), part.header.type, part.field)), part.width)

    def _emit_one(self, out: Emitter, calculation: Calculation) -> None:
        total = sum(part.width for part in calculation.inputs)
        if total > 8 * MAX_INPUT_BYTES:
            raise ProgramError("calculations", f"{calculation.name[:80]!r} hashes more than {MAX_INPUT_BYTES} bytes")
        out.line(comment(f"{calculation.algorithm}: {calculation.name}"))
        out.line(
            f"static inline PLAIT_UNUSED uint64_t {self.name(calculation)}"
            "(const struct plait_packet *packet, const struct phv *phv)"
        )
        out.line("{")
        out.lines("(void)packet;", "(void)phv;")
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
        algorithm = calculation.algorithm
        packed = pack(items)
        if algorithm in _SLICED:
            crc = CRCS[algorithm]
            out.line(f"uint32_t crc = {crc.initial:#x};")
            for word in packed:
                out.line(f"crc = plait_crc_take{word.size}(table_{algorithm}, crc, {word.text});")
            out.line(f"return crc ^ {crc.final_xor:#x};")
        elif algorithm in ("csum16", "cksum16"):
            out.line("uint64_t sum = 0;")
            for word in packed:
                if word.size == 8:
                    out.line(f"sum = plait_csum_take8(sum, {word.text});")
                else:
                    out.line(f"sum += {_aligned(word.text, word.offset, word.size, 2)};")
            out.line("return plait_csum_fold(sum);")
        elif algorithm == "identity":
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
            out.line(f"return {self._over_bytes(algorithm, 'bytes', str(size))};")

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
        out.line(f"return {self._over_bytes(calculation.algorithm, 'bytes', 'count')};")

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

    @staticmethod
    def _over_bytes(algorithm: str, bytes_text: str, count: str) -> str:
        if algorithm in _SLICED:
            crc = CRCS[algorithm]
            call = f"plait_crc_sliced(table_{algorithm}, {crc.initial:#x}, {bytes_text}, {count})"
            return f"({call} ^ {crc.final_xor:#x})"
        if algorithm in CRCS:
            crc = CRCS[algorithm]
            assert crc.final_xor == 0
            reflected = "true" if crc.reflected else "false"
            initial = constant(crc.initial, 64)
            return f"plait_crc_bytes(table_{algorithm}, {initial}, {crc.width}, {reflected}, {bytes_text}, {count})"
        if algorithm in ("xor16", "xor32"):
            return f"plait_xor_bytes({bytes_text}, {count}, {int(algorithm[3:]) // 8})"
        name = {"csum16": "csum", "cksum16": "csum"}.get(algorithm, algorithm)
        return f"plait_{name}_bytes({bytes_text}, {count})"


def _field(part: HashItem) -> Field | None:
    return part.header.type.fields[part.field] if part.header is not None and part.field is not None else None


def _aligned(text: str, offset: int, size: int, word: int) -> str:
    """A piece of `size` bytes at its place in big-endian words of `word` bytes (only the last piece is ever odd)."""
    shift = 8 * (-(offset + size) % word)
    return f"({text} << {shift})" if shift else text

"""deparse(): checksums, then the valid headers in front of the payload, then truncation; and the field lists."""

from __future__ import annotations

from .actions import Actions
from .checksum import emit_update
from .emitter import Emitter, comment
from .expr import Expressions
from .hashing import Hashes
from .layout import Layout, Place
from .model import FieldUse, Header, Program
from .storing import Stores

HEADROOM = 576  # PLAIT_HEADROOM; the generated code asserts that they agree


class DeparserEmitter:
    def __init__(
        self,
        program: Program,
        layout: Layout,
        expressions: Expressions,
        stores: Stores,
        hashes: Hashes,
        actions: Actions,
    ) -> None:
        self.program = program
        self.layout = layout
        self.expressions = expressions
        self.stores = stores
        self.hashes = hashes
        self.actions = actions

    def emit(self, out: Emitter) -> None:
        order = self.program.deparse_order
        out.line(f'_Static_assert(PLAIT_HEADROOM == {HEADROOM}, "headroom");')
        out.line("static void deparse(struct plait_instance *instance, struct plait_packet *packet)")
        out.line("{")
        out.line("struct phv *phv = packet->phv;")
        if any(call.op in ("assert", "assume") for call in self.program.deparse_calls):
            out.line("bool go_on = true;")
        emit_update(out, self.program, self.expressions, self.layout, self.hashes)
        out.line("uint32_t size = 0;")
        for header in order:
            size = self.stores.byte_count(header.type, self.layout.header(header)).replace("(int32_t)", "(uint32_t)")
            out.line(f"size += {self.layout.header(header)}.valid ? {size} : 0;")
        for call in self.program.deparse_calls:
            out.source(call.source)
            self.actions.emit_primitive(out, call)
        longest = sum(header.type.max_bytes for header in order)
        if longest > HEADROOM:
            out.line("if (PLAIT_UNLIKELY(size > packet->payload_offset + PLAIT_HEADROOM)) {")
            out.line('instance->runtime->log(instance, "headers outgrew the headroom: packet left as it came");')
            out.line("size = packet->payload_offset;")
            out.line("goto emitted;")
            out.line("}")
        out.line("{")
        out.line("uint8_t *at = packet->data + packet->payload_offset - size;")
        for header in order:
            self._emit_header(out, header)
        out.line("}")
        if longest > HEADROOM:
            out.line("emitted:;")
        out.line("packet->data += (int32_t)(packet->payload_offset - size);")
        out.line("packet->length += size - packet->payload_offset;")
        out.line("packet->payload_offset = size;")
        out.line("if (PLAIT_UNLIKELY(packet->std.truncate_to)) {")
        out.line("if (packet->length > packet->std.truncate_to - 1)")
        out.line("    packet->length = packet->std.truncate_to - 1;")
        out.line("if (packet->payload_offset > packet->length)")
        out.line("    packet->payload_offset = packet->length;")
        out.line("}")
        out.line("}")
        out.line()

    def _emit_header(self, out: Emitter, header: Header) -> None:
        kind, path = header.type, self.layout.header(header)
        out.line(f"if ({path}.valid) {{")
        split = kind.varbit if kind.varbit is not None else len(kind.fields)
        self.stores.emit_store(out, kind, path, 0, split, "at")
        out.line(f"at += {sum(each.width for each in kind.fields[:split]) // 8};")
        if kind.varbit is not None:
            varbit = f"{path}.{self.layout.field_name(kind, kind.varbit)}"
            out.line(f"memcpy(at, {varbit}.data, {varbit}.bytes);")
            out.line(f"at += {varbit}.bytes;")
            self.stores.emit_store(out, kind, path, split + 1, len(kind.fields), "at")
            out.line(f"at += {sum(each.width for each in kind.fields[split + 1 :]) // 8};")
        out.line("}")

    # -- field lists and metadata

    def emit_copies(self, out: Emitter) -> None:
        out.line("static void copy_field_list(uint32_t field_list, void *to_phv, const void *from_phv)")
        out.line("{")
        out.lines("struct phv *to = to_phv;", "const struct phv *from = from_phv;")
        out.line("switch (field_list) {")
        for each in self.program.field_lists:
            out.line(f"case {each.id}:")
            out.line("{")
            for use in dict.fromkeys(each.fields):
                self._copy_field(out, use)
            out.lines("break;", "}")
        out.line("default:")
        out.line("    break;")
        out.lines("}", "}", "")
        out.line("static void reset_metadata(void *of_phv)")
        out.line("{")
        out.line("struct phv *phv = of_phv;")
        for header in self.program.headers:
            if header.metadata:
                path = self.layout.header(header)
                out.line(f"memset(&{path}, 0, sizeof {path});")
        out.lines("}", "")

    def _copy_field(self, out: Emitter, use: FieldUse) -> None:
        place: Place = self.layout.place(use)
        if place.shared:
            # Standard metadata of a copy is the engine's to set.
            out.line(comment(f"{use.field.name} is standard metadata"))
            return
        path = place.path.removeprefix("phv->")
        if place.limbs:
            out.line(f"memcpy(to->{path}, from->{path}, sizeof to->{path});")
        else:
            out.line(f"to->{path} = from->{path};")

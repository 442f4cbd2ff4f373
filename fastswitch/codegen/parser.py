"""parse(): states are labels, transitions are gotos, and every access is preceded by a check of what is left.

`at` is the cursor, `end` the end of the frame.  An error leaves the parser with its code; the headers extracted until
then stay valid, the cursor stays, and the packet goes on to ingress, as in BMv2.
"""

from __future__ import annotations

from . import model
from .actions import Actions
from .checksum import emit_verify
from .emitter import Emitter, comment, identifier
from .expr import Expressions, constant
from .hashing import Hashes
from .layout import Layout
from .model import Data, Extract, FieldUse, Program, State
from .packing import Item, pack, place_item, text_item
from .parts import PART_NODES, emit_entries, emit_exits, in_parts, part_head, parts_table
from .storing import Stores

# A parser without progress would never end; a frame cannot need more states than this.
MAX_STATES_VISITED = 20_000


class ParserEmitter:
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
        order = self._order()
        loops = self._has_loop(order)
        parts = in_parts(order)
        if len(parts) > 1:
            for number, part in enumerate(parts):
                self._emit_part(out, number, part, order, loops)
            out.line(parts_table("parse", "struct plait_cursor *cursor", len(parts)))
        out.line("static void parse(struct plait_instance *instance, struct plait_packet *packet)")
        out.line("{")
        if len(parts) > 1:
            out.line("struct phv *phv = packet->phv;")
            out.line("struct plait_cursor cursor = {packet->data, 0, " + f"{self.program.errors['NoError']}}};")
            out.line("uint32_t position = 0;")
            out.line("while (position != PLAIT_LEFT)")
            out.line(f"    position = parse_parts[position / {PART_NODES}](instance, packet, &cursor, position);")
            out.lines("const uint8_t *at = cursor.at;", "uint32_t error = cursor.error;")
        else:
            out.line("struct phv *phv = packet->phv;")
            out.line("const uint8_t *at = packet->data, *end = at + packet->length;")
            out.line(f"uint32_t error = {self.program.errors['NoError']};")
            if loops:
                out.line("uint32_t visited = 0;")
            self._emit_states(out, order, loops)
            out.label("done")
        out.line("packet->payload_offset = (uint32_t)(at - packet->data);")
        out.line("packet->std.parser_error = error;")
        emit_verify(out, self.program, self.expressions, self.layout, self.hashes)
        out.line("}")
        out.line()

    def _emit_part(self, out: Emitter, number: int, part: list[State], order: list[State], loops: bool) -> None:
        out.line(part_head("parse", "struct plait_cursor *cursor", number))
        out.line("{")
        out.line("struct phv *phv = packet->phv;")
        out.line("const uint8_t *at = cursor->at, *end = packet->data + packet->length;")
        out.line("uint32_t error = cursor->error, visited = cursor->visited;")
        positions = {state.index: position for position, state in enumerate(order)}
        emit_entries(out, [(positions[state.index], self._label(state.index)) for state in part])
        self._emit_states(out, part, loops)
        ours = {state.index for state in part}
        targets = dict.fromkeys(target for state in part for target in self._targets(state) if target not in ours)
        emit_exits(out, [(positions[target], self._label(target)) for target in targets])
        out.lines("cursor->at = at;", "cursor->error = error;", "cursor->visited = visited;", "return position;")
        out.lines("}", "")

    def _emit_states(self, out: Emitter, states: list[State], loops: bool) -> None:
        ops = [op for state in states for op in state.ops]
        if any(isinstance(op, model.Call) and op.primitive.op in ("assert", "assume") for op in ops):
            out.line("bool go_on = true;")
        for position, state in enumerate(states):
            following = states[position + 1] if position + 1 < len(states) else None
            self._emit_state(out, state, following, loops)

    # -- the graph

    def _order(self) -> list[State]:
        """States that can be reached, so that a likely successor often follows without a jump."""
        if self.program.start is None:
            return []
        seen: dict[int, None] = {}
        pending: list[int] = [self.program.start]
        while pending:
            index = pending.pop()
            if index in seen:
                continue
            seen[index] = None
            state = self.program.states[index]
            targets = [state.default, *[each.next for each in state.transitions]]
            pending += [each for each in targets if each is not None and each not in seen]
        return [self.program.states[index] for index in seen]

    def _has_loop(self, order: list[State]) -> bool:
        done: set[int] = set()
        for root in order:
            path: list[tuple[int, list[int]]] = [(root.index, self._targets(root))]
            active = {root.index}
            while path and root.index not in done:
                index, rest = path[-1]
                if not rest:
                    done.add(index)
                    active.discard(index)
                    path.pop()
                    continue
                following = rest.pop()
                if following in active:
                    return True
                if following not in done:
                    active.add(following)
                    path.append((following, self._targets(self.program.states[following])))
        return False

    @staticmethod
    def _targets(state: State) -> list[int]:
        return [each for each in [state.default, *[t.next for t in state.transitions]] if each is not None]

    # -- states

    def _label(self, index: int) -> str:
        return identifier("state", index, self.program.states[index].name)

    def _emit_state(self, out: Emitter, state: State, following: State | None, loops: bool) -> None:
        out.line()
        out.line(comment(f"state {state.name}"))
        out.label(self._label(state.index))
        if loops:
            out.line(f"if (++visited > {MAX_STATES_VISITED}) {{")
            self._reject(out, "ParserTimeout")
            out.line("}")
        for op in state.ops:
            self._emit_op(out, op)
        self._emit_select(out, state)
        if following is None or state.default != following.index:
            out.line(f"goto {'done' if state.default is None else self._label(state.default)};")

    def _reject(self, out: Emitter, error: str) -> None:
        out.line(f"error = {self.program.errors[error]}; {comment(error)}")
        out.line("goto done;")

    def _need(self, out: Emitter, text: str) -> None:
        out.line(f"if (PLAIT_UNLIKELY((uint64_t)(end - at) < {text})) {{")
        self._reject(out, "PacketTooShort")
        out.line("}")

    def _emit_op(self, out: Emitter, op: model.ParserOp) -> None:
        match op:
            case Extract():
                self._emit_extract(out, op)
            case model.Assign(target, value):
                self._need_lookahead(out, value)
                self.stores.assign(out, target, value)
            case model.Verify(condition, error):
                out.line(f"if (PLAIT_UNLIKELY(!{self.expressions.bool(condition)})) {{")
                out.line(f"error = (uint32_t){self.expressions.u64(error)};")
                out.line("goto done;")
                out.line("}")
            case model.Advance(bits):
                self._emit_advance(out, bits)
            case model.Call(primitive):
                self.actions.emit_primitive(out, primitive)

    def _need_lookahead(self, out: Emitter, value: Data) -> None:
        bits = lookahead_bits(value)
        if bits:
            self._need(out, str((bits + 7) // 8))

    def _emit_advance(self, out: Emitter, bits: Data) -> None:
        self._need_lookahead(out, bits)
        if isinstance(bits, model.Const) and bits.value % 8 == 0:
            self._need(out, str(bits.value // 8))
            out.line(f"at += {bits.value // 8};")
            return
        out.line("{")
        out.line(f"uint64_t bits = {self.expressions.count(bits)};")
        out.line("if (bits % 8) {")
        self._reject(out, "ParserInvalidArgument")
        out.line("}")
        self._need(out, "bits / 8")
        out.lines("at += bits / 8;", "}")

    def _emit_extract(self, out: Emitter, op: Extract) -> None:
        """Checks in BMv2's order: a free element, the length argument, enough data, the longest header."""
        kind = self._extracted_type(op)
        header = model.extracted_header(op.target, op.member, kind)
        bound = None if isinstance(op.target, model.HeaderRef) else op.target.stack
        if bound is not None:
            out.line(f"if (PLAIT_UNLIKELY({self.layout.next_index(bound)} >= {self.layout.size(bound)})) {{")
            self._reject(out, "StackOutOfBounds")
            out.line("}")
        fixed = kind.fixed_bits // 8
        path = self.layout.header_expr(header, writing=True)
        if op.length is None:
            self._need(out, str(fixed))
            self.stores.emit_load(out, kind, path, 0, len(kind.fields), "at")
            out.line(f"at += {fixed};")
        else:
            assert kind.varbit is not None
            self._need_lookahead(out, op.length)
            if op.length_within:
                self._need(out, str(fixed))
                self.stores.emit_load(out, kind, path, 0, kind.varbit, "at")
            out.line("{")
            out.line(f"uint64_t bits = {self.expressions.count(op.length)};")
            out.line("if (bits % 8) {")
            self._reject(out, "ParserInvalidArgument")
            out.line("}")
            self._need(out, f"bits / 8 + {fixed}")
            out.line(f"if (bits / 8 > {kind.fields[kind.varbit].width // 8}) {{")
            self._reject(out, "HeaderTooShort")
            out.line("}")
            if not op.length_within:
                self.stores.emit_load(out, kind, path, 0, kind.varbit, "at")
            out.line(f"at += {sum(each.width for each in kind.fields[: kind.varbit]) // 8};")
            varbit = f"{path}.{self.layout.field_name(kind, kind.varbit)}"
            out.line(f"{varbit}.bytes = (uint32_t)(bits / 8);")
            out.line(f"memcpy({varbit}.data, at, {varbit}.bytes);")
            out.line(f"at += {varbit}.bytes;")
            self.stores.emit_load(out, kind, path, kind.varbit + 1, len(kind.fields), "at")
            out.line(f"at += {sum(each.width for each in kind.fields[kind.varbit + 1 :]) // 8};")
            out.line("}")
        self.stores.mark_valid(out, header)
        if bound is not None:
            out.line(f"{self.layout.next_index(bound)}++;")

    def _extracted_type(self, op: Extract) -> model.HeaderType:
        match op.target:
            case model.HeaderRef(header):
                return header.type
            case model.StackRef(stack):
                return stack.type
            case model.UnionStackRef(union_stack):
                assert op.member is not None
                return self.program.headers[self.program.unions[union_stack.unions[0]].headers[op.member]].type

    # -- select

    def _emit_select(self, out: Emitter, state: State) -> None:
        bits = max((lookahead_bits(value) for value, _ in state.key), default=0)
        if bits:
            self._need(out, str((bits + 7) // 8))
        if not state.key or not state.transitions:
            return
        items = [item for value, width in state.key for item in self.padded(value, width)]
        total = 8 * state.key_bytes
        out.line("{")
        if total <= 64 and all(each.value_set is None for each in state.transitions):
            texts = _shifted(items, total)
            out.line(f"uint64_t key = {texts};")
            for each in state.transitions:
                full = each.mask == (1 << total) - 1
                left = "key" if full else f"(key & {constant(each.mask, 64)})"
                self._goto_if(out, f"{left} == {constant(each.value, 64)}", each.next)
        else:
            self.emit_key(out, items, state.key_bytes)
            for each in state.transitions:
                if each.value_set is not None:
                    table = len(self.program.tables) + each.value_set
                    test = f"instance->runtime->lookup(instance->tables[{table}], key) != NULL"
                else:
                    test = _bytes_test(each.value, each.mask, state.key_bytes)
                self._goto_if(out, test, each.next)
        out.line("}")

    def _goto_if(self, out: Emitter, test: str, following: int | None) -> None:
        out.line(f"if ({test})")
        out.line(f"    goto {'done' if following is None else self._label(following)};")

    def padded(self, value: Data, width: int) -> list[Item]:
        """A key part, padded with zero bits to whole bytes."""
        return padded_items(self.layout, self.expressions, value, width)

    @staticmethod
    def emit_key(out: Emitter, items: list[Item], size: int) -> None:
        emit_key(out, items, size)


def padded_items(layout: Layout, expressions: Expressions, value: Data, width: int) -> list[Item]:
    padding = -width % 8
    items = [Item(padding, lambda low, count: constant(0, 64))] if padding else []
    if isinstance(value, FieldUse):
        items.append(place_item(layout.place(value), width))
    elif isinstance(value, model.Lookahead) and width > 64:
        items += [
            text_item(f"plait_load_bits(at, {value.offset + start}, {min(64, width - start)})", min(64, width - start))
            for start in range(0, width, 64)
        ]
    else:
        items.append(text_item(expressions.exact(value).text, width))
    return items


def emit_key(out: Emitter, items: list[Item], size: int) -> None:
    """Declares `key`, with the big-endian bytes of `items`."""
    out.line(f"uint8_t key[{max(size, 1)}];")
    for word in pack(items):
        out.line(f"plait_store{8 * word.size}(key + {word.offset}, {word.text});")
    if size == 0:
        out.line("key[0] = 0;")


def _shifted(items: list[Item], total: int) -> str:
    """At most 64 bits of items as a number."""
    parts = []
    rest = total
    for item in items:
        rest -= item.width
        text = item.slice(0, item.width)
        if text != constant(0, 64):
            parts.append(f"({text} << {rest})" if rest else text)
    return " | ".join(parts) if parts else constant(0, 64)


def _bytes_test(value: int, mask: int, size: int) -> str:
    tests = []
    for offset in range(0, size, 8):
        count = min(8, size - offset)
        shift = 8 * (size - offset - count)
        part_mask = mask >> shift & ((1 << (8 * count)) - 1)
        part_value = value >> shift & ((1 << (8 * count)) - 1)
        if part_mask:
            load = f"plait_load_bits(key, {8 * offset}, {8 * count})"
            tests.append(f"({load} & {constant(part_mask, 64)}) == {constant(part_value, 64)}")
    return " && ".join(tests) if tests else "1"


def lookahead_bits(node: object) -> int:
    """Bits beyond the cursor that evaluating a node reads."""
    if isinstance(node, model.Lookahead):
        return node.offset + node.width
    found = 0
    pending = [node]
    while pending:
        each = pending.pop()
        if isinstance(each, model.Lookahead):
            found = max(found, each.offset + each.width)
        for name in getattr(type(each), "__slots__", ()):
            child = getattr(each, name)
            if isinstance(child, model.Expr):
                pending.append(child)
    return found

"""Actions: a C function each, and the statements of every primitive."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from . import model
from .emitter import Emitter, comment, identifier, string_literal
from .errors import ProgramError
from .expr import Expressions
from .hashing import Hashes
from .layout import Layout
from .model import Action, FieldUse, Primitive, Program
from .storing import Stores

# Backward jumps are loops: more turns than this end the action, so that no program can hold the switch.
MAX_TURNS = 100_000

# Primitives after which nothing more of the pipeline runs.
_LEAVING = ("exit", "assert", "assume")


def param_offsets(action: Action) -> tuple[list[int], int]:
    """Offsets of an action's parameters in bytes, and the bytes of all."""
    offsets = []
    total = 0
    for param in action.params:
        offsets.append(total)
        total += 8 if param.width <= 64 else (((param.width + 7) // 8) + 7) // 8 * 8
    return offsets, total


def can_exit(action: Action) -> bool:
    return any(primitive.op in _LEAVING for primitive in action.body)


def action_name(action: Action) -> str:
    return identifier("action", action.index, action.name)


class Actions:
    def __init__(
        self, program: Program, layout: Layout, expressions: Expressions, stores: Stores, hashes: Hashes
    ) -> None:
        self.program = program
        self.layout = layout
        self.expressions = expressions
        self.stores = stores
        self.hashes = hashes
        self._loops = False  # of the action being emitted: whether it jumps backward, and its length
        self._end = 0
        self._emitters: dict[str, Callable[..., None]] = {
            name[4:]: getattr(self, name) for name in dir(self) if name.startswith("_op_")
        }

    # -- functions

    def emit_function(self, out: Emitter, action: Action) -> None:
        """`bool action(...)`: whether the pipeline goes on; a parameterless void where it always does."""
        leaves = can_exit(action)
        out.line(comment(action.name))
        out.source(action.source)
        out.line(f"static inline PLAIT_UNUSED {'bool' if leaves else 'void'} {action_name(action)}(")
        out.line("    struct plait_instance *instance, struct plait_packet *packet, struct phv *phv,")
        out.line("    const uint64_t *params)")
        out.line("{")
        if leaves:
            out.line("bool go_on = true;")
        self.expressions.params_offsets = param_offsets(action)[0]
        self._loops = False
        self._end = len(action.body)
        if any(p.op in ("_jump", "_jump_if_zero") and p.args[-1] <= i for i, p in enumerate(action.body)):  # type: ignore[operator]
            self._loops = True
            out.line("uint32_t turns = 0;")
        targets = {p.args[-1] for p in action.body if p.op in ("_jump", "_jump_if_zero")}
        for index, primitive in enumerate(action.body):
            if index in targets:
                out.label(f"primitive_{index}")
            out.source(primitive.source)
            self.emit_primitive(out, primitive)
        if len(action.body) in targets or self._loops:
            out.label(f"primitive_{len(action.body)}")
        if leaves:
            out.line("return go_on;")
        out.line("}")
        out.line()
        self.expressions.params_offsets = []

    def emit_primitive(self, out: Emitter, primitive: Primitive) -> None:
        emitter = self._emitters.get(primitive.op.strip("_") if primitive.op.startswith("_jump") else primitive.op)
        if emitter is None:
            raise ProgramError("actions", f"primitive {primitive.op!r} is not implemented")
        emitter(out, *primitive.args)

    # -- primitives, by name

    def _op_no_op(self, out: Emitter) -> None:
        out.line(";")

    def _op_assign(self, out: Emitter, target: model.Data, value: model.Data) -> None:
        self.stores.assign(out, target, value)

    def _op_assign_VL(self, out: Emitter, target: FieldUse, source: FieldUse) -> None:
        self.stores.assign_varbit(out, target, source)

    def _op_assign_header(self, out: Emitter, target: model.HeaderExpr, source: model.HeaderExpr) -> None:
        self.stores.assign_header(out, target, source)

    def _op_assign_union(self, out: Emitter, target: model.UnionExpr, source: model.UnionExpr) -> None:
        to = self.layout.union_expr(target, writing=True)
        out.line(f"{to} = {self.layout.union_expr(source)};")

    def _op_assign_header_stack(self, out: Emitter, target: model.StackRef, source: model.StackRef) -> None:
        self._assign_stack(out, target.stack, source.stack)

    def _op_assign_union_stack(self, out: Emitter, target: model.UnionStackRef, source: model.UnionStackRef) -> None:
        self._assign_stack(out, target.stack, source.stack)

    def _assign_stack(self, out: Emitter, target: Any, source: Any) -> None:
        to, value = self.layout.stack_name(target), self.layout.stack_name(source)
        if to == value:
            return
        # Whole elements: fields of an invalid header are not read as anything but zero afterwards or before.
        out.line(f"memcpy(phv->{to}, phv->{value}, {self.layout.size(target)} * sizeof phv->{to}[0]);")
        out.line(f"phv->{to}_next = phv->{value}_next;")

    def _op_add_header(self, out: Emitter, header: model.HeaderExpr) -> None:
        self.stores.add_header(out, header)

    def _op_remove_header(self, out: Emitter, header: model.HeaderExpr) -> None:
        self.stores.remove_header(out, header)

    def _op_push(self, out: Emitter, stack: model.StackRef | model.UnionStackRef, count: model.Data) -> None:
        """The whole array moves up, and what comes in below is invalid."""
        name, size = self._shift(out, stack, count)
        out.line("if (count > 0) {")
        out.line(f"memmove(phv->{name} + count, phv->{name}, ({size} - count) * sizeof phv->{name}[0]);")
        out.line(f"memset(phv->{name}, 0, count * sizeof phv->{name}[0]);")
        out.line(f"phv->{name}_next = phv->{name}_next + count < {size} ? phv->{name}_next + count : {size};")
        out.lines("}", "}")

    def _op_pop(self, out: Emitter, stack: model.StackRef | model.UnionStackRef, count: model.Data) -> None:
        name, size = self._shift(out, stack, count)
        out.line("if (count > 0) {")
        out.line(f"memmove(phv->{name}, phv->{name} + count, ({size} - count) * sizeof phv->{name}[0]);")
        out.line(f"memset(phv->{name} + {size} - count, 0, count * sizeof phv->{name}[0]);")
        out.line(f"phv->{name}_next = phv->{name}_next > count ? phv->{name}_next - count : 0;")
        out.lines("}", "}")

    def _shift(self, out: Emitter, stack: model.StackRef | model.UnionStackRef, count: model.Data) -> tuple[str, int]:
        size = self.layout.size(stack.stack)
        out.line("{")
        out.line(f"uint32_t count = (uint32_t)plait_min64({self.expressions.count(count)}, {size});")
        return self.layout.stack_name(stack.stack), size

    def _op_jump(self, out: Emitter, offset: int) -> None:
        if self._loops:
            out.line(f"if (++turns > {MAX_TURNS})")
            out.line(f"    goto primitive_{self._end};")
        out.line(f"goto primitive_{offset};")

    def _op_jump_if_zero(self, out: Emitter, value: model.Data, offset: int) -> None:
        condition = f"!{self.expressions.bool(model.DataToBool(value))}"
        if self._loops:
            out.line(f"if ({condition} && ++turns <= {MAX_TURNS})")
        else:
            out.line(f"if ({condition})")
        out.line(f"    goto primitive_{offset};")

    def _op_exit(self, out: Emitter) -> None:
        out.line("go_on = false;")  # the rest of the action still runs, as in BMv2

    def _op_mark_to_drop(self, out: Emitter, header: model.HeaderExpr) -> None:
        kind = self.layout.kind_of(header)
        use = FieldUse(header, kind, kind.by_name["egress_spec"])
        place = self.layout.place(use, writing=True)
        if place.bits > 64 or place.limbs:
            raise ProgramError("actions", "mark_to_drop: 'egress_spec' is wider than 64 bits")
        self.stores.store_text(
            out, place, "instance->drop_port" if place.bits > 16 else "(uint16_t)instance->drop_port"
        )
        if "mcast_grp" in kind.by_name:
            self.stores.assign(out, FieldUse(header, kind, kind.by_name["mcast_grp"]), model.Const(0))

    def _op_drop(self, out: Emitter) -> None:
        out.line("packet->std.egress_spec = instance->drop_port;")
        out.line("packet->std.mcast_grp = 0;")

    def _op_modify_field_with_hash_based_offset(
        self, out: Emitter, target: model.Data, base: model.Data, calculation: model.Calculation, size: model.Data
    ) -> None:
        """base + hash % size, everything in 64 bits, and a size of 0 means 1."""
        call = self.hashes.call(calculation)
        modulus = self.expressions.interval(size)
        if isinstance(size, model.Const):
            divisor = size.value % (1 << 64) or 1
            text = f"{call} % UINT64_C({divisor})"
        elif modulus is not None and modulus[0] > 0:
            text = f"{call} % {self.expressions.u64(size)}"
        else:
            text = f"plait_mod64({call}, plait_hash_size({self.expressions.u64(size)}))"
        if not (isinstance(base, model.Const) and base.value == 0):
            text = f"({text}) + {self.expressions.u64(base)}"
        self._store_u64(out, target, text)

    def _store_u64(self, out: Emitter, target: model.Data, text: str) -> None:
        """Stores C text of a uint64_t."""
        out.line("{")
        out.line(f"uint64_t result = {text};")
        self.stores.assign(out, target, model.Local("result"))
        out.line("}")

    def _op_modify_field_rng_uniform(self, out: Emitter, target: model.Data, low: model.Data, high: model.Data) -> None:
        out.line("{")
        out.line(f"uint64_t low = {self.expressions.u64(low)}, high = {self.expressions.u64(high)};")
        out.line("if (low <= high) {")
        self._store_u64(out, target, "instance->runtime->random(instance, low, high)")
        out.lines("}", "}")

    def _op_count(self, out: Emitter, counter: model.Array, index: model.Data) -> None:
        out.line(f"plait_count(&instance->counters[{counter.index}], {self.expressions.count(index)}, packet);")

    def _op_execute_meter(self, out: Emitter, meter: model.Array, index: model.Data, target: model.Data) -> None:
        out.line("{")
        out.line(f"uint64_t index = {self.expressions.count(index)};")
        out.line(f"if (PLAIT_LIKELY(index < instance->meters[{meter.index}].size)) {{")
        self._store_u64(out, target, f"plait_meter_color(instance, &instance->meters[{meter.index}], index, packet)")
        out.lines("}", "}")

    def _op_register_read(self, out: Emitter, target: model.Data, register: model.Array, index: model.Data) -> None:
        array = f"instance->registers[{register.index}]"
        out.line(f"if (PLAIT_LIKELY({self.expressions.count(index)} < {array}.size)) {{")
        self.stores.assign(out, target, model.RegisterCell(register, index))
        out.line("}")

    def _op_register_write(self, out: Emitter, register: model.Array, index: model.Data, value: model.Data) -> None:
        self.stores.assign(out, model.RegisterCell(register, index), value)

    def _op_generate_digest(self, out: Emitter, receiver: model.Data, learn_list: model.Data) -> None:
        out.line(f"packet->std.digest_list = (uint32_t)({self.expressions.u64(learn_list)} & 0xffff);")

    def _clone(self, out: Emitter, session: model.Data, field_list: model.Data) -> None:
        text = f"(uint32_t)({self.expressions.u64(session)} & 0x7fff)"
        out.line(f"packet->std.clone_session = PLAIT_CLONE_REQUESTED | {text};")
        out.line(f"packet->std.clone_field_list = (uint32_t)({self.expressions.u64(field_list)} & 0xffff);")

    _op_clone_ingress_pkt_to_egress = _clone
    _op_clone_egress_pkt_to_egress = _clone

    def _again(self, out: Emitter, request: str, field_list: model.Data) -> None:
        # Lists are numbered from 1; 0 asks for nothing.
        out.line(f"packet->std.{request} = plait_list_request({self.expressions.u64(field_list)});")

    def _op_resubmit(self, out: Emitter, field_list: model.Data) -> None:
        self._again(out, "resubmit_field_list", field_list)

    def _op_recirculate(self, out: Emitter, field_list: model.Data) -> None:
        self._again(out, "recirculate_field_list", field_list)

    def _op_truncate(self, out: Emitter, size: model.Data) -> None:
        out.line(f"plait_truncate(packet, {self.expressions.count(size)});")

    def _op_log_msg(self, out: Emitter, text: str, values: tuple[model.Data, ...]) -> None:
        pieces = re.split(r"\{[^}]*\}", text)
        out.line("{")
        out.lines("struct plait_text text;", "text.used = 0;", "text.text[0] = 0;")
        for index, piece in enumerate(pieces):
            if piece:
                out.line(f"plait_text_append(&text, {string_literal(piece)});")
            if index < len(values) and index < len(pieces) - 1:
                interval = self.expressions.interval(values[index])
                signed = "true" if interval is not None and interval[0] < 0 else "false"
                out.line(f"plait_text_number(&text, {self.expressions.u64(values[index])}, {signed});")
        out.line("instance->runtime->log(instance, text.text);")
        out.line("}")

    def _check(self, out: Emitter, condition: model.Bool) -> None:
        """BMv2 aborts the process; a switch logs and drops the packet."""
        out.line(f"if (PLAIT_UNLIKELY(!{self.expressions.bool(condition)})) {{")
        out.line('instance->runtime->log(instance, "assertion failed: packet dropped");')
        self._op_drop(out)
        out.line("go_on = false;")
        out.line("}")

    _op_assert = _check
    _op_assume = _check

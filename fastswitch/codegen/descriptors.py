"""The static description of a program that the engine and the control plane read."""

from __future__ import annotations

from .actions import param_offsets
from .emitter import Emitter, comment, string_literal
from .model import Array, Program, Table

_KINDS = {
    "simple": "PLAIT_TABLE_SIMPLE",
    "indirect": "PLAIT_TABLE_INDIRECT",
    "indirect_ws": "PLAIT_TABLE_INDIRECT_SELECTOR",
}
VALUE_SET_SIZE = 1024


class Descriptors:
    """Emits descriptors.  A value set is an exact table after the program's own, whose entries run nothing."""

    def __init__(self, program: Program) -> None:
        self.program = program

    @property
    def table_count(self) -> int:
        return len(self.program.tables) + len(self.program.value_sets)

    @property
    def action_count(self) -> int:
        # Entries of value sets need an action to name.
        return len(self.program.actions) + bool(self.program.value_sets)

    def emit(self, out: Emitter) -> None:
        self._emit_actions(out)
        self._emit_tables(out)
        for name, arrays in (
            ("counters", self.program.counters),
            ("registers", self.program.registers),
            ("meters", self.program.meters),
        ):
            self._emit_arrays(out, name, arrays)
        self._emit_learn(out)

    def _emit_actions(self, out: Emitter) -> None:
        for action in self.program.actions:
            if action.params:
                offsets, _ = param_offsets(action)
                out.line(f"static const struct plait_param_desc action_{action.index}_params[] = {{")
                for param, offset in zip(action.params, offsets, strict=True):
                    out.line(f"{{{string_literal(param.name)}, {param.width}, {offset}}},")
                out.line("};")
        out.line("static const struct plait_action_desc actions[] = {")
        for action in self.program.actions:
            params = f"action_{action.index}_params" if action.params else "NULL"
            size = param_offsets(action)[1]
            out.line(f"{{{string_literal(action.name)}, {action.id}u, {len(action.params)}, {size}, {params}}},")
        if self.program.value_sets:
            out.line('{"value set member", UINT32_MAX, 0, 0, NULL},')
        if not self.action_count:
            out.line("{NULL, 0, 0, 0, NULL}")
        out.lines("};", "")

    def _emit_tables(self, out: Emitter) -> None:
        for table in self.program.tables:
            if table.keys:
                keys = [(key.name, key.match, key.width) for key in table.keys]
                _emit_keys(out, table.index, keys)
        for value_set in self.program.value_sets:
            widths = value_set.key_widths or (value_set.width,)
            index = len(self.program.tables) + value_set.index
            _emit_keys(out, index, [(f"key{i}", "exact", width) for i, width in enumerate(widths)])
        out.line("static const struct plait_table_desc tables[] = {")
        for table in self.program.tables:
            self._emit_table(out, table)
        for value_set in self.program.value_sets:
            widths = value_set.key_widths or (value_set.width,)
            index = len(self.program.tables) + value_set.index
            size = sum((width + 7) // 8 for width in widths)
            out.line(
                f"{{{string_literal(value_set.name)}, PLAIT_TABLE_SIMPLE, {VALUE_SET_SIZE}, {len(widths)}, {size}, "
                f"table_{index}_keys, false, false, -1}},"
            )
        if not self.table_count:
            out.line("{NULL, PLAIT_TABLE_SIMPLE, 0, 0, 0, NULL, false, false, -1}")
        out.lines("};", "")

    @staticmethod
    def _emit_table(out: Emitter, table: Table) -> None:
        keys = f"table_{table.index}_keys" if table.keys else "NULL"
        meter = table.meter.index if table.meter is not None else -1
        flags = ", ".join("true" if flag else "false" for flag in (table.with_counters, table.support_timeout))
        out.line(
            f"{{{string_literal(table.name)}, {_KINDS[table.kind]}, {table.size}, {len(table.keys)}, "
            f"{table.key_bytes}, {keys}, {flags}, {meter}}},"
        )

    @staticmethod
    def _emit_arrays(out: Emitter, name: str, arrays: list[Array]) -> None:
        out.line(f"static const struct plait_array_desc {name}[] = {{")
        for array in arrays:
            direct = "true" if array.direct else "false"
            out.line(f"{{{string_literal(array.name)}, {array.size}, {array.width}, {direct}}},")
        if not arrays:
            out.line("{NULL, 0, 0, false}")
        out.lines("};", "")

    def _emit_learn(self, out: Emitter) -> None:
        for index, each in enumerate(self.program.learn_lists):
            widths = ", ".join(str(use.field.width) for use in each.fields) or "0"
            out.line(comment(f"digest {each.name}"))
            out.line(f"static const uint32_t learn_{index}_widths[] = {{{widths}}};")
        out.line("static const struct plait_learn_desc learn[] = {")
        for index, each in enumerate(self.program.learn_lists):
            out.line(f"{{{each.id}, {len(each.fields)}, learn_{index}_widths}},")
        if not self.program.learn_lists:
            out.line("{0, 0, NULL}")
        out.lines("};", "")

    def emit_pipeline(self, out: Emitter) -> None:
        program = self.program
        out.line('__attribute__((visibility("default"))) const struct plait_pipeline plait_pipeline = {')
        fields: dict[str, object] = {
            "abi": "PLAIT_PIPELINE_ABI",
            "phv_size": "sizeof(struct phv)",
            "program": string_literal(program.name),
            "n_tables": self.table_count,
            "n_actions": self.action_count,
            "n_counters": len(program.counters),
            "n_registers": len(program.registers),
            "n_meters": len(program.meters),
            "n_learn": len(program.learn_lists),
        }
        for name in ("tables", "actions", "counters", "registers", "meters", "learn"):
            fields[name] = name
        for name in ("parse", "ingress", "egress", "deparse", "copy_field_list", "reset_metadata"):
            fields[name] = name
        for name, value in fields.items():
            out.line(f".{name} = {value},")
        out.line("};")


def _emit_keys(out: Emitter, table: int, keys: list[tuple[str, str, int]]) -> None:
    out.line(f"static const struct plait_key_desc table_{table}_keys[] = {{")
    offset = 0
    for name, match, width in keys:
        out.line(f"{{{string_literal(name)}, PLAIT_{match.upper()}, {width}, {offset}}},")
        offset += (width + 7) // 8
    out.line("};")

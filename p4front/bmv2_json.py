"""BMv2's JSON (format 2.23) from the elaborated program."""

from __future__ import annotations

from typing import Any

from p4front import fold, ir, json_expr
from p4front import p4types as t
from p4front.diagnostics import Diagnostics, SourceText, Span
from p4front.elaborate import Elaborated, Pipeline
from p4front.json_actions import ActionWriter, source_info
from p4front.json_parser import ParserWriter
from p4front.json_tables import PipelineWriter
from p4front.layout import HeaderTypeLayout

Json = dict[str, Any]
VERSION = [2, 23]
COMPILER = "p4front"


def make_json(program: Elaborated, name: str, source: SourceText, diagnostics: Diagnostics) -> Json:
    """The JSON of a program; `name` is the file it came from."""
    return _Builder(program, name, source, diagnostics).build()


class _Builder:
    def __init__(self, program: Elaborated, name: str, source: SourceText, diagnostics: Diagnostics) -> None:
        self.program = program
        self.name = name
        self.source = source
        self.diagnostics = diagnostics

    def build(self) -> Json:
        program = self.program
        actions = ActionWriter(self.source, self.diagnostics)
        pipelines = PipelineWriter(program, self.source, actions, self.diagnostics)
        ingress_egress = (program.ingress, program.egress)
        written = [self._pipeline(pipelines, pipeline, number) for number, pipeline in enumerate(ingress_egress)]
        externs = self._externs()
        return {
            "header_types": self._header_types(),
            "headers": self._headers(),
            "header_stacks": self._stacks(),
            "header_union_types": self._union_types(),
            "header_unions": self._unions(),
            "header_union_stacks": self._union_stacks(),
            "field_lists": [self._field_list(item) for item in program.field_lists],
            "errors": [[name, value] for name, value in program.errors.items()],
            "enums": [],
            "parsers": [self._parser()],
            "parse_vsets": self._value_sets(),
            "deparsers": [self._deparser()],
            "meter_arrays": self._meters(externs),
            "counter_arrays": self._counters(externs),
            "register_arrays": self._registers(externs),
            "calculations": [self._calculation(item, number) for number, item in enumerate(program.calculations)],
            "learn_lists": [self._digest(item) for item in program.digests],
            "actions": pipelines.actions,
            "pipelines": written,
            "checksums": [self._checksum(item, number) for number, item in enumerate(program.checksums)],
            "force_arith": [],
            "extern_instances": [],
            "field_aliases": [[alias, [header, name]] for alias, header, name in program.layout.aliases],
            "program": self.name,
            "__meta__": {"version": VERSION, "compiler": COMPILER},
        }

    def _located(self, json: Json, span: Span) -> Json:
        info = source_info(self.source, span)
        if info is not None:
            # name and id stay in front, as p4c has it
            head: Json = {key: json[key] for key in ("name", "id") if key in json}
            return {**head, "source_info": info, **json}
        return json

    # headers

    def _header_types(self) -> list[Json]:
        layout = self.program.layout
        types = [layout.scalars, *layout.header_types.values()]
        return [self._header_type(item, number) for number, item in enumerate(types)]

    def _header_type(self, item: HeaderTypeLayout, number: int) -> Json:
        fields: list[list[object]] = [list(field) for field in item.fields]
        used = sum(width for _, width, _ in item.fields if isinstance(width, int))
        if used % 8 and item.type is not None and item.type.decl is not None:
            span = item.type.decl.name_span
            self.diagnostics.error(f"header {item.name} has {used} bits: BMv2 needs a multiple of 8", span)
        if used % 8:
            padding = "_padding_0" if item is self.program.layout.scalars else "_padding"
            fields.append([padding, 8 - used % 8, False])
        json: Json = {"name": item.name, "id": number, "fields": fields}
        if item.max_length is not None:
            json["max_length"] = item.max_length
        return json

    def _headers(self) -> list[Json]:
        return [
            {
                "name": item.name, "id": number, "header_type": item.type_name,
                "metadata": item.metadata, "pi_omit": True,
            }
            for number, item in enumerate(self.program.layout.headers.values())
        ]  # fmt: skip

    def _stacks(self) -> list[Json]:
        ids = {name: number for number, name in enumerate(self.program.layout.headers)}
        return [
            {
                "name": item.name, "id": number, "header_type": item.type_name, "size": len(item.elements),
                "header_ids": [ids[name] for name in item.elements],
            }
            for number, item in enumerate(self.program.layout.stacks.values())
        ]  # fmt: skip

    def _union_types(self) -> list[Json]:
        layout = self.program.layout
        return [
            {
                "name": name, "id": number,
                "headers": [[f.name, layout.header_type(f.type, (-1, -1))] for f in item.fields.values()],  # type: ignore[arg-type]
            }
            for number, (name, item) in enumerate(layout.union_types.items())
        ]  # fmt: skip

    def _unions(self) -> list[Json]:
        ids = {name: number for number, name in enumerate(self.program.layout.headers)}
        return [
            {
                "name": item.name, "id": number, "union_type": item.type_name,
                "header_ids": [ids[member] for member in item.members], "pi_omit": True,
            }
            for number, item in enumerate(self.program.layout.unions.values())
        ]  # fmt: skip

    def _union_stacks(self) -> list[Json]:
        ids = {name: number for number, name in enumerate(self.program.layout.unions)}
        return [
            {
                "name": item.name, "id": number, "union_type": item.type_name, "size": len(item.elements),
                "header_union_ids": [ids[name] for name in item.elements],
            }
            for number, item in enumerate(self.program.layout.union_stacks.values())
        ]  # fmt: skip

    def _field_list(self, item: ir.FieldList) -> Json:
        elements = [json_expr.parameter(field) for field in item.fields]
        return {"id": item.id, "name": item.name, "elements": elements}

    # parser and deparser

    def _parser(self) -> Json:
        writer = ParserWriter(self.diagnostics)
        states = [writer.state(state, number) for number, state in enumerate(self.program.states)]
        return {"name": "parser", "id": 0, "init_state": "start", "parse_states": states}

    def _value_sets(self) -> list[Json]:
        found: list[Json] = []
        for member in ir.members_of(self.program.blocks[0]):
            if isinstance(member, ir.ValueSet):
                element = member.element
                fields = list(element.fields.values()) if isinstance(element, t.StructType) else []
                widths = [t.bit_width(field.type) or 0 for field in fields] or [t.bit_width(element) or 0]
                padded = sum((width + 7) // 8 * 8 for width in widths)
                found.append({"name": member.name, "id": len(found), "compressed_bitwidth": padded})
        return found

    def _deparser(self) -> Json:
        json: Json = {"name": "deparser", "id": 0, "order": self.program.deparser_order, "primitives": []}
        return self._located(json, self.program.deparser.name_span)

    # externs

    def _externs(self) -> list[ir.Extern]:
        found = list(self.program.externs)
        for block in self.program.blocks:
            found += [member for member in ir.members_of(block) if isinstance(member, ir.Extern)]
        return found

    def _counters(self, externs: list[ir.Extern]) -> list[Json]:
        found: list[Json] = []
        for item in externs:
            kind = item.type.extern.name
            json: Json = {"name": item.name, "id": len(found)}
            if kind == "counter":
                found.append(self._located({**json, "size": _number(item, "size"), "is_direct": False}, item.span))
            elif kind == "direct_counter" and item.tables:
                binding = item.tables[0].name
                found.append(self._located({**json, "is_direct": True, "binding": binding}, item.span))
        return found

    def _meters(self, externs: list[ir.Extern]) -> list[Json]:
        found: list[Json] = []
        for item in externs:
            kind = item.type.extern.name
            if kind == "direct_meter" and not item.tables and item.meter_read is not None:
                self.diagnostics.error(f"direct meter {item.name} is no table's 'meters'", item.meter_read)
            if kind not in ("meter", "direct_meter") or (kind == "direct_meter" and not item.tables):
                continue
            unit = item.args["type"]
            assert isinstance(unit, ir.Symbol)
            json: Json = {"name": item.name, "id": len(found), "is_direct": kind == "direct_meter"}
            if kind == "meter":
                json["size"] = _number(item, "size")
            else:
                if item.meter_result is None:
                    self.diagnostics.error(f"direct meter {item.name} is never read", item.span)
                    continue
                json["size"] = item.tables[0].size
                json["binding"] = item.tables[0].name
                json["result_target"] = [item.meter_result.header, item.meter_result.field]
            json["rate_count"] = 2
            json["type"] = unit.name
            found.append(self._located(json, item.span))
        return found

    def _registers(self, externs: list[ir.Extern]) -> list[Json]:
        found: list[Json] = []
        for item in externs:
            if item.type.extern.name != "register":
                continue
            width = t.bit_width(item.type.args[0])
            if width is None:
                self.diagnostics.error(f"BMv2 registers hold numbers, not '{item.type.args[0]}'", item.span)
                continue
            json: Json = {"name": item.name, "id": len(found), "size": _number(item, "size"), "bitwidth": width}
            found.append(self._located(json, item.span))
        return found

    # calculations

    def _calculation(self, item: ir.Calculation, number: int) -> Json:
        inputs: list[Json] = []
        for expr in item.inputs:
            json = json_expr.parameter(expr)
            value = fold.known(expr)
            if value is not None:
                width = t.bit_width(expr.type)
                if not width:
                    self.diagnostics.error("a constant needs a width here", item.span)
                json = {**json_expr.constant(int(value), expr.type), "bitwidth": width}
            inputs.append(json)
        if item.with_payload:
            inputs.append({"type": "payload", "value": None})
        return self._located({"name": item.name, "id": number, "algo": item.algorithm, "input": inputs}, item.span)

    def _checksum(self, item: ir.Checksum, number: int) -> Json:
        json: Json = {
            "name": "cksum" if number == 0 else f"cksum_{number - 1}",
            "id": number,
            "target": [item.target.header, item.target.field],
            "type": "generic",
            "calculation": item.calculation,
            "verify": item.verify,
            "update": item.update,
            "if_cond": json_expr.condition(item.condition),
        }
        return self._located(json, item.span)

    def _digest(self, item: ir.Digest) -> Json:
        elements = [json_expr.parameter(field) for field in item.fields]
        json: Json = {"id": item.id, "name": item.name, "elements": elements}
        return self._located(json, item.span)

    def _pipeline(self, writer: PipelineWriter, pipeline: Pipeline, number: int) -> Json:
        json: Json = {"name": pipeline.name, "id": number, **writer.write(pipeline)}
        return self._located(json, pipeline.decl.name_span)


def _number(extern: ir.Extern, name: str) -> int:
    value = fold.known(extern.args[name])
    assert isinstance(value, int)
    return value

"""BMv2 JSON to a checked `Program`.  Nothing in the document is trusted; what is wrong raises ProgramError."""

from __future__ import annotations

import json
from typing import Any

from . import model
from .algorithms import ALGORITHMS, find_algorithm
from .errors import ProgramError, no_such
from .load_expressions import MAX_PARAM_BITS, ExpressionLoader, load_source
from .load_headers import HeaderLoader, Names
from .load_ids import MAX_ID, check_enums, check_ids
from .load_pipelines import PipelineLoader
from .model import Action, ActionParam, Array, Calculation, Checksum, FieldList, HashItem, Program, State, Transition
from .reader import Reader

MAX_DOCUMENT_BYTES = 64 << 20
MAX_CELLS = 1 << 24
MAX_ARRAY_BYTES = 256 << 20  # of all registers, counters and meters of one switch
MAX_SUPPORTED_VERSION = (2, 24)
LIVE_STATE = ("queue_bytes", "queue_packets", "port_up")  # what the engine binds registers of the name plait.X to


def live_state(register: str) -> str | None:
    """What a register in the namespace `plait` is called there; a control's registers have its name before."""
    _, found, name = f".{register}".rpartition(".plait.")
    return name if found else None


def load_program(document: dict[str, Any] | bytes | str) -> Program:
    """Loads a document.

    >>> load_program({})
    Traceback (most recent call last):
    fastswitch.codegen.errors.ProgramError: document: empty
    """
    root = Reader(parse_document(document), "")
    try:
        return _Loader(root).program
    except RecursionError:
        raise ProgramError("document", "nested too deeply") from None


def parse_document(document: dict[str, Any] | bytes | str) -> dict[str, Any]:
    if not isinstance(document, dict):
        if len(document) > MAX_DOCUMENT_BYTES:
            raise ProgramError("document", f"more than {MAX_DOCUMENT_BYTES} bytes")
        try:
            document = json.loads(document)
        except (ValueError, RecursionError) as error:
            raise ProgramError("document", f"not JSON: {error}") from None
    if not isinstance(document, dict):
        raise ProgramError("document", "not a JSON object")
    if not document:
        raise ProgramError("document", "empty")
    return document


class _Loader:
    def __init__(self, root: Reader) -> None:
        name = root["program"].text() if root.has("program") else "unnamed"
        self.program = Program(name)
        self._check_version(root)
        check_ids(root)
        check_enums(root)
        self.headers = HeaderLoader(root, self.program)
        self.arrays = {kind: Names(f"{kind} array") for kind in ("register", "counter", "meter")}
        self.arrays["calculation"] = Names("calculation")
        self.expressions = ExpressionLoader(self.program, self.headers, self.arrays)
        self.value_sets = Names("value set")
        self.actions_by_id: dict[int, Action] = {}
        for extern in root.list_of("extern_instances"):
            kind = extern["type"].text() if extern.has("type") else "unnamed"
            raise extern.error(f"an instance of extern {kind[:80]!r}: v1model has none that BMv2 keeps as objects")
        self._load_arrays(root)
        self._load_calculations(root)
        self._load_value_sets(root)
        self._load_parser(root)
        self._load_deparser(root)
        self._load_actions(root)
        self._load_pipelines(root)
        self._load_checksums(root)
        self.program.learn_lists = self._load_field_lists(root, "learn_lists")
        self.program.field_lists = self._load_field_lists(root, "field_lists")

    @staticmethod
    def _check_version(root: Reader) -> None:
        meta = root.optional("__meta__")
        if meta is None or not meta.has("version"):
            return
        major, minor = (each.integer(0, 10_000) for each in meta["version"].elements(2))
        if major != MAX_SUPPORTED_VERSION[0] or minor > MAX_SUPPORTED_VERSION[1]:
            supported = ".".join(map(str, MAX_SUPPORTED_VERSION))
            raise meta["version"].error(f"version {major}.{minor} is not supported (2.0 to {supported} are)")

    # -- arrays

    def _load_arrays(self, root: Reader) -> None:
        total = 0
        for node in root.list_of("register_arrays"):
            live = live_state(node["name"].text())
            if live is not None and live not in LIVE_STATE:
                raise node["name"].error(f"no live state named {live[:40]!r}: plait has {', '.join(LIVE_STATE)}")
            width = node["bitwidth"].integer(1, MAX_PARAM_BITS if live is None else 64)
            total += self._add_array("register", self.program.registers, node, width, max(8, (width + 7) // 8))
        for node in root.list_of("counter_arrays"):
            total += self._add_array("counter", self.program.counters, node, 0, 16)
        for node in root.list_of("meter_arrays"):
            kind = node["type"].text()
            if kind not in ("bytes", "packets"):
                raise node["type"].error(f"unknown meter type {kind[:40]!r}")
            total += self._add_array("meter", self.program.meters, node, int(kind == "packets"), 64)
        if total > MAX_ARRAY_BYTES:
            raise ProgramError("register_arrays", f"arrays of {total} bytes, more than {MAX_ARRAY_BYTES}")

    def _add_array(self, kind: str, arrays: list[Array], node: Reader, width: int, cell_bytes: int) -> int:
        direct = node.flag("is_direct")
        size = 0 if direct else node["size"].integer(0, MAX_CELLS)
        target = None
        if direct and kind == "meter":
            target = self.expressions.plain_field(node["result_target"])
        made = Array(len(arrays), node["name"].text(), size, width, direct, target)
        arrays.append(made)
        self.arrays[kind].add(node, made.name, made)
        return size * cell_bytes

    # -- calculations

    def _load_calculations(self, root: Reader) -> None:
        for node in root.list_of("calculations"):
            made = self._calculation(node, node["name"].text())
            self.program.calculations.append(made)
            self.arrays["calculation"].add(node, made.name, made)

    def _calculation(self, node: Reader, name: str) -> Calculation:
        algorithm_name = node["algo"].text()
        algorithm = find_algorithm(algorithm_name)
        if algorithm is None:
            raise no_such(node["algo"].where, "hash algorithm", algorithm_name, ALGORITHMS)
        inputs: list[HashItem] = []
        payload = False
        for each in node["input"].elements():
            kind = each["type"].text()
            if kind == "field":
                field = self.expressions.field(each["value"])
                if not isinstance(field, model.FieldUse) or not isinstance(field.header, model.HeaderRef):
                    raise each.error("'$valid$' cannot be hashed")
                inputs.append(HashItem(field.header.header, field.index, width=field.field.width))
            elif kind == "hexstr":
                width = each["bitwidth"].integer(1, MAX_PARAM_BITS)
                inputs.append(HashItem(constant=each["value"].hexstr() % (1 << width), width=width))
            elif kind == "header":
                header = self.headers.headers.find(each["value"])
                inputs += [HashItem(header, i, width=f.width) for i, f in enumerate(header.type.fields)]
            elif kind == "payload":
                payload = True
            else:
                raise each["type"].error(f"unknown calculation input {kind[:40]!r}")
        state = None
        if algorithm.kind == "round_robin":
            # A hidden register: per switch, and zero again with every new program.
            state = len(self.program.registers)
            self.program.registers.append(Array(state, f"$round_robin.{state}", 1, 64))
        index = len(self.program.calculations)
        return Calculation(index, name, algorithm_name, algorithm, tuple(inputs), payload, state)

    def _selector(self, node: Reader) -> Calculation:
        return self._calculation(node, "selector")

    # -- parser and deparser

    def _load_value_sets(self, root: Reader) -> None:
        for node in root.list_of("parse_vsets"):
            width = node["compressed_bitwidth"].integer(1, MAX_PARAM_BITS)
            made = model.ValueSet(len(self.program.value_sets), node["name"].text(), width)
            self.program.value_sets.append(made)
            self.value_sets.add(node, made.name, made)

    def _load_parser(self, root: Reader) -> None:
        parser = _one_named(root["parsers"], "parser")
        if parser is None:
            return
        states = Names("parser state")
        nodes = parser["parse_states"].elements()
        for node in nodes:
            state = State(len(self.program.states), node["name"].text())
            states.add(node, state.name, state)
            self.program.states.append(state)
        self.expressions.in_parser = True
        for state, node in zip(self.program.states, nodes, strict=True):
            state.ops = [self._parser_op(each) for each in node["parser_ops"].elements()]
            state.key = [self._key_part(each) for each in node.list_of("transition_key")]
            for each in node["transitions"].elements():
                self._transition(state, each, states)
        self.expressions.in_parser = False
        if parser.has("init_state"):
            self.program.start = states.find(parser["init_state"]).index

    def _parser_op(self, node: Reader) -> model.ParserOp:
        op = node["op"].text()
        args = node["parameters"].elements()
        counts = {"extract": 1, "extract_VL": 2, "set": 2, "verify": 2, "advance": 1, "shift": 1, "primitive": 1}
        if op not in counts:
            raise node["op"].error(f"unknown parser operation {op[:40]!r}")
        if len(args) != counts[op]:
            raise node.error(f"parser operation {op!r} takes {counts[op]} arguments, found {len(args)}")
        if op in ("extract", "extract_VL"):
            return self._extract(node, args)
        if op == "set":
            target = self.expressions.lvalue(args[0])
            if isinstance(target, model.RegisterCell):
                raise args[0].error("a parser cannot set a register")
            value = self.expressions.data(args[1])
            if isinstance(value, model.FieldUse) and value.field.varbit:
                raise args[1].error("a variable-length field as a number")
            assert isinstance(target, model.FieldUse | model.ValidBit)
            return model.Assign(target, value)
        if op == "verify":
            condition = self.expressions.bool(args[0])
            if isinstance(args[1].value, int):  # old: the code itself
                if args[1].value not in self.program.errors.values():
                    raise args[1].error(f"no error has the code {str(args[1].value)[:40]}")
                return model.Verify(condition, model.Const(args[1].value))
            return model.Verify(condition, self.expressions.data(args[1]))
        if op == "advance":
            return model.Advance(self.expressions.data(args[0]))
        if op == "shift":
            return model.Advance(model.Const(8 * args[0].integer(0, 1 << 16)))
        primitive = self.expressions.primitive(args[0])
        if primitive.op in ("_jump", "_jump_if_zero", "exit"):
            raise args[0].error(f"primitive {primitive.op!r} in a parser")
        return model.Call(primitive)

    def _extract(self, node: Reader, args: list[Reader]) -> model.Extract:
        kind = args[0]["type"].text()
        value = args[0]["value"]
        member = None
        target: model.HeaderRef | model.StackRef | model.UnionStackRef
        if kind == "regular":
            header = self.headers.headers.find(value)
            if header.metadata:
                raise value.error(f"metadata {header.name[:80]!r} cannot be extracted")
            target, header_type = model.HeaderRef(header), header.type
        elif kind == "stack":
            stack = self.headers.stacks.find(value)
            target, header_type = model.StackRef(stack), stack.type
        elif kind == "union_stack":
            stack_name, member_name = value.elements(2)
            union_stack = self.headers.union_stacks.find(stack_name)
            member = self.expressions.union_member(union_stack, member_name)
            target = model.UnionStackRef(union_stack)
            first = self.program.unions[union_stack.unions[0]]
            header_type = self.program.headers[first.headers[member]].type
        else:
            raise args[0]["type"].error(f"unknown extract target {kind[:40]!r}")
        if len(args) == 2:
            if header_type.varbit is None:
                raise node.error(f"extract_VL of header type {header_type.name[:80]!r}, which has a fixed length")
            return model.Extract(target, member, self.expressions.data(args[1]))
        if header_type.varbit is None:
            return model.Extract(target, member, None)
        if header_type.index not in self.headers.lengths:
            raise node.error(f"extract of header type {header_type.name[:80]!r}, which has no length: use extract_VL")
        self.expressions.within = model.extracted_header(target, member, header_type)
        length = self.expressions.data(self.headers.lengths[header_type.index])
        self.expressions.within = None
        return model.Extract(target, member, length, length_within=True)

    def _key_part(self, node: Reader) -> tuple[model.Data, int]:
        value = self.expressions.data(node)
        match value:
            case model.FieldUse() if not value.field.varbit:
                return value, value.field.width
            case model.ValidBit():
                return value, 1
            case model.Lookahead():
                return value, value.width
        raise node.error("a select key must be a field of fixed width or a lookahead")

    def _transition(self, state: State, node: Reader, states: Names) -> None:
        following = states.find(node["next_state"]).index if node.has("next_state") else None
        kind = node["type"].text() if node.has("type") else "hexstr"
        if kind == "default" or (kind == "hexstr" and node.has("value") and node["value"].value == "default"):
            state.default = following
            return
        bits = 8 * state.key_bytes
        if not state.key:
            raise node.error("a value to compare with, but no key")
        full = (1 << bits) - 1
        if kind == "hexstr":
            mask = node["mask"].bytes(state.key_bytes) if node.has("mask") else full
            state.transitions.append(Transition(node["value"].bytes(state.key_bytes) & mask, mask, following))
            return
        if kind != "parse_vset":
            raise node["type"].error(f"unknown transition type {kind[:40]!r}")
        value_set: model.ValueSet = self.value_sets.find(node["value"])
        widths = tuple(width for _, width in state.key)
        if value_set.key_widths not in (None, widths):
            raise node.error(f"value set {value_set.name[:80]!r} is used with keys of different shapes")
        if node.has("mask") and node["mask"].unsigned(bits) != _ones(widths):
            raise node["mask"].error("a mask on a value set is not supported")
        value_set.key_widths = widths
        state.transitions.append(Transition(0, 0, following, value_set.index))

    def _load_deparser(self, root: Reader) -> None:
        deparser = _one_named(root["deparsers"], "deparser")
        if deparser is None:
            return
        for node in deparser["order"].elements():
            header = self.headers.headers.find(node)
            if header.metadata:
                raise node.error(f"metadata {header.name[:80]!r} cannot be emitted")
            self.program.deparse_order.append(header)
        if sum(header.type.max_bytes for header in self.program.deparse_order) > 8192:
            raise deparser.error("headers of more than 8192 bytes")
        self.program.deparse_calls = [self.expressions.primitive(each) for each in deparser.list_of("primitives")]
        for primitive in self.program.deparse_calls:
            if primitive.op in ("_jump", "_jump_if_zero", "exit"):
                raise deparser.error(f"primitive {primitive.op!r} in a deparser")

    # -- actions, pipelines, lists

    def _load_actions(self, root: Reader) -> None:
        for node in root["actions"].elements():
            identity = node["id"].integer(0, MAX_ID)
            params = tuple(
                ActionParam(each["name"].text(), each["bitwidth"].integer(1, MAX_PARAM_BITS))
                for each in node.list_of("runtime_data")
            )
            action = Action(len(self.program.actions), node["name"].text(), identity, params, (), load_source(node))
            self.expressions.action_body(action, node)
            self.program.actions.append(action)
            self.actions_by_id[identity] = action

    def _load_pipelines(self, root: Reader) -> None:
        loader = PipelineLoader(
            self.program, self.expressions, self.actions_by_id, self._selector, self.arrays["meter"]
        )
        loaded = [loader.load(node) for node in root["pipelines"].elements()]
        by_name = {pipeline.name: pipeline for pipeline in loaded}
        for name in by_name:
            if name not in ("ingress", "egress"):
                raise root["pipelines"].error(f"unknown pipeline {name[:40]!r}: v1model has 'ingress' and 'egress'")
        if len(by_name) != len(loaded) or "ingress" not in by_name:
            raise root["pipelines"].error("expected one pipeline 'ingress' and at most one 'egress'")
        self.program.ingress = by_name["ingress"]
        self.program.egress = by_name.get("egress")

    def _load_checksums(self, root: Reader) -> None:
        for node in root.list_of("checksums"):
            kind = node["type"].text() if node.has("type") else "generic"
            target = self.expressions.plain_field(node["target"])
            condition = self.expressions.bool(node["if_cond"]) if node.has("if_cond") else None
            if kind == "generic":
                calculation = self.arrays["calculation"].find(node["calculation"])
            elif kind == "ipv4":
                calculation = self._ipv4_checksum(node, target)
                valid = model.IsValid(target.header)
                condition = valid if condition is None else model.Logic("and", valid, condition)
            else:
                raise node["type"].error(f"unknown checksum type {kind[:40]!r}")
            name, verify, update = node["name"].text(), node.flag("verify", True), node.flag("update", True)
            self.program.checksums.append(
                Checksum(name, target, calculation, verify, update, condition, load_source(node))
            )

    def _ipv4_checksum(self, node: Reader, target: model.FieldUse) -> Calculation:
        """Before there were calculations: the sum over a whole header whose bytes 10 and 11 count as zero."""
        assert isinstance(target.header, model.HeaderRef)
        header, fields = target.header.header, target.type.fields
        if sum(field.width for field in fields[: target.index]) != 80 or target.field.width != 16:
            raise node["target"].error("an IPv4 checksum is the 16 bits after the first 10 bytes of its header")
        inputs = [HashItem(header, index, width=field.width) for index, field in enumerate(fields)]
        inputs[target.index] = HashItem(width=16)
        algorithm = find_algorithm("csum16")
        assert algorithm is not None
        made = Calculation(
            len(self.program.calculations), node["name"].text(), "csum16", algorithm, tuple(inputs), False
        )
        self.program.calculations.append(made)
        return made

    def _load_field_lists(self, root: Reader, section: str) -> list[FieldList]:
        found: list[FieldList] = []
        for node in root.list_of(section):
            identity = node["id"].integer(0, 0xFFFF)
            fields = []
            for each in node["elements"].elements():
                kind = each["type"].text()
                if kind == "hexstr" and section == "field_lists":
                    continue  # a constant has nothing to keep
                if kind != "field":
                    raise each["type"].error(f"{kind[:40]!r} in a list of fields")
                fields.append(self.expressions.plain_field(each["value"]))
            if sum(field.field.width for field in fields) > 8 * 4096:
                raise node.error("a list of more than 4096 bytes")
            found.append(FieldList(identity, node["name"].text(), tuple(fields)))
        return found


def _one_named(section: Reader, name: str) -> Reader | None:
    """simple_switch runs the parser named "parser" and the deparser named "deparser"; a single other one will do."""
    nodes = section.elements()
    if not nodes:
        return None
    for node in nodes:
        if node["name"].text() == name:
            return node
    if len(nodes) > 1:
        raise section.error(f"several, and none is named {name!r}")
    return nodes[0]


def _ones(widths: tuple[int, ...]) -> int:
    """All bits of a padded key, without the padding."""
    value = 0
    for width in widths:
        value = value << 8 * ((width + 7) // 8) | ((1 << width) - 1)
    return value

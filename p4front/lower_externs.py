"""v1model's externs to BMv2's primitives."""

from __future__ import annotations

from collections.abc import Callable

from p4front import consteval, fold, ir
from p4front import p4types as t
from p4front import syntax as ast
from p4front.key_names import annotated_name
from p4front.layout import STANDARD_METADATA
from p4front.lower_block import BlockLowering
from p4front.lower_expr import Env
from p4front.values import ObjectValue, SlicePlace, StructValue, Value, leaves

_PARSER_METHODS = ("extract", "lookahead", "advance", "length", "emit")


class ExternLowering(BlockLowering):
    """Adds externs to the blocks, and keeps what they make: digests, calculations, field lists."""

    def __init__(self, *args: object) -> None:
        super().__init__(*args)
        self.digests: list[ir.Digest] = []
        self.calculations: list[ir.Calculation] = []
        self.checksums: list[ir.Checksum] = []
        self.field_lists: dict[int, ir.FieldList] = {}
        self.stage = ""  # ingress or egress, while one of them is being lowered
        self.metadata_type: t.Type | None = None
        self.metadata_value: Value | None = None
        self._functions: dict[str, Callable[[ast.Call], None]] = {
            "mark_to_drop": self._mark_to_drop,
            "random": self._random,
            "hash": self._hash,
            "digest": self._digest,
            "clone": self._clone,
            "clone3": self._clone,
            "clone_preserving_field_list": self._clone,
            "resubmit": self._again,
            "resubmit_preserving_field_list": self._again,
            "recirculate": self._again,
            "recirculate_preserving_field_list": self._again,
            "truncate": self._same_name,
            "assert": self._same_name,
            "assume": self._same_name,
            "log_msg": self._log_msg,
            "verify": self._verify,
        }
        self._methods: dict[tuple[str, str], Callable[[ast.Call, ir.Extern], None]] = {
            ("counter", "count"): self._count,
            ("direct_counter", "count"): self._direct_count,
            ("meter", "execute_meter"): self._execute_meter,
            ("direct_meter", "read"): self._direct_meter,
            ("register", "read"): self._register_read,
            ("register", "write"): self._register_write,
        }

    def extern_call(self, call: ast.Call) -> Value | None:
        """A call of an extern function or method."""
        target = call.target
        if target.kind == "extern":
            function = self._functions.get(target.name)
            if function is None or target.decl.span is None:
                raise self.diagnostics.limit(f"BMv2 has no extern function '{target.name}'", call.span)
            function(call)
            return None
        if target.kind == "constructor":
            raise self.fail("an instance cannot be made in an expression", call.span)
        value = self.value(target.receiver)
        assert isinstance(value, ObjectValue)
        if isinstance(value.target, str):
            return self.packet_method(call, value.target)
        assert isinstance(value.target, ir.Extern)
        if isinstance(target.receiver, ast.Name) and target.receiver.decl in self.dropped:
            return None
        name = value.target.type.extern.name
        method = self._methods.get((name, target.name))
        if method is None:
            raise self.diagnostics.limit(f"BMv2 has no extern method '{name}.{target.name}'", call.span)
        method(call, value.target)
        return None

    def packet_method(self, call: ast.Call, packet: str) -> Value | None:
        """extract, lookahead, emit, ...: only where parser and deparser implement them."""
        raise self.fail(f"{call.target.name}() cannot be called here", call.span)

    # arguments

    def argument(self, call: ast.Call, position: int) -> ir.Expr:
        """A scalar argument."""
        expr = call.target.args[position]
        if expr is None:
            raise self.fail("this argument cannot be left out", call.span)
        return self.scalar(expr)

    def out_field(self, call: ast.Call, position: int) -> tuple[ir.FieldRef, Callable[[], None]]:
        """A field that a primitive can write, and what to do behind it where the argument is no plain field."""
        expr = call.target.args[position]
        value = self.value(expr)
        if isinstance(value, ir.FieldRef):
            return value, lambda: None
        if not isinstance(value, ir.Expr | SlicePlace):
            raise self.fail("an argument of this type is not supported yet", expr.span)
        place = self.layout.scalar(value.type, self.layout.unique("tmp"), expr.span)
        target = value
        return place, lambda: self.assign(target, place, expr.span)

    def field_arguments(self, value: Value, span: tuple[int, int], copy: bool = False) -> list[ir.Expr]:
        """The fields of a list for a calculation: fields and constants only.

        With `copy` all fields are temporaries, as p4c has it for `hash`: BMv2 leaves the fields of invalid headers out
        of a calculation, and a copy is never invalid.
        """
        if isinstance(value, SlicePlace):
            value = fold.slice_bits(value.base, value.high, value.low)
        found: list[ir.Expr] = []
        for leaf in _all_leaves(value):
            plain = isinstance(leaf, ir.FieldRef) and not copy
            found.append(leaf if plain or fold.known(leaf) is not None else self.saved(leaf, span))
        return found

    # functions

    def _mark_to_drop(self, call: ast.Call) -> None:
        self.out.append(ir.Prim(call.span, "mark_to_drop", [ir.HeaderParam(STANDARD_METADATA)]))

    def _random(self, call: ast.Call) -> None:
        target, after = self.out_field(call, 0)
        low, high = self.argument(call, 1), self.argument(call, 2)
        self.out.append(ir.Prim(call.span, "modify_field_rng_uniform", [target, low, high]))
        after()

    def _hash(self, call: ast.Call) -> None:
        target, after = self.out_field(call, 0)
        algorithm = self.algorithm(call, 1)
        base = self.argument(call, 2)
        data = self.field_arguments(self.value(call.target.args[3]), call.span, copy=True)
        limit = self.argument(call, 4)
        calculation = self.calculation(algorithm, data, call.span)
        params: list[ir.PrimParam] = [target, base, ir.NamedParam("calculation", calculation.name), limit]
        self.out.append(ir.Prim(call.span, "modify_field_with_hash_based_offset", params))
        after()

    def algorithm(self, call: ast.Call, position: int) -> str:
        """The name of a `HashAlgorithm`."""
        value = self.argument(call, position)
        if not isinstance(value, ir.Symbol):
            raise self.fail("the algorithm must be a constant", call.span)
        return value.name

    def calculation(
        self, algorithm: str, inputs: list[ir.Expr], span: tuple[int, int], with_payload: bool = False
    ) -> ir.Calculation:
        """A calculation over fields."""
        number = len(self.calculations)
        name = "calc" if number == 0 else f"calc_{number - 1}"
        made = ir.Calculation(name, algorithm, inputs, with_payload, span)
        self.calculations.append(made)
        return made

    def _digest(self, call: ast.Call) -> None:
        receiver = self.argument(call, 0)
        expr = call.target.args[1]
        value = self.value(expr)
        fields: list[ir.FieldRef] = []
        for leaf in _all_leaves(value):
            place = self.layout.scalar(leaf.type, self.layout.unique("digest"), call.span)
            self.assign(place, leaf, call.span)
            fields.append(place)
        data_type = call.target.function.params[1].type
        bound = t.substitute(data_type, call.target.bindings)
        number = len(self.digests) + 1
        if isinstance(bound, t.StructType):
            name = (annotated_name(bound.decl.annotations) if bound.decl else None) or bound.name
        else:
            name = f"digest_{number - 1}"
        self.digests.append(ir.Digest(number, name, bound, fields, expr.span))
        list_id = ir.Const(t.BitType(32), number)
        self.out.append(ir.Prim(call.span, "generate_digest", [receiver, list_id]))

    def _clone(self, call: ast.Call) -> None:
        which = self.argument(call, 0)
        session = self.argument(call, 1)
        list_id = 0
        if call.target.name == "clone3":
            list_id = self._legacy_list(call, 2)
        elif call.target.name == "clone_preserving_field_list":
            list_id = self._list_argument(call, 2)
        if not isinstance(which, ir.Symbol):
            raise self.fail("the kind of clone must be a constant", call.span)
        self._only_in("ingress" if which.name == "I2E" else "egress", f"clone of kind {which.name}", call)
        op = "clone_ingress_pkt_to_egress" if which.name == "I2E" else "clone_egress_pkt_to_egress"
        self.out.append(ir.Prim(call.span, op, [session, ir.Const(t.BitType(8), list_id)]))

    def _again(self, call: ast.Call) -> None:
        op = call.target.name.partition("_")[0]
        self._only_in("ingress" if op == "resubmit" else "egress", op, call)
        legacy = op == call.target.name
        list_id = self._legacy_list(call, 0) if legacy else self._list_argument(call, 0)
        self.out.append(ir.Prim(call.span, op, [ir.Const(t.BitType(8), list_id)]))

    def _only_in(self, stage: str, what: str, call: ast.Call) -> None:
        if self.stage != stage:
            self.diagnostics.limit(f"{what} is possible only in {stage}", call.span)

    def _legacy_list(self, call: ast.Call, position: int) -> int:
        """The field list of the deprecated `clone3`, `resubmit`, `recirculate`."""
        value = self.value(call.target.args[position])
        fields = [leaf for leaf in _all_leaves(value) if isinstance(leaf, ir.FieldRef)]
        number = 1 + max((key for key in self.field_lists), default=0)
        self.field_lists[number] = ir.FieldList(number, f"fl_{number}", fields, call.span)
        return number

    def _list_argument(self, call: ast.Call, position: int) -> int:
        """The list of the user metadata fields annotated `@field_list(index)`; lists are numbered from 1."""
        index = fold.known(self.argument(call, position))
        if not isinstance(index, int):
            raise self.fail("the index of a field list must be a constant", call.span)
        number = index + 1
        if number not in self.field_lists:
            fields: list[ir.FieldRef] = []
            if isinstance(self.metadata_type, t.StructType) and isinstance(self.metadata_value, StructValue):
                for name, item in self.metadata_type.fields.items():
                    annotations = item.decl.annotations if item.decl is not None else []
                    if self._in_list(annotations, index):
                        leaves_of = _all_leaves(self.metadata_value.fields[name])
                        fields += [leaf for leaf in leaves_of if isinstance(leaf, ir.FieldRef)]
            self.field_lists[number] = ir.FieldList(number, f"field_list_{index}", fields, call.span)
        return number

    def _in_list(self, annotations: list[ast.Annotation], index: int) -> bool:
        for annotation in annotations:
            if annotation.name == "field_list":
                for arg in annotation.args:
                    if isinstance(arg, ast.IntLit) and arg.value == index:
                        return True
                    if isinstance(arg, ast.Name | ast.Member) and self.annotation_value(arg) == index:
                        return True
        return False

    def annotation_value(self, expr: ast.Expr) -> consteval.Value | None:
        """The value of a constant that an annotation names."""
        return None

    def _same_name(self, call: ast.Call) -> None:
        params: list[ir.PrimParam] = [self.argument(call, position) for position in range(len(call.target.args))]
        self.out.append(ir.Prim(call.span, call.target.name, params))

    def _log_msg(self, call: ast.Call) -> None:
        message = self.argument(call, 0)
        items: list[ir.Expr] = []
        if len(call.target.args) > 1:
            items = list(_all_leaves(self.value(call.target.args[1])))
        self.out.append(ir.Prim(call.span, "log_msg", [message, ir.VectorParam(items)]))

    def _verify(self, call: ast.Call) -> None:
        self.out.append(ir.ParserOp(call.span, "verify", [self.argument(call, 0), self.argument(call, 1)]))

    # methods

    def _count(self, call: ast.Call, extern: ir.Extern) -> None:
        index = self.argument(call, 0)
        self.out.append(ir.Prim(call.span, "count", [ir.NamedParam("counter_array", extern.name), index]))

    def _direct_count(self, call: ast.Call, extern: ir.Extern) -> None:
        pass  # BMv2 counts whenever the table that has the counter hits

    def _execute_meter(self, call: ast.Call, extern: ir.Extern) -> None:
        index = self.argument(call, 0)
        target, after = self.out_field(call, 1)
        params: list[ir.PrimParam] = [ir.NamedParam("meter_array", extern.name), index, target]
        self.out.append(ir.Prim(call.span, "execute_meter", params))
        after()

    def _direct_meter(self, call: ast.Call, extern: ir.Extern) -> None:
        value = self.value(call.target.args[0])
        if not isinstance(value, ir.FieldRef):
            raise self.fail("the result of a direct meter must be a field", call.span)
        extern.meter_read = call.span
        if extern.meter_result is not None and extern.meter_result != value:
            raise self.fail(f"all reads of {extern.name} must have the same destination", call.span)
        extern.meter_result = value

    def _register_read(self, call: ast.Call, extern: ir.Extern) -> None:
        if t.bit_width(extern.type.args[0]) is None:
            raise self.diagnostics.limit(f"BMv2 registers hold numbers, not '{extern.type.args[0]}'", call.span)
        target, after = self.out_field(call, 0)
        index = self.argument(call, 1)
        params: list[ir.PrimParam] = [target, ir.NamedParam("register_array", extern.name), index]
        self.out.append(ir.Prim(call.span, "register_read", params))
        after()

    def _register_write(self, call: ast.Call, extern: ir.Extern) -> None:
        if t.bit_width(extern.type.args[0]) is None:
            raise self.diagnostics.limit(f"BMv2 registers hold numbers, not '{extern.type.args[0]}'", call.span)
        index, value = self.argument(call, 0), self.argument(call, 1)
        params: list[ir.PrimParam] = [ir.NamedParam("register_array", extern.name), index, value]
        self.out.append(ir.Prim(call.span, "register_write", params))

    # checksums

    def checksum_control(self, statements: list[ast.Stmt | ast.Decl], verify: bool) -> None:
        """The body of a checksum control: only calls of the checksum functions, maybe under conditions."""
        self._checksum_statements(list(statements), [], verify)

    def _checksum_statements(
        self, statements: list[ast.Stmt | ast.Decl], conditions: list[ir.Expr], verify: bool
    ) -> None:
        for item in statements:
            if isinstance(item, ast.Block):
                self._checksum_statements(item.body, conditions, verify)
            elif isinstance(item, ast.If):
                cond = self.scalar(item.cond)
                self._checksum_statements([item.then], [*conditions, cond], verify)
                if item.otherwise is not None:
                    inverse = fold.unary("!", cond, t.BOOL)
                    self._checksum_statements([item.otherwise], [*conditions, inverse], verify)
            elif isinstance(item, ast.CallStmt) and item.call.target.kind == "block":
                self._checksum_block(item.call, conditions, verify)
            elif isinstance(item, ast.CallStmt) and "checksum" in item.call.target.name:
                self._checksum(item.call, conditions, verify)
            elif not isinstance(item, ast.Empty):
                self.diagnostics.limit("BMv2 has only checksum calls in a checksum control", item.span)

    def _checksum_block(self, call: ast.Call, conditions: list[ir.Expr], verify: bool) -> None:
        """A control applied in a checksum control."""
        block = self.applied_block(call)
        assert isinstance(block.decl, ast.ControlDecl) and block.decl.body is not None
        env = Env(block.env)
        self.bind(block.params, call.target.args, env, call.span, private=False)
        outer, self.env = self.env, env
        block.node.applied = True
        self._checksum_statements(block.decl.body.body, conditions, verify)
        self.env = outer

    def _checksum(self, call: ast.Call, conditions: list[ir.Expr], verify: bool) -> None:
        name = call.target.name
        if name.startswith("verify") != verify:
            self.diagnostics.error(f"{name}() belongs into the other checksum control", call.span)
            return
        condition = fold.conjunction([*conditions, self.argument(call, 0)])
        data = self.field_arguments(self.value(call.target.args[1]), call.span)
        target = self.argument(call, 2)
        if not isinstance(target, ir.FieldRef):
            raise self.fail("the checksum must be a field", call.span)
        with_payload = name.endswith("with_payload")
        calculation = self.calculation(self.algorithm(call, 3), data, call.span, with_payload)
        self.checksums.append(
            ir.Checksum(target, calculation.name, verify, not verify, condition, call.span)
        )


def _all_leaves(value: Value) -> list[ir.Expr]:
    """The scalars of a value, slices included."""
    if isinstance(value, SlicePlace):
        return [fold.slice_bits(value.base, value.high, value.low)]
    if isinstance(value, StructValue):
        return [leaf for item in value.fields.values() for leaf in _all_leaves(item)]
    return list(leaves(value))



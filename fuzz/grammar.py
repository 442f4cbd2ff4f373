"""Random BMv2 JSON that a P4 compiler could have written: what it says is within the rules, its shape is not."""

from __future__ import annotations

import random
from typing import Any

from fastswitch.tests.codegen_programs import (
    Json,
    action,
    assign,
    call,
    conditional,
    const,
    field,
    header,
    on,
    op,
    program,
    table,
)
from fuzz.expressions import Expressions

WIDTHS = (1, 2, 3, 5, 7, 8, 9, 12, 16, 19, 24, 31, 32, 33, 48, 63, 64, 65, 72, 100, 127, 128, 129, 200, 256, 512)
# Those of the interpreter, less the ones that BMv2 takes from its own seeds.
ALGORITHMS = ("crc16", "crc32", "csum16", "identity", "xor16", "xxh64", "crcCCITT")


class Grammar:
    """Makes one program: `Grammar(rng).program()`."""

    def __init__(self, rng: random.Random) -> None:
        self.rng = rng
        self.types: dict[str, list[list[Any]]] = {}
        self.headers: dict[str, str] = {}  # name -> type, without stacks and unions
        self.stacks: dict[str, tuple[str, int]] = {}
        self.unions: dict[str, list[tuple[str, str]]] = {}  # name -> (member name, type)
        self.metadata = self._fields(rng.randrange(3, 9), whole=False)
        self.registers = {f"r{i}": (rng.randrange(1, 9), rng.choice(WIDTHS[:19])) for i in range(rng.randrange(3))}
        self.counters = {f"c{i}": rng.randrange(1, 9) for i in range(rng.randrange(3))}
        self.value_sets: dict[str, int] = {}
        self.actions: list[Json] = []
        self._declare()
        self.numbers = Expressions(rng, self)

    # -- headers

    def _fields(self, count: int, whole: bool = True) -> list[list[Any]]:
        rng = self.rng
        found: list[list[Any]] = []
        for index in range(count):
            width = rng.choice(WIDTHS)
            found.append([f"f{index}", width, *([True] if rng.random() < 0.15 and width > 1 else [])])
        missing = -sum(each[1] for each in found) % 8
        if whole and missing:
            found.append(["pad", missing])
        return found

    def _declare(self) -> None:
        rng = self.rng
        for index in range(rng.randrange(2, 5)):
            self.types[f"t{index}"] = self._fields(rng.randrange(1, 6))
        if rng.random() < 0.4:
            fixed: list[list[Any]] = [["length", 8], ["v", "*"], ["after", rng.choice([8, 16, 40])]]
            self.types["tv"] = fixed
        fixed_types = [name for name in self.types if name != "tv"]
        for index in range(rng.randrange(2, 6)):
            self.headers[f"h{index}"] = rng.choice(list(self.types))
        self.headers["h0"] = fixed_types[0]
        for index in range(rng.choice([0, 1, 1, 2])):
            self.stacks[f"s{index}"] = (rng.choice(fixed_types), rng.randrange(1, 5))
        members = rng.sample(fixed_types, min(len(fixed_types), rng.randrange(2, 4)))
        for index in range(rng.choice([0, 0, 1, 3])):  # all of one type
            self.unions[f"u{index}"] = [(f"m{i}", each) for i, each in enumerate(members)]
        self.union_stack = rng.random() < 0.6 and len(self.unions) > 2  # of the last two

    def instances(self) -> dict[str, str]:
        """All header instances that have a name of their own, with their types."""
        found = dict(self.headers)
        for name, (kind, size) in self.stacks.items():
            found |= {f"{name}[{i}]": kind for i in range(size)}
        for name, members in self.unions.items():
            found |= {f"{name}.{member}": kind for member, kind in members}
        return found

    def longest(self, kind: str) -> int:
        """Bytes of a header type."""
        return sum(4 * 8 if each[1] == "*" else each[1] for each in self.types[kind]) // 8

    # -- parser

    def _states(self) -> list[Json]:
        rng = self.rng
        count = rng.randrange(1, 6)
        names = [f"state{i}" for i in range(count)]
        found = []
        self.numbers.in_parser = True
        for index, name in enumerate(names):
            # A loop must make progress, since the interpreter would not end: every state starts with an extraction.
            ops = [self._extraction()]
            ops += [self._parser_op() for _ in range(rng.choice([0, 0, 1, 2]))]
            targets = [*names[index:], None, None] if rng.random() < 0.3 else [*names[index + 1 :], None]
            found.append(self._state(name, ops, targets))
        self.numbers.in_parser = False
        return found

    def _extraction(self) -> Json:
        rng = self.rng
        kind = rng.random()
        if self.stacks and kind < 0.35:
            return {"op": "extract", "parameters": [{"type": "stack", "value": rng.choice(list(self.stacks))}]}
        if self.union_stack and kind < 0.5:
            member = rng.choice(self.unions["u1"])[0]
            return {"op": "extract", "parameters": [{"type": "union_stack", "value": ["us", member]}]}
        candidates = {name: kind_ for name, kind_ in self.instances().items() if "[" not in name}
        name = rng.choice(list(candidates))
        target = {"type": "regular", "value": name}
        if candidates[name] != "tv":
            return {"op": "extract", "parameters": [target]}
        length = rng.choice(
            [
                op("*", op("&", self.numbers.number(1), const(7)), const(8)),
                op("&", op("<<", field(*self._byte()), const(3)), const(0x3F)),
                self.numbers.number(2),
                const(rng.choice([0, 8, 32, 64, 300])),
            ]
        )
        return {"op": "extract_VL", "parameters": [target, op("&", length, const(0xFFFF))]}

    def _byte(self) -> tuple[str, str]:
        header_name = "h0"
        return header_name, self.types[self.headers[header_name]][0][0]

    def _parser_op(self) -> Json:
        rng, numbers = self.rng, self.numbers
        match rng.randrange(6):
            case 0:
                return {"op": "set", "parameters": [self._metadata_field(), numbers.number(2)]}
            case 1:
                return {"op": "set", "parameters": [self._metadata_field(), numbers.lookahead()]}
            case 2:
                return {"op": "verify", "parameters": [numbers.condition(2), const(rng.randrange(7))]}
            case 3:
                return {"op": "advance", "parameters": [const(8 * rng.randrange(40))]}
            case 4:
                bits = op("&", numbers.number(1), const(rng.choice([0x38, 0xFF, 0x3FFFF])))
                return {"op": "advance", "parameters": [bits]}
        return {"op": "primitive", "parameters": [self._header_statement()]}

    def _metadata_field(self) -> Json:
        return field("scalars", self.rng.choice(self.metadata)[0])

    def _state(self, name: str, ops: list[Json], targets: list[str | None]) -> Json:
        rng = self.rng
        parts: list[tuple[Json, int]] = []
        for _ in range(rng.choice([0, 1, 1, 2, 3])):
            parts.append(self._key_part())
        bits = sum((width + 7) // 8 * 8 for _, width in parts)
        full = 0
        for _, width in parts:
            full = full << (width + 7) // 8 * 8 | ((1 << width) - 1)
        transitions = []
        for _ in range(rng.randrange(5) if parts else 0):
            if rng.random() < 0.15:
                transitions.append(self._value_set([width for _, width in parts], rng.choice(targets)))
                continue
            mask = rng.choice([None, full, full & rng.getrandbits(bits), 0])
            value = full & rng.choice([rng.getrandbits(bits), 0, full, rng.randrange(4)])
            masked = None if mask is None else f"0x{mask:0{bits // 4}x}"
            transitions.append(on(f"0x{value:0{bits // 4}x}", rng.choice(targets), masked))
        default = {"type": "default", "value": None, "mask": None, "next_state": rng.choice(targets)}
        return {
            **{"name": name, "id": 0, "parser_ops": ops, "transition_key": [part for part, _ in parts]},
            "transitions": [*transitions, default],
        }

    def _key_part(self) -> tuple[Json, int]:
        rng = self.rng
        if rng.random() < 0.2:
            part = self.numbers.lookahead()
            return part, part["value"][1]
        if self.union_stack and rng.random() < 0.2:
            member, kind = rng.choice(self.unions["u1"])
            chosen = rng.choice(self.types[kind])
            return {"type": "union_stack_field", "value": ["us", member, chosen[0]]}, chosen[1]
        if self.stacks and rng.random() < 0.2:
            name = rng.choice(list(self.stacks))
            chosen = rng.choice(self.types[self.stacks[name][0]])
            return {"type": "stack_field", "value": [name, chosen[0]]}, chosen[1]
        name, kind = rng.choice([*self.instances().items()])
        chosen = rng.choice([each for each in self.types[kind] if each[1] != "*"])
        return field(name, chosen[0]), chosen[1]

    def _value_set(self, widths: list[int], following: str | None) -> Json:
        name = f"vs{len(self.value_sets)}"
        self.value_sets[name] = sum(widths)
        return {"type": "parse_vset", "value": name, "mask": None, "next_state": following}

    # -- actions

    def _header_statement(self) -> Json:
        rng = self.rng
        names = [*self.instances()]
        one, kind = rng.choice([*self.instances().items()])
        match rng.randrange(6):
            case 4 if "tv" in self.headers.values():
                one = rng.choice([name for name in names if self.instances()[name] == "tv"])
                other = rng.choice([name for name in names if self.instances()[name] == "tv"])
                return call("assign_VL", field(one, "v"), field(other, "v"))
            case 5 if self.unions:
                return self._union_statement()
            case 0:
                return call("add_header", header(one))
            case 1:
                return call("remove_header", header(one))
            case 2:
                same = [name for name in names if self.instances()[name] == kind]
                return call(rng.choice(["assign_header", "copy_header"]), header(one), header(rng.choice(same)))
        return assign(self.numbers.target(), self.numbers.number(3))

    def _union_statement(self) -> Json:
        rng = self.rng
        if self.union_stack and rng.random() < 0.4:
            stack = {"type": "header_union_stack", "value": "us"}
            if rng.random() < 0.2:
                return call("assign_union_stack", stack, stack)
            return call(rng.choice(["push", "pop"]), stack, const(rng.randrange(4)))
        one, other = ({"type": "header_union", "value": rng.choice(list(self.unions))} for _ in range(2))
        return call("assign_union", one, other)

    def _old_statement(self) -> Json:
        """What P4-14 programs hold."""
        rng, numbers = self.rng, self.numbers
        if rng.random() < 0.5:
            kind = rng.choice(["modify_field", "add_to_field", "subtract_from_field"])
            return call(kind, numbers.target(), numbers.number(2))
        if rng.random() < 0.3:
            shift = rng.choice(["shift_left", "shift_right"])
            return call(shift, numbers.target(), numbers.number(1), const(rng.randrange(70)))
        kind = rng.choice(["add", "subtract", "bit_and", "bit_or", "bit_xor"])
        return call(kind, numbers.target(), numbers.number(2), numbers.number(2))

    def _statement(self, place: int, length: int) -> Json:
        rng, numbers = self.rng, self.numbers
        kinds = ["assign"] * 8 + ["header"] * 4 + ["jump", "drop", "truncate", "exit", "random", "assert"]
        kinds += ["stack"] * 2 if self.stacks else []
        kinds += ["register"] * 3 if self.registers else []
        kinds += ["count"] if self.counters else []
        kinds += ["hash", "clone", "digest", "resubmit", "old", "log", "meter"]
        match rng.choice(kinds):
            case "header":
                return self._header_statement()
            case "stack":
                name = rng.choice(list(self.stacks))
                stack = {"type": "header_stack", "value": name}
                alike = [each for each in self.stacks if self.stacks[each] == self.stacks[name]]
                if rng.random() < 0.3:
                    return call("assign_header_stack", stack, {"type": "header_stack", "value": rng.choice(alike)})
                return call(rng.choice(["push", "pop"]), stack, const(rng.randrange(6)))
            case "jump":
                to = const(rng.randrange(place + 1, length + 1))
                return rng.choice([call("_jump", to), call("_jump_if_zero", numbers.number(2), to)])
            case "old":
                return self._old_statement()
            case "log":
                values = {"type": "parameters_vector", "value": [numbers.number(2) for _ in range(2)]}
                return call("log_msg", {"type": "string", "value": "{} %s {}"}, values)
            case "meter":
                array = {"type": "meter_array", "value": "meter"}
                return call("execute_meter", array, op("&", numbers.number(1), const(7)), numbers.target())
            case "drop":
                return rng.choice([call("mark_to_drop", header("standard_metadata")), call("drop"), call("no_op")])
            case "truncate":
                return call("truncate", op("&", numbers.number(1), const(0xFFF)))
            case "exit":
                return call("exit")
            case "random":
                return call("modify_field_rng_uniform", numbers.target(), const(3), const(9))
            case "assert":
                return call(rng.choice(["assert", "assume"]), numbers.condition(1))
            case "register":
                name = rng.choice(list(self.registers))
                array = {"type": "register_array", "value": name}
                index = op("&", numbers.number(1), const(15))
                if rng.random() < 0.5:
                    return call("register_read", numbers.target(), array, index)
                return call("register_write", array, index, numbers.number(2))
            case "count":
                array = {"type": "counter_array", "value": rng.choice(list(self.counters))}
                return call("count", array, op("&", numbers.number(1), const(15)))
            case "hash":
                calculation = {"type": "calculation", "value": rng.choice(["calc0", "calc1"])}
                base, most = op("&", numbers.number(1), const(0xFF)), const(rng.choice([0, 1, 7, 1 << 16, 1 << 40]))
                return call("modify_field_with_hash_based_offset", numbers.target(), base, calculation, most)
            case "clone":
                kind = rng.choice(["clone_ingress_pkt_to_egress", "clone_egress_pkt_to_egress"])
                return call(kind, op("&", numbers.number(1), const(0x7FFF)), const(rng.randrange(2)))
            case "digest":
                return call("generate_digest", const(0), const(1))
            case "resubmit":
                return call(rng.choice(["resubmit", "recirculate"]), const(rng.randrange(2)))
        return assign(numbers.target(), numbers.number(rng.randrange(1, 5)))

    def _action(self, identity: int) -> Json:
        rng = self.rng
        params = [(f"p{i}", rng.choice(WIDTHS)) for i in range(rng.choice([0, 0, 1, 2]))]
        self.numbers.params = [width for _, width in params]
        length = rng.randrange(5)
        body = [self._statement(place, length) for place in range(length)]
        self.numbers.params = []
        return action(identity, f"a{identity}", body, params)

    # -- pipelines

    def _pipeline(self, prefix: str) -> tuple[list[Json], list[Json], str | None]:
        rng = self.rng
        names = [f"{prefix}{i}" for i in range(rng.randrange(1, 5))]
        tables, conditionals = [], []
        for index, name in enumerate(names):
            following: list[str | None] = [*names[index + 1 :], None]
            if rng.random() < 0.3:
                condition = self.numbers.condition(3)
                made = conditional(name, condition, rng.choice(following), rng.choice(following))
                conditionals.append({**made, "id": index})
            else:
                tables.append(self._table(name, following))
        return tables, conditionals, names[0]

    def _table(self, name: str, following: list[str | None]) -> Json:
        rng = self.rng
        kind = rng.choice(["none", "exact", "lpm", "ternary", "range"])
        keys = []
        for place in range(0 if kind == "none" else rng.randrange(1, 4)):
            owner, owner_kind = rng.choice([*self.instances().items(), ("scalars", None)])
            fields = self.metadata if owner_kind is None else self.types[owner_kind]
            chosen = rng.choice([each for each in fields if each[1] != "*"])
            allowed = {"exact": ["exact"], "lpm": ["exact"], "ternary": ["exact", "ternary"]}
            match = rng.choice(allowed.get(kind, ["exact", "ternary", "range"]))
            if place == 0 and kind == "lpm":
                match = "lpm"
            if match == "exact" and owner_kind is not None and rng.random() < 0.2:
                keys.append((match, owner, "$valid$"))
            else:
                keys.append((match, owner, chosen[0]))
        chosen_actions = rng.sample(self.actions, min(len(self.actions), rng.randrange(1, 4)))
        default = rng.choice([None, rng.choice(chosen_actions)])
        data = [hex(rng.getrandbits(each["bitwidth"])) for each in default["runtime_data"]] if default else []
        made = table(
            name,
            keys,
            [(each["id"], each["name"]) for each in chosen_actions],
            rng.choice(following),
            (default["id"], data) if default else None,
            const=rng.random() < 0.2,
        )
        made["match_type"] = "exact" if kind == "none" else kind
        made["next_tables"] = {each["name"]: rng.choice(following) for each in chosen_actions}
        if rng.random() < 0.25:
            made["next_tables"] = {"__HIT__": rng.choice(following), "__MISS__": rng.choice(following)}
        made["with_counters"] = rng.random() < 0.3
        for key in made["key"]:
            if rng.random() < 0.1 and key["match_type"] in ("exact", "ternary"):
                key["mask"] = hex(rng.getrandbits(8))
        if keys and kind != "none" and rng.random() < 0.3:
            made["entries"] = self._entries(made, chosen_actions)
        elif keys and rng.random() < 0.25:
            made |= {"type": "indirect_ws", "action_profile": "selecting"}
            made.pop("default_entry", None)
        return made

    def _entries(self, made: Json, actions: list[Json]) -> list[Json]:
        """Constant entries, the first of equal ones ahead."""
        rng = self.rng
        found: list[Json] = []
        for priority in range(1, rng.randrange(2, 6)):
            match = []
            for key in made["key"]:
                owner, name = key["target"]
                fields = self.metadata if owner == "scalars" else self.types[self.instances()[owner]]
                width = 1 if name == "$valid$" else next(each[1] for each in fields if each[0] == name)
                value, other = (rng.choice([0, rng.randrange(4), rng.getrandbits(width)]) % (1 << width) for _ in "ab")
                kind = key["match_type"]
                one: Json = {"match_type": kind, "key": hex(value)}
                if kind == "lpm":
                    length = rng.randrange(width + 1)
                    one |= {"prefix_length": length, "key": hex(value >> (width - length) << (width - length))}
                elif kind == "ternary":
                    one |= {"mask": hex(other), "key": hex(value & other)}
                elif kind == "range":
                    one = {"match_type": kind, "start": hex(min(value, other)), "end": hex(max(value, other))}
                match.append(one)
            chosen = rng.choice(actions)
            data = [hex(rng.getrandbits(each["bitwidth"])) for each in chosen["runtime_data"]]
            call_ = {"action_id": chosen["id"], "action_data": data}
            if match not in [each["match_key"] for each in found]:
                found.append({"match_key": match, "action_entry": call_, "priority": priority})
        return found

    # -- the whole

    def program(self) -> Json:
        """The document."""
        rng = self.rng
        states = self._states()
        self.actions = [self._action(identity) for identity in range(rng.randrange(1, 6))]
        ingress, conditionals, first = self._pipeline("in_")
        egress, egress_conditionals, egress_first = self._pipeline("out_")
        document = program(
            {},
            self.metadata,
            states=states,
            actions=self.actions,
            ingress=ingress,
            conditionals=conditionals,
            egress=egress,
            start=first,
            calculations=[self._calculation(f"calc{i}") for i in range(2)],
            register_arrays=[
                {"name": name, "id": i, "size": size, "bitwidth": width}
                for i, (name, (size, width)) in enumerate(self.registers.items())
            ],
            counter_arrays=[
                {"name": name, "id": i, "size": size, "is_direct": False}
                for i, (name, size) in enumerate(self.counters.items())
            ],
            meter_arrays=[
                {"name": "meter", "id": 0, "size": 4, "is_direct": False, "rate_count": 2, "type": "packets"},
            ],
            parse_vsets=[
                {"name": name, "id": i, "compressed_bitwidth": width}
                for i, (name, width) in enumerate(self.value_sets.items())
            ],
            learn_lists=[{"id": 1, "name": "learn", "elements": [self._list_field() for _ in range(2)]}],
            field_lists=[{"id": 1, "name": "kept", "elements": [self._list_field() for _ in range(2)]}],
        )
        document["pipelines"][0]["action_profiles"] = [
            {"name": "selecting", "id": 0, "max_size": 64, "selector": self._selector()}
        ]
        document["pipelines"][1] |= {"conditionals": egress_conditionals, "init_table": egress_first}
        self._add_headers(document)
        emitted = [name for name in self.instances() if rng.random() < 0.8]
        rng.shuffle(emitted)
        document["deparsers"][0]["order"] = emitted
        document["checksums"] = [self._checksum(i) for i in range(rng.choice([0, 0, 1, 2]))]
        return document

    def _list_field(self) -> Json:
        return self._metadata_field()

    def _inputs(self, payload: bool = True) -> list[Json]:
        rng = self.rng
        found: list[Json] = []
        for _ in range(rng.randrange(1, 5)):
            name, kind = rng.choice([*self.instances().items()])
            match rng.randrange(4):
                case 0:
                    width = rng.choice(WIDTHS)
                    found.append({"type": "hexstr", "value": hex(rng.getrandbits(width)), "bitwidth": width})
                case 1:
                    found.append({"type": "header", "value": name})
                case _:
                    found.append(field(name, rng.choice(self.types[kind])[0]))
        if payload and rng.random() < 0.3:
            found.append({"type": "payload", "value": None})
        return found

    def _calculation(self, name: str) -> Json:
        return {"name": name, "id": 0, "algo": self.rng.choice(ALGORITHMS), "input": self._inputs()}

    def _selector(self) -> Json:
        return {"algo": self.rng.choice(ALGORITHMS), "input": self._inputs(payload=False)}

    def _checksum(self, index: int) -> Json:
        rng = self.rng
        name, kind = rng.choice([*self.instances().items()])
        chosen = rng.choice([each for each in self.types[kind] if each[1] != "*"])
        return {
            **{"name": f"sum{index}", "id": index, "type": "generic", "calculation": f"calc{index}"},
            **{"target": [name, chosen[0]], "update": rng.random() < 0.7, "verify": rng.random() < 0.7},
            "if_cond": self.numbers.condition(2) if rng.random() < 0.5 else None,
        }

    def _add_headers(self, document: Json) -> None:
        """The declarations, in place of those that `program` makes."""
        kept = document["header_types"][:2]
        longest = {"max_length": 16}
        document["header_types"] = [
            *kept,
            *(
                {"name": name, "id": 2 + i, "fields": fields, **(longest if name == "tv" else {})}
                for i, (name, fields) in enumerate(self.types.items())
            ),
        ]
        headers = document["headers"][:2]
        ids: dict[str, int] = {}
        for name, kind in self.instances().items():
            ids[name] = len(headers)
            headers.append({"name": name, "id": ids[name], "header_type": kind, "metadata": False})
        document["headers"] = headers
        document["header_stacks"] = [
            {"name": name, "id": i, "header_type": kind, "header_ids": [ids[f"{name}[{j}]"] for j in range(size)]}
            for i, (name, (kind, size)) in enumerate(self.stacks.items())
        ]
        document["header_union_types"] = [
            {"name": "u_t", "id": 0, "headers": [list(each) for each in members]}
            for members in list(self.unions.values())[:1]
        ]
        if self.union_stack:
            document["header_union_stacks"] = [{"name": "us", "id": 0, "union_type": "u_t", "header_union_ids": [1, 2]}]
        document["header_unions"] = [
            {
                **{"name": name, "id": i, "union_type": "u_t"},
                "header_ids": [ids[f"{name}.{member}"] for member, _ in members],
            }
            for i, (name, members) in enumerate(self.unions.items())
        ]

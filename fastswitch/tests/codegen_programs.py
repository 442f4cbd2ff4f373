"""Small BMv2 JSONs for tests, built by functions so that a test shows only what it is about."""

from __future__ import annotations

from typing import Any

Json = dict[str, Any]

STANDARD = [
    ["ingress_port", 9], ["egress_spec", 9], ["egress_port", 9], ["instance_type", 32], ["packet_length", 32],
    ["enq_timestamp", 32], ["enq_qdepth", 19], ["deq_timedelta", 32], ["deq_qdepth", 19],
    ["ingress_global_timestamp", 48], ["egress_global_timestamp", 48], ["mcast_grp", 16], ["egress_rid", 16],
    ["checksum_error", 1], ["parser_error", 32], ["priority", 3], ["_padding", 3],
]  # fmt: skip
ERRORS = ["NoError", "PacketTooShort", "NoMatch", "StackOutOfBounds", "HeaderTooShort", "ParserTimeout",
          "ParserInvalidArgument"]  # fmt: skip


def field(header: str, name: str) -> Json:
    return {"type": "field", "value": [header, name]}


def const(value: int) -> Json:
    return {"type": "hexstr", "value": f"{'-' if value < 0 else ''}0x{abs(value):x}"}


def param(index: int) -> Json:
    return {"type": "runtime_data", "value": index}


def op(name: str, left: Json | None, right: Json, **more: Any) -> Json:
    return {"type": "expression", "value": {"op": name, "left": left, "right": right, **more}}


def call(name: str, *parameters: Json) -> Json:
    return {"op": name, "parameters": list(parameters)}


def assign(target: Json, value: Json) -> Json:
    return call("assign", target, value)


def header(name: str) -> Json:
    return {"type": "header", "value": name}


def extract(name: str, kind: str = "regular") -> Json:
    return {"op": "extract", "parameters": [{"type": kind, "value": name}]}


def state(
    name: str,
    ops: list[Json],
    key: list[Json] | None = None,
    transitions: list[Json] | None = None,
    default: str | None = None,
) -> Json:
    last = {"type": "default", "value": None, "mask": None, "next_state": default}
    return {
        "name": name,
        "id": 0,
        "parser_ops": ops,
        "transition_key": key or [],
        "transitions": [*(transitions or []), last],
    }


def on(value: str, following: str | None, mask: str | None = None) -> Json:
    return {"type": "hexstr", "value": value, "mask": mask, "next_state": following}


def action(identity: int, name: str, body: list[Json], params: list[tuple[str, int]] | None = None) -> Json:
    data = [{"name": each, "bitwidth": width} for each, width in params or []]
    return {"name": name, "id": identity, "runtime_data": data, "primitives": body}


def always(name: str, action_id: int, action_name: str, following: str | None = None) -> Json:
    """The keyless table that p4c makes of a direct action call."""
    return table(name, [], [(action_id, action_name)], following, default=(action_id, []), const=True)


def table(
    name: str,
    key: list[tuple[str, str, str]],
    actions: list[tuple[int, str]],
    following: str | None = None,
    default: tuple[int, list[str]] | None = None,
    const: bool = False,
    **more: Any,
) -> Json:
    """`key`: (match kind, header, field)."""
    kinds = [each[0] for each in key]
    match_type = next((kind for kind in ("range", "ternary", "lpm") if kind in kinds), "exact")
    made: Json = {
        "name": name,
        "id": 0,
        "key": [{"match_type": kind, "name": f"{h}.{f}", "target": [h, f], "mask": None} for kind, h, f in key],
        "match_type": match_type,
        "type": "simple",
        "max_size": 1024,
        "with_counters": False,
        "support_timeout": False,
        "direct_meters": None,
        "action_ids": [identity for identity, _ in actions],
        "actions": [each for _, each in actions],
        "base_default_next": following,
        "next_tables": {each: following for _, each in actions},
    }
    if default is not None:
        made["default_entry"] = {
            "action_id": default[0],
            "action_const": const,
            "action_data": default[1],
            "action_entry_const": const,
        }
    return {**made, **more}


def conditional(name: str, expression: Json, true: str | None, false: str | None) -> Json:
    return {"name": name, "id": 0, "expression": expression, "true_next": true, "false_next": false}


def program(
    fields: dict[str, list[list[Any]]],
    metadata: list[list[Any]] | None = None,
    states: list[Json] | None = None,
    actions: list[Json] | None = None,
    ingress: list[Json] | None = None,
    conditionals: list[Json] | None = None,
    egress: list[Json] | None = None,
    order: list[str] | None = None,
    start: str | None = None,
    stacks: dict[str, tuple[str, int]] | None = None,
    **sections: Any,
) -> Json:
    """A program with one header instance per entry of `fields`, extracted and emitted in order unless told otherwise.

    `stacks`: name -> (header type, size); its elements are `name[i]`.
    """
    types = {"scalars_t": metadata or [["unused", 8]], "standard_metadata": STANDARD}
    headers = [("scalars", "scalars_t", True), ("standard_metadata", "standard_metadata", True)]
    for name, described in fields.items():
        types[f"{name}_t"] = described
        headers.append((name, f"{name}_t", False))
    header_stacks = []
    for name, (kind, size) in (stacks or {}).items():
        first = len(headers)
        headers += [(f"{name}[{i}]", kind, False) for i in range(size)]
        header_stacks.append(
            {"name": name, "id": 0, "header_type": kind, "header_ids": list(range(first, first + size))}
        )
    if states is None:
        states = [state("start", [extract(name) for name in fields])]
    pipeline = {"name": "ingress", "id": 0, "tables": ingress or [], "conditionals": conditionals or []}
    first_nodes = [*(ingress or []), *(conditionals or [])]
    pipeline["init_table"] = start or (first_nodes[0]["name"] if first_nodes else None)
    max_length = {"max_length": 64}
    return numbered({
        "program": "test",
        "__meta__": {"version": [2, 23], "compiler": "by hand"},
        "header_types": [
            {"name": name, "id": i, "fields": each, **(max_length if any(f[1] == "*" for f in each) else {})}
            for i, (name, each) in enumerate(types.items())
        ],
        "headers": [
            {"name": name, "id": i, "header_type": kind, "metadata": meta}
            for i, (name, kind, meta) in enumerate(headers)
        ],
        "header_stacks": header_stacks,
        "errors": [[name, code] for code, name in enumerate(ERRORS)],
        "parsers": [{"name": "parser", "id": 0, "init_state": states[0]["name"], "parse_states": states}],
        "deparsers": [{"name": "deparser", "id": 0, "order": list(fields) if order is None else order}],
        "actions": actions or [],
        "pipelines": [
            pipeline,
            {
                "name": "egress",
                "id": 1,
                "tables": egress or [],
                "conditionals": [],
                "init_table": egress[0]["name"] if egress else None,
            },
        ],
        **sections,
    })  # fmt: skip


def numbered(document: Json) -> Json:
    """Gives the objects of each section ids of their own, but where others refer to the ids."""
    lists = [value for key, value in document.items() if key not in _REFERRED_TO and isinstance(value, list)]
    lists += [parser.get("parse_states", []) for parser in document["parsers"]]
    lists += [pipeline.get(name, []) for pipeline in document["pipelines"] for name in ("tables", "conditionals")]
    for each in lists:
        for index, node in enumerate(each):
            if isinstance(node, dict) and "id" in node:
                node["id"] = index
    return document


_REFERRED_TO = ("headers", "header_unions", "actions", "learn_lists", "field_lists")


def one_action(
    fields: dict[str, list[list[Any]]],
    body: list[Json],
    metadata: list[list[Any]] | None = None,
    **more: Any,
) -> Json:
    """A program whose ingress runs `body` on every packet."""
    return program(fields, metadata, actions=[action(0, "run", body)], ingress=[always("tbl_run", 0, "run")], **more)

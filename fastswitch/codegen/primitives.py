"""What each primitive takes.  Old primitives are rewritten to `assign` on loading, so emission knows only these.

Kinds of arguments: `lvalue`, `data`, `bool`, `varbit`, `header`, `union`, `stack` (of headers or unions),
`header_stack`, `union_stack`, `calculation`, `counter`, `meter`, `register`, `string`, `vector`, `offset`.
"""

from __future__ import annotations

SIGNATURES: dict[str, tuple[str, ...]] = {
    "assign": ("lvalue", "data"),
    "assign_VL": ("varbit", "varbit"),
    "assign_header": ("header", "header"),
    "assign_union": ("union", "union"),
    "assign_header_stack": ("header_stack", "header_stack"),
    "assign_union_stack": ("union_stack", "union_stack"),
    "add_header": ("header",),
    "remove_header": ("header",),
    "push": ("stack", "data"),
    "pop": ("stack", "data"),
    "_jump": ("offset",),
    "_jump_if_zero": ("data", "offset"),
    "exit": (),
    "mark_to_drop": ("header",),
    "drop": (),
    "modify_field_with_hash_based_offset": ("lvalue", "data", "calculation", "data"),
    "modify_field_rng_uniform": ("lvalue", "data", "data"),
    "count": ("counter", "data"),
    "execute_meter": ("meter", "data", "lvalue"),
    "register_read": ("lvalue", "register", "data"),
    "register_write": ("register", "data", "data"),
    "generate_digest": ("data", "data"),
    "clone_ingress_pkt_to_egress": ("data", "data"),
    "clone_egress_pkt_to_egress": ("data", "data"),
    "resubmit": ("data",),
    "recirculate": ("data",),
    "truncate": ("data",),
    "log_msg": ("string", "vector"),
    "assert": ("bool",),
    "assume": ("bool",),
    "no_op": (),
}

# P4-14 style: destination, operands. The destination is an operand too where only one is given.
ARITHMETIC = {
    "add": "+",
    "subtract": "-",
    "bit_and": "&",
    "bit_or": "|",
    "bit_xor": "^",
    "shift_left": "<<",
    "shift_right": ">>",
}
ACCUMULATE = {"add_to_field": "+", "subtract_from_field": "-"}
SYNONYMS = {"copy_header": "assign_header", "modify_field": "assign"}

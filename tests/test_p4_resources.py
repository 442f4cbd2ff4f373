"""The count of resources: against programs counted by hand, and against the page that shows it."""

import pytest

from tests.conftest import ROOT
from tests.p4_resources import BEGIN, END, PAGE, PROGRAMS, compiled, register_stages, table


def field(name):
    return {"type": "field", "value": ["scalars", name]}


def access(op, register, into_or_value, index):
    array = {"type": "register_array", "value": register}
    return {
        "op": op,
        "parameters": [into_or_value, array, index] if op == "register_read" else [array, index, into_or_value],
    }


def action(number, *primitives):
    return {"id": number, "primitives": list(primitives)}


def table_of(name, number, following):
    return {
        "name": name, "type": "simple", "key": [], "action_ids": [number], "next_tables": {"a": following},
        "base_default_next": following,
    }  # fmt: skip


def test_chains_by_value_by_condition_and_none():
    actions = [
        action(0, access("register_read", "r", field("a"), field("x"))),
        action(1, access("register_read", "s", field("b"), field("a"))),  # needs a
        action(2, access("register_read", "t", field("c"), field("x"))),  # under a condition on b
        action(3, access("register_read", "u", field("d"), field("x"))),  # after it in any case
        action(4, access("register_write", "s", field("d"), field("x"))),  # the register itself was not written before
    ]
    names = [table_of("t0", 0, "t1"), table_of("t1", 1, "if"), table_of("t2", 2, "t3"), table_of("t3", 3, "t4")]
    condition = {"name": "if", "expression": {"left": field("b")}, "true_next": "t2", "false_next": "t3"}
    pipeline = {"init_table": "t0", "tables": [*names, table_of("t4", 4, None)], "conditionals": [condition]}
    program = {"actions": actions, "pipelines": [pipeline]}
    assert register_stages(program) == 3  # r, s, t
    assert register_stages(program, {"r"}) == 2
    pipeline["conditionals"][0]["expression"] = {"left": field("x")}
    assert register_stages(program) == 2


@pytest.mark.parametrize(
    ("name", "choice", "failover"),
    [
        ("ecmp", 1, 1),  # RED's look at the queue
        (
            "spray",
            2,
            17,
        ),  # whose turn it is, and whose next; from there 16 ports, the last of which decides nothing more
        ("drill", 3, 18),  # the best, its queue, the new best
        ("dibs", 6, 6),  # the full queue, four draws one after another, RED
    ],
)
def test_stages_as_counted_by_hand(name, choice, failover):
    program = compiled(name)
    assert (register_stages(program, {"plait.port_up"}), register_stages(program)) == (choice, failover)


def test_every_program_has_a_row_and_the_page_is_fresh():
    assert set(PROGRAMS) == {path.stem for path in (ROOT / "p4src").glob("*.p4")}
    text = PAGE.read_text()
    shown = text[text.index(BEGIN) + len(BEGIN) : text.index(END)]
    assert shown == table(), "python -m tests.p4_resources writes it anew"

"""Large parsers and pipelines in parts: C compilers take more than linear time over the size of a function.

A part is a function of up to PART_NODES states or nodes, joined by gotos.  What leads to another part leaves with the
position of the target, and the caller enters the part that has it.
"""

from __future__ import annotations

from typing import TypeVar

from .emitter import Emitter

PART_NODES = 64
_T = TypeVar("_T")


def in_parts(order: list[_T]) -> list[list[_T]]:
    """At least one part; the node at position p is in part p // PART_NODES."""
    return [order[start : start + PART_NODES] for start in range(0, len(order), PART_NODES)] or [[]]


def part_head(name: str, state: str, number: int) -> str:
    return (
        f"static uint32_t {name}_part_{number}(struct plait_instance *instance, struct plait_packet *packet, {state}, "
        "uint32_t position)"
    )


def parts_table(name: str, state: str, count: int) -> str:
    parts = ", ".join(f"{name}_part_{number}" for number in range(count))
    return (
        f"static uint32_t (*const {name}_parts[])(struct plait_instance *, struct plait_packet *, {state}, uint32_t) = "
        f"{{{parts}}};"
    )


def emit_entries(out: Emitter, nodes: list[tuple[int, str]]) -> None:
    """Goes to the label of the node at `position`."""
    out.line("switch (position) {")
    for position, label in nodes:
        out.lines(f"case {position}:", f"    goto {label};")
    out.lines("default:", "    goto done;", "}")


def emit_exits(out: Emitter, nodes: list[tuple[int, str]]) -> None:
    """Labels for the nodes of other parts, and `done`: all end up at what follows, with `position` set."""
    out.line("goto done;")
    for position, label in nodes:
        out.label(label)
        out.lines(f"position = {position};", "goto leave;")
    out.label("done")
    out.line("position = PLAIT_LEFT;")
    out.label("leave")

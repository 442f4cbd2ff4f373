"""A checked program to one C file."""

from __future__ import annotations

from .actions import Actions
from .deparser import DeparserEmitter
from .descriptors import Descriptors
from .emitter import Emitter, comment
from .expr import Expressions
from .hashing import Hashes
from .layout import Layout
from .model import Action, Program
from .parser import ParserEmitter
from .pipeline import PipelineEmitter
from .storing import Stores

# Raise with any change of what is generated: part of the key of the cache.
GENERATOR_VERSION = 3


def generate(program: Program) -> str:
    """The C of a program, deterministic."""
    layout = Layout(program)
    expressions = Expressions(layout)
    stores = Stores(layout, expressions)
    hashes = Hashes(layout)
    actions = Actions(program, layout, expressions, stores, hashes)
    descriptors = Descriptors(program)
    for table in program.tables:
        if table.selector is not None:
            hashes.add_selector(table.selector)

    body = Emitter()
    descriptors.emit(body)
    hashes.emit(body)
    for action in _used_actions(program):
        actions.emit_function(body, action)
    parts = (program, layout, expressions, stores, hashes)
    ParserEmitter(*parts, actions).emit(body)
    pipelines = PipelineEmitter(*parts)
    pipelines.emit(body, "ingress", program.ingress)
    pipelines.emit(body, "egress", program.egress)
    deparser = DeparserEmitter(*parts, actions)
    deparser.emit(body)
    deparser.emit_copies(body)
    descriptors.emit_pipeline(body)
    # Last, because only now it is known what the body needs.
    head = Emitter()
    layout.emit_structs(head)
    head.line()
    stores.emit_same_functions(head)
    return _preamble(program, expressions) + head.text() + body.text()


def _used_actions(program: Program) -> list[Action]:
    used = {action.index for table in program.tables for action in table.actions}
    for pipeline in (program.ingress, program.egress):
        if pipeline is not None:
            used |= {call.action.index for call in pipeline.calls}
    return [action for action in program.actions if action.index in used]


def _preamble(program: Program, expressions: Expressions) -> str:
    out = Emitter()
    out.line("/* Generated from a BMv2 JSON; not to be edited. */")
    out.line(comment(f"program {program.name}"))
    out.line('#include "pipeline.h"')
    out.line('#include "plait_access.h"')
    if expressions.wide_bits:
        out.line(f"#define PLAIT_WIDE_LIMBS {max(expressions.wide_bits // 64 + 1, 3)}")
        out.line('#include "plait_wide.h"')
    out.line()
    return out.text()

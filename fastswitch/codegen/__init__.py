"""BMv2 JSON to a shared object that implements `struct plait_pipeline` (engine/pipeline.h).

Three phases: `load` turns the untrusted document into a checked `model.Program`, `generate` writes readable C from
that, `build` compiles and caches it.

Refused by name: extern instances, P4-14's computed header lengths (`length_exp`) and IPv4-only checksums, masks on
value sets, table keys and select keys that are expressions, wide registers inside expressions, division of numbers
that can be negative, pipelines other than `ingress` and `egress`.
"""

from .build import compile_json, generate_c
from .errors import ProgramError
from .load import load_program
from .state import InitialDefault, InitialEntry, InitialState, initial_state

__all__ = [
    "InitialDefault",
    "InitialEntry",
    "InitialState",
    "ProgramError",
    "compile_json",
    "generate_c",
    "initial_state",
    "load_program",
]

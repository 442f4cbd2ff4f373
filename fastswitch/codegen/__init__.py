"""BMv2 JSON to a shared object that implements `struct plait_pipeline` (engine/pipeline.h).

Three phases: `load` turns the untrusted document into a checked `model.Program`, `generate` writes readable C from
that, `build` compiles and caches it.

Refused by name: extern instances, masks on value sets, one value set in selects of different shapes, hashes that BMv2
lacks (`random`) or that remember their inputs (`round_robin_consistent`), table keys and select keys that are
expressions, division of numbers that can be negative, pipelines other than `ingress` and `egress`.
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

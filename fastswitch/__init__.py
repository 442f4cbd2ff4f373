"""The fast switch: BMv2 JSON to native code, and the P4Runtime server over it."""

from fastswitch.codegen import ProgramError, compile_json

__all__ = ["ProgramError", "compile_json"]

"""p4front: P4-16 for v1model to P4Info and BMv2 JSON, as `p4c-bm2-ss` does it.

    compiled = p4front.compile_file(Path("p4src/ecmp.p4"))
    compiled.p4info      # p4.config.v1.P4Info
    compiled.bmv2_json   # what simple_switch loads

The phases, one module or family of modules each: preprocessor, lexer, parser (to `syntax`), check (types and names),
elaborate and lower (to `ir`: everything instantiated, inlined and flat), p4info, bmv2_json.
"""

from p4front.diagnostics import CompileError, Diagnostic, Location
from p4front.driver import Checked, Compiled, check_file, compile_file, parse_declarations

__all__ = [
    "Checked",
    "CompileError",
    "Compiled",
    "Diagnostic",
    "Location",
    "check_file",
    "compile_file",
    "parse_declarations",
]

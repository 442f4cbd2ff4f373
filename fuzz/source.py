"""Broken P4: compiled, or refused with diagnostics that have a place; what compiles is also taken by the switch."""

from __future__ import annotations

import random
import re
import tempfile
from pathlib import Path

import p4front
from fastswitch.codegen import ProgramError, generate_c
from fuzz.mutation import mutated_bytes
from fuzz.packets import sources
from fuzz.target import Fault, Target
from p4front.diagnostics import CompileError

_TOKEN = re.compile(r'"[^"\n]*"|[A-Za-z_]\w*|\d\w*|[ \t]+|\n|&&&|\+\+|<<|>>|[=!<>]=|.', re.DOTALL)
_INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*"([^"]+)".*$', re.MULTILINE)
_HOSTILE = (
    *("0", "1", "8w255", "4s7", "0w1", "1w0", "99999999999999999999", "0xFFFF_FFFF", "1 << 70000", "-1", "..", "_"),
    *("(", ")", "{", "}", "[", "]", "<", ">", ";", ",", ".", "@", "#", "\\", "\0", '"', "'", "/*", "//", "&&&", "++"),
    *("true", "default", "this", "error", "main", "hdr", "std", "packet", "accept", "reject", "start", "int", "void"),
    *("bit<0>", "bit<1>", "bit<4096>", "bit<99999999>", "int<1>", "varbit<8>", "varbit<99999>", "bool", "tuple<>"),
    *("extern", "control", "parser", "action", "table", "apply", "exit", "return", "switch", "transition", "select"),
    *("#include <core.p4>", "#define hdr hdr hdr", "#if 1/0", "#include \"/dev/zero\"", "@name(\"*/x\")", "@id(0)"),
    *("list<int>", "H<H>", "(bit<8>)", "!", "~", "-", "?", ":", "x(x)", "{...}", "((((((((", "))))))))", "\U0001f600"),
)  # fmt: skip
_NESTING = ("(", "{", "-", "!", "a.", "[", "(bit<8>)", "tuple<", "if (true) ", "1+", "else ", "@a(")
_TEXTS = 10


class Source(Target):
    """Mutations of one program's tokens or bytes."""

    name = "p4"
    sanitized = False

    def __init__(self, keep: Path | None = None) -> None:
        super().__init__(keep)
        self._sources = sources()
        self._scratch = tempfile.TemporaryDirectory(prefix="plait-fuzz-")

    def close(self) -> None:
        self._scratch.cleanup()

    def case(self, rng: random.Random) -> int:
        source = rng.choice(self._sources[:2] if rng.random() < 0.5 else self._sources)
        text = inlined(source)
        tokens = _TOKEN.findall(text)
        path = Path(self._scratch.name) / "program.p4"
        for number in range(_TEXTS):
            if rng.random() < 0.2:
                data = mutated_bytes(rng, text.encode())
            else:
                data = "".join(_mutated(rng, tokens)).encode(errors="surrogatepass")
            self.save(f"program-{number}.p4", data)
            path.write_bytes(data)
            _compile(path)
        return _TEXTS


def inlined(source: Path) -> str:
    """The text, with what it includes from beside it."""
    text = source.read_text()

    def replaced(found: re.Match[str]) -> str:
        other = source.parent / found.group(1)
        return inlined(other) if other.exists() else found.group(0)

    return _INCLUDE.sub(replaced, text)


def _mutated(rng: random.Random, tokens: list[str]) -> list[str]:
    found = list(tokens)
    for _ in range(rng.choice([1, 1, 2, 3, 6])):
        place, other = rng.randrange(len(found)), rng.randrange(len(found))
        match rng.randrange(8):
            case 0:
                del found[place]
            case 1:
                found.insert(place, found[other])
            case 2:
                found[place], found[other] = found[other], found[place]
            case 3:
                found[place] = rng.choice(_HOSTILE)
            case 4:
                found[place : place + rng.randrange(1, 30)] = []
            case 5:
                found[place:place] = found[other : other + rng.randrange(1, 60)]
            case 6 if rng.random() < 0.3:  # deep nesting
                found[place] = rng.choice(_NESTING) * rng.choice([10, 300, 5000])
            case _:
                words = [each for each in found if each[0].isalnum()]
                found[place] = rng.choice(words or _HOSTILE)
        if not found:
            break
    return found


def _compile(path: Path) -> None:
    try:
        made = p4front.compile_file(path)
        text = made.json_text
        _ = made.p4info
    except CompileError as error:
        if not error.diagnostics or not all(str(each) for each in error.diagnostics):
            raise Fault("a refusal without diagnostics") from error
        return
    try:
        generate_c(text)
    except ProgramError as error:
        if "missing" in str(error) or "expected" in str(error):
            raise Fault(f"the front-end's JSON is malformed: {error}") from error

"""Emits names.h: for every enum a function from code to name, for C that talks to people (never for eBPF)."""

from __future__ import annotations

from collections.abc import Iterator

from wire.declarations import Enum, Source
from wire.text import notice


def emit(sources: list[Source]) -> str:
    lines = [
        f"/* {notice(sources)} */",
        "#ifndef PLAIT_WIRE_NAMES_H",
        "#define PLAIT_WIRE_NAMES_H\n",
        '#include "wire.h"\n',
        '/* Names of codes for user-space C; a code without a name gives "UNKNOWN". */\n',
    ]
    for source in sources:
        for enum in source.of(Enum):
            lines.extend(_name_function(enum))
    lines.append("#endif")
    return "\n".join(lines) + "\n"


def _name_function(enum: Enum) -> Iterator[str]:
    yield f"static inline const char *wire_{enum.name}_name(unsigned code)"
    yield "{\n\tswitch (code) {"
    for member, _ in enum.members:
        yield f'\tcase WIRE_{enum.name.upper()}_{member}:\n\t\treturn "{member}";'
    yield '\t}\n\treturn "UNKNOWN";\n}\n'

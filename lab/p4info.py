"""The names in a P4Info text, for completion: read without protobuf, whose import would be felt at every tab.

The text format of protocol buffers, as far as P4Info needs it: `name: value` and `name { … }`.
"""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|[{}]|[^\s{}:"]+')

Message = dict[str, list[Any]]


def read_p4info(path: Path) -> Message:
    """Every field as the list of its values: texts, or messages.  Empty for a file that cannot be read."""
    try:
        tokens = (match.group() for match in _TOKEN.finditer(path.read_text()))
        return _message(tokens)
    except (OSError, StopIteration):
        return {}


def _message(tokens: Iterator[str]) -> Message:
    found: Message = {}
    for name in tokens:
        if name == "}":
            break
        value = next(tokens)
        found.setdefault(name, []).append(_message(tokens) if value == "{" else value.strip('"'))
    return found


def name_of(thing: Message) -> str:
    return str(thing["preamble"][0]["name"][0])


def find(things: list[Message], name: str) -> Message:
    """The thing of that name or unique end of a name; an empty message where there is none."""
    ends = [thing for thing in things if f".{name_of(thing)}".endswith(f".{name}")]
    return ends[0] if ends else {}

"""STF text to statements.

The language is that of p4c's `tools/stf` with the commands that its BMv2 runner adds: a statement a line, `#` starts a
comment, keywords in any case, names may be quoted.

    packet PORT hex…                    expect PORT [hex with * …] [$]
    add TABLE [priority] key:value … action(name:value, …) [= ID]
    setdefault TABLE action(…)          remove all          wait          no_packet
    check_counter NAME(index or $ID) [packets|bytes ==|!=|<|<=|>|>= number]
    mirroring_add …, mc_…, counter_…, register_…, meter_…: commands of simple_switch_CLI
"""

import re
from collections.abc import Callable
from dataclasses import dataclass


class StfError(Exception):
    """A line that is no STF. The message starts with FILE:LINE."""


@dataclass(frozen=True, slots=True)
class Statement:
    line: int
    verb: str


@dataclass(frozen=True, slots=True)
class Packet(Statement):
    port: int
    data: bytes


@dataclass(frozen=True, slots=True)
class Expect(Statement):
    """`pattern` is hex digits and `*`, or None for any packet; `exact` excludes further bytes."""

    port: int
    pattern: str | None
    exact: bool


@dataclass(frozen=True, slots=True)
class Value:
    """A number as written, where `*` may stand for digits; `prefix` is what followed a slash."""

    text: str
    prefix: int | None = None


@dataclass(frozen=True, slots=True)
class Call:
    action: str
    arguments: tuple[tuple[str, Value], ...]


@dataclass(frozen=True, slots=True)
class Add(Statement):
    table: str
    priority: int | None
    keys: tuple[tuple[str, Value], ...]
    call: Call
    label: str | None


@dataclass(frozen=True, slots=True)
class SetDefault(Statement):
    table: str
    call: Call


@dataclass(frozen=True, slots=True)
class CheckCounter(Statement):
    """`index` is a number, or the label of an entry; without `relation` the counter is read only."""

    counter: str
    index: int | str
    unit: str
    relation: str | None
    value: int


@dataclass(frozen=True, slots=True)
class Command(Statement):
    """`name` is that of a counter, register or meter, "" for commands without; `rates` are meters' rate:burst pairs."""

    name: str
    numbers: tuple[int, ...]
    rates: tuple[tuple[float, int], ...] = ()


_TOKEN = re.compile(
    r"""\s*(?:"(?P<quoted>[^"]+)"
        |(?P<number>0[xX][0-9a-fA-F*]+|0[bB][01*]+|0[oO][0-7*]+|[0-9]+(?:\.[0-9]+)?)(?![A-Za-z0-9_*])
        |(?P<name>[A-Za-z_$][A-Za-z0-9_$]*)
        |(?P<symbol>==|!=|<=|>=|[:,.\[\]()/=<>]))""",
    re.VERBOSE,
)
_COMMENT = re.compile(r"""^((?:[^#"]|"[^"]*")*)#.*$""")
_LINE = re.compile(r"\s*(?P<verb>[A-Za-z_]+)(?P<rest>.*)$")
_RELATIONS = ("==", "!=", "<", "<=", ">", ">=")
_MAX_PORT = 511

# Verb: has it a name, how many numbers at least and at most, has it rates.
_COMMANDS: dict[str, tuple[bool, int, int, bool]] = {
    "mirroring_add": (False, 2, 2, False),
    "mirroring_add_mc": (False, 2, 2, False),
    "mirroring_delete": (False, 1, 1, False),
    "mirroring_get": (False, 1, 1, False),
    "mc_mgrp_create": (False, 1, 1, False),
    "mc_node_create": (False, 2, 1000, False),
    "mc_node_update": (False, 2, 1000, False),
    "mc_node_associate": (False, 2, 2, False),
    "counter_read": (True, 1, 1, False),
    "counter_write": (True, 3, 3, False),
    "register_read": (True, 1, 1, False),
    "register_write": (True, 2, 2, False),
    "register_reset": (True, 0, 0, False),
    "meter_get_rates": (True, 1, 1, False),
    "meter_set_rates": (True, 1, 1, True),
    "meter_array_set_rates": (True, 0, 0, True),
}


def parse(text: str, file: str) -> list[Statement]:
    """The statements of a file's text, in order; StfError names `file` and the first line that is wrong."""
    statements = []
    for number, line in enumerate(text.splitlines(), 1):
        comment = _COMMENT.match(line)
        line = (comment.group(1) if comment else line).strip()
        if not line:
            continue
        try:
            statements.append(_statement(number, line))
        except _Wrong as wrong:
            raise StfError(f"{file}:{number}: {wrong}") from None
    return statements


def number(text: str) -> int:
    """An integer as STF writes it: decimal, 0x, 0b, 0o. ValueError for one with `*`."""
    return int(text, base=0 if text[1:2].isalpha() else 10)


class _Wrong(Exception):
    """What is wrong with a line."""


def _statement(line: int, text: str) -> Statement:
    match = _LINE.match(text)
    if match is None:
        raise _Wrong(f"{text!r} does not start with a command")
    verb, rest = match["verb"].lower(), match["rest"]
    if verb in ("packet", "expect"):
        return _packet(line, rest) if verb == "packet" else _expect(line, rest)
    tokens = _Tokens(rest)
    parser = _PARSERS.get(verb)
    if parser is not None:
        statement = parser(line, tokens)
    elif verb in _COMMANDS:
        statement = _command(line, verb, tokens)
    else:
        raise _Wrong(f"{match['verb']!r} is no STF command")
    tokens.end()
    return statement


def _port_and_data(verb: str, text: str) -> tuple[int, str]:
    port, *data = text.split(maxsplit=1)[:2] or [""]
    if not port.isdecimal() or len(port) > 9:
        raise _Wrong(f"{verb} needs a port number, not {port!r}")
    if int(port) > _MAX_PORT:
        raise _Wrong(f"port {port} is not within 0..{_MAX_PORT}")
    return int(port), "".join(data[0].split()) if data else ""


def _packet(line: int, text: str) -> Packet:
    port, data = _port_and_data("packet", text)
    try:
        return Packet(line, "packet", port, bytes.fromhex(data))
    except ValueError:
        raise _Wrong(f"packet data {data[:80]!r} is not an even number of hexadecimal digits") from None


def _expect(line: int, text: str) -> Expect:
    port, data = _port_and_data("expect", text)
    pattern = data.removesuffix("$")
    if re.fullmatch(r"[0-9a-fA-F*]*", pattern) is None:
        raise _Wrong(f"expected data {data[:80]!r} is not hexadecimal digits, '*', and '$' at the end")
    return Expect(line, "expect", port, pattern.upper() if data else None, data != pattern)


class _Tokens:
    """The rest of a line, token by token."""

    def __init__(self, text: str) -> None:
        self._items: list[tuple[str, str]] = []
        position, text = 0, text.rstrip()
        while position < len(text):
            match = _TOKEN.match(text, position)
            if match is None:
                raise _Wrong(f"{text[position:].lstrip()[:20]!r} is not understood")
            kind = match.lastgroup or ""
            self._items.append(("name" if kind == "quoted" else kind, match[kind]))
            position = match.end()
        self._next = 0

    def peek(self, ahead: int = 0) -> tuple[str, str]:
        """Kind ("name", "number", "symbol", "" at the end) and text."""
        place = self._next + ahead
        return self._items[place] if place < len(self._items) else ("", "the end of the line")

    def take(self, kind: str, text: str | None = None) -> str:
        found, value = self.peek()
        if found != kind or (text is not None and value.lower() != text):
            wanted = repr(text) if text is not None else f"a {kind}"
            raise _Wrong(f"expected {wanted} before {value!r}")
        self._next += 1
        return value

    def took(self, symbol: str) -> bool:
        if self.peek() != ("symbol", symbol):
            return False
        self._next += 1
        return True

    def end(self) -> None:
        if self.peek()[0]:
            raise _Wrong(f"{self.peek()[1]!r} is too much")

    def integer(self) -> int:
        text = self.take("number")
        try:
            return number(text)
        except ValueError:
            raise _Wrong(f"{text!r} is no whole number") from None

    def qualified(self) -> str:
        # qualified : name [ "[" number "]" ] { "." name [ "[" number "]" ] }
        name = ""
        while True:
            name += self.take("name")
            if self.took("["):
                name += f"[{self.integer()}]"
                self.take("symbol", "]")
            if not self.took("."):
                return name
            name += "."

    def value(self) -> Value:
        text = self.take("number")
        if "." in text:
            raise _Wrong(f"{text!r} is no whole number")
        return Value(text, self.integer() if self.took("/") else None)

    def call(self, action: str) -> Call:
        # call : qualified "(" [ name ":" value { "," name ":" value } ] ")"        after its name
        arguments: list[tuple[str, Value]] = []
        self.take("symbol", "(")
        while not self.took(")"):
            if arguments:
                self.take("symbol", ",")
            name = self.take("name")
            self.take("symbol", ":")
            arguments.append((name, self.value()))
        return Call(action, tuple(arguments))


def _add(line: int, tokens: _Tokens) -> Add:
    table = tokens.qualified()
    priority = tokens.integer() if tokens.peek()[0] == "number" else None
    keys = []
    while True:
        name = tokens.qualified()
        if not tokens.took(":"):
            break
        keys.append((name, tokens.value()))
    call = tokens.call(name)  # a key and the action begin alike, with a name
    label = tokens.take("name") if tokens.took("=") else None
    return Add(line, "add", table, priority, tuple(keys), call, label)


def _set_default(line: int, tokens: _Tokens) -> SetDefault:
    return SetDefault(line, "setdefault", tokens.qualified(), tokens.call(tokens.qualified()))


def _remove(line: int, tokens: _Tokens) -> Command:
    tokens.take("name", "all")
    return Command(line, "remove", "", ())


def _check_counter(line: int, tokens: _Tokens) -> CheckCounter:
    name = tokens.qualified()
    tokens.take("symbol", "(")
    index = tokens.integer() if tokens.peek()[0] == "number" else tokens.take("name").removeprefix("$")
    tokens.take("symbol", ")")
    if not tokens.peek()[0]:
        return CheckCounter(line, "check_counter", name, index, "packets", None, 0)
    unit = tokens.take("name").lower()
    if unit not in ("packets", "bytes"):
        raise _Wrong(f"a counter counts packets or bytes, not {unit!r}")
    relation = tokens.take("symbol")
    if relation not in _RELATIONS:
        raise _Wrong(f"{relation!r} is none of {' '.join(_RELATIONS)}")
    return CheckCounter(line, "check_counter", name, index, unit, relation, tokens.integer())


def _bare(verb: str) -> Callable[[int, _Tokens], Command]:
    return lambda line, tokens: Command(line, verb, "", ())


def _command(line: int, verb: str, tokens: _Tokens) -> Command:
    has_name, at_least, at_most, has_rates = _COMMANDS[verb]
    name = tokens.qualified() if has_name else ""
    numbers: list[int] = []
    while tokens.peek()[0] == "number" and tokens.peek(1) != ("symbol", ":"):
        numbers.append(tokens.integer())
    if not at_least <= len(numbers) <= at_most:
        wanted = str(at_least) if at_least == at_most else f"{at_least} or more"
        raise _Wrong(f"{verb} needs {wanted} numbers, not {len(numbers)}")
    rates: list[tuple[float, int]] = []
    while has_rates and tokens.peek()[0] == "number":
        rate = float(tokens.take("number"))
        tokens.take("symbol", ":")
        rates.append((rate, tokens.integer()))
    if has_rates and len(rates) != 2:
        raise _Wrong(f"{verb} needs 2 pairs rate:burst, not {len(rates)}")
    return Command(line, verb, name, tuple(numbers), tuple(rates))


_PARSERS: dict[str, Callable[[int, _Tokens], Statement]] = {
    "add": _add,
    "setdefault": _set_default,
    "remove": _remove,
    "check_counter": _check_counter,
    "wait": _bare("wait"),
    "no_packet": _bare("no_packet"),
}

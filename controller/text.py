"""Matches and actions as people write them, read against a table's schema.  Pure.

match      hdr.ipv4.dst_addr=10.0.0.0/24     (any unique end of the field's name will do: dst_addr)
action     forward(src_mac=…, dst_mac=…, port=3)   forward(…, …, 3)   NoAction
group      {forward(port=1)*2, forward(port=2)}
reference  member(7)   group(3)              (entries of the action profile, where a table has one)
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Sequence
from typing import Any

import finsy as fy
from finsy.p4schema import P4ActionProfile, P4ActionRef, P4ActionScope, P4MatchField, P4MatchType, P4Table

from controller import values
from controller.errors import EntryTextError
from controller.names import NO_NAMES, Names

_WITH_PRIORITY = (P4MatchType.TERNARY, P4MatchType.RANGE, P4MatchType.OPTIONAL)

_MAX_SIGNED = (1 << 31) - 1

_TOKEN = re.compile(r"\s*(?:(?P<punctuation>[(){},=*])|(?P<word>[^\s(){},=*]+))")


def find(kind: str, name: str, known: Iterable[Any]) -> Any:
    """The thing of that name, or of that unique end of a dotted name; EntryTextError suggests what was meant."""
    named = {thing.name: thing for thing in known}
    if name in named:
        return named[name]
    ends = [full for full in named if full.endswith(f".{name}")]
    if len(ends) == 1:
        return named[ends[0]]
    if ends:
        raise EntryTextError(f"{kind} {name!r} is ambiguous: {', '.join(sorted(ends))}")
    if not named:
        raise EntryTextError(f"no {kind} named {name!r}: there are none")
    shorts = {full.rpartition(".")[2]: full for full in named}
    near = difflib.get_close_matches(name, [*named, *shorts], n=1, cutoff=0.5)
    hint = f"did you mean {near[0]!r}?" if near else f"there are {', '.join(sorted(named))}"
    raise EntryTextError(f"no {kind} named {name!r}: {hint}")


# --- match ---


def key_fields(table: P4Table) -> list[P4MatchField]:
    """The fields that entries match: not a selector's inputs."""
    return [field for field in table.match_fields if isinstance(field.match_type, P4MatchType)]


def kind(field: P4MatchField) -> str:
    """How the field is matched: "exact", "lpm", "ternary", …"""
    return field.match_type.name.lower() if isinstance(field.match_type, P4MatchType) else field.match_type


def needs_priority(table: P4Table) -> bool:
    return any(field.match_type in _WITH_PRIORITY for field in key_fields(table))


def parse_match(table: P4Table, texts: Sequence[str], names: Names = NO_NAMES) -> fy.P4TableMatch:
    """The match of an entry from FIELD=VALUE texts; EntryTextError names what is wrong or missing."""
    fields = key_fields(table)
    found: dict[str, object] = {}
    given = set()
    for text in texts:
        name, separator, value = text.partition("=")
        if not separator:
            raise EntryTextError(f"{text!r}: a match is FIELD=VALUE")
        field = find(f"key field of {table.alias}", name.strip(), fields)
        if field.name in given:
            raise EntryTextError(f"{field.name} is given twice")
        given.add(field.name)
        match = values.parse_field(field, value, names)
        if match is not None:
            found[field.name] = match
    for field in fields:
        if field.match_type is P4MatchType.EXACT and field.name not in given:
            raise EntryTextError(f"{table.alias}: the exact key {field.name} is missing")
    return fy.P4TableMatch(found)


def check_priority(table: P4Table, priority: int | None) -> int:
    """The priority for P4Runtime: needed with ternary, range and optional keys, senseless without."""
    if needs_priority(table):
        if priority is None or priority < 1:
            raise EntryTextError(f"{table.alias} needs a priority of at least 1: the larger wins")
        return values.bounded("priority", priority, 1, _MAX_SIGNED)
    if priority:
        raise EntryTextError(f"{table.alias} takes no priority: it has exact and lpm keys only")
    return 0


# --- action ---


def actions_of(table: P4Table, default: bool = False) -> list[P4ActionRef]:
    """The actions that entries of the table may have, or that its default may be."""
    other = P4ActionScope.TABLE_ONLY if default else P4ActionScope.DEFAULT_ONLY
    return [action for action in table.actions if action.scope is not other]


def parse_action(
    table: P4Table, text: str, default: bool = False, names: Names = NO_NAMES
) -> fy.P4TableAction | fy.P4IndirectAction:
    """The action, action set or reference that a text describes; EntryTextError says what was expected, and where.

    `default`: it is to be the table's default action.
    """
    profile = table.action_profile is not None
    parser = _ActionParser(f"action of {table.alias}", text, actions_of(table, default), names)
    action = parser.entry(table.alias, profile)
    parser.end()
    return action


def parse_call(profile: P4ActionProfile, text: str, names: Names = NO_NAMES) -> fy.P4TableAction:
    """The action of a profile's member."""
    parser = _ActionParser(f"action of {profile.alias}", text, list(profile.actions), names)
    action = parser.call()
    parser.end()
    return action


class _ActionParser:
    """Recursive descent; each method's comment is its part of the grammar."""

    def __init__(self, kind: str, text: str, actions: Sequence[Any], names: Names) -> None:
        self.kind = kind
        self.actions = actions
        self.names = names
        self.text = text
        self.tokens = self._tokens(text)
        self.position = 0

    @staticmethod
    def _tokens(text: str) -> list[str]:
        # Every character but white space belongs to a token, so that nothing is skipped.
        return [match.group("punctuation") or match.group("word") for match in _TOKEN.finditer(text.rstrip())]

    def entry(self, table: str, profile: bool) -> fy.P4TableAction | fy.P4IndirectAction:
        # entry : set | reference | call
        if self._peek() == "{":
            if not profile:
                raise EntryTextError(f"{table} takes one action an entry, not a set: it has no action profile")
            return self._set()
        if self._peek() in ("member", "group") and profile:
            return self._reference()
        return self.call()

    def _set(self) -> fy.P4IndirectAction:
        # set : "{" weighted { "," weighted } "}"      weighted : call [ "*" number ]
        self._expect("{")
        members = []
        while True:
            call = self.call()
            members.append((self._weight(), call))
            if self._peek() != ",":
                break
            self._next()
        self._expect("}")
        return fy.P4IndirectAction(members)

    def _weight(self) -> int:
        if self._peek() != "*":
            return 1
        self._next()
        word = self._next()
        if not word.isdigit() or int(word) < 1:
            raise EntryTextError(f"{self.text!r}: a weight is a number from 1, not {word!r}")
        return values.bounded("weight", int(word), 1, _MAX_SIGNED)

    def _reference(self) -> fy.P4IndirectAction:
        # reference : ( "member" | "group" ) "(" number ")"
        kind = self._next()
        self._expect("(")
        number = values.parse_value(self._next(), 32, kind)
        self._expect(")")
        assert isinstance(number, int)
        return fy.P4IndirectAction(member_id=number) if kind == "member" else fy.P4IndirectAction(group_id=number)

    def call(self) -> fy.P4TableAction:
        # call : name [ "(" [ argument { "," argument } ] ")" ]
        name = self._next()
        action = find(self.kind, name, self.actions)
        arguments: dict[str, int | str] = {}
        if self._peek() == "(":
            self._next()
            while self._peek() != ")":
                self._argument(action, arguments)
                if self._peek() != ",":
                    break
                self._next()
            self._expect(")")
        missing = [param.name for param in action.params if param.name not in arguments]
        if missing:
            raise EntryTextError(f"{action.alias}: {', '.join(missing)} missing; it is {_signature(action)}")
        return fy.P4TableAction(action.name, **arguments)

    def _argument(self, action: Any, arguments: dict[str, int | str]) -> None:
        # argument : [ name "=" ] value
        word = self._next()
        params = list(action.params)
        if self._peek() == "=":
            self._next()
            param, word = find(f"parameter of {action.alias}", word, params), self._next()
        elif len(arguments) < len(params):
            param = params[len(arguments)]
        else:
            raise EntryTextError(f"{action.alias}: {word!r} is one argument too many; it is {_signature(action)}")
        if param.name in arguments:
            raise EntryTextError(f"{action.alias}: {param.name} is given twice")
        arguments[param.name] = values.parse_value(word, param.bitwidth, param.name, self.names)

    def _peek(self) -> str:
        return self.tokens[self.position] if self.position < len(self.tokens) else ""

    def _next(self) -> str:
        token = self._peek()
        if not token:
            raise EntryTextError(f"{self.text!r} ends too early")
        self.position += 1
        return token

    def _expect(self, token: str) -> None:
        if self._peek() != token:
            raise EntryTextError(f"{self.text!r}: expected {token!r} before {self._peek() or 'the end'!r}")
        self.position += 1

    def end(self) -> None:
        if self._peek():
            raise EntryTextError(f"{self.text!r}: nothing may follow after the action, but there is {self._peek()!r}")


def _signature(action: Any) -> str:
    return f"{action.alias}({', '.join(param.name for param in action.params)})"

"""Match fields: one class per match kind, from `p4r.FieldMatch` to the engine's key bytes and back.

The engine wants every field of a table in one string per role (value, mask, upper bound), each field padded to
whole bytes. What P4Runtime calls "don't care" is an omitted field.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from finsy.proto import p4i, p4r

from fastswitch.server.codec import Bits
from fastswitch.server.errors import invalid_argument


class FieldKey(NamedTuple):
    """One field of a key, padded: `high` is the upper bound of a range, `prefix_len` that of an LPM field."""

    value: bytes
    mask: bytes
    high: bytes
    prefix_len: int = 0


class Key(NamedTuple):
    """A whole key in the engine's form. Unused roles are None, so that equal entries have equal keys."""

    value: bytes
    mask: bytes | None = None
    prefix_len: int | None = None
    high: bytes | None = None


class MatchField:
    """What all kinds share. `encode` checks, makes the message's strings canonical, and gives the engine's form."""

    kind = ""  # name of the oneof member
    dont_care: FieldKey | None  # what omitting the field means; None if it must be there

    def __init__(self, info: p4i.MatchField, bits: Bits) -> None:
        self.id = info.id
        self.name = info.name
        self.bits = bits
        self.what = f"match field '{info.name}'"
        self.ones = bits.encode_int(-1)
        self.zeros = bytes(bits.size)
        self.dont_care = None

    def encode(self, match: p4r.FieldMatch) -> FieldKey:
        """Engine form of `match`, whose strings become canonical."""
        raise NotImplementedError

    def decode(self, key: FieldKey) -> p4r.FieldMatch | None:
        """The message for an engine key; None for don't care."""
        raise NotImplementedError

    def _check_kind(self, match: p4r.FieldMatch) -> None:
        kind = match.WhichOneof("field_match_type")
        if kind != self.kind:
            invalid_argument(f"{self.what} is {self.kind}, but the request gives {kind or 'nothing'}")

    def _value(self, holder: p4r.FieldMatch.Exact | p4r.FieldMatch.LPM | p4r.FieldMatch.Ternary) -> bytes:
        value = holder.value
        canonical = self.bits.canonical(value, self.what)
        if canonical is not value:
            holder.value = canonical
        return self.bits.padded(canonical)


class ExactField(MatchField):
    """`exact`: mandatory."""

    kind = "exact"

    def encode(self, match: p4r.FieldMatch) -> FieldKey:
        """See MatchField."""
        self._check_kind(match)
        value = self._value(match.exact)
        return FieldKey(value, self.ones, value)

    def decode(self, key: FieldKey) -> p4r.FieldMatch | None:
        """See MatchField."""
        exact = p4r.FieldMatch.Exact(value=self.bits.from_padded(key.value))
        return p4r.FieldMatch(field_id=self.id, exact=exact)


class OptionalField(MatchField):
    """`optional`: an exact value, or omitted."""

    kind = "optional"

    def __init__(self, info: p4i.MatchField, bits: Bits) -> None:
        super().__init__(info, bits)
        self.dont_care = FieldKey(self.zeros, self.zeros, self.ones)

    def encode(self, match: p4r.FieldMatch) -> FieldKey:
        """See MatchField."""
        self._check_kind(match)
        value = self._value(match.optional)  # type: ignore[arg-type]
        return FieldKey(value, self.ones, value)

    def decode(self, key: FieldKey) -> p4r.FieldMatch | None:
        """See MatchField."""
        if not any(key.mask):
            return None
        optional = p4r.FieldMatch.Optional(value=self.bits.from_padded(key.value))
        return p4r.FieldMatch(field_id=self.id, optional=optional)


class LpmField(MatchField):
    """`lpm`: no bit of the value may be set past the prefix."""

    kind = "lpm"

    def __init__(self, info: p4i.MatchField, bits: Bits) -> None:
        super().__init__(info, bits)
        self.dont_care = FieldKey(self.zeros, self.zeros, self.ones, 0)
        width = bits.width
        self._masks = [bits.encode_int(-1 << (width - length)) for length in range(width + 1)]
        self._rests = [(1 << (width - length)) - 1 for length in range(width + 1)]

    def encode(self, match: p4r.FieldMatch) -> FieldKey:
        """See MatchField."""
        self._check_kind(match)
        lpm = match.lpm
        length = lpm.prefix_len
        if not 0 < length <= self.bits.width:
            if length == 0:
                invalid_argument(f"{self.what}: prefix length 0 matches everything; omit the field instead")
            invalid_argument(f"{self.what}: prefix length {length} is not within 1..{self.bits.width}")
        value = self._value(lpm)
        rest = int.from_bytes(value, "big") & self._rests[length]
        if rest:
            invalid_argument(f"{self.what}: bits past the prefix of {length} are set (0x{rest:x})")
        mask = self._masks[length]
        return FieldKey(value, mask, value, length)

    def decode(self, key: FieldKey) -> p4r.FieldMatch | None:
        """See MatchField."""
        if key.prefix_len == 0:
            return None
        lpm = p4r.FieldMatch.LPM(value=self.bits.from_padded(key.value), prefix_len=key.prefix_len)
        return p4r.FieldMatch(field_id=self.id, lpm=lpm)


class TernaryField(MatchField):
    """`ternary`: no bit of the value may be set outside the mask."""

    kind = "ternary"

    def __init__(self, info: p4i.MatchField, bits: Bits) -> None:
        super().__init__(info, bits)
        self.dont_care = FieldKey(self.zeros, self.zeros, self.ones)
        self._mask_what = self.what + " (mask)"

    def encode(self, match: p4r.FieldMatch) -> FieldKey:
        """See MatchField."""
        self._check_kind(match)
        ternary = match.ternary
        value = self._value(ternary)
        given = ternary.mask
        canonical = self.bits.canonical(given, self._mask_what)
        if canonical is not given:
            ternary.mask = canonical
        mask = self.bits.padded(canonical)
        mask_number = int.from_bytes(mask, "big")
        if mask_number == 0:
            invalid_argument(f"{self.what}: mask 0 matches everything; omit the field instead")
        outside = int.from_bytes(value, "big") & ~mask_number
        if outside:
            invalid_argument(f"{self.what}: bits of the value outside the mask are set (0x{outside:x})")
        return FieldKey(value, mask, value)

    def decode(self, key: FieldKey) -> p4r.FieldMatch | None:
        """See MatchField."""
        if not any(key.mask):
            return None
        bits = self.bits
        ternary = p4r.FieldMatch.Ternary(value=bits.from_padded(key.value), mask=bits.from_padded(key.mask))
        return p4r.FieldMatch(field_id=self.id, ternary=ternary)


class RangeField(MatchField):
    """`range`: both bounds included."""

    kind = "range"

    def __init__(self, info: p4i.MatchField, bits: Bits) -> None:
        super().__init__(info, bits)
        self.dont_care = FieldKey(self.zeros, self.ones, self.ones)
        self._low_what, self._high_what = self.what + " (low)", self.what + " (high)"

    def encode(self, match: p4r.FieldMatch) -> FieldKey:
        """See MatchField."""
        self._check_kind(match)
        bounds = match.range
        low = self.bits.canonical(bounds.low, self._low_what)
        high = self.bits.canonical(bounds.high, self._high_what)
        bounds.low, bounds.high = low, high
        low, high = self.bits.padded(low), self.bits.padded(high)
        if low > high:
            invalid_argument(f"{self.what}: low 0x{low.hex()} is above high 0x{high.hex()}")
        if low == self.zeros and high == self.ones:
            invalid_argument(f"{self.what}: the full range matches everything; omit the field instead")
        return FieldKey(low, self.ones, high)

    def decode(self, key: FieldKey) -> p4r.FieldMatch | None:
        """See MatchField."""
        if key.value == self.zeros and key.high == self.ones:
            return None
        bits = self.bits
        bounds = p4r.FieldMatch.Range(low=bits.from_padded(key.value), high=bits.from_padded(key.high))
        return p4r.FieldMatch(field_id=self.id, range=bounds)


_FIELD_CLASSES: dict[int, type[MatchField]] = {
    p4i.MatchField.EXACT: ExactField,
    p4i.MatchField.LPM: LpmField,
    p4i.MatchField.TERNARY: TernaryField,
    p4i.MatchField.RANGE: RangeField,
    p4i.MatchField.OPTIONAL: OptionalField,
}


def match_field(info: p4i.MatchField, bits: Bits) -> MatchField:
    """The field of P4Info as its class; UNIMPLEMENTED kinds are refused by name."""
    field_class = _FIELD_CLASSES.get(info.match_type)
    if field_class is None:
        invalid_argument(f"match field '{info.name}' has a match type Plait does not know: {info.other_match_type!r}")
    return field_class(info, bits)


def assembler(kinds: Sequence[str]) -> Callable[[list[FieldKey]], Key]:
    """How fields of these kinds, in the engine's order, become one key: the kinds decide which roles it has."""
    join = b"".join
    if "range" in kinds:
        return lambda parts: Key(
            join([p.value for p in parts]), join([p.mask for p in parts]), None, join([p.high for p in parts])
        )
    if "ternary" in kinds or "optional" in kinds:
        return lambda parts: Key(join([p.value for p in parts]), join([p.mask for p in parts]))
    if "lpm" in kinds:
        if len(kinds) == 1:
            return lambda parts: Key(parts[0].value, None, parts[0].prefix_len)
        at = list(kinds).index("lpm")
        return lambda parts: Key(join([p.value for p in parts]), None, parts[at].prefix_len)
    return lambda parts: Key(join([p.value for p in parts]))


class KeyCodec:
    """All fields of a table's key, in P4Info's order; the engine's order may differ (`order`)."""

    def __init__(self, table: str, fields: list[MatchField], order: list[int]) -> None:
        self.table = table
        self.fields = fields
        self._index = {field.id: i for i, field in enumerate(fields)}
        self._order = order
        kinds = {field.kind for field in fields}
        self.needs_priority = bool(kinds & {"ternary", "range", "optional"})
        self._defaults: list[FieldKey | None] = [field.dont_care for field in fields]
        self.assemble = assembler([fields[i].kind for i in order])

    def encode(self, matches: Iterable[p4r.FieldMatch]) -> Key:
        """The engine's key of a `match` list; INVALID_ARGUMENT with the field's name if a rule is broken."""
        found = self._defaults.copy()
        seen = 0
        for match in matches:
            index = self._index.get(match.field_id)
            if index is None:
                ids = ", ".join(f"{field.id} ({field.name})" for field in self.fields)
                invalid_argument(f"table '{self.table}' has no match field {match.field_id}; it has {ids or 'none'}")
            if seen >> index & 1:
                invalid_argument(f"{self.fields[index].what} of table '{self.table}' is given twice")
            seen |= 1 << index
            found[index] = self.fields[index].encode(match)
        parts: list[FieldKey] = []
        for index in self._order:
            part = found[index]
            if part is None:
                invalid_argument(f"{self.fields[index].what} of table '{self.table}' is exact and must be given")
            parts.append(part)
        return self.assemble(parts)

    def decode(self, parts: list[FieldKey]) -> list[p4r.FieldMatch]:
        """The `match` list of engine fields given in the engine's order."""
        by_index = dict(zip(self._order, parts, strict=True))
        matches = [field.decode(by_index[i]) for i, field in enumerate(self.fields)]
        return [match for match in matches if match is not None]

"""Match fields: one class per match kind, from `p4r.FieldMatch` to the engine's key bytes and back.

The engine wants every field of a table in one string per role (value, mask, upper bound), each field padded to
whole bytes. What P4Runtime calls "don't care" is an omitted field.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from finsy.proto import p4i, p4r

from fastswitch.server.codec import Bits
from fastswitch.server.errors import invalid_argument

FieldKey = tuple[bytes, bytes, bytes, int]
"""One field of a key, padded: value, mask, upper bound of a range, prefix length of an LPM field. Named tuples take
several times as long to make, and an entry needs one a field."""

Key = tuple[bytes, bytes | None, int | None, bytes | None]
"""A whole key in the engine's form: value, mask, prefix length, upper bound. Unused roles are None, so that equal
entries have equal keys."""


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
        if not match.HasField(self.kind):  # type: ignore[arg-type]
            given = match.WhichOneof("field_match_type")
            invalid_argument(f"{self.what} is {self.kind}, but the request gives {given or 'nothing'}")

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
        return value, self.ones, value, 0

    def decode(self, key: FieldKey) -> p4r.FieldMatch | None:
        """See MatchField."""
        exact = p4r.FieldMatch.Exact(value=self.bits.from_padded(key[0]))
        return p4r.FieldMatch(field_id=self.id, exact=exact)


class OptionalField(MatchField):
    """`optional`: an exact value, or omitted."""

    kind = "optional"

    def __init__(self, info: p4i.MatchField, bits: Bits) -> None:
        super().__init__(info, bits)
        self.dont_care = self.zeros, self.zeros, self.ones, 0

    def encode(self, match: p4r.FieldMatch) -> FieldKey:
        """See MatchField."""
        self._check_kind(match)
        value = self._value(match.optional)  # type: ignore[arg-type]
        return value, self.ones, value, 0

    def decode(self, key: FieldKey) -> p4r.FieldMatch | None:
        """See MatchField."""
        value, mask, _, _ = key
        if not any(mask):
            return None
        optional = p4r.FieldMatch.Optional(value=self.bits.from_padded(value))
        return p4r.FieldMatch(field_id=self.id, optional=optional)


class LpmField(MatchField):
    """`lpm`: no bit of the value may be set past the prefix."""

    kind = "lpm"

    def __init__(self, info: p4i.MatchField, bits: Bits) -> None:
        super().__init__(info, bits)
        self.dont_care = self.zeros, self.zeros, self.ones, 0
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
        return value, mask, value, length

    def decode(self, key: FieldKey) -> p4r.FieldMatch | None:
        """See MatchField."""
        value, _, _, length = key
        if length == 0:
            return None
        lpm = p4r.FieldMatch.LPM(value=self.bits.from_padded(value), prefix_len=length)
        return p4r.FieldMatch(field_id=self.id, lpm=lpm)


class TernaryField(MatchField):
    """`ternary`: no bit of the value may be set outside the mask."""

    kind = "ternary"

    def __init__(self, info: p4i.MatchField, bits: Bits) -> None:
        super().__init__(info, bits)
        self.dont_care = self.zeros, self.zeros, self.ones, 0
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
        return value, mask, value, 0

    def decode(self, key: FieldKey) -> p4r.FieldMatch | None:
        """See MatchField."""
        value, mask, _, _ = key
        if not any(mask):
            return None
        bits = self.bits
        ternary = p4r.FieldMatch.Ternary(value=bits.from_padded(value), mask=bits.from_padded(mask))
        return p4r.FieldMatch(field_id=self.id, ternary=ternary)


class RangeField(MatchField):
    """`range`: both bounds included."""

    kind = "range"

    def __init__(self, info: p4i.MatchField, bits: Bits) -> None:
        super().__init__(info, bits)
        self.dont_care = self.zeros, self.ones, self.ones, 0
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
        return low, self.ones, high, 0

    def decode(self, key: FieldKey) -> p4r.FieldMatch | None:
        """See MatchField."""
        low, _, high, _ = key
        if low == self.zeros and high == self.ones:
            return None
        bits = self.bits
        bounds = p4r.FieldMatch.Range(low=bits.from_padded(low), high=bits.from_padded(high))
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


def _assembler(kinds: Sequence[str], order: Sequence[int]) -> Callable[[list[FieldKey]], Key]:
    """How a table's fields become one key. The kinds decide which roles it has; `order` is the engine's."""
    join = b"".join
    if "range" in kinds:
        return lambda f: (
            join([f[i][0] for i in order]),
            join([f[i][1] for i in order]),
            None,
            join([f[i][2] for i in order]),
        )
    if "ternary" in kinds or "optional" in kinds:
        return lambda f: (join([f[i][0] for i in order]), join([f[i][1] for i in order]), None, None)
    if "lpm" in kinds:
        at = list(kinds).index("lpm")
        return lambda f: (join([f[i][0] for i in order]), None, f[at][3], None)
    if len(order) == 1:
        return lambda f: (f[0][0], None, None, None)
    return lambda f: (join([f[i][0] for i in order]), None, None, None)


class KeyCodec:
    """All fields of a table's key, in P4Info's order; the engine's order may differ (`order`).

    `mask` is what the table cuts packets' keys with, in the engine's form and order (`hdr.eth.dst & mask` in the
    program). It cuts the values of entries as well, as in BMv2: what differs outside it only is the same entry.
    """

    def __init__(self, table: str, fields: list[MatchField], order: list[int], mask: bytes | None = None) -> None:
        self.table = table
        self.fields = fields
        self._index = {field.id: i for i, field in enumerate(fields)}
        self._order = order
        kinds = {field.kind for field in fields}
        self.needs_priority = bool(kinds & {"ternary", "range", "optional"})
        self._defaults: list[FieldKey | None] = [field.dont_care for field in fields]
        self._mandatory = sum(1 << i for i, field in enumerate(fields) if field.dont_care is None)
        self._assemble = _assembler([field.kind for field in fields], order)
        self._mask = None if mask is None else int.from_bytes(mask, "big")

    def encode(self, matches: Iterable[p4r.FieldMatch]) -> Key:
        """The engine's key of a `match` list; INVALID_ARGUMENT with the field's name if a rule is broken."""
        found: list[Any] = self._defaults.copy()
        seen = 0
        for match in matches:
            index = self._index.get(match.field_id)
            if index is None:
                ids = ", ".join(f"{field.id} ({field.name})" for field in self.fields)
                invalid_argument(f"table '{self.table}' has no match field {match.field_id}; it has {ids or 'none'}")
            field = self.fields[index]
            if seen >> index & 1:
                invalid_argument(f"{field.what} of table '{self.table}' is given twice")
            seen |= 1 << index
            found[index] = field.encode(match)
        if self._mandatory & ~seen:
            missing = next(self.fields[i] for i in self._order if self._mandatory & ~seen & 1 << i)
            invalid_argument(f"{missing.what} of table '{self.table}' is exact and must be given")
        key = self._assemble(found)
        if self._mask is None:
            return key
        value, mask, prefix_len, high = key
        number = int.from_bytes(value, "big") & self._mask
        return number.to_bytes(len(value), "big"), mask, prefix_len, high

    def decode(self, parts: list[FieldKey]) -> list[p4r.FieldMatch]:
        """The `match` list of engine fields given in the engine's order."""
        by_index = dict(zip(self._order, parts, strict=True))
        matches = [field.decode(by_index[i]) for i, field in enumerate(self.fields)]
        return [match for match in matches if match is not None]

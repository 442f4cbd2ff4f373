"""Values between P4Runtime and the engine.

P4Runtime carries a value as the shortest big-endian string that holds it ("canonical"; zero is one zero byte) and
accepts longer ones. The engine takes big-endian strings padded to whole bytes of the field's width.
"""

from fastswitch.server.errors import invalid_argument, resource_exhausted

_MAX_SDN_NAMES = 65_536  # a translation table that a client can fill must end somewhere


class Bits:
    """A `bit<width>` value."""

    __slots__ = ("_top", "size", "width")

    def __init__(self, width: int) -> None:
        self.width = width
        self.size = (width + 7) // 8
        self._top = 0xFF >> (-width % 8)  # largest first byte of a padded string

    def canonical(self, value: bytes, what: str) -> bytes:
        """`value` in canonical form; INVALID_ARGUMENT if it is empty or does not fit. `what` names it in the text."""
        length = len(value)
        if length == 0:
            invalid_argument(f"{what}: the value is empty; zero is one zero byte")
        if value[0] == 0 and length > 1:
            value = value.lstrip(b"\0") or b"\0"
            length = len(value)
        if length > self.size or (length == self.size and value[0] > self._top):
            invalid_argument(f"{what}: value 0x{value[:40].hex()} is out of range of {self.width} bits")
        return value

    def padded(self, canonical: bytes) -> bytes:
        """The engine's form of a canonical value."""
        return canonical.rjust(self.size, b"\0")

    def from_padded(self, padded: bytes) -> bytes:
        """The canonical form of an engine value."""
        return padded.lstrip(b"\0") or b"\0"

    def encode_int(self, value: int) -> bytes:
        """The engine's form of an integer, reduced to the width."""
        return (value & ((1 << self.width) - 1)).to_bytes(self.size, "big")


class SignedBits(Bits):
    """An `int<width>` value: two's complement, sign-extended instead of zero-padded."""

    __slots__ = ()

    def canonical(self, value: bytes, what: str) -> bytes:
        """The shortest two's-complement string of the same number."""
        if not value:
            invalid_argument(f"{what}: the value is empty; zero is one zero byte")
        number = int.from_bytes(value, "big", signed=True)
        if not -(1 << (self.width - 1)) <= number < 1 << (self.width - 1):
            invalid_argument(f"{what}: value 0x{value[:40].hex()} is out of range of a signed {self.width}-bit number")
        return _shortest_signed(number)

    def padded(self, canonical: bytes) -> bytes:
        """The engine's form: the number modulo 2^width."""
        return self.encode_int(int.from_bytes(canonical, "big", signed=True))

    def from_padded(self, padded: bytes) -> bytes:
        """The canonical form of an engine value."""
        number = int.from_bytes(padded, "big")
        if number >> (self.width - 1):
            number -= 1 << self.width
        return _shortest_signed(number)


def _shortest_signed(number: int) -> bytes:
    bits = (number if number >= 0 else ~number).bit_length() + 1
    return number.to_bytes((bits + 7) // 8, "big", signed=True)


class TranslatedBits(Bits):
    """A value whose width at the controller (`sdn_bitwidth`) is not the one in the data plane."""

    __slots__ = ("_controller",)

    def __init__(self, width: int, controller_width: int) -> None:
        super().__init__(width)
        self._controller = Bits(controller_width)

    def canonical(self, value: bytes, what: str) -> bytes:
        """Checked against both widths: the translation is the identity."""
        return super().canonical(self._controller.canonical(value, what), what)


class SdnString(Bits):
    """A value that the controller names by a string (`sdn_string`).

    A decimal string stands for its number, as port names usually are. Other names get numbers as they appear, from
    three quarters of the range downwards and then from the top: decimal names lie below, and the drop and CPU ports,
    which a name must not mean by chance, above.
    """

    __slots__ = ("_names", "_next", "_numbers")

    def __init__(self, width: int) -> None:
        super().__init__(width)
        self._numbers: dict[bytes, int] = {}
        self._names: dict[int, bytes] = {}
        self._next = (3 << width) // 4 - 1

    def canonical(self, value: bytes, what: str) -> bytes:
        """Any string that is not empty is its own canonical form."""
        if not value:
            invalid_argument(f"{what}: the name is empty")
        if value not in self._numbers:
            self._assign(value, what)
        return value

    def padded(self, canonical: bytes) -> bytes:
        """The number behind the name."""
        return self.encode_int(self._numbers[canonical])

    def from_padded(self, padded: bytes) -> bytes:
        """The name behind the number; a number without a name is written in decimal."""
        number = int.from_bytes(padded, "big")
        return self._names.get(number) or str(number).encode()

    def _assign(self, name: bytes, what: str) -> None:
        if len(self._names) >= min(_MAX_SDN_NAMES, 1 << self.width):
            resource_exhausted(f"{what}: no number is left for the name {name[:80]!r}")
        number = -1
        if name.isdigit() and len(name) <= 20:
            number = int(name)
            if str(number).encode() != name or number >> self.width or number in self._names:
                number = -1
        if number < 0:
            while self._next in self._names:
                self._next = (self._next - 1) % (1 << self.width)
            number = self._next
        self._names[number] = name
        self._numbers[name] = number

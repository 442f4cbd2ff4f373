"""Fields to and from big-endian bytes, in words: headers are loaded and stored by at most 8 bytes at a time."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from .expr import constant
from .layout import Place

# Text of `count` (1 to 64) bits of a value, starting `low` bits above its lowest: uint64_t without other bits set.
Slice = Callable[[int, int], str]


@dataclass(frozen=True, slots=True)
class Item:
    """A value to pack: its width, and how to get at its bits."""

    width: int
    slice: Slice


@dataclass(frozen=True, slots=True)
class Word:
    offset: int  # bytes
    size: int  # 8, 4, 2 or 1 bytes
    text: str


def words(total_bytes: int) -> Iterator[tuple[int, int]]:
    """Offsets and sizes that cover `total_bytes` with the fewest accesses, none beyond the end."""
    offset = 0
    for size in (8, 4, 2, 1):
        while total_bytes - offset >= size:
            yield offset, size
            offset += size


def zero_item(width: int) -> Item:
    return Item(width, lambda low, count: constant(0, 64))


def constant_item(value: int, width: int) -> Item:
    return Item(width, lambda low, count: constant(value >> low & ((1 << count) - 1), 64))


def place_item(place: Place, width: int) -> Item:
    """An item that reads a stored field."""

    def take(low: int, count: int) -> str:
        mask = constant((1 << count) - 1, 64)
        if place.limbs:
            limb, shift = divmod(low, 64)
            text = f"({place.path}[{limb}] >> {shift})" if shift else f"{place.path}[{limb}]"
            if shift and shift + count > 64:
                text = f"({text} | {place.path}[{limb + 1}] << {64 - shift})"
            return text if count == 64 else f"({text} & {mask})"
        if place.bits == 128:
            text = f"(uint64_t)({place.path} >> {low})" if low else f"(uint64_t){place.path}"
        else:
            text = place.path if place.bits == 64 else f"(uint64_t){place.path}"
            text = f"({text} >> {low})" if low else text
        whole = low + count == width and not place.shared
        return text if whole or count == 64 else f"({text} & {mask})"

    return Item(width, take)


def text_item(text: str, width: int) -> Item:
    """An item of at most 64 bits that is given as C text of a uint64_t without higher bits."""

    def take(low: int, count: int) -> str:
        shifted = f"({text} >> {low})" if low else text
        return shifted if low + count == width else f"({shifted} & {constant((1 << count) - 1, 64)})"

    return Item(width, take)


def pack_bits(items: list[Item], start: int, count: int) -> str:
    """Text of bits [start, start + count) of the concatenation of `items`; bits beyond its end are zero."""
    parts = []
    position = 0
    for item in items:
        begin, end = max(position, start), min(position + item.width, start + count)
        if begin < end:
            low = position + item.width - end
            text = item.slice(low, end - begin)
            shift = start + count - end
            if text != constant(0, 64):
                parts.append(f"{text} << {shift}" if shift else text)
        position += item.width
    if not parts:
        return constant(0, 64)
    return parts[0] if len(parts) == 1 else "(" + " | ".join(f"({part})" for part in parts) + ")"


def pack(items: list[Item]) -> list[Word]:
    """The concatenation of `items`, padded with zero bits at the end, as words."""
    total = sum(item.width for item in items)
    return [Word(offset, size, pack_bits(items, 8 * offset, 8 * size)) for offset, size in words((total + 7) // 8)]


def unpack(widths: list[int], name: Callable[[int], str]) -> tuple[list[tuple[int, int]], list[list[tuple[int, str]]]]:
    """How to take fields of `widths` out of loaded words.

    Returns the words to load, the i-th as variable name(i), and for each field its pieces: (bits, text), most
    significant first.
    """
    loads = list(words((sum(widths) + 7) // 8))
    fields = []
    position = 0
    for width in widths:
        pieces = []
        for index, (offset, size) in enumerate(loads):
            begin, end = max(position, 8 * offset), min(position + width, 8 * (offset + size))
            if begin >= end:
                continue
            shift = 8 * (offset + size) - end
            text = f"({name(index)} >> {shift})" if shift else name(index)
            if begin > 8 * offset:
                text = f"({text} & {constant((1 << (end - begin)) - 1, 64)})"
            pieces.append((end - begin, text))
        fields.append(pieces)
        position += width
    return loads, fields


def joined(pieces: list[tuple[int, str]]) -> str:
    """At most 64 bits of pieces as one uint64_t."""
    texts = []
    shift = 0
    for bits, text in reversed(pieces):
        texts.append(f"({text} << {shift})" if shift else text)
        shift += bits
    return texts[0] if len(texts) == 1 else "(" + " | ".join(reversed(texts)) + ")"

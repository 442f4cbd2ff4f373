"""The topologies by name, with typed, documented parameters: what the command line, experiments and `mn` offer.

    choose("leafspine", {"spines": 2, "leaves": "4", "rate": "100M"}).build()
    parse_choice("fattree:k=8").build()

What is no generator's name is a file in one of the formats of `mininet_topos.files`.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from mininet_topos.dumbbell import dumbbell, dumbbell_bisection_bps
from mininet_topos.fattree import fattree, fattree_bisection_bps
from mininet_topos.jellyfish import jellyfish
from mininet_topos.leafspine import MPRDMA_PATHS, MPRDMA_TOR_HOSTS, leafspine, mprdma, two_tier_bisection_bps
from mininet_topos.quantities import parse_rate, parse_time, rate_text, time_text
from mininet_topos.topology import Topology, TopologyError

Value = int | float | str
Kind = Literal["count", "rate", "time", "number", "text"]

# What text of a kind has to look like, and the suffix of a generator's argument of that kind.
LOOKS = {
    "count": "a whole number",
    "rate": "a rate such as 100M",
    "time": "a time such as 50us",
    "number": "a number",
    "text": "text",
}
_SUFFIX = {"rate": "_bps", "time": "_ns"}


@dataclass(frozen=True, slots=True)
class Parameter:
    """A parameter as users know it.  `default`: as a user would write it; None: what `help` says."""

    name: str
    kind: Kind
    help: str
    default: Value | None = None

    @property
    def argument(self) -> str:
        """The generator's argument: rates in bits per second end in `_bps`, times in nanoseconds in `_ns`."""
        return self.name + _SUFFIX.get(self.kind, "")

    def read(self, value: object) -> Value:
        """A value in the generator's unit from a user's text or number; TopologyError says what was expected."""
        try:
            return self._read(value)
        except (ValueError, TypeError, OverflowError):
            raise TopologyError(self.name, f"{value!r} is not {LOOKS[self.kind]}") from None

    def _read(self, value: object) -> Value:
        if isinstance(value, bool) or not isinstance(value, int | float | str):
            raise TypeError
        match self.kind:
            case "count":
                if isinstance(value, float) and not value.is_integer():
                    raise ValueError
                return int(value)
            case "number":
                return float(value)
            case "rate":
                return parse_rate(value) if isinstance(value, str) else int(value)
            case "time":
                return parse_time(value) if isinstance(value, str) else int(value)
        return str(value)

    def text(self, value: Value) -> str:
        """A value in the generator's unit as `read` takes it back."""
        if self.kind == "rate":
            return rate_text(int(value))
        return time_text(int(value)) if self.kind == "time" else str(value)


@dataclass(frozen=True, slots=True)
class Generator:
    """`bisection_bps`: the exact bisection bandwidth of what `make` makes, where there is a closed form."""

    name: str
    summary: str
    make: Callable[..., Topology]
    parameters: tuple[Parameter, ...]
    bisection_bps: Callable[[Topology], int] | None = None

    def read(self, values: Mapping[str, object]) -> dict[str, Value]:
        """Users' values in the generators' units, by parameter; TopologyError names one that is unknown or wrong."""
        known = {parameter.name: parameter for parameter in self.parameters}
        for name in values:
            if name not in known:
                raise TopologyError(name, f"no parameter of {self.name}{_hint(name, known)}")
        return {name: known[name].read(value) for name, value in values.items() if value is not None}


@dataclass(frozen=True, slots=True)
class Choice:
    """A generator with its parameters, or a file, as somebody chose it.  Values are in generators' units."""

    generator: Generator
    values: Mapping[str, Value] = field(default_factory=dict)

    @property
    def name(self) -> str:
        return self.generator.name

    def arguments(self) -> dict[str, Value]:
        """The generator's arguments, defaults included; those that are derived from others are left out."""
        found = {}
        for parameter in self.generator.parameters:
            if parameter.name in self.values:
                found[parameter.argument] = self.values[parameter.name]
            elif parameter.default is not None:
                found[parameter.argument] = parameter.read(parameter.default)
        return found

    def build(self) -> Topology:
        """TopologyError, naming the field, where these parameters give no topology."""
        return self.generator.make(**self.arguments())

    def __str__(self) -> str:
        """As `parse_choice` reads it."""
        given = [f"{p.name}={p.text(self.values[p.name])}" for p in self.generator.parameters if p.name in self.values]
        return ":".join(filter(None, (self.name, ",".join(given))))


def choose(name: str, values: Mapping[str, object] | None = None) -> Choice:
    """TopologyError for an unknown name or parameter, or a value of the wrong kind."""
    generator = find_generator(name)
    return Choice(generator, generator.read(values or {}))


def parse_choice(text: str) -> Choice:
    """`fattree`, `leafspine:spines=4,leaves=8`: a name and its parameters in one word."""
    name, _, rest = text.partition(":")
    values = {}
    for item in filter(None, rest.split(",")):
        key, equals, value = item.partition("=")
        if not equals:
            raise TopologyError(key, f"has no value; write {name}:{key}=...")
        values[key] = value
    return choose(name, values)


def find_generator(name: str) -> Generator:
    """The generator of that name, or one that reads the file of that name; TopologyError for neither."""
    if name in GENERATORS:
        return GENERATORS[name]
    if looks_like_a_file(name):
        return _file_generator(Path(name))
    raise TopologyError("topology", f"{name!r} is no topology and no file{_hint(name, GENERATORS)}")


def looks_like_a_file(name: str) -> bool:
    return "/" in name or "." in name


def _hint(name: str, known: Mapping[str, object]) -> str:
    close = difflib.get_close_matches(name, known, 1)
    return f"; did you mean {close[0]}?" if close else f"; known are {', '.join(known)}"


# --- the topologies ---

_RATE = Parameter("rate", "rate", "Rate of every link.", "100M")
_DELAY = Parameter("delay", "time", "One-way delay of every link.", "50us")
_LOSS = Parameter("loss", "number", "Probability that a link loses a packet.", 0.0)


def _tier(name: str, links: str, other: str = "") -> tuple[Parameter, Parameter]:
    """Rate and delay of the links of one tier, where they are not those of all."""
    return (
        Parameter(f"{name}_rate", "rate", f"Rate of the links {links}, if not --rate{other}."),
        Parameter(f"{name}_delay", "time", f"Delay of the links {links}, if not --delay."),
    )


_TO_HOSTS = _tier("host", "to the hosts")


def _equipped_jellyfish(
    switches: int | None = None,
    ports: int | None = None,
    hosts: int | None = None,
    like: str | None = None,
    **others: Any,
) -> Topology:
    """Jellyfish by numbers, or with the equipment of another topology: as many switches, each its ports, and hosts."""
    if like is None:
        counts = (20 if switches is None else switches, 4 if ports is None else ports)
        if counts[0] < 1:
            raise TopologyError("switches", f"must be 1 or more, is {counts[0]}")
        return jellyfish([counts[1]] * min(counts[0], 1 << 20), 16 if hosts is None else hosts, **others)
    for name, value in (("switches", switches), ("ports", ports), ("hosts", hosts)):
        if value is not None:
            raise TopologyError("like", f"says how many {name} there are: give it or {name}, not both")
    try:
        model = parse_choice(like).build()
    except TopologyError as error:
        raise TopologyError(f"like: {error.field}", error.reason) from None
    return jellyfish([len(model.ports(switch.name)) for switch in model.switches], len(model.hosts), **others)


GENERATORS: dict[str, Generator] = {
    generator.name: generator
    for generator in (
        Generator(
            "fattree",
            "k-ary fat-tree: core, aggregation and edge switches of k ports",
            fattree,
            (
                Parameter("k", "count", "Ports of a switch, even: k^3/4 hosts, 5k^2/4 switches.", 4),
                _RATE,
                _DELAY,
                _LOSS,
                *_TO_HOSTS,
                *_tier("agg", "between edge and aggregation"),
                *_tier("core", "to the core"),
            ),
            fattree_bisection_bps,
        ),
        Generator(
            "leafspine",
            "every leaf linked to every spine (two-tier Clos)",
            leafspine,
            (
                Parameter("spines", "count", "Spine switches.", 2),
                Parameter("leaves", "count", "Leaf switches, one a rack.", 4),
                Parameter("hosts_per_leaf", "count", "Hosts of every leaf.", 4),
                Parameter("parallel", "count", "Links from a leaf to each spine.", 1),
                Parameter(
                    "oversubscription", "number",
                    "Capacity of a leaf's hosts over that of its uplinks: sets the uplinks' rate.",
                ),
                _RATE,
                _DELAY,
                _LOSS,
                *_TO_HOSTS,
                *_tier("spine", "to the spines", " and without --oversubscription"),
            ),
            two_tier_bisection_bps,
        ),
        Generator(
            "jellyfish",
            "random graph of equal switches, connected and without parallel links",
            _equipped_jellyfish,
            (
                Parameter("switches", "count", "Switches, one a rack.  [default: 20]"),
                Parameter("ports", "count", "Ports of a switch, those to hosts included.  [default: 4]"),
                Parameter("hosts", "count", "Hosts of all switches together, spread evenly.  [default: 16]"),
                Parameter("like", "text", "Same equipment as another topology, such as fattree:k=8."),
                Parameter("seed", "count", "Of the random graph.", 1),
                _RATE,
                _DELAY,
                _LOSS,
                *_TO_HOSTS,
            ),
        ),
        Generator(
            "dumbbell",
            "hosts on both sides of one link",
            dumbbell,
            (
                Parameter("left", "count", "Hosts of the first switch.", 4),
                Parameter("right", "count", "Hosts of the second switch.", 4),
                _RATE,
                _DELAY,
                _LOSS,
                *_tier("bottleneck", "between the switches"),
            ),
            dumbbell_bisection_bps,
        ),
        Generator(
            "mprdma",
            "MP-RDMA's testbed: two racks joined by four paths of a switch each, at the paper's rate and delay",
            mprdma,
            (
                Parameter("paths", "count", "Switches between the two ToRs.", MPRDMA_PATHS),
                Parameter("hosts_per_tor", "count", "Hosts of either ToR.", MPRDMA_TOR_HOSTS),
                Parameter("rate", "rate", "Rate of every link.", "40G"),
                Parameter("delay", "time", "One-way delay of every link: 12 us of RTT across the ToRs.", "1500ns"),
                _LOSS,
                *_tier("path", "of the paths"),
            ),
            two_tier_bisection_bps,
        ),
    )
}  # fmt: skip


def _file_generator(path: Path) -> Generator:
    def make(rate_bps: int, delay_ns: int, scale: float) -> Topology:
        from mininet_topos.files import read

        return read(path, rate_bps, delay_ns, scale)

    return Generator(str(path), f"the topology of {path}", make, FILE_PARAMETERS)


FILE_PARAMETERS = (
    Parameter("rate", "rate", "Rate of links for which the file gives none.", "100M"),
    Parameter("delay", "time", "One-way delay of links for which the file gives none.", "50us"),
    Parameter("scale", "number", "Factor on all rates, such as 0.001: to emulate 100G as 100M.", 1.0),
)

"""An experiment as a TOML file: read, checked field by field, with errors that name the place."""

from __future__ import annotations

import difflib
import tomllib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from controller.errors import ControllerError
from controller.parameters import PARAMETERS, check
from lab import units
from lab.config import DEFAULT_PROGRAM, LabConfig
from lab.errors import UsageError
from lab.nics import NIC_SETTINGS, TRANSPORTS, HostNic, plain
from lab.workload_sizes import SizeDistribution
from mininet_topos.catalogue import GENERATORS, LOOKS, Choice, find_generator, looks_like_a_file
from mininet_topos.topology import TopologyError

T = TypeVar("T")

# Each flow takes a queue pair at either end, of the 4,096 that the laboratory's NICs have; those of the workload before
# may not be gone yet.
MAX_FLOWS = 1000
_REQUIRED = object()
_WORKLOADS = ("permutation", "poisson")
# Of a topology's parameters in TOML: quantities are text, so that their unit is seen.
_KINDS: dict[str, type | tuple[type, ...]] = {
    "count": int, "number": (int, float), "rate": str, "time": str, "text": str
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Balancer:
    """A load balancer under test.

    weights: WCMP's, of a group's next hops in the order of their ports; none: equal.  mark_remaining: the hosts' data
    packets say how much of their message is left, as `srpt` needs it.
    """

    name: str
    program: Path
    parameters: Mapping[str, int | str]
    weights: tuple[int, ...]
    mark_remaining: bool = False


@dataclass(frozen=True, slots=True)
class Workload:
    """kind "permutation": every host sends `size_bytes`.  "poisson": `load` of the hosts' links by flows of `sizes`,
    whose sizes were multiplied by `scale`, until `flows` or `duration_s`."""

    name: str
    kind: str
    size_bytes: int = 0
    sizes: SizeDistribution | None = None
    scale: float = 1.0
    load: float = 0.0
    flows: int | None = None
    duration_s: float | None = None


@dataclass(frozen=True, slots=True)
class Experiment:
    name: str
    text: str  # the file
    lab: LabConfig
    queue_packets: int | None  # depth of every switch port's queue; None: the laboratory's own
    seeds: tuple[int, ...]
    balancers: tuple[Balancer, ...]
    nics: tuple[HostNic, ...]
    losses: tuple[float, ...]  # probabilities that a link between switches loses a packet, one after the other
    workloads: tuple[Workload, ...]
    capture_hosts: int
    keep_captures: bool
    sample_s: float
    timeout_s: float


class _Table:
    """One table of the file: takes keys out, and complains of what is left."""

    def __init__(self, values: object, where: str) -> None:
        if not isinstance(values, dict):
            raise UsageError(f"{where}: expected a table.")
        self._values = dict(values)
        self._known: list[str] = []
        self.where = where

    def take(self, key: str, kind: type | tuple[type, ...], what: str, default: Any = _REQUIRED) -> Any:
        self._known.append(key)
        if key not in self._values:
            if default is _REQUIRED:
                raise UsageError(f"{self.where}: {key} is missing; it is {what}.")
            return default
        value = self._values.pop(key)
        kinds = kind if isinstance(kind, tuple) else (kind,)
        if not isinstance(value, kinds) or (isinstance(value, bool) and bool not in kinds):
            raise UsageError(f"{self.where}: {key} = {value!r}: expected {what}.")
        return value

    def parsed(self, key: str, parse: Callable[[str], T], what: str, default: Any = _REQUIRED) -> T:
        """Text that `parse` takes; its error is told with the place."""
        return self._named(key, lambda: parse(self.take(key, str, what, default)))

    def number(self, key: str, low: float, high: float, default: Any = _REQUIRED) -> float:
        value = self.take(key, (int, float), f"a number from {low:g} to {high:g}", default)
        return float(self._bounded(key, value, low, high))

    def whole(self, key: str, low: int, high: int, default: Any = _REQUIRED) -> int:
        value = self.take(key, int, f"a whole number from {low} to {high}", default)
        return int(self._bounded(key, value, low, high))

    def _bounded(self, key: str, value: Any, low: float, high: float) -> Any:
        if not low <= value <= high:
            raise UsageError(f"{self.where}: {key} = {value!r}: it is from {low:g} to {high:g}.")
        return value

    def _named(self, key: str, work: Callable[[], T]) -> T:
        try:
            return work()
        except UsageError as error:
            text = str(error)
            raise UsageError(text if text.startswith(self.where) else f"{self.where}: {key}: {text}") from None

    def has(self, key: str) -> bool:
        self._known.append(key)
        return key in self._values

    def done(self) -> None:
        for key in self._values:
            close = difflib.get_close_matches(key, self._known, 1)
            hint = f"did you mean {close[0]}?" if close else f"known are {', '.join(dict.fromkeys(self._known))}."
            raise UsageError(f"{self.where}: unknown key {key!r}; {hint}")


def read_experiment(path: Path) -> Experiment:
    """UsageError names file, table and field of the first mistake."""
    try:
        text = path.read_text()
        values = tomllib.loads(text)
    except OSError as error:
        raise UsageError(f"cannot read the experiment {path}: {error.strerror}.") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise UsageError(f"{path} is not TOML: {error}.") from error
    return parse_experiment(values, text, path)


def parse_experiment(values: object, text: str, path: Path) -> Experiment:
    """values: the parsed file. Paths in it are relative to the file's folder."""
    top = _Table(values, str(path))
    topology = _Table(top.take("topology", dict, "a table"), f"{path}: [topology]")
    balancers = _list(top, path, "balancer", lambda table: _balancer(table, path.parent))
    nics = _list(top, path, "nic", _nic) if top.has("nic") else (plain("gbn"),)
    workloads = _list(top, path, "workload", lambda table: _workload(table, path.parent))
    experiment = Experiment(
        name=top.take("name", str, "a word for the results folder", path.stem),
        text=text,
        lab=_lab(topology, balancers[0].program, path.parent, nics),
        queue_packets=topology.whole("queue_packets", 1, 100_000) if topology.has("queue_packets") else None,
        seeds=_seeds(top),
        balancers=balancers,
        nics=nics,
        losses=_losses(top),
        workloads=workloads,
        capture_hosts=top.whole("capture_hosts", 0, 1000, 4),
        keep_captures=top.take("keep_captures", bool, "true or false", False),
        sample_s=top.parsed("sample_every", units.parse_time, "a time such as 20ms", "20ms") / 1e9,
        timeout_s=top.parsed("timeout", units.parse_time, "a time such as 60s", "60s") / 1e9,
    )
    topology.done()
    top.done()
    if not experiment.name.replace("-", "").replace("_", "").isalnum():
        raise UsageError(f"{path}: name = {experiment.name!r}: letters, digits, - and _ only.")
    if experiment.sample_s < 0.001:
        raise UsageError(f"{path}: sample_every: it is 1ms or more.")
    return experiment


def _list(top: _Table, path: Path, key: str, read: Callable[[_Table], T]) -> tuple[T, ...]:
    """The [[key]] tables, each with a name of its own."""
    tables = top.take(key, list, f"one [[{key}]] table or more")
    if not tables:
        raise UsageError(f"{path}: {key} is empty; it is one [[{key}]] table or more.")
    found: dict[str, T] = {}
    for number, values in enumerate(tables, 1):
        table = _Table(values, f"{path}: [[{key}]] {number}")
        item = read(table)
        table.done()
        name: str = item.name  # type: ignore[attr-defined] # Balancer and Workload have one
        if name in found:
            raise UsageError(f"{table.where}: another {key} is called {name!r}.")
        found[name] = item
    return tuple(found.values())


def _lab(table: _Table, program: Path, folder: Path, nics: Sequence[HostNic]) -> LabConfig:
    chosen = _topology(table, folder)
    return LabConfig(
        chosen,
        links="memory",
        target="plait",
        program=program,
        seed=0,
        nic_memory_bytes=1 << 20,
        priority_queues=table.whole("priority_queues", 1, 8, 8),
        transports=tuple(dict.fromkeys(nic.transport for nic in nics)),
    )


def _topology(table: _Table, folder: Path) -> Choice:
    """A topology of `plait topo` by its name, or a file; its parameters are keys of the table."""
    kind = table.take("kind", str, "the name of a topology, or a file", "fattree")
    try:
        generator = find_generator(str(folder / kind) if looks_like_a_file(kind) else kind)
    except TopologyError as error:
        raise UsageError(f"{table.where}: kind = {error.reason}.") from None
    values: dict[str, object] = {}
    for parameter in generator.parameters:
        required = parameter.name == "rate" and generator.name in GENERATORS
        if required or table.has(parameter.name):
            values[parameter.name] = table.take(parameter.name, _KINDS[parameter.kind], LOOKS[parameter.kind])
    try:
        return Choice(generator, generator.read(values))
    except TopologyError as error:
        raise UsageError(f"{table.where}: {error}.") from None


def _seeds(top: _Table) -> tuple[int, ...]:
    seeds = top.take("seeds", list, "a list of whole numbers", [1])
    if not seeds or any(not isinstance(seed, int) or isinstance(seed, bool) or seed < 0 for seed in seeds):
        raise UsageError(f"{top.where}: seeds = {seeds!r}: expected one whole number or more, such as [1, 2].")
    if len(set(seeds)) < len(seeds):
        raise UsageError(f"{top.where}: seeds = {seeds!r}: a seed occurs twice.")
    return tuple(seeds)


def _losses(top: _Table) -> tuple[float, ...]:
    losses = top.take("losses", list, "a list of probabilities", [0.0])
    if not losses or any(not isinstance(p, int | float) or isinstance(p, bool) or not 0 <= p < 1 for p in losses):
        raise UsageError(f"{top.where}: losses = {losses!r}: expected one probability or more, such as [0, 0.001].")
    if len(set(losses)) < len(losses):
        raise UsageError(f"{top.where}: losses = {losses!r}: a probability occurs twice.")
    return tuple(map(float, losses))


def _nic(table: _Table) -> HostNic:
    transport = _choice(table, "transport", TRANSPORTS)
    settings = table.take("settings", dict, "a table of a queue pair's settings", {})
    for name, value in settings.items():
        if name not in NIC_SETTINGS:
            close = difflib.get_close_matches(name, NIC_SETTINGS, 1)
            hint = f"did you mean {close[0]}?" if close else f"known are {', '.join(NIC_SETTINGS)}."
            raise UsageError(f"{table.where}: settings: unknown setting {name!r}; {hint}")
        if not isinstance(value, bool | int | str):
            what = "a whole number, text, true or false"
            raise UsageError(f"{table.where}: settings: {name} = {value!r}: expected {what}.")
    return HostNic(table.take("name", str, "a name", transport), transport, settings)


def _choice(table: _Table, key: str, known: tuple[str, ...], default: Any = _REQUIRED) -> str:
    value: str = table.take(key, str, f"one of {', '.join(known)}", default)
    if value not in known:
        raise UsageError(f"{table.where}: {key} = {value!r}: known are {', '.join(known)}.")
    return value


def _balancer(table: _Table, folder: Path) -> Balancer:
    program = table.take("program", str, "the name of a program of p4src/, or a path that ends in .p4")
    path = folder / program if program.endswith(".p4") else DEFAULT_PROGRAM.parent / f"{program}.p4"
    if not path.is_file():
        raise UsageError(f"{table.where}: program = {program!r}: {path} is not a file.")
    weights = table.take("weights", list, "a list of whole numbers", [])
    if any(not isinstance(weight, int) or isinstance(weight, bool) or not 1 <= weight <= 16 for weight in weights):
        raise UsageError(f"{table.where}: weights = {weights!r}: expected whole numbers from 1 to 16.")
    parameters = table.take("parameters", dict, "a table of `plait lb set`'s parameters", {})
    return Balancer(
        name=table.take("name", str, "a name", path.stem),
        program=path,
        parameters={name: _parameter(table, name, value) for name, value in parameters.items()},
        weights=tuple(weights),
        mark_remaining=table.take("mark_remaining", bool, "true or false", False),
    )


def _parameter(table: _Table, name: str, value: object) -> int | str:
    """As `plait lb set` takes it, quantities with their units as text."""
    where = f"{table.where}: parameters"
    if isinstance(value, bool) or not isinstance(value, int | str):
        raise UsageError(f'{where}: {name} = {value!r}: expected a whole number or text such as "100us".')
    try:
        if isinstance(value, str) and name in PARAMETERS and PARAMETERS[name].unit == "us":
            value = round(units.parse_time(value) / 1000)
        elif isinstance(value, str) and name in PARAMETERS and PARAMETERS[name].unit == "bytes":
            value = units.parse_size(value)
        check(name, value)
    except (UsageError, ControllerError) as error:
        raise UsageError(f"{where}: {error}") from None
    return value


def _workload(table: _Table, folder: Path) -> Workload:
    kind = _choice(table, "kind", _WORKLOADS)
    name = table.take("name", str, "a name", kind)
    if kind == "permutation":
        return Workload(name, kind, size_bytes=table.parsed("size", units.parse_size, "a size such as 500KB"))
    scale = table.number("scale", 0.001, 1000, 1.0)
    sizes = SizeDistribution.read(folder / table.take("sizes", str, "a file of `bytes percent` lines")).scaled(scale)
    if table.has("flows") == table.has("duration"):
        raise UsageError(f"{table.where}: give either flows or duration.")
    flows = table.whole("flows", 1, MAX_FLOWS, None) if table.has("flows") else None
    duration = table.parsed("duration", units.parse_time, "a time such as 3s") / 1e9 if table.has("duration") else None
    load = table.number("load", 0.01, 2.0)
    return Workload(name, kind, sizes=sizes, scale=scale, load=load, flows=flows, duration_s=duration)

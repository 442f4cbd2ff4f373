"""Indexed state: counter, meter and register arrays. All are always there; they are only modified and read.

A write of a whole array may take long, so `modify` is a generator: it goes on when the caller asks for the next step.
"""

from collections.abc import Iterable, Iterator, Sequence
from itertools import repeat
from typing import NoReturn

from finsy.proto import p4i, p4r

from fastswitch.server.engine_api import Count, EngineSwitch
from fastswitch.server.errors import invalid_argument, out_of_range
from fastswitch.server.schema import Array

NO_COUNTS: Sequence[Count] = ((0, 0),) * 3  # of a meter's colors

_MAX_COUNT = (1 << 63) - 1
_CELLS_A_STEP = 512


def check_meter_config(config: p4r.MeterConfig, meter_type: int) -> None:
    """INVALID_ARGUMENT unless the configuration is one its meter type allows."""
    for name in ("cir", "cburst", "pir", "pburst", "eburst"):
        if getattr(config, name) < 0:
            invalid_argument(f"meter: {name} {getattr(config, name)} is negative")
    if config.cir > config.pir:
        invalid_argument(f"meter: cir {config.cir} is above pir {config.pir}")
    one_rate = meter_type != p4i.MeterSpec.TWO_RATE_THREE_COLOR
    if one_rate and (config.pir != config.cir or config.pburst != config.cburst):
        invalid_argument("meter: a single-rate meter needs pir = cir and pburst = cburst")
    if meter_type != p4i.MeterSpec.SINGLE_RATE_THREE_COLOR and config.eburst:
        invalid_argument("meter: eburst is for single-rate three-color meters only")


def cell_of(schema: Array, size: int, index: p4r.Index) -> int:
    """The cell an index names; the errors are the specification's."""
    if index.index < 0:
        invalid_argument(f"'{schema.name}': index {index.index} is negative")
    if index.index >= size:
        out_of_range(f"'{schema.name}': index {index.index} is not below its size {size}")
    return index.index


def color_data(counts: Sequence[Count]) -> p4r.MeterCounterData:
    """Counts of green, yellow and red as a message."""
    green, yellow, red = (counter_data(*count) for count in counts)
    return p4r.MeterCounterData(green=green, yellow=yellow, red=red)


def check_color_reset(data: p4r.MeterCounterData) -> None:
    """INVALID_ARGUMENT unless all counts are zero: clients may reset them only (section "MeterEntry")."""
    for color in ("green", "yellow", "red"):
        if getattr(data, color) != p4r.CounterData():
            invalid_argument(f"meter: the counts of its colors can only be set to zero, and {color} is not")


def counter_data(packets: int, bytes_: int) -> p4r.CounterData:
    """A counter as a message, whose integers are signed: beyond them it shows the most they hold."""
    return p4r.CounterData(packet_count=min(packets, _MAX_COUNT), byte_count=min(bytes_, _MAX_COUNT))


def _ends_step(cell: int) -> bool:
    return cell % _CELLS_A_STEP == _CELLS_A_STEP - 1


class CounterArray:
    """An indirect counter."""

    def __init__(self, schema: Array, engine: EngineSwitch, index: int | None) -> None:
        self.schema = schema
        self._engine = engine
        self._index = index

    def modify(self, request: p4r.CounterEntry) -> Iterator[None]:
        """MODIFY of one cell, or of all without an index, in steps. Without data nothing changes."""
        cells = self._cells(request)
        if not request.HasField("data") or self._index is None:
            return
        data = request.data
        if data.byte_count < 0 or data.packet_count < 0:
            invalid_argument(f"'{self.schema.name}': counters are not negative")
        for cell in cells:
            self._engine.counter_write(self._index, cell, data.packet_count, data.byte_count)
            if _ends_step(cell):
                yield

    def read(self, request: p4r.CounterEntry) -> Iterator[p4r.CounterEntry]:
        """One cell, or all without an index."""
        cells = self._cells(request)
        values: Iterable[Count]
        if self._index is None:
            values = repeat((0, 0), len(cells))
        elif len(cells) == 1:
            values = [self._engine.counter_read(self._index, cells[0])]
        else:
            values = self._engine.counter_read_all(self._index)
        for cell, (packets, bytes_) in zip(cells, values, strict=True):
            data = counter_data(packets, bytes_)
            yield p4r.CounterEntry(counter_id=self.schema.id, index=p4r.Index(index=cell), data=data)

    def _cells(self, request: p4r.CounterEntry) -> range:
        if not request.HasField("index"):
            return range(self.schema.size)
        cell = cell_of(self.schema, self.schema.size, request.index)
        return range(cell, cell + 1)


class MeterArray:
    """An indirect meter. Configurations are kept here; the engine counts what the meter marked."""

    def __init__(self, schema: Array, engine: EngineSwitch, index: int | None) -> None:
        self.schema = schema
        self._engine = engine
        self._index = index
        self._configs: dict[int, p4r.MeterConfig] = {}

    def modify(self, request: p4r.MeterEntry) -> Iterator[None]:
        """MODIFY of one cell, or of all without an index, in steps. Without a configuration the meter is green again;
        with counts, which must be zero, those of its colors start again."""
        resets = request.HasField("counter_data")
        if resets:
            check_color_reset(request.counter_data)
        config = None
        if request.HasField("config"):
            check_meter_config(request.config, self.schema.meter_type)
            config = p4r.MeterConfig()
            config.CopyFrom(request.config)
        for cell in self._cells(request):
            if config is not None:
                self._configs[cell] = config
                if self._index is not None:
                    self._engine.meter_set(self._index, cell, config.cir, config.cburst, config.pir, config.pburst)
            elif self._configs.pop(cell, None) is not None and self._index is not None:
                self._engine.meter_clear(self._index, cell)
            if resets:
                self.set_counts(cell, NO_COUNTS)
            if _ends_step(cell):
                yield

    def read(self, request: p4r.MeterEntry) -> Iterator[p4r.MeterEntry]:
        """One cell, or all without an index; the configuration is unset where it is the default, and the counts of
        the colors are there if the request has them."""
        for cell in self._cells(request):
            config = self._configs.get(cell)
            entry = p4r.MeterEntry(meter_id=self.schema.id, index=p4r.Index(index=cell), config=config)
            if request.HasField("counter_data"):
                entry.counter_data.CopyFrom(color_data(self.counts(cell)))
            yield entry

    def counts(self, cell: int) -> Sequence[Count]:
        """What a cell marked green, yellow and red."""
        return NO_COUNTS if self._index is None else self._engine.meter_counts(self._index, cell)

    def set_counts(self, cell: int, counts: Sequence[Count]) -> None:
        """Set what `counts` gives."""
        if self._index is not None:
            self._engine.meter_counts_set(self._index, cell, counts)

    def _cells(self, request: p4r.MeterEntry) -> range:
        if not request.HasField("index"):
            return range(self.schema.size)
        cell = cell_of(self.schema, self.schema.size, request.index)
        return range(cell, cell + 1)


class RegisterArray:
    """A register. BMv2 refuses these over P4Runtime."""

    def __init__(self, schema: Array, engine: EngineSwitch, index: int | None) -> None:
        self.schema = schema
        self._engine = engine
        self._index = index

    def modify(self, request: p4r.RegisterEntry) -> Iterator[None]:
        """MODIFY of one cell, or of all without an index, in steps."""
        cells = self._cells(request)
        if not request.HasField("data"):
            invalid_argument(f"register '{self.schema.name}': data must be set")
        assert self.schema.data is not None
        value = self.schema.data.encode(request.data, f"register '{self.schema.name}'")
        if self._index is None:
            return
        try:
            for cell in cells:
                self._engine.register_write(self._index, cell, value)
                if _ends_step(cell):
                    yield
        except ValueError as error:  # bound to live state
            invalid_argument(str(error))

    def read(self, request: p4r.RegisterEntry) -> Iterator[p4r.RegisterEntry]:
        """One cell, or all without an index."""
        cells = self._cells(request)
        data = self.schema.data
        assert data is not None
        values: Iterable[bytes]
        if self._index is None:
            values = repeat(bytes(sum(data.sizes)), len(cells))
        elif len(cells) == 1:
            values = [self._engine.register_read(self._index, cells[0])]
        else:
            values = self._engine.register_read_all(self._index)
        for cell, value in zip(cells, values, strict=False):  # a bound register has the engine's size
            yield p4r.RegisterEntry(register_id=self.schema.id, index=p4r.Index(index=cell), data=data.decode(value))

    def _cells(self, request: p4r.RegisterEntry) -> range:
        if not request.HasField("index"):
            return range(self.schema.size)
        cell = cell_of(self.schema, self.schema.size, request.index)
        return range(cell, cell + 1)


def only_modify(update_type: int, what: str) -> None:
    """INVALID_ARGUMENT unless the update is a MODIFY."""
    if update_type != p4r.Update.MODIFY:
        refuse_update(update_type, what)


def refuse_update(update_type: int, what: str) -> NoReturn:
    """INVALID_ARGUMENT: this entity does not take this update."""
    name = p4r.Update.Type.Name(update_type) if update_type in p4r.Update.Type.values() else str(update_type)
    invalid_argument(f"{what} take MODIFY only, not {name}")

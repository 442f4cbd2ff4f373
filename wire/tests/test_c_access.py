"""Get and set functions of wire.h, compiled by gcc, against a bit-level model in Python."""

import ctypes
import random
import subprocess
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from wire import c_header, c_names
from wire.declarations import Source, make_header

from .ibta import LAYOUTS, pack, unpack

WIRE = Path(__file__).resolve().parent.parent
FLAGS = ["-std=gnu11", "-O2", "-Wall", "-Wextra", "-Werror", "-Wshadow", "-Wconversion"]
SHIM = '#include "{header}"\n{functions}'
FUNCTION = """\
wire_u64 get_{0}_{1}(const void *h);
wire_u64 get_{0}_{1}(const void *h) {{ return wire_{0}_get_{1}((const struct wire_{0} *)h); }}
void set_{0}_{1}(void *h, {2} v);
void set_{0}_{1}(void *h, {2} v) {{ wire_{0}_set_{1}((struct wire_{0} *)h, v); }}
"""


def value_type(bits: int) -> str:
    return "wire_u" + str(next(size for size in (8, 16, 32, 64) if bits <= size))


def compile_shim(
    folder: Path, header: Path, layouts: dict[str, list[tuple[str, int]]], flags: tuple[str, ...]
) -> ctypes.CDLL:
    functions = "".join(
        FUNCTION.format(name, field, value_type(bits)) for name, layout in layouts.items() for field, bits in layout
    )
    source, library = folder / "shim.c", folder / "shim.so"
    source.write_text(SHIM.format(header=header, functions=functions))
    subprocess.run(["gcc", *FLAGS, *flags, "-shared", "-fPIC", "-o", library, source], check=True)
    return ctypes.CDLL(str(library))


def check_header(shim: ctypes.CDLL, name: str, layout: list[tuple[str, int]], data: bytes, value: int) -> None:
    expected = unpack(layout, data)
    for field, bits in layout:
        getter = getattr(shim, f"get_{name}_{field}")
        setter = getattr(shim, f"set_{name}_{field}")
        getter.restype = ctypes.c_uint64
        setter.restype = None
        setter.argtypes = [ctypes.c_void_p, {8: ctypes.c_uint8, 16: ctypes.c_uint16, 32: ctypes.c_uint32,
                                             64: ctypes.c_uint64}[int(value_type(bits)[6:])]]  # fmt: skip
        buffer = ctypes.create_string_buffer(data, len(data))
        assert getter(buffer) == expected[field]
        setter(buffer, value)  # ctypes and the set function mask it: only the field's own bits may change
        assert buffer.raw == pack(layout, expected | {field: value})


def random_layouts(seed: int = 1) -> dict[str, list[tuple[str, int]]]:
    """Headers with fields at every alignment; a field that touches more than 8 bytes is not supported."""
    rng = random.Random(seed)
    layouts = {}
    for index in range(20):
        layout: list[tuple[str, int]] = []
        offset = 0
        for field in range(rng.randint(1, 9)):
            bits = rng.choice([1, 2, 3, 7, 8, 9, 12, 17, 24, 31, 33, 48, 56 - offset % 8, 64 - offset % 8])
            layout.append((f"f{field}", bits))
            offset += bits
        if offset % 8:
            layout.append(("rest", -offset % 8))
        layouts[f"odd{index}"] = layout
    return layouts


# Integers byte by byte, and as the eBPF programs read them on little-endian machines.
both = pytest.fixture(scope="module", params=[(), ("-DWIRE_WORDS",)], ids=["bytes", "words"])


@both
def shim(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> ctypes.CDLL:
    return compile_shim(tmp_path_factory.mktemp("wire"), WIRE / "wire.h", LAYOUTS, request.param)


ODD = random_layouts()


@both
def odd_shim(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> ctypes.CDLL:
    folder = tmp_path_factory.mktemp("odd")
    headers = [make_header(name + "_t", [(f, bits, None) for f, bits in layout]) for name, layout in ODD.items()]
    (folder / "odd.h").write_text(c_header.emit([Source("odd.p4", tuple(headers))]))
    return compile_shim(folder, folder / "odd.h", ODD, request.param)


def header_bytes(layout: list[tuple[str, int]]) -> st.SearchStrategy[bytes]:
    size = sum(bits for _, bits in layout) // 8
    return st.binary(min_size=size, max_size=size)


U64 = st.integers(min_value=0, max_value=(1 << 64) - 1)


@pytest.mark.parametrize("name", LAYOUTS)
@settings(max_examples=40, deadline=None)
@given(data=st.data(), value=U64)
def test_header(shim, name, data, value):
    check_header(shim, name, LAYOUTS[name], data.draw(header_bytes(LAYOUTS[name])), value)


@settings(max_examples=60, deadline=None)
@given(data=st.data(), name=st.sampled_from(sorted(ODD)), value=U64)
def test_fields_at_every_alignment(odd_shim, data, name, value):
    check_header(odd_shim, name, ODD[name], data.draw(header_bytes(ODD[name])), value)


def test_set_masks_a_value_of_its_own_type(shim):
    """Unlike ctypes with narrower types, C passes these through whole: 24 of 32 bits, 2 of 8."""
    buffer = ctypes.create_string_buffer(bytes(12), 12)
    shim.set_bth_psn(buffer, ctypes.c_uint32(0xFFFFFFFF))
    shim.set_bth_pad_count(buffer, ctypes.c_uint8(0xFF))
    assert buffer.raw.hex() == "0030" + "00" * 7 + "ffffff"


def test_names_h(tmp_path):
    program = tmp_path / "names.c"
    program.write_text(
        '#include <stdio.h>\n#include "names.h"\nint main(void) {\n'
        '\tprintf("%s %s %s", wire_bth_opcode_name(0x0a), wire_nic_event_name(1), wire_nic_event_name(255));\n}\n'
    )
    subprocess.run(["gcc", *FLAGS, f"-I{WIRE}", "-o", tmp_path / "names", program], check=True)
    result = subprocess.run([tmp_path / "names"], check=True, capture_output=True, text=True)
    assert result.stdout == "RC_WRITE_ONLY REQUEST_PLACED UNKNOWN"


@pytest.mark.parametrize("emitter", [c_header, c_names])
def test_no_include_but_wire_h(emitter):
    text = emitter.emit([Source("empty.p4", ())])
    assert [line for line in text.splitlines() if "#include" in line] in ([], ['#include "wire.h"'])

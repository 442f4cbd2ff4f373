"""Compiling C into a Python module through cffi: what each `build.py` of the NIC and the host shares."""

from __future__ import annotations

import contextlib
import importlib.util
import io
import os
import re
import subprocess
import sysconfig
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

# cffi's generated glue is not ours to keep free of the two warnings that are off.
FLAGS = (
    *("-std=gnu11", "-O3", "-fPIC", "-shared", "-Wall", "-Wextra", "-Werror", "-Wshadow"),
    *("-Wno-unused-parameter", "-Wno-missing-field-initializers"),
)
SANITIZE = ("-fsanitize=address,undefined", "-fno-sanitize-recover=undefined", "-fno-omit-frame-pointer", "-g")

# When set, the sanitized products are loaded; the process needs their run-time libraries in LD_PRELOAD then.
SANITIZE_VARIABLE = "PLAIT_SANITIZE"


class BuildError(Exception):
    """The C compiler refused; its messages are the text."""


def declarations(header: Path) -> str:
    """A header as cffi wants it: declarations and integer constants, without functions and the preprocessor's rest."""
    text = re.sub(r"/\*.*?\*/", "", header.read_text(), flags=re.DOTALL)
    text = re.sub(r"^WIRE_FN .*?^}$", "", text, flags=re.MULTILINE | re.DOTALL)
    text = re.sub(r"^_Static_assert\(.*?\);$", "", text, flags=re.MULTILINE | re.DOTALL)
    return re.sub(r"^#(?!define \w+ +(0x[0-9a-f]+|\d+)\s*$).*$", "", text, flags=re.MULTILINE)


def sanitizer_environment() -> dict[str, str] | None:
    """What the environment of a Python with sanitized modules needs; None if the compiler has no sanitizers."""
    compiler = os.environ.get("CC", "cc")
    libraries = [
        subprocess.run(
            [compiler, f"-print-file-name={name}"], capture_output=True, text=True, check=True
        ).stdout.strip()
        for name in ("libasan.so", "libubsan.so")
    ]
    if not all(os.path.isabs(library) for library in libraries):
        return None
    # Python itself never frees everything, so leaks are not looked for.
    return {SANITIZE_VARIABLE: "1", "LD_PRELOAD": " ".join(libraries), "ASAN_OPTIONS": "detect_leaks=0"}


@dataclass(frozen=True, slots=True)
class CModule:
    """Paths are relative to the repository's root.  `interface`: headers whose declarations Python sees, in order."""

    name: str
    folder: str  # the product goes to <folder>/_build
    interface: tuple[str, ...]
    sources: tuple[str, ...]
    includes: tuple[str, ...]
    libraries: tuple[str, ...] = ()
    prelude: str = ""  # declarations that the interface needs first

    def product(self, root: Path, sanitize: bool = False) -> Path:
        place = root / self.folder / "_build" / ("sanitize" if sanitize else "")
        return place / f"{self.name}{sysconfig.get_config_var('EXT_SUFFIX')}"

    def _fresh(self, root: Path, product: Path) -> bool:
        inputs = [Path(__file__), *(path for name in self.includes for path in (root / name).glob("*.[ch]"))]
        return product.exists() and all(path.stat().st_mtime <= product.stat().st_mtime for path in inputs)

    def build(self, root: Path, sanitize: bool = False) -> None:
        """Compiles if a source has changed; `sanitize` makes a second product beside the first."""
        import cffi

        product = self.product(root, sanitize)
        if self._fresh(root, product):
            return
        product.parent.mkdir(parents=True, exist_ok=True)
        # Another process may be building the same: each works on files of its own and renames at the end.
        glue = product.with_name(f"{self.name}.{os.getpid()}.c")
        made = product.with_name(f"{self.name}.{os.getpid()}.so")
        builder = cffi.FFI()
        builder.cdef(self.prelude + "".join(declarations(root / header) for header in self.interface))
        includes = "\n".join(f'#include "{Path(header).name}"' for header in self.interface)
        builder.set_source(self.name, includes)
        with contextlib.redirect_stdout(io.StringIO()):
            builder.emit_c_code(str(glue))
        command = [
            os.environ.get("CC", "cc"),
            *FLAGS,
            *(SANITIZE if sanitize else ()),
            *(f"-I{root / name}" for name in self.includes),
            *(f"-I{sysconfig.get_path(name)}" for name in ("include", "platinclude")),
            *("-o", str(made)),
            *(str(root / name) for name in self.sources),
            str(glue),
            *(f"-l{name}" for name in self.libraries),
        ]
        started = time.time()
        try:
            result = subprocess.run(command, capture_output=True, text=True)
            if result.returncode:
                raise BuildError(f"{self.folder} did not compile:\n{result.stderr}")
            # As old as what it was made from: a source that changed meanwhile is newer.
            os.utime(made, (started, started))
            made.replace(product)
        except FileNotFoundError as error:
            raise BuildError(f"no C compiler: {command[0]} is not there; install gcc or set CC") from error
        finally:
            glue.unlink(missing_ok=True)
            made.unlink(missing_ok=True)

    def load(self, root: Path) -> tuple[Any, Any]:
        """(ffi, lib); builds first where that has not been done."""
        sanitize = bool(os.environ.get(SANITIZE_VARIABLE))
        self.build(root, sanitize)
        spec = importlib.util.spec_from_file_location(self.name, self.product(root, sanitize))
        assert spec and spec.loader
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        return module.ffi, module.lib

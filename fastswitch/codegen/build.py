"""C to a shared object, cached by the hash of everything that goes into it."""

from __future__ import annotations

import contextlib
import functools
import hashlib
import json
import logging
import os
import re
import shutil
import signal
import subprocess
import tempfile
from pathlib import Path
from typing import Any

from .errors import ProgramError
from .generate import GENERATOR_VERSION, generate
from .load import load_program, parse_document

FLAGS = (
    *("-std=gnu11", "-fPIC", "-shared", "-fvisibility=hidden", "-Wall", "-Wextra", "-Werror"),
    # A program may compare what can only be equal, or a number with the least there is.
    *("-Wno-type-limits", "-Wno-tautological-compare", "-Wno-bool-compare", "-Wno-int-in-bool-context"),
    *("-Wno-bool-operation", "-Wno-sign-compare"),
    # ... nor need it use what all functions of a kind get or begin with.
    *("-Wno-unused-parameter", "-Wno-unused-variable", "-Wno-unused-but-set-variable"),
)
# Warnings find mistakes of the generator. A compiler that warns of something new must not stop a user's program, so
# then it is built without them, and the log says so; tests turn this off.
TOLERATE_WARNINGS = True
_log = logging.getLogger(__name__)
SANITIZE = ("-fsanitize=address,undefined", "-fno-sanitize-recover=all", "-g")
# A program must be running within seconds of its push.  Lines of C and CPU seconds of gcc 12 at -O2, -O1 and -O0:
# switch.p4 25,000: 2.0, 1.1, 0.7; a parser of 2,000 states 56,000: 5.0, 2.9, 1.4.  The ECMP program of p4src takes
# 50, 43 and 137 ns a packet at these levels.
LEVELS = ((30_000, "-O2"), (100_000, "-O1"))
COMPILE_SECONDS = 120
COMPILE_MEMORY_KIB = 4 << 20
COMPILE_FILE_BLOCKS = (256 << 20) // 512
# What a compiler and its children may use, as a POSIX shell sets it: a preexec function is not safe beside threads.
_LIMITS = f"ulimit -c 0; ulimit -t {COMPILE_SECONDS}; ulimit -v {COMPILE_MEMORY_KIB}; ulimit -f {COMPILE_FILE_BLOCKS}"
_STOPPED = re.compile(r"(?i)out of memory|memory exhausted|cannot allocate memory|\w[\w ]+ signal terminated")
_SUPPORT = Path(__file__).parent / "support"
_ENGINE = Path(__file__).parents[2] / "engine"


def compiler() -> str:
    """The C compiler: $CC, or the system's."""
    for name in (os.environ.get("CC", ""), "gcc", "cc"):
        found = shutil.which(name) if name else None
        if found:
            return found
    raise ProgramError("C compiler", "none found: install gcc, or set CC")


def default_cache() -> Path:
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "plait"


@functools.cache
def _environment_hash(cc: str) -> bytes:
    """Everything but the program: compiler, generator, and the headers that the C includes."""
    state = hashlib.sha256(f"{GENERATOR_VERSION} {FLAGS} {LEVELS}".encode())
    version = subprocess.run([cc, "--version"], capture_output=True, check=False, timeout=30)
    state.update(version.stdout)
    for header in [_ENGINE / "pipeline.h", *sorted(_SUPPORT.glob("*.h"))]:
        state.update(header.read_bytes())
    for source in sorted(Path(__file__).parent.glob("*.py")):
        state.update(source.read_bytes())
    return state.digest()


def compile_json(
    bmv2_json: dict[str, Any] | bytes | str, cache_dir: Path | None = None, sanitize: bool = False
) -> Path:
    """The shared object of a program, compiled unless the cache has it.

    Raises ProgramError for everything that is wrong with the JSON.  `sanitize` builds with AddressSanitizer and
    UndefinedBehaviorSanitizer, for tests.  Files: <hash>.so, and <hash>.c for people to read.
    """
    document = parse_document(bmv2_json)
    cc = compiler()
    state = hashlib.sha256(_environment_hash(cc))
    state.update(b"sanitize" if sanitize else b"")
    try:
        state.update(json.dumps(document, sort_keys=True, separators=(",", ":")).encode())
    except (TypeError, ValueError, RecursionError):
        raise ProgramError("document", "not a JSON document") from None
    folder = cache_dir if cache_dir is not None else default_cache()
    target = folder / f"{state.hexdigest()[:40]}.so"
    if target.exists():
        return target
    text = generate_c(document)
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        _compile(cc, text, target, sanitize)
    except OSError as error:
        raise ProgramError("cache", f"cannot write to {folder}: {error.strerror or error}") from None
    return target


def generate_c(document: dict[str, Any] | bytes | str) -> str:
    """The C of a JSON, without compiling it."""
    program = load_program(document)
    try:
        return generate(program)
    except RecursionError:
        raise ProgramError("document", "nested too deeply") from None


def _compile(cc: str, text: str, target: Path, sanitize: bool) -> None:
    """Builds beside the target and renames, so that a reader sees a whole file or none."""
    with tempfile.TemporaryDirectory(prefix="compiling-", dir=target.parent) as scratch:
        source = Path(scratch) / "program.c"
        product = Path(scratch) / "program.so"
        source.write_text(text)
        level = next((level for limit, level in LEVELS if text.count("\n") <= limit), "-O0")
        flags = [level, *FLAGS, *(SANITIZE if sanitize else ()), f"-I{_ENGINE}", f"-I{_SUPPORT}"]
        complaint = _run(cc, flags, source, product)
        if complaint and TOLERATE_WARNINGS:
            _log.warning("the generated C is compiled without warnings because of: %s", complaint)
            complaint = _run(cc, [*flags, "-Wno-error", "-w"], source, product)
        if complaint:
            raise ProgramError("document", f"internal: the generated C does not compile: {complaint}")
        with contextlib.suppress(OSError):
            os.replace(source, target.with_suffix(".c"))
        os.replace(product, target)


def _run(cc: str, flags: list[str], source: Path, product: Path) -> str:
    """Compiles; returns the first complaint, or an empty text."""
    command = ["/bin/sh", "-c", f'{_LIMITS}; exec "$@"', "sh", cc, *flags, "-o", str(product), str(source)]
    # What is preloaded here (a sanitizer, say) reserves more memory than the compiler may.
    environment = {name: value for name, value in os.environ.items() if name != "LD_PRELOAD"}
    # A group of its own, so that a compilation without end takes the driver's children with it.
    with subprocess.Popen(
        command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, start_new_session=True, env=environment
    ) as child:
        try:
            _, complaints = child.communicate(timeout=COMPILE_SECONDS)
        except subprocess.TimeoutExpired:
            os.killpg(child.pid, signal.SIGKILL)
            raise ProgramError("document", f"compiling takes more than {COMPILE_SECONDS} s") from None
    if child.returncode == 0:
        return ""
    stopped = _STOPPED.search(complaints)
    if stopped or child.returncode < 0:
        reason = stopped[0] if stopped else signal.Signals(-child.returncode).name
        limits = f"{COMPILE_SECONDS} s, {COMPILE_MEMORY_KIB >> 20} GiB, files of {COMPILE_FILE_BLOCKS >> 11} MiB"
        raise ProgramError("document", f"compiling it was stopped ({reason}); the limits are {limits}")
    return next((line for line in complaints.splitlines() if "error" in line), complaints)[-300:] or "no reason given"

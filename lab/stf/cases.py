"""Which cases to run: pairs of files on the command line, or a folder with a list of names."""

import csv
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from lab.errors import UsageError


@dataclass(frozen=True, slots=True)
class Case:
    """An STF file and its program. `tier` is what a list says of it, "" without."""

    name: str
    program: Path
    stf: Path
    tier: str = ""


def from_files(files: Sequence[Path]) -> list[Case]:
    """Each program with the STF files that follow it; UsageError for what is neither, missing or alone."""
    cases: list[Case] = []
    program: Path | None = None
    for file in files:
        if not file.is_file():
            raise UsageError(f"{file}: there is no such file.")
        if file.suffix == ".p4":
            _check_used(program, cases)
            program = file
        elif file.suffix != ".stf":
            raise UsageError(f"{file}: expected a .p4 or .stf file.")
        elif program is None:
            raise UsageError(f"{file}: its program must stand before it.")
        else:
            cases.append(Case(file.stem, program, file))
    _check_used(program, cases)
    return cases


def _check_used(program: Path | None, cases: Sequence[Case]) -> None:
    if program is not None and (not cases or cases[-1].program != program):
        raise UsageError(f"{program}: an .stf file must follow it.")


def from_folder(folder: Path, names: Path | None = None) -> tuple[list[Case], int]:
    """Every program of a folder and its sub-folders that has an STF file beside it, or those that a list names.

    Returns the cases, and how many names of the list have no STF file: not every program is a case. UsageError names
    what is missing.
    """
    if not folder.is_dir():
        raise UsageError(f"{folder}: there is no such folder.")
    if names is not None:
        listed = read_list(names)
    else:
        programs = (file for file in sorted(folder.rglob("*.p4")) if file.with_suffix(".stf").is_file())
        listed = [(str(file.relative_to(folder).with_suffix("")), "") for file in programs]
    cases = []
    for name, tier in listed:
        program, stf = folder / f"{name}.p4", folder / f"{name}.stf"
        if not program.is_file():
            raise UsageError(f"{program}: there is no such file, but {names} names it.")
        if stf.is_file():
            cases.append(Case(name, program, stf, tier))
    if not cases:
        raise UsageError(f"{names or folder}: there is no program with an .stf file.")
    return cases, len(listed) - len(cases)


def read_list(path: Path) -> list[tuple[str, str]]:
    """(name, tier) of a list: a name a line, or tab-separated columns whose header has `name`, and perhaps `tier`."""
    try:
        lines = path.read_text().splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"--list {path}: {getattr(error, 'strerror', None) or 'not text'}.") from None
    lines = [line for line in lines if line.strip() and not line.startswith("#")]
    if not lines or "\t" not in lines[0]:
        return [(line.strip(), "") for line in lines]
    table = csv.DictReader(lines, delimiter="\t")
    if "name" not in (table.fieldnames or ()):
        raise UsageError(f"--list {path}: its first line has no column 'name'.")
    return [(row["name"], row.get("tier") or "") for row in table]

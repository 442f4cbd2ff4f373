"""Fixtures: compile a text, or a whole program around a piece of one."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from p4front.diagnostics import CompileError
from p4front.driver import Compiled, compile_file
from p4front.tests.kit import program_text


@pytest.fixture
def compile_text(tmp_path: Path) -> Callable[..., Compiled]:
    """Compile a text as the file `test.p4`."""

    def run(text: str, **options: object) -> Compiled:
        path = tmp_path / "test.p4"
        path.write_text(text)
        return compile_file(path, **options)  # type: ignore[arg-type]

    return run


@pytest.fixture
def compile_parts(compile_text: Callable[..., Compiled]) -> Callable[..., Compiled]:
    """Compile the skeleton with some parts replaced."""
    return lambda **parts: compile_text(program_text(**parts))


@pytest.fixture
def errors_of(compile_text: Callable[..., Compiled]) -> Callable[[str], str]:
    """The messages of a text that must not compile."""

    def run(text: str) -> str:
        with pytest.raises(CompileError) as info:
            compile_text(text)
        return str(info.value)

    return run

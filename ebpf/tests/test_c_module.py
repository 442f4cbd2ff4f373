"""Building C modules: what has been built from old sources is built again."""

from __future__ import annotations

from pathlib import Path

import pytest

from ebpf.c_module import CModule

# In the first run the source changes between the time that it is read and the time that the product is written.
COMPILER = """#!/bin/sh
cc "$@" || exit 1
[ -e {root}/edited ] && exit 0
echo 'int answer(void) {{ return 2; }}' > {root}/part/answer.c
touch {root}/edited {root}/part/_build/*.so
"""


def test_a_source_that_changes_during_the_build(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    part = tmp_path / "part"
    part.mkdir()
    (part / "answer.h").write_text("int answer(void);\n")
    (part / "answer.c").write_text('#include "answer.h"\nint answer(void) { return 1; }\n')
    compiler = tmp_path / "compiler"
    compiler.write_text(COMPILER.format(root=tmp_path))
    compiler.chmod(0o755)
    monkeypatch.setenv("CC", str(compiler))
    monkeypatch.delenv("PLAIT_SANITIZE", raising=False)
    module = CModule("_test_answer", "part", ("part/answer.h",), ("part/answer.c",), ("part",))
    module.build(tmp_path)
    _, lib = module.load(tmp_path)
    assert lib.answer() == 2

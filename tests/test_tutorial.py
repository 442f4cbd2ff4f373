"""docs/tutorial.md, done as it is written."""

from pathlib import Path

from tests.conftest import ROOT, needs_root
from tests.doc_blocks import Runner, blocks
from tests.leftovers import Snapshot


@needs_root
def test_the_tutorial(tmp_path: Path) -> None:
    before = Snapshot.take()
    found = blocks(ROOT / "docs" / "tutorial.md")
    assert {"sh", "plait", "p4", "toml", "console"} <= {block.language for block in found}
    runner = Runner(tmp_path)
    try:
        for block in found:
            runner.run(block)
    finally:
        runner.close()
    assert Snapshot.take() - before == []

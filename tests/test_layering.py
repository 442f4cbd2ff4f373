"""The arrows of docs/architecture.md: which package may import which."""

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent

# The topology model is a leaf that everything may share; the rest of mininet_topos stands above controller and rdma.
TOPOLOGY = "mininet_topos.topology"
ARROWS: dict[str, set[str]] = {
    "p4front": set(),
    "engine": set(),
    "wire": {"p4front"},
    "ebpf": {"wire"},
    "rdma": {"ebpf", "wire"},
    "fastswitch": {"engine"},
    "controller": {TOPOLOGY, "mininet_topos.paths", "mininet_topos.k_paths", "wire"},
    "mininet_topos": {"controller", "rdma"},
    "lab": {"p4front", "engine", "wire", "ebpf", "rdma", "fastswitch", "controller", "mininet_topos"},
}


def imports(path: Path) -> set[str]:
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.level == 0 and node.module:
            # `from package import module` names the module as well.
            found |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
    return found


def sources(package: str) -> list[Path]:
    folder = ROOT / package
    return [path for path in folder.rglob("*.py") if not {"tests", "_build"} & set(path.relative_to(folder).parts)]


@pytest.mark.parametrize("package", sorted(ARROWS))
def test_imports_follow_the_arrows(package: str) -> None:
    paths = sources(package)
    assert paths, f"{package}/ holds no Python"
    allowed = ARROWS[package] | {package}
    for path in paths:
        for name in imports(path):
            if name.split(".")[0] not in ARROWS:
                continue
            # A bare package beside one of its allowed modules is the first half of a `from` import.
            prefixes = {".".join(name.split(".")[: end + 1]) for end in range(name.count(".") + 1)}
            beside = any(arrow.startswith(f"{name}.") for arrow in allowed)
            assert prefixes & allowed or beside, f"{path.relative_to(ROOT)} imports {name}"


def test_the_check_sees_a_wrong_arrow(tmp_path: Path) -> None:
    wrong = tmp_path / "wrong.py"
    wrong.write_text("from lab import demo\nimport engine.fabric\n")
    assert {"lab", "lab.demo", "engine.fabric"} <= imports(wrong)

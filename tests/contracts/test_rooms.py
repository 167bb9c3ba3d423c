"""The direction of imports: a file may use the rooms above its own, never those below."""

import ast
from pathlib import Path

import pytest

import weft

SOURCE = Path(weft.__file__).parent
# From the ground up. Rooms on one line are neighbours: they may not import each other.
ROOMS: list[set[str]] = [
    {"foundation"},
    {"kinds"},
    {"data"},
    {"bodies"},
    {"nn"},
    {"losses", "penalties", "regularizers", "schedules", "surgery", "trackers", "weighting"},
    {"evaluation"},
    {"tasks"},
    {"runs"},
    {"inference"},
    {"training"},
    {"recipes"},
    {"report"},
    {"build"},
    {"run"},
    {"audit", "export", "growth", "pretraining", "serving", "study", "sweep"},
    {"api"},
    {"testing"},
    {"cli"},
    {"__main__", "__init__"},
]
LEVEL = {room: level for level, rooms in enumerate(ROOMS) for room in rooms}


def room_of(module: str) -> str:
    """weft.nn.heads.linear -> nn"""
    parts = module.split(".")
    return parts[1] if len(parts) > 1 else "__init__"


def imported(path: Path) -> list[str]:
    """Every weft module that a file imports, anywhere in it, lazily or for types."""
    found = []
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: imports are written out in full"
            if node.module == "weft":
                found += [f"weft.{alias.name}" for alias in node.names]
            elif node.module:
                found.append(node.module)
    return [module for module in found if module.split(".")[0] == "weft"]


def violations(path: Path, own: str) -> list[str]:
    return [
        f"{path.name} in room {own!r} imports {module}"
        for module in imported(path)
        if room_of(module) != own and LEVEL[room_of(module)] >= LEVEL[own]
    ]


@pytest.mark.parametrize("path", sorted(SOURCE.rglob("*.py")), ids=lambda p: str(p.relative_to(SOURCE)))
def test_imports_point_upwards(path: Path) -> None:
    own = path.relative_to(SOURCE).parts[0].removesuffix(".py")
    assert own in LEVEL, f"{own} is a new room: give it a place in ROOMS and in docs/architecture.md"
    assert not violations(path, own)


def test_a_wrong_import_is_found(tmp_path: Path) -> None:
    """The test above can fail."""
    path = tmp_path / "x.py"
    path.write_text("def f():\n    from weft.training.step import Step\n", encoding="utf-8")
    assert violations(path, "nn") == ["x.py in room 'nn' imports weft.training.step"]
    assert violations(path, "recipes") == []


def test_no_file_is_called_utils() -> None:
    assert not [path for path in SOURCE.rglob("*.py") if "util" in path.name]

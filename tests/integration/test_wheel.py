"""What is installed is whole: code, type marker, recipes and starter data."""

import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_the_wheel_carries_its_data(tmp_path: Path) -> None:
    source = tmp_path / "source"  # a copy, because setuptools leaves build/ behind
    shutil.copytree(ROOT / "src", source / "src", ignore=shutil.ignore_patterns("*.egg-info", "__pycache__"))
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, source)
    command = [sys.executable, "-m", "pip", "wheel", "-q", "--no-deps", "--no-build-isolation", "-w", str(tmp_path)]
    subprocess.run([*command, str(source)], check=True, capture_output=True)
    (wheel,) = tmp_path.glob("weft-*.whl")
    names = set(zipfile.ZipFile(wheel).namelist())
    package = source / "src" / "weft"
    wanted = [*package.rglob("*.py"), *package.rglob("*.toml"), *package.rglob("*.tsv"), package / "py.typed"]
    wanted += [path for folder in ("templates", "page") for path in package.rglob(f"{folder}/**/*") if path.is_file()]
    assert {str(path.relative_to(source / "src")) for path in wanted} <= names
    assert len(list(package.rglob("*.tsv"))) == 6

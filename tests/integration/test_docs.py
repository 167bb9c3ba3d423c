"""Every command and every Python snippet in the documentation is run, in the order in which a reader meets them.

In a page, a fenced block marked `console` holds commands (lines that start with `$ `) and their output; one marked
`python` is run as it stands; one marked `csv`, `toml` or `python` whose first line is a comment with a file name is
written to that file. A block marked `text` or `sh` is shown only: `make` commands and the like. Pages in docs/reference
are not run: they show signatures.
"""

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from tests.integration.command import python, weft

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md")), ROOT / "CONTRIBUTING.md"]
REFERENCE = sorted((ROOT / "docs/reference").glob("*.md"))
BLOCK = re.compile(r"^( *)```(\w+)\n(.*?)^ *```$", re.MULTILINE | re.DOTALL)
SHELL = re.compile(r"[|&;<>$`*?~]")
"""What only a shell understands."""
KNOWN = {"console", "python", "csv", "toml", "text", "sh"}


def blocks(page: Path) -> list[tuple[str, str]]:
    found = []
    for indent, kind, content in BLOCK.findall(page.read_text(encoding="utf-8")):
        lines = [line.removeprefix(indent) for line in content.splitlines()]
        found.append((kind, "\n".join(lines)))
    return found


def command(line: str, folder: Path) -> None:
    """Run one line: `weft` with plain arguments in a fork, which saves the imports, anything else in a shell."""
    if line.startswith("weft ") and not SHELL.search(line):
        weft(*shlex.split(line)[1:], cwd=folder)
        return
    done = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", line],
        cwd=folder,
        capture_output=True,
        text=True,
        env=os.environ | {"PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"},
        timeout=600,
        check=False,
    )
    assert done.returncode == 0, f"{line}\n{done.stdout}\n{done.stderr}"


def run(kind: str, content: str, folder: Path) -> None:
    if kind == "console":
        for line in content.splitlines():
            if line.startswith("$ "):
                command(line[2:], folder)
    elif kind in ("csv", "toml", "python") and (name := re.match(r"# (\S+\.\w+)\n", content)):
        (folder / name[1]).write_text(content.partition("\n")[2] + "\n", encoding="utf-8")
    elif kind == "python":
        done = python(content, folder)
        assert done.code == 0, f"{content}\n{done.stderr}"


# tracing and loading a real body in three libraries, or training it many times, takes minutes
LONG = {
    "better-models.md",
    "onnx.md",
    "predicting.md",
    "scaling.md",
    "sentence-transformers.md",
    "serving.md",
    "studies.md",
    "sweeps.md",
    "transformers.md",
}


@pytest.mark.parametrize(
    "page", [pytest.param(page, marks=[pytest.mark.long] * (page.name in LONG), id=page.name) for page in PAGES]
)
def test_a_page_does_what_it_says(page: Path, tmp_path: Path) -> None:
    for kind, content in blocks(page):
        assert kind in KNOWN, f"{page.name}: a block is marked {kind!r}, expected one of {sorted(KNOWN)}"
        run(kind, content, tmp_path)


def test_the_harness_finds_commands() -> None:
    assert sum(kind == "console" for kind, _ in blocks(ROOT / "README.md")) >= 2


@pytest.mark.parametrize("page", [*PAGES, *REFERENCE], ids=lambda page: f"{page.parent.name}/{page.name}")
def test_links_lead_somewhere(page: Path) -> None:
    for target in re.findall(r"\]\(([^)#\s]+)", page.read_text(encoding="utf-8")):
        if not target.startswith("http"):
            assert (page.parent / target).exists(), f"{page.name} links to {target}"

"""Builds the documentation as a site that needs no network: python docs/website.py [FOLDER]

The generator knows one folder of pages. This script gives it one: docs/, the pages at the root of the repository, and a
page for every source file that a page links to, with the links rewritten. In a link such as
[`Class.method`](../src/weft/room/file.py) the text names what is linked, so the site leads to its line.
"""

import ast
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parents[1]
AT_ROOT = {
    "README.md": "index.md",
    "CONTRIBUTING.md": "contributing.md",
    "CHANGELOG.md": "changelog.md",
    "SECURITY.md": "security-policy.md",
}
LINK = re.compile(r"\[([^\]\[]*)\]\(([^)\s#]+)(#[^)\s]*)?\)")
AS_IT_IS = {".md", ".png", ".svg", ".js", ".css"}


def pages() -> dict[Path, Path]:
    """Every page of the repository and its place in the site."""
    written = {path: path.relative_to(ROOT / "docs") for path in sorted((ROOT / "docs").rglob("*.md"))}
    return written | {ROOT / name: Path(place) for name, place in AT_ROOT.items()}


def place_of(path: Path) -> Path:
    """Where the site has a file of the repository."""
    inner = path.relative_to(ROOT)
    if inner.as_posix() in AT_ROOT:
        return Path(AT_ROOT[inner.as_posix()])
    if path.suffix in AS_IT_IS:
        return inner.relative_to("docs")
    return Path("source") / inner.with_name(f"{inner.name}.md")


def line_of(path: Path, name: str) -> int | None:
    """The line on which a file defines `name`, `Class.method` or a constant; None if it does not."""
    nodes: list[ast.stmt] = ast.parse(path.read_text(encoding="utf-8")).body
    line = None
    for part in name.split("."):
        found = next((node for node in nodes if part in defined_by(node)), None)
        if found is None:
            return None
        line = found.lineno
        nodes = getattr(found, "body", [])
    return line


def defined_by(node: ast.stmt) -> list[str]:
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        return [node.name]
    targets = node.targets if isinstance(node, ast.Assign) else [node.target] if isinstance(node, ast.AnnAssign) else []
    return [target.id for target in targets if isinstance(target, ast.Name)]


def source_page(path: Path) -> str:
    language = "python" if path.suffix == ".py" else "text"
    code = path.read_text(encoding="utf-8").rstrip()
    unlisted = "---\nsearch:\n  exclude: true\n---\n"  # a search should find the pages about the code
    return f'{unlisted}# {path.relative_to(ROOT)}\n\n````` {{ .{language} linenums="1" }}\n{code}\n`````\n'


def rewritten(page: Path, place: Path, sources: set[Path]) -> str:
    """A page with its links as the site has them; source files that it links to are added to `sources`."""

    def rewrite(link: re.Match[str]) -> str:
        text, target, anchor = link[1], link[2], link[3] or ""
        path = (page.parent / target).resolve()
        if "://" in target or not path.is_file():
            return link[0]
        there = place_of(path)
        if there.parts[0] == "source":
            sources.add(path)
            line = line_of(path, text.strip("`")) if path.suffix == ".py" else None
            anchor = f"#__codelineno-0-{line}" if line else ""
        return f"[{text}]({Path(os.path.relpath(there, place.parent)).as_posix()}{anchor})"

    return LINK.sub(rewrite, page.read_text(encoding="utf-8"))


def stage(folder: Path) -> None:
    """Write everything that the generator reads."""
    sources: set[Path] = set()
    texts = {place: rewritten(page, place, sources) for page, place in pages().items()}
    texts |= {place_of(path): source_page(path) for path in sources}
    for place, text in texts.items():
        (folder / place).parent.mkdir(parents=True, exist_ok=True)
        (folder / place).write_text(text, encoding="utf-8")
    for path in (path for path in (ROOT / "docs").rglob("*") if path.suffix in AS_IT_IS - {".md"}):
        place = folder / place_of(path)
        place.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(path, place)


def build(out: Path) -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        stage(folder / "docs")
        shutil.copy(ROOT / "mkdocs.yml", folder)
        subprocess.run([sys.executable, "-m", "zensical", "build", "--strict", "--clean"], cwd=folder, check=True)
        shutil.rmtree(out, ignore_errors=True)
        shutil.move(folder / "site", out)


if __name__ == "__main__":
    build(Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / "site")

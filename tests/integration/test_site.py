"""The documentation builds as a site without a warning, and nothing in the site comes from elsewhere."""

import os
import re
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
LOADED = {"script": "src", "img": "src", "iframe": "src", "source": "src", "link": "href", "object": "data"}
NOT_LOADED = {"prev", "next", "canonical", "alternate"}


class Assets(HTMLParser):
    """What a browser fetches to show a page."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.found: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        address = given.get(LOADED.get(tag, ""))
        if address and given.get("rel") not in NOT_LOADED:
            self.found.append(address)
        if (given.get("class") or "").split()[:1] == ["mermaid"]:  # the site's script would fetch what draws it
            self.found.append("https://mermaid")


def external(addresses: list[str]) -> list[str]:
    return [address for address in addresses if re.match(r"(?:https?:)?//", address)]


def site_python() -> str | None:
    """A Python that has the generator: the one that `make docs-site` makes, else this one."""
    for python in (ROOT / ".venv-site/bin/python", Path(sys.executable)):
        if python.exists() and subprocess.run([python, "-c", "import zensical"], capture_output=True).returncode == 0:
            return str(python)
    return None


def test_the_site_builds_strictly_and_loads_nothing_external(tmp_path: Path) -> None:
    python = site_python()
    if python is None:
        pytest.skip("zensical is not installed; `make docs-site` installs it")
    out = tmp_path / "site"
    environment = os.environ | {"PYTHONPATH": ""}
    done = subprocess.run(
        [python, ROOT / "docs/website.py", out], capture_output=True, text=True, env=environment, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    pages = sorted(out.rglob("*.html"))
    assert {"index.html", "tutorial.html", "glossary.html", "architecture.html"} <= {page.name for page in pages}
    assert (out / "source/src/weft/training/step.py.html").exists(), "the tour leads to its source files"
    for page in pages:
        assert external(Assets(page.read_text(encoding="utf-8")).found) == [], page.name
    for sheet in out.rglob("*.css"):
        assert not re.search(r"(?:url\([\"']?|@import [\"'])(?:https?:)?//", sheet.read_text(encoding="utf-8")), sheet


def test_an_external_asset_is_found() -> None:
    """The test above can fail."""
    page = '<link rel="prev" href="https://a/b"><script src="https://c/d.js"></script><img src="e.png"><a href="https://f">'
    assert external(Assets(page).found) == ["https://c/d.js"]
    assert external(["//g/h.css", "/i/j.css"]) == ["//g/h.css"]

"""Write deploy/requirements.txt: every package that the demo needs, with the hash of every file that may be installed.

    python deploy/lock.py            in an environment where `make venv` has installed weft

Versions come from constraints.txt; which packages are needed follows from what is installed; hashes come from the
indexes that pip is configured with. `pip install --require-hashes -r deploy/requirements.txt` then installs nothing
else, whatever an index offers later.
"""

import re
import subprocess
import sys
import tomllib
import urllib.request
from html.parser import HTMLParser
from importlib import metadata
from pathlib import Path
from urllib.parse import unquote, urlsplit

from packaging.requirements import Requirement
from packaging.utils import InvalidSdistFilename, InvalidWheelFilename, parse_sdist_filename, parse_wheel_filename
from packaging.version import Version

HOME = Path(__file__).parent
EXTRAS = ("packaged",)
LATER = "torch"
"""installed before the others, from the index of its CPU builds: its hashes stand in a file of their own"""


class Links(HTMLParser):
    """The files of one package in an index."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        self.found += [value for name, value in attributes if tag == "a" and name == "href" and value]


def canonical(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def needed(extras: tuple[str, ...]) -> dict[str, str]:
    """Name and version of everything that weft with these extras pulls in, as it is installed here."""
    project = tomllib.loads((HOME.parent / "pyproject.toml").read_text())["project"]
    waiting = [*project["dependencies"], *(r for extra in extras for r in project["optional-dependencies"][extra])]
    found: dict[str, str] = {}
    while waiting:
        wanted = Requirement(waiting.pop())
        if wanted.marker is not None and not wanted.marker.evaluate({"extra": ""}):
            continue
        if canonical(wanted.name) in found:
            continue
        installed = metadata.distribution(wanted.name)
        found[canonical(wanted.name)] = installed.version
        waiting += installed.requires or []
    return found


def indexes() -> list[str]:
    """Where pip looks."""
    from pip._internal.models.index import PyPI

    said = subprocess.run([sys.executable, "-m", "pip", "config", "list"], capture_output=True, text=True, check=True)
    settings = dict(line.split("=", 1) for line in said.stdout.splitlines() if "=" in line)
    own = [value.strip("'") for key, value in settings.items() if key.endswith(".index-url")] or [PyPI.simple_url]
    more = [value.strip("'").split() for key, value in settings.items() if key.endswith(".extra-index-url")]
    return [*own, *(index for group in more for index in group)]


def hashes(name: str, version: str) -> set[str]:
    """sha256 of every file of a version, in all indexes."""
    found = set()
    for index in indexes():
        links = Links()
        address = f"{index.rstrip('/')}/{name}/" + ("index.html" if index.startswith("file:") else "")
        try:
            with urllib.request.urlopen(address) as page:
                links.feed(page.read().decode())
        except OSError:
            continue  # this index does not have it
        for link in links.found:
            parts = urlsplit(link)
            if parts.fragment.startswith("sha256=") and version_of(unquote(parts.path).rpartition("/")[2]) == version:
                found.add(parts.fragment.removeprefix("sha256="))
    return found


def version_of(file: str) -> str | None:
    try:
        parsed = parse_wheel_filename(file)[1] if file.endswith(".whl") else parse_sdist_filename(file)[1]
    except (InvalidWheelFilename, InvalidSdistFilename):
        return None
    return str(parsed)


def entry(name: str, version: str, known: set[str]) -> str:
    lines = [f"{name}=={version}", *(f"    --hash=sha256:{digest}" for digest in sorted(known))]
    return " \\\n".join(lines) + "\n"


def main() -> None:
    locked = []
    for name, version in sorted(needed(EXTRAS).items()):
        if name == LATER:
            continue
        known = hashes(name, str(Version(version)))
        if not known:
            sys.exit(f"{name} {version}: no index has its files")
        locked.append(entry(name, version, known))
        print(name, version, len(known), "files", flush=True)
    head = "# Made by deploy/lock.py: what `make demo-locked` installs, torch aside (torch.txt).\n"
    (HOME / "requirements.txt").write_text(head + "".join(locked))


if __name__ == "__main__":
    main()

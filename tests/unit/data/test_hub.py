"""Hub data sets from a cache in the hub's own layout: the real code, without the network."""

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from weft.data.config import PRESETS
from weft.data.files import read_rows
from weft.data.problems import Problems
from weft.data.task_files import locate
from weft.foundation.errors import UserError

REVISION = "0123456789abcdef0123456789abcdef01234567"
GLUE = """---
configs:
- config_name: qqp
  data_files:
  - split: train
    path: qqp/train-*
  - split: validation
    path: qqp/validation-*
- config_name: stsb
  data_files:
  - split: train
    path: stsb/train-*
  - split: validation
    path: stsb/validation-*
---
"""


def snapshot(root: Path, name: str) -> Path:
    repository = root / f"datasets--{name.replace('/', '--')}"
    (repository / "refs").mkdir(parents=True)
    (repository / "refs" / "main").write_text(REVISION)
    folder = repository / "snapshots" / REVISION
    folder.mkdir(parents=True)
    return folder


def table(path: Path, **columns: list[object]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.table(columns), path)


@pytest.fixture
def hub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    from huggingface_hub import constants

    root = tmp_path / "hub"
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(root))
    monkeypatch.setenv("WEFT_CACHE", str(tmp_path / "cache"))
    glue = snapshot(root, "nyu-mll/glue")
    (glue / "README.md").write_text(GLUE)
    for split in ("train", "validation"):
        file = f"{split}-00000-of-00001.parquet"
        table(glue / "qqp" / file, question1=["why so"], question2=[f"how {split}"], label=[1], idx=[0])
        table(glue / "stsb" / file, sentence1=["a cat"], sentence2=[f"a {split}"], label=[3.8], idx=[0])
    sst = snapshot(root, "SetFit/sst5")
    for file in ("train", "dev", "test"):
        (sst / f"{file}.jsonl").write_text(json.dumps({"text": f"a {file} film", "label": 3, "label_text": "positive"}))
    yelp = snapshot(root, "fancyzhx/yelp_polarity")
    for split in ("train", "test"):
        table(yelp / "plain_text" / f"{split}-00000-of-00001.parquet", text=[f"{split} food"], label=[0])
    return root


@pytest.mark.parametrize(
    ("preset", "split", "expected"),
    [
        ("hub/qqp", "train", {"question1": "why so", "question2": "how train", "label": "1", "idx": "0"}),
        ("hub/qqp", "dev", {"question1": "why so", "question2": "how validation", "label": "1", "idx": "0"}),
        ("hub/stsb", "dev", {"sentence1": "a cat", "sentence2": "a validation", "label": "3.8", "idx": "0"}),
        ("hub/sst5", "dev", {"text": "a dev film", "label": "3", "label_text": "positive"}),
        ("yelp", "train", {"text": "train food", "label": "0"}),
    ],
)
def test_presets_of_the_hub(hub: Path, preset: str, split: str, expected: dict[str, str]) -> None:
    path = locate(PRESETS[preset], split, "t", Path(), None)
    rows = [row.values for row in read_rows(path, Problems(path))]
    assert rows == [expected]
    assert locate(PRESETS[preset], split, "t", Path(), None) == path


@pytest.mark.parametrize(
    ("name", "split", "message"),
    [
        ("nobody/nothing", "train", "the hub did not give 'nobody/nothing'"),
        ("not a name!", "train", "is not a hub id"),
        ("nyu-mll/glue:qqp", "holdout", "split 'holdout' of 'nyu-mll/glue:qqp' cannot be read"),
        ("nyu-mll/glue:cola", "train", "cannot be read"),
    ],
)
def test_sets_that_are_not_there(hub: Path, name: str, split: str, message: str) -> None:
    config = PRESETS["hub/qqp"].model_copy(update={"hub": name, "train": split})
    with pytest.raises(UserError, match=message) as error:
        locate(config, "train", "t", Path(), None)
    assert str(error.value).startswith("tasks.t.data.hub: ")

from pathlib import Path

import pyarrow.parquet as pq
import pytest
import torch

from tests.tiny import recipe
from weft.build import read_data
from weft.data.tokenizer import Tokenizer
from weft.inference.evaluate import evaluate_network
from weft.runs import predictions
from weft.tasks.building import build_network


def test_predictions_written_in_pieces_are_one_table(
    tiny: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = read_data(recipe(tiny), Tokenizer.load(tiny / "body"))
    network = build_network(recipe(tiny), {name: d.labels for name, d in data.items()}, tiny / "body")
    dev = {name: task.dev for name, task in data.items()}
    evaluation = evaluate_network(network, dev, 0, torch.device("cpu"))
    for folder, rows in (("whole", 8192), ("pieces", 3)):
        (tmp_path / folder).mkdir()
        monkeypatch.setattr(predictions, "ROWS_AT_ONCE", rows)
        predictions.save_predictions(evaluation, dev, tmp_path / folder)
    for name, dataset in dev.items():
        whole, pieces = (pq.read_table(tmp_path / folder / f"{name}.parquet") for folder in ("whole", "pieces"))
        assert whole.equals(pieces, check_metadata=True)
        assert whole["row"].to_pylist() == list(range(len(dataset)))
        assert whole["text"].to_pylist() == [dataset.texts(row)[0] for row in range(len(dataset))]
        assert b"pca_explained" in whole.schema.metadata

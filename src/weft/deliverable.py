"""What a run leaves behind for others: the model folder and the predictions."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from weft.data.dataset import Dataset
from weft.data.tokenizer import Tokenizer
from weft.recipe import Recipe, as_dict
from weft.tasks.network import Network
from weft.tasks.store import save_weights
from weft.training.trainer import Evaluation

FORMAT = 1


def save_model(network: Network, tokenizer: Tokenizer, recipe: Recipe, evaluation: Evaluation, folder: Path) -> None:
    """The deliverable: opens in `transformers` as it is, and in weft with all tasks."""
    save_weights(network, folder)
    tokenizer.save(folder)
    tasks = {}
    for name in recipe.tasks:
        labels = network.task(name).labels
        tasks[name] = {**vars(labels), "names": list(labels.names)}
    content = {"format": FORMAT, "recipe": as_dict(recipe), "labels": tasks}
    (folder / "weft.json").write_text(json.dumps(content, indent=2) + "\n", encoding="utf-8")
    (folder / "README.md").write_text(model_card(recipe, evaluation), encoding="utf-8")


def model_card(recipe: Recipe, evaluation: Evaluation) -> str:
    """What a person needs to know before using the model."""
    scores = "\n".join(
        f"| {name} | {config.kind} | {config.reading} | "
        + ", ".join(f"{metric} {value:.3f}" for metric, value in evaluation.scores[name].items() if metric != "n")
        + f" | {evaluation.scores[name]['n']} |"
        for name, config in recipe.tasks.items()
    )
    first = next(iter(recipe.tasks))
    second = ', ["..."]' if recipe.tasks[first].reading != "single" else ""
    return f"""# {recipe.name}

One BERT body with {len(recipe.tasks)} heads, fine-tuned by weft from `{Path(recipe.body).name}`.

| task | kind | reading | dev scores | rows |
| --- | --- | --- | --- | --- |
{scores}

The scores are of the epoch that scored best on these same dev rows, so they are a little optimistic.

```python
import weft

model = weft.load(".")
model.predict("{first}", ["..."]{second})
```

`transformers.AutoModel.from_pretrained` opens the same folder as a plain BERT body.
"""


def save_predictions(evaluation: Evaluation, datasets: dict[str, Dataset], folder: Path) -> None:
    """TASK.parquet for each task: texts, label and prediction of every dev row."""
    for name, dataset in datasets.items():
        predictions = evaluation.predictions[name]
        rows = range(len(dataset))
        sides = zip(*(dataset.texts(row) for row in rows), strict=True)
        columns: dict[str, Any] = {"row": list(rows), **dict(zip(("text", "text2"), sides, strict=False))}
        labels = dataset.labels
        if labels.is_numeric:
            columns["label"] = labels.in_units(np.asarray(dataset.targets, dtype=np.float64))
            columns["prediction"] = labels.in_units(predictions)
        else:
            columns["label"] = [labels.names[int(target)] for target in dataset.targets]
            columns["prediction"] = [labels.names[int(i)] for i in predictions.argmax(axis=1)]
            for i, label in enumerate(labels.names):
                columns[f"p_{label}"] = predictions[:, i]
        pq.write_table(pa.table(columns), folder / f"{name}.parquet")

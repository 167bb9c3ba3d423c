"""Run folders as training leaves them, written without training: any number of tasks and rows, in any state."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from tests.texts import WORDS
from weft.evaluation.plane import principal_axes
from weft.foundation.records import to_json
from weft.kinds import KINDS
from weft.kinds.labels import Labels
from weft.kinds.metrics import overall, score
from weft.runs.records import RunResult

FIVE = ("very bad", "bad", "so-so", "good", "very good")
TASKS: dict[str, dict[str, Any]] = {
    "mood": {"kind": "ordinal", "labels": FIVE},
    "same": {"kind": "classification", "labels": ("no", "yes"), "reading": "cross"},
    "near": {"kind": "regression", "range": (0.0, 5.0), "reading": "bi"},
    "topics": {"kind": "multilabel", "labels": ("price", "quality", "service")},
    "intent": {"kind": "classification", "labels": ("ask", "thank", "complain", "order")},
}
STEPS = 40
EVERY = 10


def write_run(
    folder: Path,
    tasks: dict[str, dict[str, Any]] | None = None,
    *,
    rows: int = 60,
    seed: int = 1,
    finished: bool = True,
    predictions: bool = True,
    conflicts: bool = True,
    texts: dict[int, str] | None = None,
) -> Path:
    """`texts` puts a text of one's own into a row; everything else follows from the seed."""
    tasks = tasks or TASKS
    folder.mkdir(parents=True)
    _write_recipe(folder, tasks, seed)
    data_draw, draw = np.random.default_rng(0), np.random.default_rng(seed)
    answers = {name: _answers(task, rows, data_draw, draw) for name, task in tasks.items()}
    labels = {name: _labels(task) for name, task in tasks.items()}
    scores = {n: score(labels[n], measured(tasks[n]), *answers[n]) for n in tasks}
    records = _log(tasks, scores, draw, conflicts)
    lines = [json.dumps(record) for record in records]
    (folder / "metrics.jsonl").write_text("\n".join(lines) + "\n", encoding="utf-8")
    (folder / "environment.json").write_text('{"python": "3.11", "device": "cpu"}', encoding="utf-8")
    if predictions:
        (folder / "predictions").mkdir()
        (folder / "model").mkdir()
        saved = {name: own.content() for name, own in labels.items()}
        (folder / "model" / "weft.json").write_text(json.dumps({"labels": saved}), encoding="utf-8")
        for name, task in tasks.items():
            _write_predictions(
                folder / "predictions" / f"{name}.parquet", task, labels[name], answers[name], texts or {}
            )
    if finished:
        best = [record for record in records if record.get("best")][-1]
        result = RunResult(
            name=folder.name,
            seed=seed,
            steps=STEPS,
            best_step=best["step"],
            best_epoch=best["epoch"],
            dev=best["dev"],
            overall=best["overall"],
            seconds=42.0,
            tokens=500 * STEPS,
            parameters=1_234_567,
            peak_memory=10**9,
        )
        (folder / "result.json").write_text(to_json(result), encoding="utf-8")
    return folder


def measured(task: dict[str, Any]) -> tuple[str, ...]:
    return tuple(task.get("metrics", KINDS[task["kind"]].default_metrics))


def _labels(task: dict[str, Any]) -> Labels:
    if task["kind"] == "regression":
        return Labels("regression", low=task["range"][0], high=task["range"][1])
    return Labels(task["kind"], names=tuple(task["labels"]), positive=task.get("positive"))


def _answers(task: dict[str, Any], rows: int, data: np.random.Generator, model: np.random.Generator) -> tuple[Any, Any]:
    """Targets, which every run shares, and predictions, which are a run's own."""
    if task["kind"] == "regression":
        low, high = task["range"]
        targets = data.uniform(low, high, rows).round(1)
        return targets, targets + model.normal(0.1, 0.2 * (high - low), rows)
    classes = len(task["labels"])
    if task["kind"] == "multilabel":
        on = (data.random((rows, classes)) < 0.4).astype(float)
        return on, np.clip(0.25 + 0.4 * on + model.normal(0, 0.25, on.shape), 0.001, 0.999)
    numbers = data.integers(0, classes, rows)
    logits = 1.5 * np.eye(classes)[numbers] + model.normal(size=(rows, classes))
    return numbers, np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)


def _write_recipe(folder: Path, tasks: dict[str, dict[str, Any]], seed: int) -> None:
    lines = [f'name = "{folder.name}"', 'body = "packaged:minilm-l6"', f"seed = {seed}", "epochs = 4"]
    for name, task in tasks.items():
        lines += ["", f"[tasks.{name}]", f'kind = "{task["kind"]}"', f'reading = "{task.get("reading", "single")}"']
        if "positive" in task:
            lines.append(f'positive = "{task["positive"]}"')
        if "metrics" in task:
            lines.append(f"metrics = {json.dumps(task['metrics'])}")
    (folder / "recipe.toml").write_text("\n".join(lines) + "\n", encoding="utf-8")


def _log(
    tasks: dict[str, dict[str, Any]], scores: dict[str, Any], draw: np.random.Generator, conflicts: bool
) -> list[dict[str, Any]]:
    names = list(tasks)
    primary = {name: measured(tasks[name])[0] for name in names}
    records: list[dict[str, Any]] = []
    for step in range(STEPS + 1):
        if step:
            records.append(
                {
                    "event": "step",
                    "step": step,
                    "epoch": 1 + (step - 1) // EVERY,
                    "losses": {name: float(2 / (1 + step / 9) + draw.random() / 4) for name in names},
                    "weights": dict.fromkeys(names, 1.0),
                    "lr": 1e-5 * (1 - step / STEPS),
                    "tokens": 500,
                    "seconds": float(step),
                }
            )
            if conflicts and step % 5 == 0 and len(names) > 1:
                pairs = [f"{a}|{b}" for i, a in enumerate(names) for b in names[i + 1 :]]
                cosines = {pair: float(draw.uniform(-0.5, 0.5)) for pair in pairs}
                layers = dict.fromkeys(("embeddings", "layers.0"), cosines)
                norms = dict.fromkeys(names, 1.0)
                records.append(
                    {"event": "conflicts", "step": step, "norms": norms, "cosines": cosines, "layers": layers}
                )
        if step % EVERY == 0:
            share = 0.5 + 0.5 * step / STEPS  # the kept model is the last one
            own = {n: {m: v if m == "n" or step == STEPS else v * share for m, v in scores[n].items()} for n in names}
            records.append(
                {
                    "event": "evaluation",
                    "step": step,
                    "epoch": step // EVERY,
                    "dev": own,
                    "overall": overall(own, primary),
                    "losses": {name: float(2 / (1 + step / 20)) for name in names},
                    "train": own,
                    "train_losses": {name: float(2 / (1 + step / 10)) for name in names},
                    "best": step > 0,
                    "seconds": float(step),
                }
            )
    return records


def _write_predictions(path: Path, task: dict[str, Any], labels: Labels, answers: Any, texts: dict[int, str]) -> None:
    targets, predictions = answers
    rows = len(targets)
    draw = np.random.default_rng(9)
    first = [" ".join(draw.choice(WORDS, 7)) for _ in range(rows)]
    for row, text in texts.items():
        first[row] = text
    columns: dict[str, Any] = {"row": list(range(rows)), "text": first}
    if task.get("reading", "single") != "single":
        columns["text2"] = first[::-1]
    if labels.kind.has_numbers:
        columns |= {"label": targets, "prediction": predictions}
    else:
        shown = [
            [labels.names[i] for i in np.flatnonzero(row)] if targets.ndim == 2 else labels.names[row]
            for row in targets
        ]
        columns |= {"label": shown, "prediction": shown}
        columns |= {f"p_{name}": predictions[:, i] for i, name in enumerate(labels.names)}
    vectors = draw.normal(size=(rows, 4))
    axes = principal_axes(vectors)
    columns |= dict(zip(("pca_1", "pca_2"), axes.points(vectors).T, strict=True))
    table = pa.table(columns).replace_schema_metadata({"pca_explained": json.dumps(axes.explained)})
    pq.write_table(table, path)

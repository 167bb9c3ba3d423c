"""The model card: what a person needs to know before using a model, in the hub's format."""

import math
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from weft.bodies.family import Family
from weft.data.dataset import Dataset
from weft.data.long_texts.truncate import TRUNCATE
from weft.evaluation.bootstrap import Interval, interval, resampled
from weft.evaluation.scoring import Evaluation
from weft.foundation.content import toml_text
from weft.foundation.sanitize import for_code, for_markdown
from weft.kinds import KINDS
from weft.kinds.metrics import METRICS, explain, title
from weft.kinds.truth import Truth
from weft.tasks.config import ModelConfig

if TYPE_CHECKING:
    from huggingface_hub import EvalResult


def model_card(
    recipe: ModelConfig,
    family: Family,
    evaluation: Evaluation,
    train: Mapping[str, Dataset],
    dev: Mapping[str, Dataset],
    temperatures: Mapping[str, float],
) -> str:
    """README.md of a model folder; `temperatures` are those of a calibrated model."""
    spans = {name: _intervals(name, dev[name], evaluation) for name in recipe.tasks}
    measured = [
        f"## Scores\n\n{_scores(recipe, evaluation, spans, dev)}",
        *([f"## Thresholds\n\n{_thresholds(evaluation, dev, temperatures)}"] if evaluation.tuned else []),
        f"## Data\n\n{_data(recipe, train, dev)}",
    ]
    return _card(recipe, family, _results(recipe, evaluation, dev), measured)


def plain_card(recipe: ModelConfig, family: Family) -> str:
    """README.md of a model folder that was made from another one without scoring it."""
    note = "## Scores\n\nThis folder was made from another model and was not scored: use `weft evaluate`.\n"
    return _card(recipe, family, [], [note])


def _card(recipe: ModelConfig, family: Family, results: "list[EvalResult]", measured: list[str]) -> str:
    parts = [
        f"---\n{_metadata(recipe, family, results)}\n---\n",
        f"# {for_markdown(recipe.name)}\n",
        f"One {family.title} body with {len(recipe.tasks)} {'head' if len(recipe.tasks) == 1 else 'heads'}"
        f"{_adapters(recipe)}, fine-tuned by weft from `{for_code(_body(recipe))}`.\n",
        *measured,
        f"## Limits\n\n{_limits(recipe)}",
        f"## How to load it\n\n{_loading(recipe, family)}",
        f"## Recipe\n\n```toml\n{_public_recipe(recipe)}```\n",
    ]
    return "\n".join(parts)


def _results(recipe: ModelConfig, evaluation: Evaluation, dev: Mapping[str, Dataset]) -> "list[EvalResult]":
    from huggingface_hub import EvalResult

    return [
        EvalResult(
            task_type=KINDS[recipe.tasks[task].kind].hub_task,
            task_name=task,
            dataset_type=task,
            dataset_name=f"{task} ({len(dev[task])} dev rows)",
            dataset_split="dev",
            metric_type=metric,
            metric_name=title(metric),
            metric_value=round(value, 4),
        )
        for task, scores in evaluation.scores.items()
        for metric, value in scores.items()
        if metric != "n" and value == value
    ]


def _metadata(recipe: ModelConfig, family: Family, results: "list[EvalResult]") -> str:
    from huggingface_hub import ModelCardData

    is_hub = "/" in recipe.body and not Path(recipe.body).is_absolute()
    data = ModelCardData(
        model_name=recipe.name,
        library_name="transformers",
        base_model=recipe.body if is_hub else None,
        tags=[
            "weft",
            "multi-task",
            family.model_type,
            *sorted({KINDS[task.kind].hub_task for task in recipe.tasks.values()}),
        ],
        metrics=sorted({result.metric_type for result in results}),
        eval_results=results or None,
    )
    return data.to_yaml().rstrip()


def _intervals(task: str, dev: Dataset, evaluation: Evaluation) -> dict[str, Interval | None]:
    truth, predictions = evaluation.truth(dev), dev.labels.in_units(evaluation.predictions[task])
    metrics = [metric for metric in evaluation.scores[task] if metric in METRICS]
    return {metric: interval(values) for metric, values in resampled(metrics, truth, predictions, task).items()}


def _scores(
    recipe: ModelConfig,
    evaluation: Evaluation,
    spans: Mapping[str, Mapping[str, Interval | None]],
    dev: Mapping[str, Dataset],
) -> str:
    lines = ["| task | metric | dev | 95 % interval | random guess | rows |", "| --- | --- | --- | --- | --- | --- |"]
    for task in recipe.tasks:
        truth = Truth.of(dev[task].labels, dev[task].targets)
        for metric, span in spans[task].items():
            value = evaluation.scores[task][metric]
            shown = f"{span.low:.3f} to {span.high:.3f}" if span else "–"
            guess = METRICS[metric].random(truth)
            score = f"{value:.3f}" if value == value else "–"
            lines.append(f"| {task} | {title(metric)} | {score} | {shown} | {guess:.3f} | {len(truth)} |")
    whole = f"{evaluation.overall:.3f}" if math.isfinite(evaluation.overall) else "undefined"
    positive = {task: name for task in recipe.tasks if (name := recipe.tasks[task].positive) is not None}
    explained = explain({task: list(own) for task, own in spans.items()}, positive, evaluation.auxiliary)
    untrained = ""
    if evaluation.untrained:
        named = ", ".join(evaluation.untrained)
        untrained = f"\n\nNot trained in this run: {named}. The best epoch was chosen by the other tasks."
    return (
        "\n".join(lines)
        + f"\n\nOverall dev score: {whole}.\n\n"
        + "\n".join(f"- {line}" for line in explained)
        + untrained
        + "\n\nIntervals are of 1,000 bootstrap resamples of the dev rows. The scores are of the epoch that "
        f"scored best on {_selecting_rows(evaluation)}, so they are a little optimistic.\n"
    )


def _selecting_rows(evaluation: Evaluation) -> str:
    """The rows that selected the epoch."""
    counts = ", ".join(f"{rows:,} of {task}" for task, rows in evaluation.selected_on.items())
    return f"a sample of these rows ({counts})" if counts else "these same rows"


def _thresholds(evaluation: Evaluation, dev: Mapping[str, Dataset], temperatures: Mapping[str, float]) -> str:
    lines = ["| task | label | threshold | dev rows |", "| --- | --- | --- | --- |"]
    for task, tuned in evaluation.tuned.items():
        labels = dev[task].labels
        shown = labels.kind.temper_thresholds(tuned.final, temperatures.get(task, 1.0))
        rows = labels.kind.is_yes(dev[task].targets).sum(axis=0)
        names = labels.kind.decisions(labels.names)
        for name, at, kept, own in zip(names, shown, tuned.kept, rows, strict=True):
            few = " (too few rows to tune)" if kept else ""
            lines.append(f"| {task} | {for_markdown(name)} | {at:.3f}{few} | {own} |")
    return (
        "\n".join(lines)
        + "\n\nA label is predicted if its probability is above its threshold. The thresholds were tuned on the dev "
        "rows. The dev scores above are cross-fitted: each fifth of the rows is decided by thresholds from the rest.\n"
    )


def _data(recipe: ModelConfig, train: Mapping[str, Dataset], dev: Mapping[str, Dataset]) -> str:
    lines = ["| task | kind | reading | train rows | dev rows | labels |", "| --- | --- | --- | --- | --- | --- |"]
    for name, task in recipe.tasks.items():
        labels = dev[name].labels
        shown = ", ".join(map(for_markdown, labels.names)) if labels.names else f"{labels.low:g} to {labels.high:g}"
        rows = f"{_train_rows(train[name])} | {len(dev[name])}"
        lines.append(f"| {name} | {task.kind} | {task.reading} | {rows} | {shown} |")
    masked = sorted({kind for task in recipe.tasks.values() for kind in task.data.mask})
    note = f"\nMasked in all texts before training: {', '.join(masked)}.\n" if masked else ""
    return "\n".join(lines) + "\n" + note


def _train_rows(train: Dataset) -> str:
    labelled = len(train) if train.labelled is None else int(train.labelled.sum())
    return f"{labelled} ({len(train) - labelled} without labels)" if labelled < len(train) else str(labelled)


def _limits(recipe: ModelConfig) -> str:
    others = {name: task.long_texts for name, task in recipe.tasks.items() if task.long_texts != TRUNCATE}
    lines = [
        f"- Texts are cut at {recipe.max_length} tokens; of a pair the longer one is cut first.",
        *(
            f"- {name}: of a text with more than {recipe.max_length} tokens {way.in_words}."
            for name, way in others.items()
        ),
        "- It answers in the labels above, whatever it is asked; texts unlike its training data get an answer too.",
        "- It repeats the biases of its data and of the body it started from. `weft probe` measures one of them.",
        "- Its probabilities are calibrated on the dev rows only: expect less of them on other texts."
        if recipe.calibrate
        else "- Its probabilities are not calibrated: 0.9 does not mean right nine times in ten.",
        "- The licences of the data and of the body it started from apply to it.",
    ]
    if recipe.body == "packaged:minilm-l6":
        lines.append(
            "- The body was trained on Quora duplicates and NLI pairs among others: "
            "scores on pairs are not comparable with those of BERT base."
        )
    return "\n".join(lines) + "\n"


def _loading(recipe: ModelConfig, family: Family) -> str:
    first = next(iter(recipe.tasks))
    second = ', ["..."]' if recipe.tasks[first].reading != "single" else ""
    parts = [part for task in recipe.tasks.values() for part in (task.pooling, task.head, task.chosen_loss)]
    addresses = sorted({part.use for part in (*parts, recipe.adapter) if part is not None and part.use is not None})
    trust = ", trust_code=True" if addresses else ""
    needed = f"\nIt needs code that is not in this folder: {', '.join(addresses)}. Read it before you trust it.\n"
    return f"""```python
import weft

model = weft.load("."{trust})
model.predict("{first}", ["..."]{second})
```
{needed if addresses else ""}
`transformers.AutoModel.from_pretrained` opens the same folder as a plain {family.title} body, without the heads{
        "" if recipe.adapter is None else " and adapters"
    }.
"""


def _adapters(recipe: ModelConfig) -> str:
    if recipe.adapter is None:
        return ""
    owners = ", ".join(recipe.adapter.tasks or ["each task"]) if recipe.adapter.per_task else "all tasks"
    return f" and {recipe.adapter.name} adapters for {owners}"


def _body(recipe: ModelConfig) -> str:
    return Path(recipe.body).name if Path(recipe.body).is_absolute() else recipe.body


def _public_recipe(recipe: ModelConfig) -> str:
    """The recipe without folders of the machine that trained it."""
    tasks = {}
    for name, task in recipe.tasks.items():
        splits = ("train", "dev", "test", "unlabelled")
        files = {s: Path(f).name for s in splits if (f := getattr(task.data, s)) is not None}
        data = task.data if task.data.hub is not None else task.data.model_copy(update=files)
        tasks[name] = task.model_copy(update={"data": data})
    content = recipe.model_copy(update={"tasks": tasks, "body": _body(recipe), "code": None}).content()
    if "distill" in content:
        content["distill"]["teachers"] = [Path(folder).name for folder in content["distill"]["teachers"]]
    return toml_text(content)

"""One source for several tasks: the same losses and gradients as separate passes, with every method of combining."""

import csv
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from tests.contracts.registry import variants
from tests.sourced import TASKS, table_content, write_table
from weft import UserError
from weft.build import assemble
from weft.data.frames import frames_of
from weft.data.readings import TokenSequence
from weft.foundation.randomness import seeded
from weft.foundation.values import Batch, Window
from weft.inference import passes
from weft.inference.engine import TorchEngine
from weft.inference.evaluate import evaluate, evaluate_network
from weft.recipes.assembly import Assembly
from weft.recipes.recipe import load_recipe, parse_recipe
from weft.surgery import SurgeryConfig
from weft.tasks.network import Network
from weft.weighting import WeightingConfig

SILENT: dict[str, Any] = {"dropout": 0.0, "body_dropout": 0.0}


def built(tiny: Path, tmp_path: Path, blank: float, **changes: Any) -> Assembly:
    path = write_table(tmp_path / "table.tsv", blank=blank)
    made = assemble(parse_recipe(table_content(tiny, path, **changes), "table"), device="cpu")
    made.network.train()
    return made


def batches_of(made: Assembly, window: Window, task: str) -> list[Batch]:
    return [made.data[task].train.batch(part.rows) for part in window.parts if part.task == task]


def separate_passes(made: Assembly, window: Window) -> tuple[dict[str, torch.Tensor], dict[str, list[torch.Tensor]]]:
    """The loss and the gradients of each task from passes of its own: the mean over its asked rows."""
    losses, gradients = {}, {}
    for task in window.tasks:
        made.network.zero_grad()
        rows = [
            made.network.task(task).losses(made.network([batch])[0], batch.target)
            for batch in batches_of(made, window, task)
        ]
        loss = torch.cat(rows).mean()
        loss.backward()
        losses[task] = loss.detach()
        gradients[task] = [torch.zeros_like(p) if p.grad is None else p.grad.clone() for p in made.network.parameters()]
    return losses, gradients


def one_pass(made: Assembly, window: Window) -> tuple[dict[str, float], list[torch.Tensor], int]:
    made.network.zero_grad()
    slopes = torch.ones(len(window.tasks), dtype=torch.float64)
    totals = made.step._gradients(window, slopes)
    found = [torch.zeros_like(p) if p.grad is None else p.grad.clone() for p in made.network.parameters()]
    return dict(zip(window.tasks, totals.losses.tolist(), strict=True)), found, totals.tokens


@pytest.mark.parametrize("accumulate", [1, 3])
@pytest.mark.parametrize("blank", [0.0, 0.6])
def test_losses_and_gradients_equal_those_of_separate_passes(
    tiny: Path, tmp_path: Path, blank: float, accumulate: int
) -> None:
    optimizer = {"lr": 1e-3, "precision": "fp64", "accumulate": accumulate}
    made = built(tiny, tmp_path, blank, optimizer=optimizer, **SILENT)
    missing = 0
    for step in range(made.plan.steps):
        window = made.plan.window(step)
        losses, gradients = separate_passes(made, window)
        found, total, tokens = one_pass(made, window)
        assert found == pytest.approx({task: float(loss) for task, loss in losses.items()}, abs=1e-10)
        for one, *apart in zip(total, *gradients.values(), strict=True):
            torch.testing.assert_close(one, torch.stack(apart).sum(dim=0), rtol=0, atol=1e-8)
        separate = sum(
            len(text.ids) for task in window.tasks for b in batches_of(made, window, task) for text in b.texts
        )
        assert tokens <= separate
        if not blank:
            assert tokens * len(TASKS) == separate, "each row goes through the body once"
        missing += len(window.tasks) < len(TASKS)
    assert bool(missing) == (blank > 0 and accumulate == 1), "the test needs windows without some of the tasks"


def test_a_window_has_the_drawn_rows_that_have_a_label(tiny: Path, tmp_path: Path) -> None:
    made = built(tiny, tmp_path, 0.6)
    cells = {task: made.data[task].train.file.strings(task).to_pylist() for task in TASKS}
    assert made.plan.epoch_ends[0] == -(-len(np.unique([i for t in TASKS for i in made.data[t].train.rows])) // 4)
    for step in range(made.plan.steps):
        parts = made.plan.window(step).parts
        at = {part.task: made.data[part.task].train.rows[part.rows].tolist() for part in parts}
        drawn = {row for rows in at.values() for row in rows}
        assert len(drawn) <= 4
        for task in TASKS:
            assert set(at.get(task, [])) == {row for row in drawn if cells[task][row]}


@pytest.mark.parametrize("surgery", variants(SurgeryConfig))
def test_every_weighting_and_surgery_with_tasks_that_are_not_asked(tiny: Path, tmp_path: Path, surgery: str) -> None:
    """The update is the one that the method computes from separate passes of the tasks in the window."""
    for name in variants(WeightingConfig):
        options: Any = {"fixed": {"weights": dict.fromkeys(TASKS, 0.5)}, "dwa": {"every": 1}}.get(name, {})
        made = built(tiny, tmp_path, 0.6, weighting={"name": name, **options}, surgery=surgery, **SILENT)
        rarest = min(range(made.plan.steps), key=lambda step: len(made.plan.window(step).tasks))
        for step in (rarest, 0):
            window = made.plan.window(step)
            losses, gradients = separate_passes(made, window)
            before = {name: p.detach().clone() for name, p in made.network.named_parameters()}
            report = made.step(window, 1e-3)
            assert report.losses == pytest.approx({task: float(loss) for task, loss in losses.items()}, abs=1e-10)
            assert list(report.slopes) == list(window.tasks)
            body = [i for i, (name, _) in enumerate(made.network.named_parameters()) if name.startswith("body.")]
            rows = {
                task: torch.cat([gradients[task][i].flatten() for i in body]) * report.slopes[task]
                for task in window.tasks
            }
            stacked = torch.stack(list(rows.values()))
            method = made.step.methods.surgery
            factors = torch.ones(len(rows), dtype=torch.float64)
            if method is not None:
                with seeded(made.step.seed, window.step, "all", "surgery"):
                    factors = method(stacked @ stacked.T)
            expected = (factors.to(stacked)[:, None] * stacked).sum(dim=0)
            _assert_first_moments(made, body, expected, first=step == rarest)
            for name, parameter in made.network.named_parameters():
                task = name.split(".")[1] if name.startswith("tasks.") else None
                if task is not None and task not in window.tasks:
                    assert torch.equal(parameter, before[name]), f"{name} moved without a row"


def _assert_first_moments(made: Assembly, body: list[int], expected: torch.Tensor, *, first: bool) -> None:
    """Adam's first moment after its first step is a tenth of the gradient that the step used."""
    if not first:
        return
    parameters = list(made.network.parameters())
    moments = []
    for i in body:
        state = made.step.optimizer.state.get(parameters[i], {})
        moments.append(state["exp_avg"].flatten() if state else torch.zeros(parameters[i].numel()))
    torch.testing.assert_close(torch.cat(moments).double() * 10, expected.double(), rtol=1e-6, atol=1e-9)


def test_tasks_of_a_source_need_one_batch_size(tiny: Path, tmp_path: Path) -> None:
    content = table_content(tiny, write_table(tmp_path / "table.tsv"))
    content["tasks"]["stars"]["batch_size"] = 8
    with pytest.raises(UserError) as error:
        assemble(parse_recipe(content, "table"))
    assert "tasks.mood.batch_size = 4, tasks.stars.batch_size = 8" in str(error.value)
    content["schedule"] = {"name": "batch-round-robin", "tasks": ["stars"]}
    made = assemble(parse_recipe(content, "table"))
    assert {part.task: len(part.rows) for part in made.plan.window(0).parts} == {"stars": 8}


def test_what_forms_a_source(tiny: Path, tmp_path: Path) -> None:
    """The same file, text columns, reading and handling of rows; a copy of the file is another source."""
    content = table_content(tiny, write_table(tmp_path / "table.tsv"))
    copy = write_table(tmp_path / "copy.tsv", rows=31)
    content["tasks"]["stars"]["data"]["train"] = str(copy)
    content["tasks"]["topics"]["data"]["mask"] = ["email"]
    made = assemble(parse_recipe(content, "table"))
    assert {part.source for part in made.plan.window(0).parts} == {"mood+warmth", "stars", "topics"}


def two_files(tiny: Path, tmp_path: Path, **changes: Any) -> Assembly:
    """Two tasks with a file each; the second has the texts of the first, and others."""
    content = table_content(tiny, write_table(tmp_path / "table.tsv", rows=12), **changes)
    other = write_table(tmp_path / "other.tsv", rows=20)
    content["tasks"] = {task: content["tasks"][task] | {"batch_size": 8} for task in ("mood", "stars")}
    content["tasks"]["stars"]["data"]["train"] = str(other)
    made = assemble(parse_recipe(content, "table"), device="cpu")
    made.network.train()
    return made


def test_a_text_in_two_files_is_encoded_once_where_a_window_has_both(tiny: Path, tmp_path: Path) -> None:
    made = two_files(tiny, tmp_path, **SILENT)
    shared = 0
    for step in range(made.plan.steps):
        window = made.plan.window(step)
        assert {part.source for part in window.parts} == {"mood", "stars"}
        losses, gradients = separate_passes(made, window)
        found, total, tokens = one_pass(made, window)
        assert found == pytest.approx({task: float(loss) for task, loss in losses.items()}, abs=1e-10)
        for one, *apart in zip(total, *gradients.values(), strict=True):
            torch.testing.assert_close(one, torch.stack(apart).sum(dim=0), rtol=0, atol=1e-8)
        texts = [text for task in window.tasks for batch in batches_of(made, window, task) for text in batch.texts]
        sequences = {tuple(ids.tolist()) for text in texts for ids in text.ids.split(text.lengths)}
        assert tokens == sum(map(len, sequences))
        shared += sum(len(text.lengths) for text in texts) > len(sequences)
    assert shared, "the test needs a window with a shared text"


def test_tasks_of_a_row_share_its_dropout_in_the_body(tiny: Path, tmp_path: Path) -> None:
    """With dropout in the body alone, two tasks with the same head and labels have the same losses on a row."""
    content = table_content(tiny, write_table(tmp_path / "table.tsv"), dropout=0.0, body_dropout=0.3)
    mood = content["tasks"]["mood"] | {"share_head": "both"}
    content["tasks"] = {"mood": mood, "again": mood}
    made = assemble(parse_recipe(content, "table"), device="cpu")
    made.network.train()
    losses = [made.step(made.plan.window(step), 1e-3).losses for step in range(3)]
    assert all(one["mood"] == one["again"] for one in losses)


def test_a_regularized_task_has_its_own_pass(tiny: Path, tmp_path: Path) -> None:
    content = table_content(tiny, write_table(tmp_path / "table.tsv"), **SILENT)
    content["tasks"]["stars"]["regularizer"] = "r-drop"
    made = assemble(parse_recipe(content, "table"), device="cpu")
    made.network.train()
    window = made.plan.window(0)
    once = len(batches_of(made, window, "mood")[0].texts[0].ids)
    report = made.step(window, 1e-3)
    assert report.tokens == 2 * once
    assert list(report.terms) == ["stars"]


def test_dev_rows_without_a_label_do_not_count(tiny: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = built(tiny, tmp_path, 0.6)
    dev = {task: own.dev for task, own in made.data.items()}
    together = evaluate_network(made.network, dev, 0, torch.device("cpu"))
    seen: list[int] = []
    pass_over = passes.pooled

    def watched(network: Network, tasks: list[str], sequences: list[TokenSequence], device: torch.device) -> Any:
        seen.append(len(tasks))
        return pass_over(network, tasks, sequences, device)

    monkeypatch.setattr(passes, "pooled", watched)
    alone = {task: evaluate_network(made.network, {task: own}, 0, torch.device("cpu")) for task, own in dev.items()}
    evaluate_network(made.network, dev, 0, torch.device("cpu"))
    assert seen == [1, 1, 1, 1, 4], "one pass for all tasks of the source"
    engine = TorchEngine(made.network.eval(), torch.device("cpu"))
    answered = evaluate(engine, dev, {task: made.network.task(task).metrics for task in TASKS})
    for task, own in dev.items():
        assert own.blank == 30 - len(own) > 0
        assert together.scores[task]["n"] == len(own)
        np.testing.assert_allclose(together.predictions[task], alone[task].predictions[task], atol=1e-12)
        np.testing.assert_allclose(together.predictions[task], answered.predictions[task], atol=1e-12)
        assert together.losses[task] == pytest.approx(alone[task].losses[task])


def test_tables_in_memory_form_a_source_too(tiny: Path, tmp_path: Path) -> None:
    with write_table(tmp_path / "table.tsv", blank=0.6).open(encoding="utf-8") as handle:
        columns = list(csv.DictReader(handle, delimiter="\t"))
    content = table_content(tiny, tmp_path / "none")
    for task in content["tasks"].values():
        task["data"] = {"label": task["data"]["label"], "on_blank": "skip"}
    given = {task: {"train": columns, "dev": columns} for task in TASKS}
    recipe = load_recipe(content, given=dict.fromkeys(TASKS, ("train", "dev")))
    made = assemble(recipe, device="cpu", frames=frames_of(given))
    assert {part.source for part in made.plan.window(0).parts} == {"+".join(TASKS)}

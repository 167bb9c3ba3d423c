"""Which tasks have a say in the best checkpoint."""

import json
from pathlib import Path

import pytest

from tests.tiny import recipe_content
from weft.build import assemble
from weft.evaluation.scoring import Evaluation
from weft.recipes.idle import untrained
from weft.recipes.recipe import parse_recipe
from weft.report.words import notes
from weft.run import train_run
from weft.runs.reader import read_runs


class Silent:
    def __init__(self) -> None:
        self.seen: list[tuple[Evaluation, bool]] = []

    def started(self, *_: object) -> None: ...
    def stepped(self, *_: object) -> None: ...
    def noted(self, *_: object) -> None: ...
    def evaluated(self, evaluation: Evaluation, is_best: bool) -> None:
        self.seen.append((evaluation, is_best))


def test_untrained_heads_do_not_choose_the_best_epoch(
    tiny: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One task trains and gets worse from epoch to epoch; the untrained ones get better by chance."""
    scores = iter([0.2, 0.9, 0.8, 0.7])

    def scored(network: object, datasets: dict[str, object], step: int, device: object) -> Evaluation:
        own = next(scores)
        by_task = {
            "sentiment": {"accuracy": own, "n": 9.0},
            "paraphrase": {"accuracy": step / 100, "n": 9.0},
            "similarity": {"pearson": float("nan"), "n": 9.0},
        }
        return Evaluation(step, by_task, float("nan"), {})

    content = recipe_content(tiny, epochs=3, schedule={"name": "sequential", "tasks": ["sentiment"]})
    content["log"] = {"train_rows": 0}
    recipe = parse_recipe(content, "test")
    monkeypatch.setattr("weft.training.evaluator.evaluate_network", scored)
    monkeypatch.setattr("weft.training.evaluator.dead_heads", lambda *_: [])
    monkeypatch.setattr("weft.run.save_model", lambda *_: None)
    monkeypatch.setattr("weft.run.save_predictions", lambda *_: None)
    monkeypatch.setattr("weft.run.write_report", lambda *_: None)
    listener = Silent()
    result = train_run(recipe, tmp_path / "run", listener, device="cpu")
    assert [is_best for _, is_best in listener.seen] == [False, True, False, False]
    assert result is not None
    assert result.selection == 0.9
    assert result.untrained == ("paraphrase", "similarity")


def test_they_are_shown_and_marked(tiny: Path, tmp_path: Path) -> None:
    content = recipe_content(tiny, epochs=1, schedule={"name": "sequential", "tasks": ["sentiment", "similarity"]})
    train_run(parse_recipe(content, "test"), tmp_path / "run", Silent(), device="cpu")
    records = [json.loads(line) for line in (tmp_path / "run/metrics.jsonl").read_text().splitlines()]
    evaluation = [record for record in records if record["event"] == "evaluation"][-1]
    assert evaluation["untrained"] == ["paraphrase"]
    dev = evaluation["dev"]
    assert evaluation["selection"] == pytest.approx(
        (dev["sentiment"]["accuracy"] + (1 + dev["similarity"]["pearson"]) / 2) / 2
    )
    (run,) = read_runs([tmp_path / "run"])
    assert any(note.startswith("Not trained in this run: paraphrase.") for note in notes(run))
    assert "(not trained)" in (tmp_path / "run/report.html").read_text()
    assert "Not trained in this run: paraphrase" in (tmp_path / "run/model/README.md").read_text()


def test_a_task_that_a_long_plan_feeds_once_is_trained(tiny: Path) -> None:
    """The windows that are looked at first are a sample; one of twelve thousand is easily passed by."""
    content = recipe_content(tiny, epochs=2000, schedule={"name": "sequential", "order": ["similarity", "sentiment"]})
    content["tasks"] = {name: content["tasks"][name] for name in ("sentiment", "similarity")}
    content["tasks"]["similarity"]["batch_size"] = 100
    content["phases"] = [
        {"epochs": 1, "schedule": {"name": "sequential", "tasks": ["similarity"]}},
        {"epochs": 1999, "schedule": {"name": "sequential", "tasks": ["sentiment"]}},
    ]
    made = assemble(parse_recipe(content, "test"), device="cpu")
    assert made.plan.steps > 10_000
    assert untrained(made.recipe, made.plan) == made.untrained == []
    assert made.plan.window(0).tasks == ("similarity",)

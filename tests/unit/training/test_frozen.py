"""Stored outputs of a frozen body: the same run as without them, what is stored, and when nothing is."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import load_file

from tests.families import write_family
from tests.fingerprint import fingerprint
from tests.sourced import table_content, write_table
from tests.tagged import recipe as tagged
from tests.tagged import rows as tagged_rows
from tests.tiny import files, matches_task, recipe_content, write_rows
from tests.unit.training.test_averaging import Dying, Killed
from tests.unit.training.test_selection import Silent
from weft.bodies.registry import FAMILIES
from weft.build import assemble
from weft.foundation.errors import UserError
from weft.recipes.assembly import Assembly
from weft.recipes.check import examine
from weft.recipes.recipe import Recipe, parse_recipe
from weft.run import train_run
from weft.training.evaluator import Evaluator
from weft.training.frozen import FrozenOutputs
from weft.training.trainable import set_trainable

pytestmark = pytest.mark.usefixtures("few_resamples")
STORED = "the frozen layers run once per row"
TWO_STAGES = [{"epochs": 3, "trainable": "frozen", "lr": 1e-2}, {"epochs": 1}]
LAST = {"name": "layers", "layers": [1]}


class Noting(Silent):
    def __init__(self) -> None:
        super().__init__()
        self.notes: list[str] = []

    def noted(self, *message: object) -> None:
        self.notes.append(str(message[0]))


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "cache"
    monkeypatch.setenv("WEFT_CACHE", str(folder))
    return folder


def exact(tiny: Path, **changes: Any) -> dict[str, Any]:
    """float64 with dropout before the heads and in trained layers: the masks must be the same."""
    optimizer = {"lr": 1e-2, "precision": "fp64", **changes.pop("optimizer", {})}
    return recipe_content(
        tiny, **{"epochs": 3, "dropout": 0.2, "optimizer": optimizer, "trainable": "frozen"} | changes
    )


def with_task(content: dict[str, Any], name: str, **changes: Any) -> dict[str, Any]:
    return content | {"tasks": content["tasks"] | {name: content["tasks"].get(name, {}) | changes}}


def of_tokens(tiny: Path) -> dict[str, Any]:
    """Poolings with weights of their own, beside one without."""
    content = with_task(exact(tiny), "sentiment", pooling="attention")
    return with_task(content, "paraphrase", pooling={"name": "lstm", "size": 8})


def windows(tiny: Path, pool: str) -> dict[str, Any]:
    content = exact(tiny, max_length=10)
    content = with_task(content, "sentiment", long_texts={"name": "windows", "pool": pool}, pooling="mean")
    return with_task(content, "similarity", long_texts={"name": "windows", "pool": "max"})


def tags(tiny: Path) -> dict[str, Any]:
    folder = tiny / "tagged"
    folder.mkdir(exist_ok=True)
    for split, count in (("train", 20), ("dev", 10)):
        lines = [json.dumps(row) for row in tagged_rows(count, len(split))]
        (folder / f"{split}.jsonl").write_text("\n".join(lines), encoding="utf-8")
    content = tagged(folder, "jsonl", "tokens", "slots", subwords="all")
    return content | {"body": str(tiny / "body"), "trainable": "frozen", "optimizer": {"precision": "fp64", "lr": 0.01}}


def negatives(tiny: Path) -> dict[str, Any]:
    rows = [{"a": f"the cat {i % 7}", "b": f"a cat {i % 7}", "no": f"a dog {i % 5}"} for i in range(20)]
    train, dev = (write_rows(tiny / f"matches-{split}.tsv", rows) for split in ("train", "dev"))
    data = {"train": str(train), "dev": str(dev), "text": "a", "text2": "b", "negative": ["no"]}
    return with_task(exact(tiny), "match", **matches_task(tiny, data=data))


def table(tiny: Path, **changes: Any) -> dict[str, Any]:
    path = write_table(tiny / "frozen-table.tsv", rows=27, blank=0.6)
    return table_content(tiny, path, **{"epochs": 3, "trainable": "frozen", **changes})


def adapted(tiny: Path, *, per_task: bool) -> dict[str, Any]:
    """Adapters that train in the first phase and are frozen in the second."""
    phases = [{"epochs": 1}, {"epochs": 3, "trainable": {"name": "frozen", "adapters": False}}]
    adapter = {"name": "lora", "per_task": per_task}
    return exact(tiny, epochs=4, adapter=adapter, phases=phases)


CASES: dict[str, tuple[Callable[[Path], dict[str, Any]], str]] = {
    "frozen": (exact, "pooled vectors of 205 rows"),
    "two stages": (
        lambda tiny: with_task(
            exact(tiny, epochs=4, trainable="full", phases=TWO_STAGES), "sentiment", head={"name": "mlp", "sizes": [8]}
        ),
        "phase 1: the frozen layers run once per row: pooled vectors",
    ),
    "full, then frozen": (
        lambda tiny: exact(tiny, epochs=4, trainable="full", phases=[{"epochs": 1}, TWO_STAGES[0]]),
        "phase 2: the frozen layers run once per row: pooled vectors",
    ),
    "last layer": (lambda tiny: exact(tiny, trainable=LAST), "token states of layer 1 of 205 rows"),
    "last layer, surgery": (
        lambda tiny: exact(tiny, trainable=LAST, surgery="pcgrad", log={"conflicts_every": 2}),
        "token states of layer 1",
    ),
    "poolings with weights": (of_tokens, "pooled vectors and token states of layer 2"),
    "lower layer": (lambda tiny: with_task(exact(tiny), "sentiment", layer=1), "pooled vectors of 205 rows"),
    "mix of layers": (lambda tiny: with_task(exact(tiny), "sentiment", layer="mix"), "pooled vectors of 140 rows"),
    "windows": (lambda tiny: windows(tiny, "mean"), "pooled vectors of 205 rows"),
    "windows with weights": (lambda tiny: windows(tiny, "attention"), "pooled vectors and token states"),
    "tags": (tags, "pooled vectors and token states of layer 2"),
    "hard negatives": (negatives, "pooled vectors of"),
    "one source": (table, "pooled vectors and token states"),
    "one source, last layer": (lambda tiny: table(tiny, trainable=LAST), "token states of layer 1"),
    "one task regularized": (
        lambda tiny: with_task(exact(tiny), "sentiment", regularizer={"name": "smart", "weight": 0.5}),
        "pooled vectors of 179 rows",  # all but the 26 train rows of sentiment
    ),
    "frozen adapter": (
        lambda tiny: adapted(tiny, per_task=False),
        "phase 2: the frozen layers run once per row: pooled",
    ),
    "frozen adapters": (
        lambda tiny: adapted(tiny, per_task=True),
        "phase 2: the frozen layers run once per row: pooled",
    ),
    "accumulation and a mean of weights": (
        lambda tiny: exact(tiny, average="ema", optimizer={"accumulate": 2}),
        "pooled vectors of 205 rows",
    ),
    "a mean of weights that were trained": (
        lambda tiny: exact(tiny, epochs=4, trainable="full", phases=[{"epochs": 1}, TWO_STAGES[0]], average="ema"),
        "pooled vectors of 82 rows",  # train rows only: the mean of the body's weights still moves
    ),
}


def run(content: dict[str, Any], out: Path, **options: Any) -> list[str]:
    listener = Noting()
    train_run(parse_recipe(content, "test"), out, listener, device="cpu", **options)
    return [note for note in listener.notes if STORED in note or "cache" in note]


def records(out: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (out / "metrics.jsonl").read_text().splitlines()]


def weights(out: Path) -> dict[str, torch.Tensor]:
    return load_file(sorted(out.glob("checkpoints/step-*"))[-1] / "weights.safetensors")


def assert_same_numbers(one: Path, two: Path, atol: float) -> None:
    ours, theirs = weights(one), weights(two)
    assert ours.keys() == theirs.keys()
    for name, tensor in ours.items():
        torch.testing.assert_close(tensor, theirs[name], rtol=0, atol=atol, msg=lambda m, n=name: f"{n}: {m}")
    for a, b in zip(records(one), records(two), strict=True):
        for key in ("losses", "norm", "dev", "train", "train_losses"):
            assert _flat(a.get(key)) == pytest.approx(_flat(b.get(key)), abs=100 * atol, nan_ok=True), (key, a["step"])


def _flat(value: Any) -> list[float]:
    if isinstance(value, dict):
        return [number for inner in value.values() for number in _flat(inner)]
    return [float("nan") if value is None else value]


@pytest.mark.parametrize("name", CASES)
def test_the_same_run_as_without(tiny: Path, tmp_path: Path, name: str) -> None:
    build, stored = CASES[name]
    content = build(tiny)
    assert run(content | {"cache": {"states": "off"}}, tmp_path / "off") == []
    notes = run(content, tmp_path / "stored")
    assert [note for note in notes if STORED in note and stored in note]
    left_out = name in ("mix of layers", "one task regularized")
    assert any("cache: sentiment: the frozen layers run at every step" in note for note in notes) == left_out
    assert_same_numbers(tmp_path / "off", tmp_path / "stored", 1e-11)


def test_fp32_and_fp16(tiny: Path, tmp_path: Path, cache: Path) -> None:
    content = recipe_content(tiny, epochs=3, trainable="frozen")
    run(content | {"cache": {"states": "off"}}, tmp_path / "off")
    run(content, tmp_path / "fp32")
    full = {path.name: path.stat().st_size for path in (cache / "states").glob("*.npy")}
    assert_same_numbers(tmp_path / "off", tmp_path / "fp32", 1e-6)
    run(content | {"cache": {"precision": "fp16"}}, tmp_path / "fp16")
    half = {path.name: path.stat().st_size for path in (cache / "states").glob("*.npy") if path.name not in full}
    assert len(half) == len(full)
    assert sum(half.values()) - 128 * len(half) == (sum(full.values()) - 128 * len(full)) / 2
    assert_same_numbers(tmp_path / "off", tmp_path / "fp16", 1e-3)
    with pytest.raises(AssertionError):
        assert_same_numbers(tmp_path / "off", tmp_path / "fp16", 1e-6)


def test_steps_on_vectors_leave_the_body_out(tiny: Path, tmp_path: Path) -> None:
    """Not one token goes through the body after the start; with states, as many as without."""
    run(recipe_content(tiny, epochs=3, trainable="frozen"), tmp_path / "vectors")
    assert {record["tokens"] for record in records(tmp_path / "vectors") if record["event"] == "step"} == {0}
    content = recipe_content(tiny, epochs=3, trainable=LAST)
    run(content, tmp_path / "states")
    run(content | {"cache": {"states": "off"}}, tmp_path / "off")
    one, two = ([r["tokens"] for r in records(tmp_path / n) if r["event"] == "step"] for n in ("states", "off"))
    assert one == two


@pytest.mark.parametrize("changes", [{"trainable": "frozen"}, {"trainable": LAST}, {"phases": TWO_STAGES}], ids=str)
def test_a_killed_run_and_any_state_of_the_cache_give_the_same_bytes(
    tiny: Path, tmp_path: Path, cache: Path, changes: dict[str, Any]
) -> None:
    content = recipe_content(tiny, **{"epochs": 4, **changes})
    run(content, tmp_path / "straight")
    straight = fingerprint(tmp_path / "straight")
    run(content, tmp_path / "filled")
    assert fingerprint(tmp_path / "filled") == straight, "with a filled cache"
    shutil.rmtree(cache / "states")
    run(content | {"seed": 3}, tmp_path / "other")
    run(content, tmp_path / "after another")
    assert fingerprint(tmp_path / "after another") == straight, "after a run with other rows in its batches"
    for step in (5, 11):
        with pytest.raises(Killed):
            train_run(parse_recipe(content, "t"), tmp_path / "killed", Dying(step), device="cpu", resume=step > 5)
        shutil.rmtree(cache / "states")
    run(content, tmp_path / "killed", resume=True)
    assert fingerprint(tmp_path / "killed") == straight


def test_a_second_run_computes_nothing(tiny: Path, tmp_path: Path, cache: Path) -> None:
    content = recipe_content(tiny, epochs=3, trainable="frozen")
    run(content, tmp_path / "one")
    before = {path: path.stat().st_ino for path in (cache / "states").iterdir()}
    run(content | {"seed": 5, "dropout": 0.3, "body_dropout": 0.2}, tmp_path / "two")
    # the sample of train rows depends on the seed only if there are more of them than the sample has
    assert {path: path.stat().st_ino for path in (cache / "states").iterdir()} == before
    damaged = sorted((cache / "states").glob("*.npy"))[0]
    damaged.write_bytes(damaged.read_bytes()[:-8] + bytes(8))
    run(content, tmp_path / "three")
    assert fingerprint(tmp_path / "three") == fingerprint(tmp_path / "one")


def outputs(recipe: Recipe, steps: int | None = None) -> FrozenOutputs:
    made = assemble(recipe, steps=steps, device="cpu")
    set_trainable(made.network, recipe.modes()[0])
    return made.frozen_outputs([{name: task.dev for name, task in made.data.items()}])


@pytest.mark.parametrize("steps", [3, 9, 40])
@pytest.mark.parametrize("schedule", ["batch-round-robin", "sequential", "full-data"])
def test_only_rows_that_the_plan_draws_again_are_stored(tiny: Path, cache: Path, steps: int, schedule: str) -> None:
    """Counted from the plan itself: a task's rows are stored if it draws more of them than there are different ones."""
    recipe = parse_recipe(recipe_content(tiny, epochs=3, trainable="frozen", schedule=schedule), "test")
    found = outputs(recipe, steps)
    drawn: dict[str, list[int]] = {}
    for step in range(steps):
        for part in found.plan.window(step).parts:
            drawn.setdefault(part.task, []).extend(part.rows.tolist())
    found.enter(0)
    for task, dataset in found.step.ahead.datasets.items():
        distinct = set(drawn.get(task, []))
        if len(drawn.get(task, [])) <= len(distinct):
            assert dataset.stored is None
        else:
            assert dataset.stored is not None
            assert dataset.stored.layout.rows.tolist() == sorted(int(dataset.rows[row]) for row in distinct)
    assert all(own.stored is None for own in found.scored[0].values()), "a budget evaluates once"


def test_stored_vectors_are_those_of_the_body(tiny: Path) -> None:
    """An independent computation: each row alone, through transformers' layout of the same weights."""
    found = outputs(parse_recipe(recipe_content(tiny, epochs=3, trainable="frozen"), "test"))
    network = found.network.eval()
    wanted = {}
    for task, dataset in found.step.ahead.datasets.items():
        for row in range(5):
            with torch.no_grad():
                texts = dataset.batch(np.array([row])).texts
                wanted[task, row] = [network.task(task).vectors(network.body(text), text)[0] for text in texts]
    found.enter(0)
    for task, dataset in found.step.ahead.datasets.items():
        batch = dataset.batch(np.arange(5))
        assert batch.texts == ()
        assert batch.vectors is not None
        for place, row in enumerate(batch.rows):
            for side, vector in enumerate(batch.vectors):
                torch.testing.assert_close(vector[place], wanted[task, int(row)][side], rtol=0, atol=1e-6)


@pytest.mark.parametrize("model_type", FAMILIES)
def test_every_family_starts_from_stored_outputs(tiny: Path, tmp_path: Path, model_type: str) -> None:
    """Outputs in training mode, with the dropout of heads and trained layers, from stored outputs and from tokens."""
    body = str(write_family(tmp_path / "body", model_type))
    # the layers of ALBERT share their weights: none is frozen below another
    for mode in ("frozen",) if model_type == "albert" else ("frozen", LAST):
        content = with_task(exact(tiny, trainable=mode, body=body), "paraphrase", pooling="cls")
        made = assemble(parse_recipe(with_task(content, "sentiment", pooling="attention"), "test"), device="cpu")
        set_trainable(made.network, made.recipe.trainable)
        found = made.frozen_outputs([])

        def outputs(made: Assembly = made) -> list[torch.Tensor]:
            torch.manual_seed(1)
            return made.network.train()([task.fed.batch(np.arange(9)) for task in made.data.values()])

        wanted = outputs()
        assert found.enter(0)
        for one, two in zip(outputs(), wanted, strict=True):
            torch.testing.assert_close(one, two, rtol=0, atol=1e-12)


def test_frozen_layers_have_no_dropout_unless_asked_for(tiny: Path) -> None:
    def masks(mode: Any) -> list[bool]:
        made = assemble(parse_recipe(recipe_content(tiny, trainable=mode), "test"))
        set_trainable(made.network, made.recipe.trainable)
        body = made.network.train().body
        assert made.network.training
        return [module.training for module in (body.embeddings, *body.layers)]

    assert masks("frozen") == [False, False, False]
    assert masks({"name": "frozen", "dropout": True}) == [True, True, True]
    assert masks(LAST) == [False, False, True]
    assert masks({"name": "layers", "layers": [0]}) == [True, True, True]
    assert masks("full") == [True, True, True]


@pytest.mark.parametrize(
    ("changes", "note"),
    [
        ({"trainable": {"name": "frozen", "dropout": True}, "cache": {"max_gb": 1}}, "cache: has no effect"),
        ({"trainable": "frozen", "penalties": ["bregman"]}, "because a penalty compares outputs"),
        ({"trainable": "frozen", "cache": {"max_gb": 1e-6}}, "cache.max_gb: outputs of the frozen layers for train"),
        ({"adapter": "lora", "cache": {"max_gb": 1}}, "cache: has no effect"),
    ],
    ids=str,
)
def test_when_nothing_is_stored_the_user_is_told(
    tiny: Path, tmp_path: Path, cache: Path, changes: dict[str, Any], note: str
) -> None:
    notes = run(recipe_content(tiny, epochs=3, **changes), tmp_path / "run")
    assert any(note in found for found in notes)
    assert not any(STORED in found for found in notes)
    assert not list(cache.glob("states/*"))


def test_a_full_disk_is_found_before_the_run(tiny: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("shutil.disk_usage", lambda _: shutil._ntuple_diskusage(10**9, 10**9, 1000))  # type: ignore[attr-defined]
    with pytest.raises(UserError, match=r'cache: the outputs .* need \d+.\d kB, .* cache.states = "off"'):
        run(recipe_content(tiny, epochs=3, trainable="frozen"), tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_the_files_used_longest_ago_are_deleted(tiny: Path, tmp_path: Path, cache: Path) -> None:
    """A run of another body needs room; a run whose files are all there deletes nothing."""
    content = recipe_content(tiny, epochs=3, trainable="frozen")
    run(content, tmp_path / "one")
    first = set((cache / "states").iterdir())
    size = sum(path.stat().st_size for path in first if path.suffix == ".npy") / 1e9
    small = {"cache": {"max_gb": 1.5 * size}}
    run(content | small, tmp_path / "again")
    assert set((cache / "states").iterdir()) == first
    run(content | small | {"layers": 1}, tmp_path / "two")
    left = set((cache / "states").iterdir())
    assert 0 < len(left & first) < len(first)
    assert left - first
    assert sum(path.stat().st_size for path in left if path.suffix == ".npy") <= 1.6 * size * 1e9


def test_a_check_says_what_will_be_stored_and_stores_nothing(tiny: Path, cache: Path) -> None:
    def findings(**changes: Any) -> Any:
        content = recipe_content(tiny, epochs=40, trainable="frozen", **changes)
        return examine(assemble(parse_recipe(content, "test"), device="cpu"))

    found, off = findings(), findings(cache={"states": "off"})
    assert [note for note in found.remarks if STORED in note]
    assert not [note for note in off.remarks if STORED in note]
    assert found.seconds + found.scoring < (off.seconds + off.scoring) / 10
    assert not list(cache.glob("states/*"))


def test_the_final_evaluation_runs_the_body_of_the_best_model(
    tiny: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The best model may be that of an earlier phase, with another body than what is stored."""
    seen: list[object] = []
    finish = Evaluator.finish

    def finish_seen(own: Evaluator, *given: Any) -> None:
        seen.extend(rows.stored for rows in (*own.scoring.train_sample.values(), *own.scoring.dev.values()))
        finish(own, *given)

    monkeypatch.setattr(Evaluator, "finish", finish_seen)
    (note,) = run(recipe_content(tiny, epochs=3, trainable="frozen", dev_sample=8), tmp_path / "run")
    assert "pooled vectors of 188 rows" in note  # 24 of the 41 dev rows, and all train rows twice
    assert seen == [None] * 6


def test_unused_dropout_is_noted(tiny: Path) -> None:
    notes = assemble(parse_recipe(recipe_content(tiny, trainable="frozen", body_dropout=0.1), "test")).notes
    assert any(note.startswith("body_dropout: has no effect, because the body is frozen") for note in notes)
    mode = {"name": "layers", "layers": [0], "dropout": True}
    notes = assemble(parse_recipe(recipe_content(tiny, trainable=mode), "test")).notes
    assert any(note.startswith("trainable.dropout: has no effect") for note in notes)


def test_rows_of_teachers_and_without_labels(tiny: Path, tmp_path: Path) -> None:
    run(recipe_content(tiny), tmp_path / "teacher")
    more = write_rows(tmp_path / "more.tsv", [{"text": f"a lovely film {i}"} for i in range(9)])
    content = exact(tiny, distill={"teachers": [str(tmp_path / "teacher")]})
    content = with_task(content, "sentiment", data=files(tiny, "sentiment") | {"unlabelled": str(more)})
    run(content | {"cache": {"states": "off"}}, tmp_path / "off")
    (note,) = run(content, tmp_path / "stored")
    assert "pooled vectors of 214 rows" in note
    assert_same_numbers(tmp_path / "off", tmp_path / "stored", 1e-11)

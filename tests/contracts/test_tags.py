"""Labels of words work with every body, schedule, weighting and surgery."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import weft
from tests.contracts.registry import variants
from tests.families import write_family
from tests.tagged import recipe, rows
from tests.tiny import write_body
from weft.bodies.registry import FAMILIES
from weft.build import assemble
from weft.export import export
from weft.foundation.errors import UserError
from weft.foundation.values import Part, Window
from weft.inference.evaluate import evaluate_network
from weft.inference.model import load
from weft.penalties import PenaltyConfig
from weft.recipes.assembly import Assembly
from weft.recipes.recipe import parse_recipe
from weft.schedules import ScheduleConfig
from weft.surgery import SurgeryConfig
from weft.weighting import WeightingConfig

TEXT = "A film sees dog, trout... no queasy!"
WEIGHTS = {
    "fixed": {"name": "fixed", "weights": {"slots": 1.0, "intent": 0.5}},
    "dwa": {"name": "dwa", "every": 1},
}
FIRST = {"staggered": {"name": "staggered", "first": "slots", "first_epochs": 1}}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    tmp = tmp_path_factory.mktemp("tagged")
    for split, own in (("train", rows(24, 0)), ("dev", rows(6, 1))):
        (tmp / f"{split}.jsonl").write_text("\n".join(map(json.dumps, own)) + "\n", encoding="utf-8")
    write_body(tmp / "body", dropout=0.0)
    return tmp


def built(folder: Path, changes: dict[str, Any] | None = None, **more: Any) -> Assembly:
    content = recipe(folder, "jsonl", "tokens", "slots", **more) | {"epochs": 2, "dropout": 0.0} | (changes or {})
    return assemble(parse_recipe(content, "test"), device="cpu")


def methods() -> list[Any]:
    found = []
    for key, registry, special in (
        ("schedule", ScheduleConfig, FIRST),
        ("weighting", WeightingConfig, WEIGHTS),
        ("surgery", SurgeryConfig, {}),
    ):
        found += [pytest.param({key: special.get(name, name)}, id=name) for name in variants(registry)]
    return found + [pytest.param({"penalties": [name]}, id=name) for name in variants(PenaltyConfig)]


@pytest.mark.parametrize("changes", methods())
def test_every_method_takes_a_step(folder: Path, changes: dict[str, Any]) -> None:
    made = built(folder, changes)
    report = made.step(made.plan.window(0), made.rates(0))
    assert all(np.isfinite(loss) for loss in report.losses.values())
    assert np.isfinite(report.norm)


@pytest.mark.parametrize("loss", ["cross-entropy", "crf"])
def test_a_rows_loss_does_not_depend_on_other_rows(folder: Path, loss: str) -> None:
    """So accumulation and several processes are exact: a task's loss is a sum over its rows, divided by their words."""
    made = built(folder, loss=loss)
    network, train = made.network.eval(), made.data["slots"].train
    whole = train.batch(np.arange(6))
    with torch.no_grad():
        losses = network.task("slots").losses(network([whole])[0], whole.target, whole.words)
        for row, expected in zip(whole.rows, losses, strict=True):
            one = train.batch(np.array([row]))
            (alone,) = network.task("slots").losses(network([one])[0], one.target, one.words)
            torch.testing.assert_close(alone, expected)


@pytest.mark.parametrize("more", [{}, {"loss": "crf"}, {"subwords": "all"}, {"regularizer": "smart"}], ids=str)
@pytest.mark.parametrize("surgery", ["none", "pcgrad"])
def test_a_windows_loss_is_the_mean_over_its_words(
    folder: Path, monkeypatch: pytest.MonkeyPatch, more: dict[str, Any], surgery: str
) -> None:
    """Whatever the passes: the rows have 6 or 7 words, so means over passes or rows would differ."""
    monkeypatch.setattr(torch, "randn_like", torch.ones_like)  # the noise of a row depends on its pass
    changes = {"surgery": surgery, "optimizer": {"precision": "fp64"}, "body_dropout": 0.0}
    made = built(folder, changes, **more)
    train, numbers = made.data["slots"].train, np.arange(9)
    passes = [numbers[:2], numbers[2:8], numbers[8:]]
    assert len({round(train.units(own) / len(own), 6) for own in passes}) == 3
    found = []
    for parts in ([numbers], passes):
        tasks = [Part(task, micro, own) for micro, own in enumerate(parts) for task in ("slots", "intent")]
        step = built(folder, changes, **more).step
        report = step(Window(0, tuple(tasks)), 1e-3)
        found.append((report, [p.grad for p in step.parameters if p.grad is not None]))
    (one, gradients), (two, others) = found
    assert one.losses == pytest.approx(two.losses, abs=1e-12)
    assert one.terms == pytest.approx(two.terms, rel=1e-6)
    for a, b in zip(gradients, others, strict=True):
        torch.testing.assert_close(a, b, rtol=0, atol=1e-9)
    batch = train.batch(numbers)
    with torch.no_grad():
        output = made.network.eval()([batch])[0]
        if "loss" not in more:
            expected = torch.nn.functional.cross_entropy(output, batch.target)
            assert one.losses["slots"] == pytest.approx(float(expected), abs=1e-9)
        total = made.network.task("slots").losses(output, batch.target, batch.words).sum()
        assert one.losses["slots"] == pytest.approx(float(total) / len(batch.target), abs=1e-9)


def test_the_dev_loss_is_the_mean_over_words(folder: Path) -> None:
    made = built(folder)
    dev = made.data["slots"].dev
    batch = dev.batch(np.arange(len(dev)))
    with torch.no_grad():
        expected = torch.nn.functional.cross_entropy(made.network.eval()([batch])[0], batch.target)
    evaluation = evaluate_network(made.network, {"slots": dev}, 0, made.step.device)
    assert evaluation.losses["slots"] == pytest.approx(float(expected), abs=1e-5)


def test_all_tokens_of_a_word_are_trained(folder: Path) -> None:
    first, every = (built(folder, subwords=which).data["slots"].train.batch(np.arange(6)) for which in ("first", "all"))
    assert first.words is not None
    assert every.words is not None
    assert len(every.target) > len(first.target) == sum(len(row["tokens"]) for row in rows(24, 0)[:6])
    assert set(zip(first.words.rows.tolist(), first.words.positions.tolist(), strict=True)) < set(
        zip(every.words.rows.tolist(), every.words.positions.tolist(), strict=True)
    )


@pytest.mark.parametrize("family", FAMILIES)
def test_every_family(folder: Path, tmp_path: Path, family: str) -> None:
    """Trained for a step, loaded, predicted, and equal in transformers."""
    from transformers import AutoModelForTokenClassification, AutoTokenizer

    body = write_family(tmp_path / "body", family)
    content = recipe(folder, "jsonl", "tokens", "slots") | {"body": str(body), "log": {"train_rows": 0}}
    weft.train(content, out=tmp_path / "run", steps=1)
    model = load(tmp_path / "run")
    (row,) = model.rows("slots", [TEXT])
    words = row[0].words
    assert words is not None
    assert [TEXT[a:b] for a, b, _ in words][:5] == ["A", "film", "sees", "dog", ","]
    assert (words[:, 2] > 0).all()
    (own,) = model.engine.answers("slots", [row])
    try:
        export(tmp_path / "run", "transformers", tmp_path / "hub")
        opened = AutoModelForTokenClassification.from_pretrained(tmp_path / "hub/slots").eval()
    except (OSError, UserError):
        assert not FAMILIES[family].has_plain_tagger
        return
    tokenizer = AutoTokenizer.from_pretrained(tmp_path / "hub/slots")
    inputs = tokenizer([TEXT], return_tensors="pt", truncation=True)
    assert inputs["input_ids"][0].tolist() == row[0].ids.tolist()
    with torch.no_grad():
        best = opened(**inputs).logits[0].softmax(dim=1)[words[:, 2]].max(dim=1)
    np.testing.assert_allclose(best.values.numpy(), own[:, 3], atol=1e-5)


def test_intent_and_slots_of_one_file_share_rows_and_passes(folder: Path) -> None:
    """The tokens of a step are those of one task."""
    made = built(folder)
    window = made.plan.window(0)
    assert {part.task for part in window.parts} == {"slots", "intent"}
    own = [made.data["slots"].train.batch(part.rows) for part in window.parts if part.task == "slots"]
    assert made.step(window, made.rates(0)).tokens == sum(len(batch.texts[0].ids) for batch in own)

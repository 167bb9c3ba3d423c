"""Windows of a text against the derivation: each window alone through the body, pooled, averaged."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from tests.texts import WORDS
from tests.tiny import recipe_content, write_rows
from weft.build import assemble
from weft.data.readings import TokenSequence, pack
from weft.data.sources import TextSource
from weft.foundation.errors import UserError
from weft.inference.engine import TorchEngine
from weft.inference.joint import Ask, together
from weft.inference.passes import run_over, vectors
from weft.recipes.assembly import Assembly
from weft.recipes.recipe import parse_recipe

POOLS = ("mean", "max", "attention")


def long_data(folder: Path) -> Path:
    """Texts of 1 to 39 words and their pairs."""
    rows = [
        {
            "text": " ".join(WORDS[(3 * i + k) % len(WORDS)] for k in range(1 + 13 * i % 39)),
            "other": " ".join(WORDS[(5 * i + k) % len(WORDS)] for k in range(1 + 7 * i % 29)),
            "label": ["bad", "good"][i % 2],
            "sim": i % 6,
        }
        for i in range(16)
    ]
    return write_rows(folder / "long.tsv", rows)


def built(tiny: Path, folder: Path, max_length: int = 12, **own: Any) -> Assembly:
    file = str(long_data(folder))
    single = {"train": file, "dev": file, "text": "text", "label": "label"}
    pairs = {"train": file, "dev": file, "text": "text", "text2": "other", "label": "sim"}
    content = recipe_content(tiny, epochs=1, max_length=max_length, dropout=0.0, body_dropout=0.0)
    content["tasks"] = {
        "mood": {"kind": "classification", "data": single, "batch_size": 8} | own,
        "near": {"kind": "regression", "data": pairs, "reading": "bi", "batch_size": 8} | own,
        "plain": {"kind": "classification", "data": single, "batch_size": 8},
    }
    content["optimizer"] |= {"precision": "fp64"}
    made = assemble(parse_recipe(content, "long"), device="cpu")
    with torch.no_grad():
        for number, parameter in enumerate(p for n, p in made.network.named_parameters() if "windows" in n):
            parameter.copy_(torch.linspace(-1, 1 + number, len(parameter)))  # not the zeros that give the mean
    return made


def windows_of(ids: list[int], room: int) -> list[list[int]]:
    """The windows of a text with an overlap of a quarter, derived again: as few and as short as possible."""
    count = size = 1
    while count * room - (count - 1) * (room // 4) < len(ids):
        count += 1
    while count * size - (count - 1) * (room // 4) < len(ids):
        size += 1
    starts = [(len(ids) - size) * i // max(1, count - 1) for i in range(count)]
    return [ids[start : start + size] for start in starts]


def vector(made: Assembly, task: str, ids: list[int]) -> Tensor:
    """The vector of a text, one window at a time."""
    network, template = made.network, made.tokenizer.template
    alone = []
    for window in windows_of(ids, 12 - 2):
        whole = np.array([*template.before, *window, *template.after], dtype=np.int64)
        packed = pack([TokenSequence(whole)])
        alone.append(network.task(task).pooling(network.body(packed)[-1], packed)[0])
    stacked = torch.stack(alone)
    pool = made.recipe.tasks[task].long_texts.pooled_by
    if pool == "max":
        return stacked.max(dim=0).values
    if pool == "mean":
        return stacked.mean(dim=0)
    query = dict(network.task(task).windows.named_parameters())["query"]
    return (torch.softmax(stacked @ query, dim=0)[:, None] * stacked).sum(dim=0)


def expected(made: Assembly, task: str, rows: np.ndarray) -> Tensor:
    data, module = made.data[task].train, made.network.task(task)
    outputs = []
    for row in rows:
        sides = [vector(made, task, data.file.ids(c, int(data.rows[row])).tolist())[None] for c in data.columns]
        outputs.append(module.head(sides[0], sides[1] if len(sides) > 1 else None))
    return torch.cat(outputs)


@pytest.mark.parametrize("pooling", ["cls", "mean", "lstm"])
@pytest.mark.parametrize("pool", POOLS)
def test_windows_equal_each_window_alone(tiny: Path, tmp_path: Path, pool: str, pooling: str) -> None:
    made = built(tiny, tmp_path, long_texts={"name": "windows", "pool": pool}, pooling=pooling)
    network = made.network.eval()
    batches = [made.data[name].train.batch(np.arange(16)) for name in ("plain", "mood", "near")]
    assert max(max(text.windows or [1]) for text in batches[1].texts) >= 4
    outputs = network(batches)  # one pass, with a task that truncates
    wanted = [expected(made, batch.task, batch.rows) for batch in batches[1:]]
    for found, right in zip(outputs[1:], wanted, strict=True):
        torch.testing.assert_close(found, right, rtol=0, atol=1e-10)
    found, right = (
        torch.autograd.grad(sum(o.square().sum() for o in side), network.body.parameters(), allow_unused=True)
        for side in (outputs[1:], wanted)
    )
    for one, two in zip(found, right, strict=True):
        assert (one is None) == (two is None)
        if one is not None:
            torch.testing.assert_close(one, two, rtol=0, atol=1e-10)


@pytest.mark.parametrize("pool", POOLS)
def test_inference_equals_each_window_alone(tiny: Path, tmp_path: Path, pool: str) -> None:
    made = built(tiny, tmp_path, long_texts={"name": "windows", "pool": pool}, pooling="mean")
    network, device = made.network.eval(), torch.device("cpu")
    rows = np.arange(16)
    with torch.no_grad():
        right = {name: network.task(name).loss.read(expected(made, name, rows)).numpy() for name in ("mood", "near")}
        vector_of_each = torch.stack([vector(made, "mood", text(made, row)) for row in rows])
    asks = []
    for name in ("plain", "mood", "near"):
        data = made.data[name].train
        sequences = [data.sequences(int(row)) for row in rows]
        asks.append(Ask(name, sequences))
        if name != "plain":
            found = TorchEngine(network, device).answers(name, sequences)
            np.testing.assert_allclose(found, right[name], rtol=0, atol=1e-10)
            scored = run_over(network, TextSource([data]), device)[name]
            np.testing.assert_allclose(scored.predictions, right[name], rtol=0, atol=1e-10)
    mixed = together(network, asks, device)  # texts of several tasks in one pass
    for name, values in zip(("mood", "near"), mixed[1:], strict=True):
        np.testing.assert_allclose(values, right[name], rtol=0, atol=1e-10)
    flat = [row[0] for row in asks[1].rows]
    torch.testing.assert_close(vectors(network, network.task("mood"), flat, device), vector_of_each, rtol=0, atol=1e-10)


def text(made: Assembly, row: int) -> list[int]:
    data = made.data["mood"].train
    ids: list[int] = data.file.ids("text", int(data.rows[row])).tolist()
    return ids


@pytest.mark.parametrize("way", ["head-tail", *({"name": "windows", "pool": pool} for pool in POOLS)], ids=str)
def test_texts_that_fit_give_the_same_numbers(tiny: Path, tmp_path: Path, way: Any) -> None:
    """Bit for bit, in outputs and in gradients."""
    results = []
    for long_texts in ("truncate", way):
        made = built(tiny, tmp_path, max_length=64, long_texts=long_texts, pooling="mean")
        network = made.network.eval()
        batches = [made.data[name].train.batch(np.arange(16)) for name in ("mood", "near")]
        outputs = network(batches)
        torch.cat([output.flatten() for output in outputs]).square().sum().backward()
        gradients = {n: p.grad for n, p in network.named_parameters() if "windows" not in n}
        results.append((outputs, gradients))
    (plain, its), (other, own) = results
    assert all(torch.equal(one, two) for one, two in zip(plain, other, strict=True))
    assert its.keys() == own.keys()
    for name, gradient in its.items():
        assert gradient is own[name] is None or torch.equal(gradient, own[name]), name


@pytest.mark.parametrize("reading", ["cross", "concat"])
def test_windows_of_a_pair_in_one_sequence_are_refused(tiny: Path, reading: str) -> None:
    content = recipe_content(tiny)
    content["tasks"]["paraphrase"] |= {"reading": reading, "long_texts": "windows"}
    with pytest.raises(UserError, match=r'tasks.paraphrase: long_texts: .windows. cuts .* use reading = "bi"'):
        parse_recipe(content, "pairs")


def test_unknown_options_are_named(tiny: Path) -> None:
    for given, message in (
        ("window", "did you mean 'windows'"),
        ({"name": "windows", "overlap": 1}, "overlap: found 1, input should be less than 1"),
        ({"name": "head-tail", "tail": 3}, "tail: there is no such key"),
    ):
        content = recipe_content(tiny)
        content["tasks"]["sentiment"]["long_texts"] = given
        with pytest.raises(UserError, match=message):
            parse_recipe(content, "wrong")

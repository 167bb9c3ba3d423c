"""Pretraining: parity of the loss, packed and padded passes, exact resume, and a body that recipes start from."""

import json
from pathlib import Path

import numpy as np
import pytest
import torch
import torch.nn.functional as F

from tests.families import SMALL, write_family
from tests.fingerprint import fingerprint
from tests.integration.command import weft
from tests.texts import WORDS
from tests.tiny import recipe, recipe_content, write_body, write_recipe, write_rows
from weft.bodies.registry import FAMILIES
from weft.bodies.weights import load_body
from weft.build import assemble
from weft.data.readings import TokenSequence, pack
from weft.foundation.errors import UserError
from weft.pretraining.course import PretrainConfig
from weft.pretraining.head import load_head, save_body
from weft.pretraining.loop import MaskedLanguageModel, Pretrainer
from weft.pretraining.pretrain import PretrainResult, columns_of_files, columns_of_recipe, pretrain

KNOWN = [name for name, family in FAMILIES.items() if family.masked_head is not None]
CONFIG = PretrainConfig(batch_size=8, max_length=16, lr=3e-3, every_steps=4, dev_fraction=0.1)


@pytest.fixture(scope="module")
def texts(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Sentences that follow a pattern, so that there is something to learn."""
    pattern = [f"a {WORDS[i % 5]} film sees the {WORDS[5 + i % 3]} {WORDS[(7 * i) % 40]}" for i in range(120)]
    return write_rows(tmp_path_factory.mktemp("texts") / "texts.tsv", [{"text": text} for text in pattern])


def model_of(folder: Path) -> tuple[MaskedLanguageModel, bool]:
    body = load_body(folder)
    head, is_known = load_head(body, folder)
    return MaskedLanguageModel(body, head).eval(), is_known


@pytest.mark.parametrize("model_type", KNOWN)
def test_the_loss_is_that_of_transformers(tmp_path: Path, model_type: str) -> None:
    """Same masked ids, same loss, with the head of the checkpoint; saved, it opens there with the same logits."""
    from transformers import AutoConfig, AutoModelForMaskedLM

    write_family(tmp_path, model_type)
    config = AutoConfig.from_pretrained(tmp_path)
    theirs = AutoModelForMaskedLM.from_config(config).eval()
    with torch.no_grad():
        for parameter in theirs.parameters():
            parameter.add_(0.05 * torch.randn(parameter.shape, generator=torch.Generator().manual_seed(1)))
    theirs.save_pretrained(tmp_path)
    ours, is_known = model_of(tmp_path)
    assert is_known
    rows = [np.array([7, 8, 9, 10, 11, 12]), np.array([12, 9, 30, 7, 20, 21, 22, 23, 24])]
    encoded = pack([TokenSequence(row) for row in rows])
    positions, targets = torch.tensor([1, 3, 8, 11, 12]), torch.tensor([40, 41, 42, 43, 9])
    labels = torch.full(encoded.ids.shape, -100)
    labels[positions] = targets
    pad = config.pad_token_id or 0
    ids, marked = (torch.full((2, 9), fill) for fill in (pad, -100))
    mask = torch.zeros(2, 9, dtype=torch.int64)
    for number, (row, part) in enumerate(zip(rows, labels.split([6, 9]), strict=True)):
        ids[number, : len(row)], marked[number, : len(row)], mask[number, : len(row)] = torch.tensor(row), part, 1
    with torch.no_grad():
        logits = ours(encoded, positions)
        expected = theirs(input_ids=ids, attention_mask=mask, labels=marked)
        assert float(F.cross_entropy(logits, targets)) == pytest.approx(float(expected.loss), abs=1e-5)
        saved = tmp_path / "saved"
        saved.mkdir()
        save_body(ours.body, ours.head, saved)
        again, loading = AutoModelForMaskedLM.from_pretrained(saved, output_loading_info=True)
        assert not loading["missing_keys"]
        found = again.eval()(input_ids=ids, attention_mask=mask).logits
    torch.testing.assert_close(found[mask.bool()], expected.logits[mask.bool()], atol=1e-5, rtol=0)


@pytest.mark.parametrize("model_type", SMALL)
def test_packed_equals_padded(tmp_path: Path, model_type: str) -> None:
    model, _ = model_of(write_family(tmp_path, model_type))
    model.double()
    rows = [np.array([7, 8, 9, 10]), np.array([12, 9, 30, 7, 20, 21])]
    encoded = pack([TokenSequence(row) for row in rows])
    positions = torch.tensor([1, 2, 5, 9])
    ids, mask = torch.full((2, 6), model.body.shape.pad), torch.zeros(2, 6, dtype=torch.int64)
    for number, row in enumerate(rows):
        ids[number, : len(row)], mask[number, : len(row)] = torch.tensor(row), 1
    with torch.no_grad():
        states = model.body.padded(ids, mask, torch.zeros_like(ids))[-1][mask.bool()]
        padded = model.head(states[positions], model.body.embeddings.tokens.weight)
        torch.testing.assert_close(model(encoded, positions), padded, atol=1e-6, rtol=0)


def run(tiny: Path, texts: Path, out: Path, steps: int = 30, *, resume: bool = False) -> PretrainResult:
    columns = columns_of_files([texts], "text", tiny / "body")
    return pretrain(columns, tiny / "body", out, CONFIG, steps=steps, device="cpu", resume=resume)


def test_the_loss_falls_and_recipes_start_from_the_body(tiny: Path, texts: Path, tmp_path: Path) -> None:
    result = run(tiny, texts, tmp_path / "body", 60)
    assert result.head == "new"
    assert result.loss < 0.8 * result.loss_before
    assert result.accuracy > 0.2
    made = assemble(recipe(tiny, body=str(tmp_path / "body")), device="cpu")
    wanted = load_body(tmp_path / "body" / "model").state_dict()
    assert all(torch.equal(wanted[name], tensor) for name, tensor in made.network.body.state_dict().items())
    started = load_body(tiny / "body").state_dict()
    moved = [name for name in wanted if not torch.equal(wanted[name], started[name]) and "pooler" not in name]
    assert len(moved) == len([name for name in wanted if "pooler" not in name])
    # the saved head is used by the next pretraining
    columns = columns_of_files([texts], "text", tmp_path / "body" / "model")
    again = pretrain(columns, tmp_path / "body" / "model", tmp_path / "more", CONFIG, steps=1, device="cpu")
    assert again.head == "checkpoint"
    assert again.loss_before == pytest.approx(result.loss, abs=1e-5)


def test_resumes_exactly(tiny: Path, texts: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    wanted = run(tiny, texts, tmp_path / "straight")
    advance = Pretrainer._advance

    def dies(self: Pretrainer, seconds: float) -> None:
        if self.progress.step in kills:
            kills.remove(self.progress.step)
            raise RuntimeError("killed")
        advance(self, seconds)

    kills = {2, 7, 21}
    monkeypatch.setattr(Pretrainer, "_advance", dies)
    for _ in range(3):
        with pytest.raises(RuntimeError, match="killed"):
            run(tiny, texts, tmp_path / "killed", resume=True)
    found = run(tiny, texts, tmp_path / "killed", resume=True)
    assert not kills
    assert fingerprint(tmp_path / "killed") == fingerprint(tmp_path / "straight")
    assert (found.loss_before, found.loss) == (wanted.loss_before, wanted.loss)
    with pytest.raises(UserError, match="is a run of another length"):
        run(tiny, texts, tmp_path / "killed", 31, resume=True)
    with pytest.raises(UserError, match="already exists; continue with --resume"):
        run(tiny, texts, tmp_path / "killed")


def test_texts_are_deduplicated_and_long_ones_cut(tiny: Path, tmp_path: Path) -> None:
    from weft.data.tokenizer import Tokenizer
    from weft.pretraining.corpus import Corpus

    long = " ".join(WORDS[:20])
    rows = [{"text": "a cat"}, {"text": "a dog"}, {"text": "a cat"}, {"text": long}, {"text": " "}]
    columns = columns_of_files([write_rows(tmp_path / "t.tsv", rows)], "text", tiny / "body")
    tokenizer = Tokenizer.load(tiny / "body")
    corpus = Corpus(columns, tokenizer.template, 10)
    ids = tokenizer.encode([long])[0]
    assert len(corpus) == 2 + -(-len(ids) // 8)
    whole = [id_ for number in range(2, len(corpus)) for id_ in corpus._sequence(number)[0][1:-1].tolist()]
    assert whole == ids
    train, dev = corpus.split(0.2, 1)
    assert sorted([*train, *dev]) == list(range(len(corpus)))
    assert len(dev) == 1


def test_the_texts_of_a_recipe_are_its_train_texts(tiny: Path) -> None:
    columns = columns_of_recipe(recipe(tiny), tiny / "body")
    named = [(Path(str(own.file.source)).name, own.column) for own in columns]
    assert named == [
        ("sentiment-train.tsv", "text"),
        ("paraphrase-train.tsv", "a"),
        ("paraphrase-train.tsv", "b"),
        ("similarity-train.tsv", "a"),
        ("similarity-train.tsv", "b"),
    ]


def test_the_command(tiny: Path, texts: Path, tmp_path: Path) -> None:
    path = write_recipe(tmp_path, recipe_content(tiny, body=str(write_body(tmp_path / "start"))))
    small = ["--budget", "steps=3", "--batch-size", "4", "--max-length", "16"]
    done = weft("pretrain", path, "-o", tmp_path / "of-recipe", *small)
    assert "a new head, because the checkpoint has none" in done.stdout
    assert f"--body {tmp_path / 'of-recipe'}" in done.stdout.replace("\n", "")
    weft("pretrain", texts, "-o", tmp_path / "of-files", "--body", tmp_path / "start", *small)
    result = json.loads((tmp_path / "of-files" / "result.json").read_text())
    assert result["steps"] == 3
    weft("train", path, "--body", tmp_path / "of-files", "-o", tmp_path / "run", "--budget", "steps=2")
    for arguments, message in {
        ("nowhere.csv",): "there is no such file",
        (str(path), "--text", "review"): "--text review: is for files",
        (str(path), "--epochs", "2"): "exclude each other",
        (str(texts), "--text", "review"): "review",
    }.items():
        failed = weft("pretrain", *arguments, "-o", tmp_path / "no", *small, code=2)
        assert message in failed.stderr

"""Tasks that `transformers` opens with the code in their folder: what goes in, what is rejected, what comes along."""

import ast
import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import weft
from tests.exported import TEXTS, write_model
from weft.export import export, modeling_weft, sentence_transformers
from weft.export.source import ExportSource, open_source
from weft.export.transformers import write

TASKS: dict[str, dict[str, Any]] = {
    "single": {"like": "sentiment", "pooling": "mean"},
    "cross": {"like": "paraphrase", "pooling": "max"},
    "concat": {"like": "paraphrase", "reading": "concat", "pooling": "attention"},
    "bi": {"like": "similarity"},
    "several": {"like": "sentiment", "kind": "multilabel", "pooling": "mean"},
    "several-native": {"like": "sentiment", "kind": "multilabel", "pooling": "pooler"},
    "native": {"like": "paraphrase"},
    "one-logit": {"like": "paraphrase", "loss": "binary-cross-entropy"},
    "shares": {"like": "paraphrase", "loss": "dual-objective"},
    "body": {"like": "sentiment"},
}
LONG = [" ".join(TEXTS[-2:]), TEXTS[-1], TEXTS[0]]
LONG_SECOND = [TEXTS[-1], TEXTS[1], " ".join(TEXTS)]


@pytest.fixture(scope="module")
def source(tiny: Path, tmp_path_factory: pytest.TempPathFactory) -> ExportSource:
    """Calibrated, so that a temperature that is forgotten shows."""
    made = open_source(write_model(tiny, tmp_path_factory.mktemp("custom"), TASKS, segments=False))
    made.model.temperatures |= dict.fromkeys(set(TASKS) - {"bi"}, 0.6)
    return made


@pytest.fixture(scope="module")
def model(source: ExportSource) -> weft.Model:
    return source.model


@pytest.fixture(scope="module")
def out(source: ExportSource, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("out")
    assert write(source, folder).skipped == {}
    return folder


def opened(folder: Path, **options: Any) -> tuple[Any, Any]:
    from transformers import AutoModelForSequenceClassification, AutoTokenizer

    custom = (folder / "modeling_weft.py").exists()
    model = AutoModelForSequenceClassification.from_pretrained(folder, trust_remote_code=custom, **options)
    return AutoTokenizer.from_pretrained(folder, trust_remote_code=custom), model


def answers(model: Any, inputs: Any) -> np.ndarray:
    with torch.no_grad():
        logits = model(**inputs).logits
    functions = {"regression": lambda o: o, "multi_label_classification": torch.sigmoid}
    return functions.get(model.config.problem_type, lambda o: o.softmax(dim=1))(logits).numpy()


def expected(model: weft.Model, task: str, *texts: list[str]) -> np.ndarray:
    found = model.predict(task, *texts)
    return np.array([[p.score] if p.probabilities is None else list(p.probabilities.values()) for p in found])


@pytest.mark.parametrize("task", TASKS)
@pytest.mark.parametrize("padding_side", ["right", "left"])
def test_long_texts_calibrated_answers_and_any_padding(
    model: weft.Model, out: Path, task: str, padding_side: str
) -> None:
    tokenizer, exported = opened(out / task)
    custom = type(exported).__name__ == "WeftForSequenceClassification"
    if not custom and padding_side == "left":
        return  # BERT's own class counts positions from the left
    texts = [LONG] if model.config.tasks[task].reading == "single" else [LONG, LONG_SECOND]
    inputs = tokenizer(*texts, padding=True, truncation=True, return_tensors="pt", padding_side=padding_side)
    np.testing.assert_allclose(answers(exported, inputs), expected(model, task, *texts), rtol=1e-5, atol=1e-5)


def test_a_cross_encoder_is_calibrated_too(source: ExportSource, model: weft.Model, tmp_path: Path) -> None:
    from sentence_transformers import CrossEncoder

    sentence_transformers.write(source, tmp_path)
    for task, softmax in (("one-logit", False), ("native", True), ("cross", True)):
        scorer = CrossEncoder(str(tmp_path / task), device="cpu", local_files_only=True)
        got = scorer.predict(list(zip(TEXTS, TEXTS[::-1], strict=True)), apply_softmax=softmax)
        probabilities = expected(model, task, TEXTS, TEXTS[::-1])
        np.testing.assert_allclose(got, probabilities if softmax else probabilities[:, 1], rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("task", ["single", "bi"])
def test_a_text_that_was_not_cut_is_cut_as_in_weft(model: weft.Model, out: Path, task: str) -> None:
    tokenizer, exported = opened(out / task)
    texts = [LONG] if task == "single" else [LONG, LONG_SECOND]
    inputs = tokenizer(*texts, padding=True, return_tensors="pt")
    assert inputs["input_ids"].shape[1] > 128
    np.testing.assert_allclose(answers(exported, inputs), expected(model, task, *texts), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize(
    ("task", "texts", "message"),
    [
        ("single", [["a cat"], ["a dog"]], "reads one text"),
        ("cross", [["a cat"]], "reads two texts"),
        ("bi", [["a cat"]], "reads two texts"),
        ("cross", [LONG, LONG_SECOND], "expected 128: tokenize with truncation=True"),
        ("concat", [LONG, LONG_SECOND], "expected 128: tokenize with truncation=True"),
    ],
)
def test_rows_of_another_form_are_rejected(out: Path, task: str, texts: list[list[str]], message: str) -> None:
    tokenizer, exported = opened(out / task)
    with pytest.raises(ValueError, match=message):
        exported(**tokenizer(*texts, padding=True, return_tensors="pt"))


def test_vectors_of_a_bi_task_are_those_of_texts(out: Path) -> None:
    from transformers import AutoModel, AutoTokenizer

    encoder = AutoModel.from_pretrained(out / "bi", trust_remote_code=True)
    with pytest.raises(ValueError, match="tokenize texts, not pairs"):
        encoder(
            **AutoTokenizer.from_pretrained(out / "bi", trust_remote_code=True)(
                ["a cat"], ["a dog"], return_tensors="pt"
            )
        )


def test_the_code_runs_only_if_it_is_trusted(out: Path) -> None:
    """Were the folder a BERT for those who do not run the code, they would get answers of a random head."""
    from transformers import AutoModelForSequenceClassification

    with pytest.raises(ValueError, match="trust_remote_code"):
        AutoModelForSequenceClassification.from_pretrained(out / "single", trust_remote_code=False)


def test_the_code_needs_torch_and_transformers_alone(out: Path) -> None:
    tree = ast.parse((out / "bi" / "modeling_weft.py").read_text(encoding="utf-8"))
    found = {node.module for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    found |= {name.name for node in ast.walk(tree) if isinstance(node, ast.Import) for name in node.names}
    assert {str(name).split(".")[0] for name in found} == {"collections", "typing", "torch", "transformers"}


def example(out: Path, task: str) -> str:
    (found,) = re.findall(r"```python\n(.*?)```", (out / task / "README.md").read_text(encoding="utf-8"), re.DOTALL)
    return str(found)


@pytest.mark.parametrize("task", TASKS)
def test_the_example_of_a_readme(
    out: Path, task: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(out)
    exec(compile(example(out, task), "README.md", "exec"), {})
    assert len(capsys.readouterr().out.splitlines()) == (1 if task == "bi" else 2)


def test_it_runs_without_weft(out: Path) -> None:
    without = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    code = f"import sys\nsys.modules['weft'] = None\n{example(out, 'bi')}"
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=out, env=without, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert len(json.loads(done.stdout)) == 2


def test_a_readme_says_what_goes_in(tiny: Path, out: Path, tmp_path: Path) -> None:
    assert "[CLS] first [SEP] [CLS] second [SEP]" in (out / "bi" / "README.md").read_text()
    assert 'pooling = "mean" is not BERT\'s own' in (out / "single" / "README.md").read_text()
    assert "trust_remote_code" not in (out / "native" / "README.md").read_text()
    data = {"train": str(tiny / "data" / "sentiment-train.tsv"), "dev": str(tiny / "data" / "sentiment-dev.tsv")}
    masked = {"like": "sentiment", "data": data | {"mask": ["email"]}}
    export(write_model(tiny, tmp_path, {"masked": masked}), "transformers", tmp_path / "out")
    assert "masked in training (email)" in (tmp_path / "out" / "masked" / "README.md").read_text()


def test_a_task_that_is_called_body(out: Path) -> None:
    from transformers import AutoModel

    assert type(AutoModel.from_pretrained(out / "body-alone")).__name__ == "BertModel"
    assert (out / "body" / "modeling_weft.py").exists()


def test_it_trains_and_is_saved_again_like_any_other(out: Path, tmp_path: Path) -> None:
    tokenizer, exported = opened(out / "cross")
    inputs = tokenizer(["a cat", "a dog"], ["a cat", "no film"], padding=True, return_tensors="pt")
    loss = exported(**inputs, labels=torch.tensor([1, 0])).loss
    probabilities = torch.from_numpy(answers(exported, inputs))
    torch.testing.assert_close(loss.detach(), -(probabilities[0, 1].log() + probabilities[1, 0].log()) / 2)
    loss.backward()
    without = [name for name, parameter in exported.named_parameters() if parameter.grad is None]
    assert without == []
    exported.save_pretrained(tmp_path)
    tokenizer.save_pretrained(tmp_path)
    _, again = opened(tmp_path)
    np.testing.assert_array_equal(answers(again, inputs), answers(exported, inputs))


def test_a_setting_of_the_library_reaches_the_body(out: Path) -> None:
    _, exported = opened(out / "bi", attn_implementation="eager", dtype=torch.float64)
    assert exported.body.config._attn_implementation == "eager"
    assert exported.body.dtype == torch.float64


def test_the_names_of_the_code_are_those_of_the_registries() -> None:
    """A name that no recipe has would be code that nobody can reach."""
    from tests.contracts.registry import of_rows, variants
    from weft.losses import LossConfig
    from weft.nn.heads import HeadConfig
    from weft.nn.pooling import PoolingConfig

    assert set(modeling_weft.POOLINGS) == set(of_rows(PoolingConfig))
    assert set(modeling_weft.HEADS) == set(variants(HeadConfig))
    assert set(modeling_weft.LOGITS) == set(of_rows(LossConfig))

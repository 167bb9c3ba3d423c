"""What holds for every kind of label, and what tells kinds apart."""

import math
import pickle
import subprocess
import sys

import numpy as np
import pytest
import torch
from pydantic import TypeAdapter, ValidationError

from tests.contracts.test_golden import KIND_ROWS
from weft.foundation.errors import UserError
from weft.kinds import KINDS
from weft.kinds.labels import Labels
from weft.kinds.metrics import METRICS, choose_metrics
from weft.kinds.probability import ProbabilityKind
from weft.kinds.tags import objects
from weft.kinds.truth import Predictions, Truth
from weft.losses import LossConfig
from weft.nn.heads import HeadConfig

LABELS = {name: row.labels for name, row in KIND_ROWS.items()}
every = pytest.mark.parametrize("labels", LABELS.values(), ids=LABELS)
OF_ROWS = {name: labels for name, labels in LABELS.items() if not labels.kind.labels_words}
of_rows = pytest.mark.parametrize("labels", OF_ROWS.values(), ids=OF_ROWS)
"""kinds with one prediction per row; test_tags.py has those of words"""


def targets_of(labels: Labels) -> np.ndarray:
    if labels.kind.labels_words:
        return objects([np.array(row, dtype=np.int64) for row in KIND_ROWS[labels.kind.name].targets])  # type: ignore[arg-type]
    return np.array(KIND_ROWS[labels.kind.name].targets, dtype=labels.kind.target_type)


def answers_of(labels: Labels, rows: int = 4) -> Predictions:
    draw = np.random.default_rng(0)
    if not labels.names:
        return draw.random(rows)
    answers = draw.random((rows, len(labels.names)))
    return answers / answers.sum(axis=1, keepdims=True) if labels.kind.has_one_class else answers


@every
def test_labels_survive_being_saved(labels: Labels) -> None:
    plain = labels.content()
    assert list(plain) == ["kind", "names", "low", "high", "bounded", "scaled", "numbered", "positive"]
    assert TypeAdapter(Labels).validate_json(TypeAdapter(dict).dump_json(plain)) == labels
    assert labels.fits(labels.kind.name)


def test_a_kind_that_does_not_exist() -> None:
    with pytest.raises(
        ValidationError, match="Input should be 'classification', 'ordinal', 'multilabel', 'regression'"
    ):
        TypeAdapter(Labels).validate_python({"kind": "poem"})


@every
def test_written_labels_are_read_back(labels: Labels) -> None:
    targets = targets_of(labels)
    written = labels.kind.cells(labels.in_units(targets), labels.names)
    flat, read = labels.kind.flat, labels.kind.read_cells(list(written), labels.names)
    assert len(read) == len(targets)
    np.testing.assert_allclose(flat(read), flat(labels.in_units(targets)))


@of_rows
def test_an_answer_says_what_is_decided(labels: Labels) -> None:
    """The answer of a request, the column of a file and the words of a report are of one mind."""
    kind, values = labels.kind, answers_of(labels)
    decided = kind.cells(kind.decide(labels.in_units(values)), labels.names)
    for row, value in enumerate(values):
        label, score, probabilities = kind.answer(labels, value)
        assert label == (decided[row] if labels.names else None)
        assert score == pytest.approx(max(value) if labels.names else decided[row])
        assert list(probabilities or ()) == list(labels.names)
    assert [name for name, _ in kind.answer_columns(labels) if name.startswith("p_")] == [
        f"p_{n}" for n in labels.names
    ]
    label, score, probabilities = kind.no_answer()
    assert (label, math.isnan(score), bool(probabilities)) == (None, True, False)


@of_rows
def test_tempering_decides_nothing_anew(labels: Labels) -> None:
    values = answers_of(labels)
    assert (labels.kind.decide(labels.kind.temper(values, 3.0)) == labels.kind.decide(values)).all()


@every
def test_only_different_answers_diverge(labels: Labels) -> None:
    one, two = torch.from_numpy(answers_of(labels)), torch.from_numpy(answers_of(labels)[::-1].copy())
    assert (labels.kind.divergence(one, one) == 0).all()
    assert (labels.kind.divergence(one, two) > 0).all()
    torch.testing.assert_close(labels.kind.divergence(one, two), labels.kind.divergence(two, one))


@every
def test_defaults_and_metrics_exist(labels: Labels) -> None:
    kind = labels.kind
    assert set(kind.metrics) <= set(METRICS)
    assert choose_metrics(labels, None, "t") == kind.default_metrics
    head = TypeAdapter(HeadConfig).validate_python(kind.defaults.get("head", "linear"))
    loss = TypeAdapter(LossConfig).validate_python(kind.default_loss).build(labels, "t", head.bounds)
    assert loss.outputs == (len(labels.names) or 1)


def test_every_metric_belongs_to_a_kind() -> None:
    assert {name for kind in KINDS.values() for name in kind.metrics} == set(METRICS)


@of_rows
def test_the_majority_answer_is_one_answer_for_all_rows(labels: Labels) -> None:
    truth = Truth.of(labels, targets_of(labels))
    answers = labels.kind.majority(truth)
    assert answers.shape == ((4, 3) if labels.kind.ranks else answers_of(labels).shape)
    assert (answers == answers[0]).all()


def test_a_constant_answer_is_noticed() -> None:
    same = np.tile([0.2, 0.7, 0.1], (4, 1))
    for name in ("classification", "ordinal"):
        labels = LABELS[name]
        constant, targets = labels.kind.decide(same), targets_of(labels)
        assert labels.kind.constant_answer(labels, constant, targets) == labels.names[1]
        assert labels.kind.constant_answer(labels, constant, np.ones(4, dtype=np.int64)) is None
        assert labels.kind.constant_answer(labels, labels.kind.decide(answers_of(labels)), targets) is None


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("classification", "labels no 50%, yes 25%, maybe 25%"),
        ("multilabel", "labels a 50%, b 25%, c 25%"),
        ("regression", "labels 1 to 5, mean 3.12"),
        ("tags", "5 words, 3 spans of 2 types"),
    ],
)
def test_distributions(name: str, text: str) -> None:
    assert KINDS[name].distribution(LABELS[name], targets_of(LABELS[name])) == text


def test_what_each_kind_can_be_asked() -> None:
    two = Labels("classification", ("no", "yes"))
    assert [kind.name for kind in KINDS.values() if kind.has_one_class] == ["classification", "ordinal", "tags"]
    assert [kind.name for kind in KINDS.values() if kind.labels_words] == ["tags"]
    assert [kind.name for kind in KINDS.values() if isinstance(kind, ProbabilityKind)] == list(KINDS)[:3]
    assert {name: labels.kind.decisions(labels.names) for name, labels in LABELS.items()} == {
        "classification": (),
        "ordinal": (),
        "multilabel": LABELS["multilabel"].names,
        "regression": (),
        "matches": (),
        "tags": (),
    }
    assert (two.kind.decisions(two.names), two.is_binary) == (("yes",), True)
    assert [name for name, labels in LABELS.items() if labels.limits is not None] == ["regression"]


@pytest.mark.parametrize(
    ("labels", "found"), [(LABELS["classification"], "3 classes"), (LABELS["multilabel"], "multilabel labels")]
)
def test_a_positive_class_needs_two(labels: Labels, found: str) -> None:
    with pytest.raises(UserError, match=f"t.positive: .* but the task has {found}; leave it out"):
        labels.with_positive("a", "t.positive")


def test_labels_cross_processes() -> None:
    labels = pickle.loads(pickle.dumps(LABELS["ordinal"]))
    assert labels.kind.name == "ordinal"


def test_loading_a_model_imports_no_library_of_metrics() -> None:
    code = "import sys, weft.inference.model; print([m for m in ('sklearn', 'scipy') if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_the_gradient_of_the_soft_cross_entropy() -> None:
    """By hand: the gradient of `-T^2 sum q log p` on the logits is `T (p - q)`, with p and q at temperature T."""
    draw = torch.Generator().manual_seed(0)
    logits = torch.randn(6, 4, generator=draw, dtype=torch.float64, requires_grad=True)
    theirs = torch.randn(6, 4, generator=draw, dtype=torch.float64)
    for temperature in (1.0, 2.0, 5.0):
        KINDS["classification"].imitation(logits.softmax(1), theirs.softmax(1), temperature).sum().backward()
        p, q = (one.detach().div(temperature).softmax(1) for one in (logits, theirs))
        assert logits.grad is not None
        torch.testing.assert_close(logits.grad, temperature * (p - q), atol=1e-12, rtol=0)
        logits.grad = None


def test_the_gradient_of_the_soft_binary_cross_entropy() -> None:
    """By hand: `T (p - q) / labels`, with p and q the sigmoids at temperature T."""
    draw = torch.Generator().manual_seed(1)
    logits = torch.randn(6, 3, generator=draw, dtype=torch.float64, requires_grad=True)
    theirs = torch.randn(6, 3, generator=draw, dtype=torch.float64)
    for temperature in (1.0, 2.0):
        KINDS["multilabel"].imitation(logits.sigmoid(), theirs.sigmoid(), temperature).sum().backward()
        p, q = (one.detach().div(temperature).sigmoid() for one in (logits, theirs))
        assert logits.grad is not None
        torch.testing.assert_close(logits.grad, temperature * (p - q) / 3, atol=1e-9, rtol=0)
        logits.grad = None


@pytest.mark.parametrize("labels", [own for own in LABELS.values() if own.kind.distills], ids=lambda own: own.kind.name)
def test_a_student_that_predicts_what_its_teacher_does_cannot_improve(labels: Labels) -> None:
    """The gradient of the distillation loss on the predictions vanishes there, along every direction they can move."""
    teacher = torch.from_numpy(answers_of(labels))
    shift = torch.randn(teacher.shape, generator=torch.Generator().manual_seed(2), dtype=torch.float64)
    if labels.kind.has_one_class:
        shift -= shift.mean(dim=1, keepdim=True)  # probabilities still sum to 1
    losses = [labels.kind.imitation(teacher + size * 1e-4 * shift, teacher, 2.0).sum() for size in (-1.0, 0.0, 1.0)]
    assert losses[1] < min(losses[0], losses[2])

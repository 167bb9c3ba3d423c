import math
import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn import metrics as sk

from weft.foundation.errors import UserError
from weft.kinds import KINDS, forms
from weft.kinds.labels import Labels
from weft.kinds.metrics import METRICS, choose_metrics, counted, explain, overall, score
from weft.kinds.ranking import rank_candidates
from weft.kinds.tags import objects
from weft.kinds.truth import Truth


def test_classes() -> None:
    probabilities = np.array([[0.9, 0.1], [0.2, 0.8], [0.6, 0.4], [0.3, 0.7]])
    scores = score(
        Labels("classification", ("a", "b")), ["accuracy", "f1", "auc"], np.array([0, 1, 1, 1]), probabilities
    )
    assert scores["accuracy"] == 0.75
    assert scores["f1"] == pytest.approx((2 / 3 + 4 / 5) / 2)
    assert scores["auc"] == 1.0
    assert scores["n"] == 4


def test_numbers_are_scored_in_their_own_units() -> None:
    labels = Labels("regression", low=0, high=5, scaled=True)
    scores = score(labels, KINDS["regression"].default_metrics, np.array([0.0, 0.5, 1.0]), np.array([0.0, 0.5, 0.8]))
    assert scores["mse"] == pytest.approx(1 / 3)
    assert scores["pearson"] == pytest.approx(np.corrcoef([0, 2.5, 5], [0, 2.5, 4])[0, 1])
    assert scores["spearman"] == pytest.approx(1)


def test_the_overall_score_is_the_one_of_the_three_tasks() -> None:
    scores = {"s": {"accuracy": 0.5}, "p": {"accuracy": 0.8}, "t": {"pearson": 0.6}}
    primary = {"s": "accuracy", "p": "accuracy", "t": "pearson"}
    assert overall(scores, primary) == pytest.approx((0.5 + 0.8 + (1 + 0.6) / 2) / 3)


def test_a_constant_prediction_has_no_correlation_and_no_overall() -> None:
    scores = score(Labels("regression"), ["pearson"], np.array([0.0, 1.0, 0.5]), np.array([0.3, 0.3, 0.3]))
    assert math.isnan(scores["pearson"])
    assert math.isnan(overall({"t": scores}, {"t": "pearson"}))


def test_ordered_classes() -> None:
    probabilities = np.eye(3)[[0, 2, 1, 0]]
    scores = score(
        Labels("ordinal", ("a", "b", "c")), ["class-distance", "kappa"], np.array([0, 2, 2, 2]), probabilities
    )
    assert scores["class-distance"] == 0.75
    assert 0 < scores["kappa"] < 1


def test_several_labels() -> None:
    targets = np.array([[1.0, 0.0], [1.0, 1.0], [0.0, 0.0]])
    probabilities = np.array([[0.9, 0.2], [0.8, 0.3], [0.1, 0.4]])
    scores = score(Labels("multilabel", ("a", "b")), KINDS["multilabel"].default_metrics, targets, probabilities)
    assert scores["accuracy"] == pytest.approx(2 / 3)
    assert scores["f1-micro"] == pytest.approx(0.8)
    assert scores["f1"] == pytest.approx(0.5)


def test_an_area_that_is_not_defined() -> None:
    one_class = score(Labels("classification", ("a", "b")), ["auc"], np.array([1, 1]), np.array([[0.5, 0.5]] * 2))
    assert math.isnan(one_class["auc"])


@pytest.mark.parametrize("kind", KINDS)
def test_the_defaults_of_a_kind_fit_it(kind: str) -> None:
    assert all(kind in METRICS[name].kinds for name in KINDS[kind].default_metrics)
    assert not METRICS[KINDS[kind].default_metrics[0]].lower_is_better


@pytest.mark.parametrize(
    ("wanted", "message"), [(["f2"], "found 'f2', expected some of pearson"), (["mse"], "so higher must be better")]
)
def test_metrics_that_do_not_fit(wanted: list[str], message: str) -> None:
    with pytest.raises(UserError, match=message):
        choose_metrics(Labels("regression"), wanted, "t")


def test_the_area_needs_two_classes() -> None:
    with pytest.raises(UserError, match="'auc' is for two classes, but the task has 3"):
        choose_metrics(Labels("classification", ("a", "b", "c")), ["auc"], "t")


@settings(max_examples=100)
@given(st.data(), st.integers(2, 5), st.integers(1, 40))
def test_counted_in_blocks_is_what_sklearn_says_row_by_row(data: st.DataObject, classes: int, rows: int) -> None:
    a_class = st.lists(st.integers(0, classes - 1), min_size=rows, max_size=rows)
    true, chosen = np.array(data.draw(a_class)), np.array(data.draw(a_class))
    names = ["accuracy", "f1", "class-distance", "balanced-accuracy", "mcc"]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(forms, "BLOCK", 7)
        found = score(Labels("ordinal", tuple("abcde"[:classes])), names, true, np.eye(classes)[chosen])
    expected = {
        "accuracy": sk.accuracy_score(true, chosen),
        "f1": sk.f1_score(true, chosen, average="macro", zero_division=0),
        "class-distance": np.abs(true - chosen).mean(),
        "n": rows,
    }
    with warnings.catch_warnings(action="ignore"):  # scikit-learn's, of classes that are not there
        expected["mcc"] = sk.matthews_corrcoef(true, chosen)
        expected["balanced-accuracy"] = sk.balanced_accuracy_score(true, chosen)
    assert found == pytest.approx(expected, abs=1e-12)
    if len({*true, *chosen}) > 1:  # with one class alone kappa is 0 / 0
        kappa = METRICS["kappa"].compute(Truth(KINDS["ordinal"], true, classes), np.eye(classes)[chosen])
        assert kappa == pytest.approx(sk.cohen_kappa_score(true, chosen, weights="quadratic"), abs=1e-12)


@settings(max_examples=100)
@given(st.data(), st.integers(2, 4), st.integers(1, 40))
def test_precision_recall_and_f1_are_those_of_sklearn(data: st.DataObject, classes: int, rows: int) -> None:
    """Of the positive class of two, whichever it is; macro for more."""
    a_class = st.lists(st.integers(0, classes - 1), min_size=rows, max_size=rows)
    true, chosen = np.array(data.draw(a_class)), np.array(data.draw(a_class))
    names = tuple("abcd"[:classes])
    positive = data.draw(st.sampled_from((0, 1))) if classes == 2 else None
    labels = Labels("classification", names, positive=None if positive is None else names[positive])
    wanted = ["precision", "recall", *(["f1-positive"] if classes == 2 else [])]
    found = score(labels, choose_metrics(labels, wanted, "t"), true, np.eye(classes)[chosen])
    average = {"average": "macro"} if positive is None else {"average": "binary", "pos_label": positive}
    y, p = (true, chosen) if positive is None else (np.append(true, [0, 1]), np.append(chosen, [0, 1]))
    if positive is not None:  # scikit-learn wants the positive class to be there; two rows that are right see to it
        found = score(labels, wanted, y, np.eye(2)[p])
    theirs = {"precision": sk.precision_score, "recall": sk.recall_score, "f1-positive": sk.f1_score}
    for name in wanted:
        assert found[name] == pytest.approx(theirs[name](y, p, zero_division=0, **average), abs=1e-12)


def test_precision_and_recall_of_several_labels_are_macro() -> None:
    targets = np.array([[1.0, 0.0], [1.0, 1.0], [0.0, 0.0]])
    probabilities = np.array([[0.9, 0.2], [0.2, 0.7], [0.6, 0.4]])
    scores = score(Labels("multilabel", ("a", "b")), ["precision", "recall"], targets, probabilities)
    chosen = probabilities > 0.5
    assert scores["precision"] == sk.precision_score(targets, chosen, average="macro") == 0.75
    assert scores["recall"] == sk.recall_score(targets, chosen, average="macro") == 0.75


@pytest.mark.parametrize("name", ["f1-positive", "precision", "recall"])
def test_a_metric_of_one_class_asks_which(name: str) -> None:
    labels = Labels("classification", ("irony", "plain"))
    with pytest.raises(UserError) as error:
        choose_metrics(labels, ["accuracy", name], "t")
    assert str(error.value) == (
        f"tasks.t.metrics: '{name}' needs a positive class; "
        'add `positive = "irony"` or `positive = "plain"` to the task'
    )
    assert choose_metrics(labels.with_positive("irony", "k"), [name], "t") == (name,)


def test_the_positive_class_is_one_of_two() -> None:
    with pytest.raises(UserError, match=r"tasks\.t\.positive: found 'ironic', expected irony or plain"):
        Labels("classification", ("irony", "plain")).with_positive("ironic", "tasks.t.positive")
    for labels, found in (
        (Labels("classification", ("a", "b", "c")), "3 classes"),
        (Labels("multilabel", ("a", "b")), "multilabel labels"),
        (Labels("regression"), "regression labels"),
    ):
        with pytest.raises(UserError, match=f"but the task has {found}; leave it out"):
            labels.with_positive("a", "tasks.t.positive")
    with pytest.raises(UserError, match="'f1-positive' is for two classes, but the task has 3"):
        choose_metrics(Labels("classification", ("a", "b", "c")), ["f1-positive"], "t")


def test_a_positive_class_makes_no_other_labels() -> None:
    """A head that was trained without one goes on with one."""
    labels = Labels("classification", ("irony", "plain"))
    assert labels == labels.with_positive("irony", "k")


def test_what_a_table_of_scores_must_say() -> None:
    lines = explain({"s": ("accuracy", "f1"), "t": ("pearson", "mse"), "u": ("mcc", "recall")}, {"u": "irony"})
    assert lines[0] == "overall = mean of s accuracy, (1 + t pearson) / 2, (1 + u mcc) / 2"
    assert any(line.startswith("f1 (macro): mean of the F1 of every class") for line in lines)
    assert any(line.startswith("recall: two classes: of the class that `positive` names") for line in lines)
    assert lines[-1] == "positive class of u: irony"
    assert explain({"s": ("accuracy",)}, {}) == ["overall = s accuracy"]


@pytest.mark.parametrize("name", METRICS)
def test_every_metric_stays_within_its_range(name: str) -> None:
    metric, draw = METRICS[name], np.random.default_rng(0)
    low, high = metric.range
    for kind in metric.kinds:
        if kind == "regression":
            truth, p = Truth(KINDS[kind], draw.normal(size=30)), draw.normal(size=30)
        elif kind == "multilabel":
            truth, p = Truth(KINDS[kind], (draw.random((30, 3)) < 0.5).astype(float), 3), draw.random((30, 3))
        elif kind == "tags":
            rows = [draw.integers(0, 2, 4) for _ in range(30)]
            truth = Truth(KINDS[kind], objects(rows), 2, names=("O", "x"))  # type: ignore[arg-type]
            p = objects([np.c_[np.zeros((4, 2)), draw.integers(0, 2, 4), np.ones(4)] for _ in rows])  # type: ignore[assignment]
        elif kind == "matches":
            pairs = np.stack([draw.integers(0, 20, 30), draw.integers(20, 40, 30)], axis=1)
            truth, p = Truth(KINDS[kind], pairs), rank_candidates(*draw.random((2, 30, 4), np.float32), pairs)
        else:
            truth, p = Truth(KINDS[kind], draw.integers(0, 2, 30), 2, positive=0), draw.dirichlet(np.ones(2), 30)
        assert low <= metric.compute(truth, p) <= high


def test_auxiliary_tasks_do_not_count_in_overall() -> None:
    primary = {"a": "accuracy", "b": "pearson"}
    scores = {"a": {"accuracy": 0.5}, "b": {"pearson": 0.2}}
    assert counted(primary, ()) == primary
    assert overall(scores, counted(primary, {"b"})) == 0.5
    assert counted(primary, primary) == primary, "if nothing else is left, all count"
    assert explain({"a": ["accuracy"], "b": ["pearson"]}, {}, {"a"})[0] == "overall = (1 + b pearson) / 2"

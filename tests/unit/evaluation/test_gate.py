"""The gate between two models."""

import numpy as np
import pytest

from weft.evaluation.bootstrap import Interval, PairedDifference
from weft.evaluation.gate import Gate, GatedTask, When, gated, rows_needed
from weft.kinds import KINDS
from weft.kinds.truth import Predictions, Truth


def two_classes(rows: int, wrong: int) -> tuple[Truth, Predictions]:
    """True labels, and answers of which the first `wrong` are wrong."""
    targets = np.arange(rows) % 2
    chosen = targets.copy()
    chosen[:wrong] = 1 - chosen[:wrong]
    return Truth(KINDS["classification"], targets, 2), np.eye(2)[chosen]


def judge(wrong_before: int, wrong_after: int, max_drop: float, when: When = "possible", rows: int = 400) -> GatedTask:
    truth, old = two_classes(rows, wrong_before)
    _, new = two_classes(rows, wrong_after)
    return gated("mood", "accuracy", (truth, old), (truth, new), max_drop, when)


def test_equal_answers_pass_even_without_tolerance() -> None:
    found = judge(100, 100, 0.0)
    assert (found.difference, found.low, found.high, found.closes) == (0.0, 0.0, 0.0, False)


def test_better_answers_pass() -> None:
    assert not judge(100, 40, 0.0).closes


def test_a_drop_that_the_interval_excludes_passes_and_others_do_not() -> None:
    """10 of 400 rows get worse: -.025, with a standard error of sqrt(.025 * .975 / 400) = .0078."""
    found = judge(100, 110, 0.05)
    assert found.difference == pytest.approx(-0.025)
    assert found.low == pytest.approx(-0.025 - 1.96 * 0.0078, abs=0.004)
    assert not found.closes
    assert judge(100, 110, 0.03).closes, "the interval reaches beyond -.03"
    assert judge(100, 110, 0.02).closes


def test_only_an_established_drop_closes_a_gate_for_clear_drops() -> None:
    assert not judge(100, 110, 0.02, "clear").closes, "the drop may be smaller than .02"
    assert judge(100, 180, 0.02, "clear").closes


def test_an_undefined_difference_closes_the_gate() -> None:
    truth = Truth(KINDS["regression"], np.linspace(0, 1, 30), bounds=(0.0, 1.0))
    constant = np.full(30, 0.5)
    found = gated("near", "pearson", (truth, constant), (truth, constant), 0.01, "clear")
    assert found.closes
    assert found.low is None
    assert "cannot be computed" in found.sentence(0.01, "clear")


def test_the_rows_that_would_decide_open_the_gate() -> None:
    """With that many rows of the same kind the interval excludes the drop; with two thirds of them it does not."""
    found = judge(100, 105, 0.04, rows=200)
    assert found.rows_needed is not None
    times = found.rows_needed / 200
    enough, too_few = 1.3 * times, 0.67 * times
    for factor, closes in ((enough, False), (too_few, True)):
        again = judge(round(100 * factor), round(105 * factor), 0.04, rows=round(200 * factor))
        assert again.closes is closes


def test_no_number_of_rows_helps_against_a_real_drop() -> None:
    assert rows_needed(PairedDifference(-0.1, Interval(-0.15, -0.05), 0.0), 400, 0.03) is None


def test_one_closed_task_closes_the_gate() -> None:
    good, bad = judge(100, 40, 0.01), judge(100, 180, 0.01)
    assert Gate(0.01, "possible", (good,)).is_open
    gate = Gate(0.01, "possible", (good, bad))
    assert not gate.is_open
    table = gate.markdown().splitlines()
    assert [line.rsplit("|", 2)[1].strip() for line in table] == ["gate", "---", "open", "closed"]
    assert "cannot be excluded on 400 rows" in gate.sentences()[1]

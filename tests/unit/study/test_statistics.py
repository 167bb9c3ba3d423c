"""The statistics of a study: against plain formulas, and against studies whose truth is known."""

import runpy
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

from weft.evaluation.bootstrap import resampled
from weft.evaluation.together import resampled_together
from weft.kinds import KINDS
from weft.kinds.metrics import METRICS
from weft.kinds.truth import Truth
from weft.study.claims import judge
from weft.study.format import Claim
from weft.study.outcomes import Measured, Outcomes, RunOutcome, TaskOutcome
from weft.study.statistics import Estimate, difference, estimate, holm

DOCS = Path(__file__).parents[3] / "docs"
SEEDS = runpy.run_path(str(DOCS / "seeds.py"))
CLAIM: Claim = SEEDS["CLAIM"]
simulate = SEEDS["simulate"]


def verdicts(count: int, true: float, base: float = 0.5) -> Counter[str]:
    """How often each word falls in so many studies of 3 seeds, seed sd .01, 863 rows and correlated arms."""
    draw = np.random.default_rng(11711)
    return Counter(judge([CLAIM], simulate({"a": base, "b": base + true}, draw))[0].word for _ in range(count))


def test_no_difference_is_seldom_supported() -> None:
    found = verdicts(200, 0.0)
    assert found["supported"] <= 0.07 * 200
    assert found["refuted"] <= 0.07 * 200


def test_a_difference_is_found() -> None:
    assert verdicts(100, 0.05)["supported"] >= 80


@pytest.mark.long
@pytest.mark.parametrize("base", [0.5, 0.8])
def test_four_hundred_studies(base: float) -> None:
    assert verdicts(400, 0.0, base)["supported"] <= 0.07 * 400
    assert verdicts(400, 0.05, base)["supported"] >= 0.8 * 400


@pytest.mark.long
def test_the_page_has_the_table_of_seeds_as_it_is() -> None:
    assert (DOCS / "studies.md").read_text(encoding="utf-8") == SEEDS["page"](), "run `make docs`"


@pytest.mark.parametrize(
    "metric",
    [
        name
        for name, own in METRICS.items()
        if name not in ("auc", "f1-micro", "f1-positive") and own.kinds not in (("matches",), ("tags",))
    ],
)
def test_models_together_score_as_each_alone(metric: str) -> None:
    draw = np.random.default_rng(3)
    if "regression" in METRICS[metric].kinds:
        targets = draw.normal(size=60) + 100
        truth = Truth(KINDS["regression"], targets)
        models = [targets + draw.normal(size=60) for _ in range(2)]
    else:
        truth = Truth(KINDS["ordinal"], draw.integers(0, 4, 60), 4)
        models = [draw.dirichlet(np.ones(4), 60) for _ in range(2)]
    found = resampled_together(metric, [(truth, own) for own in models], "t")
    for i, own in enumerate(models):
        np.testing.assert_allclose(found[:, i], resampled([metric], truth, own, "t")[metric], atol=1e-9)


def test_without_rows_it_is_the_t_interval_of_the_seeds() -> None:
    values = np.array([0.50, 0.53, 0.55, 0.51])
    own = estimate(Measured((1, 2, 3, 4), values, np.repeat(values[None], 10, axis=0)))
    assert own is not None
    expected = stats.t.interval(0.95, 3, values.mean(), stats.sem(values))
    assert own.interval == pytest.approx(expected)
    assert own.p(0.4) == pytest.approx(stats.ttest_1samp(values, 0.4).pvalue)


@pytest.mark.parametrize(
    ("bounds", "value", "error"),
    [((-1, 1), 0.98, 0.02), ((-1, 1), -0.9, 0.1), ((0, 1), 0.995, 0.01), ((0, np.inf), 0.1, 0.2)],
)
def test_an_interval_stays_within_the_range_of_its_metric(
    bounds: tuple[float, float], value: float, error: float
) -> None:
    own = Estimate(value, error, 2.0)
    assert own.interval[0] < bounds[0] or own.interval[1] > bounds[1], "which is why it must be done otherwise"
    low, high = own.within(*bounds)
    assert bounds[0] <= low < value < high <= bounds[1]


def test_the_interval_of_a_correlation_is_fishers() -> None:
    own = Estimate(0.8, 0.05, 7.0)
    reach = stats.t.ppf(0.975, 7) * 0.05 / (1 - 0.8**2)
    assert own.within(-1, 1) == pytest.approx(tuple(np.tanh(np.arctanh(0.8) + np.array([-reach, reach]))))


def test_far_from_its_bounds_an_interval_is_students() -> None:
    own = Estimate(0.5, 0.001, 4.0)
    assert own.within(0, 1) == pytest.approx(own.interval, abs=1e-6)
    assert Estimate(1.0, 0.1, 4.0).within(0, 1) == pytest.approx((1 - stats.t.ppf(0.975, 4) * 0.1, 1.0))


def test_the_intervals_cover_a_correlation_near_one() -> None:
    """Studies of five seeds whose r scatters evenly on Fisher's scale: 95 % of the intervals hold the truth."""
    draw = np.random.default_rng(1)
    held = 0
    for _ in range(1000):
        values = np.tanh(np.arctanh(0.9) + draw.normal(0, 0.2, 5))
        own = estimate(Measured(tuple(range(5)), values, np.repeat(values[None], 10, axis=0)))
        assert own is not None
        low, high = own.within(-1, 1)
        held += low <= 0.9 <= high
    assert held / 1000 == pytest.approx(0.95, abs=0.03)


def test_without_rows_a_difference_is_the_paired_t_test_of_the_common_seeds() -> None:
    one, two = np.array([0.6, 0.64, 0.61]), np.array([0.5, 0.55, 0.58, 0.51])
    seeds = (1, 2, 3), (4, 1, 2, 3)
    arms = [Measured(own, v, np.repeat(v[None], 10, axis=0)) for own, v in zip(seeds, (one, two), strict=True)]
    own = difference(arms[0], arms[1])
    assert own is not None
    assert own.p(0.0) == pytest.approx(stats.ttest_rel(one, two[1:]).pvalue)


def test_without_seeds_a_difference_is_mcnemars() -> None:
    """Two arms that every seed trains alike: only rows vary, and the error is that of discordant answers."""
    draw = np.random.default_rng(2)
    right = draw.random((2, 2000)) < [[0.6], [0.65]]
    again = np.random.default_rng(3).integers(0, 2000, (4000, 2000))
    arms = [Measured((1, 2), np.full(2, v.mean()), np.repeat(v[again].mean(axis=1)[:, None], 2, 1)) for v in right]
    own = difference(arms[1], arms[0])
    assert own is not None
    apart = right[1].astype(float) - right[0]
    assert own.error == pytest.approx(apart.std() / np.sqrt(2000), rel=0.03)
    assert own.freedom > 1000


def test_what_a_seed_does_to_both_arms_cancels() -> None:
    """Seeds that move both arms by ten points hide nothing, and none of it is mistaken for a difference."""
    draw = np.random.default_rng(4)
    held = found = 0
    for _ in range(300):
        seeds, rows = draw.normal(0, 0.1, 4), draw.normal(0, 0.01, (4, 400))
        one, two = (seeds + draw.normal(0, 0.01, 4) for _ in range(2))
        arms = [Measured((1, 2, 3, 4), v, v + rows.T[:200] * sign) for v, sign in ((one, 0.1), (two + 0.05, -0.1))]
        own = difference(arms[1], arms[0])
        assert own is not None
        held += own.interval[0] <= 0.05 <= own.interval[1]
        found += own.p(0.0) < 0.05
    assert held / 300 == pytest.approx(0.95, abs=0.04)
    assert found > 0.9 * 300


def test_arms_that_predict_the_same_match() -> None:
    same = outcomes(a=(0.8, 1.0), b=(0.8, 1.0))
    assert judge([claim(margin=0.01)], same)[0].word == "supported"
    assert (judge([claim()], same)[0].word, judge([claim()], same)[0].p) == ("undecided", 1.0)


def test_arms_without_common_seeds_decide_nothing() -> None:
    found = outcomes(a=(0.5, 1.0), b=(0.9, 1.0))
    apart = Outcomes({(arm, seed + 3 * (arm == "b")): run for (arm, seed), run in found.runs.items()})
    (verdict,) = judge([claim()], apart)
    assert (verdict.word, verdict.why) == ("undecided", "b and a have fewer than two finished seeds in common")


def test_the_smallest_visible_difference_is_found_four_times_out_of_five() -> None:
    own = Estimate(0.0, 0.01, 8.0)
    reach = own.smallest(0.05)
    found = stats.nct.sf(stats.t.ppf(0.975, 8), 8, reach / 0.01)  # the power of a t test, exactly
    assert found == pytest.approx(0.8, abs=0.02)


def test_holm_by_hand() -> None:
    assert holm([0.01, 0.04, 0.03]) == pytest.approx([0.03, 0.06, 0.06])
    assert holm([0.5, 0.9]) == [1.0, 1.0]


def outcomes(**arms: tuple[float, float]) -> Outcomes:
    """Arms of three seeds with an accuracy on 400 rows, and a cost of each run."""
    draw = np.random.default_rng(5)
    targets = draw.integers(0, 2, 400)
    runs = {}
    for arm, (accuracy, seconds) in arms.items():
        for seed in range(3):
            right = np.arange(400) < 400 * (accuracy + 0.002 * seed)
            answers = np.where(right, targets, 1 - targets)
            task = TaskOutcome(Truth(KINDS["classification"], targets, 2), np.eye(2)[answers], ("accuracy",))
            cost = {"seconds": seconds, "tokens": 1.0, "peak_memory": 1.0}
            runs[arm, seed] = RunOutcome({"t": task}, {"t": {"accuracy": 0.9}}, cost, {})
    return Outcomes(runs)


def claim(**changes: object) -> Claim:
    return Claim.model_validate({"text": "", "better": "b", "worse": "a", "metric": "t.accuracy", **changes})


@pytest.mark.parametrize(
    ("b", "changes", "word"),
    [
        (0.9, {}, "supported"),
        (0.7, {}, "refuted"),
        (0.803, {}, "undecided"),
        (0.795, {"margin": 0.05}, "supported"),  # not clearly better, but clearly not worse by five points
        (0.7, {"margin": 0.05}, "refuted"),
        (0.9, {"on": "gap"}, "supported"),  # the same score on train rows, and a better one on dev: a smaller gap
    ],
)
def test_words(b: float, changes: dict[str, object], word: str) -> None:
    (verdict,) = judge([claim(**changes)], outcomes(a=(0.8, 1.0), b=(b, 1.0)))
    assert verdict.word == word


@pytest.mark.parametrize(("seconds", "word"), [(0.3, "supported"), (0.5, "refuted")])
def test_a_claim_about_cost(seconds: float, word: str) -> None:
    (verdict,) = judge([claim(margin=0.05, at_most_cost=0.4)], outcomes(a=(0.8, 1.0), b=(0.8, seconds)))
    assert verdict.word == word
    assert verdict.cost_ratios == pytest.approx((seconds,) * 3)


def test_one_seed_decides_nothing() -> None:
    found = outcomes(a=(0.5, 1.0), b=(0.9, 1.0))
    one = Outcomes({key: run for key, run in found.runs.items() if key[1] == 0})
    (verdict,) = judge([CLAIM], one)
    assert (verdict.word, verdict.why) == (
        "undecided",
        "b has one seed, so the variance between seeds is unknown",
    )


def test_more_claims_ask_for_more() -> None:
    found = outcomes(a=(0.8, 1.0), b=(0.82, 1.0))
    assert judge([claim()], found)[0].word == "supported"
    many = judge([claim()] * 3 + [claim(better="a", worse="b", margin=0.02)] * 40, found)
    assert (many[0].word, many[0].why) == (
        "undecided",
        "significantly above 0 on its own, but not after correction for several claims",
    )
    assert (many[0].smallest or 0) > (judge([claim()], found)[0].smallest or 0)

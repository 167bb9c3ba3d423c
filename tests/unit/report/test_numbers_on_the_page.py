"""Every number that a page shows, computed again from the predictions with scikit-learn and scipy."""

import re
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest
from scipy import stats
from scipy.optimize import brentq
from sklearn import config_context
from sklearn import metrics as sk

from tests.runs import TASKS, write_run
from weft.evaluation.bootstrap import draws
from weft.report.page import page
from weft.runs.reader import read_run, read_runs


class Numbers(HTMLParser):
    """key -> text of every element with a data-key."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.found: dict[str, str] = {}
        self.key: str | None = None
        self.feed(text)

    def handle_starttag(self, _: str, attrs: list[tuple[str, str | None]]) -> None:
        self.key = dict(attrs).get("data-key") or self.key

    def handle_data(self, data: str) -> None:
        if self.key is not None:
            assert self.key not in self.found, f"{self.key} is on the page twice"
            self.found[self.key] = data
            self.key = None


def is_shown_as(text: str, value: float) -> bool:
    """Whether a text is a value, rounded to its own digits."""
    digits = len(text.partition(".")[2].rstrip(" %"))
    shown = float(text.replace("−", "-").replace(",", "").rstrip(" %"))
    return abs(shown - value) <= 0.5 * 10**-digits + 1e-6


class Task:
    """A task's predictions, read without weft."""

    def __init__(self, folder: Path, name: str) -> None:
        columns = pq.read_table(folder / "predictions" / f"{name}.parquet").to_pydict()
        self.kind = TASKS[name]["kind"]
        self.names = list(TASKS[name].get("labels", ()))
        self.bounds = TASKS[name].get("range")
        label = columns["label"]
        if self.kind == "regression":
            self.y, self.p = np.array(label), np.array(columns["prediction"])
            return
        self.p = np.stack([columns[f"p_{n}"] for n in self.names], axis=1)
        if self.kind == "multilabel":
            self.y = np.array([[n in own for n in self.names] for own in label], dtype=float)
            self.chosen = (self.p > 0.5).astype(int)
        else:
            self.y = np.array([self.names.index(n) for n in label])
            self.chosen = self.p.argmax(axis=1)

    def metric(self, name: str, rows: Any = slice(None)) -> float:
        y, p = self.y[rows], self.p[rows]
        if name in ("pearson", "spearman"):
            return float((stats.pearsonr if name == "pearson" else stats.spearmanr)(y, p)[0])
        if name == "mse":
            return float(sk.mean_squared_error(y, p))
        chosen = self.chosen[rows]
        if name == "accuracy":
            return float(sk.accuracy_score(y, chosen))
        if name == "class-distance":
            return float(sk.mean_absolute_error(y, chosen))
        average = "micro" if name == "f1-micro" else "macro"
        return float(sk.f1_score(y, chosen, average=average, zero_division=0))

    def guess(self, name: str) -> float:
        """By hand: what uniform answers are expected to score."""
        if name in ("pearson", "spearman"):
            return 0.0
        if name == "mse":
            grid = np.linspace(*self.bounds, 100_001)
            return float(np.mean([((grid - y) ** 2).mean() for y in self.y]))
        if self.kind == "multilabel":
            share = self.y.mean(axis=0)
            if name == "accuracy":
                return 0.5 ** len(self.names)
            share = np.array([share.mean()]) if name == "f1-micro" else share
            return float(np.mean(share / (share + 0.5)))
        k = len(self.names)
        if name == "accuracy":
            return 1 / k
        if name == "class-distance":
            return float(np.mean([np.abs(np.arange(k) - y).mean() for y in self.y]))
        share = np.bincount(self.y, minlength=k) / len(self.y)
        return float(np.mean(2 * (share / k) / (share + 1 / k)))

    def constant(self, name: str) -> float:
        if name == "mse":
            return float(np.var(self.y))
        if self.kind == "multilabel":
            always = Task.__new__(Task)
            always.kind, always.y, always.p = self.kind, self.y, np.tile(self.y.mean(axis=0), (len(self.y), 1))
            always.chosen = (always.p > 0.5).astype(int)
            return always.metric(name)
        common = Task.__new__(Task)
        common.kind, common.y, common.p = self.kind, self.y, self.p
        common.chosen = np.full(len(self.y), stats.mode(self.y).mode)
        return common.metric(name)


def interval(values: list[float]) -> tuple[float, float]:
    low, high = np.percentile(values, [2.5, 97.5])
    return float(low), float(high)


@pytest.fixture(autouse=True, scope="module")
def _quick() -> Iterator[None]:
    """Thousands of scores: scikit-learn's checks of its arguments would take most of the time."""
    with config_context(assume_finite=True, skip_parameter_validation=True):
        yield


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_run(tmp_path_factory.mktemp("runs") / "numbers")


@pytest.fixture(scope="module")
def shown(run: Path) -> dict[str, str]:
    return Numbers(page([read_run(run)])).found


@pytest.fixture(scope="module")
def expected(run: Path, shown: dict[str, str]) -> dict[str, float]:
    """Every key of the page that follows from the predictions."""
    tasks = {name: Task(run, name) for name in TASKS}
    found: dict[str, float] = {}
    primary: dict[str, list[float]] = {}
    for name, task in tasks.items():
        used = dict.fromkeys(
            key.split("/")[1] for key in shown if key.endswith("/value") and key.startswith(f"{name}/")
        )
        resamples = [np.repeat(np.arange(len(task.y)), c.astype(int)) for c in draws(len(task.y), name)]
        for i, metric in enumerate(used):
            key = f"{name}/{metric}"
            values = [task.metric(metric, rows) for rows in resamples]
            found[f"{key}/value"], found[f"{key}/rows"] = task.metric(metric), len(task.y)
            found[f"{key}/low"], found[f"{key}/high"] = interval(values)
            found[f"{key}/guess"], found[f"{key}/constant"] = task.guess(metric), float("nan")
            if metric not in ("pearson", "spearman"):
                found[f"{key}/constant"] = task.constant(metric)
            if i == 0:
                half = metric == "pearson"
                primary[name] = [(1 + v) / 2 if half else v for v in [found[f"{key}/value"], *values]]
        found |= {f"{name}/{key}": value for key, value in details(task).items()}
    whole = np.mean(list(primary.values()), axis=0)
    found["overall/value"] = float(whole[0])
    found["overall/low"], found["overall/high"] = interval(list(whole[1:]))
    firsts = {"mood": "accuracy", "same": "accuracy", "near": "pearson", "topics": "f1-micro", "intent": "accuracy"}
    guesses = [tasks[n].guess(m) if m != "pearson" else 0.5 for n, m in firsts.items()]
    found["overall/guess"] = float(np.mean(guesses))
    return found


def details(task: Task) -> dict[str, float]:
    if task.kind == "regression":
        gaps = task.p - task.y
        return {
            "numbers/near": 100 * float((np.abs(gaps) <= 1).mean()),
            "numbers/absolute": float(sk.mean_absolute_error(task.y, task.p)),
            "numbers/mean": float(gaps.mean()),
        }
    found: dict[str, float] = {}
    report = sk.classification_report(task.y, task.chosen, output_dict=True, zero_division=0, target_names=task.names)
    for i, name in enumerate(task.names):
        for key, theirs in (("precision",) * 2, ("recall",) * 2, ("f1", "f1-score"), ("rows", "support")):
            found[f"class/{i}/{key}"] = report[name][theirs]
    cases = {
        "multilabel": lambda: [(task.y[:, i], task.p[:, i]) for i in range(len(task.names))],
        "ordinal": lambda: [(task.y >= i, task.p[:, i:].sum(axis=1)) for i in range(1, len(task.names))],
        "classification": lambda: [(task.y == i, task.p[:, i]) for i in range(len(task.names))],
    }[task.kind]()
    cases = cases[1:] if len(task.names) == 2 else cases
    found |= {f"auc/{i}": float(sk.roc_auc_score(y, p)) for i, (y, p) in enumerate(cases)}
    if task.kind == "ordinal":
        found["ordered/mse"] = float(sk.mean_squared_error(task.y, task.chosen))
        found["ordered/correlation"] = float(stats.pearsonr(task.y, task.chosen)[0])
        found["ordered/off_by_two"] = 100 * float((np.abs(task.y - task.chosen) >= 2).mean())
    found |= {f"calibration/{key}": value for key, value in calibration(task).items()}
    if task.kind != "multilabel":
        counts = sk.confusion_matrix(task.y, task.chosen)
        shares = sk.confusion_matrix(task.y, task.chosen, normalize="true")
        for i in range(len(task.names)):
            for j in range(len(task.names)):
                found[f"-confusion/{i}/{j}"] = counts[i, j]
                found[f"-confusion-shares/{i}/{j}"] = 100 * shares[i, j]
    if len(task.names) == 2:
        found |= {f"threshold/{key}": value for key, value in thresholds(task).items()}
    return found


def calibration(task: Task) -> dict[str, float]:
    if task.kind == "multilabel":
        sure, right = np.maximum(task.p, 1 - task.p).ravel(), (task.chosen == task.y).ravel()
    else:
        sure, right = task.p.max(axis=1), task.chosen == task.y
    gaps = stats.binned_statistic(sure, right - sure, "sum", bins=10, range=(0, 1)).statistic
    logits = np.log(task.p) if task.kind != "multilabel" else np.log(task.p / (1 - task.p))

    def slope(inverse: float) -> float:
        """of the log-loss along 1 / T, which vanishes at the best temperature"""
        if task.kind == "multilabel":
            return float(((1 / (1 + np.exp(-inverse * logits)) - task.y) * logits).sum())
        p = np.exp(inverse * logits)
        p /= p.sum(axis=1, keepdims=True)
        return float(((p - np.eye(len(task.names))[task.y]) * logits).sum())

    return {"error": float(np.abs(gaps).sum() / len(sure)), "temperature": float(1 / brentq(slope, 0.05, 20))}


def thresholds(task: Task) -> dict[str, float]:
    cuts = np.append(np.unique(task.p[:, 1]), 1.1)
    accuracy = max(sk.accuracy_score(task.y, task.p[:, 1] >= cut) for cut in cuts)
    f1 = max(sk.f1_score(task.y, task.p[:, 1] >= cut, zero_division=0) for cut in cuts)
    return {"accuracy/score": accuracy, "f1/score": f1, "f1/half": float(sk.f1_score(task.y, task.chosen))}


def test_every_number_of_the_page_is_right(shown: dict[str, str], expected: dict[str, float]) -> None:
    keys = {re.sub(r"^(\w+)-confusion", r"\1/-confusion", key): text for key, text in shown.items()}
    # what the log says rather than the predictions, what another test covers, and a threshold, which is not unique
    other = re.compile(r".*/(before|train)$|conflicts?[/-].*|.*/tempered$|.*/threshold/(accuracy|f1)$")
    left = {key for key in keys if not other.match(key)}
    assert left == {key for key, value in expected.items() if value == value}
    wrong = {key: (keys[key], expected[key]) for key in left if not is_shown_as(keys[key], expected[key])}
    assert wrong == {}
    assert len(left) > 200


def test_thresholds_reach_what_the_page_says(run: Path, shown: dict[str, str]) -> None:
    task = Task(run, "same")
    for by, measure in (("accuracy", sk.accuracy_score), ("f1", sk.f1_score)):
        at = float(shown[f"same/threshold/{by}"])
        assert is_shown_as(shown[f"same/threshold/{by}/score"], measure(task.y, task.p[:, 1] >= at))


def test_the_log_is_shown_as_it_is(run: Path, shown: dict[str, str]) -> None:
    known = read_run(run)
    assert known.before is not None
    assert known.best is not None
    for task in TASKS:
        for metric in known.metrics(task):
            assert is_shown_as(shown[f"{task}/{metric}/before"], known.before.dev_score(task, metric))
            assert is_shown_as(shown[f"{task}/{metric}/train"], known.best.train_score(task, metric))
    cosines = [record.cosines["mood|near"] for record in known.conflicts]
    assert is_shown_as(shown["conflict/mood/near/mean"], np.mean(cosines))
    assert is_shown_as(shown["conflict/mood/near/share"], 100 * np.mean(np.array(cosines) < 0))
    assert is_shown_as(shown["conflicts/0/2"], np.mean(cosines))


def test_paired_differences_are_right(run: Path, tmp_path: Path) -> None:
    other = write_run(tmp_path / "other", seed=2)
    shown = Numbers(page(read_runs([run, other]))).found
    for name, metric in (("mood", "accuracy"), ("near", "pearson")):
        one, two = Task(run, name), Task(other, name)
        rows = [np.repeat(np.arange(len(one.y)), c.astype(int)) for c in draws(len(one.y), name)]
        gaps = [two.metric(metric, own) - one.metric(metric, own) for own in rows]
        key = f"gap/other/{name}"
        assert is_shown_as(shown[f"{key}/value"], two.metric(metric) - one.metric(metric))
        low, high = interval(gaps)
        assert is_shown_as(shown[f"{key}/low"], low)
        assert is_shown_as(shown[f"{key}/high"], high)
        assert is_shown_as(shown[f"{key}/ahead"], 100 * np.mean([(g > 0) + 0.5 * (g == 0) for g in gaps]))
        assert is_shown_as(shown[f"mean/{name}"], (one.metric(metric) + two.metric(metric)) / 2)

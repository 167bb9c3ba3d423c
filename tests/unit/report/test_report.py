"""What a report finds, says and refuses."""

import json
import shutil
from io import StringIO
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest
from rich.console import Console

from tests.runs import TASKS, write_run
from weft.foundation.errors import UserError
from weft.report import learning
from weft.report.chart import digits, shown, ticks
from weft.report.compare import Comparison
from weft.report.examples import examples
from weft.report.mistakes import groups
from weft.report.page import page
from weft.report.recipes import recipe_differences
from weft.report.scores import Scores
from weft.report.sections import section_of
from weft.report.text import print_report
from weft.report.words import duration, missing
from weft.runs.reader import read_run, read_runs


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_run(tmp_path_factory.mktemp("runs") / "first")


def text_of(folders: list[Path]) -> str:
    console = Console(width=110, file=(output := StringIO()))
    print_report(read_runs(folders), console)
    return output.getvalue()


def test_mistakes_are_of_the_kind_they_are_called(folder: Path) -> None:
    run = read_run(folder)
    mood, same, near = (run.tasks[name] for name in ("mood", "same", "near"))
    by_title = {group.title: group for task in (mood, same, near) for group in groups(task)}
    for title, gap in (("One class too high", 1), ("One class too low", -1)):
        rows = [mistake.row for mistake in by_title[title].worst]
        assert (mood.chosen[rows] - mood.targets[rows] == gap).all()
        assert by_title[title].rows == (mood.chosen - mood.targets == gap).sum()
    far = by_title["Off by two classes or more"]
    assert far.rows == (np.abs(mood.chosen - mood.targets) >= 2).sum()
    assert [m.error for m in far.worst] == sorted((m.error for m in far.worst), reverse=True)
    positives = by_title["False positives: “no” predicted as “yes”"]
    assert positives.rows == ((same.targets == 0) & (same.chosen == 1)).sum()
    assert all((m.true, m.answer) == ("no", "yes") for m in positives.worst)
    assert len(positives.worst[0].texts) == 2
    off = np.abs(near.predictions - near.targets)
    assert by_title["Off by 1 to 2"].rows == ((off > 1) & (off <= 2)).sum()
    assert by_title["Off by more than 2"].rows == (off > 2).sum()


def test_a_wrong_label_is_found(folder: Path, tmp_path: Path) -> None:
    """A row that the model is sure of, with its label turned around."""
    copied = shutil.copytree(folder, tmp_path / "run")
    path = copied / "predictions" / "same.parquet"
    table = pq.read_table(path)
    rows = table.to_pydict()
    surest = int(np.argmax([p if label == "yes" else 0 for p, label in zip(rows["p_yes"], rows["label"], strict=True)]))
    labels = rows["label"].copy()
    labels[surest] = "no"
    pq.write_table(table.set_column(table.column_names.index("label"), "label", [labels]), path)
    before, after = (read_run(where).tasks["same"] for where in (folder, copied))
    section = section_of(after.kind)
    assert not section.doubtful(before)[surest]
    assert section.doubtful(after)[surest]
    assert section.is_wrong(after)[surest]


def test_curves_are_the_log(folder: Path) -> None:
    run = read_run(folder)
    found = learning.curves(run, "mood", "accuracy")
    assert found.dev_score.steps.tolist() == [0, 10, 20, 30, 40]
    assert found.train_loss.values[0] == run.steps[0].losses["mood"]
    assert learning.strip(run).shape == (5, 40)
    assert (learning.strip(run) == 1).all()


def test_long_curves_are_thinned_to_means() -> None:
    steps = np.arange(10_000.0)
    thin = learning._thinned(learning.Curve(steps, steps, steps % 2))
    assert len(thin.steps) == learning.POINTS
    assert thin.values.mean() == pytest.approx(0.5, abs=0.01)


def test_an_interrupted_run_says_what_it_lacks(tmp_path: Path) -> None:
    folder = write_run(tmp_path / "cut", finished=False, predictions=False, conflicts=False)
    with (folder / "metrics.jsonl").open("a", encoding="utf-8") as log:
        log.write('{"event": "st')  # the process died in this very write
    run = read_run(folder)
    assert run.result is None
    assert "there are no predictions yet" in " ".join(missing(run))
    text = page([run])
    assert "is not finished" in text
    assert "Tasks per step" in text
    assert Scores(run).overall.interval is None


def test_an_old_run_says_what_it_lacks(tmp_path: Path) -> None:
    folder = write_run(tmp_path / "old")
    records = [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]
    records = [r for r in records if not (r["event"] == "evaluation" and r["step"] == 0)]
    for record in records:
        for key in ("train", "train_losses") + (("losses",) if record["event"] == "evaluation" else ()):
            record.pop(key, None)
    (folder / "metrics.jsonl").write_text("".join(json.dumps(r) + "\n" for r in records))
    path = folder / "predictions" / "mood.parquet"
    pq.write_table(pq.read_table(path).drop_columns(["pca_1", "pca_2"]), path)
    lines = " ".join(missing(read_run(folder)))
    for part in ("untrained heads", "Scores on train rows", "Dev losses", "Embeddings of mood"):
        assert part in lines
    assert "Embeddings by label" in page([read_run(folder)])  # the other tasks have theirs


@pytest.mark.parametrize("rows", [1, 2, 3])
def test_a_handful_of_rows_is_no_reason_to_fail(tmp_path: Path, rows: int) -> None:
    """One class alone, constant numbers, nothing to correlate: dashes, not errors."""
    folder = write_run(tmp_path / "few", {**TASKS, "near": {"kind": "regression", "range": (0.0, 5.0)}}, rows=rows)
    assert 'title="undefined"' in page([read_run(folder)]) or rows > 1
    assert "few" in text_of([folder])


def test_texts_and_names_of_users_are_escaped(tmp_path: Path) -> None:
    evil = "<b onclick='x()'>\"&</script>"
    tasks = {"mood": {"kind": "classification", "labels": (evil, "fine")}}
    run = read_run(write_run(tmp_path / "run", tasks, texts=dict.fromkeys(range(60), evil)))
    text = page([run])
    assert "<b onclick" not in text
    assert text.count("</script>") == 2  # the page's own


def test_runs_are_compared_on_the_rows_they_share(folder: Path, tmp_path: Path) -> None:
    second = write_run(tmp_path / "second", seed=2)
    other_rows = write_run(tmp_path / "third", rows=50)
    found = Comparison([Scores(run) for run in read_runs([folder, second])])
    assert found.uncomparable() == []
    assert {gap.task for gap in found.gaps()} == {*TASKS, "overall"}
    apart = Comparison([Scores(run) for run in read_runs([folder, other_rows])])
    assert apart.gaps() == []
    assert len(apart.uncomparable()) == len(TASKS)
    assert examples(read_runs([folder, other_rows])) == []
    few = write_run(tmp_path / "few", {"mood": TASKS["mood"]})
    partly = Comparison([Scores(run) for run in read_runs([folder, few])])
    assert not partly.whole
    assert [gap.task for gap in partly.gaps()] == ["mood"]
    assert "the runs' dev rows" not in " ".join(partly.uncomparable())


def test_examples_are_where_runs_disagree(folder: Path, tmp_path: Path) -> None:
    runs = read_runs([folder, write_run(tmp_path / "second", seed=2)])
    found = [example for example in examples(runs) if example["task"] == "mood"]
    tasks = [run.tasks["mood"] for run in runs]
    assert {example["row"] for example in found} == set(np.flatnonzero(tasks[0].chosen != tasks[1].chosen))


def test_the_text_has_the_scores_of_the_page(folder: Path, tmp_path: Path) -> None:
    text = text_of([folder])
    for score in Scores(read_run(folder)).table:
        assert f"{score.value:.3f}" in text
    both = text_of([folder, write_run(tmp_path / "second", seed=2)])
    assert "Compared with first, on the same rows" in both
    assert "mean" in both


def test_labels_tell_runs_apart(tmp_path: Path) -> None:
    one, two = (write_run(tmp_path / name / "run", {"mood": TASKS["mood"]}) for name in ("a", "b"))
    assert [run.label for run in read_runs([one, two])] == ["a/run", "b/run"]
    with pytest.raises(UserError, match="given twice"):
        read_runs([one, one])


def test_recipes_differ_where_they_differ() -> None:
    one, two = (
        {"name": "x", "optimizer": {"lr": 1, "eps": 2}},
        {"name": "y", "optimizer": {"lr": 3, "eps": 2}, "seed": 4},
    )
    assert recipe_differences([one, two]) == [("optimizer.lr", ["1", "3"]), ("seed", ["–", "4"])]


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda run: (run / "recipe.toml").unlink(), "is not a run folder"),
        (lambda run: (run / "recipe.toml").write_text("x = ["), "is not TOML"),
        (lambda run: (run / "metrics.jsonl").write_text("{}\n{broken\n"), "line 2: is damaged"),
        (lambda run: (run / "result.json").write_text("{"), "result.json: is not JSON"),
        (lambda run: (run / "predictions" / "mood.parquet").write_text("x"), "mood.parquet: is damaged"),
    ],
)
def test_damaged_folders_are_named(folder: Path, tmp_path: Path, damage: object, message: str) -> None:
    copied = shutil.copytree(folder, tmp_path / "run")
    damage(copied)  # type: ignore[operator]
    with pytest.raises(UserError, match=message):
        read_run(copied)


def test_ticks_are_round_and_inside() -> None:
    assert ticks(0, 1) == pytest.approx([0, 0.2, 0.4, 0.6, 0.8, 1])
    assert ticks(-1, 103) == [0, 25, 50, 75, 100]
    assert ticks(2, 2) == [2]
    assert [shown(v) for v in (0.25, 12_000, -3, 2e-5)] == ["0.25", "12k", "−3", "2e-5"]
    assert [digits(v, 2) for v in (-0.001, -0.5, 1)] == ["0.00", "−0.50", "1.00"]
    assert [duration(v) for v in (5, 65, 3665)] == ["0:05", "1:05", "1:01:05"]

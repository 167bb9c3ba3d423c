"""What `weft init` writes for files of many layouts."""

import tomllib
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.layouts import CASES, Case, rows
from weft.recipes.init.writer import propose
from weft.recipes.recipe import Recipe, parse_recipe


def as_proposed(question: str, proposed: str, possible: Sequence[str]) -> str:
    return proposed


def proposal(*files: Path) -> Recipe:
    text = propose(files, files[0].parent / "mine.toml", as_proposed)
    return parse_recipe(tomllib.loads(text), "mine.toml")


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.write.__name__)
def test_every_layout(tmp_path: Path, case: Case) -> None:
    case.write(tmp_path / case.file)
    tasks = proposal(tmp_path / case.file).tasks
    found = {
        name: (task.kind, [text for text in (task.data.text, task.data.text2) if text], task.data.label)
        for name, task in tasks.items()
    }
    assert found == case.tasks
    first = next(iter(tasks.values()))
    assert {key: getattr(first.data, key) for key in case.settings} == case.settings
    assert sum(len(task.data.doubts) for task in tasks.values()) == case.doubts
    assert {task.reading for task in tasks.values()} == {"cross" if first.data.text2 else "single"}


def write(path: Path, header: str, lines: list[str]) -> Path:
    path.write_text("\n".join([header, *lines]) + "\n", encoding="utf-8")
    return path


@pytest.mark.parametrize(
    ("one", "two"),
    [("#1 String", "#2 String"), ("sentence_A", "sentence_B"), ("questionOne1", "questionOne2"), ("text", "text2")],
)
def test_names_of_a_pair_leave_no_doubt(tmp_path: Path, one: str, two: str) -> None:
    lines = [f"{mood}\t{text}\tonce more {text}" for text, mood in rows(1)]
    (task,) = proposal(write(tmp_path / "a.tsv", f"Quality\t{one}\t{two}", lines)).tasks.values()
    assert (task.reading, task.data.text, task.data.text2, task.data.doubts) == ("cross", one, two, ())


def test_a_second_text_of_another_length_is_a_doubt(tmp_path: Path) -> None:
    lines = [f"{text}\tthe short {i}\t{mood}" for i, (text, mood) in enumerate(rows(1))]
    (task,) = proposal(write(tmp_path / "a.tsv", "body\tsummary\tlabel", lines)).tasks.values()
    assert (task.reading, task.data.text, task.data.text2) == ("single", "body", None)
    assert "'summary' also contains text and will not be read" in task.data.doubts[0]


def test_columns_of_0_and_1_beside_a_label(tmp_path: Path) -> None:
    lines = [f"{text}\t{mood}\t{i % 3 == 0}\t{i % 2 == 0}\t{i % 4}" for i, (text, mood) in enumerate(rows(1))]
    tasks = proposal(write(tmp_path / "a.tsv", "text\tlabel\thot\tnew\tlevel", lines)).tasks
    assert {name: (task.kind, task.data.label) for name, task in tasks.items()} == {
        "a-label": ("classification", "label"),
        "a-level": ("ordinal", "level"),
        "a-labels": ("multilabel", ("hot", "new")),
    }
    assert tasks["a-label"].data.doubts == ()
    assert "'hot', 'new' contain 0 and 1 and became one multilabel task" in tasks["a-labels"].data.doubts[0]


def test_rows_without_any_of_several_labels_are_kept(tmp_path: Path) -> None:
    lines = [f"{text}\t{['', 'sea', 'sea;food'][i % 3]}" for i, (text, _) in enumerate(rows(1))]
    path = write(tmp_path / "a.tsv", "text\ttopics", lines)
    (task,) = proposal(path).tasks.values()
    assert (task.kind, task.data.on_bad_rows) == ("multilabel", "stop")
    assert "# 20 of 60 rows have no label" in propose([path], tmp_path / "mine.toml", as_proposed)


def test_metadata_and_quantities_are_no_labels(tmp_path: Path) -> None:
    lines = [
        f"{text}\t{mood}\t{i * 37 % 90}\t{['mail', 'web'][i % 2]}\t12:{i % 60:02}"
        for i, (text, mood) in enumerate(rows(1))
    ]
    path = write(tmp_path / "a.tsv", "text\tlabel\thelpful\tsource\twhen", lines)
    (task,) = proposal(path).tasks.values()
    assert task.data.label == "label"
    assert "# not used: helpful, source, when" in propose([path], tmp_path / "mine.toml", as_proposed)


def test_a_header_of_sentences_is_a_header(tmp_path: Path) -> None:
    lines = [f"{text}\t{'good' if mood else 'bad'}" for text, mood in rows(1)]
    path = write(tmp_path / "a.tsv", "What did you like about your stay?\tWould you come again?", lines)
    (task,) = proposal(path).tasks.values()
    assert (task.data.header, task.data.label) == (True, "Would you come again?")


def test_a_column_called_like_one_of_its_values_is_a_header(tmp_path: Path) -> None:
    lines = [f"{text}\t{'spam' if mood else 'ham'}" for text, mood in rows(1)]
    (task,) = proposal(write(tmp_path / "a.tsv", "message\tspam", lines)).tasks.values()
    assert (task.data.header, task.data.text, task.data.label) == (True, "message", "spam")


def test_a_headerless_file_of_pairs_and_numbers(tmp_path: Path) -> None:
    lines = [f"{i}\t{text}\t{i % 50 / 10}\tonce more {text}" for i, (text, _) in enumerate(rows(1))]
    path = tmp_path / "a.tsv"
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    (task,) = proposal(path).tasks.values()
    assert task.data.columns == ("column1", "text", "label", "text2")
    assert (task.kind, task.reading, task.data.header) == ("regression", "cross", False)


def test_values_of_a_file_stay_inside_comments(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    labels = ['"x\nepochs = 99"', "plain\x0b"]
    path.write_text("text,label\n" + "".join(f"{text},{labels[mood]}\n" for text, mood in rows(1)), encoding="utf-8")
    recipe = proposal(path)
    assert recipe.epochs == 8
    assert recipe.tasks["a"].kind == "classification"


def test_names_of_tasks_are_each_given_once(tmp_path: Path) -> None:
    lines = [f"{text}\t{['a', 'b', 'c'][i % 3]}\t{['d', 'e'][i % 2]}" for i, (text, _) in enumerate(rows(1))]
    path = write(tmp_path / "a.tsv", "text\tlabel é\tlabel ü", lines)
    assert list(proposal(path).tasks) == ["a-label", "a-label-2"]


def test_two_texts_without_a_label_are_matches(tmp_path: Path) -> None:
    lines = [f"{text}\tonce more {text}" for text, _ in rows(1)]
    (task,) = proposal(write(tmp_path / "a.tsv", "question\tquestion2", lines)).tasks.values()
    assert (task.kind, task.reading, task.data.text, task.data.text2) == ("matches", "bi", "question", "question2")
    assert task.data.label == ()
    assert "every row is taken for a match" in task.data.doubts[0]


def test_several_files_take_turns(tmp_path: Path) -> None:
    """Tasks of different files have steps of their own; those of one file share rows and steps."""
    one, two = (
        write(tmp_path / f"{name}.tsv", "text\tlabel", [f"{text}\t{mood}" for text, mood in rows(1)]) for name in "ab"
    )
    assert proposal(one, two).schedule.name == "alternating"
    assert proposal(one).schedule.name == "batch-round-robin"
    assert proposal(one).optimizer.head_lr == 1e-3


def test_several_labels_with_blanks_are_one_source(tmp_path: Path) -> None:
    """Blank labels are not asked; they are no bad rows, which all tasks of a file skip alike."""
    lines = [
        f"{text}\t{['', 'low', 'high'][i % 3]}\t{i % 5 or ''}\t{['', '[]', 'sea;food'][i % 3]}"
        for i, (text, _) in enumerate(rows(1))
    ]
    path = write(tmp_path / "a.tsv", "text\tlabel\tstars\ttags", lines)
    written = propose([path], tmp_path / "mine.toml", as_proposed)
    tasks = parse_recipe(tomllib.loads(written), "mine.toml").tasks
    assert {name: (task.kind, task.data.on_blank, task.data.on_bad_rows) for name, task in tasks.items()} == {
        "a-label": ("classification", "skip", "stop"),
        "a-stars": ("ordinal", "skip", "stop"),
        "a-tags": (
            "multilabel",
            "skip",
            "stop",
        ),  # where no label applies, the column has []
    }
    assert "20 of 60 rows have no label: this task does not ask about them" in written
    assert "read the same texts and are one source" in written
    assert len({task.batch_size for task in tasks.values()}) == 1


def test_unreadable_rows_are_skipped_by_all_tasks_of_a_file(tmp_path: Path) -> None:
    lines = [f"{text if i else ''}\t{['low', 'high'][i % 2]}\t{i % 5}" for i, (text, _) in enumerate(rows(1))]
    tasks = proposal(write(tmp_path / "a.tsv", "text\tlabel\tstars", lines)).tasks
    assert [task.data.on_bad_rows for task in tasks.values()] == ["skip", "skip"]

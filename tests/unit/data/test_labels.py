from pathlib import Path

import numpy as np
import pytest

from tests.tiny import write_rows
from weft.data.labels import FlagColumns, LabelColumn, OnBlank, find_labels
from weft.data.tokenizer import Tokenizer
from weft.data.tokens import tokenize_file
from weft.foundation.errors import UserError
from weft.kinds.labels import Labels


def labelled(
    tiny: Path, folder: Path, labels: list[object], label_map: dict[str, str] | None = None, on_blank: OnBlank = None
) -> LabelColumn:
    path = write_rows(folder / "rows.tsv", [{"text": f"a {i}", "label": label} for i, label in enumerate(labels)])
    return LabelColumn(tokenize_file(path, ["text"], Tokenizer.load(tiny / "body")), "label", label_map, on_blank)


def targets(column: LabelColumn, labels: Labels, skip: bool = False) -> list[object]:
    return column.targets(labels, skip_bad_rows=skip)[0].tolist()


def test_classes_seen_are_in_order_of_number_then_name(tiny: Path, tmp_path: Path) -> None:
    column = labelled(tiny, tmp_path, ["10", "9.0", "2", "2.0"])
    assert find_labels("classification", column, None, None, True).names == ("2", "9", "10")
    column = labelled(tiny, tmp_path / "b", ["yes", "no"])
    assert find_labels("classification", column, None, None, True).names == ("no", "yes")


def test_labels_by_name_or_number(tiny: Path, tmp_path: Path) -> None:
    column = labelled(tiny, tmp_path, ["bad", "1", "good", "0.0"])
    labels = find_labels("classification", column, ["bad", "good"], None, True)
    assert targets(column, labels) == [0, 1, 1, 0]


def test_a_label_map_merges_and_renames(tiny: Path, tmp_path: Path) -> None:
    column = labelled(tiny, tmp_path, [1, 2, "3.0", 5], {"1": "bad", "2": "bad", "3": "fine", "5": "good"})
    labels = find_labels("classification", column, None, None, True)
    assert labels.names == ("bad", "fine", "good")
    assert targets(column, labels) == [0, 0, 1, 2]


def test_numbers_stand_for_names_only_where_names_were_declared(tiny: Path, tmp_path: Path) -> None:
    stars = find_labels("ordinal", labelled(tiny, tmp_path / "a", [1, 2, 5]), None, None, True)
    seen = find_labels("classification", labelled(tiny, tmp_path / "b", ["no", "yes"]), None, None, True)
    for labels in (stars, seen):
        with pytest.raises(UserError, match="has the label '0'"):
            targets(labelled(tiny, tmp_path / f"c{len(labels.names)}", ["0"]), labels)
    declared = find_labels("classification", labelled(tiny, tmp_path / "d", ["no"]), ["no", "yes"], None, True)
    with pytest.raises(UserError, match="has the label '²'"):
        targets(labelled(tiny, tmp_path / "e", ["²"]), declared)


def test_a_label_map_reaches_each_label_of_a_multilabel_cell(tiny: Path, tmp_path: Path) -> None:
    column = labelled(tiny, tmp_path, ["a;b", "a", "b"], {"a": "x"})
    labels = find_labels("multilabel", column, None, None, True)
    assert labels.names == ("b", "x")
    assert targets(column, labels) == [[1, 1], [0, 1], [1, 0]]


def flagged(tiny: Path, folder: Path, cells: list[tuple[object, object]], **label_map: str) -> FlagColumns:
    rows = [{"text": f"a {i}", "toxic": toxic, "spam": spam} for i, (toxic, spam) in enumerate(cells)]
    path = write_rows(folder / "rows.tsv", rows)
    return FlagColumns(tokenize_file(path, ["text"], Tokenizer.load(tiny / "body")), ("toxic", "spam"), label_map)


def test_columns_of_0_and_1(tiny: Path, tmp_path: Path) -> None:
    column = flagged(tiny, tmp_path, [(1, 0), ("0.0", "true"), ("No", "YES"), (0, 0)])
    labels = find_labels("multilabel", column, None, None, True)
    assert labels.names == ("toxic", "spam")  # in the order of the columns, not of the alphabet
    assert targets(column, labels) == [[1, 0], [0, 1], [0, 1], [0, 0]]
    turned = find_labels("multilabel", column, ["spam", "toxic"], None, True)
    assert targets(column, turned) == [[0, 1], [1, 0], [1, 0], [0, 0]]


def test_bad_cells_of_columns_of_0_and_1(tiny: Path, tmp_path: Path) -> None:
    column = flagged(tiny, tmp_path, [(1, 0), (2, 1), (0, ""), (0, 1)])
    labels = find_labels("multilabel", column, None, None, True)
    with pytest.raises(UserError) as error:
        targets(column, labels)
    assert "rows.tsv:3: column 'toxic' has the label '2', expected 0 or 1" in str(error.value)
    assert "rows.tsv:4: column 'spam' has no label, expected 0 or 1" in str(error.value)
    found, rows, blank = column.targets(labels, skip_bad_rows=True)
    assert (found.tolist(), rows.tolist(), blank) == ([[1, 0], [0, 1]], [0, 3], 0)


def test_a_label_map_renames_columns_of_0_and_1(tiny: Path, tmp_path: Path) -> None:
    column = flagged(tiny, tmp_path, [(1, 0), (0, 0)], toxic="rude")
    labels = find_labels("multilabel", column, None, None, True)
    assert (labels.names, targets(column, labels)) == (("rude", "spam"), [[1, 0], [0, 0]])


def test_multilabel_targets(tiny: Path, tmp_path: Path) -> None:
    column = labelled(tiny, tmp_path, ["plot; acting", "", '["sound"]'])
    labels = find_labels("multilabel", column, None, None, True)
    assert labels.names == ("acting", "plot", "sound")
    assert targets(column, labels) == [[1, 1, 0], [0, 0, 0], [0, 0, 1]]
    with pytest.raises(UserError, match="expected any of plot, sound"):
        targets(column, Labels("multilabel", ("plot", "sound")))


def test_a_regression_is_scaled_and_back(tiny: Path, tmp_path: Path) -> None:
    column = labelled(tiny, tmp_path, [1, 3, 5])
    labels = find_labels("regression", column, None, None, True)
    assert (labels.low, labels.high) == (1.0, 5.0)
    assert targets(column, labels) == [0.0, 0.5, 1.0]
    assert labels.in_units(np.array([0.0, 0.5, 1.0])).tolist() == [1, 3, 5]
    assert targets(column, find_labels("regression", column, None, (0, 5), False)) == [1, 3, 5]


def test_a_seen_range_does_not_bind_other_files(tiny: Path, tmp_path: Path) -> None:
    labels = find_labels("regression", labelled(tiny, tmp_path / "train", [1, 5]), None, None, True)
    assert targets(labelled(tiny, tmp_path / "dev", [0, 9]), labels) == [-0.25, 2.0]
    with pytest.raises(UserError, match="has the label 'x', expected a number$"):
        targets(labelled(tiny, tmp_path / "bad", ["x"]), labels)


def test_bad_labels_are_named_by_line(tiny: Path, tmp_path: Path) -> None:
    column = labelled(tiny, tmp_path, ["good", "goof", "bad", ""], on_blank="error")
    with pytest.raises(UserError) as error:
        targets(column, Labels("classification", ("bad", "good")))
    place = column.file.source
    assert f"{place}:3: column 'label' has the label 'goof', expected one of bad, good" in str(error.value)
    assert f"{place}:5: column 'label' has no label" in str(error.value)


def test_bad_labels_can_be_skipped(tiny: Path, tmp_path: Path) -> None:
    column = labelled(tiny, tmp_path, ["good", "goof", "bad", ""])
    found, rows, blank = column.targets(Labels("classification", ("bad", "good")), skip_bad_rows=True)
    assert (found.tolist(), rows.tolist(), blank) == ([1, 0], [0, 2], 1)
    with pytest.raises(UserError, match="no row has a usable label"):
        column.targets(Labels("classification", ("x", "y")), skip_bad_rows=True)


@pytest.mark.parametrize("bad", ["7", "nan", "inf", "three"])
def test_a_number_out_of_range(tiny: Path, tmp_path: Path, bad: str) -> None:
    column = labelled(tiny, tmp_path, ["1", bad])
    with pytest.raises(UserError, match="a number from 0 to 5"):
        targets(column, Labels("regression", low=0, high=5))


@pytest.mark.parametrize("kind", ["classification", "ordinal", "multilabel"])
def test_one_class_is_not_enough(tiny: Path, tmp_path: Path, kind: str) -> None:
    with pytest.raises(UserError, match="at least two"):
        find_labels(kind, labelled(tiny, tmp_path, ["1", "1.0"]), None, None, True)  # type: ignore[arg-type]


def test_a_blank_label_is_not_asked(tiny: Path, tmp_path: Path) -> None:
    labels = Labels("classification", ("bad", "good"))
    column = labelled(tiny, tmp_path, ["good", "", "  ", "bad", "n/a"], {"n/a": ""})
    found, rows, blank = column.targets(labels, skip_bad_rows=False)
    assert (found.tolist(), rows.tolist(), blank) == ([1, 0], [0, 3], 3)
    assert find_labels("classification", column, None, None, True).names == ("bad", "good")
    for skip in (False, True):  # `on_bad_rows` does not overrule it
        with pytest.raises(UserError, match=r":3: column 'label' has no label, expected one of bad, good"):
            labelled(tiny, tmp_path, ["good", "", "bad"], on_blank="error").targets(labels, skip_bad_rows=skip)
    numbers = labelled(tiny, tmp_path / "numbers", ["1", "", "3"])
    assert targets(numbers, find_labels("regression", numbers, None, None, True)) == [0, 1]


@pytest.mark.parametrize("kind", ["classification", "ordinal", "multilabel", "regression"])
def test_a_column_without_any_label_is_an_error(tiny: Path, tmp_path: Path, kind: str) -> None:
    column = labelled(tiny, tmp_path, ["", " "], on_blank="skip")
    with pytest.raises(UserError, match="rows.tsv: column 'label' has 0 distinct"):
        find_labels(kind, column, None, None, True)
    declared = Labels(kind, () if kind == "regression" else ("a", "b"))
    with pytest.raises(UserError, match="no row has a usable label in column 'label'"):
        column.targets(declared, skip_bad_rows=False)


def test_no_label_applies_or_nobody_asked(tiny: Path, tmp_path: Path) -> None:
    """A blank multilabel cell is a label, unless the recipe has a rule for blank cells; `[]` always is one."""
    labels = Labels("multilabel", ("plot", "sound"))
    cells: list[object] = ["plot", "", "[]"]
    plain = labelled(tiny, tmp_path, cells).targets(labels, skip_bad_rows=False)
    assert (plain[0].tolist(), plain[1].tolist(), plain[2]) == ([[1, 0], [0, 0], [0, 0]], [0, 1, 2], 0)
    asked = labelled(tiny, tmp_path, cells, on_blank="skip").targets(labels, skip_bad_rows=False)
    assert (asked[0].tolist(), asked[1].tolist(), asked[2]) == ([[1, 0], [0, 0]], [0, 2], 1)
    with pytest.raises(UserError, match=r":3: column 'label' has no label, expected any of plot, sound"):
        targets(labelled(tiny, tmp_path, cells, on_blank="error"), labels)


def test_a_row_of_blank_flags_is_not_asked(tiny: Path, tmp_path: Path) -> None:
    column = flagged(tiny, tmp_path, [(1, 0), ("", ""), (0, 1)])
    labels = find_labels("multilabel", column, None, None, True)
    found, rows, blank = column.targets(labels, skip_bad_rows=False)
    assert (found.tolist(), rows.tolist(), blank) == ([[1, 0], [0, 1]], [0, 2], 1)
    with pytest.raises(UserError, match=r":3: column 'spam' has no label, expected 0 or 1"):
        targets(flagged(tiny, tmp_path, [(1, 0), (1, ""), (0, 1)]), labels)

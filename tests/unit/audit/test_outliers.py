import numpy as np
import pytest

from weft.audit.outliers import odd_lengths, other_scripts, script_of


@pytest.mark.parametrize(
    ("text", "script"),
    [
        ("the harbour", "Latin"),
        ("Übung am Kai", "Latin"),
        ("тихая гавань", "Cyrillic"),
        ("静かな港", "Han/Kana"),
        ("mostly Latin, one слово", "Latin"),
        ("12:30 - 14:00 !!!", "no letters"),
        ("", "no letters"),
    ],
)
def test_script(text: str, script: str) -> None:
    assert script_of(text) == script


def test_texts_in_other_scripts_are_found() -> None:
    assert other_scripts(["a lamp", "лампа", "a kettle", "42"]) == ("Latin", {1: "Cyrillic", 3: "no letters"})
    assert other_scripts(["лампа"], usual="Latin") == ("Latin", {0: "Cyrillic"})


def test_odd_lengths() -> None:
    lengths = np.array([10, 11, 12, 9, 10, 13, 300, 11, 1])
    assert odd_lengths(lengths).tolist() == [6, 8]
    assert odd_lengths(np.array([10] * 20 + [11, 12, 9])).tolist() == []  # a few tokens are no outlier

"""Tags: cells, targets and answers."""

import numpy as np
import pytest

from weft.foundation.errors import UserError
from weft.kinds import KINDS
from weft.kinds.base import Kind
from weft.kinds.labels import Labels
from weft.kinds.tags import Tags, objects
from weft.kinds.truth import Truth

TAGS = Tags()
LABELS = Labels("tags", ("O", "B-city", "I-city"))
WORDS = [(0, 2), (3, 6), (7, 11)]


class Found:
    """A label column with these cells."""

    where = "a.jsonl: column 'tags'"

    def __init__(self, *cells: str) -> None:
        self.cells = cells

    def names(self, kind: Kind) -> list[str]:
        return sorted({name for cell in self.cells for name in kind.parts(cell)})


def test_labels_are_found_in_tags_and_in_spans() -> None:
    spans = '[{"start": 0, "end": 2, "label": "city"}]'
    for cells in (['["B-city", "O"]', '["I-city"]'], [spans, "[]"]):
        found = TAGS.find_labels(Found(*cells), None, None, scaled=True)  # type: ignore[arg-type]
        assert found.names == LABELS.names
        assert found.fits("tags")
    with pytest.raises(UserError, match="has no tag but 'O'"):
        TAGS.find_labels(Found('["O"]'), None, None, scaled=True)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("cell", "tags"),
    [
        ('["O", "B-city", "I-city"]', [0, 1, 2]),
        ('[{"start": 3, "end": 11, "label": "city"}]', [0, 1, 2]),
        ('[{"start": 0, "end": 1, "label": "city", "more": 1}, {"start": 7, "end": 8, "label": "city"}]', [1, 0, 1]),
        ("[]", [0, 0, 0]),
    ],
)
def test_targets(cell: str, tags: list[int]) -> None:
    assert TAGS.word_target(cell, WORDS, LABELS).tolist() == tags


@pytest.mark.parametrize(
    ("cell", "problem"),
    [
        (" ", "has no tags"),
        ("B-city", "expected a list of tags"),
        ('["O", "O"]', "has 2 tags for 3 words"),
        ('["O", "O", "B-town"]', "has the tag 'B-town', expected one of O, B-city, I-city for each word"),
        ('[{"start": 6, "end": 7, "label": "city"}]', "contains no word"),
        ('[{"start": 9, "end": 7, "label": "city"}]', "expected whole numbers start < end"),
        ('[{"start": 0, "end": 7, "label": ""}]', "and a label"),
        ('[{"start": 0, "end": 2, "label": "town"}]', "has the tag 'B-town'"),
    ],
)
def test_bad_cells(cell: str, problem: str) -> None:
    with pytest.raises(ValueError, match=problem):
        TAGS.word_target(cell, WORDS, LABELS)


def test_labels_are_renamed() -> None:
    names = {"town": "city", "I-place": "I-city"}
    assert TAGS.mapped('["B-town", "I-place", "O"]', names) == '["B-city", "I-city", "O"]'
    assert TAGS.mapped('[{"start": 0, "end": 2, "label": "town"}]', names).endswith('"label": "city"}]')
    assert TAGS.mapped("odd", names) == "odd"


def test_the_majority_answer_and_a_constant_one() -> None:
    truth = Truth.of(LABELS, objects([np.array([0, 0, 1]), np.array([0])]))  # type: ignore[arg-type]
    answers = TAGS.majority(truth)
    assert [row[:, 2].tolist() for row in answers] == [[0, 0, 0], [0]]
    assert TAGS.constant_answer(LABELS, TAGS.decide(answers), truth.targets) == "O"


def test_recipes_that_make_no_sense() -> None:
    plain = {"reading": "single", "keeps_words": True, "masks": False, "words": None, "subwords": None}
    plain |= {"long_texts": "truncate"}
    for change, found in (
        ({"reading": "cross"}, "`reading` is 'cross'"),
        ({"keeps_words": False}, "`pooling` makes one vector"),
        ({"masks": True}, "`data.mask` changes the characters"),
        ({"long_texts": "windows"}, '`long_texts` is "windows"'),
    ):
        with pytest.raises(ValueError, match=found):
            TAGS.check_words(**plain | change)
    for change, found in (
        ({}, "`pooling` gives a vector for each word"),
        ({"keeps_words": False, "words": "whitespace"}, "`words` is for"),
    ):
        with pytest.raises(ValueError, match=found):
            KINDS["classification"].check_words(**plain | change)

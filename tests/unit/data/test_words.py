"""Words of texts and the tokens that stand for them."""

import pytest

from weft.data.words import align, plain_text, read_words


def test_a_list_of_words_is_joined_and_keeps_its_words() -> None:
    text, words = read_words('["New York", "is", "", "far"]', "punctuation")
    assert text == "New York is  far" == plain_text('["New York", "is", "", "far"]')
    assert [text[a:b] for a, b in words] == ["New York", "is", "", "far"]


@pytest.mark.parametrize("cell", ['["a", 1]', "[]", '["a"', "[1]", "[ "])
def test_other_cells_are_texts(cell: str) -> None:
    assert plain_text(cell) == cell


def test_raw_texts_are_split() -> None:
    text = "In Saint-Étienne, don't  stop: नमस्ते 3%"
    words = [text[a:b] for a, b in read_words(text, "punctuation").words]
    assert words == ["In", "Saint", "-", "Étienne", ",", "don", "'", "t", "stop", ":", "नमस्ते", "3", "%"]
    words = [text[a:b] for a, b in read_words(text, "whitespace").words]
    assert words == ["In", "Saint-Étienne,", "don't", "stop:", "नमस्ते", "3%"]


def test_tokens_of_words() -> None:
    # "ab cd e": tokens "a", "##b", " cd" with its space, and none for "e"
    table = align([(0, 2), (3, 5), (6, 7)], [(0, 1), (1, 2), (2, 5)])
    assert table.tolist() == [[0, 2, 0, 2], [3, 5, 2, 3], [6, 7, -1, -1]]
    # one token for two words
    assert align([(0, 1), (1, 2)], [(0, 2)])[:, 2:].tolist() == [[0, 1], [0, 1]]
    assert align([], [(0, 2)]).shape == (0, 4)

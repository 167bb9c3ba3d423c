"""Whole-word masking."""

from pathlib import Path

import numpy as np
import pytest

from tests.families import write_family
from tests.texts import MIXED_SENTENCES
from tests.tiny import write_tokenizer
from weft.data.tokenizer import Tokenizer
from weft.foundation.errors import UserError
from weft.foundation.randomness import generator
from weft.pretraining.masking import Masker


def packed(tokenizer: Tokenizer, texts: list[str]) -> np.ndarray:
    template = tokenizer.template
    return np.concatenate([[*template.before, *ids, *template.after] for ids in tokenizer.encode(texts)])


def words_of(tokenizer: Tokenizer, text: str) -> list[int]:
    """The word of each token, from the library's own bookkeeping."""
    return list(tokenizer.rust.encode(text, add_special_tokens=False).word_ids)


@pytest.mark.parametrize("model_type", ["bert", "roberta", "xlm-roberta", "albert"])
def test_whole_words_are_masked_together(tmp_path: Path, model_type: str) -> None:
    """Word boundaries are those that the tokenizer itself reports, for every kind of tokenizer."""
    write_family(tmp_path, model_type)
    tokenizer = Tokenizer.load(tmp_path)
    masker = Masker.of(tokenizer, 4000, 0.3)
    texts = [text for text in MIXED_SENTENCES if text.isascii() and text.replace(" ", "").isalnum()] or ["a cat sat"]
    texts += ["unbelievable zebras wandering", "the heron outran a beetle"]
    for number, text in enumerate(texts):
        ids = packed(tokenizer, [text])
        before = len(tokenizer.template.before)
        masked = masker(ids, generator(1, number))
        words = words_of(tokenizer, text)
        chosen = {int(position) - before for position in masked.positions}
        assert chosen <= set(range(len(words)))
        for word in set(words):
            own = {i for i, other in enumerate(words) if other == word}
            assert own <= chosen or not own & chosen, (text, word)
        assert np.array_equal(ids[masked.positions], masked.targets)


def test_shares_of_tokens(tmp_path: Path) -> None:
    write_tokenizer(tmp_path)
    tokenizer = Tokenizer.load(tmp_path)
    size = len(tokenizer.rust.get_vocab())
    masker = Masker.of(tokenizer, size, 0.15)
    ids = packed(tokenizer, [*MIXED_SENTENCES] * 60)
    masked = masker(ids, generator(5, "test"))
    special = masker.special[ids]
    assert len(masked.positions) == pytest.approx(0.15 * (~special).sum(), rel=0.01)
    assert not special[masked.positions].any()
    untouched = np.ones(len(ids), dtype=bool)
    untouched[masked.positions] = False
    assert np.array_equal(masked.ids[untouched], ids[untouched])
    seen = masked.ids[masked.positions]
    hidden, same = (seen == masker.mask).mean(), (seen == masked.targets).mean()
    assert hidden == pytest.approx(0.8, abs=0.03)
    assert same == pytest.approx(0.1, abs=0.03)
    assert not masker.special[seen[seen != masker.mask]].any()
    again = masker(ids, generator(5, "test"))
    assert np.array_equal(again.ids, masked.ids)
    assert not np.array_equal(masker(ids, generator(6, "test")).ids, masked.ids)


def test_a_short_text_has_one_word_to_predict(tmp_path: Path) -> None:
    write_tokenizer(tmp_path)
    tokenizer = Tokenizer.load(tmp_path)
    masker = Masker.of(tokenizer, 500, 0.15)
    masked = masker(packed(tokenizer, ["qqq"]), generator(1))
    assert masked.positions.tolist() == [1, 2, 3]


def test_a_tokenizer_without_a_mask_is_rejected(tmp_path: Path) -> None:
    from tokenizers.implementations.bert_wordpiece import BertWordPieceTokenizer

    BertWordPieceTokenizer({"[UNK]": 0, "[CLS]": 1, "[SEP]": 2, "a": 3}).save(str(tmp_path / "tokenizer.json"))
    with pytest.raises(UserError, match=r"has no mask token \(\[MASK\] or <mask>\)"):
        Masker.of(Tokenizer.load(tmp_path), 4, 0.15)

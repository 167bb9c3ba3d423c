"""Where a tokenizer comes from, and where it puts special tokens."""

from contextlib import nullcontext
from pathlib import Path

import pytest
from tokenizers import Tokenizer as RustTokenizer
from tokenizers import models, pre_tokenizers, processors

from tests.families import TOKENIZERS
from tests.tiny import write_tokenizer
from weft.data.template import Template, find_template
from weft.data.tokenizer import Tokenizer
from weft.foundation.errors import UserError

VOCABULARY = {"<s>": 0, "</s>": 1, "a": 2, "<x>": 3}


def made(processor: object = None, vocabulary: dict[str, int] = VOCABULARY) -> RustTokenizer:
    rust = RustTokenizer(models.WordLevel(vocabulary, unk_token="a"))
    rust.pre_tokenizer = pre_tokenizers.Whitespace()
    if processor is not None:
        rust.post_processor = processor
    return rust


def template(single: str, pair: str) -> processors.TemplateProcessing:
    return processors.TemplateProcessing(single=single, pair=pair, special_tokens=list(VOCABULARY.items()))


@pytest.mark.parametrize(
    ("processor", "expected"),
    [
        (template("<s> $A </s>", "<s> $A </s> $B:1 </s>:1"), Template((0,), (1,), (1,), typed=True)),
        (template("<s> $A </s>", "<s> $A </s> $B </s>"), Template((0,), (1,), (1,), typed=False)),
        (processors.RobertaProcessing(("</s>", 1), ("<s>", 0)), Template((0,), (1,), (1, 1), typed=False)),
        (processors.BertProcessing(("</s>", 1), ("<s>", 0)), Template((0,), (1,), (1,), typed=True)),
        (
            processors.Sequence([processors.ByteLevel(), template("<s> <x> $A </s>", "<s> <x> $A <x> $B </s>")]),
            Template((0, 3), (1,), (3,), typed=False),
        ),
        (None, Template((0,), (1,), (1, 1), typed=False)),
    ],
)
def test_special_tokens_of_any_post_processor(processor: object, expected: Template) -> None:
    assert find_template(made(processor), "here") == expected


def test_a_file_that_says_nothing_of_special_tokens_has_those_of_its_vocabulary() -> None:
    assert find_template(made(vocabulary={"[CLS]": 4, "[SEP]": 6, "a": 0}), "here") == Template.usual(4, 6)
    with pytest.raises(
        UserError, match="here: its post-processor adds no special tokens, and the vocabulary has neither"
    ):
        find_template(made(vocabulary={"a": 0}), "here")


@pytest.mark.parametrize(
    ("processor", "message"),
    [
        (template("<s> $A </s>", "<s> $A </s> <s> $B </s>:1"), "treats pairs in a way that is not supported"),
        (template("<s> $A </s>", "<x> $A </s> $B </s>"), "treats pairs in a way that is not supported"),
        (template("$A </s>", "$A </s> $B </s>"), "treats pairs in a way that is not supported"),
        (template("<s> $A </s>", "<s> $B </s> $A </s>"), "not supported|adds"),
        (template("<s> " * 9 + "$A </s>", "<s> $A </s> $B </s>"), "adds 10 tokens, expected 8 at most"),
    ],
)
def test_a_post_processor_that_is_not_supported(processor: object, message: str) -> None:
    with pytest.raises(UserError, match=message):
        find_template(made(processor), "here")


@pytest.mark.parametrize(
    ("last", "message"),
    [(3, None), (4, "here: a token of the post-processor has the id 4, but the body has 4 tokens")],
)
def test_the_special_tokens_fit_the_body_too(last: int, message: str | None) -> None:
    tokenizer = Tokenizer(made(processors.BertProcessing(("<x>", last), ("<s>", 0))), "here")
    with pytest.raises(UserError, match=message) if message else nullcontext():
        tokenizer.require_fits(4)


def test_word_pieces_from_vocab_txt(tmp_path: Path) -> None:
    write_tokenizer(tmp_path)
    expected = Tokenizer.load(tmp_path)
    words = sorted(expected.rust.get_vocab().items(), key=lambda entry: entry[1])
    (tmp_path / "vocab.txt").write_text("\n".join(word for word, _ in words) + "\n", encoding="utf-8")
    (tmp_path / "tokenizer.json").unlink()
    found = Tokenizer.load(tmp_path)
    texts = ["a lovely film", "the Captain refused"]
    assert found.template == expected.template
    assert found.encode(texts) == expected.encode(texts)
    (tmp_path / "vocab.txt").write_text("<s>\n<pad>\n</s>\na\n", encoding="utf-8")
    with pytest.raises(UserError, match=r"vocab.txt: has no \[CLS\].*make a tokenizer.json of vocab.txt: pip install"):
        Tokenizer.load(tmp_path)


def test_byte_pairs_from_vocab_json_and_merges_txt(tmp_path: Path) -> None:
    TOKENIZERS["roberta"](tmp_path)
    expected = Tokenizer.load(tmp_path)
    expected.rust.model.save(str(tmp_path))
    (tmp_path / "tokenizer.json").unlink()
    found = Tokenizer.load(tmp_path)
    texts = ["a lovely film", "the Captain refused, naïvely", " <mask> fog"]
    assert found.template == expected.template
    assert found.encode(texts) == expected.encode(texts)
    (tmp_path / "merges.txt").unlink()
    with pytest.raises(UserError, match="has vocab.json, but not the merges.txt that belongs to it"):
        Tokenizer.load(tmp_path)


@pytest.mark.parametrize("name", ["spm.model", "sentencepiece.bpe.model", "spiece.model"])
def test_a_sentencepiece_file_alone_is_rejected_with_what_to_do(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_bytes(b"\n\x0e")
    with pytest.raises(UserError) as error:
        Tokenizer.load(tmp_path)
    assert str(error.value).startswith(f"{tmp_path}: has neither tokenizer.json nor vocab.txt nor vocab.json")
    assert f"make a tokenizer.json of {name}: pip install transformers sentencepiece protobuf" in str(error.value)
    assert f"T.from_pretrained('{tmp_path}').save_pretrained('{tmp_path}')" in str(error.value)

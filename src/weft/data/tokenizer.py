"""Tokenizer of a body, without the truncation and padding that its file may set."""

import hashlib
import json
from collections.abc import Callable
from pathlib import Path

from tokenizers import Tokenizer as RustTokenizer
from tokenizers.implementations.bert_wordpiece import BertWordPieceTokenizer
from tokenizers.implementations.byte_level_bpe import ByteLevelBPETokenizer
from tokenizers.processors import RobertaProcessing

from weft.data.template import find_template
from weft.foundation.errors import UserError

LARGEST = 10_000_000
"""Upper bound of token ids. Vocabularies are far smaller, and ids are stored in 32 bits."""

LARGEST_FILE = 64_000_000
"""Maximum size of tokenizer.json in bytes. The library needs ten times that memory, and files are far smaller."""

SENTENCEPIECE = ("sentencepiece.model", "sentencepiece.bpe.model", "spiece.model", "spm.model")
"""Names of SentencePiece files, which the tokenizers library cannot read."""

NAMES = {
    "pad_token": ("[PAD]", "<pad>"),
    "unk_token": ("[UNK]", "<unk>"),
    "mask_token": ("[MASK]", "<mask>"),
}
"""Setting of `transformers` -> spellings of the token in the model families."""


class Tokenizer:
    """Tokenizer that returns ids without special tokens. The readings add those, from its `template`."""

    def __init__(self, rust: RustTokenizer, where: str) -> None:
        rust.no_truncation()  # the reading truncates: it knows both texts of a pair
        rust.no_padding()
        self.rust = rust
        self.where = where
        self.template = find_template(rust, where)
        self.require_fits(LARGEST)
        self.digest = hashlib.sha256(rust.to_str().encode()).hexdigest()

    @classmethod
    def load(cls, folder: Path) -> "Tokenizer":
        """Load a tokenizer from tokenizer.json, or from the vocabulary files of an old checkpoint."""
        try:
            for name, read in READERS.items():
                if (folder / name).exists():
                    return cls(read(folder / name), str(folder / name))
        except UserError:
            raise
        except BaseException as error:
            if not _is_librarys(error):
                raise
            raise UserError(f"{folder}: its tokenizer cannot be read ({error})") from None
        raise UserError(f"{folder}: has neither {' nor '.join(READERS)}{_advice(folder)}")

    def require_fits(self, vocabulary: int) -> None:
        """Raise if the tokenizer has an id outside the vocabulary size of the body."""
        token, number = max(self.rust.get_vocab().items(), key=lambda entry: entry[1])
        special = max(self.template.before + self.template.between + self.template.after)  # may be in no vocabulary
        if max(number, special) >= vocabulary:
            named = f"the token {token!r}" if number >= special else "a token of the post-processor"
            raise UserError(
                f"{self.where}: {named} has the id {max(number, special)}, but the body has {vocabulary} tokens; "
                "do the tokenizer and config.json belong together?"
            )

    def encode(self, texts: list[str]) -> list[list[int]]:
        """Return the ids of each text without truncation. The library runs in parallel."""
        try:
            return [e.ids for e in self.rust.encode_batch_fast(texts, add_special_tokens=False)]
        except BaseException as error:
            if not _is_librarys(error):
                raise
            raise UserError(f"{self.where}: its tokenizer fails on a text ({error})") from None

    def encode_words(self, texts: list[str]) -> list[tuple[list[int], list[tuple[int, int]]]]:
        """Return the ids of each text and the character range of each token."""
        try:
            return [(e.ids, e.offsets) for e in self.rust.encode_batch(texts, add_special_tokens=False)]
        except BaseException as error:
            if not _is_librarys(error):
                raise
            raise UserError(f"{self.where}: its tokenizer fails on a text ({error})") from None

    def save(self, folder: Path, max_length: int, *, types: bool) -> None:
        """Write tokenizer.json and the settings that `transformers.AutoTokenizer` reads.

        `types` says whether the model accepts token types: models without token types reject them.
        """
        self.rust.save(str(folder / "tokenizer.json"))
        inputs = ["input_ids", "token_type_ids", "attention_mask"]  # token types are not the default of the class
        settings = {
            "tokenizer_class": "PreTrainedTokenizerFast",
            "cls_token": self.rust.id_to_token(self.template.before[0]),
            "sep_token": self.rust.id_to_token(self.template.after[-1]),
            **self._spelled(),
            "model_max_length": max_length,
            "model_input_names": inputs if types else [name for name in inputs if name != "token_type_ids"],
        }
        text = json.dumps(settings, indent=2) + "\n"
        (folder / "tokenizer_config.json").write_text(text, encoding="utf-8")

    def _spelled(self) -> dict[str, str]:
        """Return the other special tokens, each with the first spelling in the vocabulary."""
        known = self.rust.get_vocab()
        spelled = {name: next(filter(known.__contains__, spellings), None) for name, spellings in NAMES.items()}
        return {name: token for name, token in spelled.items() if token is not None}


def _read_tokenizer(file: Path) -> RustTokenizer:
    if (size := file.stat().st_size) > LARGEST_FILE:
        raise UserError(f"{file}: has {size:,} bytes; more than {LARGEST_FILE:,} are not read")
    return RustTokenizer.from_file(str(file))


def _read_word_pieces(vocabulary: Path) -> RustTokenizer:
    """Read the vocab.txt of BERT, DistilBERT and ELECTRA."""
    if "[CLS]" not in vocabulary.read_text(encoding="utf-8").split("\n"):
        raise UserError(f"{vocabulary}: has no [CLS], so more must be known of its tokens{_advice(vocabulary.parent)}")
    settings = vocabulary.with_name("tokenizer_config.json")
    lower = True
    if settings.exists():
        lower = bool(json.loads(settings.read_text(encoding="utf-8")).get("do_lower_case", True))
    return RustTokenizer.from_str(BertWordPieceTokenizer(str(vocabulary), lowercase=lower).to_str())


def _read_byte_pairs(vocabulary: Path) -> RustTokenizer:
    """Read the vocab.json and merges.txt of RoBERTa."""
    merges = vocabulary.with_name("merges.txt")
    if not merges.exists():
        raise UserError(f"{vocabulary.parent}: has vocab.json, but not the merges.txt that belongs to it")
    rust = RustTokenizer.from_str(ByteLevelBPETokenizer(str(vocabulary), str(merges)).to_str())
    cls, sep = rust.token_to_id("<s>"), rust.token_to_id("</s>")
    if cls is None or sep is None:
        raise UserError(f"{vocabulary}: has no <s> or no </s>, expected RoBERTa's{_advice(vocabulary.parent)}")
    known = ("<s>", "<pad>", "</s>", "<unk>", "<mask>")
    rust.add_special_tokens([token for token in known if rust.token_to_id(token) is not None])
    rust.post_processor = RobertaProcessing(("</s>", sep), ("<s>", cls), add_prefix_space=False)
    return rust


READERS: dict[str, Callable[[Path], RustTokenizer]] = {
    "tokenizer.json": _read_tokenizer,
    "vocab.txt": _read_word_pieces,
    "vocab.json": _read_byte_pairs,
}
"""File name -> reader. The first file that exists in a folder is read."""


def _advice(folder: Path) -> str:
    """Return advice on how to create a tokenizer.json, if the folder contains files to convert."""
    found = [name for name in (*SENTENCEPIECE, "vocab.txt", "vocab.json") if (folder / name).exists()]
    if not found:
        return ""
    place = f"'{folder}'"
    return (
        f"; make a tokenizer.json of {found[0]}: pip install transformers sentencepiece protobuf, then python -c "
        f'"from transformers import AutoTokenizer as T; T.from_pretrained({place}).save_pretrained({place})"'
    )


def _is_librarys(error: BaseException) -> bool:
    """Return whether the Rust library may have raised the error: Exception, or its panics, which are not Exceptions."""
    return isinstance(error, Exception) or type(error).__name__ == "PanicException"

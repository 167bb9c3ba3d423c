"""A body's tokenizer, freed of the cutting and padding that its file may ask for."""

import hashlib
import json
from pathlib import Path

from tokenizers import Tokenizer as RustTokenizer
from tokenizers.implementations.bert_wordpiece import BertWordPieceTokenizer

from weft.foundation.errors import UserError

LARGEST = 10_000_000
"""ids: no vocabulary comes near it, and ids are kept in 32 bits"""

LARGEST_FILE = 64_000_000
"""bytes of tokenizer.json: the library takes ten times as much memory to read it, and vocabularies are far smaller"""


class Tokenizer:
    """Texts -> token ids without special tokens; the readings put those in."""

    def __init__(self, rust: RustTokenizer, where: str) -> None:
        rust.no_truncation()  # cutting is the reading's job: it knows both texts of a pair
        rust.no_padding()
        self.rust = rust
        self.where = where
        self.cls = self._special("[CLS]", where)
        self.sep = self._special("[SEP]", where)
        self.require_fits(LARGEST)
        self.digest = hashlib.sha256(rust.to_str().encode()).hexdigest()

    @classmethod
    def load(cls, folder: Path) -> "Tokenizer":
        """From tokenizer.json, or from the vocab.txt of an old checkpoint."""
        file, vocabulary = folder / "tokenizer.json", folder / "vocab.txt"
        try:
            if file.exists():
                if (size := file.stat().st_size) > LARGEST_FILE:
                    raise UserError(f"{file}: has {size:,} bytes; more than {LARGEST_FILE:,} are not read")
                return cls(RustTokenizer.from_file(str(file)), str(file))
            if vocabulary.exists():
                settings = folder / "tokenizer_config.json"
                lower = True
                if settings.exists():
                    lower = bool(json.loads(settings.read_text(encoding="utf-8")).get("do_lower_case", True))
                old = BertWordPieceTokenizer(str(vocabulary), lowercase=lower)
                return cls(RustTokenizer.from_str(old.to_str()), str(vocabulary))
        except UserError:
            raise
        except BaseException as error:
            if not _is_librarys(error):
                raise
            raise UserError(f"{folder}: its tokenizer cannot be read ({error})") from None
        raise UserError(f"{folder}: has neither tokenizer.json nor vocab.txt")

    def _special(self, token: str, where: str) -> int:
        number = self.rust.token_to_id(token)
        if number is None:
            raise UserError(f"{where}: the vocabulary has no {token}; expected a BERT tokenizer")
        return int(number)

    def require_fits(self, vocabulary: int) -> None:
        """Reject a tokenizer that makes ids for which a body of so many tokens has no vector."""
        token, number = max(self.rust.get_vocab().items(), key=lambda entry: entry[1])
        if number >= vocabulary:
            raise UserError(
                f"{self.where}: the token {token!r} has the id {number}, but the body has {vocabulary} tokens; "
                "do the tokenizer and config.json belong together?"
            )

    def encode(self, texts: list[str]) -> list[list[int]]:
        """Ids of each text, however long; runs in parallel inside the library."""
        try:
            return [e.ids for e in self.rust.encode_batch_fast(texts, add_special_tokens=False)]
        except BaseException as error:
            if not _is_librarys(error):
                raise
            raise UserError(f"{self.where}: its tokenizer fails on a text ({error})") from None

    def save(self, folder: Path, max_length: int = 512) -> None:
        """tokenizer.json and the settings `transformers.AutoTokenizer` looks for."""
        self.rust.save(str(folder / "tokenizer.json"))
        settings = {
            "tokenizer_class": "PreTrainedTokenizerFast",
            "cls_token": "[CLS]",
            "sep_token": "[SEP]",
            "pad_token": "[PAD]",
            "unk_token": "[UNK]",
            "mask_token": "[MASK]",
            "model_max_length": max_length,
            "model_input_names": ["input_ids", "token_type_ids", "attention_mask"],  # segments are not its default
        }
        text = json.dumps(settings, indent=2) + "\n"
        (folder / "tokenizer_config.json").write_text(text, encoding="utf-8")


def _is_librarys(error: BaseException) -> bool:
    """The Rust library raises plain Exception, and its panics are not even that."""
    return isinstance(error, Exception) or type(error).__name__ == "PanicException"

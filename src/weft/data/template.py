"""Positions of the special tokens of a tokenizer, for one text and for a pair."""

from dataclasses import dataclass

from tokenizers import Encoding
from tokenizers import Tokenizer as RustTokenizer

from weft.foundation.errors import UserError

MOST_SPECIALS = 8
"""Maximum number of special tokens in one sequence. No model family has more than four."""
USUAL = (("[CLS]", "[SEP]", 1), ("<s>", "</s>", 2))
"""First token, last token and the number of last tokens between two texts, if the file does not define them."""


@dataclass(frozen=True)
class Template:
    """Token ids: `before a after`, and `before a between b after`."""

    before: tuple[int, ...]
    after: tuple[int, ...]
    between: tuple[int, ...]
    typed: bool
    """Whether the second text and the tokens after it have token type 1."""

    @property
    def around_one(self) -> int:
        """Number of special tokens in a sequence of one text, or of two texts without a separator."""
        return len(self.before) + len(self.after)

    @property
    def around_two(self) -> int:
        return self.around_one + len(self.between)

    @staticmethod
    def usual(cls: int, sep: int) -> "Template":
        """Return BERT's template: `[CLS] a [SEP] b [SEP]`."""
        return Template((cls,), (sep,), (sep,), typed=True)


def find_template(tokenizer: RustTokenizer, where: str) -> Template:
    """Return the template of any post-processor, inferred from the encodings of a short text and a short pair."""
    one, two = tokenizer.encode("a"), tokenizer.encode("a", "a")
    if not any(one.special_tokens_mask):
        return _by_name(tokenizer, where)
    (before, after), (own_before, between, own_after) = _specials(one, [0], where), _specials(two, [0, 1], where)
    types = two.type_ids
    second = len(types) - len(own_after) - two.sequence_ids.count(1)
    typed = types == [0] * second + [1] * (len(types) - second)
    regular = before and after and (before, after) == (own_before, own_after)
    if not regular or not (typed or not any(types)):
        raise UserError(
            f"{where}: its post-processor treats pairs in a way that is not supported; expected 'X a Y' and "
            "'X a Z b Y' for special tokens X, Y and Z, with token types 0 for all, or 1 from b on"
        )
    return Template(before, after, between, typed)


def _specials(encoding: Encoding, texts: list[int], where: str) -> list[tuple[int, ...]]:
    """Return the special tokens before, between and after the texts of an encoding."""
    ids, owners = encoding.ids, encoding.sequence_ids
    found = []
    start = 0
    for text in texts:
        if text not in owners:
            raise UserError(f"{where}: makes no token of the text 'a'; expected the tokenizer of an encoder")
        first = owners.index(text)
        found.append(tuple(ids[start:first]))
        start = first + owners.count(text)
    found.append(tuple(ids[start:]))
    if sum(map(len, found)) > MOST_SPECIALS or sum(map(len, found)) != owners.count(None):
        raise UserError(
            f"{where}: its post-processor adds {owners.count(None)} tokens, expected {MOST_SPECIALS} at most"
        )
    return found


def _by_name(tokenizer: RustTokenizer, where: str) -> Template:
    for first, last, times in USUAL:
        cls, sep = tokenizer.token_to_id(first), tokenizer.token_to_id(last)
        if cls is not None and sep is not None:
            return Template((cls,), (sep,), (sep,) * times, typed=times == 1)
    names = " nor ".join(f"{first} and {last}" for first, last, _ in USUAL)
    raise UserError(f"{where}: its post-processor adds no special tokens, and the vocabulary has neither {names}")

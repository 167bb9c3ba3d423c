"""Whole-word masking: which tokens a body has to predict, and what it sees in their place."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from weft.data.tokenizer import NAMES, Tokenizer
from weft.foundation.errors import UserError

HIDDEN, REPLACED = 0.8, 0.1
"""fractions of the chosen tokens that are replaced by the mask token and by a random token; the rest stays"""
STARTS, CONTINUES = ("▁", "Ġ"), "##"
"""how a token says that it starts a word, or that it continues one"""
Ids = NDArray[np.int64]
Flags = NDArray[np.bool_]


@dataclass(frozen=True)
class Masked:
    """Packed tokens with some of them masked."""

    ids: Ids
    """[t] what the body sees"""
    positions: Ids
    """[m] tokens to predict"""
    targets: Ids
    """[m] the true ids of these tokens"""


@dataclass(frozen=True)
class Masker:
    """Chooses words until they have a share `rate` of all tokens.

    All tokens of a chosen word are predicted. Each is replaced by the mask token (80 %), by a random token (10 %) or
    stays as it is (10 %). (Devlin et al., "BERT", 2019, and the whole-word models that its authors published later)
    """

    continues: Flags
    """[vocabulary] whether a token continues the word of the token before it"""
    special: Flags
    """[vocabulary] tokens that are never masked, such as [CLS]"""
    mask: int
    """id of the mask token"""
    rate: float

    @classmethod
    def of(cls, tokenizer: Tokenizer, vocabulary: int, rate: float) -> "Masker":
        """Read word boundaries and special tokens from a tokenizer; `vocabulary` is the number of ids of the body."""
        known = tokenizer.rust.get_vocab()
        mask = next((known[name] for name in NAMES["mask_token"] if name in known), None)
        if mask is None:
            raise UserError(
                f"{tokenizer.where}: has no mask token ({' or '.join(NAMES['mask_token'])}), which masked-language "
                "modelling needs"
            )
        special = np.ones(vocabulary, dtype=np.bool_)  # ids without a token are never drawn
        special[list(known.values())] = False
        template = tokenizer.template
        added = [number for number, token in tokenizer.rust.get_added_tokens_decoder().items() if token.special]
        special[[*added, mask, *template.before, *template.between, *template.after]] = True
        return cls(_continues(known, vocabulary), special, mask, rate)

    def __call__(self, ids: Ids, draw: np.random.Generator) -> Masked:
        """Mask the tokens of packed sequences, each of which begins and ends with special tokens."""
        special = self.special[ids]
        starts = ~self.continues[ids] | special
        starts[1:] |= special[:-1]  # the first token of a text starts a word, whatever it looks like
        words = starts.cumsum() - 1
        sizes = np.bincount(words)
        order = draw.permutation(np.unique(words[~special]))
        within = sizes[order].cumsum() <= max(1, round(self.rate * int((~special).sum())))
        chosen = order[within] if within.any() else order[:1]
        positions = np.flatnonzero(np.isin(words, chosen) & ~special)
        lot = draw.random(len(positions))
        seen = ids.copy()
        others = np.flatnonzero(~self.special)
        at_random = draw.choice(others, len(positions))
        seen[positions] = np.where(
            lot < HIDDEN, self.mask, np.where(lot < HIDDEN + REPLACED, at_random, ids[positions])
        )
        return Masked(seen, positions, ids[positions])


def _continues(known: dict[str, int], vocabulary: int) -> Flags:
    """Return for each id whether it continues a word: WordPiece marks these tokens, other tokenizers the first ones."""
    by_id = {number: token for token, number in known.items()}
    marked = {mark: sum(token.startswith(mark) for token in known) for mark in (CONTINUES, *STARTS)}
    mark = max(marked, key=lambda one: marked[one])
    if not marked[mark]:
        return np.zeros(vocabulary, dtype=np.bool_)  # every token is a word
    has_mark = np.array([by_id.get(number, "").startswith(mark) for number in range(vocabulary)])
    return has_mark if mark == CONTINUES else ~has_mark

"""Texts that differ from the others in length or in script.

The script (Latin, Cyrillic, Han, ...) comes from the Unicode names of the letters. A text in another language with the
same script is not detected: that needs a language model.
"""

import unicodedata
from collections import Counter
from collections.abc import Sequence
from functools import cache

import numpy as np
from numpy.typing import NDArray

from weft.kinds.noise import FAR, MAD

LETTERLESS = "no letters"
LEAST_SPREAD = 0.15
"""smallest standard deviation of log lengths: texts of nearly equal length have no outliers by a few tokens"""
TOGETHER = dict.fromkeys(("CJK", "HIRAGANA", "KATAKANA", "KATAKANA-HIRAGANA"), "HAN/KANA")
"""scripts that one text mixes"""


def script_of(text: str) -> str:
    """Return the script of most letters, such as Latin, or `no letters`."""
    if text.isascii():
        return "Latin" if any(map(str.isalpha, text)) else LETTERLESS
    counts = Counter(_script(letter) for letter in text if letter.isalpha())
    return counts.most_common(1)[0][0] if counts else LETTERLESS


@cache
def _script(letter: str) -> str:
    word = unicodedata.name(letter, "UNKNOWN").split()[0]
    return TOGETHER.get(word, word).title()


def other_scripts(texts: Sequence[str], usual: str | None = None) -> tuple[str, dict[int, str]]:
    """Return the usual script, by default that of most texts, and number -> script of the texts in others."""
    scripts = [script_of(text) for text in texts]
    usual = usual or Counter(scripts).most_common(1)[0][0]
    return usual, {number: script for number, script in enumerate(scripts) if script != usual}


def odd_lengths(tokens: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the numbers of texts whose log length is more than `FAR` robust standard deviations from the median."""
    logs = np.log(np.maximum(tokens, 1))
    away = np.abs(logs - np.median(logs))
    spread = max(MAD * float(np.median(away)), LEAST_SPREAD)
    return np.flatnonzero(away > FAR * spread)

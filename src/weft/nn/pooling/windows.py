"""Pooling of the vectors of a text's windows, by the poolings of token states."""

from weft.data.long_texts.base import WindowPooling
from weft.nn.pooling.attention import Attention
from weft.nn.pooling.base import Pooling
from weft.nn.pooling.max import Max
from weft.nn.pooling.mean import Mean

POOLINGS: dict[WindowPooling, type[Mean] | type[Max] | type[Attention]] = {
    "mean": Mean,
    "max": Max,
    "attention": Attention,
}


def build_window_pooling(name: WindowPooling, width: int) -> Pooling:
    """Build the pooling of vectors [windows, width]; called with `Encoded.by_text`."""
    return POOLINGS[name](width)

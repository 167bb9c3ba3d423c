"""The tokenizer as other libraries must find it: it puts in the special tokens, as weft's readings do."""

from pathlib import Path

from tokenizers import Tokenizer as RustTokenizer
from tokenizers.processors import TemplateProcessing

from weft.data.readings import Reading
from weft.data.tokenizer import Tokenizer

PAIRS: dict[Reading, str] = {
    "concat": "[CLS]:0 $A:0 $B:0 [SEP]:0",
    "bi": "[CLS]:0 $A:0 [SEP]:0 [CLS]:1 $B:1 [SEP]:1",
}
"""how a reading lays out two texts if it is not BERT's way; the number after the colon is the token type"""
BERT_PAIR = "[CLS]:0 $A:0 [SEP]:0 $B:1 [SEP]:1"


def save_tokenizer(tokenizer: Tokenizer, folder: Path, reading: Reading, max_length: int) -> None:
    """tokenizer.json with the template of a reading, and its settings."""
    copy = Tokenizer(RustTokenizer.from_str(tokenizer.rust.to_str()), str(folder))
    copy.rust.post_processor = TemplateProcessing(
        single="[CLS]:0 $A:0 [SEP]:0",
        pair=PAIRS.get(reading, BERT_PAIR),
        special_tokens=[("[CLS]", copy.cls), ("[SEP]", copy.sep)],
    )
    copy.save(folder, max_length)

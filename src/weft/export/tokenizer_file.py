"""The tokenizer for other libraries: it adds the special tokens in the same way as weft's readings."""

from collections.abc import Sequence
from pathlib import Path

from tokenizers import Tokenizer as RustTokenizer
from tokenizers.processors import TemplateProcessing

from weft.data.readings import Reading
from weft.data.template import Template
from weft.data.tokenizer import Tokenizer
from weft.export.source import ExportSource


def save_tokenizer(
    source: ExportSource, folder: Path, reading: Reading, max_length: int | None = None, *, types: bool | None = None
) -> None:
    """Write tokenizer.json with the template of a reading, and the tokenizer's settings.

    `types` is whether the exported model takes token types. Defaults to whether the body does.
    """
    types = source.network.body.has_segments if types is None else types
    copy = Tokenizer(RustTokenizer.from_str(source.model.tokenizer.rust.to_str()), str(folder))
    known = copy.template
    ids = {*known.before, *known.between, *known.after}
    spelled = {number: str(copy.rust.id_to_token(number)) for number in sorted(ids)}
    copy.rust.post_processor = TemplateProcessing(
        single=[*_typed(known.before, spelled), "$A:0", *_typed(known.after, spelled)],
        pair=_pair(known, reading, spelled, int(types)),
        special_tokens=[(token, number) for number, token in spelled.items()],
    )
    copy.save(folder, source.max_length if max_length is None else max_length, types=types)


def _pair(template: Template, reading: Reading, spelled: dict[int, str], second: int) -> list[str]:
    """Return the template of a reading for two texts; `second` is the token type of the second text."""
    before, after = _typed(template.before, spelled), _typed(template.after, spelled)
    if reading == "concat":
        return [*before, "$A:0", "$B:0", *after]
    if reading == "bi":
        own = (_typed(ids, spelled, second) for ids in (template.before, template.after))
        return [*before, "$A:0", *after, *next(own), f"$B:{second}", *next(own)]
    last = _typed(template.after, spelled, second)
    return [*before, "$A:0", *_typed(template.between, spelled), f"$B:{second}", *last]


def _typed(ids: Sequence[int], spelled: dict[int, str], kind: int = 0) -> list[str]:
    """Return special tokens in the format of the library's templates: token, colon, token type."""
    return [f"{spelled[number]}:{kind}" for number in ids]

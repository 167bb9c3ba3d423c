"""Finds out how a csv or tsv file is written: what divides the fields, whether quotes enclose them, the encoding.

The whole file is looked at, line by line, in constant memory. Quotes enclose fields where that is the only way to read
some records, or where quotes inside of fields are doubled. They are part of the texts where some lines cannot be read
otherwise, or where fields that nothing encloses hold quotes. The side with more such records wins.
"""

import codecs
from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any

from weft.data.bounds import BoundedText, open_bytes
from weft.data.layout import Layout
from weft.data.opening import explaining
from weft.data.records import QUOTE, Record, Records, Way, first_fields, split_plainly
from weft.foundation.errors import UserError

DELIMITERS = {"\t": "tabs", ",": "commas", ";": "semicolons"}
BLOCK = 1 << 20
CONVERT = (
    'say `encoding = "cp1252"` (or what it is) in the task\'s data table, '
    "or convert the file, for instance with `iconv -f latin1 -t utf-8`"
)


@dataclass(frozen=True)
class Dialect:
    """How one file is read."""

    delimiter: str
    encoding: str
    ways: tuple[Way, ...]
    """with quoting, without it, or first one and, where that cannot be, the other"""
    names: tuple[str, ...]
    """of the columns"""
    header: bool
    quotes: int = 0
    """records that hold a quote"""
    exceptions: int = 0
    """records that only the second way reads"""
    was_chosen: bool = False
    """whether the file left a choice: it has quotes, and the recipe does not say what they are"""

    def __str__(self) -> str:
        quoting = "quotes enclose fields" if self.ways[0] == "csv" else "quotes are part of the texts"
        parts = [f"fields divided by {DELIMITERS[self.delimiter]}"]
        if self.quotes:
            parts.append(f"{quoting} ({self.quotes:,} rows have some)")
        if self.exceptions:
            other = "without quoting" if self.ways[0] == "csv" else "with quoting"
            parts.append(f"{self.exceptions:,} rows can only be read {other} and are")
        if not self.header:
            parts.append("no header")
        return ", ".join([*parts, shown(self.encoding)])

    @property
    def is_obvious(self) -> bool:
        """Whether nobody needs to hear of it: csv with quotes as they should be, in UTF-8, with a header."""
        return not self.was_chosen or (self.ways[0] == "csv" and not self.exceptions)

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)

    @staticmethod
    def from_dict(content: dict[str, Any]) -> "Dialect":
        return Dialect(**content | {"ways": tuple(content["ways"]), "names": tuple(content["names"])})


def detect(path: Path, layout: Layout) -> Dialect:
    """The dialect of a csv or tsv file, as its layout says or as the whole file shows."""
    stat = path.stat()
    with explaining(path):
        return _detect(path, (stat.st_size, stat.st_mtime_ns), layout)


@lru_cache(maxsize=256)
def _detect(path: Path, _stamp: tuple[int, int], layout: Layout) -> Dialect:
    found = scan(path)
    encoding = found.encoding(layout.encoding)
    with BoundedText(path, encoding) as handle:
        line = handle.readline()
    if not line.strip():
        raise UserError(f"{path}: is empty; expected a header line and rows")
    if "\0" in line or any("\ud800" <= character <= "\udfff" for character in line):
        raise UserError(f"{path}:1: the header is not {shown(encoding)}; {CONVERT}")
    surveys = [
        survey(path, encoding, delimiter)
        if found.quotes or len(_candidates(line)) > 1
        else Survey(delimiter, len(first_fields(line, delimiter)))
        for delimiter in _candidates(line)
    ]
    best = max(surveys, key=lambda one: (one.counts["read"], line.count(one.delimiter)))
    ways: tuple[Way, ...] = best.ways() if layout.quoting == "auto" else (layout.quoting,)
    fields = split_plainly(line, best.delimiter) if ways == ("none",) else first_fields(line, best.delimiter)
    return Dialect(
        best.delimiter,
        encoding,
        ways,
        _names(path, fields, layout),
        layout.header,
        quotes=best.counts["quotes"],
        exceptions=best.counts["only plain" if ways[0] == "csv" else "only quoted"] if len(ways) == 2 else 0,
        was_chosen=layout.quoting == "auto" and best.counts["quotes"] > 0,
    )


def _candidates(line: str) -> list[str]:
    """What may divide the fields of a file with this first line."""
    return [delimiter for delimiter in DELIMITERS if delimiter in line] or ["\t"]


def _names(path: Path, fields: list[str], layout: Layout) -> tuple[str, ...]:
    if layout.header:
        twice = [name for name, count in Counter(fields).items() if count > 1]
        if twice:
            raise UserError(
                f"{path}:1: column {min(twice)!r} stands twice in the header; if the file has no header, "
                "say `header = false` in the task's data table"
            )
        return tuple(fields)
    if layout.columns and len(layout.columns) != len(fields):
        raise UserError(f"{path}:1: has {len(fields)} fields, but `columns` has {len(layout.columns)} names")
    return layout.columns or tuple(str(number) for number in range(1, len(fields) + 1))


@dataclass(frozen=True)
class Bytes:
    """What a pass over the bytes of a file shows."""

    quotes: bool
    is_utf8: bool
    is_ascii: bool

    def encoding(self, declared: str) -> str:
        """Bytes that are UTF-8 and more than ASCII are hardly anything else, whatever the recipe says."""
        return "utf-8-sig" if _is_utf8(declared) or (self.is_utf8 and not self.is_ascii) else declared


def text_encoding(path: Path, declared: str) -> str:
    """How a text file is to be opened."""
    return "utf-8-sig" if _is_utf8(declared) else scan(path).encoding(declared)


def _is_utf8(encoding: str) -> bool:
    return codecs.lookup(encoding).name in ("utf-8", "utf-8-sig")


def scan(path: Path) -> Bytes:
    quotes, is_utf8, is_ascii = False, True, True
    decoder = codecs.getincrementaldecoder("utf-8")()
    with open_bytes(path) as handle:
        while block := handle.read(BLOCK):
            quotes = quotes or QUOTE.encode() in block
            is_ascii = is_ascii and block.isascii()
            is_utf8 = is_utf8 and _decodes(decoder, block)
    return Bytes(quotes, is_utf8 and _decodes(decoder, b"", final=True), is_ascii)


def _decodes(decoder: codecs.IncrementalDecoder, block: bytes, *, final: bool = False) -> bool:
    try:
        decoder.decode(block, final)
    except UnicodeDecodeError:
        return False
    return True


def shown(encoding: str) -> str:
    """An encoding as messages name it."""
    return "UTF-8" if _is_utf8(encoding) else encoding


@dataclass(frozen=True)
class Survey:
    """How many records of a file, cut by one delimiter, speak for what."""

    delimiter: str
    width: int
    counts: Counter[str] = field(default_factory=Counter)

    def ways(self) -> tuple[Way, ...]:
        """The better way to read it first."""
        n = self.counts
        for_quoting = n["only quoted"] + n["doubled"]
        for_texts = n["only plain"] + n["inside"]
        if self.delimiter != "\t":
            return ("none", "csv") if for_texts > for_quoting else ("csv", "none")
        # Files with tabs are often written without quoting. Then some lines start with a quote that a later line
        # happens to close, and some fields look enclosed that no writer had a reason to enclose.
        some_are_not_enclosed = n["read"] > n["quotes"] + 1  # the header may differ from all rows
        for_texts += n["several rows"] + (n["needless"] if some_are_not_enclosed else 0)
        return ("none", "csv") if for_texts and for_texts >= for_quoting else ("csv", "none")


def survey(path: Path, encoding: str, delimiter: str) -> Survey:
    """Count over the whole file what can be read in which way."""
    with BoundedText(path, encoding) as handle:
        records = Records(handle, delimiter)
        first = records.read()
        assert first is not None, "the caller has seen a line"
        records.put_back(first.taken)
        found = Survey(delimiter, len(first_fields(first.taken[0], delimiter)))
        unquoted = 0
        while (record := records.read()) is not None:
            if record.plain is record.quoted:  # most lines have no quote
                unquoted += len(record.plain) == found.width and not record.is_blank
                continue
            found.counts.update(_evidence(record, found.width))
            if record.fields(("csv",), found.width) is None:
                records.put_back(record.taken[1:])
        found.counts["read"] += unquoted
    return found


def _evidence(record: Record, width: int) -> Iterator[str]:
    """What one record with a quote says, cut with quoting if it can be."""
    quoted = record.fields(("csv",), width)
    if quoted is not None or len(record.plain) == width:
        yield "read"
    yield "quotes"
    if quoted is None:
        if len(record.plain) == width:
            yield "only plain"
    elif not record.fits_plainly(width):
        yield "only quoted"
    elif len(record.taken) > 1:
        yield "several rows"
    else:
        yield from {_kind(field, raw) for field, raw in zip(quoted[0], record.plain, strict=True) if QUOTE in raw}


def _kind(text: str, raw: str) -> str:
    """What a field with quotes says, by its text with quoting and without."""
    if text == raw:
        return "inside"  # a writer that encloses fields would have enclosed this one
    if QUOTE in text:
        return "doubled"
    return "needless" if "," not in text else "enclosed"  # spreadsheets enclose a comma in a file with tabs too

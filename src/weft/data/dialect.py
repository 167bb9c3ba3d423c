"""Detection of the dialect of a csv or tsv file: delimiter, quoting and encoding.

The whole file is scanned line by line, in constant memory. Evidence that quotes enclose fields: records that can only
be read this way, or doubled quotes inside fields. Evidence that quotes are part of the texts: lines that can only be
read this way, or quotes inside fields that are not enclosed. The rule with more such records is chosen.
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
    """Delimiter, encoding, quoting and column names of one file."""

    delimiter: str
    encoding: str
    ways: tuple[Way, ...]
    """With quoting, without quoting, or both in order: the second for records that the first cannot read."""
    names: tuple[str, ...]
    """Column names."""
    header: bool
    quotes: int = 0
    """Number of records that contain a quote."""
    exceptions: int = 0
    """Number of records that only the second way can read."""
    was_chosen: bool = False
    """Whether quoting was detected: the file has quotes, and the recipe does not set `quoting`."""

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
        """Whether the dialect need not be reported: quoting was not detected, or is standard without exceptions."""
        return not self.was_chosen or (self.ways[0] == "csv" and not self.exceptions)

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)

    @staticmethod
    def from_dict(content: dict[str, Any]) -> "Dialect":
        return Dialect(**content | {"ways": tuple(content["ways"]), "names": tuple(content["names"])})


def detect(path: Path, layout: Layout) -> Dialect:
    """Return the dialect of a csv or tsv file, from its layout or detected on the whole file."""
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
    """Return the candidate delimiters of a file with this first line."""
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
    """Result of a scan over the bytes of a file."""

    quotes: bool
    is_utf8: bool
    is_ascii: bool

    def encoding(self, declared: str) -> str:
        """Return the encoding to use. Valid UTF-8 with non-ASCII bytes is read as UTF-8, whatever is declared."""
        return "utf-8-sig" if _is_utf8(declared) or (self.is_utf8 and not self.is_ascii) else declared


def text_encoding(path: Path, declared: str) -> str:
    """Return the encoding with which to open a text file."""
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
    """Return the name of an encoding for messages."""
    return "UTF-8" if _is_utf8(encoding) else encoding


@dataclass(frozen=True)
class Survey:
    """Counts of the evidence for each quoting rule, for one delimiter."""

    delimiter: str
    width: int
    counts: Counter[str] = field(default_factory=Counter)

    def ways(self) -> tuple[Way, ...]:
        """Return both ways to read the file, the better one first."""
        n = self.counts
        for_quoting = n["only quoted"] + n["doubled"]
        for_texts = n["only plain"] + n["inside"]
        if self.delimiter != "\t":
            return ("none", "csv") if for_texts > for_quoting else ("csv", "none")
        # Files with tabs are often written without quoting. Then some lines start with a quote that a later line
        # happens to close, and some fields look enclosed although they need no quotes.
        some_are_not_enclosed = n["read"] > n["quotes"] + 1  # the header may differ from all rows
        for_texts += n["several rows"] + (n["needless"] if some_are_not_enclosed else 0)
        return ("none", "csv") if for_texts and for_texts >= for_quoting else ("csv", "none")


def survey(path: Path, encoding: str, delimiter: str) -> Survey:
    """Count over the whole file which records can be read with quoting, without quoting, or both."""
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
    """Yield the evidence of one record that contains a quote, split with quoting if possible."""
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
    """Return the evidence of a field with quotes, from its text with quoting and without."""
    if text == raw:
        return "inside"  # a writer that encloses fields would have enclosed this one
    if QUOTE in text:
        return "doubled"
    return "needless" if "," not in text else "enclosed"  # spreadsheets enclose a comma in a file with tabs too

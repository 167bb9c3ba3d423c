"""Twelve layouts of files, and what `weft init` should propose for each."""

import csv
import json
import random
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from tests.texts import WORDS
from tests.tiny import ANIMALS, BAD, GOOD

ROWS = 60


def sentence(draw: random.Random, mood: int = 0) -> str:
    words = draw.choices(WORDS, k=draw.randint(5, 9))
    return f"the {draw.choice(ANIMALS)} is {draw.choice(GOOD if mood else BAD)} and {' '.join(words)}"


def rows(seed: int) -> list[tuple[str, int]]:
    draw = random.Random(seed)
    return [(sentence(draw, i % 2), i % 2) for i in range(ROWS)]


def headerless(path: Path) -> None:
    path.write_text("".join(f"{text}\t{'fine' if mood else 'poor'}\n" for text, mood in rows(1)), encoding="utf-8")


def quotes_without_quoting(path: Path) -> None:
    lines = ["text\tlabel"]
    for i, (text, mood) in enumerate(rows(2)):
        said = [f'"{text}', f'"Well," {text}', f'{text} "at last"', f'{text}"', text][i % 5]
        lines.append(f"{said}\t{mood}")
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")


def byte_order_mark(path: Path) -> None:
    with path.open("w", newline="", encoding="utf-8-sig") as handle:
        writer = csv.writer(handle)
        writer.writerow(["message", "category"])
        writer.writerows((f"{text}, he said", ["sea", "land"][mood]) for text, mood in rows(3))


def two_texts(path: Path) -> None:
    lines = ["Quality\t#1 ID\t#2 ID\torigin text\tzweiter"]
    for i, (text, mood) in enumerate(rows(4)):
        other = text if mood else sentence(random.Random(i))
        lines.append(f"{mood}\t{70000 + i}\t{80000 + i}\t{text}\t{other} indeed")
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")


def two_labels(path: Path) -> None:
    draw = random.Random(5)
    lines = ["pair_ID,sentence_A,sentence_B,relatedness_score,entailment_judgment"]
    for i, (text, mood) in enumerate(rows(5)):
        kind = ["NEUTRAL", "ENTAILMENT", "CONTRADICTION"][i % 3]
        lines.append(f"{i},{text},{sentence(draw, mood)},{draw.uniform(1, 5):.1f},{kind}")
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")


def wide(path: Path) -> None:
    lines = ["id,comment_text,toxic,spam,urgent"]
    for i, (text, mood) in enumerate(rows(6)):
        lines.append(f'r{i},"{text}, no",{mood},{int(i % 3 == 0)},{int(i % 7 == 0)}')
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")


def list_cells(path: Path) -> None:
    with path.open("w", newline="", encoding="utf-8") as handle:
        writer = csv.writer(handle)
        writer.writerow(["text", "topics"])
        for i, (text, _) in enumerate(rows(7)):
            topics = [name for name, every in (("sea", 2), ("food", 3), ("weather", 5)) if i % every == 0]
            writer.writerow([text, str(topics)])  # as a data frame writes lists


def ratings(path: Path) -> None:
    lines = ["title;review;stars"]
    lines += [f"{text.split()[3]} {i};{text};{i % 5 + 1}" for i, (text, _) in enumerate(rows(8))]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")


def ids_and_dates(path: Path) -> None:
    lines = ["ticket_id,created,customer,message,team"]
    for i, (text, _) in enumerate(rows(9)):
        lines.append(f"{4000 + 7 * i},2024-03-{i % 20 + 1:02},{100000 + i},{text},{['billing', 'login'][i % 2]}")
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")


def parquet(path: Path) -> None:
    texts, moods = zip(*rows(10), strict=True)
    pq.write_table(pa.table({"text": texts, "label": moods, "score": [0.5 * m for m in moods]}), path)


def json_lines(path: Path) -> None:
    content = [
        {"tweet": text, "tags": [name for name, on in (("joy", mood), ("fog", i % 4 == 0)) if on]}
        for i, (text, mood) in enumerate(rows(11))
    ]
    path.write_text("".join(json.dumps(row) + "\n" for row in content), encoding="utf-8")


def latin1(path: Path) -> None:
    lines = ["Nummer;Nachricht;Kategorie"]
    lines += [f"{i};Grüße, {text} für später;{['höflich', 'grob'][mood]}" for i, (text, mood) in enumerate(rows(12))]
    path.write_bytes(("\r\n".join(lines) + "\r\n").encode("latin-1"))


@dataclass(frozen=True)
class Case:
    file: str
    write: Callable[[Path], None]
    tasks: dict[str, tuple[str, Any, Any]]
    """kind, text columns and label by task"""
    settings: dict[str, Any] = field(default_factory=dict)
    """further keys of the first task's data table"""
    says: tuple[str, ...] = ()
    """parts of what `weft check` prints"""
    doubts: int = 0
    """how many doubts the recipe has"""


CASES = [
    Case(
        "mood.tsv",
        headerless,
        {"mood": ("classification", ["text"], "label")},
        {"header": False, "columns": ("text", "label"), "on_bad_rows": "stop"},
        ("mood.tsv: fields divided by tabs, no header",),
    ),
    Case(
        "said.tsv",
        quotes_without_quoting,
        {"said": ("classification", ["text"], "label")},
        {"on_bad_rows": "stop", "quoting": "auto"},
        ("quotes are part of the texts (48 rows have some)",),
    ),
    Case("bom.csv", byte_order_mark, {"bom": ("classification", ["message"], "category")}),
    Case(
        "pairs.tsv",
        two_texts,
        {"pairs": ("classification", ["origin text", "zweiter"], "Quality")},
        says=("doubt: tasks.pairs: 'origin text', 'zweiter' have similar length and vocabulary",),
        doubts=1,
    ),
    Case(
        "sick.csv",
        two_labels,
        {
            "sick-relatedness_score": ("regression", ["sentence_A", "sentence_B"], "relatedness_score"),
            "sick-entailment_judgment": ("classification", ["sentence_A", "sentence_B"], "entailment_judgment"),
        },
        says=("doubt: tasks.sick-entailment_judgment: 'entailment_judgment' became a task",),
        doubts=1,
    ),
    Case("wide.csv", wide, {"wide": ("multilabel", ["comment_text"], ("toxic", "spam", "urgent"))}),
    Case("lists.csv", list_cells, {"lists": ("multilabel", ["text"], "topics")}, {"on_bad_rows": "stop"}),
    Case("shop.csv", ratings, {"shop": ("ordinal", ["review"], "stars")}),
    Case("tickets.csv", ids_and_dates, {"tickets": ("classification", ["message"], "team")}),
    Case(
        "table.parquet",
        parquet,
        {
            "table-label": ("classification", ["text"], "label"),
            "table-score": ("classification", ["text"], "score"),
        },
    ),
    Case("tweets.jsonl", json_lines, {"tweets": ("multilabel", ["tweet"], "tags")}, {"on_bad_rows": "stop"}),
    Case(
        "post.csv",
        latin1,
        {"post": ("classification", ["Nachricht"], "Kategorie")},
        {"encoding": "cp1252"},
        ("fields divided by semicolons", "doubt: tasks.post: post.csv is not UTF-8", "höflich"),
        doubts=1,
    ),
]

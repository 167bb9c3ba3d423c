"""A body, a tokenizer, data and recipes so small that a test can train them in a second."""

import csv
import json
import random
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save_file
from tokenizers.implementations.bert_wordpiece import BertWordPieceTokenizer

from tests.texts import WORDS
from weft.bodies.body import Body
from weft.bodies.shape import BodyShape
from weft.bodies.weights import to_hugging_face, write_config
from weft.recipes.recipe import Recipe, parse_recipe

GOOD = ["lovely", "warm", "brilliant", "tender", "bright"]
BAD = ["dull", "cold", "clumsy", "bitter", "grey"]
ANIMALS = ["cat", "dog", "horse", "heron", "trout", "beetle"]
SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
LETTERS = "abcdefghijklmnopqrstuvwxyz0123456789'.,!?"


def write_tokenizer(folder: Path) -> int:
    """tokenizer.json for the words below, and letters for all others; returns the size of the vocabulary."""
    words = sorted({*GOOD, *BAD, *ANIMALS, *(word.lower() for word in WORDS), "a", "film", "sees", "no"} - set(LETTERS))
    entries = [*SPECIAL, *LETTERS, *(f"##{letter}" for letter in LETTERS), *words]
    vocabulary = {entry: number for number, entry in enumerate(dict.fromkeys(entries))}
    BertWordPieceTokenizer(vocabulary).save(str(folder / "tokenizer.json"))
    return len(vocabulary)


def write_body(folder: Path, layers: int = 2, width: int = 16, dropout: float = 0.1, positions: int = 64) -> Path:
    """A random body in Hugging Face's layout."""
    folder.mkdir(parents=True, exist_ok=True)
    shape = BodyShape(
        vocabulary=write_tokenizer(folder),
        width=width,
        layers=layers,
        heads=2,
        inner=2 * width,
        positions=positions,
        dropout=dropout,
        attention_dropout=dropout,
    )
    with torch.random.fork_rng():
        torch.manual_seed(3)
        body = Body(shape)
    state = {name: p.detach() for name, p in body.named_parameters()}
    save_file(to_hugging_face(state, shape), folder / "model.safetensors", metadata={"format": "pt"})
    write_config(shape, folder)
    return folder


def write_rows(path: Path, rows: list[dict[str, Any]], delimiter: str = "\t") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", newline="", encoding="utf-8") as handle:
        writer = csv.DictWriter(handle, list(rows[0]), delimiter=delimiter, lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
    return path


def write_data(folder: Path, sentiment: int = 26, pairs: int = 34, scores: int = 22) -> Path:
    """Three tasks whose labels follow from their words, train and dev."""
    draw = random.Random(7)
    for split, share in (("train", 1.0), ("dev", 0.5)):
        single, same, close = [], [], []
        for i in range(int(sentiment * share)):
            word = draw.choice([BAD, GOOD][i % 2])
            single.append(
                {"text": f"a {word} film {' '.join(draw.sample(WORDS, i % 7))}", "label": ["bad", "good"][i % 2]}
            )
        for i in range(int(pairs * share)):
            one, two = draw.sample(ANIMALS, 2)
            second = two if i % 2 else one
            same.append({"a": f"a {one} {draw.choice(WORDS)}", "b": f"the {second}", "dup": f"{1 - i % 2}.0"})
        for i in range(int(scores * share)):
            one, two = draw.sample(ANIMALS, 2)
            value = draw.choice([0, 1, 2]) if i % 2 else draw.choice([3, 4, 5])
            close.append(
                {"a": f"the {one} sees a {draw.choice(WORDS)}", "b": f"a {two if i % 2 else one}", "sim": value}
            )
        write_rows(folder / f"sentiment-{split}.tsv", single)
        write_rows(folder / f"paraphrase-{split}.tsv", same)
        write_rows(folder / f"similarity-{split}.tsv", close)
    return folder


def recipe_content(folder: Path, **changes: Any) -> dict[str, Any]:
    """The plain content of a three-task recipe on the tiny body and data in `folder`."""
    content: dict[str, Any] = {
        "name": "tiny",
        "body": str(folder / "body"),
        "epochs": 2,
        "max_length": 24,
        "dropout": 0.1,
        "tasks": {
            "sentiment": {"kind": "classification", "batch_size": 4, "data": files(folder, "sentiment")},
            "paraphrase": {
                "kind": "classification",
                "reading": "cross",
                "pooling": "pooler",
                "batch_size": 8,
                "data": {**files(folder, "paraphrase"), "text": "a", "text2": "b", "label": "dup"},
            },
            "similarity": {
                "kind": "regression",
                "reading": "bi",
                "pooling": "mean",
                "batch_size": 5,
                "data": {**files(folder, "similarity"), "text": "a", "text2": "b", "label": "sim"},
            },
        },
        "optimizer": {"lr": 1e-3, "weight_decay": 0.01, "warmup": 2, "clip": 1.0},
        "checkpoint": {"every_steps": 2},
    }
    return content | changes


def matches_task(folder: Path, **changes: Any) -> dict[str, Any]:
    """A task on the pairs of paraphrase, all of them taken for matches."""
    task = {
        "kind": "matches",
        "pooling": "mean",
        "batch_size": 8,
        "data": {**files(folder, "paraphrase"), "text": "a", "text2": "b"},
    }
    return task | changes


def files(folder: Path, task: str) -> dict[str, str]:
    return {split: str(folder / "data" / f"{task}-{split}.tsv") for split in ("train", "dev")}


def write_all(folder: Path) -> Path:
    """body/, data/ and recipe.json's TOML twin."""
    write_body(folder / "body")
    write_data(folder / "data")
    return folder


def recipe(folder: Path, **changes: Any) -> Recipe:
    return parse_recipe(recipe_content(folder, **changes), "tiny")


def write_recipe(folder: Path, content: dict[str, Any], name: str = "recipe.toml") -> Path:
    """A recipe file with any content, right or wrong."""

    def toml(value: Any) -> str:
        if isinstance(value, dict):
            return "{" + ", ".join(f"{json.dumps(key)} = {toml(inner)}" for key, inner in value.items()) + "}"
        if isinstance(value, list):
            return "[" + ", ".join(toml(inner) for inner in value) + "]"
        return json.dumps(value)

    path = folder / name
    path.write_text("".join(f"{key} = {toml(value)}\n" for key, value in content.items()), encoding="utf-8")
    return path


def write_starter_recipe(folder: Path, tiny: Path) -> Path:
    """Write recipe.toml with the tiny body and the starter data."""
    content = recipe_content(tiny, log={"train_rows": 0})
    for name, task in content["tasks"].items():
        task["data"] = f"starter/{name}"
    return write_recipe(folder, content)

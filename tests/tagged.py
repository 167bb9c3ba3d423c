"""Texts with tags of words, and recipes for them, so small that a test can train them in a second."""

import random
from pathlib import Path
from typing import Any


def rows(count: int, seed: int) -> list[dict[str, Any]]:
    draw = random.Random(seed)
    found = []
    for _ in range(count):
        animal = draw.choice(["cat", "dog", "horse"])
        tokens, slots = ["a", "film", "sees", animal], ["O", "O", "O", "B-animal"]
        if draw.random() < 0.5:
            tokens, slots = [*tokens, draw.choice(["heron", "trout"])], [*slots, "I-animal"]
        tokens, slots = [*tokens, "no", draw.choice(["lovely", "dull", "queasy"])], [*slots, "O", "B-mood"]
        found.append({"tokens": tokens, "slots": slots, "intent": animal})
    return found


def recipe(folder: Path, ending: str, text: str, label: str, **more: Any) -> dict[str, Any]:
    files = {split: str(folder / f"{split}.{ending}") for split in ("train", "dev")}
    tasks = {"slots": {"kind": "tags", "data": files | {"text": text, "label": label}, "batch_size": 8, **more}}
    if ending == "jsonl":
        intent = {"kind": "classification", "data": files | {"text": "tokens", "label": "intent"}, "batch_size": 8}
        tasks["intent"] = intent
    return {
        "name": "tags",
        "body": str(folder / "body"),
        "epochs": 3,
        "max_length": 32,
        "optimizer": {"lr": 0.01},
        "tasks": tasks,
    }

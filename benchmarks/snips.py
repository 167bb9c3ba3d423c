"""Intent and slots of SNIPS on one body: weft beside a plain loop with transformers.

    python benchmarks/snips.py --data-dir DIR [--steps 250] [--batch 32] [--lr 1e-4] [--head-lr 1e-3] [--seeds 1 2]
                               [--init transformers|torch] [--loss crf]

DIR has snips-train.jsonl and snips-dev.jsonl (tokens, slots, intent). Both sides start from the same body and have the
same steps, batch size, learning rate curve, weight decay and dropout, and heads with the initialization that
transformers gives its own classifiers: normal with the standard deviation `initializer_range` of the body, bias 0.
`--init torch` leaves the heads of the plain loop as torch.nn.Linear makes them: 1.5 times as large. A step of the plain
loop reads one batch for both heads, padded, and adds both losses; the two tasks of weft are one source, so a step reads
the same number of rows once. Dev scores: intent accuracy, and entity F1 by the seqeval package for both sides.
"""

import argparse
import json
import os
import tempfile
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

os.environ.setdefault("HF_HUB_OFFLINE", "1")
os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")

import numpy as np
import pyarrow.parquet as pq
import torch
from seqeval.metrics import f1_score
from torch import Tensor, nn
from transformers import AutoModel, AutoTokenizer, get_linear_schedule_with_warmup

import weft
from weft.bodies.source import find_body

BODY = "packaged:minilm-l6"
DECAY = 0.01
DROPOUT = 0.1
LONGEST = 64
IGNORED = -100
Row = dict[str, Any]


@dataclass(frozen=True)
class Settings:
    """What both sides share."""

    steps: int
    batch: int
    lr: float
    head_lr: float
    seed: int


def read(path: Path) -> list[Row]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


class Plain(nn.Module):
    """A body with two linear layers: one on [CLS], one on every token."""

    def __init__(self, intents: int, slots: int, init: str) -> None:
        super().__init__()
        self.body = AutoModel.from_pretrained(find_body(BODY), add_pooling_layer=False)
        width = self.body.config.hidden_size
        self.dropout = nn.Dropout(DROPOUT)
        self.intent, self.slot = nn.Linear(width, intents), nn.Linear(width, slots)
        if init == "transformers":
            for head in (self.intent, self.slot):
                nn.init.normal_(head.weight, std=self.body.config.initializer_range)
                nn.init.zeros_(head.bias)

    def forward(self, inputs: Any) -> tuple[Tensor, Tensor]:
        states = self.dropout(self.body(**inputs).last_hidden_state)
        return self.intent(states[:, 0]), self.slot(states)


def encode(tokenizer: Any, rows: list[Row], slots: dict[str, int]) -> tuple[Any, Tensor]:
    """Padded inputs, and the number of the tag of each word at its first token."""
    inputs = tokenizer(
        [row["tokens"] for row in rows],
        is_split_into_words=True,
        padding=True,
        truncation=True,
        max_length=LONGEST,
        return_tensors="pt",
    )
    target = torch.full_like(inputs["input_ids"], IGNORED)
    for i, row in enumerate(rows):
        before = None
        for at, word in enumerate(inputs.word_ids(i)):
            if word is not None and word != before:
                target[i, at] = slots.get(row["slots"][word], 0)
            before = word
    return inputs, target


def groups(model: Plain, given: Settings) -> list[dict[str, Any]]:
    """Weight decay for matrices only, and a rate of their own for the heads."""
    found = []
    for part, lr in ((model.body, given.lr), (nn.ModuleList([model.intent, model.slot]), given.head_lr)):
        matrices = [p for p in part.parameters() if p.ndim > 1]
        others = [p for p in part.parameters() if p.ndim < 2]
        found += [
            {"params": matrices, "lr": lr, "weight_decay": DECAY},
            {"params": others, "lr": lr, "weight_decay": 0},
        ]
    return found


def plain_loop(train: list[Row], dev: list[Row], given: Settings, init: str) -> dict[str, float]:
    torch.manual_seed(given.seed)
    intents = {name: i for i, name in enumerate(sorted({row["intent"] for row in train}))}
    names = ["O", *sorted({tag for row in train for tag in row["slots"]} - {"O"})]
    slots = {name: i for i, name in enumerate(names)}
    tokenizer = AutoTokenizer.from_pretrained(find_body(BODY))
    model = Plain(len(intents), len(slots), init).train()
    optimizer = torch.optim.AdamW(groups(model, given))
    curve = get_linear_schedule_with_warmup(optimizer, 0, given.steps)
    order = np.random.default_rng(given.seed).permutation(len(train))
    tokens, start = 0, time.perf_counter()
    for step in range(given.steps):
        rows = [train[order[(step * given.batch + k) % len(train)]] for k in range(given.batch)]
        inputs, target = encode(tokenizer, rows, slots)
        by_text, by_token = model(inputs)
        wanted = torch.tensor([intents[row["intent"]] for row in rows])
        loss = nn.functional.cross_entropy(by_text, wanted)
        loss = loss + nn.functional.cross_entropy(by_token.flatten(0, 1), target.flatten(), ignore_index=IGNORED)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        curve.step()
        tokens += int(inputs["attention_mask"].sum())
    seconds = time.perf_counter() - start
    model.eval()
    right, found = 0, []
    with torch.no_grad():
        for at in range(0, len(dev), 64):
            rows = dev[at : at + 64]
            inputs, target = encode(tokenizer, rows, slots)
            by_text, by_token = model(inputs)
            chosen = by_text.argmax(dim=1).tolist()
            right += sum(intents.get(row["intent"]) == own for row, own in zip(rows, chosen, strict=True))
            for own, true in zip(by_token.argmax(dim=2), target, strict=True):
                found.append([names[i] for i in own[true != IGNORED].tolist()])
    return {
        "intent_accuracy": right / len(dev),
        "entity_f1": float(f1_score([row["slots"] for row in dev], found)),
        "seconds": seconds,
        "tokens": tokens,
    }


def with_weft(folder: Path, dev: list[Row], given: Settings, loss: str) -> dict[str, float]:
    files = {split: str(folder / f"snips-{split}.jsonl") for split in ("train", "dev")}
    data = files | {"text": "tokens"}
    recipe = {
        "name": "snips",
        "body": BODY,
        "seed": given.seed,
        "epochs": 1,
        "max_length": LONGEST,
        "dropout": DROPOUT,
        "optimizer": {"lr": given.lr, "head_lr": given.head_lr, "weight_decay": DECAY},
        "log": {"train_rows": 0},
        "tasks": {
            "intent": {"kind": "classification", "data": data | {"label": "intent"}, "batch_size": given.batch},
            "slots": {"kind": "tags", "data": data | {"label": "slots"}, "batch_size": given.batch, "loss": loss},
        },
    }
    with tempfile.TemporaryDirectory() as out:
        run = Path(out) / "run"
        weft.train(recipe, out=run, steps=given.steps)
        result = json.loads((run / "result.json").read_text(encoding="utf-8"))
        found = pq.read_table(run / "predictions/slots.parquet").column("prediction").to_pylist()
    scored = float(f1_score([row["slots"] for row in dev], found))
    scores = result["dev"]
    assert abs(scored - scores["slots"]["entity-f1"]) < 1e-9, "weft's own entity F1 is seqeval's"
    return {
        "intent_accuracy": scores["intent"]["accuracy"],
        "entity_f1": scored,
        "seconds": result["seconds"],
        "tokens": result["tokens"],
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data-dir", type=Path, required=True)
    parser.add_argument("--steps", type=int, default=250)
    parser.add_argument("--batch", type=int, default=32)
    parser.add_argument("--lr", type=float, default=1e-4)
    parser.add_argument("--head-lr", type=float, help="rate of the heads; defaults to --lr")
    parser.add_argument("--seeds", type=int, nargs="+", default=[11711])
    parser.add_argument("--init", choices=["transformers", "torch"], default="transformers")
    parser.add_argument("--loss", choices=["cross-entropy", "crf"], default="cross-entropy")
    asked = parser.parse_args()
    train, dev = (read(asked.data_dir / f"snips-{split}.jsonl") for split in ("train", "dev"))
    print(f"{'':14}{'seed':>7}{'intent accuracy':>16}{'entity F1':>11}{'seconds':>9}{'tokens':>9}")
    for seed in asked.seeds:
        given = Settings(asked.steps, asked.batch, asked.lr, asked.head_lr or asked.lr, seed)
        sides = {
            "transformers": plain_loop(train, dev, given, asked.init),
            "weft": with_weft(asked.data_dir, dev, given, asked.loss),
        }
        for name, own in sides.items():
            scores = f"{own['intent_accuracy']:16.3f}{own['entity_f1']:11.3f}"
            print(f"{name:14}{seed:7}{scores}{own['seconds']:9.0f}{own['tokens']:9,}")
        print(json.dumps(sides | asdict(given) | {"init": asked.init, "loss": asked.loss}), flush=True)


if __name__ == "__main__":
    main()

"""Training speed beside Hugging Face's Trainer and sentence-transformers: the same body, examples, steps and dropout.

    python benchmarks/train_speed.py [--data-dir DIR] [--steps 20] [--rounds 3]
    python benchmarks/train_speed.py --shape bert-base|roberta-base|modernbert-base|deberta-v3-small [...]

Examples per second. The Trainer gets what it does best by itself: dynamic padding to the longest text of a batch and
fused AdamW; a second Trainer also groups texts by length. Each of its steps holds the same 48 examples as a step of
weft's (the grouping one: as many, of any task). share_of_matmul is weft's useful arithmetic, 6 x (weights of the
body's matrices) x real tokens, against what torch's matrix multiply reaches on these shapes in the same run.
With --shape the body has random weights, and sentence-transformers is left out.
"""

import argparse
import os
import tempfile
import time
from pathlib import Path
from typing import Any

os.environ.setdefault("HF_HUB_OFFLINE", "1")
os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")

import torch
from shapes import SHAPES, write_shape
from sides import Ratio, alternate, recipe_for, show
from torch import nn
from torch.utils.data import Dataset as TorchDataset
from transformers import TrainerCallback

from weft.bodies.body import Body
from weft.bodies.linear import multiply
from weft.bodies.source import find_body
from weft.bodies.weights import load_body
from weft.build import assemble
from weft.foundation.values import Part
from weft.recipes.assembly import Assembly
from weft.recipes.recipe import load_recipe

ABOUT = {
    "vs_trainer_default": "examples/s against the Trainer with dynamic padding",
    "vs_trainer_grouped": "examples/s against the Trainer that also groups by length",
    "vs_sentence_transformers": "pairs/s against SentenceTransformerTrainer, cosine loss",
    "share_of_matmul": "useful arithmetic against the matrix multiply alone",
}
QUIET: dict[str, Any] = {
    "learning_rate": 1e-5,
    "report_to": [],
    "save_strategy": "no",
    "logging_strategy": "no",
    "disable_tqdm": True,
    "use_cpu": True,
    "dataloader_pin_memory": False,
}


class Clock(TrainerCallback):  # type: ignore[misc]
    """From when to when a Trainer took steps: all of them, because grouping by length takes the longest texts first."""

    start = end = 0.0

    def on_step_begin(self, *_: Any, **__: Any) -> None:
        self.start = self.start or time.perf_counter()

    def on_step_end(self, *_: Any, **__: Any) -> None:
        self.end = time.perf_counter()


class Rows(TorchDataset):  # type: ignore[type-arg]
    """The examples of weft's windows, one after the other."""

    def __init__(self, made: Assembly, steps: int) -> None:
        self.items = []
        for step in range(steps):
            for part in made.plan.window(step).parts:
                self.items += [self._item(made, part, int(row)) for row in part.rows]

    def _item(self, made: Assembly, part: Part, row: int) -> dict[str, Any]:
        data = made.data[part.task].train
        sequence = data.sequences(row)[0]
        ids, of_second = sequence.ids, sequence.of_second
        segments = [0] * (len(ids) - of_second) + [1] * of_second
        task = list(made.data).index(part.task)
        # "length" is what the Trainer groups by
        return {
            "input_ids": ids.tolist(),
            "token_type_ids": segments,
            "length": len(ids),
            "task": task,
            "labels": float(data.targets[row]),
        }

    def __len__(self) -> int:
        return len(self.items)

    def __getitem__(self, i: int) -> dict[str, Any]:
        return self.items[i]


def collate(items: list[dict[str, Any]]) -> dict[str, torch.Tensor]:
    longest = max(len(item["input_ids"]) for item in items)

    def padded(key: str) -> torch.Tensor:
        return torch.tensor([item[key] + [0] * (longest - len(item[key])) for item in items])

    mask = torch.tensor([[1] * len(i["input_ids"]) + [0] * (longest - len(i["input_ids"])) for i in items])
    return {
        "input_ids": padded("input_ids"),
        "token_type_ids": padded("token_type_ids"),
        "attention_mask": mask,
        "task": torch.tensor([item["task"] for item in items]),
        "labels": torch.tensor([item["labels"] for item in items]),
    }


class PlainMultitask(nn.Module):
    """transformers' own body, mean pooling and one linear head per task, as a user of the Trainer would write it."""

    def __init__(self, folder: Path, outputs: list[int], dropout: float) -> None:
        super().__init__()
        from transformers import AutoModel

        body = load_body(folder)
        without_pooler = {} if body.pooler is None else {"add_pooling_layer": False}
        self.body = AutoModel.from_pretrained(folder, **without_pooler)
        self.has_types = body.has_segments
        self.dropout = nn.Dropout(dropout)
        self.heads = nn.ModuleList(nn.Linear(self.body.config.hidden_size, n) for n in outputs)

    def forward(
        self, input_ids: Any, token_type_ids: Any, attention_mask: Any, task: Any, labels: Any
    ) -> dict[str, Any]:
        types = {"token_type_ids": token_type_ids} if self.has_types else {}
        hidden = self.body(input_ids, attention_mask=attention_mask, **types).last_hidden_state
        mask = attention_mask[..., None].to(hidden.dtype)
        pooled = self.dropout((hidden * mask).sum(1) / mask.sum(1))
        total = pooled.new_zeros(())
        for number, head in enumerate(self.heads):
            own = task == number
            if own.any():
                output = head(pooled[own])
                if output.shape[1] == 1:
                    total = total + nn.functional.mse_loss(output[:, 0], labels[own])
                else:
                    total = total + nn.functional.cross_entropy(output, labels[own].long())
        return {"loss": total}


def weft_side(made: Assembly, steps: int) -> tuple[float, float]:
    """Examples and tokens per second."""
    made.network.train()
    examples = tokens = 0
    start = time.perf_counter()
    for step in range(steps):
        window = made.plan.window(step)
        tokens += made.step(window, 1e-5).tokens
        examples += sum(len(part.rows) for part in window.parts)
    seconds = time.perf_counter() - start
    return examples / seconds, tokens / seconds


def trainer_side(folder: Path, made: Assembly, steps: int, grouped: bool) -> float:
    from transformers import Trainer, TrainingArguments

    outputs = [len(data.labels.names) or 1 for data in made.data.values()]
    with tempfile.TemporaryDirectory() as out:
        order = "group_by_length" if grouped else "sequential"
        arguments = TrainingArguments(
            out,
            per_device_train_batch_size=48,
            max_steps=steps,
            remove_unused_columns=False,
            train_sampling_strategy=order,
            **QUIET,
        )
        clock = Clock()
        trainer = Trainer(
            PlainMultitask(folder, outputs, made.recipe.dropout),
            arguments,
            data_collator=collate,
            train_dataset=Rows(made, steps),
            callbacks=[clock],
        )
        trainer.train()
    return 48 * steps / (clock.end - clock.start)


def sentence_transformers_side(folder: Path, pairs: Assembly, steps: int) -> float:
    """CosineSimilarityLoss on the similarity pairs, 16 a step."""
    from datasets import Dataset
    from sentence_transformers import (
        SentenceTransformer,
        SentenceTransformerTrainer,
        SentenceTransformerTrainingArguments,
    )
    from sentence_transformers.sentence_transformer.losses import CosineSimilarityLoss

    data = pairs.data["similarity"].train
    rows = [int(row) for step in range(steps) for part in pairs.plan.window(step).parts for row in part.rows]
    texts = [data.texts(row) for row in rows]
    table = Dataset.from_dict(
        {"a": [a for a, _ in texts], "b": [b for _, b in texts], "score": [float(data.targets[row]) for row in rows]}
    )
    model = SentenceTransformer(str(folder), device="cpu")
    model.max_seq_length = 128
    clock = Clock()
    with tempfile.TemporaryDirectory() as out:
        arguments = SentenceTransformerTrainingArguments(out, per_device_train_batch_size=16, max_steps=steps, **QUIET)
        trainer = SentenceTransformerTrainer(
            model=model, args=arguments, train_dataset=table, loss=CosineSimilarityLoss(model), callbacks=[clock]
        )
        trainer.train()
    return 16 * steps / (clock.end - clock.start)


def products(body: Body) -> list[tuple[int, int]]:
    """(inputs, outputs) of the linear layers of one layer."""
    return [(m.in_features, m.out_features) for m in body.layers[0].modules() if isinstance(m, nn.Linear)]


def matmul_rate(tokens: int, shapes: list[tuple[int, int]]) -> float:
    """Floating-point operations per second on the products of one layer, forward and backward."""
    x = {n: torch.randn(tokens, n) for n in {a for a, _ in shapes} | {b for _, b in shapes}}
    weights = [torch.randn(b, a) for a, b in shapes]
    best = 0.0
    for _ in range(12):
        start = time.perf_counter()
        for (a, b), weight in zip(shapes, weights, strict=True):
            multiply(x[a], weight)
            multiply(x[b], weight.T)
            multiply(x[b].T, x[a].T)
        flops = sum(6 * tokens * a * b for a, b in shapes)
        best = max(best, flops / (time.perf_counter() - start))
    return best


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data-dir", type=Path)
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--shape", choices=list(SHAPES))
    options = parser.parse_args()
    if options.shape is None:
        compare(options, find_body("packaged:minilm-l6"))
        return
    with tempfile.TemporaryDirectory() as folder:
        compare(options, write_shape(options.shape, Path(folder)))


def compare(options: argparse.Namespace, folder: Path) -> None:
    name, settings = recipe_for(options.data_dir)
    made = assemble(load_recipe(name, settings=settings, data_dir=options.data_dir, body=str(folder)))
    body = made.network.body
    rates: dict[str, list[float]] = {"tokens": [], "matmul": []}

    def ours() -> float:
        examples, tokens = weft_side(made, options.steps)
        rates["tokens"].append(tokens)
        rates["matmul"].append(matmul_rate(1400, products(body)))
        return examples

    sides = {
        "weft": ours,
        "trainer_default": lambda: trainer_side(folder, made, options.steps, grouped=False),
        "trainer_grouped": lambda: trainer_side(folder, made, options.steps, grouped=True),
    }
    if options.shape is None:
        pairs = assemble_pairs(options, name, settings)
        sides |= {
            "weft_pairs": lambda: weft_side(pairs, options.steps)[0],
            "sentence_transformers": lambda: sentence_transformers_side(folder, pairs, options.steps),
        }
    measured = alternate(sides, options.rounds)
    matrices = body.shape.layers * sum(inputs * outputs for inputs, outputs in products(body))
    useful = [6 * matrices * tokens for tokens in rates["tokens"]]
    ratios = {
        "vs_trainer_default": Ratio.of(measured["weft"], measured["trainer_default"]),
        "vs_trainer_grouped": Ratio.of(measured["weft"], measured["trainer_grouped"]),
        "share_of_matmul": Ratio.of(useful, rates["matmul"]),
    }
    if options.shape is None:
        ratios["vs_sentence_transformers"] = Ratio.of(measured["weft_pairs"], measured["sentence_transformers"])
    further = {
        "examples_per_second": {name: round(max(rounds), 1) for name, rounds in measured.items()},
        "useful_gflops": round(max(useful) / 1e9, 1),
        "matmul_gflops": round(max(rates["matmul"]) / 1e9, 1),
    }
    show(ratios, ABOUT, further)


def assemble_pairs(options: argparse.Namespace, name: str, settings: list[str]) -> Assembly:
    """The similarity task alone, on vectors of each text."""
    bi = ["tasks.similarity.reading=bi", "tasks.similarity.head=cosine", "tasks.similarity.pooling=mean", "dropout=0"]
    return assemble(
        load_recipe(
            name,
            settings=[*settings, *bi, 'schedule={ name = "sequential", tasks = ["similarity"] }'],
            data_dir=options.data_dir,
        )
    )


if __name__ == "__main__":
    main()

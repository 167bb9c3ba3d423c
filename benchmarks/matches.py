"""What in-batch negatives learn from 3,000 pairs, against sentence-transformers' MultipleNegativesRankingLoss.

    python benchmarks/matches.py --data-dir FOLDER [--pairs 3000] [--steps 100] [--queries 500] [--candidates 10000]

FOLDER holds quora-train.csv and quora-dev.csv. Duplicates of the train file are the pairs; queries are first texts of
duplicates in the dev file, and their second texts are among the candidates. Both sides start from the packaged body,
get the same batches in the same order, the same rate and schedule, and are scored on the same candidates. The packaged
body was trained on Quora's duplicates among other data, so it is good before the first step; the figures compare the
two sides, and tell nothing about texts that a body has never seen.
"""

import argparse
import csv
import json
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch

import weft
from weft.bodies.source import find_body
from weft.build import assemble
from weft.evaluation.bootstrap import draws, interval
from weft.recipes.recipe import parse_recipe

BODY = "packaged:minilm-l6"
RATE, WARMUP, BATCH = 2e-5, 10, 32
DEPTH = 10
Pair = tuple[str, str]


def duplicates(path: Path) -> list[Pair]:
    with path.open(newline="", encoding="utf-8") as handle:
        rows = csv.DictReader(handle, delimiter="\t")
        return [(row["sentence1"], row["sentence2"]) for row in rows if float(row["is_duplicate"] or 0) == 1]


def write_pairs(path: Path, pairs: list[Pair]) -> str:
    lines = [json.dumps({"text": one, "text2": two}) for one, two in pairs]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return str(path)


def recall(embed: Callable[[list[str]], np.ndarray], queries: list[Pair], candidates: list[str]) -> np.ndarray:
    """[queries] whether the second text is among the ten nearest candidates; the query's own text is none."""
    places = {text: number for number, text in enumerate(candidates)}
    first, second = (_unit(embed(texts)) for texts in ([one for one, _ in queries], candidates))
    scores = first @ second.T
    for row, (one, two) in enumerate(queries):
        if one in places and one != two:
            scores[row, places[one]] = -np.inf
    own = scores[np.arange(len(queries)), [places[two] for _, two in queries]]
    return np.asarray((scores > own[:, None]).sum(axis=1) < DEPTH, dtype=np.float64)


def _unit(vectors: np.ndarray) -> np.ndarray:
    return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


def told(hits: np.ndarray) -> dict[str, object]:
    values = np.array([counts @ hits / counts.sum() for counts in draws(len(hits), "matches")])
    found = interval(values)
    assert found is not None
    return {"recall@10": round(float(hits.mean()), 4), "95 %": [round(found.low, 4), round(found.high, 4)]}


def sentence_transformer() -> "object":
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.base.modules import Transformer
    from sentence_transformers.sentence_transformer.modules import Pooling

    encoder = Transformer(str(find_body(BODY)))
    return SentenceTransformer(modules=[encoder, Pooling(encoder.get_embedding_dimension(), "mean")], device="cpu")


def train_theirs(batches: list[list[Pair]]) -> Callable[[list[str]], np.ndarray]:
    from sentence_transformers.sentence_transformer.losses import MultipleNegativesRankingLoss
    from transformers import get_linear_schedule_with_warmup

    torch.manual_seed(0)
    model = sentence_transformer()
    loss = MultipleNegativesRankingLoss(model, scale=20.0)
    optimizer = torch.optim.AdamW(model.parameters(), lr=RATE, weight_decay=0.0)
    schedule = get_linear_schedule_with_warmup(optimizer, WARMUP, len(batches))
    model.train()
    for pairs in batches:
        features = [model.preprocess(list(side)) for side in zip(*pairs, strict=True)]
        optimizer.zero_grad()
        loss(features, None).backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        schedule.step()
    return lambda texts: np.asarray(model.eval().encode(texts, batch_size=64))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data-dir", type=Path, required=True)
    for name, value in (("pairs", 3000), ("steps", 100), ("queries", 500), ("candidates", 10_000)):
        parser.add_argument(f"--{name}", type=int, default=value)
    given = parser.parse_args()
    train = duplicates(given.data_dir / "quora-train.csv")
    dev = duplicates(given.data_dir / "quora-dev.csv")
    queries = list({one: (one, two) for one, two in dev}.values())[: given.queries]
    others = [text for pair in (*dev, *train[given.pairs :]) for text in reversed(pair)]
    candidates = list(dict.fromkeys([two for _, two in queries] + others))[: given.candidates]
    report: dict[str, object] = {"queries": len(queries), "candidates": len(candidates), "steps": given.steps}
    with tempfile.TemporaryDirectory() as folder:
        pairs = train[: given.pairs]
        data = {"train": write_pairs(Path(folder) / "train.jsonl", pairs), "text2": "text2"}
        data["dev"] = write_pairs(Path(folder) / "dev.jsonl", queries[:100])
        content = {
            "name": "matches",
            "body": BODY,
            "epochs": 1,
            "dropout": 0.0,
            "tasks": {"match": {"kind": "matches", "pooling": "mean", "batch_size": BATCH, "data": data}},
            "optimizer": {"lr": RATE, "warmup": WARMUP, "curve": "linear", "weight_decay": 0.0, "clip": 1.0},
            "log": {"train_rows": 0},
        }
        plan = assemble(parse_recipe(content, "matches"), steps=given.steps, device="cpu").plan
        batches = [[pairs[row] for row in plan.window(step).parts[0].rows] for step in range(given.steps)]
        start = time.perf_counter()
        model = weft.train(content, Path(folder) / "run", steps=given.steps, device="cpu", progress=False)
        report["seconds of weft"] = round(time.perf_counter() - start, 1)
        start = time.perf_counter()
        theirs = train_theirs(batches)
        report["seconds of sentence-transformers"] = round(time.perf_counter() - start, 1)
        before = sentence_transformer()
        hits = {
            "before": recall(lambda texts: np.asarray(before.encode(texts, batch_size=64)), queries, candidates),
            "weft": recall(lambda texts: np.asarray(model.embed(texts, "match")), queries, candidates),
            "sentence-transformers": recall(theirs, queries, candidates),
        }
    report |= {name: told(own) for name, own in hits.items()}
    for one, other in (("before", "weft"), ("sentence-transformers", "weft")):
        gaps = hits[other] - hits[one]
        values = np.array([counts @ gaps / counts.sum() for counts in draws(len(gaps), "matches")])
        found = interval(values)
        assert found is not None
        report[f"{other} - {one}"] = [round(float(x), 4) for x in (gaps.mean(), found.low, found.high)]
    print(json.dumps(report, indent=2))


if __name__ == "__main__":
    main()

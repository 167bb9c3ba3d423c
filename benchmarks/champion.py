"""Train the recipe `champion` with several seeds and score it on dev rows that selected nothing.

    python benchmarks/champion.py --data-dir DIR --out FOLDER [--body FOLDER]... [--seeds 1 2 3] [--save FILE]
                                  [--name NAME] [--set KEY=VALUE]... [--speed]

DIR has the files of the presets sst5, quora and stsb, and more/sst-phrases-train.tsv. The dev rows are split in halves:
even rows (FOLDER/select) choose the best epoch of each run, and chose the recipe; odd rows (FOLDER/report) are scored
here, once. Bodies default to packaged:minilm-l6. FOLDER keeps the runs: finished ones are not repeated, interrupted
ones resume. --set changes the recipe, --name then names the result; a teacher may be a run in FOLDER/runs, which the
result calls RUNS. --save adds the result to a JSON file, which docs/results.py reads. --speed also measures texts per
second of the tasks' predictions, round by round for all results in the file whose runs are in FOLDER.

It prints the commands, a table and one JSON line.
"""

import argparse
import json
import shlex
import statistics
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import weft
from weft.kinds.truth import Truth
from weft.study.outcomes import Outcomes, RunOutcome, TaskOutcome
from weft.study.statistics import estimate

PACKAGED = "packaged:minilm-l6"
PRIMARY = {"sentiment": "accuracy", "paraphrase": "accuracy", "similarity": "pearson"}
ROUNDS, TEXTS = 5, 550


def write_halves(data: Path, out: Path) -> dict[str, Path]:
    """Write folders with the even and the odd dev rows, and links to everything else."""
    halves = {"select": 0, "report": 1}
    for half, first in halves.items():
        (out / half).mkdir(parents=True, exist_ok=True)
        for file in data.iterdir():
            target = out / half / file.name
            if file.stem.endswith("-dev"):
                header, *rows = file.read_text(encoding="utf-8").split("\n")
                rows = [row for row in rows if row]
                target.write_text("\n".join([header, *rows[first::2]]) + "\n", encoding="utf-8")
            elif not target.exists():
                target.symlink_to(file)
    return {half: out / half for half in halves}


def train(run: Path, data: Path, body: str, seed: int, settings: list[str]) -> None:
    """Train a run, or finish it, unless it is complete."""
    if (run / "result.json").exists():
        return
    changes = [part for setting in settings for part in ("--set", setting)]
    command = ["weft", "train", "champion", "--data-dir", str(data), "--body", body, "--seed", str(seed), *changes]
    command += ["-o", str(run), *(["--resume"] if run.exists() else [])]
    print(f"$ {shlex.join(command)}", flush=True)
    subprocess.run([sys.executable, "-m", *command], check=True)


def outcome(run: Path, data: Path) -> RunOutcome:
    """Predict the dev rows in a folder with a trained model."""
    model = weft.load(run)
    rows = model.datasets(list(PRIMARY), "dev", data)
    found = model.evaluate(data_dir=data)
    tasks = {}
    for task, metric in PRIMARY.items():
        labels = model.labels[task]
        truth = Truth.of(labels, rows[task].targets)
        tasks[task] = TaskOutcome(truth, labels.in_units(found.predictions[task]), (metric,))
    result = json.loads((run / "result.json").read_text(encoding="utf-8"))
    cost = {key: float(result[key]) for key in ("seconds", "cpu_seconds", "tokens", "peak_memory")}
    return RunOutcome(tasks, {}, cost, {})


def measure(outcomes: Outcomes) -> dict[str, Any]:
    """Mean, interval and every seed of each metric."""
    found = {}
    for metric in [*(f"{task}.{name}" for task, name in PRIMARY.items()), "overall"]:
        measured = outcomes.measured("champion", metric)
        whole = estimate(measured)
        low, high = (None, None) if whole is None else whole.within(-1.0 if "pearson" in metric else 0.0, 1.0)
        seeds = dict(zip(map(str, measured.seeds), measured.values.tolist(), strict=True))
        found[metric] = {"mean": float(measured.values.mean()), "low": low, "high": high, "seeds": seeds}
    return found


def speeds(runs: dict[str, Path], data: Path) -> dict[str, float]:
    """Median texts per second of the task sentiment, the models in turn in every round."""
    models = {name: weft.load(run) for name, run in runs.items()}
    header, *rows = [line.split("\t") for line in (data / "ids-sst-dev.csv").read_text(encoding="utf-8").split("\n")]
    texts = [row[header.index("sentence")] for row in rows[:TEXTS] if len(row) == len(header)]
    found: dict[str, list[float]] = {name: [] for name in models}
    for turn in range(ROUNDS + 1):
        for name, model in models.items():
            begun = time.perf_counter()
            model.predict("sentiment", texts)
            if turn:  # the first round compiles kernels
                found[name].append(len(texts) / (time.perf_counter() - begun))
    return {name: statistics.median(rates) for name, rates in found.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data-dir", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--body", action="append", default=None)
    parser.add_argument("--seeds", type=int, nargs="+", default=[1, 2, 3])
    parser.add_argument("--name", default=None, help="of the result; defaults to the body's name")
    parser.add_argument("--set", action="append", default=[], dest="settings")
    parser.add_argument("--save", type=Path, default=None)
    parser.add_argument("--speed", action="store_true")
    given = parser.parse_args()
    out = given.out.resolve()
    halves = write_halves(given.data_dir.resolve(), out)
    known: dict[str, Any] = {}
    if given.save and given.save.exists():
        known = json.loads(given.save.read_text(encoding="utf-8"))
    for body in given.body or [PACKAGED]:
        name = given.name or (body if body == PACKAGED else Path(body).name)
        runs = {seed: out / "runs" / f"{name.replace(':', '-')}-{seed}" for seed in given.seeds}
        for seed, run in runs.items():
            train(run, halves["select"], body, seed, given.settings)
        outcomes = Outcomes({("champion", seed): outcome(run, halves["report"]) for seed, run in runs.items()})
        content = json.loads((runs[given.seeds[0]] / "result.json").read_text(encoding="utf-8"))
        config = json.loads((runs[given.seeds[0]] / "model" / "config.json").read_text(encoding="utf-8"))
        known[name] = {
            "body": body if body == PACKAGED else Path(body).name,
            "settings": [setting.replace(str(out / "runs"), "RUNS") for setting in given.settings],
            "layers": config["num_hidden_layers"],
            "parameters": content["parameters"],
            "steps": content["steps"],
            "rows": {task: len(own.predictions) for task, own in outcomes.tasks("champion").items()},
            "scores": measure(outcomes),
            "cpu_seconds": dict(
                zip(map(str, given.seeds), outcomes.cost("champion", "cpu_seconds").tolist(), strict=True)
            ),
        }
    if given.speed:
        folders = {name: out / "runs" / f"{name.replace(':', '-')}-{given.seeds[0]}" for name in known}
        present = {name: run for name, run in folders.items() if run.exists()}
        for name, rate in speeds(present, halves["report"]).items():
            known[name]["texts_per_second"] = rate
    print("\n| model | layers | sentiment | paraphrase | similarity | overall | CPU minutes |")
    print("| --- | --- | --- | --- | --- | --- | --- |")
    for name, own in known.items():
        scores = [own["scores"][f"{task}.{metric}"]["mean"] for task, metric in PRIMARY.items()]
        whole = own["scores"]["overall"]
        span = f" ({whole['low']:.3f} to {whole['high']:.3f})" if whole["low"] is not None else ""
        minutes = statistics.mean(own["cpu_seconds"].values()) / 60
        cells = " | ".join(f"{score:.3f}" for score in scores)
        print(f"| {name} | {own['layers']} | {cells} | {whole['mean']:.3f}{span} | {minutes:.0f} |")
    if given.save:
        given.save.write_text(json.dumps(known, indent=2) + "\n", encoding="utf-8")
    print(json.dumps(known))


if __name__ == "__main__":
    main()

"""Banking77 added to a trained model with three tasks, in each mode of `weft add`, and once with harm.

    python benchmarks/growing.py --data-dir DIR --out FOLDER [--steps 300] [--distill-lr 2e-6] [--only distill]

DIR has the files of the presets sst5, quora and stsb, and more/banking77-*.csv and more/goemotions-train.csv. The
three-task model is trained first (`weft train plain`, 300 steps). FOLDER keeps all runs: those that are complete
are not repeated, so that a change of one mode needs that mode alone. The gate scores all dev rows of the old tasks,
with --max-drop 0.01.

    exact      the new head alone
    rehearse   the new head alone, then everything on the rows of all tasks
    distill    the same, with the old model's answers to 3,000 texts and pairs instead of the old rows; the texts are
               those of Banking77 and 5,000 of GoEmotions, without their labels
    harm       the body on Banking77 alone, with a high rate: what the gate is for

It prints the commands, a table and one JSON line.
"""

import argparse
import csv
import json
import shlex
import subprocess
import sys
from itertools import islice
from pathlib import Path
from typing import Any

RECIPE = """\
name = "banking"
epochs = 3

[tasks.banking]
kind = "classification"
data = {{ train = "{more}/banking77-train.csv", dev = "{more}/banking77-dev.csv", label = "intent" }}
pooling = "mean"
batch_size = 32

[[phases]]             # first the new head alone, so that its random start does not disturb the body
epochs = 2
trainable = "frozen"
lr = 5e-3
schedule = {{ name = "batch-round-robin", tasks = ["banking"] }}

[[phases]]
epochs = 1

[optimizer]
lr = {lr}
weight_decay = 0.01
clip = 1.0
"""
ALONE = 'phases=[{ epochs = 3, lr = 1e-3, schedule = { name = "batch-round-robin", tasks = ["banking"] } }]'
TEXTS, ANSWERS = 5000, 3000
CLOSED = 3


def run(*arguments: Any) -> int:
    """Run weft and return its exit code: 0, or 3 for a closed gate."""
    command = ["weft", *map(str, arguments)]
    print(f"$ {shlex.join(command)}", flush=True)
    code = subprocess.run([sys.executable, "-m", *command], stdout=subprocess.DEVNULL, check=False).returncode
    if code not in (0, CLOSED):
        raise SystemExit(code)
    return code


def write_texts(source: Path, target: Path) -> None:
    """The first texts of a file, without its labels."""
    with source.open(encoding="utf-8", newline="") as handle, target.open("w", encoding="utf-8", newline="") as out:
        writer = csv.writer(out)
        writer.writerow(["text"])
        writer.writerows([row["text"]] for row in islice(csv.DictReader(handle), TEXTS))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data-dir", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--steps", type=int, default=300, help="of each run; that with harm has a sixth of them")
    parser.add_argument("--rehearse-lr", type=float, default=2e-6)
    parser.add_argument("--distill-lr", type=float, default=2e-6)
    parser.add_argument("--only", nargs="*", default=["exact", "rehearse", "distill", "harm"])
    given = parser.parse_args()
    data, out = given.data_dir.resolve(), given.out.resolve()
    out.mkdir(parents=True, exist_ok=True)
    (out / "banking.toml").write_text(RECIPE.format(more=data / "more", lr=given.distill_lr), encoding="utf-8")
    write_texts(data / "more" / "goemotions-train.csv", out / "texts.csv")
    if not (out / "three" / "result.json").exists():
        train = ("--data-dir", data, "--budget", "steps=300", "--set", "dev_rows=1200")
        run("train", "plain", *train, "-o", out / "three")
    steps = f"steps={given.steps}"
    modes: dict[str, tuple[Any, ...]] = {
        "exact": ("--keep", "exact", "--budget", steps),
        "rehearse": ("--keep", "rehearse", "--budget", steps, "--set", f"optimizer.lr={given.rehearse_lr}"),
        "distill": (
            *("--keep", "distill", "--budget", steps),
            *("--unlabelled", out / "texts.csv", "--answers", ANSWERS),
        ),
        "harm": ("--keep", "rehearse", "--budget", f"steps={max(1, given.steps // 6)}", "--set", ALONE),
    }
    found: dict[str, Any] = {}
    for mode in given.only:
        result = out / mode / "result.json"
        complete = result.exists() and "gate" in json.loads(result.read_text(encoding="utf-8"))
        more = ("--max-drop", 0.01, "--set", "dev_rows=1000", *(["--resume"] if (out / mode).exists() else []))
        code = (
            None if complete else run("add", out / "three", out / "banking.toml", "-o", out / mode, *modes[mode], *more)
        )
        content = json.loads(result.read_text(encoding="utf-8"))
        answers, gate = content["answers"].values(), content["gate"]
        found[mode] = {
            "banking": content["dev"]["banking"]["accuracy"],
            "identical": sum(own["before"] == own["after"] for own in answers),
            "open": not any(own["closes"] for own in gate["tasks"]),
            "seconds": round(content["seconds"]),
            "tasks": {own["task"]: {key: own[key] for key in ("old", "new", "low", "high")} for own in gate["tasks"]},
        }
        assert code is None or (code == CLOSED) != found[mode]["open"]
    names = list(next(iter(found.values()))["tasks"])
    print(f"\n| mode | Banking77 | {' | '.join(names)} | identical answers | gate |")
    print(f"| --- | --- | {' | '.join(['---'] * len(names))} | --- | --- |")
    for mode, own in found.items():
        cells = [
            f"{t['old']:.3f} -> {t['new']:.3f} ({t['low']:+.3f} to {t['high']:+.3f})" for t in own["tasks"].values()
        ]
        gate = "open" if own["open"] else "closed"
        print(f"| {mode} | {own['banking']:.3f} | {' | '.join(cells)} | {own['identical']} of {len(names)} | {gate} |")
    print(json.dumps(found))


if __name__ == "__main__":
    main()

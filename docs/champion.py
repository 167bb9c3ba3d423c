"""The section of results.md about the recipe `champion`, and champion.svg: quality over speed. `results.py` calls it.

docs/champion.json is written by benchmarks/champion.py.
"""

import json
import statistics
from html import escape
from pathlib import Path
from typing import Any

from weft.report.words import duration
from weft.study import tables

FILE = Path(__file__).parent / "champion.json"
WIDTH, HEIGHT, LEFT, TOP, RIGHT, BOTTOM = 640, 340, 70, 24, 150, 50
TASKS = {"sentiment": "accuracy", "paraphrase": "accuracy", "similarity": "pearson"}
HEAD = """## The champion

`champion` is the recipe for the three tasks that scored best here at its cost:
[what is in it](better-models.md#the-champion). Even dev rows chose the recipe; the scores below are of the odd dev
rows. One seed each of two earlier versions was scored on these rows, too, before the batch sizes and the head of
similarity were set, so the recipe is not entirely independent of them; no score below chose anything. Intervals
are over seeds and rows. The data differ from those of the reports: 54,973 train pairs of Quora instead of 141,498, and
a quarter of their dev pairs.

```sh
python benchmarks/champion.py --data-dir DATA --out runs/champion --save docs/champion.json
```

Another body is `--body FOLDER`, the changes in parentheses are options `--set`, another name `--name`; RUNS is
`runs/champion/runs`. A student learns from one run of the champion. CPU time and texts per second are
those of one thread (single texts of SST-5, fp32, median of five rounds, the models in turn).
"""


def read_champions() -> dict[str, Any]:
    """Read the results by name; empty if there are none."""
    return json.loads(FILE.read_text(encoding="utf-8")) if FILE.is_file() else {}


def section(found: dict[str, Any]) -> str:
    """Return the section as Markdown."""
    header = ["model", "layers", "parameters", "overall", *(f"{task}.{name}" for task, name in TASKS.items())]
    header += ["seeds", "CPU time of a run", "texts per second"]
    rows = []
    for name, own in found.items():
        scores = [_score(own["scores"][metric]) for metric in ("overall", *(f"{t}.{m}" for t, m in TASKS.items()))]
        rate = own.get("texts_per_second")
        changes = ", ".join(f"`{change}`" for change in own["settings"])
        rows.append(
            [
                _named(name) + (f" ({changes})" if changes else ""),
                str(own["layers"]),
                f"{own['parameters'] / 1e6:.1f} M",
                *scores,
                str(len(own["cpu_seconds"])),
                duration(statistics.mean(own["cpu_seconds"].values())),
                "–" if rate is None else f"{rate:,.0f}",
            ]
        )
    sizes = next(iter(found.values()))["rows"]
    counted = ", ".join(f"{count:,} of {task}" for task, count in sizes.items())
    lines = [HEAD, tables.markdown_table(header, rows), f"\nScored on {counted}.\n"]
    if any("texts_per_second" in own for own in found.values()):
        lines.append("![Quality over speed](champion.svg)\n")
    return "\n".join(lines)


def picture(found: dict[str, Any]) -> str:
    """Return quality over speed as SVG: the overall score of each model over its texts per second."""
    points = [
        (name, own["texts_per_second"], own["scores"]["overall"])
        for name, own in found.items()
        if "texts_per_second" in own
    ]
    fastest, slowest = max(rate for _, rate, _ in points), min(rate for _, rate, _ in points)
    scores = [score["mean"] for _, _, score in points]
    low, high = min(scores) - 0.01, max(scores) + 0.01

    def x(rate: float) -> float:
        span = max(fastest / slowest - 1, 0.1)
        return round(LEFT + 20 + (rate / slowest - 1) / span * (WIDTH - LEFT - RIGHT - 40), 1)

    def y(score: float) -> float:
        return round(HEIGHT - BOTTOM - (score - low) / (high - low) * (HEIGHT - TOP - BOTTOM), 1)

    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}" height="{HEIGHT}" '
        'font-family="sans-serif" font-size="12">',
        "<title>Overall score over texts per second</title>",
        f'<rect width="{WIDTH}" height="{HEIGHT}" fill="#ffffff"/>',
    ]
    bottom = HEIGHT - BOTTOM
    for step in range(round(low * 100), round(high * 100) + 1):
        if low <= step / 100 <= high:
            at = y(step / 100)
            parts.append(f'<line x1="{LEFT}" y1="{at}" x2="{WIDTH - RIGHT}" y2="{at}" stroke="#e0e0e0"/>')
            parts.append(f'<text x="{LEFT - 8}" y="{at + 4}" text-anchor="end">{step / 100:.2f}</text>')
    for name, rate, score in points:
        at = x(rate), y(score["mean"])
        parts.append(f'<circle cx="{at[0]}" cy="{at[1]}" r="5" fill="#0072b2"/>')
        parts.append(f'<text x="{at[0] + 9}" y="{at[1] + 4}">{escape(_named(name))}</text>')
    parts += [
        f'<text x="{x(rate)}" y="{bottom + 18}" text-anchor="middle">{rate:,}</text>'
        for rate in range(100, int(fastest) + 1, 100)
        if rate >= slowest
    ]
    parts.append(
        f'<text x="{(LEFT + WIDTH - RIGHT) / 2}" y="{HEIGHT - 10}" text-anchor="middle">texts per second</text>'
    )
    parts.append(f'<text x="16" y="{TOP - 8}">overall</text>')
    return "\n".join([*parts, "</svg>"]) + "\n"


def _named(name: str) -> str:
    return "MiniLM-L6" if name == "packaged:minilm-l6" else name


def _score(own: dict[str, Any]) -> str:
    return (
        f"{own['mean']:.3f} ({tables.span(own['low'], own['high'])})"
        if own["low"] is not None
        else f"{own['mean']:.3f}"
    )

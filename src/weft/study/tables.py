"""Tables of a study, computed from study.json alone, for study.md and study.html."""

from collections.abc import Iterable, Sequence

from weft.kinds.metrics import explain
from weft.report.words import duration
from weft.study.records import ArmResult, ClaimResult, MetricResult, StudyResult

Table = tuple[list[str], list[list[str]]]
"""(header, rows)"""


def number(value: float | None, signed: bool = False) -> str:
    return "–" if value is None else f"{value:+.3f}" if signed else f"{value:.3f}"


def span(low: float | None, high: float | None, signed: bool = False) -> str:
    return "–" if low is None or high is None else f"{number(low, signed)} to {number(high, signed)}"


def score_table(result: StudyResult) -> Table:
    """Return the mean and 95 % interval of every arm, and its published scores if there are any."""
    printed = [_published(arm) for arm in result.arms.values()]
    rows = []
    for (name, arm), published in zip(result.arms.items(), printed, strict=True):
        cells = [_cell(arm.metrics.get(metric)) for metric in result.metrics]
        rows.append([name + (" (baseline)" if name == result.baseline else ""), *cells])
        if any(printed):
            rows[-1].append(published)
    return ["arm", *result.metrics, *(["published"] if any(printed) else [])], rows


def _cell(score: MetricResult | None) -> str:
    if score is None or score.mean is None:
        return "–"
    interval = f" ({span(score.low, score.high)})" if score.low is not None else ""
    return f"{score.mean:.3f}{interval}"


def _published(arm: ArmResult) -> str:
    figures = arm.published
    if figures is None or not figures.dev:
        return ""
    return f"{figures.recipe}: " + ", ".join(f"{task} {value:.3f}" for task, value in figures.dev.items())


def claim_table(result: StudyResult) -> Table:
    header = ["claim", "verdict", "difference", "95 % interval", "p", "p, corrected", "minimum detectable", "why"]
    rows = []
    for claim in result.claims:
        ratios = claim.cost_ratios
        cost = f"; cost ratio {min(ratios):.2f} to {max(ratios):.2f}" if claim.at_most_cost else ""
        margin = f", margin {claim.margin:g}" if claim.margin else ""
        what = f"{claim.better} vs. {claim.worse}, {claim.metric}"
        what += (", train minus dev" if claim.on == "gap" else "") + margin
        what += f"; published by {claim.published_by}" if claim.published_by else ""
        what += f", claim {claim.number}" if claim.number is not None else ""
        rows.append(
            [
                f"{claim.text} ({what})",
                claim.verdict,
                number(claim.difference, signed=True),
                span(claim.low, claim.high, signed=True),
                number(claim.p),
                number(claim.p_corrected),
                number(claim.smallest_difference),
                claim.why + cost,
            ]
        )
    return header, rows


def claim_line(claim: ClaimResult) -> str:
    """Return a claim and its statistics in one line."""
    if claim.difference is None:
        return f"{claim.text}: {claim.why}"
    return (
        f"{claim.text}: {claim.metric} {number(claim.difference, signed=True)} "
        f"({span(claim.low, claim.high, signed=True)}), p {claim.p_corrected:.3f}; "
        f"minimum detectable difference {claim.smallest_difference:.3f}"
    )


def short(result: StudyResult) -> list[tuple[str, Table]]:
    """Return (title, table) for a terminal: means with the half-width of their interval, and conflicts."""
    rows = []
    for name, arm in result.arms.items():
        scores = [arm.metrics.get(metric) for metric in result.metrics]
        rows.append([name, *(_with_half(score) for score in scores)])
    found = [("Mean over seeds ± half-width of its 95 % interval", (["arm", *result.metrics], rows))]
    conflicts = conflict_table(result)
    return [*found, *([("Gradient conflicts", conflicts)] if conflicts[1] else [])]


def _with_half(score: MetricResult | None) -> str:
    if score is None or score.mean is None:
        return "–"
    if score.low is None or score.high is None:
        return f"{score.mean:.3f}"
    return f"{score.mean:.3f} ±{(score.high - score.low) / 2:.3f}"


def difference_table(result: StudyResult) -> Table:
    rows = [
        [d.arm, d.metric, number(d.difference, signed=True), span(d.low, d.high, signed=True)]
        for d in result.differences
    ]
    return [f"arm vs. {result.baseline}", "metric", "difference", "95 % interval"], rows


def seed_table(result: StudyResult) -> Table:
    """Return the scores of every run."""
    rows = []
    for name, arm in result.arms.items():
        for seed in map(str, arm.seeds):
            scores = [arm.metrics.get(metric) for metric in result.metrics]
            rows.append([name, seed, *(number(s.seeds[seed]) if s else "–" for s in scores)])
    return ["arm", "seed", *result.metrics], rows


def cost_table(result: StudyResult) -> Table:
    rows = []
    for name, arm in result.arms.items():
        cost = arm.cost
        if cost.seconds and cost.tokens and cost.peak_memory:
            memory = f"{cost.peak_memory.mean / 1e9:.2f} GB"
            cpu = duration(cost.cpu_seconds.mean) if cost.cpu_seconds else "–"
            times = [duration(cost.seconds.mean), cpu]
            rows.append([name, f"{arm.steps:,}", f"{cost.tokens.mean:,.0f}", *times, memory])
    return ["arm", "steps", "tokens", "time", "CPU time", "memory"], rows


def conflict_table(result: StudyResult) -> Table:
    rows = [
        [
            arm,
            " and ".join(pair.tasks),
            number(pair.cosine, signed=True),
            span(pair.low, pair.high, signed=True),
            f"{pair.opposed:.0%}",
            pair.verdict,
        ]
        for arm, pairs in result.conflicts.items()
        for pair in pairs
    ]
    return ["arm", "tasks", "mean cosine", "95 % interval", "conflicting steps", "verdict"], rows


def change_table(result: StudyResult) -> Table:
    rows = [["all arms", key, str(value)] for key, value in result.set.items()]
    for name, arm in result.arms.items():
        rows += [[name, key, str(value)] for key, value in arm.changes.items()]
        rows += [[name, key, "unset"] for key in arm.unset]
    return ["arm", "key", "value"], rows


def lead(result: StudyResult) -> str:
    """Summarize the setup in one sentence."""
    (kind, amount), *_ = result.budget.items()
    seeds = len(result.seeds)
    rows = ", ".join(f"{count:,} of {task}" for task, count in result.dev_rows.items())
    return (
        f"{len(result.arms)} arms, {seeds} {'seed' if seeds == 1 else 'seeds'} each, {amount:,} {kind} per run, "
        f"evaluated once at the end on the same dev rows ({rows})."
    )


def reading(result: StudyResult) -> list[str]:
    """Explain how to read the tables."""
    return [
        "Intervals account for the variance between seeds and over dev rows: "
        f"{result.resamples:,} bootstrap resamples of the rows, the standard deviation over seeds, Student's t. "
        "Differences are between runs of the same seed, on the same rows.",
        f"A claim is decided if its p-value, corrected for {len(result.claims)} claims by Holm's method, is < 0.05. "
        "The intervals and the differences from the baseline are not corrected.",
        "Minimum detectable: the true difference that this study detects with a power of 80 %.",
        *_explained(result.arms[result.baseline].metrics),
    ]


def _explained(metrics: Iterable[str]) -> list[str]:
    """Explain how an arm's overall score is computed, and what its metrics average over."""
    measured: dict[str, list[str]] = {}
    for task, _, metric in (name.partition(".") for name in metrics if name != "overall"):
        measured.setdefault(task, []).append(metric)  # a task's primary metric comes first
    if not measured:
        return []
    formula, *averages = explain(measured, {})
    return [formula, *averages] if "overall" in metrics else averages


def problems(result: StudyResult) -> list[str]:
    """Return failures, notes and caveats, which are shown above the tables."""
    notes = [f"{run}: failed: {why}" for run, why in result.failures.items()]
    notes += [note for arm in result.arms.values() for note in arm.notes]
    return list(dict.fromkeys([*notes, *result.caveats]))


def sections(result: StudyResult) -> list[tuple[str, str, Table]]:
    """Return (id, title, table) of every table that has rows."""
    every = [
        ("claims", "Claims", claim_table(result)),
        ("scores", "Scores", score_table(result)),
        ("differences", "Paired differences", difference_table(result)),
        ("conflicts", "Gradient conflicts", conflict_table(result)),
        ("cost", "Cost", cost_table(result)),
        ("seeds", "Every seed", seed_table(result)),
        ("changes", "Changes per arm", change_table(result)),
    ]
    return [entry for entry in every if entry[2][1]]


def markdown(result: StudyResult) -> str:
    """Return the content of study.md."""
    parts = [f"# {result.name}", result.about, lead(result)]
    parts += ["\n".join(f"- {note}" for note in problems(result))]
    for _, title, table in sections(result):
        parts += [f"## {title}", markdown_table(*table)]
    parts += ["## How to read this", "\n".join(f"- {line}" for line in reading(result)), made_on(result)]
    return "\n\n".join(part for part in parts if part) + "\n"


def markdown_table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Format a table as Markdown."""
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join("| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |" for line in lines)


def made_on(result: StudyResult) -> str:
    """Name the machine and the versions; empty if they are unknown."""
    here = result.environment
    if not here.packages:
        return ""
    return (
        f"Trained on {here.processor}, {here.threads} {'thread' if here.threads == 1 else 'threads'}, {here.device}, "
        f"Python {here.python}, torch {here.packages['torch']}, weft {here.packages['weft']}."
    )

"""The self-contained HTML page about one run or several runs."""

import base64
import hashlib
import json
from collections.abc import Sequence
from functools import cache
from importlib import metadata, resources
from pathlib import Path
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from weft.foundation.atomic import write_whole
from weft.foundation.config import file_name
from weft.foundation.errors import UserError
from weft.foundation.records import to_json
from weft.report import compare, learning, mistakes, run_charts
from weft.report.chart import Chart, digits
from weft.report.examples import LETTERS, examples
from weft.report.recipes import recipe_differences
from weft.report.scores import Scores
from weft.report.sections import section_of
from weft.report.svg import draw, legend
from weft.report.task_charts import plane_chart
from weft.report.words import duration, facts, lead, missing, notes
from weft.runs.reader import Run, TaskRun, read_runs


def write_report(folders: Sequence[Path], path: Path) -> None:
    """Write the page about the runs in `folders`."""
    write_page(read_runs(folders), path)


def write_page(runs: Sequence[Run], path: Path) -> None:
    text = page(runs)
    try:
        write_whole(path, text)
    except OSError as error:
        raise UserError(f"{path}: cannot be written ({error.strerror})") from None


def page(runs: Sequence[Run]) -> str:
    return _run_page(runs[0]) if len(runs) == 1 else _runs_page(runs)


def task_findings(task: TaskRun) -> dict[str, Any]:
    """Return the statistics, charts and mistakes of one task."""
    section = section_of(task.kind)
    found = section.find(task)
    return {
        "name": task.name,
        "kind": task.kind.name,
        "reading": task.reading,
        "rows": len(task.targets),
        "found": found,
        "template": f"sections/{section.template}",
        "charts": [*section.charts(task, found), *plane_chart(task, section.labelled(task))],
        "mistakes": mistakes.groups(task),
    }


def all_charts(runs: Sequence[Run]) -> list[Chart]:
    """Return every chart of the page, for a folder of figures."""
    if len(runs) == 1:
        run = runs[0]
        scores = Scores(run)
        of_tasks = [chart for task in run.tasks.values() for chart in task_findings(task)["charts"]]
        learnt = run_charts.learning_charts(run) if run.steps or run.evaluations else []
        return [run_charts.score_chart(scores), *learnt, *run_charts.sharing_charts(run), *of_tasks]
    found = compare.Comparison([Scores(run) for run in runs])
    return [*compare.bar_charts(found), *compare.gap_charts(found, found.gaps()), *compare.curve_charts(found)]


def _run_page(run: Run) -> str:
    scores = Scores(run)
    tasks = [task_findings(task) for task in run.tasks.values()]
    learnt = run_charts.learning_charts(run) if run.steps or run.evaluations else []
    sharing = run_charts.sharing_charts(run)
    wrong = examples([run])
    gate = None if run.result is None else run.result.gate
    sections = [("scores", "Scores")]
    sections += [("gate", "Old tasks")] if gate else []
    sections += [("learning", "Learning")] if learnt else []
    sections += [("sharing", "Sharing")] if sharing else []
    sections += [(f"task-{file_name(task['name'])}", task["name"]) for task in tasks]
    sections += [("browse", "Mistakes")] if wrong else []
    sections += [("bias", "Bias")] if run.bias else []
    return render(
        "run.html",
        title=run.recipe["name"],
        lead=lead(run),
        sections=[*sections, ("about", "About")],
        label=run.label,
        scores=scores,
        facts=facts(run, scores),
        notes=notes(run),
        score_chart=run_charts.score_chart(scores),
        gate=gate,
        learning_charts=learnt,
        sharing_charts=sharing,
        conflicts=learning.conflicts(run),
        tasks=tasks,
        examples=wrong,
        bias=run.bias,
        missing=missing(run),
        recipe_text=run.recipe_text,
        environment=to_json(run.environment, indent=2),
    )


def _runs_page(runs: Sequence[Run]) -> str:
    found = compare.Comparison([Scores(run) for run in runs])
    gaps = found.gaps()
    curves = compare.curve_charts(found)
    sections = [("scores", "Scores")]
    sections += [("differences", "Differences")] if gaps else []
    sections += [("curves", "Curves")] if curves else []
    return render(
        "runs.html",
        title=f"{len(runs)} runs compared",
        lead=", ".join(found.labels),
        sections=[*sections, ("browse", "Examples"), ("about", "About")],
        found=found,
        gaps=gaps,
        notes=list(dict.fromkeys([*(note for run in runs for note in notes(run)), *found.uncomparable()])),
        bar_charts=compare.bar_charts(found),
        gap_charts=compare.gap_charts(found, gaps),
        curve_charts=curves,
        examples=examples(runs),
        differences=recipe_differences([run.recipe for run in runs]),
    )


@cache
def _environment() -> Environment:
    environment = Environment(
        loader=PackageLoader("weft.report"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {
        "number": digits,
        "draw": draw,
        "legend": legend,
        "duration": duration,
        "id": file_name,
        "data": _data,
        "cut": lambda text: text if len(text) <= LETTERS else text[: LETTERS - 1] + "…",
    }
    return environment


def _data(value: Any) -> Markup:
    """Return JSON that is safe inside a script element, for any texts."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    for sign in "<>&\u2028\u2029":
        text = text.replace(sign, f"\\u{ord(sign):04x}")
    return Markup(text)


def render(template: str, **content: Any) -> str:
    """Render a template with the common style, script and content security policy."""
    folder = resources.files("weft.report") / "templates"
    script = (folder / "script.js").read_text(encoding="utf-8")
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    return (
        _environment()
        .get_template(template)
        .render(
            style=Markup((folder / "style.css").read_text(encoding="utf-8")),
            script=Markup(script),
            script_hash=f"sha256-{digest}",
            version=metadata.version("weft"),
            **content,
        )
    )

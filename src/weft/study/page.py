"""study.html: the tables of a study on one self-contained page."""

from weft.foundation.records import to_json
from weft.report.chart import Chart, Colour, Entry, EntryChart
from weft.report.page import render
from weft.study import tables
from weft.study.records import StudyResult


def study_page(result: StudyResult) -> str:
    """Render study.html."""
    found = tables.sections(result)
    return render(
        "study.html",
        title=result.name,
        lead=tables.lead(result),
        about=result.about,
        sections=[*((key, title) for key, title, _ in found), ("about", "About")],
        notes=tables.problems(result),
        tables=found,
        charts=charts(result),
        reading=tables.reading(result),
        environment=to_json(result.environment, indent=2),
    )


def charts(result: StudyResult) -> dict[str, list[Chart]]:
    """Return the charts of each section: differences of the claims, and scores of the arms."""
    claimed = [
        Entry(f"{number}: {claim.better} – {claim.worse}", claim.difference, claim.low, claim.high)
        for number, claim in enumerate(result.claims, start=1)
    ]
    found: dict[str, list[Chart]] = {}
    if claimed:
        x = "difference (> 0: the first arm is better)"
        found["claims"] = [EntryChart("claim-differences", "Claims, in the order of the table", x, claimed, rule=0.0)]
    found["scores"] = []
    for metric in result.metrics:
        rows = [
            Entry(name, own.mean, own.low, own.high, colour=Colour(i))
            for i, (name, arm) in enumerate(result.arms.items())
            if (own := arm.metrics.get(metric))
        ]
        found["scores"].append(EntryChart(f"score-{metric.replace('.', '-')}", metric, metric, rows))
    return found

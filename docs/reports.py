"""Writes reports.md from the shipped recipes: python docs/reports.py"""

from pathlib import Path

from weft.recipes.library import Open, Report, Shipped, library, reports

HEAD = """# The five reports

Each row of the published tables is a recipe that you can run by its id. This page is generated from the recipes (`make
docs`).

```console
$ weft recipes pcgrad
$ weft recipes 4-sft > mine.toml
```

`weft recipes ID` prints a recipe ready to copy, with the published figures and with a note wherever its report is
ambiguous or contradicts itself. `weft train ID -o RUN --data-dir DIR` runs it on files in the layout of Stanford's
CS224N project; `--body`, `--set` and `--seed` change it, and `--budget steps=200` scales it to a small machine:
learning rates, phases and warm-up are scaled with it, and it is evaluated only at the end. All rows start from BERT
base, as the reports do; `--body packaged:minilm-l6` is available offline. Rows that name layers 6 to 11 need a
body of twelve layers.

The figures are the reports' own, from one seed each and under their own settings. They are for comparison; weft did
not produce them. Reports 1 and 4 define the overall score as (sentiment + paraphrase + (1 + similarity) / 2) /
3; report 2's is a plain mean.
"""


OPEN = """
## Open questions

Details that no report and no public code defines, how the recipes interpret them, and why. Everything else that the
recipes add to the reports' texts is listed with its source in each report's section.

| report | rows | question | interpretation | why it is open |
| --- | --- | --- | --- | --- |
"""


def page() -> str:
    return HEAD + _open_readings() + "".join(_section(report) for report in reports())


def _open_readings() -> str:
    lines = []
    for report in reports():
        lines += [_open_row(report, "all", one) for one in report.open]
        rows: dict[Open, list[str]] = {}
        for shipped in library().values():
            for one in shipped.open if shipped.report == report.report else ():
                rows.setdefault(one, []).append(f"`{shipped.id}`")
        lines += [_open_row(report, _first_and_count(ids), one) for one, ids in rows.items()]
    return OPEN + "\n".join(lines) + "\n"


def _first_and_count(ids: list[str]) -> str:
    return ", ".join(ids) if len(ids) < 4 else f"{ids[0]} and {len(ids) - 1} more"


def _open_row(report: Report, rows: str, one: Open) -> str:
    return f"| {report.report} | {rows} | {one.question} | {one.reading} | {one.why} |"


def _section(report: Report) -> str:
    rows = [shipped for shipped in library().values() if shipped.report == report.report]
    links = " · ".join(f"[{shipped.id}](#{shipped.id})" for shipped in rows)
    lines = ["", f"## Report {report.report}: {report.title}", "", f"{report.authors}. {report.idea.strip()}", ""]
    lines += [f"Rows: {links}", ""]
    lines += ["What is known beyond its text:", "", *(f"- {fact}" for fact in report.settled), ""]
    lines += [f"Changed in all rows since version 0.1: {report.changed}", ""]
    lines += ["| id | recipe | sentiment | paraphrase | similarity | note |", "| --- | --- | --- | --- | --- | --- |"]
    lines += [_row(shipped) for shipped in rows]
    return "\n".join(lines) + "\n"


def _row(shipped: Shipped) -> str:
    published = shipped.published
    assert published is not None
    scores = [
        f"{published.dev[task]:.3f}" if task in published.dev else ""
        for task in ("sentiment", "paraphrase", "similarity")
    ]
    same = f" (the same recipe as `{shipped.alias}`)" if shipped.alias else ""
    said = [published.note or "", *(one.sentence() for one in shipped.open)]
    said += [f"Changed since 0.1: {shipped.changed}"] if shipped.changed else []
    note = " ".join(part for part in said if part)
    cells = [f'<a id="{shipped.id}"></a>`{shipped.id}`', shipped.about + same, *scores, note]
    return "| " + " | ".join(cells) + " |"


if __name__ == "__main__":
    Path(__file__).with_name("reports.md").write_text(page(), encoding="utf-8")

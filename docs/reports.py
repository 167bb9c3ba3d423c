"""Writes reports.md from the shipped recipes: python docs/reports.py"""

from pathlib import Path

from weft.library import Report, Shipped, library, reports

HEAD = """# The five reports

Each row of the published tables is a recipe that can be run by its id. This page is written from the recipes (`make
docs`).

```console
$ weft recipes pcgrad
$ weft recipes 4-sft > mine.toml
```

`weft recipes ID` prints a recipe ready to copy, with the published figures and with a note wherever its report is
silent or contradicts itself. `weft train ID -o RUN --data-dir DIR` runs it on files in the layout of Stanford's
CS224N project; `--body`, `--set` and `--seed` change it, and `--budget steps=200` scales it to a small machine:
rates, phases and warm-up keep their shares, and it is scored only at the end. All rows start from BERT base, as the
reports do; `--body packaged:minilm-l6` is the one that is at hand offline. Rows that name layers 6 to 11 need a
body of twelve layers.

The figures are what the reports printed, on one seed each and under settings of their own: facts to compare with,
not results of weft's. Reports 1 and 4 count an overall score as (sentiment + paraphrase + (1 + similarity) / 2) /
3; report 2's is a plain mean.
"""


def page() -> str:
    return HEAD + "".join(_section(report) for report in reports())


def _section(report: Report) -> str:
    rows = [shipped for shipped in library().values() if shipped.report == report.report]
    links = " · ".join(f"[{shipped.id}](#{shipped.id})" for shipped in rows)
    lines = ["", f"## Report {report.report}: {report.title}", "", f"{report.authors}. {report.idea.strip()}", ""]
    lines += [f"Rows: {links}", ""]
    lines += ["Open questions, and how they were read:", "", *(f"- {reading}" for reading in report.readings), ""]
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
    cells = [f'<a id="{shipped.id}"></a>`{shipped.id}`', shipped.about + same, *scores, published.note or ""]
    return "| " + " | ".join(cells) + " |"


if __name__ == "__main__":
    Path(__file__).with_name("reports.md").write_text(page(), encoding="utf-8")

"""`weft recipes`"""

import json
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from weft.recipes.library import Shipped


def recipes(
    name: Annotated[
        str | None,
        typer.Argument(metavar="[NAME or WORD]", help="Print this recipe, or list the recipes that contain the word."),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON value on stdout and nothing else.")] = False,
) -> None:
    """List the shipped recipes, or print one ready to copy."""
    from weft.recipes.library import find_shipped, library

    found = list(library().values())
    if name in library():
        print(json.dumps(_as_json(library()[name], whole=True)) if as_json else library()[name].text.rstrip("\n"))
        return
    if name is not None:
        found = [shipped for shipped in found if name.lower() in f"{shipped.id} {shipped.about}".lower()]
        if not found:
            find_shipped(name)  # raises an error that suggests similar names
    if as_json:
        print(json.dumps([_as_json(shipped, whole=False) for shipped in found]))
    else:
        _print_list(found)


def _as_json(shipped: "Shipped", *, whole: bool) -> dict[str, Any]:
    entry = {
        "id": shipped.id,
        "report": shipped.report,
        "about": shipped.about,
        "alias": shipped.alias,
        "published": shipped.published.figures() if shipped.published else {},
        "changed": changes(shipped),
    }
    return entry | {"recipe": shipped.content} if whole else entry


def changes(shipped: "Shipped") -> list[str]:
    """Return the changes since version 0.1: those in all rows of the report, and those in this row."""
    from weft.recipes.library import reports

    of_all = [report.changed for report in reports() if report.report == shipped.report]
    return [*of_all, *([shipped.changed] if shipped.changed else [])]


def _print_list(found: list["Shipped"]) -> None:
    """Print recipes by report, one unwrapped line each; the id comes first, so that other tools can parse it."""
    from weft.recipes.library import reports

    common = {report.report: f"# changed in all rows since 0.1: {report.changed}" for report in reports()}
    titles = {report.report: f'report {report.report}: {report.authors}, "{report.title}"' for report in reports()}
    width = max(len(shipped.id) for shipped in found)
    for report in dict.fromkeys(shipped.report for shipped in found):
        print("# weft's own" if report is None else f"\n# {titles[report]}\n{common[report]}")
        for shipped in found:
            if shipped.report == report:
                same = f" (the same as {shipped.alias})" if shipped.alias else ""
                changed = f"  (changed: {shipped.changed})" if shipped.changed else ""
                print(f"{shipped.id:<{width}}  {shipped.about}{same}{_scores(shipped)}{changed}")


def _scores(shipped: "Shipped") -> str:
    dev = shipped.published.dev if shipped.published else {}
    return "  [" + ", ".join(f"{task} {value:.3f}" for task, value in dev.items()) + "]" if dev else ""

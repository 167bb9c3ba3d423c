"""`weft recipes`"""

from typing import Annotated

import typer


def recipes(
    name: Annotated[str | None, typer.Argument(metavar="[NAME]", help="Print this recipe.")] = None,
) -> None:
    """List the shipped recipes, or print one ready to copy."""
    from weft.recipe import shipped, shipped_text

    if name is not None:
        print(shipped_text(name), end="")
        return
    for recipe in shipped():
        # the comment at the top of a recipe says what it is for
        print(f"{recipe}  {shipped_text(recipe).splitlines()[0].removeprefix('# ')}")

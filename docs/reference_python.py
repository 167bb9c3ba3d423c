"""The public names of `weft` as a page, from their signatures and docstrings."""

import ast
import dataclasses
import inspect
import textwrap
from collections.abc import Iterator
from typing import Any, get_origin

from reference_keys import GENERATED, one_line

import weft
from weft.foundation.config import Config


def python_page() -> str:
    names = sorted(
        (name for name in weft.__all__ if not name.startswith("__")), key=lambda name: (name[0].isupper(), name)
    )
    linked = " · ".join(f"[{name}](#weft{name.lower()})" for name in names)
    intro = "Everything that `import weft` gives. [From Python](../python.md) shows how to use it."
    version = "`weft.__version__` is the version as a string."
    parts = [f"# Python API\n\n{GENERATED}{intro}\n\n{linked}\n\n{version}\n"]
    for name in names:
        value = getattr(weft, name)
        parts.append(f"\n## `weft.{name}`\n\n")
        parts.append(class_text(name, value) if isinstance(value, type) else function_text(f"weft.{name}", value))
    return "".join(parts)


def function_text(name: str, function: Any) -> str:
    return f"```python\n{signature_text(name, function)}\n```\n\n{inspect.getdoc(function) or ''}\n".replace(
        "\n\n\n", "\n\n"
    )


def signature_text(name: str, function: Any) -> str:
    """Annotations as the source writes them, defaults as values; one parameter a line if it is long."""
    tree = ast.parse(textwrap.dedent(inspect.getsource(function))).body[0]
    assert isinstance(tree, ast.FunctionDef)
    arguments = {node.arg: node for node in [*tree.args.posonlyargs, *tree.args.args, *tree.args.kwonlyargs]}
    parts = []
    for parameter in inspect.signature(function).parameters.values():
        if parameter.name == "self":
            continue
        if parameter.kind is parameter.KEYWORD_ONLY and "*" not in parts:
            parts.append("*")
        default = "" if parameter.default is parameter.empty else f" = {parameter.default!r}"
        parts.append(ast.unparse(arguments[parameter.name]) + default)
    returned = f" -> {ast.unparse(tree.returns)}" if tree.returns else ""
    line = f"{name}({', '.join(parts)}){returned}"
    return line if len(line) <= 100 else f"{name}(\n" + "".join(f"    {part},\n" for part in parts) + f"){returned}"


def class_text(name: str, owner: type) -> str:
    parts = [f"{inspect.getdoc(owner)}\n"]
    if issubclass(owner, Config):
        parts.append("\nIts fields are the keys of the [recipe](recipe.md).\n")
    elif dataclasses.is_dataclass(owner):
        parts.append("\n| field | type | meaning |\n| --- | --- | --- |\n")
        parts += [f"| `{field}` | `{kind}` | {one_line(text)} |\n" for field, kind, text in fields(owner)]
    for member, value in vars(owner).items():
        if member.startswith("_"):
            continue
        if isinstance(value, property):
            kind = inspect.signature(value.fget).return_annotation if value.fget else ""
            shown = getattr(kind, "__name__", kind) if get_origin(kind) is None else kind
            parts.append(f"\n### `{name}.{member}`\n\nProperty: `{shown}`. {one_line(inspect.getdoc(value))}\n")
        elif inspect.isfunction(value):
            parts.append(f"\n### `{name}.{member}`\n\n{function_text(f'{name.lower()}.{member}', value)}")
    return "".join(parts)


def fields(owner: type) -> Iterator[tuple[str, str, str]]:
    """Name, type and docstring of each field of a dataclass, as its source has them."""
    tree = ast.parse(textwrap.dedent(inspect.getsource(owner))).body[0]
    assert isinstance(tree, ast.ClassDef)
    for node, following in zip(tree.body, [*tree.body[1:], None], strict=True):
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            value = following.value if isinstance(following, ast.Expr) else None
            text = value.value if isinstance(value, ast.Constant) and isinstance(value.value, str) else ""
            yield node.target.id, ast.unparse(node.annotation).replace("|", "\\|"), text

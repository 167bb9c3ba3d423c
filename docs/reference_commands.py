"""Every command with its arguments and options as a page, from typer."""

import inspect
import typing
from typing import Any

import typer
from reference_keys import GENERATED, one_line, type_text

from weft.cli import COMMANDS, app


def commands_page() -> str:
    group = typer.main.get_command(app)
    functions = {module.__name__.rpartition(".")[2]: module for module in COMMANDS}
    names = " · ".join(f"[{name}](#weft-{name})" for name in functions)
    parts = [f"# Commands\n\n{GENERATED}{group.help}\n\n{names}\n\n`weft --version` prints the version.\n"]
    for name, module in functions.items():
        command = group.commands[name]  # type: ignore[attr-defined]
        hints = typing.get_type_hints(getattr(module, name))
        parts.append(
            f"\n## weft {name}\n\n{inspect.cleandoc(command.help)}\n\n```text\n{usage(name, command.params)}\n```\n"
        )
        for title, kind in (("argument", "argument"), ("option", "option")):
            chosen = [p for p in command.params if p.param_type_name == kind and p.name in hints]
            if chosen:
                parts.append(f"\n| {title} | type | default | meaning |\n| --- | --- | --- | --- |\n")
                parts += [parameter_row(p, hints[p.name]) for p in chosen]
    return "".join(parts)


def usage(name: str, parameters: list[Any]) -> str:
    arguments = [p.metavar or p.name.upper() for p in parameters if p.param_type_name == "argument"]
    needed = [
        f"{p.opts[-1]} {p.metavar or p.name.upper()}"
        for p in parameters
        if p.param_type_name == "option" and p.required
    ]
    return " ".join(["weft", name, *arguments, *needed, "[OPTIONS]"])


def parameter_row(parameter: Any, hint: Any) -> str:
    is_flag = getattr(parameter, "is_flag", False)  # an argument never is
    if parameter.param_type_name == "argument":
        names = f"`{parameter.metavar or parameter.name.upper()}`"
    else:
        value = "" if is_flag else f" {parameter.metavar or parameter.name.upper()}"
        names = ", ".join(f"`{option}{value}`" for option in [*parameter.opts, *parameter.secondary_opts])
    limits = [f"{sign} {value}" for sign, value in (("≥", parameter.min), ("≤", parameter.max)) if value is not None]
    kind = ", ".join([type_text(hint), *limits])
    if parameter.required:
        default = "**required**"
    elif is_flag:
        default = "on" if parameter.default else "off"
    else:
        default = "none" if parameter.default is None else f"`{parameter.default}`"
    return f"| {names} | {kind} | {default} | {one_line(parameter.help)} |\n"

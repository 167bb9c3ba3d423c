"""Names and sizes that keep the code readable: one meaning per class name, few arguments, short files."""

import ast
from collections.abc import Iterator
from pathlib import Path

import weft

SOURCE = Path(weft.__file__).parent
FILES = sorted(SOURCE.rglob("*.py"))
# It is copied alone into exported folders, so it repeats the forward passes of heads and poolings under their names.
COPIED = SOURCE / "export" / "modeling_weft.py"
MOST_ARGUMENTS = 8
MOST_LINES = 350


def classes(path: Path) -> Iterator[ast.ClassDef]:
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ClassDef):
            yield node


def repeated(paths: list[Path]) -> dict[str, list[str]]:
    """Class name -> the files that define it, of all names that are defined twice."""
    found: dict[str, list[str]] = {}
    for path in paths:
        for node in classes(path):
            found.setdefault(node.name, []).append(path.name)
    return {name: files for name, files in found.items() if len(files) > 1}


def long_constructors(paths: list[Path]) -> list[str]:
    """Constructors that are written out; a dataclass is a record, whose fields have names where it is made."""
    found = []
    for path in paths:
        for node in classes(path):
            for method in node.body:
                if isinstance(method, ast.FunctionDef) and method.name == "__init__":
                    count = len(method.args.args) + len(method.args.kwonlyargs) - 1
                    if count > MOST_ARGUMENTS:
                        found.append(f"{path.name}: {node.name} takes {count} arguments")
    return found


def test_a_class_name_has_one_meaning() -> None:
    assert not repeated([path for path in FILES if path != COPIED])


def test_constructors_take_few_arguments() -> None:
    assert not long_constructors(FILES)


def test_files_are_short() -> None:
    lengths = {str(path.relative_to(SOURCE)): len(path.read_text(encoding="utf-8").splitlines()) for path in FILES}
    assert not {name: length for name, length in lengths.items() if length > MOST_LINES}


def test_what_is_wrong_is_found(tmp_path: Path) -> None:
    """The tests above can fail."""
    arguments = ", ".join(f"a{i}" for i in range(MOST_ARGUMENTS))
    one, two = tmp_path / "one.py", tmp_path / "two.py"
    one.write_text(f"class A:\n    def __init__(self, {arguments}): ...\n", encoding="utf-8")
    two.write_text(f"class A:\n    def __init__(self, {arguments}, *, more): ...\n", encoding="utf-8")
    assert repeated([one, two]) == {"A": ["one.py", "two.py"]}
    assert long_constructors([one, two]) == [f"two.py: A takes {MOST_ARGUMENTS + 1} arguments"]

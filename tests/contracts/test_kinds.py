"""Nobody but a kind asks what kind a label is, and a kind is added as CONTRIBUTING.md says."""

import ast
from pathlib import Path

import pytest

import weft
from weft.kinds import KINDS
from weft.report.sections import section_of
from weft.report.sections.base import Section

SOURCE = Path(weft.__file__).parent
OWN = ("kinds", "report/sections")
"""the places that may tell kinds apart"""
CAPABILITIES = {"has_one_class", "labels_words", "has_numbers", "is_binary", "ProbabilityKind"}
"""what a kind says of itself; a loss states by these what labels it needs"""
OTHERS = {
    "bodies/adapters/lora.py": "ndim is of hidden states, packed or padded",
    "data/columns.py": "is_numeric is of a column in a file, which has no task yet",
    "recipes/init/choices.py": "the same: it proposes a kind for a column",
    "penalties/norms.py": "ndim is of a parameter",
    "testing/penalties.py": "ndim is of a penalty's value",
    "pretraining/loop.py": "ndim is of a parameter",
    "training/optimizer.py": "ndim is of a parameter",
}
"""files whose `is_numeric` and `ndim` are no questions about labels"""
MOST = 5
BRANCHES = {
    "recipes/idle.py": (1, "warns of `calibrate` where no task has probabilities"),
    "runs/model_folder.py": (2, "temperatures are fitted, and accepted, for tasks with probabilities alone"),
    "tasks/class_weights.py": (1, "rejects class weights for rows without one class"),
    "testing/losses.py": (1, "a contract states that probabilities of one class sum to 1"),
}
"""what is left outside of these places: how often, and why"""


def branches(text: str, name: str = "") -> list[int]:
    """The lines that tell kinds apart: by name, by capability, by the form of targets."""
    found = []
    capabilities = set() if name.startswith("losses/") else CAPABILITIES
    forms = set() if name in OTHERS else {"is_numeric", "ndim"}
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Compare):
            sides = [node.left, *node.comparators]
            is_branch = any(_names_a_kind(part) for side in sides for part in ast.walk(side))
        elif isinstance(node, ast.Dict):
            is_branch = sum(_names_a_kind(key) for key in node.keys) > 1
        elif isinstance(node, ast.MatchValue):
            is_branch = _names_a_kind(node.value)
        elif isinstance(node, ast.Attribute):
            is_branch = node.attr in forms | capabilities
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "isinstance":
            is_branch = any(isinstance(part, ast.Name) and part.id in capabilities for part in ast.walk(node.args[1]))
        else:
            is_branch = False
        found += [node.lineno] if is_branch else []
    return sorted(found)


def _names_a_kind(node: ast.AST | None) -> bool:
    return isinstance(node, ast.Constant) and node.value in KINDS


def everywhere() -> dict[str, list[int]]:
    """Every file outside of `OWN` that tells kinds apart, and the lines."""
    found = {}
    for path in sorted(SOURCE.rglob("*.py")):
        name = path.relative_to(SOURCE).as_posix()
        if not name.startswith(OWN):
            found[name] = branches(path.read_text(encoding="utf-8"), name)
    return {name: lines for name, lines in found.items() if lines}


def test_only_kinds_and_their_sections_tell_kinds_apart() -> None:
    found = everywhere()
    listed = {name: count for name, (count, _) in BRANCHES.items()}
    assert {name: len(lines) for name, lines in found.items()} == listed, f"ask the kind instead: {found}"
    assert sum(listed.values()) <= MOST


@pytest.mark.parametrize(
    "line",
    [
        'if labels.kind.name == "regression": ...',
        'x = 1 if task.kind in ("classification", "ordinal") else 2',
        'x = {"regression": 1, "multilabel": 2}[kind]',
        'match kind:\n    case "ordinal": ...',
        "if targets.ndim == 2: ...",
        "if labels.is_numeric: ...",
        "if not labels.kind.has_numbers: ...",
        "if isinstance(kind, (int, ProbabilityKind)): ...",
    ],
)
def test_a_branch_is_found(line: str) -> None:
    """The test above can fail."""
    assert len(branches(line)) == 1


def test_every_kind_has_a_section() -> None:
    for kind in KINDS.values():
        assert isinstance(section_of(kind), Section)

"""Pages that are written from the code are current, and every variant is explained on some page."""

import json
import re
import runpy
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import weft
from tests.contracts.registry import variants
from tests.contracts.test_registries import REGISTRIES
from weft.bodies.registry import FAMILIES
from weft.cli import COMMANDS
from weft.data.config import PRESETS, DataConfig
from weft.kinds import KINDS
from weft.kinds.metrics import METRICS
from weft.recipes.recipe import Recipe
from weft.tasks.config import TaskConfig
from weft.training.checkpoint import CheckpointConfig
from weft.training.distillation import DistillConfig
from weft.training.optimizer import OptimizerConfig
from weft.training.phases import PhaseConfig
from weft.training.step import LogConfig

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
COMMAND_NAMES = [module.__name__.rpartition(".")[2] for module in COMMANDS]
PAGES = (
    "adapters.md",
    "readings.md",
    "heads.md",
    "losses.md",
    "regularizers.md",
    "schedules.md",
    "combining.md",
    "report.md",
    "better-models.md",
)


@pytest.fixture
def reference(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """The names of docs/reference.py, which imports its neighbours."""
    monkeypatch.syspath_prepend(str(DOCS))
    return runpy.run_path(str(DOCS / "reference.py"))


def test_the_reference_is_written_from_the_code(reference: dict[str, Any]) -> None:
    made = {name: page() for name, page in reference["PAGES"].items()}
    written = {path.name: path.read_text(encoding="utf-8") for path in (DOCS / "reference").iterdir()}
    assert written == made, "run `make docs`"


def test_the_reference_has_every_key_variant_command_and_name(reference: dict[str, Any]) -> None:
    """The generator leaves nothing out."""
    pages = {name: page() for name, page in reference["PAGES"].items()}
    configs = [Recipe, TaskConfig, DataConfig, OptimizerConfig, CheckpointConfig, PhaseConfig, LogConfig, DistillConfig]
    keys = [key for config in configs for key in config.model_fields]
    variants_ = [variant for registry in REGISTRIES.values() for variant in variants(registry).items()]
    keys += [key for _, config in variants_ for key in config.model_fields if key != "name"]
    assert [key for key in keys if f"| `{key}` |" not in pages["recipe.md"]] == []
    assert [name for name, _ in variants_ if f'"{name}"' not in pages["recipe.md"]] == []
    assert [name for name in COMMAND_NAMES if f"## weft {name}\n" not in pages["commands.md"]] == []
    assert [name for name in weft.__all__ if f"`weft.{name}`" not in pages["python.md"]] == []


def test_every_variant_is_on_a_page() -> None:
    page = "".join((DOCS / name).read_text(encoding="utf-8") for name in PAGES)
    names = [name for registry in REGISTRIES.values() for name in variants(registry)]
    assert [name for name in names if f"`{name}`" not in page and f'"{name}"' not in page] == []


def test_the_data_page_names_every_key_preset_metric_and_kind() -> None:
    page = (DOCS / "data.md").read_text(encoding="utf-8")
    assert [key for key in DataConfig.model_fields if f"`{key}`" not in page and key != "preset"] == []
    assert [name for name in PRESETS if f"`{name}`" not in page] == []
    assert [name for name in METRICS if name not in page] == []
    assert [name for name in KINDS if f"| `{name}` |" not in page] == []


@pytest.mark.parametrize("page", sorted(DOCS.rglob("*.md")), ids=lambda page: page.name)
def test_source_links_name_what_is_there(page: Path) -> None:
    """[`name`](../src/file.py) says that the file defines the name."""
    line_of = runpy.run_path(str(DOCS / "website.py"))["line_of"]
    for text, target in re.findall(r"\[`([^`]+)`\]\((\.\./src/[^)]+\.py)\)", page.read_text(encoding="utf-8")):
        path = page.parent / target
        assert path.is_file(), f"{page.name} links to {target}"
        assert text.endswith(".py") or line_of(path, text), f"{page.name}: {target} does not define {text}"


def test_a_wrong_name_in_a_source_link_is_found() -> None:
    """The test above can fail."""
    line_of = runpy.run_path(str(DOCS / "website.py"))["line_of"]
    file = ROOT / "src/weft/training/step.py"
    assert (
        file.read_text(encoding="utf-8").splitlines()[line_of(file, "Step._forward") - 1].startswith("    def _forward")
    )
    assert line_of(file, "Step.no_such_method") is None
    assert line_of(file, "no_such_name") is None


def test_the_picture_of_the_rooms_is_drawn_from_the_imports() -> None:
    drawing = runpy.run_path(str(DOCS / "rooms.py"))
    assert (DOCS / "rooms.svg").read_text(encoding="utf-8") == drawing["svg"](), "run `make docs`"
    page = (DOCS / "architecture.md").read_text(encoding="utf-8")
    assert [room for room in drawing["graph"]() if f"`{room}/`" not in page and f"`{room}.py`" not in page] == []


def test_the_glossary_defines_each_term_once_and_pages_link_to_it() -> None:
    headings = re.findall(r"^### (.+)$", (DOCS / "glossary.md").read_text(encoding="utf-8"), re.MULTILINE)
    assert len(headings) == len(set(headings))
    others = "".join(page.read_text(encoding="utf-8") for page in DOCS.glob("*.md") if page.name != "glossary.md")
    for term in "Body Task Reading Window Plan Recipe Study Arm Claim Surgery Weighting".split():
        assert term in headings
        assert f"(glossary.md#{term.lower()})" in others


def test_every_family_is_on_the_page_of_bodies() -> None:
    page = (DOCS / "bodies.md").read_text(encoding="utf-8")
    assert [name for name in FAMILIES if f"| `{name}` |" not in page] == []


def test_every_key_has_a_help_text() -> None:
    named = {"tasks", "schedule", "weighting", "surgery", "optimizer", "checkpoint", "log"}
    for config in (Recipe, TaskConfig, DataConfig, OptimizerConfig, CheckpointConfig):
        for key, field in config.model_fields.items():
            assert field.description or key in named, f"{config.__name__}.{key}"


@pytest.fixture
def results(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """The names of docs/results.py, which imports its neighbour."""
    monkeypatch.syspath_prepend(str(DOCS))
    return runpy.run_path(str(DOCS / "results.py"))


def test_the_results_are_written_from_the_files_of_studies(results: dict[str, Any]) -> None:
    """Byte for byte, the picture too: no figure is written by hand."""
    made = results["made"]()
    names = {path.relative_to(ROOT).as_posix() for path in made}
    champion = json.loads((DOCS / "champion.json").read_text(encoding="utf-8"))
    drawn = {"docs/champion.svg"} if any("texts_per_second" in own for own in champion.values()) else set()
    pages = {"docs/results.md", "docs/which-method.md", "docs/better-models.md", "README.md"}
    assert names == pages | {"docs/forest.svg"} | drawn
    for path, text in made.items():
        assert path.read_bytes() == text.encode(), f"{path.name}: run `make docs`"


def test_every_committed_study_is_on_the_page_of_results(results: dict[str, Any]) -> None:
    page, picture = ((DOCS / name).read_text(encoding="utf-8") for name in ("results.md", "forest.svg"))
    shown = results["read_results"]()
    assert len(shown) == len(list((DOCS / "results").glob("*.json"))) > 0
    for one in shown:
        assert page.count(f"\n## {one.title}\n") == 1
        for claim in one.result.claims:
            assert f"[{claim.text}](#{one.anchor})" in page
            assert claim.difference is None or f">{claim.difference:+.3f}</text>" in picture


def test_a_study_is_added_without_the_paths_of_its_machine(
    results: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    content = json.loads((DOCS / "results" / "long-texts.json").read_text(encoding="utf-8"))
    content |= {"set": {"epochs": 1, "optimizer.precision": "bf16"}, "seeds": [1, 2]}
    content |= {"bodies": ["/somewhere/bodies/e5-small"], "caveats": ["/somewhere/data/a.csv: 2 of 3 rows, or 1/2"]}
    (tmp_path / "study.json").write_text(json.dumps(content), encoding="utf-8")
    monkeypatch.setitem(results["add"].__globals__, "FILES", tmp_path)
    results["add"](tmp_path)
    added = json.loads((tmp_path / "long-texts@e5-small.json").read_text(encoding="utf-8"))
    assert added == content | {"bodies": ["e5-small"], "caveats": ["a.csv: 2 of 3 rows, or 1/2"]}
    both = results["read_results"](DOCS / "results") + results["read_results"](tmp_path / "none")
    (tmp_path / "study.json").unlink()
    both += results["read_results"](tmp_path)
    text = results["page"](both)
    assert "## long-texts on e5-small" in text
    assert "(#long-texts-on-e5-small)" in text
    # what differs from the shipped study: `epochs` does not
    assert " --body e5-small --set optimizer.precision=bf16 --seeds 1,2\n" in text
    added["claims"][0]["verdict"] = "refuted"
    (tmp_path / "long-texts@e5-small.json").write_text(json.dumps(added), encoding="utf-8")
    both[-1:] = results["read_results"](tmp_path)
    words = f"{added['claims'][0]['text']} is undecided on MiniLM-L6, refuted on e5-small"
    assert words in results["page"](both)
    (tmp_path / "study.json").write_text(json.dumps(content | {"finished": False}), encoding="utf-8")
    with pytest.raises(SystemExit, match="some runs are missing"):
        results["add"](tmp_path)


@pytest.mark.parametrize(
    ("verdicts", "expected"),
    [
        ({"supported"}, "supported"),
        ({"supported", "undecided", "refuted"}, "refuted"),
        ({"supported", "undecided"}, "supported in part"),
        ({"undecided"}, "undecided"),
    ],
)
def test_one_verdict_over_the_parts_of_a_claim(results: dict[str, Any], verdicts: set[str], expected: str) -> None:
    assert results["of_all_parts"](verdicts) == expected


def test_seeds_that_detect_a_difference(results: dict[str, Any]) -> None:
    """A paired t-test detects a difference of one standard deviation of the differences with 10 pairs."""
    first, *_ = results["read_results"]()
    (claim, *_) = first.result.claims
    seeds = {claim.better: {"1": 0.59, "2": 0.71, "3": 0.80}, claim.worse: {"1": 0.6, "2": 0.7, "3": 0.8}}
    arms = {
        name: replace(arm, metrics={claim.metric: replace(arm.metrics[claim.metric], seeds=seeds.get(name, {}))})
        for name, arm in first.result.arms.items()
    }
    result = replace(first.result, arms=arms, paired_seeds=True)
    claim = replace(claim, standard_error=(0.01**2 / 3) ** 0.5, claims_asked=1)
    assert results["enough_seeds"](result, claim, 0.01) == "10"
    assert results["enough_seeds"](result, claim, 0.2) == "2"
    assert results["enough_seeds"](replace(result, paired_seeds=False), claim, 0.01) == "–", "another kind of error"
    with_rows = replace(claim, standard_error=0.02)
    assert results["enough_seeds"](result, with_rows, 0.01) == "over 100"


def test_the_page_of_the_reports_is_written_from_the_recipes() -> None:
    made = runpy.run_path(str(DOCS / "reports.py"))["page"]()
    assert (DOCS / "reports.md").read_text(encoding="utf-8") == made, "run `make docs`"

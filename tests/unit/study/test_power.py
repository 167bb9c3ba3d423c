"""What a study is expected to detect before it runs, against studies whose truth is known."""

import dataclasses
import runpy
from pathlib import Path

import pytest

from tests.tiny import recipe_content, write_recipe
from weft.study.description import describe
from weft.study.format import Claim, load_study
from weft.study.plan import StudyPlan, plan_study
from weft.study.power import detectable, published_effect

SIMULATED = runpy.run_path(str(Path(__file__).parents[3] / "docs" / "seeds.py"))["smallest"]
STUDY = """
name = "power"
base = "recipe.toml"
seeds = [1, 2, 3]
budget = { steps = 2 }
baseline = "a"
[arms.a]
published = "4-bi"
[arms.b]
"tasks.similarity.head" = "cosine"
published = "4-mixed"
[[claims]]
text = "b beats a"
better = "b"
worse = "a"
metric = "paraphrase.accuracy"
"""


@pytest.fixture(scope="module")
def plan(tiny: Path, tmp_path_factory: pytest.TempPathFactory) -> StudyPlan:
    folder = tmp_path_factory.mktemp("power")
    write_recipe(folder, recipe_content(tiny, log={"train_rows": 100}))
    (folder / "study.toml").write_text(STUDY, encoding="utf-8")
    return plan_study(load_study(str(folder / "study.toml")))


def of_size(plan: StudyPlan, seeds: int, rows: int) -> StudyPlan:
    """The same plan with other numbers of seeds and dev rows."""
    arms = {
        name: dataclasses.replace(arm, dev_rows=dict.fromkeys(arm.dev_rows, rows)) for name, arm in plan.arms.items()
    }
    return dataclasses.replace(plan, study=plan.study.model_copy(update={"seeds": tuple(range(seeds))}), arms=arms)


def claim(**changes: object) -> Claim:
    return Claim.model_validate({"text": "t", "better": "b", "worse": "a", "metric": "paraphrase.accuracy"} | changes)


@pytest.mark.parametrize("rows", [200, 863, 5000])
@pytest.mark.parametrize("seeds", [3, 5, 10])
def test_it_agrees_with_simulated_studies(plan: StudyPlan, seeds: int, rows: int) -> None:
    found = detectable(of_size(plan, seeds, rows), claim())
    assert found == pytest.approx(SIMULATED(seeds, rows, studies=20), rel=0.15)


def test_what_makes_it_smaller_and_larger(plan: StudyPlan) -> None:
    usual = detectable(of_size(plan, 3, 863), claim())
    assert usual is not None

    def least(**changes: object) -> float:
        found = detectable(of_size(plan, 3, 863), claim(**changes))
        assert found is not None
        return found

    assert least(metric="overall") < usual, "three tasks average the noise of the rows"
    assert least(on="gap") > usual, "train rows are a sample too"
    assert detectable(of_size(plan, 1, 863), claim()) is None
    assert detectable(plan, claim(metric="similarity.mse")) is None


def test_the_published_difference_is_shown_beside_it(plan: StudyPlan) -> None:
    assert published_effect(plan, claim()) == pytest.approx(0.840 - 0.712)
    assert published_effect(plan, claim(on="gap")) is None
    assert published_effect(plan, claim(metric="paraphrase.f1")) is None
    said = "\n".join(describe(plan))
    assert "minimum detectable difference: about 0." in said
    assert "published difference +0.128" in said
    assert "assume a standard deviation of 0.01 over seeds" in said

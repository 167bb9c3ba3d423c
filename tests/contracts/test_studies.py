"""Every shipped study can be planned, small and full, and all claims worth testing are asked."""

import re
from pathlib import Path

import pytest

from tests.integration.test_shipped_recipes import place  # noqa: F401  # a fixture
from weft.foundation.shipped import shipped_texts
from weft.study.format import FoundStudy, load_study
from weft.study.plan import plan_study


def test_all_thirteen_claims_are_asked() -> None:
    """Each by the claims of one study, whose first line names it."""
    asked: dict[int, str] = {}
    for name, text in shipped_texts("studies").items():
        numbers = {claim.number for claim in load_study(name).study.claims if claim.number is not None}
        said = re.match(r"# Claims? ([\d, and]+):", text)
        assert numbers == (set(map(int, re.findall(r"\d+", said[1]))) if said else set())
        assert not numbers & asked.keys()
        asked |= dict.fromkeys(numbers, name)
    assert sorted(asked) == list(range(1, 14))


@pytest.mark.parametrize("name", shipped_texts("studies"))
def test_a_claim_of_the_reports_says_which(name: str) -> None:
    for claim in load_study(name).study.claims:
        assert (claim.number is not None) == claim.published_by.startswith("report"), claim.text


@pytest.mark.parametrize("name", shipped_texts("studies"))
def test_a_shipped_study_can_be_planned(name: str, place: Path) -> None:  # noqa: F811
    found = load_study(name).study
    assert found.name == name
    assert len(found.seeds) >= 3
    assert found.claims
    asked = {arm for claim in found.claims for arm in (claim.better, claim.worse)}
    assert found.baseline in asked
    assert len(found.enlarged().seeds) >= len(found.seeds)
    small = found.model_copy(update={"set": found.set | {"max_length": 32}})
    plan = plan_study(FoundStudy(small, Path()), data_dir=place / "data", body=str(place / "body"), device="cpu")
    assert all(arm.steps > 0 for arm in plan.arms.values())
    recipes = [arm.recipe.model_copy(update={"name": ""}) for arm in plan.arms.values()]
    assert all(one != two for i, one in enumerate(recipes) for two in recipes[:i]), "two arms are the same"

"""What dropout before a head may and may not change."""

from pathlib import Path

import pytest
import torch
import torch.nn.functional as F

from tests.tiny import recipe_content
from weft.build import assemble
from weft.foundation.randomness import seeded
from weft.recipes.recipe import parse_recipe


@pytest.mark.parametrize("p", [0.1, 0.3, 0.5])
def test_dropout_keeps_the_expected_cosine(tiny: Path, p: float) -> None:
    """Training must see the cosine that evaluation sees; with a mask for each side it would see (1 - p) of it."""
    content = recipe_content(tiny, dropout=p)
    content["tasks"] = {"similarity": content["tasks"]["similarity"] | {"head": "cosine"}}
    task = assemble(parse_recipe(content, "test"), device="cpu").network.task("similarity")
    torch.manual_seed(1)
    first = torch.randn(4000, 64)
    second = first + torch.randn(4000, 64)
    with seeded(1, 0, 0, "dropout"):
        trained = task.train().outputs([first, second])
    evaluated = task.eval().outputs([first, second])
    torch.testing.assert_close(evaluated[:, 0], F.cosine_similarity(first, second))
    assert float(trained.mean()) == pytest.approx(float(evaluated.mean()), rel=0.01)
    assert float((trained - evaluated).abs().mean()) > 0.01

from pathlib import Path

import pytest
import torch

from tests.tiny import recipe_content
from weft.build import assemble
from weft.foundation.values import Encoded
from weft.nn.pooling.base import Pooling
from weft.recipes.recipe import parse_recipe
from weft.tasks.network import tokens_read


def test_the_tokens_that_are_looked_at() -> None:
    texts = [Encoded(torch.zeros(sum(lengths)), torch.zeros(0), lengths) for lengths in ((3, 2), (4,), (1, 2))]
    assert tokens_read(texts, [False, False, False]) is None
    read = tokens_read(texts, [True, False, True])
    assert read is not None
    assert read.tolist() == [0, 3, 5, 6, 7, 8, 9, 10]


@pytest.mark.parametrize("recompute", [False, True])
@pytest.mark.parametrize("layer", [None, 1, "mix"])
def test_states_that_nobody_looks_at_change_nothing(
    tiny: Path, monkeypatch: pytest.MonkeyPatch, recompute: bool, layer: int | str | None
) -> None:
    content = recipe_content(tiny)  # tasks that look at first tokens, and one that looks at all
    content["optimizer"] |= {"precision": "fp64", "gradient_checkpointing": recompute}
    for task in content["tasks"].values():
        task |= {} if layer is None else {"layer": layer}
    built = assemble(parse_recipe(content, "tiny"), device="cpu")
    network = built.network.eval()
    batches = [built.data[part.task].train.batch(part.rows) for part in built.plan.window(0).parts]

    def run() -> tuple[list[torch.Tensor], list[torch.Tensor]]:
        network.zero_grad()
        outputs = network(batches)
        torch.stack([output.square().sum() for output in outputs]).sum().backward()
        return outputs, [torch.zeros(1) if p.grad is None else p.grad.clone() for p in network.parameters()]

    only = run()
    for pooling in Pooling.__subclasses__():
        monkeypatch.setattr(pooling, "first_only", False)
    for some, every in zip(only, run(), strict=True):
        for one, other in zip(some, every, strict=True):
            torch.testing.assert_close(one, other, rtol=0, atol=1e-12)

"""Losses that see the whole batch, against sentence-transformers on the same vectors."""

from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from weft.kinds.labels import Labels
from weft.losses.angle import AngleConfig
from weft.losses.base import Loss
from weft.losses.cosent import CoSentConfig
from weft.losses.in_batch_negatives import InBatchNegativesConfig

COSINE = (-1.0, 1.0)
GRADES = Labels("regression", low=0, high=5, scaled=True)


def vectors(rows: int, texts: int, width: int = 6) -> Tensor:
    drawn = torch.randn(rows, texts, width, generator=torch.Generator().manual_seed(rows), dtype=torch.float64)
    return F.normalize(drawn, dim=2)


def apart(rows: int, texts: int) -> Tensor:
    """Numbers of texts that are all different."""
    return torch.arange(rows * texts).reshape(rows, texts)


def theirs(name: str, given: Tensor, labels: Tensor | None = None, **options: Any) -> Tensor:
    """The library's loss on vectors that a model of ours has computed."""
    from sentence_transformers.sentence_transformer import losses
    from torch import nn

    loss = getattr(losses, name)(nn.Identity(), **options)
    found: Tensor = loss.compute_loss_from_embeddings(list(given.unbind(dim=1)), labels)
    return found


@pytest.mark.parametrize("texts", [2, 3, 4])
def test_in_batch_negatives_equal_the_library(texts: int) -> None:
    given = vectors(7, texts)
    loss = InBatchNegativesConfig(scale=13.0).build(Labels("matches"), "t", COSINE)
    torch.testing.assert_close(
        loss(given, apart(7, texts)).mean(), theirs("MultipleNegativesRankingLoss", given, scale=13.0)
    )


def test_symmetric_in_batch_negatives_equal_the_library() -> None:
    given = vectors(7, 2)
    loss = InBatchNegativesConfig(symmetric=True).build(Labels("matches"), "t", COSINE)
    both = {"directions": ("query_to_doc", "doc_to_query"), "partition_mode": "per_direction"}
    torch.testing.assert_close(loss(given, apart(7, 2)).mean(), theirs("MultipleNegativesRankingLoss", given, **both))


@pytest.mark.parametrize(("config", "name"), [(CoSentConfig(), "CoSENTLoss"), (AngleConfig(), "AnglELoss")])
@pytest.mark.parametrize("rows", [2, 9])
def test_graded_losses_equal_the_library(config: CoSentConfig | AngleConfig, name: str, rows: int) -> None:
    given = vectors(rows, 2)
    labels = torch.tensor([0.0, 1.0, 0.5, 0.5, 0.2, 0.9, 0.0, 0.3, 1.0], dtype=torch.float64)[:rows]
    loss: Loss = config.build(GRADES, "t", COSINE)
    cosines = (given[:, 0] * given[:, 1]).sum(dim=1, keepdim=True)
    found = loss(given if loss.reads_vectors else cosines, labels)
    torch.testing.assert_close(found, theirs(name, given, labels).expand(rows))


def test_an_odd_width_is_padded() -> None:
    loss = AngleConfig().build(GRADES, "t", COSINE)
    given, labels = vectors(4, 2, width=5), torch.tensor([0.0, 1.0, 0.5, 0.2], dtype=torch.float64)
    torch.testing.assert_close(loss(given, labels), loss(F.pad(given, (0, 1)), labels))


def one_row(given: Tensor, row: int, candidates: list[Tensor]) -> Tensor:
    """The loss of a row from its definition; its own match comes first."""
    scores = torch.stack([20 * given[row, 0] @ candidate for candidate in candidates])
    return scores.logsumexp(0) - scores[0]


def test_equal_texts_and_known_matches_are_no_negatives() -> None:
    given = vectors(5, 2)
    # row 1 repeats the match of row 0; row 2 has the first text of row 0; the match of row 3 is the first text of row 0
    numbers = torch.tensor([[0, 1], [2, 1], [0, 3], [4, 0], [5, 6]])
    loss = InBatchNegativesConfig().build(Labels("matches"), "t", COSINE).eval()
    second = given[:, 1]
    expected = [
        one_row(given, 0, [second[0], second[4]]),
        one_row(given, 1, [second[1], second[2], second[3], second[4]]),
        one_row(given, 2, [second[2], second[4]]),
        one_row(given, 3, [second[3], second[0], second[1], second[2], second[4]]),
        one_row(given, 4, [second[4], second[0], second[1], second[2], second[3]]),
    ]
    torch.testing.assert_close(loss(given, numbers), torch.stack(expected))


def test_matches_of_other_batches_are_known_in_training() -> None:
    given, numbers = vectors(2, 2), torch.tensor([[0, 1], [2, 3]])
    loss = InBatchNegativesConfig().build(Labels("matches"), "t", COSINE).train()
    free = loss(given, numbers)
    loss.observe(torch.tensor([[0, 1], [2, 3], [0, 3]]).numpy())  # another row says that 3 matches 0
    bound = loss(given, numbers)
    assert bound[0] == 0
    assert free[0] > 0
    assert bound[1] == free[1]
    assert loss.eval()(given, numbers)[0] == free[0], "dev texts have numbers of their own"


def test_a_hard_negative_that_is_a_match_is_left_out() -> None:
    given = vectors(2, 3)
    loss = InBatchNegativesConfig().build(Labels("matches"), "t", COSINE)
    numbers = torch.tensor([[0, 1, 4], [2, 3, 1]])  # the negative of row 1 is the match of row 0
    expected = one_row(given, 0, [given[0, 1], given[1, 1], given[0, 2]])
    torch.testing.assert_close(loss(given, numbers)[0], expected)


def test_half_precision_does_not_reach_the_similarities() -> None:
    loss = InBatchNegativesConfig().build(Labels("matches"), "t", COSINE)
    given = vectors(5, 2).float()
    with torch.autocast("cpu", torch.bfloat16):
        found = loss(given, apart(5, 2))
    torch.testing.assert_close(found, loss(given, apart(5, 2)))

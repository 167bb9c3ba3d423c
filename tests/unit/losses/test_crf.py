"""The CRF against the sum over all sequences of tags."""

import itertools
from collections.abc import Sequence

import pytest
import torch
from torch import Tensor

from weft.foundation.values import Words
from weft.losses.crf import Crf

TAGS = 3
LENGTHS = (4, 1, 0, 3)


def made() -> tuple[Crf, Tensor, Tensor, Words]:
    """A CRF with random scores, and rows of different lengths, one of them empty."""
    generator = torch.Generator().manual_seed(0)
    crf = Crf(TAGS).double()
    with torch.no_grad():
        for parameter in crf.parameters():
            parameter.copy_(torch.randn(parameter.shape, generator=generator, dtype=torch.float64))
    rows = torch.repeat_interleave(torch.arange(len(LENGTHS)), torch.tensor(LENGTHS))
    output = torch.randn(len(rows), TAGS, generator=generator, dtype=torch.float64, requires_grad=True)
    target = torch.randint(TAGS, (len(rows),), generator=generator)
    return crf, output, target, Words(rows, torch.zeros_like(rows), len(LENGTHS))


def score(crf: Crf, output: Tensor, tags: Sequence[int]) -> Tensor:
    total = crf.first[tags[0]] + crf.last[tags[-1]]
    for at, tag in enumerate(tags):
        total = total + output[at, tag]
        if at:
            total = total + crf.transitions[tags[at - 1], tag]
    return total


def all_scores(crf: Crf, output: Tensor) -> tuple[list[tuple[int, ...]], Tensor]:
    every = list(itertools.product(range(TAGS), repeat=len(output)))
    return every, torch.stack([score(crf, output, tags) for tags in every])


def test_the_loss_equals_the_sum_over_all_sequences() -> None:
    crf, output, target, words = made()
    losses = crf.by_row(output, target, words, None)
    for row, (own, true) in enumerate(zip(output.split(LENGTHS), target.split(LENGTHS), strict=True)):
        if not len(own):
            assert losses[row] == 0
            continue
        _, scores = all_scores(crf, own)
        expected = -(score(crf, own, true.tolist()) - scores.logsumexp(0))
        torch.testing.assert_close(losses[row], expected)


def test_predictions_are_the_best_sequence_and_its_marginals() -> None:
    crf, output, _, words = made()
    read = crf.read_words(output.detach(), words)
    for own, found in zip(output.detach().split(LENGTHS), read.split(LENGTHS), strict=True):
        if not len(own):
            continue
        every, scores = all_scores(crf, own)
        best = every[int(scores.argmax())]
        assert found[:, 0].tolist() == list(best)
        shares = scores.softmax(0)
        for at, tag in enumerate(best):
            marginal = sum(share for tags, share in zip(every, shares, strict=True) if tags[at] == tag)
            torch.testing.assert_close(found[at, 1], torch.as_tensor(marginal))


def test_gradients_are_those_of_the_sum_over_all_sequences() -> None:
    crf, output, target, words = made()
    crf.by_row(output, target, words, None)[0].backward()
    assert output.grad is not None
    assert crf.transitions.grad is not None
    found = output.grad[:4].clone(), crf.transitions.grad.clone()
    output.grad = crf.transitions.grad = None
    own = output[:4]
    (all_scores(crf, own)[1].logsumexp(0) - score(crf, own, target[:4].tolist())).backward()
    torch.testing.assert_close(found, (output.grad[:4], crf.transitions.grad))


@pytest.mark.parametrize("lengths", [(2, 3), (1, 1, 1)])
def test_without_transitions_it_is_cross_entropy(lengths: tuple[int, ...]) -> None:
    rows = torch.repeat_interleave(torch.arange(len(lengths)), torch.tensor(lengths))
    words = Words(rows, torch.zeros_like(rows), len(lengths))
    output, target = torch.randn(len(rows), 4, generator=torch.Generator().manual_seed(1)), rows % 4
    expected = words.total(torch.nn.functional.cross_entropy(output, target, reduction="none"))
    torch.testing.assert_close(Crf(4).by_row(output, target, words, None), expected)

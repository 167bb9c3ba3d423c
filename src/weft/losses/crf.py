"""Linear-chain conditional random field."""

from typing import ClassVar, Literal

import torch
from torch import Tensor, nn

from weft.foundation.values import Words
from weft.kinds.labels import Labels
from weft.losses.base import Loss, LossOptions, refuse
from weft.nn.heads.base import Bounds


class Crf(Loss):
    """`-log p(y)` with `p(y) = exp s(y) / sum_z exp s(z)`,
    `s(y) = a[y_1] + sum_t o_t[y_t] + sum_t T[y_t, y_t+1] + b[y_last]`.

    Lafferty, McCallum and Pereira, "Conditional Random Fields", 2001. The outputs `o` of the head are the emissions.
    The scores `T` of transitions, `a` of the first and `b` of the last tag are parameters of the loss and start at 0,
    where the loss of a text is the sum of its words' cross-entropies. The forward algorithm computes the sum over all
    tags of a text.

    Predictions are the best tags of a text (Viterbi); the probability of each is its marginal (forward-backward).
    `read`, which regularizers and output penalties compare, is the softmax of the emissions.
    """

    activation = None

    def __init__(self, outputs: int) -> None:
        super().__init__(outputs)
        self.transitions = nn.Parameter(torch.zeros(outputs, outputs))
        """[from, to]"""
        self.first = nn.Parameter(torch.zeros(outputs))
        self.last = nn.Parameter(torch.zeros(outputs))

    def forward(self, output: Tensor, target: Tensor) -> Tensor:
        """[n] losses of texts of one word"""
        rows = torch.arange(len(output), device=output.device)
        return self.by_row(output, target, Words(rows, torch.zeros_like(rows), len(rows)), None)

    def read(self, output: Tensor) -> Tensor:
        return output.softmax(dim=1)

    def by_row(self, output: Tensor, target: Tensor, words: Words, weights: Tensor | None) -> Tensor:
        assert weights is None, "class weights are rejected for a loss of whole texts"
        emissions, tags = words.padded(output, 0.0), words.padded(target, 0)
        likelihood = self._score(emissions, tags, words) - self._log_total(emissions, words)
        return torch.where(words.lengths > 0, -likelihood, 0.0)

    def _score(self, emissions: Tensor, tags: Tensor, words: Words) -> Tensor:
        """[n] the score of the given tags"""
        own = emissions.gather(2, tags[:, :, None])[:, :, 0]
        is_word = self._is_word(emissions, words)
        moves = self.transitions[tags[:, :-1], tags[:, 1:]] * is_word[:, 1:]
        last = tags.gather(1, (words.lengths - 1).clamp(min=0)[:, None])[:, 0]
        return (own * is_word).sum(dim=1) + moves.sum(dim=1) + self.first[tags[:, 0]] + self.last[last]

    def _is_word(self, emissions: Tensor, words: Words) -> Tensor:
        """[n, longest] whether a place is a word and not padding"""
        return torch.arange(emissions.shape[1], device=emissions.device)[None] < words.lengths[:, None]

    def _log_total(self, emissions: Tensor, words: Words) -> Tensor:
        """[n] log of the sum over all tags of a text"""
        return (self._forward_scores(emissions, words)[:, -1] + self.last).logsumexp(dim=1)

    def _forward_scores(self, emissions: Tensor, words: Words) -> Tensor:
        """[n, longest, k] log of the sum over all beginnings up to a word with each tag; padding repeats the last."""
        is_word = self._is_word(emissions, words)
        scores = [self.first + emissions[:, 0]]
        for at in range(1, emissions.shape[1]):
            after = (scores[-1][:, :, None] + self.transitions).logsumexp(dim=1) + emissions[:, at]
            scores.append(torch.where(is_word[:, at, None], after, scores[-1]))
        return torch.stack(scores, dim=1)

    def _backward_scores(self, emissions: Tensor, words: Words) -> Tensor:
        """[n, longest, k] log of the sum over all endings after a word with each tag"""
        is_word = self._is_word(emissions, words)
        scores = [self.last.expand(len(emissions), -1)]
        for at in range(emissions.shape[1] - 1, 0, -1):
            before = (self.transitions + (emissions[:, at] + scores[-1])[:, None]).logsumexp(dim=2)
            scores.append(torch.where(is_word[:, at, None], before, scores[-1]))
        return torch.stack(scores[::-1], dim=1)

    def read_words(self, output: Tensor, words: Words) -> Tensor:
        emissions = words.padded(output, 0.0)
        tags = self.best_tags(emissions, words)
        both = self._forward_scores(emissions, words) + self._backward_scores(emissions, words)
        marginals = both.softmax(dim=2).gather(2, tags[:, :, None])[:, :, 0]
        found = torch.stack([tags.to(marginals.dtype), marginals], dim=2)
        return found[words.rows, words.places]

    def best_tags(self, emissions: Tensor, words: Words) -> Tensor:
        """[n, longest] the tags with the largest score, by the Viterbi algorithm"""
        is_word = self._is_word(emissions, words)
        score, origins = self.first + emissions[:, 0], []
        stay = torch.arange(self.outputs, device=emissions.device).expand_as(score)
        for at in range(1, emissions.shape[1]):
            best = (score[:, :, None] + self.transitions).max(dim=1)
            score = torch.where(is_word[:, at, None], best.values + emissions[:, at], score)
            origins.append(torch.where(is_word[:, at, None], best.indices, stay))
        tags = [(score + self.last).argmax(dim=1)]
        for origin in reversed(origins):
            tags.append(origin.gather(1, tags[-1][:, None])[:, 0])
        return torch.stack(tags[::-1], dim=1)


class CrfConfig(LossOptions):
    of_texts: ClassVar[bool] = True
    name: Literal["crf"] = "crf"

    def build(self, labels: Labels, task: str, bounds: Bounds) -> Crf:  # noqa: ARG002 (k outputs: no bounds)
        if not labels.kind.labels_words:
            raise refuse(self.name, labels, task, "tags: a label for each word of a text")
        return Crf(len(labels.names))

"""Features of rows from the untrained body. Equal texts of a part are encoded once."""

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from weft.bodies.body import Body
from weft.data.dataset import Dataset
from weft.data.readings import TokenSequence, pack
from weft.data.sources import PART
from weft.inference.passes import at_rest, by_length, without_repeats
from weft.kinds.noise import Features
from weft.nn.pooling.mean import Mean


def row_features(body: Body, dataset: Dataset, device: torch.device) -> Features:
    """[n, features] of all rows, encoded part by part, each text alone.

    A single text: its mean vector u in the last layer, with norm 1. A pair: the cosine similarity of the two mean
    vectors in every layer, standardized, and (u, v, |u - v|, u * v) of the last layer.
    """
    reader = dataset.reader.alone()
    parts = []
    with at_rest(body):
        for start in range(0, len(dataset), PART):
            rows = dataset.rows[start : start + PART]
            texts = [[dataset.file.ids(column, int(row)) for row in rows] for column in dataset.columns]
            flat = [reader.sequences(ids, None)[0] for side in texts for ids in side]
            parts.append(_joined(layer_means(body, flat, device).split(len(rows))))
    similarities, others = (torch.cat(side).numpy() for side in zip(*parts, strict=True))
    spread = np.maximum(similarities.std(axis=0), 1e-6)
    found: Features = np.concatenate([(similarities - similarities.mean(axis=0)) / spread, others], axis=1)
    return found


def _joined(sides: Sequence[Tensor]) -> tuple[Tensor, Tensor]:
    """[n, similarities] (none for single texts) and [n, others] from the [n, layers, width] means of each side."""
    units = [torch.nn.functional.normalize(side, dim=2) for side in sides]
    last = [unit[:, -1] for unit in units]
    if len(sides) == 1:
        return last[0].new_empty(len(last[0]), 0), last[0]
    u, v = last
    return (units[0] * units[1]).sum(dim=2), torch.cat([u, v, (u - v).abs(), u * v], dim=1)


@torch.no_grad()
def layer_means(body: Body, sequences: Sequence[TokenSequence], device: torch.device) -> Tensor:
    """[n, layers + 1, width] mean token vectors of each sequence in the embeddings and every layer, on the CPU."""
    distinct, places = without_repeats(sequences)
    pool = Mean(body.shape.width)
    found = torch.empty(len(distinct), body.shape.layers + 1, body.shape.width)
    for group in by_length(distinct):
        encoded = pack([distinct[i] for i in group]).to(device)
        means = [pool(layer, encoded) for layer in body(encoded)]
        found[torch.tensor(group)] = torch.stack(means, dim=1).float().cpu()
    return found[torch.tensor(places)]

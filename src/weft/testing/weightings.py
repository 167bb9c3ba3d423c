"""The contract of a weighting."""

from collections.abc import Sequence

import torch

from weft.testing.configs import check_config, require, require_close
from weft.weighting.base import WeightingOptions

STEPS = 250
"""Enough steps for methods that use the history of losses."""


def check_weighting(config: WeightingOptions, tasks: Sequence[str] = ("a", "b", "c")) -> None:
    """Check that a weighting is affine in the losses and keeps all state in parameters and buffers.

    `tasks` are at least three names, for a config that names tasks.
    """
    check_config(config)
    names = tuple(tasks)
    weighting, other = config.build(names), config.build(names)
    where = type(weighting).__name__
    generator = torch.Generator().manual_seed(0)
    for each in (weighting, other):
        each.calibrate({task: 0.5 + number for number, task in enumerate(names)})
    for step in range(STEPS):
        weighting.prepare(step)
        weighting.observe(torch.rand(len(names), generator=generator), names)
    window = (names[2], names[0])
    low, high = torch.tensor([0.3, 2.0]), torch.tensor([1.1, 0.5])
    weighted = weighting(low, window)
    require(weighted.shape == low.shape, f"{where}: returns shape {list(weighted.shape)}, expected one value per loss")
    require(torch.isfinite(weighted).all(), f"{where}: returns losses that are not finite: {weighted.tolist()}")
    slopes = weighting.slopes(window, torch.zeros(()))
    difference = weighting(high, window) - weighted
    require_close(difference, slopes * (high - low), f"{where}: a weighted loss is not affine in its loss")
    other.load_state_dict(weighting.state_dict())
    other.prepare(STEPS - 1)
    require_close(other(low, window), weighted, f"{where}: weighted losses differ after the state was saved and loaded")

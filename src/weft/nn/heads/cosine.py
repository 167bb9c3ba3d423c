"""The angle between the two vectors."""

from typing import Literal

import torch.nn.functional as F
from torch import Tensor

from weft.errors import UserError
from weft.nn.heads.base import Head, HeadShape
from weft.variants import Config


class Cosine(Head):
    """`cos(u, v)`: no parameters, so the body alone must learn."""

    def forward(self, first: Tensor, second: Tensor | None) -> Tensor:
        assert second is not None, "the config refuses a reading that gives one vector"
        return F.cosine_similarity(first, second, dim=1)[:, None]


class CosineConfig(Config):
    name: Literal["cosine"] = "cosine"

    def build(self, shape: HeadShape) -> Cosine:
        if not shape.pair:
            raise UserError(f"tasks.{shape.task}.head: 'cosine' compares two vectors; it needs reading = \"bi\"")
        if shape.outputs != 1:
            raise UserError(
                f"tasks.{shape.task}.head: 'cosine' gives one number, but the task's loss needs {shape.outputs}; "
                "use it for a regression, or choose another head"
            )
        return Cosine(1)

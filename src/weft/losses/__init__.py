"""Losses. The union below is the registry: a recipe's `loss` is one of these."""

from typing import Annotated

from pydantic import Field

from weft.foundation.components import Exchangeable
from weft.losses.angle import AngleConfig
from weft.losses.base import LossOptions
from weft.losses.binary_cross_entropy import BinaryCrossEntropyConfig
from weft.losses.cosent import CoSentConfig
from weft.losses.cosine_embedding import CosineEmbeddingConfig
from weft.losses.crf import CrfConfig
from weft.losses.cross_entropy import CrossEntropyConfig
from weft.losses.dual_objective import DualObjectiveConfig
from weft.losses.focal import FocalConfig
from weft.losses.in_batch_negatives import InBatchNegativesConfig
from weft.losses.logit_adjusted import LogitAdjustedConfig
from weft.losses.mse import MeanSquaredErrorConfig
from weft.losses.ordinal_log import OrdinalLogConfig

LossConfig = Annotated[
    CrossEntropyConfig
    | BinaryCrossEntropyConfig
    | MeanSquaredErrorConfig
    | CosineEmbeddingConfig
    | DualObjectiveConfig
    | OrdinalLogConfig
    | InBatchNegativesConfig
    | CoSentConfig
    | AngleConfig
    | FocalConfig
    | LogitAdjustedConfig
    | CrfConfig,
    Field(discriminator="name"),
    Exchangeable(LossOptions),
]

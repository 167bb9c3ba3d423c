"""Schedules. The union below is the registry: a recipe's `schedule` is one of these."""

from typing import Annotated

from pydantic import Field

from weft.foundation.components import Exchangeable
from weft.schedules.alternating import AlternatingConfig
from weft.schedules.balanced import BalancedConfig
from weft.schedules.base import ScheduleOptions
from weft.schedules.batch_round_robin import BatchRoundRobinConfig
from weft.schedules.by_size import AnnealedConfig, ProportionalConfig, SquareRootConfig
from weft.schedules.capped import CappedConfig
from weft.schedules.epoch_round_robin import EpochRoundRobinConfig
from weft.schedules.full_data import FullDataConfig
from weft.schedules.independent import IndependentConfig
from weft.schedules.max_size_cycle import MaxSizeCycleConfig
from weft.schedules.repeat_capped import RepeatCappedConfig
from weft.schedules.sampled import SampledConfig
from weft.schedules.sequential import SequentialConfig
from weft.schedules.staggered import StaggeredConfig

ScheduleConfig = Annotated[
    SequentialConfig
    | IndependentConfig
    | EpochRoundRobinConfig
    | BatchRoundRobinConfig
    | AlternatingConfig
    | BalancedConfig
    | CappedConfig
    | FullDataConfig
    | SampledConfig
    | MaxSizeCycleConfig
    | RepeatCappedConfig
    | StaggeredConfig
    | ProportionalConfig
    | SquareRootConfig
    | AnnealedConfig,
    Field(discriminator="name"),
    Exchangeable(ScheduleOptions),
]

"""All schedules. The union below is the registry: a recipe's `schedule` is one of these."""

from typing import Annotated

from weft.schedules.batch_round_robin import BatchRoundRobinConfig
from weft.variants import NAME_ALONE

ScheduleConfig = Annotated[BatchRoundRobinConfig, NAME_ALONE]

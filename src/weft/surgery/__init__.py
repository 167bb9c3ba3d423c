"""Gradient surgery methods. The union below is the registry: a recipe's `surgery` is one of these."""

from typing import Annotated

from pydantic import Field

from weft.foundation.components import Exchangeable
from weft.surgery.aligned_mtl import AlignedMTLConfig
from weft.surgery.base import SurgeryOptions
from weft.surgery.cagrad import CAGradConfig
from weft.surgery.imtl_g import IMTLGConfig
from weft.surgery.mgda import MGDAConfig
from weft.surgery.none import NoSurgeryConfig
from weft.surgery.pcgrad import PCGradConfig
from weft.surgery.upgrad import UPGradConfig

SurgeryConfig = Annotated[
    NoSurgeryConfig | PCGradConfig | UPGradConfig | CAGradConfig | MGDAConfig | IMTLGConfig | AlignedMTLConfig,
    Field(discriminator="name"),
    Exchangeable(SurgeryOptions),
]

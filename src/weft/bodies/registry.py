"""Registry of all families by the `model_type` of config.json."""

from weft.bodies.albert import Albert
from weft.bodies.bert import Bert
from weft.bodies.deberta import Deberta
from weft.bodies.distilbert import DistilBert
from weft.bodies.electra import Electra
from weft.bodies.family import Family
from weft.bodies.modernbert import ModernBert
from weft.bodies.mpnet import Mpnet
from weft.bodies.roberta import Camembert, Roberta, XlmRoberta

LISTED: tuple[Family, ...] = (
    Bert(),
    Roberta(),
    XlmRoberta(),
    Camembert(),
    DistilBert(),
    Electra(),
    Albert(),
    Mpnet(),
    ModernBert(),
    Deberta(),
)
FAMILIES: dict[str, Family] = {family.model_type: family for family in LISTED}

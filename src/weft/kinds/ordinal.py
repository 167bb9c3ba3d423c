"""One class out of several for each row, where classes have an order."""

from collections.abc import Mapping
from typing import ClassVar

import numpy as np

from weft.kinds import counted, forms
from weft.kinds.classification import Classification
from weft.kinds.forms import Form


class Ordinal(Classification):
    """Classes whose distance counts: metrics tell a near miss from a far one."""

    name = "ordinal"
    default_metrics: ClassVar[tuple[str, ...]] = ("accuracy", "f1", "class-distance")
    metrics: ClassVar[Mapping[str, Form]] = {
        **Classification.metrics,
        "kappa": forms.of_classes(forms.library("cohen_kappa_score", weights="quadratic"), counted.kappa),
        "class-distance": forms.of_classes(
            forms.library("mean_absolute_error"),
            counted.class_distance,
            of_row=lambda truth, p: np.abs(truth.kind.decide(p) - truth.targets).astype(np.float64),
        ),
    }

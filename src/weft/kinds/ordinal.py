"""Ordinal classification: one of several ordered classes per row."""

from collections.abc import Mapping
from typing import ClassVar

import numpy as np

from weft.kinds import counted, forms
from weft.kinds.classification import Classification
from weft.kinds.forms import Form


class Ordinal(Classification):
    """A classification with ordered classes. Some metrics depend on the distance between classes."""

    name = "ordinal"
    default_metrics: ClassVar[tuple[str, ...]] = ("accuracy", "f1", "class-distance")
    metrics: ClassVar[Mapping[str, Form]] = {
        **Classification.metrics,
        "kappa": forms.of_classes(forms.library("cohen_kappa_score", weights="quadratic"), counted.kappa),
        "class-distance": forms.of_classes(
            forms.library("mean_absolute_error"),
            counted.class_distance,
            of_row=lambda truth, p: np.abs(truth.decide(p) - truth.targets).astype(np.float64),
        ),
    }

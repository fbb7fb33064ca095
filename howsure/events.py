"""Events, and how their uncertainties follow from what a head computes."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import cast

import numpy as np
from numpy.typing import NDArray

from howsure.statistics.arrays import Uncertainty
from howsure.statistics.bins.table import BinTable
from howsure.statistics.label_model.model import LabelModel, LabelOdds
from howsure.statistics.label_model.recorded import Formula


@dataclass(frozen=True, eq=False)
class HeadOutputs:
    """What a head computes for each sample: top classes, their scores, and uncertainties.

    Attributes
    ----------
    top_classes : ndarray of int64, shape (n_samples, n_top)
        Best first.
    top_scores : ndarray of float32, shape (n_samples, n_top)
        The model's softmax of these classes.
    uncertainty : mapping of str to ndarray of float32, shape (n_samples,)
        By column.
    """

    top_classes: NDArray[np.int64]
    top_scores: NDArray[np.float32]
    uncertainty: Mapping[str, NDArray[np.float32]]


@dataclass(frozen=True)
class TabledEvent:
    """An event's measure, its column in a model's output, and its table.

    A learned measure is computed from other columns by its formula.
    """

    k: int
    measure: str
    column: str
    table: BinTable
    learned: Formula | None = None

    @property
    def needs(self) -> tuple[str, ...]:
        """The columns of the model's output that the measure is read or computed from."""
        return (self.column,) if self.learned is None else self.learned.columns

    def uncertainty(self, outputs: HeadOutputs, odds: LabelOdds | None) -> Uncertainty:
        """Return the measure, float32 of shape (n_samples,); ``odds`` are those of `label_odds`."""
        if self.learned is None:
            return outputs.uncertainty[self.column]
        if isinstance(self.learned, LabelModel):
            own = label_odds(self.learned, outputs) if odds is None else odds
            return cast("LabelOdds", own).uncertainty(self.k)
        inputs = np.stack([outputs.uncertainty[name] for name in self.learned.columns], axis=1)
        first, second = outputs.top_classes[:, 0], outputs.top_classes[:, 1]
        return self.learned.uncertainty(inputs, first, second).astype(np.float32)


def label_odds(model: LabelModel | None, outputs: HeadOutputs) -> LabelOdds | None:
    """Return the log-probabilities of the classes by the model of the labels, if there is one."""
    if model is None:
        return None
    columns = [outputs.uncertainty[name] for name in model.columns]
    log_rest = np.stack(columns, axis=1) if columns else np.empty((len(outputs.top_classes), 0))
    return model.odds(outputs.top_classes, outputs.top_scores, log_rest)

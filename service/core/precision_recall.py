"""The precision-recall curve of finding errors by uncertainty."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from service.core.arrays import Rates
from service.core.cut_points import CutPoints
from service.core.thinned import thinned


@dataclass(frozen=True, eq=False)
class PrecisionRecallCurve:
    """What a threshold finds among the samples of ``U > threshold``; errors are the positives.

    Attributes
    ----------
    threshold : ndarray of float64, shape (n_points,)
        Descending; the last, which flags all, is ``-inf``.
    precision : ndarray of float64, shape (n_points,)
        Share of errors among the flagged; at the end, that of all samples.
    recall : ndarray of float64, shape (n_points,)
        Share of the errors that is flagged, ascending to 1.
    """

    threshold: Rates
    precision: Rates
    recall: Rates

    def as_dict(self) -> dict[str, Any]:
        """Return plain lists; no threshold is None."""
        return {
            "threshold": [t if np.isfinite(t) else None for t in self.threshold.tolist()],
            "precision": self.precision.tolist(),
            "recall": self.recall.tolist(),
        }

    def thin(self) -> "PrecisionRecallCurve":
        """Return at most 200 of the points, evenly far along the recall, the ends among them."""
        kept = thinned(self.recall)
        return PrecisionRecallCurve(self.threshold[kept], self.precision[kept], self.recall[kept])


def precision_recall_curve(points: CutPoints) -> PrecisionRecallCurve | None:
    """Return the curve, or None without an error.

    Where nothing is flagged there is no precision, hence no point: the curve starts at the
    samples of greatest uncertainty. scikit-learn adds a point of precision 1 there.
    """
    if points.n_errors == 0:
        return None
    flagged = points.n_samples - np.append(points.accepted[-2::-1], 0)
    found = points.n_errors - np.append(points.errors[-2::-1], 0)
    return PrecisionRecallCurve(
        threshold=np.append(points.thresholds[-2::-1].astype(np.float64), -np.inf),
        precision=found / flagged,
        recall=found / points.n_errors,
    )

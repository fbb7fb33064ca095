"""The ROC curve of finding errors by uncertainty."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from service.core.arrays import Rates
from service.core.cut_points import CutPoints
from service.core.thinned import thinned


@dataclass(frozen=True, eq=False)
class RocCurve:
    """What a threshold finds among the samples of ``U > threshold``; errors are the positives.

    Attributes
    ----------
    threshold : ndarray of float64, shape (n_points,)
        Descending; the last, which flags all, is ``-inf``.
    false_positive_rate : ndarray of float64, shape (n_points,)
        Share of the hits that is flagged, from 0 to 1.
    true_positive_rate : ndarray of float64, shape (n_points,)
        Share of the errors that is flagged, from 0 to 1.
    """

    threshold: Rates
    false_positive_rate: Rates
    true_positive_rate: Rates

    def as_dict(self) -> dict[str, Any]:
        """Return plain lists; no threshold is None."""
        return {
            "threshold": [t if np.isfinite(t) else None for t in self.threshold.tolist()],
            "false_positive_rate": self.false_positive_rate.tolist(),
            "true_positive_rate": self.true_positive_rate.tolist(),
        }

    def thin(self) -> "RocCurve":
        """Return at most 200 of the points, evenly far along both axes, the ends among them."""
        kept = thinned(self.false_positive_rate + self.true_positive_rate)
        return RocCurve(
            self.threshold[kept], self.false_positive_rate[kept], self.true_positive_rate[kept]
        )


def roc_curve(points: CutPoints) -> RocCurve | None:
    """Return the curve, or None without a hit or without an error.

    From (0, 0), where nothing is flagged, to (1, 1); equal values are flagged together, and the
    area under straight lines between the points counts their ties half.
    """
    n_errors = points.n_errors
    n_hits = points.n_samples - n_errors
    if n_hits == 0 or n_errors == 0:
        return None
    kept_errors = np.append(points.errors[::-1], 0)
    kept_hits = np.append((points.accepted - points.errors)[::-1], 0)
    return RocCurve(
        threshold=np.append(points.thresholds[::-1].astype(np.float64), -np.inf),
        false_positive_rate=(n_hits - kept_hits) / n_hits,
        true_positive_rate=(n_errors - kept_errors) / n_errors,
    )

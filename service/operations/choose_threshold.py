"""Choose a threshold on the uncertainty by what it is to keep to, and say what follows from it."""

from dataclasses import dataclass
from typing import Any

from service.core.certifiable_risk import certifiable_risk
from service.core.expected_volume import ExpectedVolume, expected_volume
from service.core.judged_table import LabelledUncertainty
from service.core.operating_point import Consequences, consequences, threshold_of_coverage
from service.core.selective import SelectiveTarget, fit_selective


@dataclass(frozen=True)
class ThresholdChoice:
    """What a threshold is chosen by: itself, the least share to accept, or the largest risk.

    Exactly one of the first three is set; ``delta``, the probability that the bound on the risk
    fails, goes with ``max_risk``.
    """

    threshold: float | None = None
    coverage: float | None = None
    max_risk: float | None = None
    delta: float = 0.05

    def as_dict(self) -> dict[str, Any]:
        """Return what was asked for."""
        if self.max_risk is not None:
            return {"max_risk": self.max_risk, "delta": self.delta}
        if self.coverage is not None:
            return {"coverage": self.coverage}
        return {"threshold": self.threshold}


@dataclass(frozen=True)
class ChosenThreshold:
    """A threshold and what it does to the calibration set.

    Attributes
    ----------
    threshold : float or None
        Accept ``U <= threshold``; None where none keeps to the risk.
    consequences : Consequences or None
        None without a threshold, and where no samples are kept to look at.
    certified : bool
        Whether the risk is bounded with confidence ``1 - delta``: of a threshold that was chosen by
        a risk, and of no other.
    labels_missing : int or None
        Where none keeps to the risk, about how many more labelled samples would let one.
    max_risk : float or None
        The risk that was asked for; of another choice the least one that could have been, to accept
        as much: None where there is none, or nothing is accepted.
    expected : ExpectedVolume or None
        What follows for so many answers, where it was asked for.
    """

    threshold: float | None
    consequences: Consequences | None
    certified: bool
    labels_missing: int | None = None
    max_risk: float | None = None
    expected: ExpectedVolume | None = None


def choose_threshold(
    choice: ThresholdChoice,
    samples: LabelledUncertainty,
    *,
    level: float,
    volume: int | None = None,
) -> ChosenThreshold:
    """Return the threshold that a choice means on these samples; ``level`` is of the intervals.

    With ``volume``, also what follows for so many answers.

    Raises
    ------
    ValueError
        If a number of the choice is out of range.
    """
    uncertainty, hits = samples.uncertainty, samples.hits
    missing: int | None = None
    if choice.max_risk is not None:
        found = fit_selective(uncertainty, hits, SelectiveTarget(choice.max_risk, choice.delta))
        threshold, missing = found.threshold, found.labels_missing
    elif choice.coverage is not None:
        threshold = threshold_of_coverage(uncertainty, hits, choice.coverage)
    else:
        threshold = choice.threshold
    if threshold is None:
        return ChosenThreshold(
            None, None, certified=False, labels_missing=missing, max_risk=choice.max_risk
        )
    seen = consequences(uncertainty, hits, threshold, level=level)
    max_risk = choice.max_risk
    if max_risk is None and seen.n_accepted:
        max_risk = certifiable_risk(uncertainty, hits, seen.n_accepted, delta=choice.delta)
    return ChosenThreshold(
        threshold,
        seen,
        certified=choice.max_risk is not None,
        max_risk=max_risk,
        expected=None if volume is None else expected_volume(seen, volume, level=level),
    )

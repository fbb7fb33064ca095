"""Which probability of an event is best."""

from dataclasses import dataclass

from service.core.paired import PairedDifference
from service.core.plain_data import PlainData


@dataclass(frozen=True)
class Finding:
    """Who has the least negative log-likelihood on one set of judged samples.

    Attributes
    ----------
    best : str
        ``bins`` for the table served, else the name of a baseline.
    nll : float
        Of the best, nats.
    rival : str or None
        ``bins`` where a baseline is best, else the best of the baselines.
    difference : PairedDifference or None
        Negative log-likelihood of the rival minus that of the best: over folds in
        cross-validation, over samples on an evaluation set. Never negative, as the best is best.
    """

    best: str
    nll: float
    rival: str | None
    difference: PairedDifference | None


@dataclass(frozen=True)
class Verdict(PlainData):
    """The verdict on one event.

    Attributes
    ----------
    best : str or None
        By cross-validation: ``bins`` for the table served, or the name of a baseline. None
        without cross-validation.
    sentence : str
        Who is best, and by how much, for the reader of a report.
    cross_validation, evaluation : Finding or None
    """

    best: str | None
    sentence: str
    cross_validation: Finding | None = None
    evaluation: Finding | None = None

"""What a calibrator is: another way to a probability, which the bin table is measured against."""

from collections.abc import Callable
from dataclasses import dataclass, field

from service.core.arrays import BinIndex, Floats, Rates, Uncertainty
from service.core.records import Records


@dataclass(frozen=True, eq=False)
class Confidence:
    """What a calibrator says of each sample.

    Attributes
    ----------
    probability : ndarray of float64, shape (n_samples,)
        That the event holds, in [0, 1].
    uncertainty : ndarray of float32 or float64, shape (n_samples,)
        What ranks the samples. Kept beside the probability, which rounds to 1 for many.
    """

    probability: Rates
    uncertainty: Uncertainty | Floats


@dataclass(frozen=True, eq=False)
class Fitted:
    """A calibrator that has learnt.

    Attributes
    ----------
    predict : callable
        From any records to a `Confidence`; calling the object does the same.
    parameters : dict of str to float
        What was learnt, where a few numbers say it.
    """

    predict: Callable[[Records], Confidence]
    parameters: dict[str, float] = field(default_factory=dict)

    def __call__(self, records: Records) -> Confidence:
        """Return what it says of each sample."""
        return self.predict(records)


@dataclass(frozen=True)
class Calibrator:
    """A baseline of every report.

    Attributes
    ----------
    name : str
        Its name everywhere: reports, tables, JSON.
    meaning : str
        For a reader of the report.
    fit : callable
        ``fit(records, k, rows)`` learns the Top-k event from the records at positions ``rows``
        alone, and returns what predicts it for any records.
    learns : bool
        Whether it looks at labels at all.
    """

    name: str
    meaning: str
    fit: Callable[[Records, int, BinIndex], Fitted]
    learns: bool = True

"""What fitting a calibration gives."""

from dataclasses import dataclass

from service.core.bins.table import BinTable
from service.core.candidates import BinCandidate
from service.core.crossval import FoldScore


@dataclass(frozen=True, eq=False)
class MeasureFit:
    """One uncertainty measure fitted to one event.

    Attributes
    ----------
    measure, column : str
        The measure, and the column of the records that holds it for this event.
    table : BinTable
        Fitted on all samples: what is served.
    quantile_bins : int
        Bins before any were pooled: fewer than asked for where equal values share a bin.
    scores : dict of str to FoldScore
        Cross-validated. The pooled ``eor``, a property of a table, is that of ``table``.
    evaluation : dict of str to float or None, optional
        Scores of ``table`` on the evaluation set.
    candidates : tuple of BinCandidate
        Numbers of bins that were tried, ascending.
    """

    measure: str
    column: str
    table: BinTable
    quantile_bins: int
    scores: dict[str, FoldScore]
    evaluation: dict[str, float | None] | None
    candidates: tuple[BinCandidate, ...]


@dataclass(frozen=True, eq=False)
class BaselineFit:
    """Another way to a probability of the same event, judged on the same folds.

    Attributes
    ----------
    name : str
        In `service.core.calibrators.CALIBRATORS`.
    log_floor : float
        Its logarithms see the probability clipped to ``[log_floor, 1 - log_floor]``:
        ``1 / (2 n)``, with ``n`` the samples of the calibration set.
    scores, evaluation
        As those of `MeasureFit`, without the scores that need bins.
    """

    name: str
    log_floor: float
    scores: dict[str, FoldScore]
    evaluation: dict[str, float | None] | None


@dataclass(frozen=True, eq=False)
class EventFit:
    """One event, "the label is among the ``k`` top classes".

    Attributes
    ----------
    k : int
    accuracy : float
        Share of the samples for which it holds.
    n_samples : int
    measures : dict of str to MeasureFit
        By measure, in the order asked for.
    baselines : dict of str to BaselineFit
        By name.
    served : str
        The measure whose table answers.
    """

    k: int
    accuracy: float
    n_samples: int
    measures: dict[str, MeasureFit]
    baselines: dict[str, BaselineFit]
    served: str


@dataclass(frozen=True, eq=False)
class Fit:
    """A fitted calibration.

    Attributes
    ----------
    events : dict of int to EventFit
        By ``k``, in the order asked for.
    warnings : list of str
        Sentences for the reader.
    """

    events: dict[int, EventFit]
    warnings: list[str]

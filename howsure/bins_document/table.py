"""Table of a bins document: the bins of one measure for one event, with its curve and formula."""

from typing import Annotated, TypeAlias

from msgspec import Meta

from howsure.bins_document.parts import Count, Inside, Part, Positive, Rate, SparsePart
from howsure.limits import MAX_BINS, MAX_STRENGTH, TINY
from howsure.statistics.bins.curve import MAX_KNOTS
from howsure.statistics.bins.intervals import INTERVALS
from howsure.statistics.bins.lookup import Lookup
from howsure.statistics.learned.model import N_INPUTS
from howsure.statistics.records.records import USUAL
from howsure.statistics.softmax import MOST_COMPLETE

Knots: TypeAlias = Annotated[list[float], Meta(max_length=MAX_KNOTS)]
Four: TypeAlias = Annotated[list[float], Meta(min_length=N_INPUTS, max_length=N_INPUTS)]
Matrix: TypeAlias = Annotated[list[list[float]], Meta(max_length=MOST_COMPLETE)]


class Interval(Part, frozen=True, kw_only=True):
    """The interval of a table's probabilities.

    Attributes
    ----------
    method : str
        A name in `howsure.statistics.bins.intervals.INTERVALS`.
    level : float
        Probability that an interval contains the true value.
    simultaneous : bool
        Whether ``level`` applies to all bins together.
    """

    method: str
    level: Annotated[float, Meta(gt=0, le=1 - TINY)]
    simultaneous: bool

    def __post_init__(self) -> None:
        if self.method not in INTERVALS:
            raise ValueError(f"method must be one of {', '.join(INTERVALS)}, not {self.method!a}")


class Prior(Part, frozen=True, kw_only=True):
    """The prior of a table's probabilities.

    Attributes
    ----------
    accuracy : float
        The prior mean: the hit rate of the calibration set.
    strength : float
        Number of samples that the prior counts for.
    degenerate : bool
        Whether the event always or never happened, so that ``accuracy`` is a stand-in.
    """

    accuracy: Inside
    strength: Annotated[float, Meta(ge=TINY, le=MAX_STRENGTH)]
    degenerate: bool


class Bin(Part, frozen=True, kw_only=True):
    """Samples with an uncertainty in (lower, upper].

    Attributes
    ----------
    lower, upper : float or None
        Null: no limit. A float32, exactly.
    count : int
        Number of calibration samples.
    hits : int
        Samples for which the event holds.
    weight : float
        Share of the calibration samples. It follows from others; optional in an import.
    probability : float
        The served probability: hits / count, regularised.
    interval : tuple of float
        The interval of the served probability.
    mean_uncertainty : float or None
        Mean of its samples; null without any.
    odds_ratio : float or None
        Its odds relative to those of the whole set; null if they overflow. It follows from others;
        optional in an import.
    """

    lower: float | None
    upper: float | None
    count: Count
    hits: Count
    weight: float | None = None
    probability: Inside
    interval: tuple[Rate, Rate]
    mean_uncertainty: float | None
    odds_ratio: float | None = None


class CurveKnots(Part, frozen=True, kw_only=True):
    """The curve of a smooth lookup: linear between its knots, constant beyond the outer two.

    Attributes
    ----------
    uncertainty : list of float
        Ascending; each is a float32, exactly.
    probability, lower, upper : list of float
        The probability at each knot, and the ends of its interval.
    """

    uncertainty: Annotated[Knots, Meta(min_length=1)]
    probability: Knots
    lower: Knots
    upper: Knots


class LearnedFormula(Part, frozen=True, kw_only=True):
    """The formula of the measure `learned` of earlier versions: docs/statistics.md.

    Attributes
    ----------
    k : int
        The event.
    temperature : int
        Index in the grid.
    intercept, saturated : float
        Constants, the second one where all other classes have no mass.
    linear, square : list of float
        Coefficients of the inputs and of their squares.
    lower, upper : list of float
        Least and largest input in the calibration set.
    offset, slope : list of float
        By predicted class; the slope is of the first input.
    second : list of float
        By second class.
    """

    k: Positive
    temperature: Annotated[int, Meta(ge=0, lt=USUAL)]
    intercept: float
    saturated: float
    linear: Four
    square: Four
    lower: Four
    upper: Four
    offset: list[float]
    slope: list[float]
    second: list[float]


class LabelFormula(Part, frozen=True, kw_only=True):
    """The model of the labels, which the measure `learned` is computed by: docs/statistics.md.

    Attributes
    ----------
    n_recorded : int
        Number m of top classes that it reads.
    temperature : float
        T of the model's own probabilities.
    floor : float
        Added to each of them.
    offset, slope : list of float
        By class; the slope is of the class's own log-probability.
    mixing : list of list of float
        Coefficients of all log-probabilities, by the class they are of and then by class; empty if
        not used.
    confusion : list of list of float
        By predicted class and then by class; empty if not used.
    """

    n_recorded: Annotated[int, Meta(ge=2)]
    temperature: float
    floor: Rate
    offset: list[float]
    slope: list[float]
    mixing: Matrix
    confusion: Matrix


class Table(SparsePart, frozen=True, kw_only=True):
    """The bins of one measure for one event.

    Attributes
    ----------
    event : int
        k of Top-k.
    measure : str
        The uncertainty measure.
    served : bool
        Whether this table serves the event.
    lookup : str
        Lookup between edges.
    monotone : bool
        Whether bins were pooled until the probability falls.
    requested_bins : int
        Requested number of bins, or that chosen by `auto`.
    quantile_bins : int
        Bins before pooling; ties make fewer than requested.
    interval : Interval
        Options of the intervals.
    prior : Prior
        Prior of its probabilities.
    bins : list of Bin
        From the most certain to the least.
    curve : CurveKnots, optional
        The curve of a smooth lookup; omitted for other lookups.
    learned : LearnedFormula, optional
        The formula of a measure `learned` of earlier versions; omitted otherwise.
    label_model : LabelFormula, optional
        The formula of the measure `learned`; omitted otherwise.
    effective_counts : list of float, optional
        Effective samples by bin, of a set with weights or groups; otherwise omitted. No answer
        depends on them.
    """

    event: Positive
    measure: str
    served: bool
    lookup: Lookup
    monotone: bool
    requested_bins: Annotated[int, Meta(ge=1, le=MAX_BINS)]
    quantile_bins: Annotated[int, Meta(ge=1, le=MAX_BINS)]
    interval: Interval
    prior: Prior
    bins: Annotated[list[Bin], Meta(min_length=1, max_length=MAX_BINS)]
    curve: CurveKnots | None = None
    learned: LearnedFormula | None = None
    label_model: LabelFormula | None = None
    effective_counts: (
        Annotated[list[Annotated[float, Meta(gt=0)]], Meta(max_length=MAX_BINS)] | None
    ) = None

    @property
    def has_further_parts(self) -> bool:
        """Whether it needs the second schema."""
        parts = (self.curve, self.learned, self.label_model, self.effective_counts)
        return any(part is not None for part in parts)

"""One event of a report: its measures side by side, its figures and its errors by class."""

from typing import Literal

from howsure.report.measure import Baseline, Measure, Scored
from howsure.report.parts import ErrorRate, Part, Share
from howsure.statistics.comparison import PairedDifference
from howsure.statistics.error_samples import MislabelledCandidate
from howsure.statistics.errors_by_class import ClassErrors
from howsure.statistics.fit.result import BestMethod


class Verdict(Part, frozen=True, kw_only=True):
    """The best method on an event and its lead.

    Attributes
    ----------
    best : str or None
        By cross-validation: `bins` for the served table, or the name of a baseline; null without
        cross-validation.
    cross_validation, evaluation : BestMethod, optional
    outdone : bool
        Whether a baseline is so much better that the served probability should not be used.
    sentence : str
        The same in words.
    fitted_on : str
        The probability that binary methods are fitted on, in a sentence for each.
    """

    sentence: str
    best: str | None = None
    cross_validation: BestMethod | None = None
    evaluation: BestMethod | None = None
    outdone: bool = False
    fitted_on: str = ""


class TestedRisk(Share, frozen=True, kw_only=True):
    """An error rate that passed its test on the calibration set.

    Attributes
    ----------
    max_risk, delta : float
        The promised error rate, and the chance that the promise fails.
    threshold : float
        The largest accepted uncertainty.
    coverage : float
        Share of accepted answers.
    n_accepted, n_errors : int
        Accepted samples, and errors among them.
    evaluation : ErrorRate, optional
        The same threshold on the evaluation set.
    """

    max_risk: float
    delta: float
    threshold: float
    coverage: float
    n_accepted: int
    n_errors: int
    evaluation: ErrorRate | None


class FigureScore(Part, frozen=True, kw_only=True):
    """A score on the evaluation set, or else its mean over the folds and the spread.

    Attributes
    ----------
    mean : float
        On the evaluation set, or over the folds.
    std, folds : float and int, optional
        Standard deviation between the folds, and their number; null on the evaluation set.
    """

    mean: float
    std: float | None
    folds: int | None


class CalibrationErrors(Part, frozen=True, kw_only=True):
    """The calibration error of the model's own softmax, and that of what is served.

    Attributes
    ----------
    score : str
        Its name.
    raw, served : FigureScore, optional
    """

    score: str
    raw: FigureScore | None
    served: FigureScore | None


class ErrorDetection(Part, frozen=True, kw_only=True):
    """How well the served measure detects errors.

    Attributes
    ----------
    score : str
        Name of the score.
    served : FigureScore, optional
    """

    score: str
    served: FigureScore | None


class Figures(Part, frozen=True, kw_only=True):
    """The figures of an event, each with its interval or spread.

    Attributes
    ----------
    set : str
        The set that all but the risk are of.
    level : float
        The level of the intervals, such as 0.95.
    accuracy : Share, optional
    calibration_error : CalibrationErrors
    error_detection : ErrorDetection
    risk : TestedRisk, optional
        The first requested error rate that passed its test.
    """

    set: Literal["evaluation", "calibration"]
    level: float
    accuracy: Share | None
    calibration_error: CalibrationErrors
    error_detection: ErrorDetection
    risk: TestedRisk | None


class ComparedScore(Part, frozen=True, kw_only=True):
    """A score of one measure.

    Attributes
    ----------
    value : float or None
        Cross-validated; null if undefined.
    std : float or None
        Standard deviation between folds; null if pooled.
    pooled : bool
        Whether it is the score of all folds together.
    evaluation : float or None
        On the evaluation set; null without one.
    """

    value: float | None
    std: float | None
    pooled: bool
    evaluation: float | None


class ComparedMeasure(Part, frozen=True, kw_only=True):
    """The cost and the scores of a measure.

    Attributes
    ----------
    measure : str
        Its name.
    served : bool
        Whether it is served.
    passes : int or None
        Runs of the model per answer; null without a model.
    ms_per_row : float or None
        Milliseconds per row on the first rows; null if not timed.
    difference : PairedDifference, optional
        Its nll minus that of the served measure; null for that measure.
    """

    measure: str
    served: bool
    passes: int | None
    ms_per_row: float | None
    difference: PairedDifference | None
    nll: ComparedScore
    brier: ComparedScore
    ece: ComparedScore
    eor: ComparedScore
    auroc: ComparedScore
    aurc: ComparedScore
    conditional_entropy: ComparedScore


class ErrorPair(Part, frozen=True, kw_only=True):
    """How often a label was taken for another class.

    Attributes
    ----------
    label, predicted, count : int
        Indices of both classes, and how many samples.
    """

    label: int
    predicted: int
    count: int


class Confusion(Part, frozen=True, kw_only=True):
    """Accepted answers by label and predicted class.

    Attributes
    ----------
    threshold, max_risk : float or None
        Null where all answers are accepted, or no error rate is promised.
    operating_point : str or None
        The active one, if its answers are counted.
    n_accepted, n_errors : int
        Accepted samples, and errors among them.
    classes : list of int
        All of them, or those with the most errors; ``counts`` then has one more row and column.
    counts : list of list of int
        Rows are labels, columns are predicted classes.
    pairs : list of ErrorPair
        The most frequent errors.
    by_class : list of ClassErrors
        The classes with the most errors.
    """

    threshold: float | None
    max_risk: float | None
    operating_point: str | None
    n_accepted: int
    n_errors: int
    classes: list[int]
    counts: list[list[int]]
    pairs: list[ErrorPair]
    by_class: list[ClassErrors]


class FittedEvent(Part, frozen=True, kw_only=True):
    """What a fit says about one event: the label is among the k most probable classes.

    Attributes
    ----------
    accuracy : float
        Share of the calibration set for which it holds.
    served : str
        The served measure.
    verdict : Verdict, optional
        The best method and its lead, in a sentence.
    measures : dict of str to Measure
    baselines : dict of str to Baseline
    oracle : Scored, optional
        Bins of the loss, which uses the label; never served.
    mislabelled : list of MislabelledCandidate
        Wrong predictions in the most reliable bins; their labels may be wrong.
    """

    accuracy: float
    served: str
    verdict: Verdict | None
    measures: dict[str, Measure]
    baselines: dict[str, Baseline]
    oracle: Scored | None
    mislabelled: list[MislabelledCandidate]


class Event(FittedEvent, frozen=True, kw_only=True):
    """One event: the label is among the k most probable classes.

    Attributes
    ----------
    assurance : str
        Whether its error rates are `certified`; otherwise why they are only estimated.
    comparison : list of ComparedMeasure
        The measures, by ascending cross-validated NLL.
    figures : Figures
    confusion : Confusion, optional
        Top-1 at the first requested error rate with a threshold, or all answers without one.
    """

    assurance: str
    comparison: list[ComparedMeasure]
    figures: Figures
    confusion: Confusion | None = None

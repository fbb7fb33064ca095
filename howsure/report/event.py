"""One event of a report: what its measures and other methods show.

Classes of `howsure.statistics` are parts of it as they are. Numbers that are not finite are null.
"""

from typing import Any, Literal, TypeAlias

from msgspec import Struct
from msgspec.structs import asdict

from howsure.statistics.bins.fit import BinCandidate
from howsure.statistics.bins.lookup import Lookup
from howsure.statistics.coarse import CoarseTable
from howsure.statistics.comparison import PairedDifference
from howsure.statistics.diagnostics.consistency import ConsistencyBand
from howsure.statistics.diagnostics.loss_scatter import LossScatter
from howsure.statistics.diagnostics.reliability import Reliability
from howsure.statistics.effective import EffectiveShare
from howsure.statistics.error_samples import MislabelledCandidate
from howsure.statistics.errors_by_class import ClassErrors
from howsure.statistics.fit.result import BestMethod
from howsure.statistics.selective import SelectiveResult

Numbers: TypeAlias = list[float | None]
Interval: TypeAlias = tuple[float, float]
Phase: TypeAlias = Literal["cross_validation", "evaluation"]
FIRST = "1"  # the event that summaries and operating points are of, where there is one


class Part(Struct, frozen=True, kw_only=True):
    """A part of a report."""


class FoldScore(Part, frozen=True, kw_only=True):
    """A score over the folds of the cross-validation; null if no fold defines it.

    Attributes
    ----------
    mean, std : float or None
        Mean and standard deviation between the folds.
    folds : int
        Folds that define the score.
    pooled : float or None
        The score of all out-of-fold answers together.
    """

    mean: float | None
    std: float | None
    folds: int
    pooled: float | None


class Scored(Part, frozen=True, kw_only=True):
    """Scores by name: cross-validated, and on the evaluation set if there is one.

    Attributes
    ----------
    scores : dict of str to FoldScore
        Cross-validated.
    evaluation : dict of str to float or None, optional
        On the evaluation set; null without one.
    """

    scores: dict[str, FoldScore] = {}
    evaluation: dict[str, float | None] | None = None


class Method(Scored, frozen=True, kw_only=True):
    """Scores of a method, and whether chance explains its calibration error.

    Attributes
    ----------
    ece_band, evaluation_ece_band : ConsistencyBand, optional
        The ECE, and that on the evaluation set, beside that of the same method, perfectly
        calibrated.
    """

    ece_band: ConsistencyBand | None = None
    evaluation_ece_band: ConsistencyBand | None = None


class Baseline(Method, frozen=True, kw_only=True):
    """A method to compare the bins with, and its differences from them.

    Attributes
    ----------
    log_floor : float or None
        Probabilities are clipped here for logarithms.
    parameters : dict of str to float
        Fitted to all samples.
    difference : dict
        Its scores minus those of the served table, by phase and score.
    """

    log_floor: float | None = None
    parameters: dict[str, float] = {}
    difference: dict[Phase, dict[str, PairedDifference]] = {}


class Bin(Part, frozen=True, kw_only=True):
    """Samples with an uncertainty in (lower, upper].

    Attributes
    ----------
    lower, upper : float or None
        Null: no limit.
    count : int
        Number of calibration samples.
    hits : int
        Samples for which the event holds.
    weight : float
        Share of the calibration samples.
    probability : float
        The served probability: hits / count, regularised.
    interval : tuple of float
        Of the probability.
    mean_uncertainty : float or None
        Mean of its samples; null without any.
    odds_ratio : float or None
        Its odds relative to those of the whole set; null if they overflow.
    """

    lower: float | None
    upper: float | None
    count: int
    hits: int
    weight: float
    probability: float
    interval: Interval
    mean_uncertainty: float | None
    odds_ratio: float | None


class EffectiveBins(Part, frozen=True, kw_only=True):
    """Bins of samples with weights or groups.

    Attributes
    ----------
    hit_rates, shares : list of float, optional
        Weighted hit rates, and shares of the bins; null for imported tables.
    counts : list of float
        Independent samples that tell the hit rates as precisely.
    size : float, optional
        The same of all samples; null for imported tables.
    """

    counts: Numbers
    hit_rates: Numbers | None = None
    shares: Numbers | None = None
    size: float | None = None


class GuaranteeWords(Part, frozen=True, kw_only=True):
    """The guarantee for all bins at once, or why there is none.

    Attributes
    ----------
    width : float or None
        Half the width of the band around the hit rates; null without a guarantee.
    alpha : float
        The chance that it fails.
    n_compared : int
        Bins that are compared.
    reasons : list of str
        Why there is none.
    sentence : str
        The same in words.
    """

    width: float | None
    alpha: float
    n_compared: int
    reasons: list[str]
    sentence: str


class RankGrid(Part, frozen=True, kw_only=True):
    """Unmerged quantiles with their tie keys, for exact tests on traffic.

    Attributes
    ----------
    ranks : list of int
        Of the samples at the edges, from 1.
    uncertainty, tie_key : list
        Of the same samples.
    n_samples : int
        Of the calibration set.
    """

    ranks: list[int]
    uncertainty: Numbers
    tie_key: list[int]
    n_samples: int


class ClassEffects(Part, frozen=True, kw_only=True):
    """Changes of the log-odds of a hit by predicted class, and the samples.

    They are null for imported tables.
    """

    class_effects: Numbers | None = None
    class_counts: list[int] | None = None


class Learned(ClassEffects, frozen=True, kw_only=True):
    """What the measure `learned` learned, in log-odds of a hit.

    Attributes
    ----------
    temperature, floor : float
        Of the softmax that it starts from.
    terms : list of str
        That correct the softmax.
    class_effects, class_counts : list, optional
        By predicted class: the change of the log-odds, and the samples; null for imported tables.
    """

    temperature: float
    floor: float
    terms: list[str]


class Analysis(Method, frozen=True, kw_only=True):
    """What the calibration set says about one measure, besides its bins.

    Attributes
    ----------
    guarantee : GuaranteeWords, optional
    coarse : CoarseTable, optional
        Largest cells at given hit rates.
    ood_thresholds : dict of str to float
        Uncertainty at each level.
    selective : list of SelectiveResult
        Accepted samples at each error rate.
    rank_grid : RankGrid, optional
    difference : dict of str to PairedDifference
        From the served measure, over the folds, by score.
    reliability : Reliability, optional
        Probabilities and hit rates; only for the served measure.
    effective : EffectiveBins, optional
        Of a set with weights or groups, whose probabilities and intervals follow it.
    learned : ClassEffects, optional
        Only for the measure `learned`.
    """

    guarantee: GuaranteeWords | None = None
    coarse: CoarseTable | None = None
    ood_thresholds: dict[str, float] = {}
    selective: list[SelectiveResult] = []
    rank_grid: RankGrid | None = None
    difference: dict[str, PairedDifference] = {}
    reliability: Reliability | None = None
    effective: EffectiveBins | None = None
    learned: ClassEffects | None = None


class RiskCoverage(Part, frozen=True, kw_only=True):
    """The error rate among accepted answers, by the share of answers that is accepted.

    Attributes
    ----------
    threshold : list of float or None
        The largest accepted uncertainty.
    coverage, risk : list of float
        Share of accepted samples, and of errors among them.
    """

    threshold: Numbers
    coverage: list[float]
    risk: list[float]


class RiskBand(Part, frozen=True, kw_only=True):
    """The band around a risk-coverage curve.

    Attributes
    ----------
    level : float
        Of the interval at each point.
    accepted, errors : list of int
        Accepted samples at each point, and errors among them.
    lower, upper : list of float
        Ends of the interval of the error rate.
    """

    level: float
    accepted: list[int]
    errors: list[int]
    lower: list[float]
    upper: list[float]


class Roc(Part, frozen=True, kw_only=True):
    """Detection of errors by the uncertainty.

    Attributes
    ----------
    threshold : list of float or None
        Answers above it are called errors.
    false_positive_rate, true_positive_rate : list of float or None
        Share of the hits, and of the errors, that are called errors.
    """

    threshold: Numbers
    false_positive_rate: Numbers
    true_positive_rate: Numbers


class PrecisionRecall(Part, frozen=True, kw_only=True):
    """The same as precision and recall.

    Attributes
    ----------
    threshold : list of float or None
        Answers above it are called errors.
    precision, recall : list of float or None
        Share of errors among these, and of all errors.
    """

    threshold: Numbers
    precision: Numbers
    recall: Numbers


class Curves(Part, frozen=True, kw_only=True):
    """Curves of a measure; null where they are undefined, and for imported tables."""

    risk_coverage: RiskCoverage | None = None
    risk_band: RiskBand | None = None
    roc: Roc | None = None
    precision_recall: PrecisionRecall | None = None
    scatter: LossScatter | None = None


class Measure(Analysis, frozen=True, kw_only=True):
    """Scores and bins of one uncertainty measure.

    Attributes
    ----------
    lookup : str
        How a probability is read from the bins.
    monotone : bool
        Whether bins were pooled until the probability falls.
    requested_bins : int
        Requested number of bins, or that chosen by `auto`.
    quantile_bins : int
        Bins before pooling; ties make fewer than requested.
    candidates : list of BinCandidate
        Numbers of bins tried by `auto`.
    bins : list of Bin
        From the most certain to the least.
    curves : Curves
        Risk and coverage with a band, ROC, precision and recall, scatter of the loss.
    learned : Learned, optional
        Only for the measure `learned`.
    """

    lookup: Lookup
    monotone: bool
    requested_bins: int
    quantile_bins: int
    candidates: list[BinCandidate]
    bins: list[Bin]
    curves: Curves
    learned: Learned | None = None

    @classmethod
    def of(cls, analysis: Analysis, **of_table: Any) -> "Measure":  # noqa: ANN401 - fields
        """Return a measure with what the calibration set says about it."""
        return cls(**{**asdict(analysis), **of_table})


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


class Share(Part, frozen=True, kw_only=True):
    """A share of samples.

    Attributes
    ----------
    value : float
        The share, weighted if samples have weights.
    weighted : bool
        Whether they have.
    interval : tuple of float
        Exact.
    n_samples : int
        What it is a share of.
    """

    value: float
    weighted: bool
    interval: Interval
    n_samples: int


class ErrorRate(Share, frozen=True, kw_only=True):
    """The share of errors among the accepted answers of a set.

    Attributes
    ----------
    n_samples, n_accepted, n_errors : int
        Samples of the set, accepted ones, and errors among these.
    coverage : float
        Share of accepted samples.
    effective : EffectiveShare, optional
        Of the errors, with weights or groups.
    """

    n_accepted: int
    n_errors: int
    coverage: float
    effective: EffectiveShare | None = None


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
        Of the intervals.
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
        Of its error rates: `certified`, or why estimated.
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

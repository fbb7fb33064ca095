"""One measure of a report, and other methods beside it.

Classes of `howsure.statistics` are parts of it as they are.
"""

from collections.abc import Sequence
from typing import Self

from msgspec.structs import asdict

from howsure.bins_document.conversion import bins_of
from howsure.bins_document.table import Bin
from howsure.report.parts import Numbers, Part, Phase
from howsure.statistics.bins.fit import BinCandidate
from howsure.statistics.bins.lookup import Lookup
from howsure.statistics.bins.table import BinTable
from howsure.statistics.coarse import CoarseTable
from howsure.statistics.comparison import PairedDifference
from howsure.statistics.diagnostics.consistency import ConsistencyBand
from howsure.statistics.diagnostics.loss_scatter import LossScatter
from howsure.statistics.diagnostics.reliability import Reliability
from howsure.statistics.odds import MergedOdds
from howsure.statistics.selective import SelectiveResult


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
    merged_odds : MergedOdds, optional
        The expected odds ratio over bins that have a hit and a miss each; null for imported tables.
    top5_hits : list of int, optional
        By bin: errors whose label is among the Top 5; only for the served measure, and null without
        a larger Top-5 event.
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
    merged_odds: MergedOdds | None = None
    top5_hits: list[int] | None = None


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
    def of(
        cls,
        table: BinTable,
        analysis: Analysis,
        *,
        quantile_bins: int,
        candidates: Sequence[BinCandidate],
        curves: Curves,
        learned: Learned | None,
    ) -> Self:
        """Return a measure with its table and what the calibration set says about it."""
        of_analysis = {**asdict(analysis), "learned": learned}
        return cls(
            lookup=table.lookup,
            monotone=table.monotone,
            requested_bins=table.requested_bins,
            quantile_bins=quantile_bins,
            candidates=list(candidates),
            bins=bins_of(table),
            curves=curves,
            **of_analysis,
        )

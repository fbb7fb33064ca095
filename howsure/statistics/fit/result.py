"""The result of a fit: tables, scores and verdicts by event and measure."""

from dataclasses import dataclass, field

from howsure.statistics.arrays import Counts, Uncertainty
from howsure.statistics.bins.guarantee import Guarantee
from howsure.statistics.coarse import CoarseTable
from howsure.statistics.comparison import PairedDifference
from howsure.statistics.diagnostics.consistency import ConsistencyBand
from howsure.statistics.diagnostics.curves import Curves
from howsure.statistics.diagnostics.loss_scatter import LossScatter
from howsure.statistics.diagnostics.rank_grid import RankGrid
from howsure.statistics.diagnostics.reliability import Reliability
from howsure.statistics.fit.cross_validation import Scored, ScoredTable
from howsure.statistics.fit.outcome import OutcomeName
from howsure.statistics.label_model.fit import LabelFit
from howsure.statistics.measures import LEARNED
from howsure.statistics.model_scores import ModelScores
from howsure.statistics.selective import SelectiveResult


@dataclass(frozen=True)
class BestMethod:
    """The method of least negative log-likelihood on one set of samples, and its best rival.

    Attributes
    ----------
    best : str
        ``bins`` for the served table, otherwise the name of a baseline.
    nll : float
        Of the best, in nats.
    rival : str or None
        ``bins`` if a baseline is best, otherwise the best baseline.
    difference : PairedDifference or None
        Negative log-likelihood of the rival minus that of the best: over folds in
        cross-validation, over samples on an evaluation set. Never negative.
    """

    best: str
    nll: float
    rival: str | None
    difference: PairedDifference | None


@dataclass(frozen=True)
class Verdict:
    """The verdict on one event.

    Attributes
    ----------
    best : str or None
        By cross-validation: ``bins`` for the served table, or the name of a baseline. None without
        cross-validation.
    cross_validation, evaluation : BestMethod or None
    outdone : bool
        Whether a baseline is so much better in cross-validation that the served probability should
        not be used.
    """

    best: str | None
    cross_validation: BestMethod | None = None
    evaluation: BestMethod | None = None
    outdone: bool = False


@dataclass(frozen=True, eq=False, kw_only=True)
class MeasureFit(ScoredTable):
    """One uncertainty measure fitted to one event.

    Attributes
    ----------
    measure, column : str
        The measure, and the column of the records that holds it for this event.
    ece_band, evaluation_ece_band : ConsistencyBand, optional
        The cross-validated ``ece_15``, and that of the evaluation set, with their distribution for
        a perfectly calibrated table; None if the score is undefined.
    coarse : CoarseTable
    ood_thresholds : dict of float to float
        By level: the uncertainty that this share of the calibration set does not exceed.
    selective : tuple of SelectiveResult
        One for each target.
    curves : Curves
        Of ranking the calibration set by this measure.
    guarantee : Guarantee
    rank_grid : RankGrid
        The grid of ranks before ties merged bins, for later tests.
    difference : dict of str to PairedDifference
        ``nll`` and ``brier`` of this measure minus those of the served one, over the folds; empty
        for the served one.
    reliability : Reliability, optional
        Only for the served measure.
    scatter : LossScatter, optional
        Only for the served measure.
    top5_hits : ndarray of int64, shape (n_bins,), optional
        Errors of each bin whose label is among the five top classes; only for the served measure,
        if there is a Top-5 event beside this one.
    """

    measure: str
    column: str
    ece_band: ConsistencyBand | None = None
    evaluation_ece_band: ConsistencyBand | None = None
    coarse: CoarseTable | None = None
    ood_thresholds: dict[float, float] = field(default_factory=dict)
    selective: tuple[SelectiveResult, ...] = ()
    curves: Curves | None = None
    guarantee: Guarantee | None = None
    rank_grid: RankGrid | None = None
    difference: dict[str, PairedDifference] = field(default_factory=dict)
    reliability: Reliability | None = None
    scatter: LossScatter | None = None
    top5_hits: Counts | None = None


@dataclass(frozen=True, eq=False, kw_only=True)
class BaselineFit(Scored):
    """Another method for the same event, scored on the same folds.

    Attributes
    ----------
    name : str
        In `howsure.statistics.fit.baselines.BASELINES`; or ``smooth_curve``, ``interpolated_bins``
        or ``step_bins``: the served measure with another lookup; or ``loss``, the oracle.
    log_floor : float
        For logarithms the probability is clipped to ``[log_floor, 1 - log_floor]``; ``1 / (2 n)``,
        with ``n`` the samples of the calibration set.
    fitted_on : str or None
        The `BinaryOutcome` whose probability it is fitted on; None if it is not fitted on one.
    parameters : dict of str to float
        Fitted to all samples: a temperature, slopes.
    difference, evaluation_difference : dict of str to PairedDifference
        ``nll`` and ``brier`` of this baseline minus those of the served table: over the folds, and
        over the samples of the evaluation set. Negative where the baseline is better.
    ece_band, evaluation_ece_band : ConsistencyBand, optional
        Of ``ece_15``: pooled over all samples, for a baseline without a fit, and on the evaluation
        set.
    """

    name: str
    log_floor: float
    fitted_on: OutcomeName | None = None
    parameters: dict[str, float] = field(default_factory=dict)
    difference: dict[str, PairedDifference] = field(default_factory=dict)
    evaluation_difference: dict[str, PairedDifference] = field(default_factory=dict)
    ece_band: ConsistencyBand | None = None
    evaluation_ece_band: ConsistencyBand | None = None


@dataclass(frozen=True, eq=False)
class EventFit:
    """One event, "the label is among the ``k`` top classes".

    Attributes
    ----------
    k : int
    accuracy : float
        Share of the samples for which the event holds.
    n_samples : int
    measures : dict of str to MeasureFit
        By measure, in the order of the options.
    baselines : dict of str to BaselineFit
        By name.
    served : str
        The measure whose table is served.
    verdict : Verdict, optional
        The best method and its lead.
    oracle : BaselineFit, optional
        As many bins as served, of the loss ``-log p_y``, which depends on the label. It shows what
        a perfect measure could achieve with this model, and is never served.
    learned : LabelFit, optional
        What the measure ``learned`` learned, if it is one of the measures.
    """

    k: int
    accuracy: float
    n_samples: int
    measures: dict[str, MeasureFit]
    baselines: dict[str, BaselineFit]
    served: str
    verdict: Verdict | None = None
    oracle: BaselineFit | None = None
    learned: LabelFit | None = None


@dataclass(frozen=True, eq=False)
class Fit:
    """A fitted calibration.

    Attributes
    ----------
    events : dict of int to EventFit
        By ``k``, in the order of the options.
    model_scores : dict of str to ModelScores
        Of the model's own softmax, by set: ``calibration`` and, if given, ``evaluation``.
    """

    events: dict[int, EventFit]
    model_scores: dict[str, ModelScores] = field(default_factory=dict)

    @property
    def learned_columns(self) -> dict[str, Uncertainty]:
        """The learned measure of the calibration set, cross-fitted, by column of the records."""
        return {
            event.measures[LEARNED].column: event.learned.uncertainty
            for event in self.events.values()
            if event.learned is not None
        }

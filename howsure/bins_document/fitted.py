"""The bins document of a fit."""

from collections.abc import Sequence

from howsure.bins_document.conversion import written_table
from howsure.bins_document.digest import UNSIGNED, signed
from howsure.bins_document.document import (
    BinsDocument,
    Data,
    Origin,
    OutOfDistribution,
    Selective,
    schema_of,
)
from howsure.limits import MAX_STRENGTH, TINY
from howsure.statistics.fit.options import FitOptions
from howsure.statistics.fit.result import EventFit, Fit, MeasureFit
from howsure.statistics.label_model.recorded import Formula
from howsure.statistics.measures import LEARNED
from howsure.statistics.selective import SelectiveResult, SelectiveTarget


def check_bounds(options: FitOptions) -> None:
    """Check that a bins document can hold these options, whose bounds it has in its types.

    Raises
    ------
    ValueError
        If it cannot; the message names option, rule and value.
    """
    strength, level = options.prior_strength, options.interval.level
    if not TINY <= strength <= MAX_STRENGTH:
        raise ValueError(f"prior_strength must be {TINY:g} to {MAX_STRENGTH:g}, not {strength}")
    if level > 1 - TINY:
        raise ValueError(f"interval level must be at most {1 - TINY}, not {level}")
    for target in options.selective:
        if min(target.max_risk, target.delta) < TINY:
            raise ValueError(f"max_risk and delta must be at least {TINY:g}, not {target}")


def fitted_document(
    fit: Fit,
    options: FitOptions,
    *,
    data: Data,
    data_sha256: str,
    classes: Sequence[str],
    decision_threshold: float | None,
) -> BinsDocument:
    """Return the tables of a fit to a model's outputs, and all that answers depend on."""
    events = [event for _, event in sorted(fit.events.items())]
    first = fit.events.get(1)
    top1 = None if first is None else first.measures[first.served]
    tables = [
        written_table(
            measure.table,
            event=event.k,
            measure=name,
            served=name == event.served,
            quantile_bins=measure.quantile_bins,
            formula=_formula(event, name),
            effective_counts=_effective_counts(measure),
        )
        for event in events
        for name, measure in event.measures.items()
    ]
    level = options.ood_level
    results = [] if top1 is None else top1.selective
    by_risk = {result.target.max_risk: result for result in results}
    return signed(
        BinsDocument(
            schema=schema_of(tables),
            content_sha256=UNSIGNED,
            calibration=Origin(name="calibrator"),
            model_sha256=None,
            model=None,
            data_sha256=data_sha256,
            data=data,
            classes=list(classes),
            top_k=[event.k for event in events],
            decision_threshold=decision_threshold,
            serve={str(event.k): event.served for event in events},
            out_of_distribution=OutOfDistribution(
                level=level, threshold=None if top1 is None else top1.ood_thresholds[level]
            ),
            selective=[_selective(one, by_risk.get(one.max_risk)) for one in options.selective],
            tables=tables,
        )
    )


def _formula(event: EventFit, measure: str) -> Formula | None:
    return event.learned.model if measure == LEARNED and event.learned is not None else None


def _effective_counts(measure: MeasureFit) -> list[float] | None:
    effective = measure.table.effective
    return None if effective is None else effective.counts.tolist()


def _selective(target: SelectiveTarget, result: SelectiveResult | None) -> Selective:
    return Selective(
        max_risk=target.max_risk,
        delta=target.delta,
        threshold=None if result is None else result.threshold,
        coverage=None if result is None else result.coverage,
        n_accepted=0 if result is None else result.n_accepted,
        n_errors=0 if result is None else result.n_errors,
        labels_missing=None if result is None else result.labels_missing,
    )

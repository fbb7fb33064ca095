"""Notes on a fitted calibration."""

from collections.abc import Iterable, Iterator

import numpy as np

from howsure.report.words.compared_methods import verdict_sentence
from howsure.shares import percent
from howsure.statistics.bins.design import SampleDesign
from howsure.statistics.bins.table import BinTable
from howsure.statistics.fit.options import FitOptions
from howsure.statistics.fit.result import EventFit, Fit, MeasureFit
from howsure.statistics.fit.verdict import BINS, rarer_outcome
from howsure.statistics.label_model.bias import ClassBias
from howsure.statistics.records.records import Records

WIDE = 0.1  # an interval of ±0.05


def certain_event_notes(top_k: Iterable[int], n_classes: int) -> list[str]:
    """Return which of the default events are certain, and so left out."""
    return [
        f"Top-{k} is certain with {n_classes} classes and was left out."
        for k in top_k
        if k >= n_classes
    ]


def fit_notes(fit: Fit, records: Records, options: FitOptions) -> list[str]:
    """Return what a report notes about a fit to records, a sentence or two each."""
    notes = [*_of_samples(records.n_samples, options), *_of_design(records.design)]
    learned = next(iter(fit.events.values())).learned
    if learned is not None and learned.bias is not None:
        notes.append(_of_bias(learned.bias))
    for event in fit.events.values():
        notes += _of_event(event, options)
    return notes


def _of_samples(n_samples: int, options: FitOptions) -> Iterator[str]:
    """Warn of a calibration set too small for its folds; a finding covers its bins."""
    if n_samples == 1:
        yield "One calibration sample cannot be cross-validated, so there are no scores."
    elif n_samples < options.folds:
        yield f"{_samples(n_samples)} make {n_samples} folds, not {options.folds}."


def _of_design(design: SampleDesign) -> Iterator[str]:
    """Say what weights and groups change, and which results count each sample as one."""
    if design.is_plain:
        return
    if design.weight is not None:
        worth = float(np.square(design.weight.sum()) / np.square(design.weight).sum())
        yield (
            f"Samples have weights: {_samples(design.weight.size)} are worth {worth:,.0f} equally "
            "weighted ones."
        )
    if design.group is not None:
        n_groups = np.unique(design.group).size
        yield (
            f"Samples come in {n_groups:,} group{'s' * (n_groups != 1)}: no fold of "
            "cross-validation splits a group, and intervals and the test of error rates count how "
            "alike samples of a group are."
        )
    yield (
        "The scores aurc, e_aurc, aece, amce, ece_equal_mass and l2_debiased count each sample as "
        "one, whatever its weight or group. There is no guarantee for all bins and no consistency "
        "band."
    )


def _of_bias(bias: ClassBias) -> str:
    before, after = (n / bias.hits.n_samples for n in (bias.hits.before, bias.hits.after))
    return (
        f"The model names some classes too often: with this corrected, {percent(after)} of its "
        f"answers would be right instead of {percent(before)}, in cross-validation. Most often it "
        f"says {bias.answer} where {bias.label} would be right. Its answers stay as they are; the "
        "probability that they are right takes this into account."
    )


def _of_event(event: EventFit, options: FitOptions) -> Iterator[str]:
    """Warn of an event that hardly varies, of bins that merged and of wide intervals."""
    yield from _degeneracy(event, options)
    for fit in event.measures.values():
        yield from _merged_bins(event, fit)
    yield from _width(event)
    if rarer_outcome(event.measures[event.served].table)[0] >= options.folds:
        yield from _better_baseline(event, options.folds)


def _degeneracy(event: EventFit, options: FitOptions) -> Iterator[str]:
    served = event.measures[event.served].table
    rarer, outcome = rarer_outcome(served)
    if rarer == 0:
        always = "never" if outcome == "holds" else "always"
        yield (
            f"Top-{event.k} {always} holds in {_samples(event.n_samples)}: the rates are shrunk "
            f"towards {served.prior.accuracy:.6g} instead of {event.accuracy:g}, and scores that "
            "need both hits and errors are missing."
        )
    elif rarer < options.folds:
        yield (
            f"Top-{event.k} {outcome} {rarer} time{'s' * (rarer > 1)} in "
            f"{_samples(event.n_samples)}, fewer than there are folds: scores that need both hits "
            "and errors are means over fewer folds."
        )


def _merged_bins(event: EventFit, fit: MeasureFit) -> Iterator[str]:
    requested, created = fit.table.requested_bins, fit.quantile_bins
    if created < requested:
        why = "samples with equal uncertainty share a bin"
        if created == event.n_samples:
            why = "every sample has its own bin"
        yield (
            f"Top-{event.k}, {fit.measure}: {requested} bin{'s' * (requested > 1)} requested, "
            f"{created} created: {why}."
        )


def _width(event: EventFit) -> Iterator[str]:
    table: BinTable = event.measures[event.served].table
    bin_ = int(np.argmax(table.upper - table.lower))
    if table.upper[bin_] - table.lower[bin_] > WIDE:
        yield (
            f"Top-{event.k}, {event.served}: the widest interval reaches from "
            f"{table.lower[bin_]:.3f} to {table.upper[bin_]:.3f}, that of bin {bin_} with "
            f"{_samples(int(table.counts[bin_]))}."
        )


def _better_baseline(event: EventFit, folds: int) -> Iterator[str]:
    verdict = event.verdict
    best = None if verdict is None else verdict.evaluation or verdict.cross_validation
    if best is None or best.best == BINS or best.difference is None:
        return
    if best.difference.clear:
        yield verdict_sentence(event, folds)


def _samples(number: int) -> str:
    return "1 calibration sample" if number == 1 else f"{number:,} calibration samples"

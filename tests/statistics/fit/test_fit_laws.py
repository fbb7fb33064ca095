"""Laws of the fit as a whole: what may be renamed or reordered, and the hardest sets."""

import json
from dataclasses import replace

import numpy as np
import pytest
from sample_strategies import (
    calibrated,
    drawn_set,
    fit_of,
    records_of,
    records_with_ranks,
    simulated_records,
)

from howsure.statistics.effective import TooFewEffectiveSamples
from howsure.statistics.measures import DEFAULT_MEASURES
from howsure.statistics.plain import to_plain
from howsure.statistics.records.records import concatenate
from howsure.statistics.scores import SCORES, applicable

BY_CLASS = {"class_counts", "class_effects", "offset", "slope", "mixing", "confusion"}


LOOKUPS = {"smooth": ("learned", "margin"), "step": ("margin",), "interpolated": ("margin",)}


@pytest.mark.parametrize(("lookup", "measures"), LOOKUPS.items())
def test_order_of_samples_changes_no_bit(lookup, measures):
    """Some samples occur twice, and different samples share tie keys."""
    records = simulated_records(120, seed=7)
    records = concatenate([records, records.take(np.arange(30))])
    records = replace(records, tie_key=records.tie_key % np.uint32(64))
    order = np.random.default_rng(7).permutation(150)
    options = {"folds": 3, "lookup": lookup, "measures": measures, "top_k": (1, 5)}
    sets = records, records.take(order)
    first, second = (to_plain(fit_of(one, evaluation=one, **options)) for one in sets)
    assert first == second


def numbers(value):
    """Yield every number of plain data; those by class are sorted, since classes are renamed.

    Samples of the scatter plot are left out.
    """
    if isinstance(value, dict):
        for key, part in value.items():
            if key == "classes":
                yield sum(row["said"] * row["hits"] for row in part)
            elif key in BY_CLASS:
                yield from sorted(np.ravel(part))
            elif key != "scatter":
                yield from numbers(part)
    elif isinstance(value, list):
        for part in value:
            yield from numbers(part)
    elif isinstance(value, float | int):
        yield value


def tables_of(fit):
    return [measure["table"] for measure in fit["events"]["1"]["measures"].values()]


@pytest.mark.parametrize("n_classes", [2, 7])
def test_renaming_and_reordering_classes_changes_no_number(n_classes):
    """The model is right about the first classes less often than it says."""
    logits, labels = calibrated(300, n_classes=n_classes)
    rng = np.random.default_rng(3)
    wrong = (logits.argmax(axis=1) < n_classes // 2) & (rng.random(300) < 0.5)
    labels = np.where(wrong, rng.integers(0, n_classes, 300), labels)
    order = np.random.default_rng(1).permutation(n_classes)
    renamed = np.argsort(order)[labels]
    sets = records_of(logits, labels), records_of(logits[:, order], renamed, inputs=logits)
    options = {"folds": 3, "measures": DEFAULT_MEASURES}
    one, other = (to_plain(fit_of(own, evaluation=own, **options)) for own in sets)
    # Ranks between two points that are near each other amplify the last bit of an uncertainty.
    ends = [
        [table["curve"].pop(end) for table in tables_of(fit) for end in ("lower", "upper")]
        for fit in (one, other)
    ]
    np.testing.assert_allclose(*map(np.concatenate, ends), rtol=2e-5, atol=0.0)
    # Differences of losses near 1 have the float32 rounding of these, 1.2e-7 for each of the two.
    rounding = 2 * np.finfo(np.float32).eps
    np.testing.assert_allclose(list(numbers(one)), list(numbers(other)), rtol=1e-5, atol=rounding)
    assert any(one["events"]["1"]["learned"]["class_effects"])
    # They are rounded to five digits, and a last bit may carry one across a half. Values near 0 are
    # differences of larger ones, which are float32.
    events = (fit["events"]["1"] for fit in (one, other))
    plots = [list(numbers(event["measures"][event["served"]]["scatter"])) for event in events]
    np.testing.assert_allclose(*plots, rtol=1.01e-4, atol=1e-7)


@pytest.mark.parametrize(("ranks", "lookup", "bins"), [
    *(([0], *way) for way in (("smooth", "auto"), ("step", 7))),
    *(([3], *way) for way in (("smooth", "auto"), ("interpolated", 7))), ([0, 1], "smooth", 7),
    *(([0] * 19 + [1], lookup, "auto") for lookup in ("smooth", "step")),
    *(([0] * 20, lookup, "auto") for lookup in ("smooth", "interpolated")),
    ([1] * 20, "smooth", "auto"), ([1] * 59 + [0], "smooth", "auto"),
])  # fmt: skip
def test_small_and_one_sided_sets_give_numbers_or_none(ranks, lookup, bins):
    options = {"lookup": lookup, "bins": bins, "folds": 5, "measures": ("learned", "entropy")}
    records = records_with_ranks(ranks)
    fit = fit_of(records, evaluation=records, **options)
    event = fit.events[1]
    assert event.accuracy == np.mean(np.array(ranks) == 0)
    assert event.served in event.measures
    for found in (*event.measures.values(), *event.baselines.values()):
        for name, score in found.scores.items():
            values = (score.mean, score.std, score.pooled, found.evaluation[name])
            assert all(value is None or np.isfinite(value) for value in values), name
            assert (score.mean is None) == (score.folds == 0)
            assert (score.std is None) == (score.folds < 2)
        # As many folds as samples, up to five; one sample has no cross-validation.
        assert found.scores["brier"].folds == (min(5, len(ranks)) if len(ranks) > 1 else 0)
    for measure in event.measures.values():
        assert set(measure.scores) == set(SCORES)
        assert (measure.candidates[0].nll_mean is None) == (len(ranks) == 1)
        assert ((measure.table.probability > 0) & (measure.table.probability < 1)).all()
    assert set(event.baselines["raw_softmax"].scores) == set(applicable(has_bins=False))


def drawn_design(seed):
    """Return records whose weights may differ by 18 orders of magnitude, and options of a fit."""
    rng = np.random.default_rng(seed)
    arrays = drawn_set(rng, rng.choice([2, 5, 12]))
    records = records_of(arrays.pop("logits"), arrays.pop("labels"))
    lookup = str(rng.choice(["smooth", "step", "interpolated"]))
    options = {"lookup": lookup, "bins": int(rng.choice([1, 3])), "measures": ("learned",)}
    return replace(records, **arrays), options


@pytest.mark.parametrize("seeds", [range(10), pytest.param(range(10, 510), marks=pytest.mark.slow)])
def test_any_weights_give_finite_numbers_or_a_refusal(seeds):
    fitted = 0
    for seed in seeds:
        records, options = drawn_design(seed)
        try:
            fit = fit_of(records, evaluation=records, **options)
        except TooFewEffectiveSamples:
            continue
        fitted += 1
        json.dumps(to_plain(fit), allow_nan=False)
    assert fitted > len(seeds) // 5


def test_the_seed_moves_bands_and_nothing_else():
    records = simulated_records(200, seed=6, top_k=(1,))
    options = {"evaluation": records, "folds": 3, "measures": ("entropy", "margin")}
    one, other = (fit_of(records, seed=seed, **options).events[1] for seed in (1, 2))
    for name, measure in one.measures.items():
        assert measure.scores == other.measures[name].scores
        assert measure.ece_band.observed == other.measures[name].ece_band.observed
        assert measure.ece_band.upper != other.measures[name].ece_band.upper

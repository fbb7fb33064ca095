"""Laws of the fit as a whole: what may be renamed, and what the hardest sets give."""

import json
from dataclasses import replace

import numpy as np
import pytest
from score_strategies import records_with_ranks, simulated_records

from howsure.statistics.fit.calibration import fit_calibration
from howsure.statistics.fit.options import FitOptions
from howsure.statistics.plain import to_plain
from howsure.statistics.records.build import build_records

OPTIONS = FitOptions(top_k=(1,), folds=5)


def fitted(records, **options):
    return fit_calibration(records, options=replace(OPTIONS, **options), evaluation=records)


def all_numbers(fit):
    """Every number of a fit as plain data, without the parts that name classes."""
    events = {
        k: {
            "measures": event.measures,
            "baselines": event.baselines,
            "oracle": event.oracle,
            "verdict": event.verdict,
        }
        for k, event in fit.events.items()
    }
    return to_plain({"events": events, "model": fit.model_scores, "warnings": fit.warnings})


def walk(value, path=""):
    """Yield every number with its path."""
    if isinstance(value, dict):
        for key, part in value.items():
            yield from walk(part, f"{path}/{key}")
    elif isinstance(value, list):
        for index, part in enumerate(value):
            yield from walk(part, f"{path}/{index}")
    elif isinstance(value, float | int) and not isinstance(value, bool):
        yield path, value


def taken_by_class(numbers):
    """Take out what is told by class, whose names differ; return it in an order without names."""
    rows = []
    for event in numbers["events"].values():
        for found in event["measures"].values():
            if found["reliability"] is not None:
                rows += found["reliability"].pop("classes")
    return sorted([row["count"], row["hits"], row["said"], row["upper"]] for row in rows)


def assert_no_nan(fit):
    """Infinity stands at the outer edges of tables alone."""
    for path, value in walk(all_numbers(fit)):
        assert not np.isnan(value), path
        assert np.isfinite(value) or "/edges/" in path, path


def drawn(n_samples, n_classes, *, seed=0):
    rng = np.random.default_rng(seed)
    logits = rng.normal(size=(n_samples, n_classes)) * 3.0
    chance = np.exp(logits - logits.max(axis=1, keepdims=True))
    cumulated = np.cumsum(chance / chance.sum(axis=1, keepdims=True), axis=1)
    labels = np.minimum((cumulated < rng.random((n_samples, 1))).sum(axis=1), n_classes - 1)
    return logits, labels


def records_of(logits, labels, top_k=(1,)):
    keys = np.arange(len(labels), dtype=np.uint32) * np.uint32(2654435761)
    return build_records(logits, labels, tie_keys=keys, top_k=top_k)


class TestClasses:
    @pytest.mark.parametrize("n_classes", [2, 7])
    def test_renaming_and_reordering_them_changes_no_number(self, n_classes):
        logits, labels = drawn(300, n_classes)
        order = np.random.default_rng(1).permutation(n_classes)
        renamed = np.argsort(order)[labels]
        one = all_numbers(fitted(records_of(logits, labels)))
        other = all_numbers(fitted(records_of(logits[:, order], renamed)))
        assert one["warnings"] == other["warnings"]
        by_class, renamed_by_class = (taken_by_class(found) for found in (one, other))
        np.testing.assert_allclose(by_class, renamed_by_class, rtol=1e-5)
        for (path, value), (_, expected) in zip(walk(one), walk(other), strict=True):
            assert value == pytest.approx(expected, rel=1e-5, abs=1e-7), path

    @pytest.mark.parametrize(("n_classes", "top_k"), [(2, (1,)), (5, (1, 4)), (1000, (1, 5))])
    def test_few_or_many(self, n_classes, top_k):
        logits, labels = drawn(200, n_classes)
        fit = fitted(records_of(logits, labels, top_k), top_k=top_k)
        assert_no_nan(fit)
        accuracy = fit.model_scores["calibration"].accuracy
        assert list(accuracy) == sorted({1, *top_k, *((5,) if n_classes >= 5 else ())})
        for k, event in fit.events.items():
            hits = np.argsort(np.argsort(-logits, axis=1), axis=1)[np.arange(200), labels] < k
            assert event.accuracy == pytest.approx(hits.mean())


class TestHardSets:
    def test_all_right(self):
        fit = fitted(records_with_ranks([0] * 60))
        assert_no_nan(fit)
        event = fit.events[1]
        table = event.measures[event.served].table
        # With a stand-in prior of (60 + 1/2) / 61: (60 + .9918) / 61.
        assert table.prior.degenerate
        assert table.prior.accuracy == pytest.approx(60.5 / 61)
        expected = (table.hits + 60.5 / 61) / (table.counts + 1)
        np.testing.assert_allclose(table.probability, expected)
        for name in ("auroc", "aupr"):
            assert event.measures[event.served].scores[name].mean is None
        assert event.measures[event.served].evaluation["aurc"] == 0.0
        assert event.measures[event.served].evaluation["e_aurc"] == 0.0
        assert event.measures[event.served].evaluation["augrc"] == 0.0
        assert event.measures[event.served].curves.roc is None
        assert event.baselines["constant"].parameters["accuracy"] == 1.0
        assert event.baselines["temperature"].parameters["temperature"] < 0.26
        assert any("Top-1 always holds in 60" in text for text in fit.warnings)

    def test_all_wrong(self):
        fit = fitted(records_with_ranks([2] * 60))
        assert_no_nan(fit)
        event = fit.events[1]
        measure = event.measures[event.served]
        assert event.accuracy == 0.0
        assert measure.table.prior.accuracy == pytest.approx(0.5 / 61)
        assert measure.scores["auroc"].mean is None
        assert measure.evaluation["aupr"] == 1.0
        assert measure.evaluation["aurc"] == 1.0
        assert measure.evaluation["augrc"] == 0.5
        assert all(result.threshold is None for result in measure.selective)
        assert measure.coarse.edges == (None, None)
        assert any("Top-1 never holds in 60" in text for text in fit.warnings)

    def test_all_uncertainties_equal(self):
        rng = np.random.default_rng(0)
        logits = np.tile([2.0, 1.0, 0.0, -1.0, -2.0, -3.0], (200, 1))
        labels = np.where(rng.random(200) < 0.7, 0, 1)
        fit = fitted(records_of(logits, labels), bins=10)
        assert_no_nan(fit)
        event = fit.events[1]
        rate = (labels == 0).mean()
        for measure in event.measures.values():
            assert measure.table.n_bins == 1
            assert measure.table.probability[0] == pytest.approx(rate)
            assert measure.evaluation["auroc"] == 0.5
            assert measure.evaluation["aurc"] == pytest.approx(1 - rate)
            assert measure.guarantee.width is None
            assert any("equal uncertainties" in why for why in measure.guarantee.reasons)
            assert measure.rank_grid.n_cells == 10
        for name in ("beta_calibration", "quadratic_logistic", "isotonic", "constant"):
            assert event.baselines[name].evaluation["brier"] == pytest.approx(rate * (1 - rate))
        assert sum("equal uncertainty share a bin" in text for text in fit.warnings) == 4

    def test_classes_that_are_ruled_out(self):
        logits, labels = drawn(100, 8)
        logits[:, 5] = -np.inf
        labels[:3] = 5
        fit = fitted(records_of(logits, labels))
        assert_no_nan(fit)
        assert fit.model_scores["calibration"].nll is None
        assert fit.events[1].oracle.scores["brier"].mean is not None


def test_a_fit_can_be_stored_as_json():
    plain = all_numbers(fitted(simulated_records(120, seed=5, top_k=(1,))))
    for event in plain["events"].values():
        for measure in event["measures"].values():
            measure["table"].pop("edges")
    assert json.loads(json.dumps(plain, allow_nan=False)) == plain


def test_the_seed_moves_bands_and_nothing_else():
    records = simulated_records(200, seed=6, top_k=(1,))
    one, other = (fitted(records, seed=seed).events[1] for seed in (1, 2))
    for name, measure in one.measures.items():
        assert measure.scores == other.measures[name].scores
        assert measure.ece_band.observed == other.measures[name].ece_band.observed
        assert measure.ece_band.upper != other.measures[name].ece_band.upper

"""The fit as a whole: what serves, and what is said beside scores, each by its own function."""

from dataclasses import replace

import numpy as np
import pytest
from sample_strategies import records_with_ranks, simulated_records

from howsure.statistics.bins.fit import fit_bin_table
from howsure.statistics.bins.intervals import IntervalOptions
from howsure.statistics.coarse import fit_coarse_table
from howsure.statistics.fit.baselines import BASELINES, loss
from howsure.statistics.fit.calibration import fit_calibration
from howsure.statistics.fit.cross_validation import predict_with_table
from howsure.statistics.fit.options import FitOptions
from howsure.statistics.ranking import ood_thresholds, ranking_of
from howsure.statistics.scores import SCORES, compute_scores
from howsure.statistics.selective import SelectiveTarget, fit_selective


@pytest.fixture(scope="module")
def records():
    return simulated_records(600, seed=2)


@pytest.fixture(scope="module")
def fit(records):
    options = FitOptions(
        targets=(0.9, 0.8),
        ood_level=0.97,
        selective=(SelectiveTarget(0.2, 0.1),),
        interval=IntervalOptions(level=0.9),
    )
    return fit_calibration(records, options=options, evaluation=records)


class TestChoice:
    def test_the_earlier_of_equals_serves(self):
        """On Top-1 the two are the same number."""
        records = simulated_records(200, seed=2)
        for measures in (
            ("neg_log_topk_mass", "neg_log_pmax"),
            ("neg_log_pmax", "neg_log_topk_mass"),
        ):
            fit = fit_calibration(records, options=FitOptions(top_k=(1,), measures=measures))
            assert fit.events[1].served == measures[0]

    def test_the_fewest_bins_within_a_standard_error_are_fitted(self, fit):
        for event in fit.events.values():
            for measure in event.measures.values():
                tried = {c.n_bins: c.nll_mean for c in measure.candidates}
                chosen = measure.table.requested_bins
                best = min(tried, key=tried.get)
                assert tuple(tried) == (1, 2, 5, 10, 15, 20)
                assert chosen <= best
                assert measure.scores["nll"].mean == pytest.approx(tried[chosen])


class TestCalls:
    def test_events_and_measures_come_in_the_order_asked_for_and_are_counted(self):
        seen = []
        options = FitOptions(top_k=(5, 1), measures=("margin", "entropy"))
        fit = fit_calibration(
            simulated_records(60, seed=0),
            options=options,
            on_progress=lambda done, total: seen.append((done, total)),
        )
        assert seen == [(1, 4), (2, 4), (3, 4), (4, 4)]
        assert list(fit.events) == [5, 1]
        for k, event in fit.events.items():
            assert (event.k, event.n_samples) == (k, 60)
            assert list(event.measures) == ["margin", "entropy"]

    def test_an_empty_evaluation_set_defines_nothing(self):
        records = simulated_records(60, seed=0)
        empty = records.take(np.arange(0))
        event = fit_calibration(records, options=FitOptions(), evaluation=empty).events[1]
        assert event.measures["entropy"].evaluation == dict.fromkeys(SCORES)

    def test_no_samples_are_refused(self):
        empty = simulated_records(5, seed=0).take(np.arange(0))
        with pytest.raises(ValueError, match="records must hold at least one sample"):
            fit_calibration(empty, options=FitOptions())

    def test_a_missing_column_is_named(self):
        records = simulated_records(30, seed=0, top_k=(1,))
        with pytest.raises(ValueError, match="records must hold neg_log_topk_mass_5, not only"):
            fit_calibration(records, options=FitOptions())
        both = simulated_records(30, seed=0)
        with pytest.raises(ValueError, match="evaluation must hold neg_log_topk_mass_5"):
            fit_calibration(both, options=FitOptions(), evaluation=records)


def test_decisions_are_fitted_as_asked(records, fit):
    for k, event in fit.events.items():
        for measure in event.measures.values():
            uncertainty, hits = records.uncertainty[measure.column], records.hits(k)
            expected = fit_coarse_table(
                ranking_of(uncertainty, hits), targets=(0.9, 0.8), level=0.9
            )
            assert measure.coarse == expected
            (selective,) = measure.selective
            assert selective == fit_selective(
                ranking_of(uncertainty, hits), SelectiveTarget(0.2, 0.1)
            )
            assert measure.ood_thresholds == ood_thresholds(
                ranking_of(uncertainty), (0.9, 0.95, 0.97, 0.99)
            )
            assert measure.rank_grid.n_cells == measure.table.requested_bins
            assert measure.guarantee.alpha == pytest.approx(0.1)


def test_the_lookup_that_is_not_served_has_the_bins_that_are_served(records, fit):
    for k, event in fit.events.items():
        served = event.measures[event.served]
        expected = fit_bin_table(
            records.uncertainty[served.column],
            records.hits(k),
            n_bins=served.table.requested_bins,
            lookup="interpolated",
        )
        assert event.baselines["interpolated_bins"].parameters == {"bins": expected.n_bins}
        values = compute_scores(
            predict_with_table(expected, records.uncertainty[served.column], records.hits(k))
        )
        assert event.baselines["interpolated_bins"].evaluation == pytest.approx(values)


def test_logarithms_of_baselines_stop_half_a_sample_short_of_certainty(fit):
    for event in fit.events.values():
        for name in BASELINES:
            assert event.baselines[name].log_floor == 1 / (2 * 600)


class TestGuarantee:
    @staticmethod
    def of(records, **options):
        event = fit_calibration(records, options=FitOptions(top_k=(1,), **options)).events[1]
        return event.measures["entropy"].guarantee

    def test_counts_the_bins_compared(self, records):
        """Auto tries 1, 2, 5, 10, 15, 20 bins of 600 samples: 53 bins, of each measure."""
        assert self.of(records).n_compared == 53 * 4
        assert self.of(records, serve={1: "entropy"}).n_compared == 53
        assert self.of(records, bins=6).n_compared == 6 * 4
        assert self.of(records, bins=6, measures=("entropy",)).n_compared == 6
        assert self.of(records, bins=6, serve={1: "entropy"}).n_compared == 6

    def test_values_that_a_device_may_flush_to_zero_are_ties(self, records):
        tiny = np.arange(600, dtype=np.float32) * np.float32(1e-40)
        values = np.where(np.arange(600) < 350, tiny, records.uncertainty["entropy"] + 1)
        known = replace(records, uncertainty={**records.uncertainty, "entropy": values})
        found = self.of(known, bins=2, serve={1: "entropy"})
        assert found.width is None
        assert "equal uncertainties" in found.sentence


class TestOracle:
    def test_knows_more_than_any_measure(self, fit):
        for k, event in fit.events.items():
            assert event.oracle.name == "loss"
            assert event.oracle.scores["eor"].mean is not None
            for name in ("auroc", "aurc", *(("brier", "nll") if k == 1 else ())):
                others = [m.evaluation[name] for m in event.measures.values()]
                best = max(others) if SCORES[name].larger_is_better else min(others)
                mine = event.oracle.evaluation[name]
                assert (mine > best) if SCORES[name].larger_is_better else (mine < best), name

    def test_an_infinite_loss_ranks_last(self):
        records = records_with_ranks([0, 1, 2])
        records.label_log_probability[1] = -np.inf
        found = loss(records)
        assert np.isfinite(found).all()
        assert found.argmax() == 1

"""The fit as a whole: what serves, and what is said beside scores, each by its own function."""

from dataclasses import replace

import numpy as np
import pytest
from sample_strategies import records_with_ranks, simulated_records

from howsure.statistics.bins.fit import fit_bin_table
from howsure.statistics.bins.intervals import IntervalOptions
from howsure.statistics.coarse import fit_coarse_table
from howsure.statistics.fit.baselines import BASELINES
from howsure.statistics.fit.calibration import fit_calibration
from howsure.statistics.fit.cross_validation import predict_with_table
from howsure.statistics.fit.options import FitOptions
from howsure.statistics.fit.scored_baselines import loss
from howsure.statistics.learned.recorded import with_learned
from howsure.statistics.measures import LEARNED
from howsure.statistics.ranking import ood_thresholds, ranking_of
from howsure.statistics.records.order import in_canonical_order
from howsure.statistics.scores import SCORES, compute_scores
from howsure.statistics.selective import SelectiveTarget, fit_selective


@pytest.fixture(scope="module")
def records():
    return in_canonical_order(simulated_records(600, seed=2))


@pytest.fixture(scope="module")
def fit(records):
    options = FitOptions(
        targets=(0.9, 0.8),
        ood_level=0.97,
        selective=(SelectiveTarget(0.2, 0.1),),
        interval=IntervalOptions(level=0.9),
    )
    return fit_calibration(records, options=options, evaluation=records)


def fitted_uncertainty(records, event, measure):
    """The column that the table was fitted to: ``learned`` is cross-fitted."""
    if measure.measure == LEARNED:
        return event.learned.uncertainty
    return records.uncertainty[measure.column]


class TestChoice:
    def test_the_mass_of_the_event_serves_among_equals(self):
        """On Top-1 the two are the same number."""
        records = simulated_records(200, seed=2)
        for measures in (
            ("neg_log_topk_mass", "neg_log_pmax"),
            ("neg_log_pmax", "neg_log_topk_mass"),
        ):
            fit = fit_calibration(records, options=FitOptions(top_k=(1,), measures=measures))
            assert fit.events[1].served == "neg_log_topk_mass"

    def test_the_fewest_bins_within_a_standard_error_are_fitted(self, records):
        fit = fit_calibration(records, options=FitOptions(lookup="step"))
        for event in fit.events.values():
            for measure in event.measures.values():
                tried = {c.n_bins: c.nll_mean for c in measure.candidates}
                chosen = measure.table.requested_bins
                best = min(tried, key=tried.get)
                assert tuple(tried) == (1, 2, 5, 10, 15, 20)
                assert chosen <= best
                assert measure.scores["nll"].mean == pytest.approx(tried[chosen])

    def test_the_bins_beside_a_curve_are_those_of_a_step_table(self, records):
        smooth, step = (
            fit_calibration(records, options=FitOptions(top_k=(1,), lookup=lookup)).events[1]
            for lookup in ("smooth", "step")
        )
        for name, measure in step.measures.items():
            other = smooth.measures[name]
            assert other.candidates == measure.candidates
            assert other.table.hits.tolist() == measure.table.hits.tolist()
            assert other.guarantee == measure.guarantee


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
            uncertainty, hits = fitted_uncertainty(records, event, measure), records.hits(k)
            expected = fit_coarse_table(
                ranking_of(uncertainty, hits), targets=(0.9, 0.8), level=0.9
            )
            assert measure.coarse == expected
            (selective,) = measure.selective
            assert replace(selective, evaluation=None) == fit_selective(
                ranking_of(uncertainty, hits), SelectiveTarget(0.2, 0.1)
            )
            if measure.measure != LEARNED and selective.threshold is not None:
                # The evaluation set is the calibration set, so it has the same accepted samples.
                judged = selective.evaluation
                assert judged.n_samples == records.n_samples
                assert judged.n_accepted == np.count_nonzero(uncertainty <= selective.threshold)
                accepted = uncertainty <= selective.threshold
                assert judged.n_errors == np.count_nonzero(~hits[accepted])
            assert measure.ood_thresholds == ood_thresholds(
                ranking_of(uncertainty), (0.9, 0.95, 0.97, 0.99)
            )
            assert measure.rank_grid.n_cells == measure.table.requested_bins
            assert measure.guarantee.alpha == pytest.approx(0.1)


@pytest.mark.parametrize("lookup", ["interpolated", "step"])
def test_the_lookups_that_are_not_served_have_the_bins_that_are_served(records, fit, lookup):
    for k, event in fit.events.items():
        served = event.measures[event.served]
        expected = fit_bin_table(
            fitted_uncertainty(records, event, served),
            records.hits(k),
            n_bins=served.table.requested_bins,
            lookup=lookup,
        )
        other = event.baselines[f"{lookup}_bins"]
        assert other.parameters == {"bins": expected.n_bins}
        evaluated = with_learned(records, [event.learned.model]).uncertainty[served.column]
        values = compute_scores(predict_with_table(expected, evaluated, records.hits(k)))
        assert other.evaluation == pytest.approx(values)


def test_the_curve_that_is_not_served_is_compared_by_name(records):
    fit = fit_calibration(records, options=FitOptions(top_k=(1,), lookup="step", bins=5))
    assert {"smooth_curve", "interpolated_bins"} <= set(fit.events[1].baselines)


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
        assert self.of(records).n_compared == 53 * 5
        assert self.of(records, serve={1: "entropy"}).n_compared == 53
        assert self.of(records, bins=6).n_compared == 6 * 5
        assert self.of(records, bins=6, measures=("entropy",)).n_compared == 6
        assert self.of(records, bins=6, serve={1: "entropy"}).n_compared == 6

    def test_values_that_a_device_may_flush_to_zero_are_ties(self, records):
        tiny = np.arange(600, dtype=np.float32) * np.float32(1e-40)
        values = np.where(np.arange(600) < 350, tiny, records.uncertainty["entropy"] + 1)
        known = replace(records, uncertainty={**records.uncertainty, "entropy": values})
        found = self.of(known, bins=2, serve={1: "entropy"})
        assert found.width is None
        assert "an edge between bins falls among samples of equal uncertainty" in found.sentence

    def test_is_refused_for_what_was_learned_from_the_same_labels(self, records):
        event = fit_calibration(records, options=FitOptions(top_k=(1,), bins=6)).events[1]
        (reason,) = event.measures["learned"].guarantee.reasons
        assert reason == "the measure was learned from the labels of the same samples"
        assert event.measures["margin"].guarantee.reasons == ()

    def test_ties_that_no_edge_cuts_leave_it(self, records):
        blocks = (np.argsort(np.argsort(records.uncertainty["entropy"])) // 20).astype(np.float32)
        known = replace(records, uncertainty={**records.uncertainty, "entropy": blocks})
        asked = {"serve": {1: "entropy"}, "measures": ("entropy",)}
        assert self.of(known, bins=6, **asked).width is not None
        assert self.of(known, bins=7, **asked).width is None

    @pytest.mark.parametrize("lookup", ["smooth", "interpolated"])
    def test_is_that_of_the_step_table_whatever_is_served(self, records, lookup):
        step = self.of(records, bins=6, lookup="step")
        assert step.sentence.startswith("Step table: ")
        assert self.of(records, bins=6, lookup=lookup) == step
        assert self.of(records, bins=6, lookup="smooth", monotone=True) == step


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

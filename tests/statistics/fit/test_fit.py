"""The fit as a whole."""

from dataclasses import is_dataclass, replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from score_strategies import all_columns, simulated_records

from howsure.statistics.fit.calibration import fit_calibration
from howsure.statistics.fit.options import FitOptions
from howsure.statistics.records.records import concatenate
from howsure.statistics.scores import SCORES


def numbers(value):
    """Every number of a result, nested in plain containers, arrays as bytes."""
    if is_dataclass(value):
        return {name: numbers(getattr(value, name)) for name in value.__dataclass_fields__}
    if isinstance(value, dict):
        return {key: numbers(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [numbers(item) for item in value]
    return value.tobytes() if isinstance(value, np.ndarray) else value


class TestOrderOfSamples:
    @settings(max_examples=5)
    @given(seed=st.integers(0, 1000), lookup=st.sampled_from(["step", "interpolated"]))
    def test_shows_in_no_number(self, seed, lookup):
        """To the last bit, with samples that occur twice and keys shared by different samples."""
        records = simulated_records(120, seed=seed)
        records = concatenate([records, records.take(np.arange(30))])
        records = replace(records, tie_key=records.tie_key % np.uint32(64))
        order = np.random.default_rng(seed).permutation(150)
        options = FitOptions(folds=3, lookup=lookup)
        first = fit_calibration(records, options=options, evaluation=records)
        second = fit_calibration(
            records.take(order), options=options, evaluation=records.take(order[::-1])
        )
        assert numbers(first) == numbers(second)


@pytest.fixture(scope="module")
def fit():
    return fit_calibration(simulated_records(600, seed=2), options=FitOptions())


class TestChoice:
    def test_the_least_negative_log_likelihood_serves(self, fit):
        for event in fit.events.values():
            means = {name: m.scores["nll"].mean for name, m in event.measures.items()}
            assert means[event.served] == min(means.values())

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
    def test_progress_counts_measures_of_events(self):
        seen = []
        options = FitOptions(measures=("entropy", "margin"))
        fit_calibration(
            simulated_records(60, seed=0),
            options=options,
            on_progress=lambda done, total: seen.append((done, total)),
        )
        assert seen == [(1, 4), (2, 4), (3, 4), (4, 4)]

    def test_events_and_measures_come_in_the_order_asked_for(self):
        options = FitOptions(top_k=(5, 1), measures=("margin", "entropy"))
        fit = fit_calibration(simulated_records(60, seed=0), options=options)
        assert list(fit.events) == [5, 1]
        for k, event in fit.events.items():
            assert (event.k, event.n_samples) == (k, 60)
            assert list(event.measures) == ["margin", "entropy"]
        columns = [m.column for e in fit.events.values() for m in e.measures.values()]
        assert set(columns) <= set(all_columns((5, 1)))

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

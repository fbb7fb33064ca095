"""The fit as a whole: its options, what serves, the guarantee, and methods that do not serve."""

from dataclasses import replace
from itertools import permutations

import numpy as np
import pytest
from sample_strategies import fit_of, records_with_ranks, simulated_records

from howsure.statistics.bins.intervals import IntervalOptions
from howsure.statistics.fit.baselines import BASELINES
from howsure.statistics.fit.calibration import best_measure, fit_calibration
from howsure.statistics.fit.cross_validation import FoldScore
from howsure.statistics.fit.options import FitOptions
from howsure.statistics.fit.scored_baselines import loss
from howsure.statistics.records.order import in_canonical_order
from howsure.statistics.scores import SCORES
from howsure.statistics.selective import SelectiveTarget


@pytest.mark.parametrize(("wrong", "message"), [
    ({"top_k": ()}, "top_k must hold distinct"), ({"top_k": (0,)}, "top_k must .* not 0"),
    ({"measures": ()}, "measures must be distinct"),
    ({"measures": ("confidence",)}, "measure must be one of learned, entropy, .*'confidence'"),
    ({"serve": {2: "entropy"}}, r"serve must name events of top_k \(1, 5\), not 2"),
    ({"measures": ("supplied:x",)}, "serve must name a measure for Top-1"),
    ({"serve": {1: "energy"}}, "serve must name one of the measures .*, not 'energy'"),
    ({"bins": 0}, "bins must be .* not 0"), ({"bins": True}, "bins must be"),
    ({"lookup": "linear"}, "lookup must be one of .*'linear'"),
    ({"prior_strength": 0.0}, "prior_strength must .* not 0.0"), ({"folds": 1}, "folds must .* 1"),
    ({"targets": (0.9, 1.0)}, "targets must lie"), ({"targets": (0.9, 0.9)}, "targets must fall"),
    ({"ood_level": 1.0}, "ood_level must lie in .* not 1.0"),
])  # fmt: skip
def test_an_option_out_of_its_range_is_named(wrong, message):
    with pytest.raises(ValueError, match=message):
        FitOptions(**wrong)


MASS_AND_ENTROPY = {"top_k": (1, 5), "measures": ("neg_log_topk_mass", "entropy"), "folds": 5}


@pytest.fixture(scope="module")
def records():
    return in_canonical_order(simulated_records(600, seed=2))


@pytest.fixture(scope="module")
def fit(records):
    options = {"selective": (SelectiveTarget(0.2, 0.1),), "interval": IntervalOptions(level=0.9)}
    options |= {"targets": (0.9, 0.8), "ood_level": 0.97}
    return fit_of(records, evaluation=records, **MASS_AND_ENTROPY, **options)


def test_options_reach_what_is_decided(fit):
    for event in fit.events.values():
        for measure in event.measures.values():
            assert [cell.target for cell in measure.coarse.cells] == [0.9, 0.8, None]
            assert tuple(measure.ood_thresholds) == (0.9, 0.95, 0.97, 0.99)
            assert measure.guarantee.alpha == pytest.approx(0.1)
            (selective,) = measure.selective
            judged, own = vars(selective.evaluation), vars(selective)  # by the same samples
            assert all(judged[name] == own[name] for name in ("n_accepted", "n_errors"))


def test_the_mass_of_the_event_serves_among_equals():
    """On Top-1 the two are the same number."""
    records = simulated_records(200, seed=2)
    for measures in permutations(("neg_log_topk_mass", "neg_log_pmax")):
        event = fit_of(records, measures=measures, bins=4).events[1]
        assert event.served == "neg_log_topk_mass"


@pytest.mark.parametrize(("misses", "served"), [(9, "learned"), (10, "entropy")])
def test_few_misses_do_not_choose_the_measure(misses, served):
    records = records_with_ranks([0] * (100 - misses) + [1] * misses)
    measures = fit_of(records, measures=("learned", "entropy")).events[1].measures
    for name, nll in (("learned", 0.9), ("entropy", 0.1)):
        scores = dict.fromkeys(("nll", "brier"), FoldScore(nll, None, 2, None, (nll, nll + 1e-3)))
        measures[name] = replace(measures[name], scores=scores)
    assert best_measure(measures) == served


def test_the_fewest_bins_within_a_standard_error_are_fitted_beside_a_curve_too(records, fit):
    step = fit_of(records, lookup="step", **MASS_AND_ENTROPY)
    for k, event in step.events.items():
        for name, measure in event.measures.items():
            tried = {c.n_bins: c.nll_mean for c in measure.candidates}
            chosen = measure.table.requested_bins
            assert tuple(tried) == (1, 2, 5, 10, 15, 20)
            assert chosen <= min(tried, key=tried.get)
            assert measure.scores["nll"].mean == pytest.approx(tried[chosen])
            smooth = fit.events[k].measures[name]
            assert smooth.candidates == measure.candidates
            assert smooth.table.hits.tolist() == measure.table.hits.tolist()
    assert {"smooth_curve", "interpolated_bins"} <= set(step.events[1].baselines)


def test_events_and_measures_come_in_the_order_asked_for_and_are_counted():
    progress, records = [], simulated_records(60, seed=0)
    options = FitOptions(top_k=(5, 1), measures=("margin", "entropy"), folds=2)
    fit = fit_calibration(records, options=options, on_progress=lambda *at: progress.append(at))
    assert progress == [(1, 4), (2, 4), (3, 4), (4, 4)]
    found = [(k, event.k, list(event.measures)) for k, event in fit.events.items()]
    assert found == [(k, k, ["margin", "entropy"]) for k in (5, 1)]


def test_sets_without_samples_or_columns():
    records, other = simulated_records(30, seed=0), simulated_records(30, seed=0, top_k=(1,))
    empty = records.take(np.arange(0))
    options = FitOptions(measures=("entropy", "neg_log_topk_mass"))
    event = fit_calibration(records, options=options, evaluation=empty).events[1]
    assert event.measures["entropy"].evaluation == dict.fromkeys(SCORES)
    with pytest.raises(ValueError, match="records must hold at least one sample"):
        fit_calibration(empty, options=options)
    with pytest.raises(ValueError, match="records must hold neg_log_topk_mass_5, not only"):
        fit_calibration(other, options=options)
    with pytest.raises(ValueError, match="evaluation must hold neg_log_topk_mass_5"):
        fit_calibration(records, options=options, evaluation=other)


def guarantee_of(records, **options):
    return fit_of(records, **options).events[1].measures["entropy"].guarantee


def test_the_guarantee_counts_the_bins_compared(records):
    """Auto tries 1, 2, 5, 10, 15, 20 bins of 600 samples: 53 bins, of each measure."""
    two, named = {"measures": ("entropy", "margin")}, {"serve": {1: "entropy"}}
    ways = (two, two | named, two | {"bins": 6}, {"bins": 6}, two | named | {"bins": 6})
    compared = [guarantee_of(records, **options).n_compared for options in ways]
    assert compared == [53 * 2, 53, 6 * 2, 6, 6]


def test_the_guarantee_is_that_of_the_step_table_whatever_is_served(records):
    step = guarantee_of(records, bins=6, lookup="step")
    assert step.width is not None
    for served in ({"lookup": "smooth"}, {"lookup": "interpolated"}, {"monotone": True}):
        assert guarantee_of(records, bins=6, **served) == step


def test_ties_that_an_edge_cuts_end_the_guarantee(records):
    """Blocks of twenty; and values that a device may flush to zero, which are ties."""
    entropy = records.uncertainty["entropy"]
    blocks = (np.argsort(np.argsort(entropy)) // 20).astype(np.float32)
    tiny = np.where(np.arange(600) < 350, np.arange(600) * np.float32(1e-40), entropy + 1)
    for values, bins, is_kept in ((blocks, 6, True), (blocks, 7, False), (tiny, 2, False)):
        own = {**records.uncertainty, "entropy": values.astype(np.float32)}
        known = replace(records, uncertainty=own)
        assert (guarantee_of(known, bins=bins).width is not None) == is_kept


def test_a_measure_learned_from_the_same_labels_has_no_guarantee(records):
    fit = fit_of(records, bins=6, measures=("learned", "margin"))
    found = fit.events[1].measures.values()
    assert [len(measure.guarantee.reasons) for measure in found] == [1, 0]


def test_the_oracle_knows_more_than_any_measure(fit):
    for k, event in fit.events.items():
        assert {event.baselines[name].log_floor for name in BASELINES} == {1 / (2 * 600)}
        assert event.oracle.scores["eor"].mean is not None
        for name in ("auroc", "aurc", *(("brier", "nll") if k == 1 else ())):
            sign = 1 if SCORES[name].larger_is_better else -1
            others = [sign * measure.evaluation[name] for measure in event.measures.values()]
            assert sign * event.oracle.evaluation[name] > max(others), name


def test_an_infinite_loss_ranks_last():
    records = records_with_ranks([0, 1, 2])
    records.label_log_probability[1] = -np.inf
    assert np.isfinite(loss(records)).all()
    assert loss(records).argmax() == 1

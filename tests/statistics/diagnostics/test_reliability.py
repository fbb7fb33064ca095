"""The reliability of what is served, before and after; the scatter of losses; the risk band."""

import numpy as np
import pytest
from sample_strategies import fit_of, simulated_records

N_CLASSES = 6


def drawn(n_samples, *, seed, sharpness=1.0):
    options = {"n_classes": N_CLASSES, "spread": 2.0}
    return simulated_records(n_samples, seed=seed, sharpness=sharpness, **options)


def served_of(records, *, evaluation=None):
    options = {"measures": ("neg_log_pmax",), "bins": 10}
    event = fit_of(records, evaluation=evaluation, **options).events[1]
    return event.measures[event.served]


def excess(rows):
    gaps, counts = zip(*((abs(row.said - row.hit_rate), row.count) for row in rows), strict=True)
    return np.average(gaps, weights=counts)


def test_before_is_the_models_own_and_after_is_what_is_served():
    known, new = (drawn(n, seed=n, sharpness=2.5) for n in (2000, 3000))
    served = served_of(known, evaluation=new)
    found = served.reliability
    assert found.held_out == "evaluation"
    assert excess(found.after) == pytest.approx(served.evaluation["ece"], abs=1e-12)
    assert excess(found.before) > 5 * excess(found.after)
    assert all(row.said > row.hit_rate for row in found.before if row.count > 100)
    for rows in (found.before, found.after, found.classes):
        assert sum(row.count for row in rows) == found.n_samples == 3000
        assert all(row.count > 0 and row.lower <= row.hit_rate <= row.upper for row in rows)
        assert len({row.group for row in rows}) == len(rows)
    worst_first = [row.excess for row in found.classes]
    assert worst_first == sorted(worst_first, reverse=True)


def test_a_half_that_fitted_nothing_judges_where_no_set_was_sent():
    found = served_of(drawn(2001, seed=2, sharpness=2.5)).reliability
    assert found.held_out == "half"
    assert found.n_samples in (1000, 1001)
    # The table's own samples would come true to the last one.
    assert 0.002 < excess(found.after) < excess(found.before)
    assert served_of(drawn(1, seed=3)).reliability is None


def test_one_measure_alone_is_shown_and_the_others_differ_from_it():
    measures = ("entropy", "margin", "neg_log_topk_mass")
    fit = fit_of(drawn(400, seed=4), top_k=(1, 5), measures=measures, folds=3, bins=4)
    for event in fit.events.values():
        for name, found in event.measures.items():
            served = name == event.served
            assert (found.reliability is not None) == served == (found.scatter is not None)
            assert (found.difference == {}) == served
            if not served:
                mine, theirs = found.scores["nll"], event.measures[event.served].scores["nll"]
                assert found.difference["nll"].mean == pytest.approx(mine.mean - theirs.mean)


def test_a_scatter_draws_200_of_each_outcome_and_counts_all():
    records = drawn(3000, seed=5)
    scatter, rank = served_of(records).scatter, records.label_rank
    ranks = {"hit": (0,), "top5_hit": (1, 2, 3, 4), "miss": (5,)}
    for name, own in ranks.items():
        found, is_one = getattr(scatter, name), np.isin(rank, own)
        assert found.count == np.count_nonzero(is_one)
        assert (len(found.loss), found.infinite) == (min(200, found.count), 0)
    # Where the prediction is right, the loss is the uncertainty -log p_max.
    assert np.allclose(scatter.hit.uncertainty, scatter.hit.loss, rtol=2e-5)

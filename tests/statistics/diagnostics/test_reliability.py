"""The reliability of what is served, before and after; the scatter of losses; the risk band."""

import numpy as np
import pytest
from sample_strategies import calibrated, fit_of, records_of, simulated_records
from scipy.special import expit
from sklearn.metrics import average_precision_score, brier_score_loss, log_loss, roc_auc_score

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


@pytest.mark.parametrize("threshold", [None, 0.2])
def test_the_probability_of_class_1_is_judged_whichever_class_is_predicted(threshold):
    logits, labels = calibrated(6000, n_classes=2, seed=6)
    logits, half = 2.5 * logits, slice(3000, None)
    known, new = (
        records_of(logits[rows], labels[rows], threshold=threshold) for rows in (slice(3000), half)
    )
    found = served_of(known, evaluation=new).reliability.class_1
    labels, p = labels[half], expit(logits[half, 1] - logits[half, 0])
    clipped = np.clip(p, 1 / 6000, 1 - 1 / 6000)
    assert {**found.scores["before"], "ece_15": 0, "ece_equal_mass": 0} == pytest.approx({
        "brier": brier_score_loss(labels, p), "nll": log_loss(labels, clipped),
        "ece_15": 0, "ece_equal_mass": 0,
        "auroc": roc_auc_score(labels, p), "aupr": average_precision_score(labels, p),
    })  # fmt: skip
    assert found.scores["after"].keys() == found.scores["before"].keys()
    for name in ("brier", "nll", "ece_15", "ece_equal_mass"):
        assert found.scores["after"][name] < found.scores["before"][name]
    for rows in (found.before, found.after):
        assert sum(row.hits for row in rows) == labels.sum()
    assert max(row.count for row in found.before) < 250
    means = [row.said * row.count for row in found.before]
    assert sum(means) == pytest.approx(p.sum())
    assert excess(found.after) < 0.05 < excess(found.before)


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

"""Methods side by side on a further set, beside scikit-learn, netcal's formula and scipy."""

import numpy as np
import pytest
from sample_strategies import fit_of, simulated_records
from scipy import stats
from scipy.special import log_softmax
from sklearn.metrics import brier_score_loss, log_loss, roc_auc_score

from howsure.statistics.fit.event_samples import EventSamples
from howsure.statistics.measures.passes import averaged_columns
from howsure.statistics.model_scores import CONFIDENCES, model_scores
from howsure.statistics.shift.methods import RAW, SERVED, best_on_set, compare_methods


def compared(*, calibrated: float, further: float):
    """Return the methods on a set whose model is as many times too sure as the others are."""
    known = simulated_records(3000, seed=1, sharpness=calibrated, top_k=(1,), n_classes=2)
    other = simulated_records(3000, seed=2, sharpness=further, top_k=(1,), n_classes=2)
    served = fit_of(known).events[1].measures["entropy"]
    sets = EventSamples(known, 1), EventSamples(other, 1)
    return compare_methods(served.table, served.column, *sets), sets[1]


def test_scores_are_those_of_other_implementations() -> None:
    methods, further = compared(calibrated=2.0, further=2.0)
    hits, probability = further.hits, np.exp(-further.mass_uncertainty.astype(np.float64))
    raw, floor = methods[RAW].scores, 0.5 / 3000
    clipped = np.clip(probability, floor, 1 - floor)
    assert raw["brier"] == pytest.approx(brier_score_loss(hits, probability), abs=1e-9)
    assert raw["nll"] == pytest.approx(log_loss(hits, clipped), abs=1e-9)
    assert raw["auroc"] == pytest.approx(roc_auc_score(hits, probability), abs=1e-9)
    groups = np.minimum((probability * 15).astype(int), 14)
    off = [abs((hits - probability)[groups == at].sum()) for at in range(15)]
    assert raw["ece_15"] == pytest.approx(sum(off) / 3000, abs=1e-9)
    label = further.records.label
    class_1 = np.where(further.records.top_classes[:, 0] == 1, probability, 1 - probability)
    assert raw["auroc_class_1"] == pytest.approx(roc_auc_score(label, class_1), abs=1e-9)
    losses = np.square(probability - hits)
    interval = stats.t.interval(0.95, 2999, losses.mean(), stats.sem(losses))
    assert methods[RAW].intervals["brier"] == pytest.approx(interval, abs=1e-9)
    sure, at = probability >= 0.9, CONFIDENCES.index(0.9)
    counts = methods[RAW].above[at], methods[RAW].hits_above[at]
    assert counts == (np.count_nonzero(sure), np.count_nonzero(hits[sure]))


WORLDS = [
    # The model's softmax is right, on a set where what was learned from another one is not.
    ({"calibrated": 3.0, "further": 1.0}, "other"),
    ({"calibrated": 3.0, "further": 3.0}, "served"),
    ({"calibrated": 1.0, "further": 1.0}, "unclear"),
]


@pytest.mark.parametrize(("world", "better"), WORLDS)
def test_the_better_method_is_named_where_a_lead_is_clear(world, better) -> None:
    methods, _ = compared(**world)
    best = best_on_set(methods)
    assert best is not None
    assert best.better == better
    assert not methods[SERVED].difference
    if better == "other":
        assert methods[best.method].scores["brier"] < methods[SERVED].scores["brier"]


def test_without_methods_none_is_better() -> None:
    assert best_on_set({}) is None


def test_the_mean_of_passes_is_a_method_of_its_own_predictions() -> None:
    rng = np.random.default_rng(5)
    known, other = (simulated_records(400, seed=seed, top_k=(1,)) for seed in (1, 2))
    passes = log_softmax(rng.normal(0.0, 3.0, (400, 7, 10)), axis=2)
    other = other.with_passes(averaged_columns("dropout_variance", passes, other.label))
    served = fit_of(known).events[1].measures["entropy"]
    sets = EventSamples(known, 1), EventSamples(other, 1)
    mean = compare_methods(served.table, served.column, *sets)["mean of dropout_variance"]
    averaged = np.exp(passes).mean(axis=1)
    hits = averaged.argmax(axis=1) == other.label
    assert mean.scores["accuracy"] == pytest.approx(hits.mean())
    brier = brier_score_loss(hits, averaged.max(axis=1))
    assert mean.scores["brier"] == pytest.approx(brier, abs=1e-6)
    (*_, row) = model_scores(other, top_k=(1,)).passes["dropout_variance"]
    assert row.brier == mean.scores["brier"]

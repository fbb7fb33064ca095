"""No finding is made of sets that are clean: calibrated models, whatever the size of the set."""

import numpy as np
import pytest
from sample_strategies import calibrated, found_in, records_of
from scipy.special import softmax

from howsure.statistics.findings.evidence import PreparationTrials
from howsure.statistics.findings.preparations import of_pictures, rescaling, rescalings

# Bins are too many for such sets, whatever else they are like.
SMALL = {"few-samples-for-bins"}
SIZES = [(2, 20), (2, 100), (2, 600), (10, 20), (10, 100), (10, 600), (100, 20), (100, 600)]


@pytest.mark.parametrize(("n_classes", "n_samples"), SIZES)
@pytest.mark.parametrize("spread", [1.0, 3.0])
def test_few_alarms_on_many_calibrated_sets(n_classes, n_samples, spread):
    """Twelve looks of a level of 0.1 % or less: in 40 sets at most one alarm, one time in 12."""
    alarms = []
    for seed in range(40):
        logits, labels = calibrated(n_samples, n_classes=n_classes, seed=seed, spread=spread)
        alarms += found_in(logits, labels).keys() - SMALL
    assert len(alarms) <= 1, alarms


@pytest.mark.parametrize(
    ("n_classes", "n_samples"), [(2, 20_000), (10, 20_000), (1000, 20), (1000, 500), (1000, 3000)]
)
@pytest.mark.parametrize("seed", range(2))
def test_no_alarm_on_large_sets_and_many_classes(n_classes, n_samples, seed):
    logits, labels = calibrated(n_samples, n_classes=n_classes, seed=seed)
    assert found_in(logits, labels).keys() <= SMALL
    given = {"source": "probabilities", "probabilities": True}
    assert found_in(softmax(logits, axis=1), labels, **given).keys() <= SMALL
    assert found_in(logits, labels, n_first=256).keys() <= SMALL


@pytest.mark.parametrize("factor", [0.3, 3.0, 30.0])
@pytest.mark.parametrize("n_classes", [2, 10, 100])
def test_no_alarm_on_models_that_are_too_sure_or_too_unsure(n_classes, factor):
    logits, labels = calibrated(3000, n_classes=n_classes, seed=5, spread=5.0)
    assert not found_in(logits * factor, labels)


def test_no_alarm_where_a_rare_class_is_nearly_never_right():
    """A class in a hundred, of which the model names every other one."""
    rng = np.random.default_rng(0)
    labels = (rng.random(5000) < 0.01).astype(np.int64)
    score = np.where(labels == 1, rng.normal(0.2, 2.0, 5000), rng.normal(-6.0, 1.5, 5000))
    assert not found_in(np.column_stack([np.zeros(5000), score]), labels)


def test_no_alarm_where_other_inputs_are_worse():
    logits, labels = calibrated(256, seed=9)
    worse = np.random.default_rng(1).normal(size=logits.shape)
    for other in (worse, logits / 255.0, logits * 255.0, logits):
        for factor in (255.0, 1.0 / 255.0):
            tried = [(rescaling(factor), records_of(other, labels))]
            trials = PreparationTrials(records_of(logits, labels), tried)
            assert not found_in(logits, labels, trials=trials)


def test_few_alarms_where_normalisation_is_no_better():
    """Other inputs make other mistakes, as many."""
    (how, _) = rescalings(np.ones((1, 3, 2, 2)))[1:]
    rng, alarms = np.random.default_rng(3), 0
    for seed in range(60):
        logits, labels = calibrated(256, seed=seed)
        as_sent, *others = (logits + rng.normal(size=logits.shape) * 3 for _ in range(4))
        tried = [(how, records_of(other, labels)) for other in others]
        trials = PreparationTrials(records_of(as_sent, labels), tried)
        alarms += "inputs-not-scaled" in found_in(as_sent, labels, trials=trials)
    assert alarms <= 1


def test_few_alarms_where_other_preprocessing_is_no_better():
    """Twelve ways, of which a first look has kept the three best."""
    rng, alarms = np.random.default_rng(4), 0
    how = of_pictures("colour bgr in the preprocessing", {}, np.asarray)
    for seed in range(60):
        logits, labels = calibrated(256, seed=seed)
        as_sent, *others = (logits + rng.normal(size=logits.shape) * 3 for _ in range(13))
        recorded = [records_of(other, labels) for other in others]
        recorded.sort(key=lambda found: -found.label_log_probability.mean())
        tried = [(how, records) for records in recorded[:3]]
        trials = PreparationTrials(records_of(as_sent, labels), tried, n_tried=12)
        alarms += "wrong-preprocessing" in found_in(as_sent, labels, trials=trials)
    assert alarms <= 1

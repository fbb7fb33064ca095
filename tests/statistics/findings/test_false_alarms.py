"""No finding is made of sets that are clean: calibrated models, whatever the size of the set."""

import numpy as np
import pytest
from sample_strategies import calibrated, found_in, records_of
from scipy.special import softmax

from howsure.statistics.findings.evidence import PreparationTrials
from howsure.statistics.findings.preparations import of_pictures, rescaling, rescalings

# Bins are too many for such sets, whatever else they are like.
SMALL = {"few-samples-for-bins"}
SIZES = [(2, 20, 3.0), (2, 100, 1.0), (2, 600, 3.0), (10, 20, 1.0), (10, 100, 3.0), (10, 600, 1.0),
         (10, 600, 3.0), (100, 20, 3.0), (100, 600, 1.0)]  # fmt: skip


@pytest.mark.parametrize(
    ("n_classes", "n_samples", "spread"),
    [size if at % 3 == 0 else pytest.param(*size, marks=pytest.mark.slow)
     for at, size in enumerate(SIZES)],
)  # fmt: skip
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
def test_no_alarm_on_large_sets_and_many_classes(n_classes, n_samples):
    logits, labels = calibrated(n_samples, n_classes=n_classes, seed=1)
    assert found_in(logits, labels).keys() <= SMALL
    given = {"source": "probabilities", "probabilities": True}
    assert found_in(softmax(logits, axis=1), labels, **given).keys() <= SMALL
    assert found_in(logits, labels, n_first=256).keys() <= SMALL


@pytest.mark.parametrize(
    ("n_classes", "factor"), [(2, 0.3), (2, 30.0), (10, 3.0), (10, 0.3), (100, 30.0)]
)
def test_no_alarm_on_models_that_are_too_sure_or_too_unsure(n_classes, factor):
    logits, labels = calibrated(3000, n_classes=n_classes, seed=5, spread=5.0)
    assert not found_in(logits * factor, labels)


def test_false_labels_are_found_by_the_surest_answers():
    """Three in a hundred; a model that is right in 86 of 100 cases has no such errors itself."""
    for seed in range(5):
        logits, labels = calibrated(2000, seed=seed, spread=8.0)
        wrong = np.random.default_rng(seed).random(2000) < 0.03
        (finding,) = found_in(logits, np.where(wrong, (labels + 1) % 10, labels)).values()
        assert (finding.code, finding.level) == ("surest-answers-denied", "notice")
        assert 0.015 < finding.figures["share"] < 0.05
        assert wrong[finding.figures["rows"]].all()


def test_no_alarm_where_a_rare_class_is_nearly_never_right():
    """A class in a hundred, of which the model names every other one."""
    rng = np.random.default_rng(0)
    labels = (rng.random(5000) < 0.01).astype(np.int64)
    score = np.where(labels == 1, rng.normal(0.2, 2.0, 5000), rng.normal(-6.0, 1.5, 5000))
    assert not found_in(np.column_stack([np.zeros(5000), score]), labels)


@pytest.mark.parametrize("factor", [255.0, 1.0 / 255.0])
@pytest.mark.parametrize("times", [0.0, 1.0, 255.0, 1.0 / 255.0])
def test_no_alarm_where_other_inputs_are_worse(times, factor):
    logits, labels = calibrated(256, seed=9)
    other = logits * times if times else np.random.default_rng(1).normal(size=logits.shape)
    tried = [(rescaling(factor), records_of(other, labels))]
    trials = PreparationTrials(records_of(logits, labels), tried)
    assert not found_in(logits, labels, trials=trials)


OTHER_WAYS = [
    (3, rescalings(np.ones((1, 3, 2, 2)))[1], "inputs-not-scaled"),
    # Twelve ways, of which a first look has kept the three best.
    (12, of_pictures("colour bgr in the preprocessing", {}, np.asarray), "wrong-preprocessing"),
]


@pytest.mark.parametrize("n_sets", [24, pytest.param(60, marks=pytest.mark.slow)])
@pytest.mark.parametrize(("n_tried", "how", "code"), OTHER_WAYS)
def test_few_alarms_where_other_preprocessing_is_no_better(n_tried, how, code, n_sets):
    """Other inputs make other mistakes, as many."""
    rng, alarms = np.random.default_rng(4), 0
    for seed in range(n_sets):
        logits, labels = calibrated(256, seed=seed)
        answers = logits + rng.normal(size=(n_tried + 1, *logits.shape)) * 3
        as_sent, *recorded = (records_of(one, labels) for one in answers)
        recorded.sort(key=lambda records: -records.label_log_probability.mean())
        trials = PreparationTrials(as_sent, [(how, one) for one in recorded[:3]], n_tried=n_tried)
        alarms += code in found_in(answers[0], labels, trials=trials)
    assert alarms <= 1

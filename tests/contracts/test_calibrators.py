"""Laws that every baseline keeps."""

import numpy as np
import pytest
from sample_strategies import calibrated, records_of, records_with_ranks, simulated_records

from howsure.statistics.fit.baselines import BASELINES
from howsure.statistics.fit.event_samples import EventSamples

EACH = pytest.mark.parametrize("name", BASELINES)
N_SAMPLES = 400
RECORDS = simulated_records(N_SAMPLES, seed=3, sharpness=2.0)


@EACH
@pytest.mark.parametrize("k", [1, 5])
def test_says_probabilities_and_what_ranks_them(name, k):
    samples = EventSamples(RECORDS, k)
    fitted = BASELINES[name].fit(samples, np.arange(N_SAMPLES))
    said = fitted(samples)
    for values in (said.probability, said.uncertainty):
        assert values.shape == (N_SAMPLES,)
        assert np.isfinite(values).all()
    assert ((said.probability >= 0.0) & (said.probability <= 1.0)).all()
    order = np.argsort(said.uncertainty, kind="stable")
    assert (np.diff(said.probability[order]) <= 1e-9).all()
    assert all(np.isfinite(value) for value in fitted.parameters.values())


@EACH
def test_names_of_two_classes_may_be_exchanged(name):
    """They are fitted on the probability of class 1, whichever class that is."""
    logits, labels = calibrated(N_SAMPLES, n_classes=2, seed=5)
    logits = 2.0 * logits + [1.5, 0.0]  # too sure of class 0
    sets = (records_of(logits, labels), records_of(logits[:, ::-1], 1 - labels))
    samples = [EventSamples(records, 1) for records in sets]
    one, other = (BASELINES[name].fit(own, np.arange(N_SAMPLES))(own) for own in samples)
    np.testing.assert_allclose(one.probability, other.probability, atol=1e-6)
    order = np.argsort(one.uncertainty, kind="stable")
    assert (np.diff(one.probability[order]) <= 1e-9).all()


@EACH
def test_says_nothing_of_no_samples(name):
    samples = EventSamples(RECORDS, 1)
    fitted = BASELINES[name].fit(samples, np.arange(N_SAMPLES))
    assert fitted(samples, np.arange(0)).probability.shape == (0,)
    assert fitted(EventSamples(RECORDS.take(np.arange(0)), 1)).probability.shape == (0,)


@EACH
def test_learns_from_the_rows_given_alone_in_any_order(name):
    rows, order = np.arange(0, N_SAMPLES, 2), np.random.default_rng(0).permutation(N_SAMPLES)
    samples = EventSamples(RECORDS, 1)
    for chosen, atol in ((rows, 1e-9), (order, 1e-7)):
        taken = EventSamples(RECORDS.take(chosen), 1)
        one = BASELINES[name].fit(samples, np.sort(chosen))(samples)
        other = BASELINES[name].fit(taken, np.arange(len(chosen)))(samples)
        np.testing.assert_allclose(one.probability, other.probability, atol=atol)


@EACH
@pytest.mark.parametrize("ranks", [[0] * 20, [1] * 20, [0], [1], [0, 1], [0] * 19 + [1]], ids=str)
def test_the_smallest_sets_can_be_learnt_from(name, ranks):
    samples = EventSamples(records_with_ranks(ranks), 1)
    said = BASELINES[name].fit(samples, np.arange(len(ranks)))(samples)
    assert ((said.probability >= 0.0) & (said.probability <= 1.0)).all()
    assert np.isfinite(said.uncertainty).all()


@EACH
def test_equal_uncertainties_get_one_probability(name):
    records = records_with_ranks([0, 1, 0, 0])
    same = records.take(np.zeros(4, dtype=np.int64))
    object.__setattr__(same, "label_rank", records.label_rank)
    samples = EventSamples(same, 1)
    said = BASELINES[name].fit(samples, np.arange(4))(samples).probability
    assert len(set(said.tolist())) == 1


@EACH
def test_a_learner_mends_an_overconfident_model(name):
    """Labels from the softmax, told with thrice its logits: every learner gains on saying so."""
    told = EventSamples(simulated_records(3000, seed=8, sharpness=3.0), 1)
    judged = EventSamples(simulated_records(3000, seed=9, sharpness=3.0), 1)
    said = BASELINES[name].fit(told, np.arange(3000))(judged).probability
    gap = abs(said.mean() - judged.hits.mean())
    assert (gap < 0.03) == BASELINES[name].learns

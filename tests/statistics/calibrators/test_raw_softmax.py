import numpy as np
from scipy.special import softmax
from score_strategies import records_with_ranks

from howsure.statistics.fit.baselines import BASELINES
from howsure.statistics.fit.event_samples import ALL, EventSamples
from howsure.statistics.records.build import build_records
from howsure.statistics.records.order import tie_keys


def test_is_the_mass_of_the_top_classes_and_learns_nothing():
    logits = np.random.default_rng(3).normal(size=(50, 8)) * 4.0
    records = build_records(
        logits, np.zeros(50, np.int64), tie_keys=tie_keys(logits, 0), top_k=(1, 3)
    )
    descending = np.sort(softmax(logits, axis=1), axis=1)[:, ::-1]
    raw = BASELINES["raw_softmax"]
    for k in (1, 3):
        samples = EventSamples(records, k)
        said = raw.fit(samples, np.arange(0))(samples)
        np.testing.assert_allclose(said.probability, descending[:, :k].sum(axis=1), rtol=1e-6)
        order = np.argsort(said.uncertainty)
        assert (np.diff(said.probability[order]) <= 0.0).all()
    assert not raw.learns


def fitted(records):
    samples = EventSamples(records, 1)
    return BASELINES["raw_softmax"].fit(samples, ALL)(samples)


def test_confident_samples_keep_their_rank_where_the_probability_is_one():
    logits = np.zeros((3, 6))
    logits[:, 0] = [50.0, 60.0, 70.0]
    records = build_records(logits, np.zeros(3, np.int64), tie_keys=tie_keys(logits, 0), top_k=(1,))
    said = fitted(records)
    assert (said.probability == 1.0).all()
    assert (np.diff(said.uncertainty) < 0.0).all()


def test_what_a_device_may_flush_to_zero_ranks_as_equal():
    records = records_with_ranks([0, 0, 0])
    records.uncertainty["neg_log_topk_mass_1"][:] = np.float32([0.0, 1e-40, 2e-37])
    said = fitted(records).uncertainty
    assert said[0] == said[1] < said[2]

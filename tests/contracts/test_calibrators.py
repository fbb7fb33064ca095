"""Laws that every calibrator keeps."""

import numpy as np
import pytest
from score_strategies import records_with_ranks, simulated_records

from service.core.calibrators import CALIBRATORS

EACH = pytest.mark.parametrize("name", CALIBRATORS)
N_SAMPLES = 400


@pytest.fixture(scope="module")
def records():
    return simulated_records(N_SAMPLES, seed=3, sharpness=2.0)


@EACH
def test_is_registered_under_its_name_and_explained(name):
    assert CALIBRATORS[name].name == name
    assert len(CALIBRATORS[name].meaning) > 10


@EACH
@pytest.mark.parametrize("k", [1, 5])
def test_says_probabilities_and_what_ranks_them(name, k, records):
    fitted = CALIBRATORS[name].fit(records, k, np.arange(N_SAMPLES))
    said = fitted(records)
    for values in (said.probability, said.uncertainty):
        assert values.shape == (N_SAMPLES,)
        assert np.isfinite(values).all()
    assert ((said.probability >= 0.0) & (said.probability <= 1.0)).all()
    order = np.argsort(said.uncertainty, kind="stable")
    assert (np.diff(said.probability[order]) <= 1e-9).all()
    assert all(np.isfinite(value) for value in fitted.parameters.values())


@EACH
def test_says_nothing_of_no_samples(name, records):
    fitted = CALIBRATORS[name].fit(records, 1, np.arange(N_SAMPLES))
    assert fitted(records.take(np.arange(0))).probability.shape == (0,)


@EACH
def test_learns_from_the_rows_given_alone(name, records):
    rows = np.arange(0, N_SAMPLES, 2)
    one = CALIBRATORS[name].fit(records, 1, rows)(records)
    other = CALIBRATORS[name].fit(records.take(rows), 1, np.arange(len(rows)))(records)
    np.testing.assert_allclose(one.probability, other.probability, atol=1e-9)


@EACH
def test_the_order_of_samples_does_not_show(name, records):
    order = np.random.default_rng(0).permutation(N_SAMPLES)
    one = CALIBRATORS[name].fit(records, 1, np.arange(N_SAMPLES))(records)
    other = CALIBRATORS[name].fit(records.take(order), 1, np.arange(N_SAMPLES))(records)
    np.testing.assert_allclose(one.probability, other.probability, atol=1e-7)


@EACH
@pytest.mark.parametrize(
    "ranks", [[0] * 20, [1] * 20, [0], [1], [0, 1], [0] * 19 + [1]],
    ids=["no-miss", "no-hit", "hit", "miss", "one-each", "one-miss"],
)  # fmt: skip
def test_the_smallest_sets_can_be_learnt_from(name, ranks):
    records = records_with_ranks(ranks)
    said = CALIBRATORS[name].fit(records, 1, np.arange(len(ranks)))(records)
    assert ((said.probability >= 0.0) & (said.probability <= 1.0)).all()
    assert np.isfinite(said.uncertainty).all()


@EACH
def test_equal_uncertainties_get_one_probability(name):
    records = records_with_ranks([0, 1, 0, 0])
    same = records.take(np.zeros(4, dtype=np.int64))
    object.__setattr__(same, "label_rank", records.label_rank)
    said = CALIBRATORS[name].fit(same, 1, np.arange(4))(same).probability
    assert len(set(said.tolist())) == 1


@EACH
def test_a_learner_mends_an_overconfident_model(name):
    """Labels from the softmax, told with thrice its logits: every learner gains on saying so."""
    told = simulated_records(3000, seed=8, sharpness=3.0)
    judged = simulated_records(3000, seed=9, sharpness=3.0)
    said = CALIBRATORS[name].fit(told, 1, np.arange(3000))(judged).probability
    gap = abs(said.mean() - judged.hits(1).mean())
    assert (gap < 0.03) == CALIBRATORS[name].learns

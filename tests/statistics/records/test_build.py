from functools import partial

import numpy as np
import pytest
import sample_strategies
from hypothesis import given
from hypothesis import strategies as st
from own_process import peak_of
from sample_strategies import logit_blocks
from scipy.special import log_softmax, logsumexp

from howsure.statistics.measures.passes import averaged_columns, covariance_norm
from howsure.statistics.model_scores import model_scores
from howsure.statistics.records.build import build_records, score_uncertainty
from howsure.statistics.records.records import TEMPERATURES, concatenate

RNG = np.random.default_rng(4)
LOGITS = RNG.normal(scale=5, size=(300, 12))
LABELS = (LOGITS + RNG.gumbel(scale=4, size=LOGITS.shape)).argmax(axis=1)


records_of = partial(sample_strategies.records_of, top_k=(1, 5))
RECORDS = records_of(LOGITS, LABELS)


def test_records_are_those_of_the_softmax():
    log_p, each = log_softmax(LOGITS, axis=1), np.arange(300)
    own = log_p[each, LABELS]
    np.testing.assert_allclose(RECORDS.label_log_probability, own, rtol=1e-11)
    np.testing.assert_allclose(RECORDS.sum_squares, (np.exp(log_p) ** 2).sum(axis=1), rtol=1e-12)
    order = np.argsort(-LOGITS, axis=1)
    np.testing.assert_array_equal(RECORDS.top_classes, order)
    others = np.where(np.arange(12) == order[:, :1], -np.inf, LOGITS)
    expected = (LOGITS.max(axis=1) - logsumexp(others, axis=1))[:, None]
    np.testing.assert_allclose(RECORDS.top_log_odds, expected, rtol=1e-6, atol=1e-6)
    np.testing.assert_array_equal(RECORDS.label_rank, (log_p > own[:, None]).sum(axis=1))
    for k in (1, 3, 5):
        np.testing.assert_array_equal(RECORDS.hits(k), (order[:, :k] == LABELS[:, None]).any(1))
    for name, values in score_uncertainty(LOGITS, top_k=(1, 5)).items():
        assert values.dtype == np.float32
        np.testing.assert_array_equal(RECORDS.uncertainty[name], values)


def test_the_grid_of_40_temperatures_gives_the_softmax_at_each():
    np.testing.assert_allclose(TEMPERATURES[:24], np.geomspace(0.25, 8.0, 24))
    np.testing.assert_allclose(np.sort(TEMPERATURES)[::39], [1 / 64, 128])
    relative = LOGITS - LOGITS.max(axis=1, keepdims=True)
    for column, temperature in enumerate(TEMPERATURES):
        expected = logsumexp(relative / temperature, axis=1)
        np.testing.assert_allclose(RECORDS.log_sum_exp[:, column], expected, rtol=1e-5, atol=1e-15)
        log_p = RECORDS.label_logit / temperature - RECORDS.log_sum_exp[:, column]
        exact = log_softmax(LOGITS / temperature, axis=1)[np.arange(300), LABELS]
        np.testing.assert_allclose(log_p, exact, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(RECORDS.top_logits, -np.sort(-relative, axis=1), rtol=1e-6)


def test_probabilities_enter_as_their_logarithms_and_measures_made_elsewhere_as_they_are():
    log_p, keys = log_softmax(LOGITS, axis=1), RECORDS.tie_key
    again = build_records(log_p, LABELS, tie_keys=keys, top_k=(1, 5))
    for name, array in RECORDS.to_arrays().items():
        np.testing.assert_allclose(again.to_arrays()[name], array, rtol=1e-5, atol=1e-12)
    own = {"entropy": np.linspace(0, 1, 300).astype(np.float32)}
    np.testing.assert_equal(records_of(LOGITS, LABELS, uncertainty=own).uncertainty, own)


@given(logit_blocks(), st.data())
def test_a_record_depends_on_its_own_sample_alone(logits, data):
    n, n_classes = logits.shape
    labels = np.array(data.draw(st.lists(st.integers(0, n_classes - 1), min_size=n, max_size=n)))
    whole = records_of(logits, labels, top_k=(1,))
    rows = [records_of(logits[i : i + 1], labels[i : i + 1], top_k=(1,)) for i in range(n)]
    np.testing.assert_equal(concatenate(rows).to_arrays(), whole.to_arrays())


def test_the_size_of_a_block_does_not_show():
    logits, labels = RNG.normal(scale=10, size=(250, 10_000)), RNG.integers(0, 10_000, size=250)
    whole, part = records_of(logits, labels), records_of(logits[200:], labels[200:])
    np.testing.assert_equal(whole.take(np.arange(200, 250)).to_arrays(), part.to_arrays())


@pytest.mark.process
def test_memory_beyond_the_logits_does_not_grow_with_them():
    """The checks of the whole array are its booleans, an eighth of it; a record has 400 bytes."""
    logits, zeros = RNG.normal(size=(10_000, 1000)), np.zeros(10_000, dtype=np.uint32)

    def build(n):
        build_records(logits[:n], zeros[:n].astype(int), tie_keys=zeros[:n], top_k=(1, 5))

    half, whole = (peak_of(partial(build, n)) for n in (5000, 10_000))
    assert whole - half < 0.25 * logits[5000:].nbytes
    log_p, _ = sample_strategies.drawn_passes(500, 20, 500)
    half, whole = (peak_of(partial(covariance_norm, log_p[:n])) for n in (250, 500))
    assert whole < 1.1 * half + 100_000, "the spread of passes takes eight bytes a sample"


def test_ruled_out_and_impossible_classes_leave_no_nan():
    logits = np.array([[0.0, -np.inf, -np.inf], [1e308, -1e308, 0.0], [1e39, 0.0, -1e39]])
    records = records_of(logits, np.array([1, 1, 2]), top_k=(1, 2))
    assert records.label_log_probability.tolist()[:1] == [-np.inf]
    assert records.top_log_odds[0].tolist() == [np.inf]
    assert all((values == 0).all() for values in records.uncertainty.values())
    assert not any(np.signbit(values).any() for values in records.uncertainty.values())


@pytest.mark.parametrize(("change", "rule"), [
    ({"labels": np.full(300, 12)}, "row 0 holds 12"), ({"top_k": (12,)}, r"top_k must .* not 12"),
    ({"tie_keys": np.zeros(3, dtype=np.uint32)}, "tie_keys must have shape"),
    ({"tie_keys": np.zeros(300, dtype=np.int64)}, "tie_key must be uint32"),
    ({"uncertainty": {"entropy": np.zeros(4)}}, r"entropy must have shape \(300,\)"),
    ({"scores": np.full((300, 12), np.nan)}, "logits must be finite: row 0"),
])  # fmt: skip
def test_bad_input_is_refused_by_name(change, rule):
    arguments = {"scores": LOGITS, "labels": LABELS, "top_k": (1, 5)}
    arguments |= {"tie_keys": np.zeros(300, dtype=np.uint32)} | change
    with pytest.raises(ValueError, match=rule):
        build_records(arguments.pop("scores"), arguments.pop("labels"), **arguments)


MEANS = ("mean_label_rank", "mean_log_probability")


@pytest.mark.parametrize("threshold", [None, 0.3])
def test_a_sample_of_none_of_the_classes_changes_no_other_record(threshold):
    logits = LOGITS if threshold is None else LOGITS[:, :2]
    labels, log_p = LABELS % logits.shape[1], log_softmax(logits, axis=1)
    options = {"top_k": (1,), "threshold": threshold}
    is_none = RNG.random(300) < 0.2
    mixed = records_of(logits, np.where(is_none, -1, labels), **options)
    whole = records_of(logits, labels, **options)
    np.testing.assert_equal(mixed.take(~is_none).to_arrays(), whole.take(~is_none).to_arrays())
    of_label = {"label", "label_rank", "label_log_probability", "label_logit"}
    for name in whole.to_arrays().keys() - of_label:
        np.testing.assert_array_equal(mixed.to_arrays()[name], whole.to_arrays()[name])
    none = mixed.take(is_none)
    assert set(none.label_rank.tolist()) == {logits.shape[1]}
    assert (none.label_log_probability == -np.inf).all()
    assert (none.label_logit == -np.inf).all()
    scores = model_scores(mixed, top_k=(1,))
    hits = whole.hits(1) & ~is_none
    assert (scores.accuracy[1], scores.nll) == (hits.mean(), None)
    one_hot = np.where(is_none[:, None], 0, np.eye(logits.shape[1])[labels])
    squares = np.square(np.exp(log_p) - one_hot).sum(axis=1) + is_none
    assert scores.brier_multiclass == pytest.approx(squares.mean())
    passes = np.log(RNG.dirichlet(np.ones(logits.shape[1]), (300, 3)))
    columns = [averaged_columns("m", passes, one) for one in (mixed.label, whole.label)]
    ranks, log_ps = ([getattr(one, name)["m@3"] for one in columns] for name in MEANS)
    assert set(ranks[0][is_none].tolist()) == {logits.shape[1]}
    for with_none, without in (ranks, log_ps):
        np.testing.assert_array_equal(with_none[~is_none], without[~is_none])
    assert (log_ps[0][is_none] == -np.inf).all()

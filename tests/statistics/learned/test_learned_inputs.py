"""Inputs of the learned measure: of scores, as the head computes them, and of records."""

import numpy as np
import pytest
from sample_strategies import records_of

from howsure.statistics.arrays import as_scores
from howsure.statistics.fit.event_samples import EventSamples
from howsure.statistics.learned.inputs import (
    LEAST,
    LEAST_SCALED,
    input_columns,
    is_input,
    parse_rest,
    ranked_inputs,
)
from howsure.statistics.learned.recorded import recorded_inputs
from howsure.statistics.records.build import score_uncertainty
from howsure.statistics.records.records import TEMPERATURES
from howsure.statistics.softmax import rank_scores

N_CLASSES = 8


def logits(scale):
    found = np.random.default_rng(4).normal(size=(500, N_CLASSES)) * scale
    found[::7, 3] = -np.inf
    return found


@pytest.mark.parametrize("k", [1, 3])
@pytest.mark.parametrize("scale", [0.3, 3.0, 60.0], ids=["flat", "usual", "saturated"])
@pytest.mark.parametrize("temperature", [0, len(TEMPERATURES) - 1])
def test_records_know_what_the_head_computes(scale, k, temperature):
    """To the last bits of float32, in which records are stored.

    Beyond k > 1 classes, records know the mass at a temperature only from a difference of numbers
    near 1: the ratios differ by a few times 2^-23, whatever their size.
    """
    scores, columns = logits(scale), input_columns(k, temperature)
    ranked = rank_scores(as_scores(scores), n_top=max(k, 2))
    found = ranked_inputs(ranked, columns, score_uncertainty(scores, top_k=(k,)))
    head = np.column_stack([found[name] for name in columns]).astype(np.float64)
    records = records_of(scores, np.argmax(scores, axis=1), top_k=(k,))
    recorded = recorded_inputs(EventSamples(records, k), temperature)
    if k > 1:
        ratios = np.exp(head[:, 0]), np.exp(recorded[:, 0])
        np.testing.assert_allclose(*ratios, rtol=1e-6, atol=4 * 2.0**-23)
        head, recorded = head[:, 1:], recorded[:, 1:]
    np.testing.assert_allclose(head, recorded, rtol=1e-6, atol=1e-6)


def test_logarithms_of_the_ratios_by_hand():
    """p = (.6, .3, .1): for Top-2 the rest is .1 of .9; at T, the powers p^(1/T)."""
    p = np.array([[0.1, 0.6, 0.3]])
    columns = (*input_columns(2, 3), "log_rest_1")
    ranked = rank_scores(as_scores(np.log(p)), n_top=2)
    measured = {"entropy": np.array([-(p * np.log(p)).sum()], dtype=np.float32)}
    found = ranked_inputs(ranked, columns, measured)
    scaled = np.array([0.6, 0.3, 0.1]) ** (1 / TEMPERATURES[3])
    assert found["log_rest_2"] == pytest.approx(np.log(0.1 / 0.9))
    assert found["log_rest_1"] == pytest.approx(np.log(0.4 / 0.6))
    assert found["log_rest_2_at_3"] == pytest.approx(np.log(scaled[2] / scaled[:2].sum()))
    assert found["log_second"] == pytest.approx(np.log(0.5))
    assert found["log_entropy"] == pytest.approx(np.log(measured["entropy"]))


def test_a_mass_of_zero_has_a_finite_logarithm():
    certain = np.array([[0.0, -np.inf, -np.inf, -np.inf]])
    columns = (*input_columns(1, 0), *input_columns(2, 0))
    ranked = rank_scores(as_scores(certain), n_top=2)
    found = ranked_inputs(ranked, columns, score_uncertainty(certain, top_k=(1, 2)))
    for name in ("log_rest_1", "log_rest_1_at_0", "log_rest_2", "log_entropy", "log_second"):
        assert found[name] == pytest.approx(np.log(LEAST))
    assert found["log_rest_2_at_0"] == pytest.approx(np.log(LEAST_SCALED))


def test_names():
    names = ("log_rest_5", "log_rest_5_at_12", "log_rest_5_at_", "log_second", "entropy")
    assert [parse_rest(name) for name in names] == [(5, None), (5, 12), None, None, None]
    assert [is_input(name) for name in names] == [True, True, False, True, False]

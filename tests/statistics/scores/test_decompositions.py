"""Parts of Brier score and negative log-likelihood (Oberman et al., 5.1), and odds ratios."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sample_strategies import judged_by_table
from scipy.stats import entropy

from howsure.statistics.scores import SCORES, Predictions
from howsure.statistics.scores.information import eor
from howsure.statistics.scores.proper import binary_divergence, binary_entropy, nll

DECOMPOSED = pytest.mark.parametrize("name", ["brier", "nll"])


def value(name, judged):
    return SCORES[name].compute(judged)


@DECOMPOSED
@given(judged=judged_by_table(lookups=("step",)))
def test_is_exact_on_binned_probabilities(name, judged):
    parts = value(f"{name}_uncertainty", judged) - value(f"{name}_resolution", judged)
    parts += value(f"{name}_calibration_error", judged)
    assert value(name, judged) == pytest.approx(parts, abs=1e-12)


@given(judged=judged_by_table())
def test_no_part_is_negative_and_the_drop_in_entropy_is_the_resolution(judged):
    for name in ("brier", "nll"):
        for part in ("uncertainty", "resolution", "calibration_error"):
            assert value(f"{name}_{part}", judged) >= -1e-15
    drop = value("nll_uncertainty", judged) / np.log(2.0) - value("conditional_entropy", judged)
    assert drop == pytest.approx(value("nll_resolution", judged) / np.log(2.0), abs=1e-12)


@given(st.floats(0.0, 1.0), st.floats(0.001, 0.999))
def test_entropy_and_divergence_agree_with_scipy(rate, probability):
    assert binary_entropy(rate) == pytest.approx(entropy([rate, 1.0 - rate]), abs=1e-12)
    expected = entropy([rate, 1.0 - rate], [probability, 1.0 - probability])
    assert binary_divergence(np.array(rate), probability) == pytest.approx(expected, abs=1e-12)


def test_nll_is_undefined_where_it_is_infinite_and_clipped_where_told():
    sure = {"uncertainty": np.zeros(2), "hits": np.array([True, False]), "probability": np.ones(2)}
    assert nll(Predictions(**sure)) is None
    expected = -(np.log(0.75) + np.log(0.25)) / 2.0
    assert nll(Predictions(**sure, log_floor=0.25)) == pytest.approx(expected, rel=1e-14)


@given(judged_by_table())
def test_odds_ratio_of_a_table_is_weighed_by_what_it_was_fitted_on(judged):
    table = judged.table
    odds = table.probability / (1.0 - table.probability)
    base = table.prior.accuracy / (1.0 - table.prior.accuracy)
    expected = sum(
        count / table.n_samples * max(o / base, base / o)
        for count, o in zip(table.counts.tolist(), odds.tolist(), strict=True)
    )
    assert eor(judged) == pytest.approx(expected, rel=1e-9)

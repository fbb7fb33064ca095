"""Operating points: their effect on labelled samples, and expected volumes."""

import numpy as np
from hypothesis import example, given
from hypothesis import strategies as st
from sample_strategies import judged_uncertainties
from scipy.stats import binomtest

from howsure.statistics.operating_point import (
    ThresholdChoice,
    choose_threshold,
    consequences,
    expected_volume,
)
from howsure.statistics.ranking import merge_underflow, ranking_of


@given(judged_uncertainties(), st.floats(-1, 9, width=32))
def test_counts_and_intervals_are_those_of_a_second_implementation(found, threshold):
    uncertainty, hits = found
    seen = consequences(uncertainty, hits, threshold, level=0.9)
    accepted = [hit for u, hit in zip(uncertainty.tolist(), hits, strict=True) if u <= threshold]
    assert (seen.n_samples, seen.n_accepted) == (len(uncertainty), len(accepted))
    assert seen.n_errors == len(accepted) - sum(accepted)
    assert seen.coverage == len(accepted) / len(uncertainty)
    share = binomtest(len(accepted), len(uncertainty)).proportion_ci(0.9)
    np.testing.assert_allclose(seen.coverage_interval, share, atol=1e-9)
    if not accepted:
        assert seen.risk is seen.risk_interval is None
        return
    assert seen.risk == seen.n_errors / len(accepted)
    errors = binomtest(seen.n_errors, len(accepted)).proportion_ci(0.9)
    np.testing.assert_allclose(seen.risk_interval, errors, atol=1e-9)


@given(judged_uncertainties(), st.floats(0.01, 1.0))
@example((np.float32([0, 1e-40]), np.array([True, True])), 0.5)
def test_a_coverage_is_reached_and_no_smaller_threshold_reaches_it(found, coverage):
    uncertainty, hits = found
    choice = ThresholdChoice(coverage=coverage)
    threshold = choose_threshold(choice, ranking_of(uncertainty, hits), level=0.9).threshold
    assert consequences(uncertainty, hits, threshold, level=0.9).coverage >= coverage - 1e-6
    # Values that some devices flush to zero are told apart nowhere.
    values = merge_underflow(uncertainty)
    smaller = np.unique(values[values <= np.float32(threshold)])[:-1]
    if smaller.size:
        assert np.mean(values <= smaller[-1]) < coverage


EVENLY = np.arange(1000, dtype=np.float32)
ONE_WRONG_IN_25 = EVENLY % 25 != 7  # one in twenty-five is wrong


def test_it_is_the_volume_times_the_shares_and_their_exact_intervals():
    seen = consequences(EVENLY, ONE_WRONG_IN_25, 799.0, level=0.95)
    found = expected_volume(seen, 10_000)
    assert (found.volume, found.accepted, found.errors, found.reviewed) == (10_000, 8000, 320, 2000)
    for interval, part in ((found.accepted_interval, 800), (found.errors_interval, 32)):
        share = np.array(binomtest(part, 1000).proportion_ci(0.95))
        np.testing.assert_allclose(interval, 10_000 * share, rtol=1e-6)
    nothing = expected_volume(consequences(EVENLY, ONE_WRONG_IN_25, -1.0, level=0.95), 7)
    assert (nothing.accepted, nothing.errors, nothing.reviewed) == (0, 0, 7)


def test_errors_by_which_a_threshold_was_chosen_do_not_say_how_many_to_expect():
    """The bound that was tested does, and better the evaluation set, which had no part in it."""
    choice, known = ThresholdChoice(max_risk=0.05), ranking_of(EVENLY, EVENLY > 5)
    tested, judged = (
        choose_threshold(choice, known, level=0.95, volume=10_000, evaluation=evaluation)
        for evaluation in (None, ranking_of(EVENLY, ONE_WRONG_IN_25))
    )
    assert tested.consequences.coverage == 1.0
    low = binomtest(6, 1000).proportion_ci(0.95).low
    np.testing.assert_allclose(tested.expected.errors_interval, (10_000 * low, 500), rtol=1e-6)
    ends = 10_000 * np.array(binomtest(40, 1000).proportion_ci(0.95))
    np.testing.assert_allclose(judged.expected.errors_interval, ends, rtol=1e-6)
    assert judged.expected.errors == 400

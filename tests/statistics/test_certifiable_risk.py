import numpy as np
import pytest
from core_strategies import judged_uncertainties
from hypothesis import given
from hypothesis import strategies as st

from howsure.statistics.ranking import ranking_of
from howsure.statistics.selective import STEPS, SelectiveTarget, certifiable_risk, fit_selective


def accepted(uncertainty, hits, step, delta):
    return fit_selective(
        ranking_of(uncertainty, hits), SelectiveTarget(step / STEPS, delta)
    ).n_accepted


@given(judged_uncertainties(), st.sampled_from([0.05, 0.5]), st.data())
def test_it_accepts_as_much_and_a_hundredth_less_does_not(sample, delta, data):
    uncertainty, hits = sample
    wanted = data.draw(st.integers(1, len(hits)))
    found = certifiable_risk(ranking_of(uncertainty, hits), wanted, delta=delta)
    if found is None:
        assert accepted(uncertainty, hits, STEPS - 1, delta) < wanted
        return
    step = round(found * STEPS)
    assert accepted(uncertainty, hits, step, delta) >= wanted
    assert step == 1 or accepted(uncertainty, hits, step - 1, delta) < wanted


def test_of_what_a_risk_accepts_it_is_no_larger_than_that_risk():
    """Going from a rate to a share and back leads to where one was, or to less."""
    rng = np.random.default_rng(3)
    uncertainty = rng.random(2000, dtype=np.float32)
    hits = rng.random(2000) > 0.3 * uncertainty
    for max_risk in (0.09, 0.12, 0.16):
        there = fit_selective(ranking_of(uncertainty, hits), SelectiveTarget(max_risk, 0.05))
        back = certifiable_risk(ranking_of(uncertainty, hits), there.n_accepted, delta=0.05)
        assert there.n_accepted > 0
        assert 0.9 * max_risk < back <= max_risk


def test_where_nothing_is_ever_right_no_rate_is_kept_to():
    uncertainty = np.arange(50, dtype=np.float32)
    assert (
        certifiable_risk(ranking_of(uncertainty, np.zeros(50, dtype=bool)), 50, delta=0.05) is None
    )


def test_a_probability_is_one():
    with pytest.raises(ValueError, match="delta"):
        certifiable_risk(ranking_of(np.ones(3, np.float32), np.ones(3, bool)), 1, delta=1.5)

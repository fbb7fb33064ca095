"""Selective prediction: the procedure, the smallest certifiable risk, and simulated samples."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sample_strategies import calibrated, judged_uncertainties
from scipy.special import log_softmax
from scipy.stats import binom

from howsure.statistics import selective
from howsure.statistics.bins.edges import UNDERFLOW
from howsure.statistics.ranking import ranking_of
from howsure.statistics.selective import (
    STEPS,
    SelectiveTarget,
    certifiable_risk,
    fit_selective,
    risk_p_values,
)

EASY = SelectiveTarget(0.5, 0.5)  # four samples without an error pass


def by_the_book(uncertainty, hits, target):
    """Fixed-sequence testing written out, one start and one rank after the other."""
    uncertainty = np.where(np.abs(uncertainty) < UNDERFLOW, UNDERFLOW, uncertainty)
    values = np.sort(uncertainty)
    least = next(m for m in range(1, 10_000) if (1.0 - target.max_risk) ** m <= target.delta / 5)
    n_samples, best = len(values), None
    if n_samples < least:
        return None
    starts = [round(least * (n_samples / least) ** (i / 4)) for i in range(5)]
    grid = {round(least + i * (n_samples - least) / 199) for i in range(200)} | set(starts)
    for start in starts:
        for rank in sorted(rank for rank in grid if rank >= start):
            accepted = uncertainty <= values[rank - 1]
            count, errors = int(accepted.sum()), int((accepted & ~hits).sum())
            if binom.cdf(errors, count, target.max_risk) > target.delta / 5 * (1 + 1e-9):
                break
            best = max(best or 0, count)
    return best


@given(judged_uncertainties(), st.sampled_from([EASY, SelectiveTarget(0.3, 0.8)]))
def test_largest_pass_is_that_of_the_procedure_written_out(sample, target):
    uncertainty, hits = sample
    found = fit_selective(ranking_of(uncertainty, hits), target)
    expected = by_the_book(uncertainty, hits, target)
    if expected is None:
        assert found.threshold is found.coverage is None
        assert (found.n_accepted, found.n_errors) == (0, 0)
        assert found.labels_missing is None or found.labels_missing > 0
        return
    values = np.where(np.abs(uncertainty) < UNDERFLOW, UNDERFLOW, uncertainty)
    accepted = values <= np.float32(found.threshold)
    assert found.n_accepted == expected == accepted.sum()
    assert found.n_errors == (accepted & ~hits).sum()
    assert (found.coverage, found.labels_missing) == (expected / len(hits), None)


@given(st.integers(1, 500), st.data(), st.floats(0.001, 0.999))
def test_p_values_are_those_of_scipy(count, data, max_risk):
    errors = data.draw(st.integers(0, count))

    found = risk_p_values(np.array([errors]), np.array([count]), max_risk)
    assert found[0] == pytest.approx(binom.cdf(errors, count, max_risk), rel=1e-9, abs=1e-300)


def in_order(hits, target):
    """The result where uncertainties ascend in the order of the hits."""
    return fit_selective(ranking_of(np.arange(len(hits), dtype=np.float32), hits), target)


@pytest.mark.parametrize(("max_risk", "least"), [(0.05, 90), (0.01, 459)])
def test_so_many_right_answers_are_needed_and_enough(max_risk, least):
    target = SelectiveTarget(max_risk, 0.05)
    enough, one_less = (in_order(np.ones(n, dtype=bool), target) for n in (least, least - 1))
    assert target.least_rank == least
    assert (enough.coverage, enough.threshold) == (1.0, least - 1.0)
    assert (one_less.threshold, one_less.labels_missing) == (None, 1)


def test_labels_missing_are_about_what_is_needed():
    """One error in a hundred, everywhere: passes at 5 % once there are enough samples."""
    target = SelectiveTarget(0.02, 0.05)
    missing = in_order(np.arange(400) % 100 != 50, target).labels_missing
    for growth, passes in ((0.8, False), (1.3, True)):
        found = in_order(np.arange(int((400 + missing) * growth)) % 100 != 50, target)
        assert (found.threshold is not None) == passes


def of_block(n_samples, *, wrong):
    """A tenth of the samples have the least value; a fifth of all others are wrong."""
    n_block = n_samples // 10
    hits = np.arange(n_samples) % 5 > 0
    hits[:n_block] = np.arange(n_block) >= round(wrong * n_block)
    values = np.r_[np.zeros(n_block), np.linspace(1, 2, n_samples - n_block)]
    return fit_selective(ranking_of(values.astype(np.float32), hits), SelectiveTarget(0.1))


def test_a_block_of_equal_values_grows_with_the_set():
    """As stated confidences have: the first start means the whole block, however large it is."""
    missing = of_block(1500, wrong=0.06).labels_missing
    for growth, passes in ((0.8, False), (1.2, True)):
        found = of_block(int((1500 + missing) * growth), wrong=0.06)
        assert (found.threshold is not None) == passes
    assert of_block(1500, wrong=0.11).labels_missing is None


def test_a_small_share_of_a_large_set_can_pass():
    """A tenth of the samples has an error in fifty, the others one in five."""
    hits = np.arange(15_000) % 5 > 0
    hits[:1500] = np.arange(1500) % 50 > 0
    assert 0.1 < in_order(hits, SelectiveTarget(0.05)).coverage < 0.2


def test_luck_among_the_first_samples_promises_nothing():
    """Twelve right answers, then an error in eight, everywhere: 10 % is never proven."""
    for n_samples in (600, 3000, 12_000):
        hits = (np.arange(n_samples) % 8 > 0) | (np.arange(n_samples) < 12)
        found = in_order(hits, SelectiveTarget(0.1))
        assert (found.threshold, found.labels_missing) == (None, None)
        assert found.out_of_reach == (n_samples == 12_000)
    never = in_order(np.zeros(50, dtype=bool), EASY)
    assert (never.threshold, never.labels_missing, never.out_of_reach) == (None, None, True)


def test_few_samples_do_not_show_that_more_would_prove_nothing():
    """Four classes, right in 75 of 100; the surest fifth is wrong in 26 of 1,000."""
    target, unknown, proven = SelectiveTarget(0.05), 0, 0
    for seed in range(40):
        logits, labels = calibrated(12_000, n_classes=4, spread=2.6, seed=seed)
        hits = logits.argmax(axis=1) == labels
        values = -log_softmax(logits, axis=1).max(axis=1).astype(np.float32)
        few = fit_selective(ranking_of(values[:300], hits[:300]), target)
        assert not few.out_of_reach
        if few.threshold is None and few.labels_missing is None:
            unknown += 1
            more = fit_selective(ranking_of(values, hits), target)
            proven += more.threshold is not None
    assert unknown == proven > 3


@pytest.mark.parametrize("value", [0.0, 1.0, np.nan])
@pytest.mark.parametrize("name", ["max_risk", "delta"])
def test_targets_out_of_range_are_refused(name, value):
    with pytest.raises(ValueError, match=f"{name} must"):
        SelectiveTarget(**{"max_risk": 0.05, name: value})
    with pytest.raises(ValueError, match="delta"):
        certifiable_risk(ranking_of(np.ones(3, np.float32), np.ones(3, bool)), 1, delta=1.5)


@given(judged_uncertainties(), st.sampled_from([0.05, 0.5]), st.data())
def test_it_accepts_as_much_and_a_hundredth_less_does_not(sample, delta, data):
    ranked = ranking_of(*sample)
    wanted = data.draw(st.integers(1, ranked.n_samples))

    def accepts(step):
        found = fit_selective(ranked, SelectiveTarget(step / STEPS, delta))
        return found.n_accepted >= wanted

    found = certifiable_risk(ranked, wanted, delta=delta)
    step = STEPS if found is None else round(found * STEPS)
    assert found is None or accepts(step)
    assert step == 1 or not accepts(step - 1)


# The true risk of simulated samples is known at every threshold: U is uniform on [0, 1] and an
# answer is wrong with probability a + b U^3, so the risk of what is accepted up to t is
# a + b t^3 / 4.
RUNS = 1000
DELTA = 0.05


@given(errors=st.integers(0, 40), hits=st.integers(1, 400), max_risk=st.floats(0.001, 0.9))
def test_the_bound_is_below_a_risk_exactly_if_its_test_passes(errors, hits, max_risk):
    counts = np.array([errors + hits])
    passes = risk_p_values(np.array([errors]), counts, max_risk) <= DELTA / 5
    assert passes == (selective.tested_bound(np.array([errors]), counts, DELTA) <= max_risk)


@pytest.mark.parametrize(("n_samples", "floor", "slope", "max_risk", "n_values"), [
    (1000, 0.0501, 0.0, 0.05, None),  # every threshold breaks the bound, hardly
    (600, 0.0101, 0.0, 0.01, None),
    (1000, 0.0, 0.32, 0.05, None),  # the risk crosses the bound inside
    (600, 0.0, 0.32, 0.05, 10),  # ties; the truth is that of the right end of each block
])  # fmt: skip
def test_guarantee_is_violated_no_more_often_than_promised(
    n_samples, floor, slope, max_risk, n_values
):
    rng, target, violations = np.random.default_rng(2024), SelectiveTarget(max_risk, DELTA), 0
    ends = None if n_values is None else np.arange(1, n_values + 1) / n_values
    for _ in range(RUNS):
        uncertainty = rng.random(n_samples)
        if n_values is not None:
            uncertainty = ends[(uncertainty * n_values).astype(int)]
        hits = rng.random(n_samples) >= floor + slope * uncertainty**3
        ranked = ranking_of(uncertainty.astype(np.float32), hits)
        threshold = fit_selective(ranked, target).threshold
        if threshold is None:
            continue
        risk = floor + slope * min(threshold, 1.0) ** 3 / 4.0
        if n_values is not None:
            risk = floor + slope * np.mean(ends[ends <= threshold + 1e-6] ** 3)
        violations += risk > max_risk
    assert violations / RUNS <= DELTA + 3.0 * np.sqrt(DELTA * (1.0 - DELTA) / RUNS)

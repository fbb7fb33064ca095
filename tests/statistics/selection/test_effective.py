"""Samples of groups: what they are worth for a share, and tests and intervals that count them."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import betainc, betaincinv
from scipy.stats import norm, t

from howsure.statistics.accepted import count_accepted
from howsure.statistics.bins.design import ALIKE, SampleDesign
from howsure.statistics.bins.intervals import proportion_interval
from howsure.statistics.coarse import fit_coarse_table
from howsure.statistics.diagnostics.curves import fit_curves
from howsure.statistics.effective import effective_share, sums_by_set, sums_of_first
from howsure.statistics.operating_point import consequences
from howsure.statistics.ranking import ranking_of
from howsure.statistics.selective import SelectiveTarget, fit_selective, risk_p_values


@st.composite
def grouped_events(draw):
    codes = draw(st.lists(st.integers(0, 6), min_size=1, max_size=40))
    events = draw(st.lists(st.booleans(), min_size=len(codes), max_size=len(codes)))
    return np.array(events), np.array(codes)


def intraclass_correlation(cells, events):
    """The analysis of variance."""
    sizes = np.bincount(cells)
    means = np.bincount(cells, events) / sizes
    between = sizes @ (means - events.mean()) ** 2
    within = ((events - means[cells]) ** 2).sum()
    n, n_groups = len(cells), len(sizes)
    if n_groups == 1:
        return 1.0
    between, within = between / (n_groups - 1), within / max(n - n_groups, 1)
    typical = (n - (sizes**2).sum() / n) / (n_groups - 1)
    spread = between + (typical - 1) * within
    return np.clip((between - within) / spread, 0, 1) if spread > 1e-12 else 1.0


def by_the_book(events, codes, weights=None):
    """The definition."""
    n = len(events)
    weights = np.ones(n) if weights is None else weights
    share, squares = weights @ events / weights.sum(), weights @ weights
    variance, n_groups = squares, n
    if codes is not None:
        _, cells = np.unique(codes, return_inverse=True)
        sizes, wrong = np.bincount(cells), np.bincount(cells, events)
        seen = min(np.count_nonzero(wrong), np.count_nonzero(sizes - wrong))
        rho = intraclass_correlation(cells, events)
        rho = (seen * rho + 1) / (seen + 1)
        variance = (1 - rho) * squares + rho * (np.bincount(cells, weights) ** 2).sum()
        n_groups = len(sizes)
    if 0 < share < 1:
        own = weights**2 @ (events - share) ** 2 / (share * (1 - share))
        variance *= max(1, own / squares)
    return share, min(n, weights.sum() ** 2 / variance), n_groups


@given(grouped_events(), st.data())
def test_the_first_samples_are_worth_what_the_definition_says(sample, data):
    events, codes = sample
    groups = codes if data.draw(st.booleans()) else None
    weights = data.draw(st.lists(st.floats(0.1, 9), min_size=len(codes), max_size=len(codes)))
    weights = np.array(weights) if data.draw(st.booleans()) else None
    count, design = data.draw(st.integers(1, len(codes))), SampleDesign(weights, groups)
    first = design.take(slice(count))
    expected = by_the_book(events[:count], first.group, first.weight)
    of_first = sums_of_first(events, design).at(np.array([count - 1]))
    is_later = (np.arange(len(codes)) >= count).astype(int)
    for sums in (of_first, sums_by_set(is_later, events, 2, design).at(np.array([0]))):
        found = sums.shares[0], sums.sizes[0], sums.groups[0]
        assert found == pytest.approx(expected)
    if design.is_plain:
        return
    ours = effective_share(events[:count], first)
    assert (ours.share, ours.n_effective, ours.n_groups) == pytest.approx(expected)
    assert ours.weighted == (weights is not None)
    flipped = effective_share(~events[:count], first)
    assert flipped.n_effective == pytest.approx(ours.n_effective), "hits or errors"


def grouped(events, codes):
    return effective_share(events, SampleDesign(group=codes))


def test_repeated_samples_are_worth_little_more_than_one_each():
    rng = np.random.default_rng(1)
    events, codes = rng.random(300) < 0.3, np.arange(300)
    repeated = grouped(np.repeat(events, 7), np.repeat(codes, 7))
    assert repeated.n_effective == pytest.approx(300, rel=0.01)
    single = grouped(events, codes)
    assert single.n_effective == pytest.approx(300)
    expected = 300 * (norm.ppf(0.975) / t.ppf(0.975, 299)) ** 2
    assert single.in_tail(0.025) == pytest.approx(expected)


def test_nothing_is_known_of_one_group_or_without_events_or_groups():
    assert grouped(np.arange(50) % 3 == 0, np.zeros(50, np.int64)).n_effective == pytest.approx(1)
    assert grouped(np.zeros(0, np.bool_), np.zeros(0, np.int64)) is None
    assert effective_share(np.ones(3, np.bool_), ALIKE) is None


def clustered(rng, *, n_groups, sizes, rate, rho):
    """Events whose rate varies between groups, by a beta distribution; and their groups."""
    sizes = rng.choice(sizes, n_groups)
    groups = np.repeat(np.arange(n_groups), sizes)
    rates = np.full(n_groups, rate)
    if rho:
        rates = rng.beta(rate * (1 - rho) / rho, (1 - rate) * (1 - rho) / rho, n_groups)
    return rng.random(groups.size) < rates[groups], SampleDesign(group=groups)


def class_balanced(rng, *, shares, rates, each):
    """Events in a set with equally many samples of each class, weighted by shares of classes."""
    classes = np.repeat(np.arange(len(shares)), each)
    design = SampleDesign(np.asarray(shares)[classes] * len(shares))
    return rng.random(classes.size) < np.asarray(rates)[classes], design


TRIALS = 400


def judged(sample, rate):
    """How often a test at level 5 % passes wrongly, with and without the design; and coverage."""
    outcomes = []
    for _ in range(TRIALS):
        events, design = sample()
        found, n, n_events = effective_share(events, design), events.size, int(events.sum())
        errors = np.array([found.share, n_events / n])
        sizes = np.array([found.in_tail(0.05), n])
        lower, upper = proportion_interval(n_events, n, 0.95, found)
        passed = risk_p_values(errors * sizes, sizes, rate) <= 0.05
        outcomes.append([*passed, lower <= rate <= upper])
    return np.mean(outcomes, axis=0)


ERROR = 3 * np.sqrt(0.05 * 0.95 / TRIALS)  # three standard errors at the nominal level


@pytest.mark.parametrize(("n_groups", "sizes"), [(30, (20,)), (50, (2, 50)), (200, (5,))])
@pytest.mark.parametrize(
    ("rate", "rho"), [(0.02, 0.4), (0.2, 0.0), pytest.param(0.05, 0.17, marks=pytest.mark.slow)]
)
def test_tests_and_intervals_hold_where_errors_come_together(n_groups, sizes, rate, rho):
    rng = np.random.default_rng(7)
    world = {"n_groups": n_groups, "sizes": sizes, "rate": rate, "rho": rho}
    passed, as_one, covered = judged(lambda: clustered(rng, **world), rate)
    assert passed <= 0.05 + ERROR
    assert covered >= 0.95 - ERROR
    if rho == 0.4:
        assert as_one > 0.1, "each sample counted as one would claim too much"


@pytest.mark.parametrize("each", [150, 1000])
@pytest.mark.parametrize(("shares", "rates"), [
    ((0.9, 0.1), (0.02, 0.2)), ((0.6, 0.3, 0.1), (0.15, 0.01, 0.05)), ((0.02, 0.98), (0.15, 0.01)),
    ((0.6, 0.3, 0.1), (0.05, 0.05, 0.05)),
])  # fmt: skip
def test_tests_and_intervals_are_of_the_weighted_share(shares, rates, each):
    rng, world = np.random.default_rng(8), {"shares": shares, "rates": rates, "each": each}
    passed, _, covered = judged(lambda: class_balanced(rng, **world), np.dot(shares, rates))
    assert passed <= 0.05 + ERROR
    assert covered >= 0.95 - ERROR


def judged_groups(seed=3, n_groups=80, size=12):
    rng = np.random.default_rng(seed)
    groups = np.repeat(np.arange(n_groups), size)
    scores = rng.normal(2.5, 1.2, groups.size)
    logits = scores + rng.normal(0, 1.5, n_groups)[groups]
    hits = rng.random(groups.size) < 1 / (1 + np.exp(-logits))
    return (-scores).astype(np.float32), hits, groups


@pytest.mark.parametrize(
    ("kind", "max_risk"), [("groups", 0.2), ("weights", 0.17), ("both", 0.2), ("both", 0.22)]
)
def test_a_threshold_of_groups_is_by_the_book(kind, max_risk):
    uncertainty, hits, groups = judged_groups()
    weights = None if kind == "groups" else np.where(hits, 1.0, 1.1)
    design = SampleDesign(weights, None if kind == "weights" else groups)
    target = SelectiveTarget(max_risk, 0.05)
    found = fit_selective(ranking_of(uncertainty, hits, design), target)
    order = np.argsort(uncertainty)
    wrong, n, design = ~hits[order], hits.size, design.take(order)
    starts = np.rint(np.geomspace(target.least_rank, n, 5)).astype(int)
    ranks = np.union1d(np.rint(np.linspace(target.least_rank, n, 200)).astype(int), starts)
    best = 0
    for start in starts:
        for rank in ranks[ranks >= start]:
            first = design.take(slice(rank))
            share, worth, n_groups = by_the_book(wrong[:rank], first.group, first.weight)
            worth *= (norm.ppf(0.99) / t.ppf(0.99, n_groups - 1)) ** 2
            if betainc(worth * (1 - share), worth * share + 1, 1 - max_risk) > 0.01:
                break
            best = max(best, rank)
    assert found.n_accepted == best
    plain = fit_selective(ranking_of(uncertainty, hits), target)
    assert 0 < found.n_accepted <= plain.n_accepted
    first = design.take(slice(best))
    assert found.effective == effective_share(wrong[:best], first)
    share = best / n if weights is None else first.weight.sum() / design.weight.sum()
    assert found.coverage == pytest.approx(share)


def test_every_interval_of_a_share_follows_the_design():
    uncertainty, hits, groups = judged_groups()
    design = SampleDesign(np.where(np.arange(hits.size) % 3, 1.0, 2.0), groups)
    threshold = float(np.median(uncertainty))
    accepted = uncertainty <= np.float32(threshold)

    def expected(events, rows=slice(None)):
        own = design.take(rows)
        share, size, n_groups = by_the_book(events[rows], own.group, own.weight)
        size *= (norm.ppf(0.975) / t.ppf(0.975, n_groups - 1)) ** 2
        k = share * size
        return share, betaincinv(k, size - k + 1, 0.025), betaincinv(k + 1, size - k, 0.975)

    seen = consequences(uncertainty, hits, threshold, level=0.95, design=design)
    assert (seen.risk, *seen.risk_interval) == pytest.approx(expected(~hits, accepted))
    assert (seen.coverage, *seen.coverage_interval) == pytest.approx(expected(accepted))
    assert (seen.errors, *seen.errors_interval) == pytest.approx(expected(accepted & ~hits))
    counted = count_accepted(uncertainty, hits, threshold, design)
    assert (counted.effective, counted.coverage) == (seen.effective, seen.coverage)
    ranked = ranking_of(uncertainty, hits, design)
    curves = fit_curves(ranked, level=0.95)
    columns = curves.risk_coverage.risk, curves.risk_band.lower, curves.risk_band.upper
    assert [values[-1] for values in columns] == pytest.approx(expected(~hits))
    first, rest = fit_coarse_table(ranked, targets=(0.9,)).cells
    within = uncertainty <= np.float32(first.upper)
    for cell, rows in ((first, within), (rest, ~within)):
        assert (cell.probability, *cell.interval) == pytest.approx(expected(hits, rows))
        assert cell.weight == pytest.approx(np.average(rows, weights=design.weight))

"""The smooth lookup: a curve stored as knots, close to the spline that it was read from."""

import numpy as np
import pytest
from scipy.special import expit, softmax
from scipy.stats import beta, binomtest

from howsure.statistics.bins.curve import COLUMNS, MAX_KNOTS, Curve
from howsure.statistics.bins.fit import fit_bin_table
from howsure.statistics.bins.intervals import INTERVALS, IntervalOptions, binomial_interval
from howsure.statistics.bins.prior import fit_prior
from howsure.statistics.bins.smooth import LOG_ODDS, certainty, fit_curve
from howsure.statistics.calibrators.spline import LAPSES, fit_spline, lapse_evidence

MEASURES = ("learned", "neg_log_topk_mass", "entropy", "margin", "energy")


def drawn(n_samples, *, measure="neg_log_topk_mass", seed=0):
    """Uncertainties of an overconfident model and its hits."""
    rng = np.random.default_rng(seed)
    log_odds = rng.normal(2.5, 2.5, n_samples)
    hits = rng.random(n_samples) < expit(0.6 * log_odds - 0.2)
    positive = np.log1p(np.exp(-log_odds))
    return (-log_odds if measure in ("learned", "energy") else positive).astype(np.float32), hits


def curve_of(uncertainty, hits, *, measure="neg_log_topk_mass", simultaneous=False, **options):
    options |= {"prior": fit_prior(hits), "interval": IntervalOptions(simultaneous=simultaneous)}
    options |= {"weights": np.ones(hits.size), "least": float(uncertainty.min())}
    return fit_curve(uncertainty, hits, measure=measure, **options)


def spline_of(uncertainty, hits, measure):
    x = certainty(uncertainty, measure, uncertainty.min())
    order = np.argsort(x)
    return fit_spline(x[order], hits[order], np.ones(len(x)), prior=measure in LOG_ODDS), x


def proven(hits, place):
    """The best exact ends among the nearest 25, 51, 103, ... by rank; at least 0 and at most 1."""
    lows, highs, size = [0.0], [1.0], 25
    while size <= len(hits):
        start = min(max(place - size // 2, 0), len(hits) - size)
        nearest = int(hits[start : start + size].sum())
        low, high = binomtest(nearest, size).proportion_ci(0.95)
        lows, highs, size = [*lows, low], [*highs, high], 2 * size + 1
    return max(lows), min(highs)


# The largest second derivative of a logistic curve.
MOST_CURVED = 1.0 / (6.0 * np.sqrt(3.0))


SETS = [*((measure, 120) for measure in MEASURES), ("learned", 5000), ("entropy", 5000)]


@pytest.mark.parametrize(("measure", "n_samples"), SETS)
def test_lines_between_knots_stay_close_to_the_spline(measure, n_samples):
    """Knots are at most a 32nd of the range of x apart, and a line errs by h^2 / 8 max |q''|.

    Log-odds rise by at most 1.2 for each 1 in x where many samples leave the spline no bumps. For
    few samples, and for ``energy``, whose x are scores of ranks and jump from sample to sample, the
    error is small beside the interval.
    """
    uncertainty, hits = drawn(n_samples, measure=measure)
    curve = curve_of(uncertainty, hits, measure=measure)
    spline, x = spline_of(uncertainty, hits, measure)
    probability, lower, upper = curve.at(uncertainty)
    error = np.abs(probability - spline.probability(x))
    assert (error < (0.15 if measure == "energy" else 0.05) * (upper - lower)).all()
    if measure != "energy" and n_samples == 5000:
        assert error.max() < MOST_CURVED * 1.2**2 * (np.ptp(x) / 32.0) ** 2 / 8.0
        assert error.mean() < 2e-4
    knots = np.isin(uncertainty, curve.uncertainty.astype(np.float32))
    assert knots.sum() == len(curve.uncertainty)
    np.testing.assert_allclose(probability[knots], spline.probability(x[knots]), rtol=1e-9)
    # No outer sample is less sure than the 26th, or in a small set the one after the first eighth.
    tail = min(25, n_samples // 8)
    ends = np.sort(x)[::-1][[tail, n_samples - 1 - tail]]
    (least, _), (_, most) = zip(*spline.interval(ends, 0.95), strict=True)
    low, high = spline.interval(x[knots], 0.95)
    low = np.where(x[knots] > ends[0], np.maximum(low, least), low)
    high = np.where(x[knots] < ends[1], np.minimum(high, most), high)
    # No end is further in than what the nearest samples prove.
    order = np.argsort(uncertainty, kind="stable")
    places = np.argsort(order, kind="stable")[knots]
    least, most = np.transpose([proven(hits[order], place) for place in places])
    low, high = np.minimum(low, least), np.maximum(high, most)
    np.testing.assert_allclose(lower[knots], np.minimum(low, probability[knots]), rtol=1e-9)
    np.testing.assert_allclose(upper[knots], np.maximum(high, probability[knots]), rtol=1e-9)


@pytest.mark.parametrize("method", INTERVALS)
def test_the_method_of_the_interval_is_that_of_the_counts(method):
    """The 1,200 most certain are all hits: no lower end is above what counts of them prove."""
    uncertainty, _ = drawn(2000)
    order = np.argsort(uncertainty)
    hits = np.ones(2000, dtype=bool)
    hits[order[1200::2]] = False
    options = IntervalOptions(method, 0.9)
    prior = fit_prior(hits)
    table = fit_bin_table(
        uncertainty, hits, n_bins=1, interval=options, lookup="smooth", measure="neg_log_topk_mass"
    )
    ends = [
        binomial_interval(np.array([n]), np.array([n]), prior, options)[0][0]
        for n in (25, 51, 103, 207, 415, 831)
    ]
    assert table.look_up(uncertainty[order[:1]]).lower <= max(ends)


def test_parts_of_equal_uncertainties_have_the_rate_of_all():
    """Order among equals changes nothing, and an end proves what all of them do."""
    rng = np.random.default_rng(0)
    uncertainty = np.repeat(np.float32([0.1, 0.2, 0.3]), 400)
    hits = np.concatenate([rng.permutation(np.arange(400) < n) for n in (396, 320, 200)])
    first = curve_of(uncertainty, hits, measure="score")
    other = curve_of(uncertainty, hits.reshape(3, 400)[:, ::-1].ravel(), measure="score")
    for name in COLUMNS:
        np.testing.assert_array_equal(getattr(first, name), getattr(other, name))
    assert first.lower[0] <= binomtest(396, 400).proportion_ci(0.95).low + 0.005


@pytest.mark.parametrize(
    ("n_rare", "rare"), [(1, "misses"), (1, "hits"), (2, "misses"), (5, "hits")]
)
@pytest.mark.parametrize("measure", MEASURES)
def test_rare_outcomes_are_not_overstated(measure, n_rare, rare):
    """The mean is no nearer 1/2 than the rate, also where the curve's shape is hardly known."""
    uncertainty, _ = drawn(2000, measure=measure)
    is_rare = np.zeros(2000, dtype=bool)
    is_rare[np.argsort(-uncertainty)[np.arange(n_rare) * 40]] = True
    hits = is_rare if rare == "hits" else ~is_rare
    spline, x = spline_of(uncertainty, hits, measure)
    probability = spline.probability(x)
    of_rare = np.mean(probability if rare == "hits" else 1.0 - probability)
    # Neighbours are joined to 200 points, so single samples may differ a little.
    assert of_rare <= 1.01 * (n_rare + 1) / 2002
    common = spline_of(*drawn(2000, measure=measure), measure)[0]
    assert abs(common.shift) / 4.0 < 1e-3  # the most that a probability moves


def test_constant_beyond_the_outer_knots():
    uncertainty, hits = drawn(600)
    curve = curve_of(uncertainty, hits)
    assert curve.uncertainty[[0, -1]].tolist() == [uncertainty.min(), uncertainty.max()]
    assert 3 <= len(curve.uncertainty) <= MAX_KNOTS
    for values, name in zip(curve.at(np.float32([-1e30, 1e30])), COLUMNS[1:], strict=True):
        np.testing.assert_array_equal(values, getattr(curve, name)[[0, -1]])


def test_monotone_where_the_spline_is_not():
    """Hits that rise and fall: the falling curve keeps the mean of what it levels."""
    rng = np.random.default_rng(0)
    uncertainty = np.sort(rng.random(2000, dtype=np.float32))
    hits = rng.random(2000) < 0.5 + 0.4 * np.sin(2.0 * np.pi * uncertainty)
    free, falling = (curve_of(uncertainty, hits, monotone=flag) for flag in (False, True))
    assert np.diff(free.probability).max() > 1e-3
    for name in ("probability", "lower", "upper"):
        assert np.diff(getattr(falling, name)).max() <= 1e-12
    means = [curve.at(uncertainty)[0].mean() for curve in (free, falling)]
    assert means[0] == pytest.approx(means[1], abs=5e-3)


@pytest.mark.parametrize(("always", "expected"), [(True, 0.9995), (False, 0.0005)])
def test_one_point(always, expected):
    """1,000 of 1,000: (1000 + 1/2) / 1001, with the interval of all samples; or one uncertainty."""
    uncertainty = drawn(1000)[0]
    table = fit_bin_table(uncertainty, np.full(1000, always), n_bins=1, lookup="smooth")
    assert table.probability == pytest.approx(expected, abs=1e-6)
    found = table.look_up(uncertainty)
    assert set(found.probability) == set(table.probability)
    side = found.lower if always else 1.0 - found.upper
    assert side == pytest.approx(beta.ppf(0.025, 1000, 1))
    curve = curve_of(np.full(40, 0.5, dtype=np.float32), np.arange(40) % 4 > 0)
    assert curve.uncertainty.tolist() == [0.5]
    assert curve.probability == pytest.approx(0.75)


def test_a_simultaneous_level_is_shared_among_the_knots():
    plain, together = (curve_of(*drawn(600), simultaneous=flag) for flag in (False, True))
    assert (together.probability == plain.probability).all()
    assert (together.lower < plain.lower).all()
    assert (together.upper > plain.upper).all()


def test_samples_that_count_double_are_those_that_occur_twice():
    """At most 200 points, so that none are joined; all occur twice, so that ranks agree."""
    uncertainty, hits = drawn(90)
    x = certainty(uncertainty, "neg_log_topk_mass", 0.0)
    order = np.argsort(x)
    x, hits = x[order], hits[order]
    weighted = fit_spline(x, hits, np.full(90, 2.0), prior=True)
    repeated = fit_spline(np.repeat(x, 2), np.repeat(hits, 2), np.ones(180), prior=True)
    # The ranks of two equal samples lie a quarter of 1 / 90 to each side of their mean.
    expected = repeated.probability(x)
    moved = np.abs(np.gradient(expected, 1.0 / 90.0)).max() / 360.0
    np.testing.assert_allclose(weighted.probability(x), expected, atol=moved)
    single = fit_spline(x, hits, np.ones(90), prior=True)
    narrow, wide = (np.diff(fit.interval(x, 0.95), axis=0) for fit in (weighted, single))
    assert 0.6 < np.median(narrow / wide) < 0.85  # about the square root of a half


@pytest.mark.parametrize(("changed", "message"), [
    ({"uncertainty": [2.0, 1.0]}, "must ascend"), ({"uncertainty": [0.1, 1.0]}, "must be float32"),
    ({"probability": [0.5]}, "one value per knot"), ({"lower": [0.6, 0.1]}, "0 <= lower"),
    ({"upper": [0.9, 1.1]}, "upper <= 1"),
])  # fmt: skip
def test_a_broken_rule_is_named(changed, message):
    values = {"uncertainty": [0.5, 1.0], "probability": [0.5, 0.2], "lower": [0.4, 0.1]}
    values["upper"] = [0.9, 0.9]
    Curve(**values)
    with pytest.raises(ValueError, match=message):
        Curve(**{**values, **changed})


LEVELS = np.array([0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 1.0])
SHARES = np.array([0.05, 0.05, 0.1, 0.15, 0.25, 0.16, 0.24])
RATES = np.array([0.4, 0.5, 0.55, 0.65, 0.75, 0.85, 0.97])


def stated_confidences(n_samples, seed):
    """Confidences of few distinct values, and whether each was right."""
    rng = np.random.default_rng(seed)
    level = rng.choice(len(LEVELS), n_samples, p=SHARES)
    return -LEVELS[level].astype(np.float32), rng.random(n_samples) < RATES[level]


@pytest.mark.parametrize("n_samples", [300, 5000])
def test_few_distinct_values_have_their_own_rates(n_samples):
    """In the middle of eight sets, each is within three deviations of its rate, and some bias."""
    sets = [stated_confidences(n_samples, seed) for seed in range(8)]
    curves = [curve_of(*one, measure="score").at(-LEVELS.astype(np.float32)) for one in sets]
    found, lower, upper = np.swapaxes(curves, 0, 1)
    deviation = np.sqrt(RATES * (1 - RATES) / (n_samples * SHARES))
    assert (np.median(np.abs(found - RATES), axis=0) < 3 * deviation + 0.02).all()
    assert np.mean((lower <= RATES) & (upper >= RATES)) >= 0.9


@pytest.mark.parametrize("lapse", [0.0, 0.01, 0.02])
def test_labels_drawn_by_a_coin_are_noticed(lapse):
    """True log-odds of the hits; half of the labels that a coin draws are right."""
    rng = np.random.default_rng(0)
    probability = expit(rng.normal(3.0, 3.0, 4000))
    by_coin = rng.random(4000) < lapse
    hits = rng.random(4000) < np.where(by_coin, 0.5, probability)
    weights = softmax(lapse_evidence(probability, hits, np.ones(4000)))
    assert weights @ LAPSES == pytest.approx(lapse, abs=0.005)


@pytest.mark.parametrize("seed", [5, 34])
def test_hits_and_errors_that_a_value_separates_have_probabilities(seed):
    """As with the loss of two classes: in large sets the curve is 1 to the last digit."""
    rng = np.random.default_rng(seed)
    x = np.sort(rng.normal(size=100_000) * (1 + seed % 5))
    hits = x > rng.normal()
    found = fit_spline(x, hits, np.ones(len(x)), prior=False).probability(x)
    assert ((found >= 0.0) & (found <= 1.0)).all()
    assert found.mean() == pytest.approx(hits.mean(), abs=1e-3)

"""Whether answers of weighted or grouped sets are right as often as stated."""

import numpy as np
import pytest

from howsure.statistics.bins.design import SampleDesign
from howsure.statistics.bins.fit import fit_bin_table
from howsure.statistics.fit.cross_validation import predict_with_table
from howsure.statistics.shift.gap import gap_test

TRIALS = 200


def grouped(rng, *, n_groups, sizes, spread, worse=0.0):
    """Groups that differ in how often they are right at a score."""
    groups = np.repeat(np.arange(n_groups), rng.choice(sizes, n_groups))
    scores = rng.normal(2.0, 1.5, groups.size)
    log_odds = scores + rng.normal(0.0, spread, n_groups)[groups] - worse
    hits = rng.random(groups.size) < 1 / (1 + np.exp(-log_odds))
    return (-scores).astype(np.float32), hits, SampleDesign(groups=groups)


def weighted(rng, *, n, ratio, worse=0.0):
    """Sure answers are kept one time in ``ratio``, and weigh as much more."""
    scores = rng.normal(2.0, 1.5, n)
    hits = rng.random(n) < 1 / (1 + np.exp(worse - scores))
    is_sure = scores > 2.0
    kept = ~is_sure | (rng.random(n) < 1 / ratio)
    design = SampleDesign(np.where(is_sure, ratio, 1.0)[kept])
    return (-scores[kept]).astype(np.float32), hits[kept], design


def p_value(fitted, other, lookup="step"):
    uncertainty, hits, design = fitted
    table = fit_bin_table(
        uncertainty, hits, n_bins=10, lookup=lookup, measure="entropy", design=design
    )
    judged = predict_with_table(table, other[0], other[1], other[2].weights)
    return gap_test(table, uncertainty, hits, judged, design=other[2], calibration_design=design)


WORLDS = {
    "one by one": lambda rng, worse: grouped(rng, n_groups=800, sizes=(1,), spread=0, worse=worse),
    "alike": lambda rng, worse: grouped(rng, n_groups=120, sizes=(15,), spread=1, worse=worse),
    "unequal": lambda rng, worse: grouped(rng, n_groups=120, sizes=(2, 40), spread=1, worse=worse),
    "weighted": lambda rng, worse: weighted(rng, n=3000, ratio=5.0, worse=worse),
}


@pytest.mark.parametrize("lookup", ["step", "smooth"])
@pytest.mark.parametrize("world", WORLDS)
def test_alarms_are_seldom_false_and_found_where_answers_are_worse(world, lookup):
    rng, draw = np.random.default_rng(11), WORLDS[world]
    false, found = [], []
    for _ in range(TRIALS):
        fitted = draw(rng, 0.0)
        false.append(p_value(fitted, draw(rng, 0.0), lookup))
        found.append(p_value(fitted, draw(rng, 1.0), lookup))
    for level in (0.01, 0.05):
        most = level + 3 * np.sqrt(level * (1 - level) / TRIALS)
        assert np.mean(np.array(false) < level) <= most
    assert np.mean(np.array(found) < 0.01) > 0.8


def test_repeated_rows_in_groups_prove_no_more_than_the_rows():
    """Each of 300 rows twelve times: as one row each they show nothing."""
    rng = np.random.default_rng(2)
    fitted = grouped(rng, n_groups=2000, sizes=(1,), spread=0)
    rows = grouped(rng, n_groups=300, sizes=(1,), spread=0, worse=0.4)
    places = np.repeat(np.arange(300), 12)
    repeated = rows[0][places], rows[1][places], SampleDesign(groups=places)
    as_one = rows[0][places], rows[1][places], SampleDesign(groups=np.arange(places.size))
    once = p_value(fitted, rows)
    assert p_value(fitted, repeated) == pytest.approx(once, rel=0.1)
    assert p_value(fitted, as_one) < once / 10


def test_answers_that_are_all_right_differ_only_if_errors_were_to_be_expected():
    rng = np.random.default_rng(3)
    fitted = grouped(rng, n_groups=1000, sizes=(1,), spread=0)
    for n, is_found in ((10, False), (400, True)):
        values = fitted[0][:n]
        other = values, np.ones(n, np.bool_), SampleDesign(groups=np.arange(n))
        assert (p_value(fitted, other) < 0.01) == is_found

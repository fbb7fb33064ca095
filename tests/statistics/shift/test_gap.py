"""Whether answers of weighted or grouped sets are right as often as stated."""

import numpy as np
import pytest

from howsure.statistics.bins.design import SampleDesign
from howsure.statistics.bins.fit import fit_bin_table
from howsure.statistics.fit.cross_validation import predict_with_table
from howsure.statistics.shift.gap import gap_test


def grouped(rng, *, n_groups, sizes, spread, worse=0.0):
    """Groups that differ in how often they are right at a score."""
    groups = np.repeat(np.arange(n_groups), rng.choice(sizes, n_groups))
    scores = rng.normal(2.0, 1.5, groups.size)
    log_odds = scores + rng.normal(0.0, spread, n_groups)[groups] - worse
    hits = rng.random(groups.size) < 1 / (1 + np.exp(-log_odds))
    return (-scores).astype(np.float32), hits, SampleDesign(group=groups)


def weighted(rng, *, n, ratio, worse=0.0):
    """Sure answers are kept one time in ``ratio``, and weigh as much more."""
    scores = rng.normal(2.0, 1.5, n)
    hits = rng.random(n) < 1 / (1 + np.exp(worse - scores))
    is_sure = scores > 2.0
    kept = ~is_sure | (rng.random(n) < 1 / ratio)
    design = SampleDesign(np.where(is_sure, ratio, 1.0)[kept])
    return (-scores[kept]).astype(np.float32), hits[kept], design


def p_values(fitted, *others, lookup="step"):
    """Return the p-value of each other set, by one table."""
    uncertainty, hits, design = fitted
    options = {"n_bins": 10, "lookup": lookup, "measure": "entropy", "design": design}
    table = fit_bin_table(uncertainty, hits, **options)

    def of(values, is_hit, own):
        judged = predict_with_table(table, values, is_hit, own)
        return gap_test(table, uncertainty, hits, judged, design=design)

    return [of(*other) for other in others]


WORLDS = {
    "one by one": lambda rng, worse: grouped(rng, n_groups=800, sizes=(1,), spread=0, worse=worse),
    "alike": lambda rng, worse: grouped(rng, n_groups=120, sizes=(15,), spread=1, worse=worse),
    "unequal": lambda rng, worse: grouped(rng, n_groups=120, sizes=(2, 40), spread=1, worse=worse),
    "weighted": lambda rng, worse: weighted(rng, n=3000, ratio=5.0, worse=worse),
}


TRIALS = [*((world, "step", 200) for world in WORLDS), ("unequal", "smooth", 100)]


@pytest.mark.parametrize(("world", "lookup", "trials"), TRIALS)
def test_alarms_are_seldom_false_and_found_where_answers_are_worse(world, lookup, trials):
    rng, draw = np.random.default_rng(11), WORLDS[world]
    values = np.array([
        p_values(draw(rng, 0.0), draw(rng, 0.0), draw(rng, 1.0), lookup=lookup)
        for _ in range(trials)
    ])  # fmt: skip
    for level in (0.01, 0.05):
        most = level + 3 * np.sqrt(level * (1 - level) / trials)
        assert np.mean(values[:, 0] < level) <= most
    assert np.mean(values[:, 1] < 0.01) > 0.8


def test_repeated_rows_in_groups_prove_no_more_than_the_rows():
    """Each of 300 rows twelve times: as one row each they show nothing."""
    rng = np.random.default_rng(2)
    fitted = grouped(rng, n_groups=2000, sizes=(1,), spread=0)
    rows = grouped(rng, n_groups=300, sizes=(1,), spread=0, worse=0.4)
    places = np.repeat(np.arange(300), 12)
    designs = SampleDesign(group=places), SampleDesign(group=np.arange(places.size))
    repeated = [(rows[0][places], rows[1][places], design) for design in designs]
    once, grouped_rows, as_one = p_values(fitted, rows, *repeated)
    assert grouped_rows == pytest.approx(once, rel=0.1)
    assert as_one < once / 10


def test_answers_that_are_all_right_differ_only_if_errors_were_to_be_expected():
    fitted = grouped(np.random.default_rng(3), n_groups=1000, sizes=(1,), spread=0)
    designs = [SampleDesign(group=np.arange(n)) for n in (10, 400)]
    right = [(fitted[0][own.group], own.group >= 0, own) for own in designs]
    few, many = p_values(fitted, *right)
    assert few >= 0.01 > many

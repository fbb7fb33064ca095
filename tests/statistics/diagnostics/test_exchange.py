"""Whether chance explains a calibration error, against all deals of hits and in simulation."""

from itertools import product
from math import comb

import numpy as np
import pytest

from howsure.statistics.bins.fit import fit_bin_table
from howsure.statistics.diagnostics.consistency import ece_permutation_test
from howsure.statistics.fit.cross_validation import predict_with_table
from howsure.statistics.scores import SCORES


def sample_of(rng, n_samples, chance):
    uncertainty = rng.random(n_samples).astype(np.float32)
    return uncertainty, rng.random(n_samples) >= chance(uncertainty)


def test_p_value_is_that_of_all_deals():
    """Two bins of six, of which the fit held three each: every deal, by its probability."""
    uncertainty = np.float32([1, 2, 3, 7, 8, 9])
    table = fit_bin_table(uncertainty, np.array([1, 1, 1, 1, 0, 0], dtype=bool), n_bins=2)
    judged = predict_with_table(table, uncertainty, np.array([1, 0, 0, 0, 0, 1], dtype=bool))
    hits = np.array([4, 2])
    observed, chance = SCORES["ece"].compute(judged), 0.0
    for dealt in product(range(4), range(4)):
        fitted = hits - np.array(dealt)
        if ((fitted < 0) | (fitted > 3)).any():
            continue
        accuracy = fitted.sum() / 6 if 0 < fitted.sum() < 6 else (fitted.sum() + 0.5) / 7
        error = np.abs(np.array(dealt) / 3 - (fitted + accuracy) / 4).mean()
        ways = [
            comb(h, d) * comb(6 - h, 3 - d) / comb(6, 3) for h, d in zip(hits, dealt, strict=True)
        ]
        chance += np.prod(ways) * (error >= observed - 1e-9)

    found = ece_permutation_test(table, judged, rng=np.random.default_rng(0))
    assert found == pytest.approx(chance, abs=4 * np.sqrt(chance * (1 - chance) / 2000))


@pytest.mark.parametrize(
    ("n_samples", "chance", "lookup"),
    [
        (400, lambda u: u / 4, "step"),
        (2000, lambda u: u / 500, "step"),  # two errors in all: where the band is too narrow
        (400, lambda u: u / 4, "interpolated"),
    ],
)
def test_like_sets_are_called_as_rarely_as_said(n_samples, chance, lookup):
    rng = np.random.default_rng(1)
    calls = 0
    for _ in range(200):
        table = fit_bin_table(*sample_of(rng, n_samples, chance), n_bins=5, lookup=lookup)
        judged = predict_with_table(table, *sample_of(rng, n_samples, chance))
        calls += ece_permutation_test(table, judged, rng=rng) < 0.05

    assert calls / 200 <= 0.05 + 3 * np.sqrt(0.05 * 0.95 / 200)


def test_other_error_rates_are_seen():
    rng = np.random.default_rng(2)
    table = fit_bin_table(*sample_of(rng, 1000, lambda u: u / 4), n_bins=5)
    judged = predict_with_table(table, *sample_of(rng, 1000, lambda u: u / 2))

    assert ece_permutation_test(table, judged, rng=rng) < 0.001


@pytest.mark.parametrize("lookup", ["step", "interpolated"])
def test_hits_that_can_be_dealt_in_one_way_are_no_surprise(lookup):
    """Also where an interpolated table serves something else than its bins' own probabilities."""
    uncertainty, hits = np.arange(40, dtype=np.float32), np.arange(40) < 20
    table = fit_bin_table(uncertainty, hits, n_bins=2, lookup=lookup)
    judged = predict_with_table(table, uncertainty[15:25], hits[15:25])

    assert ece_permutation_test(table, judged, rng=np.random.default_rng(0)) == 1.0

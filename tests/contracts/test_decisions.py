"""Laws of all that is decided from uncertainties and hits."""

import json
from collections.abc import Mapping
from dataclasses import is_dataclass

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sample_strategies import judged_uncertainties

from howsure.statistics.coarse import fit_coarse_table
from howsure.statistics.diagnostics.curves import fit_curves
from howsure.statistics.diagnostics.rank_grid import fit_rank_grid
from howsure.statistics.plain import to_plain
from howsure.statistics.ranking import ood_thresholds, ranking_of
from howsure.statistics.selective import SelectiveTarget, fit_selective

DECISIONS = {
    "coarse": lambda u, h, _keys: fit_coarse_table(ranking_of(u, h), targets=(0.9, 0.5)),
    "curves": lambda u, h, _keys: fit_curves(ranking_of(u, h)),
    "ood_thresholds": lambda u, _hits, _keys: ood_thresholds(ranking_of(u)),
    "rank_grid": lambda u, _hits, keys: fit_rank_grid(u, keys, n_bins=7),
    "selective": lambda u, h, _keys: fit_selective(ranking_of(u, h), SelectiveTarget(0.4, 0.5)),
    "selective_by_default": lambda u, h, _keys: fit_selective(
        ranking_of(u, h), SelectiveTarget(0.05)
    ),
}


# The last point of a curve flags all samples, as its docstring says.
FLAG_ALL_SAMPLES = {".roc.threshold[-1] = -inf", ".precision_recall.threshold[-1] = -inf"}


def keys_of(uncertainty):
    return np.random.default_rng(0).integers(0, 2**32, len(uncertainty), dtype=np.uint32)


@pytest.mark.parametrize("name", DECISIONS)
@given(judged_uncertainties())
def test_result_is_plain_and_finite_and_input_is_left_alone(name, sample):
    uncertainty, hits = sample
    uncertainty.flags.writeable = hits.flags.writeable = False
    found = DECISIONS[name](uncertainty, hits, keys_of(uncertainty))

    for place in not_finite(found):
        assert place in FLAG_ALL_SAMPLES
    plain = to_plain(found)
    assert json.loads(json.dumps(plain, allow_nan=False)) == plain


def not_finite(value, place=""):
    """Yield the places of numbers that are not finite, which `to_plain` would hide."""
    if is_dataclass(value):
        value = vars(value)
    if isinstance(value, Mapping):
        for name, part in value.items():
            yield from not_finite(part, f"{place}.{name}")
    elif isinstance(value, list | tuple | np.ndarray):
        for index, part in enumerate(value, start=-len(value)):
            yield from not_finite(part, f"{place}[{index}]")
    elif isinstance(value, float | np.floating) and not np.isfinite(value):
        yield f"{place} = {value}"


@pytest.mark.parametrize("name", DECISIONS)
@given(judged_uncertainties(), st.randoms(use_true_random=False))
def test_order_of_the_samples_does_not_show(name, sample, random):
    uncertainty, hits = sample
    keys = keys_of(uncertainty)
    order = list(range(len(hits)))
    random.shuffle(order)

    one = DECISIONS[name](uncertainty, hits, keys)
    other = DECISIONS[name](uncertainty[order], hits[order], keys[order])
    assert to_plain(one) == to_plain(other)

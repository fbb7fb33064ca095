"""Noise: the same wherever it is drawn, another for every seed, pass and site, and as asked for."""

from functools import partial
from itertools import product

import numpy as np
import pytest
from scipy import stats

from howsure.statistics.measures.noise import keep_mask, normal, uniform

PLACE = {"seed": 7, "number": 3, "site": 2}
KINDS = {"keep": partial(keep_mask, rate=0.5), "normal": normal, "uniform": uniform}
EACH = pytest.mark.parametrize("draw", KINDS.values(), ids=KINDS)


@EACH
def test_another_seed_pass_or_site_draws_another_that_does_not_follow_from_it(draw):
    places = list(product((0, 1, 8, 2**63), (0, 1, 2), (0, 1, 2)))
    drawn = np.array([draw((4000,), **dict(zip(PLACE, at, strict=True))) for at in places])
    between = np.corrcoef(drawn) - np.eye(len(places))
    assert np.abs(between).max() < 5.5 / np.sqrt(4000)
    # Nor is one stream another that begins elsewhere, as of generators that count runs.
    assert len({row[:64].tobytes() for row in drawn}) == len(places)
    for shift in (1, 2, 4):
        shifted = np.corrcoef(drawn[:, shift:], drawn[:, :-shift])[: len(places), len(places) :]
        assert np.abs(shifted).max() < 5.5 / np.sqrt(4000)


@EACH
def test_a_shape_only_arranges_the_flat_draw_and_more_draws_begin_with_the_fewer(draw):
    flat = draw((101,), **PLACE)
    np.testing.assert_array_equal(draw((2, 3, 4), **PLACE), flat[:24].reshape(2, 3, 4))


@pytest.mark.parametrize("rate", [0.05, 0.9])
def test_a_mask_keeps_as_many_as_it_is_to_and_scales_them(rate):
    size = 200_000
    mask = keep_mask((size,), rate=rate, **PLACE)
    assert set(np.unique(mask)) == {np.float32(0), np.float32(1 / (1 - rate))}
    kept = int(np.count_nonzero(mask))
    assert stats.binomtest(kept, size, 1 - rate).pvalue > 1e-4
    deviation = np.sqrt(rate / (1 - rate) / size)
    assert mask.mean(dtype=np.float64) == pytest.approx(1, abs=5 * deviation)
    assert mask.var(dtype=np.float64) == pytest.approx(rate / (1 - rate), rel=0.05)


def test_normal_and_uniform_draws_are():
    assert stats.kstest(normal((100_001,), **PLACE), "norm").pvalue > 1e-3
    drawn = uniform((100_000,), **PLACE)
    assert stats.kstest(drawn, "uniform").pvalue > 1e-3
    assert drawn.min() >= 0
    assert drawn.max() < 1


def test_streams_of_numpy_are_those_named():
    """Key and counter as documented, so that another program can draw the same."""
    stream = np.random.Philox(key=[7, 3], counter=[0, 0, 0, 2])
    expected = (stream.random_raw(100) >> 40) / 2**24
    np.testing.assert_array_equal(uniform((100,), **PLACE), expected)


@EACH
@pytest.mark.parametrize("name", PLACE)
@pytest.mark.parametrize("value", [-1, 2**64])
def test_places_out_of_range_are_refused(draw, name, value):
    with pytest.raises(ValueError, match=f"{name} must lie in"):
        draw((3,), **(PLACE | {name: value}))


@pytest.mark.parametrize("rate", [-0.1, 1.0, np.nan])
def test_rates_out_of_range_are_refused(rate):
    with pytest.raises(ValueError, match=r"rate must lie in \[0, 1\)"):
        keep_mask((3,), rate=rate, **PLACE)

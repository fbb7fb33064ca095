"""Columns of several passes: all of them, and the first ones."""

import numpy as np
import pytest
from pass_strategies import drawn_passes

from howsure.statistics.measures.gradient import gradient_norm
from howsure.statistics.measures.passes import (
    averaged_columns,
    column_names,
    covariance_norm,
    gradient_columns,
    prefixes,
)


@pytest.fixture(scope="module")
def passes():
    return drawn_passes(25, 12, 6)


def test_columns_hold_what_they_say(passes):
    log_p, labels = passes
    found = averaged_columns("ensemble_variance", log_p, labels)
    np.testing.assert_allclose(found.uncertainty["ensemble_variance"], covariance_norm(log_p), 1e-6)
    np.testing.assert_allclose(
        found.uncertainty["ensemble_variance@3"], covariance_norm(log_p[:, :3]), 1e-6
    )
    for n in (1, 5, 12):
        mean = np.exp(log_p[:, :n]).mean(axis=1)
        name = f"ensemble_variance@{n}"
        of_label = mean[np.arange(25), labels]
        np.testing.assert_allclose(np.exp(found.mean_log_probability[name]), of_label, rtol=1e-12)
        ranks = (mean > of_label[:, np.newaxis]).sum(axis=1)
        np.testing.assert_array_equal(found.mean_label_rank[name], ranks)
        assert found.mean_log_probability[name].dtype == np.float64
        assert found.mean_label_rank[name].dtype == np.int32
    assert found.uncertainty["ensemble_variance"].dtype == np.float32


def test_ties_rank_by_the_lower_class():
    log_p = np.log(np.full((3, 2, 4), 0.25))
    found = averaged_columns("ensemble_variance", log_p, np.array([0, 1, 3]))
    np.testing.assert_array_equal(found.mean_label_rank["ensemble_variance@2"], [0, 1, 3])


def test_a_label_that_every_pass_rules_out_has_an_infinite_loss():
    with np.errstate(divide="ignore"):
        log_p = np.log(np.tile([0.5, 0.5, 0.0], (2, 3, 1)))
    found = averaged_columns("dropout_variance", log_p, np.array([2, 0]))
    assert found.mean_log_probability["dropout_variance@3"][0] == -np.inf
    np.testing.assert_array_equal(found.uncertainty["dropout_variance"], [0, 0])


def test_slopes_along_gaussian_directions_have_prefixes():
    slopes = np.random.default_rng(0).normal(size=(30, 16))
    found = gradient_columns(slopes, exact=False)
    uncertainty, means = column_names("gradient_norm", 16)
    assert means == ()
    assert tuple(found.uncertainty) == ("gradient_norm", *uncertainty)
    assert uncertainty == tuple(f"gradient_norm@{n}" for n in (1, 2, 3, 5, 10, 16))
    np.testing.assert_allclose(found.uncertainty["gradient_norm@1"], np.abs(slopes[:, 0]), 1e-6)
    for n in (1, 5, 16):
        fewer = gradient_columns(slopes[:, :n], exact=False).uncertainty["gradient_norm"]
        np.testing.assert_array_equal(found.uncertainty[f"gradient_norm@{n}"], fewer)
    np.testing.assert_allclose(
        found.uncertainty["gradient_norm"], gradient_norm(slopes, exact=False), rtol=1e-6
    )


def test_slopes_along_coordinates_have_none():
    slopes = np.random.default_rng(0).normal(size=(30, 7))
    found = gradient_columns(slopes, exact=True)
    assert column_names("gradient_norm", 7, exact=True) == ((), ())
    assert list(found.uncertainty) == ["gradient_norm"]
    np.testing.assert_allclose(
        found.uncertainty["gradient_norm"], np.linalg.norm(slopes, axis=1), rtol=1e-6
    )
    assert found.mean_log_probability == found.mean_label_rank == {}


@pytest.mark.parametrize(
    ("passes", "expected"),
    [
        (1, (1,)),
        (2, (1, 2)),
        (4, (1, 2, 3, 4)),
        (20, (1, 2, 3, 5, 10, 20)),
        (21, (1, 2, 3, 5, 10, 20, 21)),
        (1000, (1, 2, 3, 5, 10, 20, 30, 50, 100, 200, 500, 1000)),
    ],
)
def test_usual_numbers_and_then_all(passes, expected):
    assert prefixes(passes) == expected

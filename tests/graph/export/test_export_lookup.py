"""The lookup in the graph is that of `BinTable`: on edges, beside them, and far beyond them."""

from dataclasses import replace

import numpy as np
import pytest
from calibrated_files import assert_answers, direct_model, write
from graph_models import opsets

from howsure.statistics.bins.curve import Curve
from howsure.statistics.bins.fit import fit_bin_table
from howsure.statistics.bins.table import BinTable
from service.graph.description import OutputChoice

ENDLESS = np.float32(np.inf)
LARGEST = np.finfo(np.float32).max
CHOICE = OutputChoice("y", "logits", "y", "a test", n_classes=3)
LOOKUPS = ("smooth", "interpolated", "step")


def file_of(table, *, opset=17):
    """Return a file that looks up the input ``u`` itself."""
    return write(direct_model(3, opset=opset), CHOICE, {1: table}, {1: "output_v"})


def rows_of(uncertainty):
    scores = np.random.default_rng(0).normal(size=(len(uncertainty), 3))
    return {"x": scores.astype(np.float32), "u": uncertainty.astype(np.float32)}


def beside(values):
    """Return the values in float32, and their neighbours on either side."""
    near = np.asarray(values, dtype=np.float32)
    return np.concatenate([near, np.nextafter(near, ENDLESS), np.nextafter(near, -ENDLESS)])


def random_table(n_bins, lookup, *, center=0.0, width=1.0):
    """Return a table of bins so wide, near so large an uncertainty, with any rates and intervals.

    Intervals of an interpolated table need not hold the line between the bins.
    """
    rng = np.random.default_rng(n_bins)

    def draw(size):
        return np.unique((center + width * rng.normal(size=size)).astype(np.float32))

    edges = draw(n_bins - 1)
    outer = [edges.min(initial=center) - width, edges.max(initial=center) + width]
    knots = np.concatenate([outer[:1], edges.astype(np.float64), outer[1:]])
    share = rng.uniform(0.1, 0.9, size=len(edges) + 1)
    rates, half = rng.uniform(size=(2, len(edges) + 1))
    curve = None
    if lookup == "smooth":
        smooth = draw(min(n_bins, 98))
        lower, probability, upper = np.sort(rng.uniform(size=(3, len(smooth))), axis=0)
        curve = Curve(uncertainty=smooth, probability=probability, lower=lower, upper=upper)
    return BinTable(
        edges=np.concatenate([[-np.inf], edges, [np.inf]]),
        counts=np.ones(len(rates)),
        hits=np.ones(len(rates)),
        prior=fit_bin_table(np.zeros(1, np.float32), np.ones(1, np.bool_), n_bins=1).prior,
        probability=rates,
        lower=np.maximum(rates - half / 50, 0),
        upper=np.minimum(rates + half / 50, 1),
        mean_uncertainty=knots[:-1] + share * np.diff(knots),
        requested_bins=n_bins,
        lookup=lookup,
        curve=curve,
    )


def probes(table):
    inner = table.edges[1:-1]
    if table.curve is not None:
        inner = np.concatenate([inner, table.curve.uncertainty])
    means = table.mean_uncertainty
    within = np.random.default_rng(1).uniform(*np.quantile(means, [0, 1]), size=500)
    far = [means[0] - 1, means[-1] + 1, 0, -0.0, LARGEST, -LARGEST, 1e-37, -1e-37, 3e-38, 1e30]
    return np.concatenate([*map(beside, (inner, means, within)), far])


@pytest.mark.parametrize("opset", opsets(11, 13, 18, 23))
@pytest.mark.parametrize("lookup", LOOKUPS)
@pytest.mark.parametrize("n_bins", [1, 2, 20, 1000])
def test_every_edge_and_what_lies_beside_it_is_looked_up_alike(n_bins, lookup, opset):
    table = random_table(n_bins, lookup)
    assert_answers(file_of(table, opset=opset), rows_of(probes(table)))


@pytest.mark.parametrize("lookup", LOOKUPS)
@pytest.mark.parametrize(
    ("center", "width"), [(12.0, 1e-4), (-300.0, 1e-3), (1e-33, 1e-33), (1e30, 1e30)]
)
def test_bins_may_be_narrow_and_lie_anywhere(center, width, lookup):
    table = random_table(50, lookup, center=center, width=width)
    assert_answers(file_of(table), rows_of(probes(table)))


def test_means_may_lie_closer_together_than_two_float32():
    near = 10 + np.array([0, 1e-9, 2e-9, 1.0])
    table = replace(random_table(4, "interpolated", center=10.0), mean_uncertainty=near)
    assert_answers(file_of(table), rows_of(beside([*near, 9, 10.5, 11.5])))


@pytest.mark.parametrize("lookup", LOOKUPS)
@pytest.mark.parametrize("n_bins", [1, 20])
def test_what_is_not_finite_is_in_no_bin(n_bins, lookup):
    file, rows = file_of(random_table(n_bins, lookup)), rows_of(np.linspace(-2, 2, 50))
    rows["u"][[0, 7, 49]] = np.nan, np.inf, -np.inf
    rows["x"][20, 1] = np.nan  # the measure itself knows nothing of it
    answers = assert_answers(file, rows)
    for name in answers.keys() - {"y", "v"}:
        values = answers[name][[0, 7, 20, 49]]
        nothing = {"f": np.nan, "b": True, "i": -1}[values.dtype.kind]
        np.testing.assert_array_equal(values, np.full_like(values, nothing), err_msg=name)

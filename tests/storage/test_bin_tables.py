"""Bin tables as rows, and back. Nothing here is about a dialect: one is enough."""

import dataclasses
import math

import numpy as np
import pytest
from sqlalchemy.exc import InvalidRequestError
from stored_rows import queue_calibration, tenant_of

from howsure.statistics.bins.intervals import IntervalOptions
from howsure.statistics.bins.prior import BetaPrior
from howsure.statistics.bins.table import BinTable
from service.storage.fit_results import bin_table_row, core_table, served_tables, tables_of
from service.storage.tenants import ALL_TENANTS

LOW = np.float32(0.1)
# Neighbours in float32, counts above 32 bits, denormals, and an empty bin without a mean.
AWKWARD = {
    "edges": [-np.inf, LOW, np.nextafter(LOW, np.float32(1)), np.inf],
    "counts": [2**40, 7, 0],
    "hits": [2**40 - 1, 0, 0],
    "prior": BetaPrior(0.1 + 2**-55, 1e-6, degenerate=True),
    "probability": [1 - 1e-12, 1 / 3, 1e-12],
    "lower": [0.5, 5e-324, 0.0],
    "upper": [1.0, 0.1 + 2**-55, 1e-9],
    "mean_uncertainty": [-1e300, 5e-324, math.nan],
    "requested_bins": 1000,
    "monotone": True,
    "interval": IntervalOptions("clopper_pearson", 0.999, simultaneous=True),
}


@pytest.fixture
def dialect():
    return "sqlite"


def table_of(edges=(-np.inf, 0.1, np.inf), **changes):
    n_bins = len(edges) - 1
    given_columns = {
        "edges": np.array(edges, dtype=np.float32),
        "counts": [10] * n_bins,
        "hits": [9] * n_bins,
        "prior": BetaPrior(0.9),
        "probability": [0.9] * n_bins,
        "lower": [0.5] * n_bins,
        "upper": [0.95] * n_bins,
        "mean_uncertainty": np.arange(n_bins) + 0.25,
        "requested_bins": n_bins,
    }
    return BinTable(**(given_columns | changes))


def keep(database, calibration, table, *, measure="margin", **columns):
    columns = {"k": 1, "served": True, "quantile_bins": table.requested_bins} | columns
    columns |= {"tenant_id": calibration.tenant_id, "calibration_id": calibration.id}
    with database.session(ALL_TENANTS) as session:
        session.add(bin_table_row(table, measure=measure, column=measure, **columns))


def read(database, calibration, **options):
    with database.reading(ALL_TENANTS) as session:
        return tables_of(session, tenant_of(database), calibration.id, **options)


@pytest.mark.parametrize("columns", [{"lookup": "interpolated"}, AWKWARD], ids=["plain", "awkward"])
def test_a_table_comes_back_exactly_as_it_was(database, columns):
    table, calibration = table_of(**columns), queue_calibration(database)
    keep(database, calibration, table)
    [row] = read(database, calibration)
    assert (row.bins[0].lower, row.bins[-1].upper) == (None, None)
    assert row.n_samples == table.n_samples
    assert [found.odds_ratio for found in row.bins] == table.odds_ratios.tolist()
    found = core_table(row)
    for field in dataclasses.fields(table):
        ours, theirs = getattr(found, field.name), getattr(table, field.name)
        np.testing.assert_array_equal(ours, theirs, err_msg=field.name, strict=True)


def test_tables_come_by_event_and_then_as_they_were_fitted(database):
    calibration, other = queue_calibration(database), queue_calibration(database)
    keep(database, other, table_of())
    for k, measure in ((5, "margin"), (1, "margin"), (1, "entropy")):
        keep(database, calibration, table_of(), k=k, measure=measure, served=measure == "margin")
    found = read(database, calibration)
    assert [(row.k, row.measure) for row in found] == [(1, "margin"), (1, "entropy"), (5, "margin")]
    with database.reading(ALL_TENANTS) as session:
        served = served_tables(session, tenant_of(database), calibration.id)
        assert [(row.k, row.measure) for row in served] == [(1, "margin"), (5, "margin")]
        for row in (served[0], tables_of(session, tenant_of(database), calibration.id)[0]):
            # Curves are long: they are never read by accident.
            with pytest.raises(InvalidRequestError, match="raiseload"):
                _ = row.curves


def test_what_was_found_out_stands_beside_a_table(database):
    calibration = queue_calibration(database)
    plain = {
        "candidates": [{"bins": 5, "mean": 0.2, "std": None}],
        "analysis": {"ood_thresholds": {"0.99": 0.1 + 2**-55}, "guarantee": None},
        "quantile_bins": 7,
    }
    curves = {"risk_coverage": {"coverage": [0.5, 1.0], "risk": [0.0, 0.25]}}
    keep(database, calibration, table_of(requested_bins=9), **plain, curves=curves)
    keep(database, calibration, table_of(), k=5)
    first, second = read(database, calibration, with_curves=True)
    assert {name: getattr(first, name) for name in plain} == plain
    assert (first.requested_bins, first.curves) == (9, curves)
    assert (second.analysis, second.curves) == ({}, {})

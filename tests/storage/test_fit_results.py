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
from service.storage.fit_results import bin_table_row, core_table, tables_of
from service.storage.tenants import ALL_TENANTS

LOW = np.float32(0.1)
EXACT = 0.1 + 2**-55
# Neighbours in float32, counts above 32 bits, denormals, and an empty bin without a mean.
AWKWARD = BinTable(
    edges=np.array([-np.inf, LOW, np.nextafter(LOW, np.float32(1)), np.inf], np.float32),
    counts=[2**40, 7, 0],
    hits=[2**40 - 1, 0, 0],
    prior=BetaPrior(EXACT, 1e-6, degenerate=True),
    probability=[1 - 1e-12, 1 / 3, 1e-12],
    lower=[0.5, 5e-324, 0.0],
    upper=[1.0, EXACT, 1e-9],
    mean_uncertainty=[-1e300, 5e-324, math.nan],
    requested_bins=1000,
    monotone=True,
    interval=IntervalOptions("clopper_pearson", 0.999, simultaneous=True),
)


@pytest.fixture
def dialect():
    return "sqlite"


@pytest.fixture
def calibration(database):
    return queue_calibration(database)


def keep(database, *rows):
    with database.session(ALL_TENANTS) as session:
        session.add_all(rows)


def table_row(calibration, *, measure="margin", k=1, served=True, **columns):
    owner = {"tenant_id": calibration.tenant_id, "calibration_id": calibration.id}
    columns = {"quantile_bins": 7} | owner | columns
    return bin_table_row(AWKWARD, measure=measure, column=measure, k=k, served=served, **columns)


def test_a_table_comes_back_exactly_as_it_was(database, calibration):
    analysis = {"ood_thresholds": {"0.99": EXACT}, "guarantee": None}
    curves = {"risk_coverage": {"coverage": [0.5, 1.0], "risk": [0.0, 0.25]}}
    keep(database, table_row(calibration, analysis=analysis, curves=curves))
    with database.reading(ALL_TENANTS) as session:
        [row] = tables_of(session, tenant_of(database), calibration.id, with_curves=True)
    assert (row.quantile_bins, row.analysis, row.curves) == (7, analysis, curves)
    assert (row.bins[0].lower, row.bins[-1].upper, row.n_samples) == (None, None, 2**40 + 7)
    assert [one.odds_ratio for one in row.bins] == AWKWARD.odds_ratios.tolist()
    table = core_table(row)
    for field in dataclasses.fields(table):
        ours, theirs = getattr(table, field.name), getattr(AWKWARD, field.name)
        np.testing.assert_array_equal(ours, theirs, err_msg=field.name, strict=True)


def test_tables_come_by_event_and_then_as_they_were_fitted(database, calibration):
    keep(database, table_row(queue_calibration(database)))
    for k, measure in ((5, "margin"), (1, "margin"), (1, "entropy")):
        keep(database, table_row(calibration, k=k, measure=measure, served=measure == "margin"))
    with database.reading(ALL_TENANTS) as session:
        owner = (session, tenant_of(database), calibration.id)
        rows = tables_of(*owner)
        events = [(row.k, row.measure) for row in rows]
        assert events == [(1, "margin"), (1, "entropy"), (5, "margin")]
        # Curves are long: they are never read by accident.
        with pytest.raises(InvalidRequestError, match="raiseload"):
            _ = rows[0].curves

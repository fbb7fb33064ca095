"""Bin tables as rows, and back. Nothing here is about a dialect: one is enough."""

import math

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy.exc import InvalidRequestError
from storage_rows import add_tenant, queue_calibration, tenant_of

from howsure.statistics.bins.intervals import IntervalOptions
from howsure.statistics.bins.prior import BetaPrior
from howsure.statistics.bins.table import BinTable
from service.storage.fit_results import bin_table_row, core_table, served_tables, tables_of

ARRAYS = ("edges", "counts", "hits", "probability", "lower", "upper", "mean_uncertainty")
PLAIN = ("prior", "requested_bins", "lookup", "monotone", "interval")
UNIT = st.floats(0, 1)


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


@st.composite
def bin_tables(draw):
    inner = draw(
        st.lists(
            st.floats(width=32, allow_nan=False, allow_infinity=False),
            unique_by=lambda edge: edge + 0.0,
            max_size=6,
        )
    )
    edges = [-math.inf, *sorted(inner), math.inf]
    n = len(edges) - 1
    counts = draw(st.lists(st.integers(0, 2**40), min_size=n, max_size=n))
    triples = [sorted(draw(st.tuples(UNIT, UNIT, UNIT))) for _ in range(n)]
    lookup = draw(st.sampled_from(["step", "interpolated"]))
    means = draw(
        st.lists(
            st.floats(-1e300, 1e300, allow_subnormal=True), min_size=n, max_size=n, unique_by=abs
        )
    )
    return BinTable(
        edges=np.array(edges, dtype=np.float32),
        counts=counts,
        hits=[draw(st.integers(0, count)) for count in counts],
        prior=BetaPrior(
            draw(st.floats(1e-9, 1 - 1e-9)),
            draw(st.floats(1e-6, 1e6)),
            degenerate=draw(st.booleans()),
        ),
        lower=[t[0] for t in triples],
        probability=[min(max(t[1], 1e-12), 1 - 1e-12) for t in triples],
        upper=[max(t[2], t[1], 1e-12) for t in triples],
        mean_uncertainty=sorted(means),
        requested_bins=draw(st.integers(1, 1000)),
        lookup=lookup,
        monotone=draw(st.booleans()),
        interval=IntervalOptions(
            draw(st.sampled_from(["clopper_pearson", "wilson"])),
            draw(st.floats(0.01, 0.999)),
            simultaneous=draw(st.booleans()),
        ),
    )


def keep(database, calibration, table, **names):
    defaults = {
        "k": 1,
        "measure": "margin",
        "column": "margin",
        "served": True,
        "quantile_bins": table.requested_bins,
    }
    row = bin_table_row(
        table,
        tenant_id=calibration.tenant_id,
        calibration_id=calibration.id,
        **(defaults | names),
    )
    with database.session() as session:
        session.add(row)
    return row.id


def read(database, calibration, **options):
    with database.reading() as session:
        return tables_of(session, tenant_of(database), calibration.id, **options)


def assert_same(found, expected):
    for name in ARRAYS:
        assert getattr(found, name).dtype == getattr(expected, name).dtype
        np.testing.assert_array_equal(getattr(found, name), getattr(expected, name), err_msg=name)
    for name in PLAIN:
        assert getattr(found, name) == getattr(expected, name)


@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(table=bin_tables())
def test_a_table_comes_back_exactly_as_it_was(database, table):
    calibration = queue_calibration(database)
    keep(database, calibration, table)
    (row,) = read(database, calibration)
    assert_same(core_table(row), table)


def test_limits_and_means_that_do_not_exist_come_back_as_they_were(database):
    low = np.float32(0.1)
    table = table_of(
        [-np.inf, low, np.nextafter(low, np.float32(1)), np.inf],
        mean_uncertainty=[0.05, 0.1, math.nan],
    )
    calibration = queue_calibration(database)
    keep(database, calibration, table)
    (row,) = read(database, calibration)
    assert (row.bins[0].lower, row.bins[-1].upper, row.n_samples) == (None, None, 30)
    assert {found.odds_ratio for found in row.bins} == {1.0}
    assert_same(core_table(row), table)


def test_tables_come_by_event_and_then_as_they_were_fitted(database):
    calibration, other = queue_calibration(database), queue_calibration(database)
    tenant_id, stranger = tenant_of(database), add_tenant(database, "other")
    keep(database, other, table_of())
    for k, measure in ((5, "margin"), (1, "margin"), (1, "entropy")):
        keep(database, calibration, table_of(), k=k, measure=measure, served=measure == "margin")
    found = read(database, calibration)
    assert [(row.k, row.measure) for row in found] == [(1, "margin"), (1, "entropy"), (5, "margin")]
    with database.reading() as session:
        served = served_tables(session, tenant_id, calibration.id)
        assert [(row.k, row.measure, len(row.bins)) for row in served] == [
            (1, "margin", 2),
            (5, "margin", 2),
        ]
        assert list(tables_of(session, stranger, calibration.id)) == []
        assert list(served_tables(session, stranger, calibration.id)) == []


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


def test_curves_are_long_and_never_read_by_accident(database):
    calibration = queue_calibration(database)
    keep(database, calibration, table_of())
    with database.reading() as session:
        for find in (served_tables, tables_of):
            (row,) = find(session, tenant_of(database), calibration.id)
            with pytest.raises(InvalidRequestError, match="raiseload"):
                _ = row.curves

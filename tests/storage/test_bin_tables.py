import math

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy.exc import IntegrityError, InvalidRequestError, StatementError
from storage_rows import add_tenant, queue_calibration, tenant_of

import models
from howsure.statistics.bins.intervals import IntervalOptions
from howsure.statistics.bins.prior import BetaPrior
from howsure.statistics.bins.table import BinTable
from service.storage.fit_results import bin_table_row, core_table, served_tables, tables_of

ARRAYS = ("edges", "counts", "hits", "probability", "lower", "upper", "mean_uncertainty")
PLAIN = ("prior", "requested_bins", "lookup", "monotone", "interval")
UNIT = st.floats(0, 1)


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


def test_edges_that_differ_in_the_last_bit_of_float32_stay_apart(database):
    low = np.float32(0.1)
    edges = [-np.inf, low, np.nextafter(low, np.float32(1)), np.inf]
    calibration = queue_calibration(database)
    keep(database, calibration, table_of(edges))
    (row,) = read(database, calibration)
    assert row.bins[0].lower is None
    assert row.bins[-1].upper is None
    np.testing.assert_array_equal(core_table(row).edges, np.array(edges, dtype=np.float32))


def test_a_mean_that_no_sample_defines_comes_back_as_nan(database):
    calibration = queue_calibration(database)
    keep(database, calibration, table_of(mean_uncertainty=[0.05, math.nan]))
    (row,) = read(database, calibration)
    np.testing.assert_array_equal(core_table(row).mean_uncertainty, [0.05, math.nan])


def test_bins_come_back_in_order_and_carry_their_odds_ratio(database):
    calibration = queue_calibration(database)
    edges = [-np.inf, *np.linspace(0.01, 5, 200), np.inf]
    keep(database, calibration, table_of(edges))
    (row,) = read(database, calibration)
    assert [found.index for found in row.bins] == list(range(201))
    assert {found.odds_ratio for found in row.bins} == {1.0}
    assert row.n_samples == 2010


def test_tables_come_by_event_and_then_as_they_were_fitted(database):
    calibration = queue_calibration(database)
    other = queue_calibration(database)
    keep(database, other, table_of())
    for k, measure in ((5, "margin"), (1, "margin"), (1, "entropy")):
        keep(database, calibration, table_of(), k=k, measure=measure, served=measure == "margin")
    found = read(database, calibration)
    assert [(row.k, row.measure) for row in found] == [(1, "margin"), (1, "entropy"), (5, "margin")]
    with database.reading() as session:
        served = served_tables(session, tenant_of(database), calibration.id)
    assert [(row.k, row.measure) for row in served] == [(1, "margin"), (5, "margin")]
    assert len(served[0].bins) == 2


def test_the_candidates_stand_beside_the_table(database):
    calibration = queue_calibration(database)
    candidates = [{"bins": 5, "mean": 0.2, "std": None}, {"bins": 10, "mean": 0.1, "std": 0.01}]
    keep(database, calibration, table_of(), candidates=candidates)
    assert read(database, calibration)[0].candidates == candidates


def test_the_bins_before_pooling_are_kept_beside_those_asked_for(database):
    calibration = queue_calibration(database)
    keep(database, calibration, table_of(requested_bins=9), quantile_bins=7)
    (row,) = read(database, calibration)
    assert (row.requested_bins, row.quantile_bins, len(row.bins)) == (9, 7, 2)
    assert core_table(row).requested_bins == 9


def test_what_a_table_shows_stands_beside_it(database):
    calibration = queue_calibration(database)
    analysis = {
        "ood_thresholds": {"0.99": 0.1 + 2**-55},
        "selective": [{"threshold": None}],
        "guarantee": None,
    }
    keep(database, calibration, table_of(), analysis=analysis)
    keep(database, calibration, table_of(), k=5)
    assert [row.analysis for row in read(database, calibration)] == [analysis, {}]
    with database.reading() as session:
        served = served_tables(session, tenant_of(database), calibration.id)
    assert [row.analysis for row in served] == [analysis, {}]


def test_curves_are_read_where_they_are_asked_for_and_never_by_accident(database):
    calibration = queue_calibration(database)
    curves = {"risk_coverage": {"coverage": [0.5, 1.0], "risk": [0.0, 0.25]}}
    keep(database, calibration, table_of(), curves=curves)
    keep(database, calibration, table_of(), k=5)
    found = read(database, calibration, with_curves=True)
    assert [row.curves for row in found] == [curves, {}]
    with database.reading() as session:
        tenant_id = tenant_of(database)
        cheap = [
            *served_tables(session, tenant_id, calibration.id),
            *tables_of(session, tenant_id, calibration.id),
        ]
        for row in cheap:
            with pytest.raises(InvalidRequestError, match="raiseload"):
                _ = row.curves


@pytest.mark.parametrize("column", ["analysis", "curves"])
def test_numbers_that_json_does_not_know_are_refused(database, column):
    calibration = queue_calibration(database)
    with pytest.raises((ValueError, StatementError), match="JSON"):
        keep(database, calibration, table_of(), **{column: {"auroc": math.nan}})
    assert list(read(database, calibration)) == []


def test_another_tenant_reads_no_tables(database):
    calibration = queue_calibration(database)
    keep(database, calibration, table_of())
    other = add_tenant(database, "other")
    with database.reading() as session:
        assert list(tables_of(session, other, calibration.id)) == []
        assert list(served_tables(session, other, calibration.id)) == []


def test_one_table_serves_an_event(database):
    calibration = queue_calibration(database)
    keep(database, calibration, table_of(), measure="margin")
    keep(database, calibration, table_of(), measure="entropy", served=False)
    with pytest.raises(IntegrityError):
        keep(database, calibration, table_of(), measure="neg_log_pmax")


def test_the_bins_of_a_table_belong_to_its_tenant(database):
    calibration = queue_calibration(database)
    table_id = keep(database, calibration, table_of())
    other = add_tenant(database, "other")
    stray = models.Bin(
        tenant_id=other,
        bin_table_id=table_id,
        index=7,
        count=1,
        hits=1,
        probability=0.5,
        interval_lower=0.0,
        interval_upper=1.0,
        odds_ratio=1.0,
    )
    with pytest.raises(IntegrityError), database.session() as session:
        session.add(stray)

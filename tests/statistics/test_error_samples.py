"""Likely wrong labels, the most confident errors, and the samples that are kept."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sample_strategies import records_with_ranks, simulated_records

from howsure.statistics.bins.fit import fit_bin_table
from howsure.statistics.error_samples import (
    choose_rows_to_keep,
    mislabelled_candidates,
    most_confident_errors,
)

COLUMN = "neg_log_pmax"


def table_of(records, k=1, n_bins=4):
    return fit_bin_table(records.uncertainty[COLUMN], records.hits(k), n_bins=n_bins)


@pytest.mark.parametrize("sign", [1, -1], ids=["errors-uncertain", "errors-certain"])
def test_order_is_by_leave_one_out_posterior_then_by_uncertainty(sign):
    """Samples of another set are not left out."""
    records = simulated_records(200, seed=4)
    values = records.uncertainty[COLUMN]
    values *= sign
    table = table_of(records)
    found = mislabelled_candidates(records, 1, COLUMN, table, n=1000)
    assert sorted(one.index for one in found) == np.flatnonzero(~records.hits(1)).tolist()
    keys = [(-one.posterior, one.uncertainty) for one in found]
    assert keys == sorted(keys)
    bins = table.look_up(values).bin
    for one in found:
        hits, count = table.hits[bins[one.index]], table.counts[bins[one.index]]
        assert one.posterior == pytest.approx((hits + table.prior.accuracy) / count)
        classes = records.label[one.index], records.top_classes[one.index, 0]
        assert (one.label, one.predicted, one.uncertainty) == (*classes, values[one.index])
    for one in mislabelled_candidates(records, 1, COLUMN, table, n=5, leave_one_out=False):
        assert one.posterior == table.probability[bins[one.index]]


def test_equals_come_by_tie_key_and_events_have_errors_of_their_own() -> None:
    records = records_with_ranks([1] * 30 + [0] * 5 + [2] * 5, top_k=(1, 2))
    records.uncertainty[COLUMN][:] = 0.5
    likely = mislabelled_candidates(records, 1, COLUMN, table_of(records), n=40)
    for indices in ([one.index for one in likely], most_confident_errors(records, 1, COLUMN, n=40)):
        keys = records.tie_key[indices].tolist()
        assert keys == sorted(keys)
        assert len(keys) == 35
    assert sorted(most_confident_errors(records, 2, COLUMN, n=40)) == list(range(35, 40))
    found = mislabelled_candidates(records, 2, COLUMN, table_of(records, k=2, n_bins=2), n=10)
    assert {one.index for one in found} == set(range(35, 40))


RECORDS = [simulated_records(size, seed=size) for size in (1, 20, 90, 300)]


@given(records=st.sampled_from(RECORDS), n=st.integers(0, 400))
def test_suspects_certain_errors_and_others_ascending(records, n) -> None:
    table, keys = table_of(records), records.tie_key
    kept = choose_rows_to_keep(records, 1, COLUMN, table, n=n)
    assert kept.dtype == np.int64
    assert len(kept) == min(n, records.n_samples)
    assert (np.diff(kept) > 0).all()
    suspects = mislabelled_candidates(records, 1, COLUMN, table, n=n // 3)
    misses = np.flatnonzero(~records.hits(1)).tolist()
    certain = sorted(misses, key=lambda i: (records.uncertainty[COLUMN][i], keys[i]))
    expected = {one.index for one in suspects} | set(certain[: n // 3])
    others = sorted(set(range(records.n_samples)) - expected, key=lambda i: keys[i])
    assert set(kept.tolist()) == expected | set(others[: n - len(expected)])

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
    records = simulated_records(200, seed=4)
    records.uncertainty[COLUMN][:] *= sign
    table = table_of(records)
    found = mislabelled_candidates(records, 1, COLUMN, table, n=1000)

    misses = np.flatnonzero(~records.hits(1))
    assert sorted(candidate.index for candidate in found) == misses.tolist()
    keys = [(-candidate.posterior, candidate.uncertainty) for candidate in found]
    assert keys == sorted(keys)
    for candidate in found:
        bin_ = table.look_up(records.uncertainty[COLUMN][[candidate.index]]).bin[0]
        others = table.counts[bin_] - 1
        accuracy = table.prior.accuracy
        assert candidate.posterior == pytest.approx((table.hits[bin_] + accuracy) / (others + 1))
        assert candidate.label == records.label[candidate.index]
        assert candidate.predicted == records.top_classes[candidate.index, 0]
        assert candidate.uncertainty == records.uncertainty[COLUMN][candidate.index]


def test_samples_of_another_set_are_not_left_out():
    records = simulated_records(200, seed=4)
    table = table_of(records)
    found = mislabelled_candidates(records, 1, COLUMN, table, n=5, leave_one_out=False)

    for candidate in found:
        bin_ = table.look_up(records.uncertainty[COLUMN][[candidate.index]]).bin[0]
        assert candidate.posterior == table.probability[bin_]


def test_candidates_of_an_event_are_its_own_misses():
    records = records_with_ranks([0, 1, 2, 3, 0, 0, 1, 0], top_k=(1, 2))
    table = table_of(records, k=2, n_bins=2)

    found = mislabelled_candidates(records, 2, COLUMN, table, n=10)
    assert {candidate.index for candidate in found} == {2, 3}


def test_equals_come_by_tie_key():
    records = records_with_ranks([1] * 30)
    records.uncertainty[COLUMN][:] = 0.5
    found = mislabelled_candidates(records, 1, COLUMN, table_of(records), n=30)

    assert [candidate.index for candidate in found] == np.argsort(records.tie_key).tolist()


def test_equals_come_by_tie_key_and_events_have_errors_of_their_own() -> None:
    records = records_with_ranks([1] * 30 + [0] * 5 + [2] * 5, top_k=(1, 2))
    records.uncertainty[COLUMN][:] = 0.5
    keys = records.tie_key[most_confident_errors(records, 1, COLUMN, n=40)].tolist()
    assert keys == sorted(keys)
    assert len(keys) == 35
    assert sorted(most_confident_errors(records, 2, COLUMN, n=40)) == list(range(35, 40))


RECORDS = [simulated_records(size, seed=size) for size in (1, 20, 90, 300)]


@given(records=st.sampled_from(RECORDS), n=st.integers(0, 400), k=st.just(1))
def test_suspects_certain_errors_and_others_ascending(records, n, k) -> None:
    table = table_of(records, k)
    kept = choose_rows_to_keep(records, k, COLUMN, table, n=n)

    assert kept.dtype == np.int64
    assert len(kept) == min(n, records.n_samples)
    assert (np.diff(kept) > 0).all()
    chosen = set(kept.tolist())
    assert chosen <= set(range(records.n_samples))
    suspects = mislabelled_candidates(records, k, COLUMN, table, n=n // 3)
    expected = {found.index for found in suspects}
    misses = np.flatnonzero(~records.hits(k)).tolist()
    certain = sorted(misses, key=lambda i: (records.uncertainty[COLUMN][i], records.tie_key[i]))
    expected |= set(certain[: n // 3])
    others = [i for i in range(records.n_samples) if i not in expected]
    others.sort(key=lambda i: records.tie_key[i])
    assert chosen == expected | set(others[: n - len(expected)])

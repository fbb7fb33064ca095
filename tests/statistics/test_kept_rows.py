"""Which samples are worth keeping: suspects, the most certain errors, and others by tie key."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from score_strategies import simulated_records

from howsure.statistics.bins.fit import fit_bin_table
from howsure.statistics.error_samples import choose_rows_to_keep, mislabelled_candidates

COLUMN = "neg_log_pmax"
RECORDS = [simulated_records(size, seed=size) for size in (1, 20, 90, 300)]


def table_of(records, k):
    return fit_bin_table(records.uncertainty[COLUMN], records.hits(k), n_bins=4)


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

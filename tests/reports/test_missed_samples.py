"""Lists of samples are those of the whole set, however it is cut."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sample_strategies import simulated_records

from howsure.statistics.bins.fit import fit_bin_table
from howsure.statistics.error_samples import mislabelled_candidates, most_confident_errors
from service.reports.error_samples import MOST, find_errors

COLUMN = "neg_log_pmax"
RECORDS = simulated_records(1500, seed=8)
TABLE = fit_bin_table(RECORDS.uncertainty[COLUMN], RECORDS.hits(1), n_bins=12)


@given(cuts=st.lists(st.integers(1, 1499), unique=True, max_size=6).map(sorted))
@pytest.mark.parametrize("kind", ["mislabelled", "surest_errors"])
def test_parts_make_the_list_of_the_whole(kind, cuts) -> None:
    bounds = [0, *cuts, RECORDS.n_samples]
    parts = [RECORDS.take(np.arange(*ends)) for ends in pairwise(bounds)]
    found = find_errors(iter(parts), kind, 1, COLUMN, TABLE)
    if kind == "mislabelled":
        whole = mislabelled_candidates(RECORDS, 1, COLUMN, TABLE, n=MOST)
        expected = [candidate.index for candidate in whole]
    else:
        expected = most_confident_errors(RECORDS, 1, COLUMN, n=MOST).tolist()
    assert found.numbers.tolist() == expected
    assert found.n_errors == np.count_nonzero(~RECORDS.hits(1)) > MOST
    assert np.array_equal(found.records.tie_key, RECORDS.tie_key[expected])

"""Lists of samples are those of the whole set, however it is cut."""

import uuid
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from score_strategies import simulated_records

from service.core.bins.fit_table import fit_bin_table
from service.core.mislabelled import mislabelled_candidates
from service.core.surest_errors import surest_errors
from service.operations.missed_samples import MOST, MissedCache, find_missed

COLUMN = "neg_log_pmax"
RECORDS = simulated_records(1500, seed=8)
TABLE = fit_bin_table(RECORDS.uncertainty[COLUMN], RECORDS.hits(1), n_bins=12)


@given(cuts=st.lists(st.integers(1, 1499), unique=True, max_size=6).map(sorted))
@pytest.mark.parametrize("kind", ["mislabelled", "surest_errors"])
def test_parts_make_the_list_of_the_whole(kind, cuts) -> None:
    bounds = [0, *cuts, RECORDS.n_samples]
    parts = [RECORDS.take(np.arange(*ends)) for ends in pairwise(bounds)]
    found = find_missed(iter(parts), kind, 1, COLUMN, TABLE)
    if kind == "mislabelled":
        whole = mislabelled_candidates(RECORDS, 1, COLUMN, TABLE, n=MOST)
        expected = [candidate.index for candidate in whole]
    else:
        expected = surest_errors(RECORDS, 1, COLUMN, n=MOST).tolist()
    assert found.numbers.tolist() == expected
    assert found.n_errors == np.count_nonzero(~RECORDS.hits(1)) > MOST
    assert np.array_equal(found.records.tie_key, RECORDS.tie_key[expected])


def test_the_lists_asked_for_last_are_held() -> None:
    cache, asked = MissedCache(most=2), []
    ids = [uuid.uuid4() for _ in range(3)]

    def ask(calibration: uuid.UUID, kind="mislabelled", k=1) -> None:
        def find():
            asked.append((calibration, kind, k))
            return find_missed([RECORDS], kind, 1, COLUMN, TABLE)

        cache.get(calibration, kind, k, find)

    for calibration in (ids[0], ids[1], ids[0], ids[2], ids[0], ids[1]):
        ask(calibration)
    assert [ids.index(calibration) for calibration, _, _ in asked] == [0, 1, 2, 1]
    ask(ids[1], "surest_errors")
    ask(ids[1], k=5)
    assert len(asked) == 6

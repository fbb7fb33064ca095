import numpy as np
import pytest
from score_strategies import records_with_ranks, simulated_records

from howsure.statistics.error_samples import most_confident_errors

COLUMN = "neg_log_pmax"


@pytest.mark.parametrize("n", [0, 1, 7, 1000])
def test_errors_come_by_their_uncertainty(n: int) -> None:
    records = simulated_records(200, seed=4)
    found = most_confident_errors(records, 1, COLUMN, n=n)
    misses = np.flatnonzero(~records.hits(1))
    assert len(found) == min(n, len(misses))
    uncertainty = records.uncertainty[COLUMN][found].tolist()
    assert uncertainty == sorted(records.uncertainty[COLUMN][misses])[:n]


def test_equals_come_by_tie_key_and_events_have_errors_of_their_own() -> None:
    records = records_with_ranks([1] * 30 + [0] * 5 + [2] * 5, top_k=(1, 2))
    records.uncertainty[COLUMN][:] = 0.5
    keys = records.tie_key[most_confident_errors(records, 1, COLUMN, n=40)].tolist()
    assert keys == sorted(keys)
    assert len(keys) == 35
    assert sorted(most_confident_errors(records, 2, COLUMN, n=40)) == list(range(35, 40))

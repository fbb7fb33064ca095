"""Which sets have a column in another unit."""

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer, load_diabetes, load_wine

from howsure.statistics.column_middles import ColumnMiddles, EvenRows


def middles_of(*batches) -> ColumnMiddles:
    kept = EvenRows()
    for batch in batches:
        kept.add(batch)
    return kept.middles


def moved(known, rows) -> list[int]:
    """Return the moved columns of rows."""
    middles = middles_of(known)
    counts = middles.moved(middles_of(rows), middles.beyond(rows), len(rows))
    return np.flatnonzero(counts).tolist()


RNG = np.random.default_rng(0)
N = (2000, 1)
DRAWN = {"incomes": RNG.lognormal(10, 0.6, N), "shares": RNG.uniform(0, 100, N)}
DRAWN |= {"ages": RNG.normal(45, 12, N), "years": RNG.integers(1990, 2025, N)}


@pytest.mark.parametrize("factor", [12, 1 / 12, 100, 0.01, 1000, 0.001])
@pytest.mark.parametrize("name", DRAWN)
def test_another_unit_moves_a_column(name, factor) -> None:
    known, rows = DRAWN[name][:1000], DRAWN[name][1000:] * factor
    found = [moved(known, rows[:n]) for n in (1000, 20, 19)]
    assert found == [[0], [0], []]


@pytest.mark.parametrize("name", DRAWN)
def test_other_times_and_groups_move_no_column(name) -> None:
    known, rows = DRAWN[name][:1000], DRAWN[name][1000:]
    spread, ordered = known.std(), np.sort(rows, axis=0)
    similar = (rows, rows + spread, rows + 3 * spread, rows * 1.5, ordered[300:400], ordered[500:])
    assert not any(moved(known, other) for other in similar)


def test_constant_columns_do_not() -> None:
    rows = np.column_stack([np.ones(100), np.arange(100)])
    assert moved(rows, rows * [100, 1]) == []
    assert moved(rows, np.column_stack([np.arange(100), np.full(100, 1e6)])) == []
    assert not middles_of(np.ones((30, 2))).beyond(np.ones((30, 3))).any()


def test_columns_filled_with_zeros_do_unless_many_known_numbers_are() -> None:
    rng = np.random.default_rng(2)
    acidity, rain = rng.normal(6.5, 0.7, (1000, 1)), np.clip(rng.normal(0, 5, (1000, 1)), 0, None)
    known = np.hstack([acidity, rain, -acidity])
    assert moved(known, np.zeros((300, 3))) == [0, 2]
    few = np.where(rng.random((300, 3)) < 0.5, 0.0, known[:300])
    assert moved(known, few) == []


@pytest.mark.parametrize("table", [load_breast_cancer, load_diabetes, load_wine])
def test_new_rows_of_a_table_never_do(table) -> None:
    rows, rng = table().data, np.random.default_rng(1)
    for _ in range(20):
        order = rng.permutation(len(rows))
        assert moved(rows[order[:100]], rows[order[100:130]]) == []


@pytest.mark.parametrize("n", [1, 4096, 4097, 50_000])
def test_few_rows_are_kept_evenly_however_they_come(n) -> None:
    rows = np.column_stack([np.arange(n, dtype=np.float64), -np.arange(n, dtype=np.float64)])
    distance = next(2**i for i in range(9) if n <= 4096 * 2**i)
    expected = np.quantile(rows[::distance], (0.1, 0.9), axis=0)
    for parts in (1, 3, 700):
        found = middles_of(*np.array_split(rows, min(parts, n)))
        assert np.array_equal([found.low, found.high], expected)

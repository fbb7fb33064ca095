"""Records as arrays: their layout, their selection and the columns that passes add."""

import io
from dataclasses import replace

import numpy as np
import pytest
from sample_strategies import drawn_passes

from howsure.statistics.measures.passes import averaged_columns, slope_columns
from howsure.statistics.records.build import build_records
from howsure.statistics.records.records import Records, concatenate

N_SAMPLES = 40
LOG_P, LABELS = drawn_passes(N_SAMPLES, 12, 7)
OF_DROPOUT = averaged_columns("dropout_variance", LOG_P, LABELS)
OF_GRADIENT = slope_columns(
    "gradient_norm", np.random.default_rng(0).normal(size=(N_SAMPLES, 4)), exact=False
)
COLUMNS = replace(OF_DROPOUT, uncertainty=OF_DROPOUT.uncertainty | OF_GRADIENT.uncertainty)


def built(top_k=(1, 5)):
    keys, each = np.arange(N_SAMPLES, dtype=np.uint32), np.arange(N_SAMPLES)
    records = build_records(LOG_P[:, 0], LABELS, tie_keys=keys, top_k=top_k)
    return replace(records, weight=1.0 + each, group=each // 3)


@pytest.fixture(scope="module")
def plain():
    return built()


@pytest.fixture(scope="module")
def records(plain):
    return plain.with_passes(COLUMNS)


def same(one, other):
    arrays, others = one.to_arrays(), other.to_arrays()
    assert arrays.keys() == others.keys()
    for name, array in arrays.items():
        np.testing.assert_array_equal(array, others[name])
        assert array.dtype == others[name].dtype


def test_columns_of_passes_are_added_to_the_others_in_any_order(plain, records):
    assert records.uncertainty.keys() == plain.uncertainty.keys() | COLUMNS.uncertainty.keys()
    for family in ("uncertainty", "mean_log_probability", "mean_label_rank", "mean_log_odds"):
        for name, values in getattr(COLUMNS, family).items():
            np.testing.assert_array_equal(getattr(records, family)[name], values)
    assert plain.mean_label_rank == {}
    of_members = averaged_columns("ensemble_variance", LOG_P[:, ::-1], LABELS)
    found = plain.with_passes(OF_DROPOUT).with_passes(of_members)
    same(found, plain.with_passes(of_members).with_passes(OF_DROPOUT))


def test_records_survive_a_file_of_plain_arrays(records):
    buffer = io.BytesIO()
    np.savez(buffer, **records.to_arrays())
    buffer.seek(0)
    with np.load(buffer, allow_pickle=False) as arrays:
        same(Records.from_arrays(arrays), records)


def test_taking_joining_and_taking_back_gives_the_same_records(records):
    order = np.random.default_rng(3).permutation(N_SAMPLES)
    taken = records.take(order)
    for name, array in records.to_arrays().items():
        np.testing.assert_array_equal(taken.to_arrays()[name], array[order])
    same(concatenate([taken.take(np.arange(9)), taken.take(np.arange(9, N_SAMPLES))]), taken)
    same(taken.take(np.argsort(order)), records)
    mask = records.hits(1)
    same(records.take(mask), records.take(np.flatnonzero(mask)))


def test_parts_with_other_measures_do_not_join(plain):
    with pytest.raises(ValueError, match="same measures"):
        concatenate([plain, built(top_k=(1,))])
    with pytest.raises(ValueError, match="at least one"):
        concatenate([])


MEAN, RANK = "mean_log_probability_dropout_variance", "mean_label_rank_dropout_variance"


@pytest.mark.parametrize(("name", "change", "rule"), [
    ("label", lambda a: a.astype(np.int64), "label must be int32"),
    ("label", None, r"lack the arrays ..label"),
    ("log_sum_exp", lambda a: a[:, :-1], r"log_sum_exp must be float32 of shape \(40, 40\)"),
    ("sum_squares", lambda a: a * np.nan, "sum_squares must not hold NaN"),
    ("top_logits", lambda a: a[:, :3], r"top_logits must be float32 of shape \(40, 7\)"),
    ("uncertainty_entropy", lambda a: a * np.nan, "entropy must not hold NaN"),
    ("uncertainty_entropy", lambda a: a + np.float32(np.inf), "uncertainty must be finite"),
    (f"{MEAN}@5", lambda a: a * np.nan, "must not hold NaN"),
    (f"{MEAN}@5", lambda a: a.astype(np.float32), f"{MEAN}@5 must be float64"),
    (f"{RANK}@5", lambda a: a[:-1], r"must be int32 of shape \(40,\)"),
    (f"{RANK}@7", lambda _: np.zeros(40, np.int32), "@7'. lack one"),
    ("weight", lambda a: a * 0.0, "weight must hold positive"),
    ("mean_of_something", lambda _: np.zeros(40), "unknown .'mean_of_something'"),
])  # fmt: skip
def test_arrays_that_break_the_layout_are_refused(records, name, change, rule):
    arrays = records.to_arrays()
    array = arrays.pop(name, None)
    if change is not None:
        arrays[name] = change(array)
    with pytest.raises(ValueError, match=rule):
        Records.from_arrays(arrays)

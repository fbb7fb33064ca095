"""Columns that passes make, in the records."""

import io
from dataclasses import replace

import numpy as np
import pytest
from pass_strategies import drawn_passes

from howsure.statistics.measures.passes import averaged_columns, gradient_columns
from howsure.statistics.records.build import build_records
from howsure.statistics.records.records import Records, concatenate

N_SAMPLES = 40
LOG_P, LABELS = drawn_passes(N_SAMPLES, 12, 7)
OF_DROPOUT = averaged_columns("dropout_variance", LOG_P, LABELS)
OF_GRADIENT = gradient_columns(np.random.default_rng(0).normal(size=(N_SAMPLES, 4)), exact=False)
COLUMNS = replace(OF_DROPOUT, uncertainty=OF_DROPOUT.uncertainty | OF_GRADIENT.uncertainty)


@pytest.fixture(scope="module")
def plain():
    keys = np.arange(N_SAMPLES, dtype=np.uint32)
    return build_records(LOG_P[:, 0], LABELS, tie_keys=keys, top_k=(1, 5))


@pytest.fixture(scope="module")
def records(plain):
    return plain.with_passes(COLUMNS)


def same(one, other):
    arrays, others = one.to_arrays(), other.to_arrays()
    assert arrays.keys() == others.keys()
    for name, array in arrays.items():
        np.testing.assert_array_equal(array, others[name])
        assert array.dtype == others[name].dtype


def test_columns_are_added_to_those_there_are(plain, records):
    assert records.uncertainty.keys() == plain.uncertainty.keys() | COLUMNS.uncertainty.keys()
    for family in ("uncertainty", "mean_log_probability", "mean_label_rank"):
        for name, values in getattr(COLUMNS, family).items():
            np.testing.assert_array_equal(getattr(records, family)[name], values)
    assert plain.mean_label_rank == {}
    assert "dropout_variance" not in plain.uncertainty


def test_columns_may_be_added_in_turns(plain, records):
    of_members = averaged_columns("ensemble_variance", LOG_P[:, ::-1], LABELS)
    found = plain.with_passes(OF_DROPOUT).with_passes(of_members)
    same(found, plain.with_passes(of_members).with_passes(OF_DROPOUT))
    assert {"dropout_variance@1", "ensemble_variance@1"} <= found.mean_label_rank.keys()


def test_they_survive_a_file_of_plain_arrays(records):
    buffer = io.BytesIO()
    np.savez(buffer, **records.to_arrays())
    buffer.seek(0)
    with np.load(buffer, allow_pickle=False) as arrays:
        same(Records.from_arrays(arrays), records)
    names = records.to_arrays().keys()
    assert "uncertainty_dropout_variance@5" in names
    assert "mean_log_probability_dropout_variance@12" in names
    assert "mean_label_rank_dropout_variance@1" in names


def test_records_of_before_there_were_means_load(plain):
    arrays = {
        name: array for name, array in plain.to_arrays().items() if not name.startswith("mean_")
    }
    assert arrays.keys() == plain.to_arrays().keys()
    found = Records.from_arrays(arrays)
    assert found.mean_log_probability == found.mean_label_rank == {}


def test_they_are_taken_and_joined_with_the_rest(records):
    order = np.random.default_rng(3).permutation(N_SAMPLES)
    taken = records.take(order)
    for family in ("uncertainty", "mean_log_probability", "mean_label_rank"):
        for name, values in getattr(records, family).items():
            np.testing.assert_array_equal(getattr(taken, family)[name], values[order])
    same(concatenate([taken.take(np.arange(9)), taken.take(np.arange(9, N_SAMPLES))]), taken)
    same(taken.take(np.argsort(order)), records)


@pytest.mark.parametrize(
    ("name", "change", "rule"),
    [
        ("mean_log_probability_dropout_variance@5", lambda a: a * np.nan, "must not hold NaN"),
        (
            "mean_log_probability_dropout_variance@5",
            lambda a: a.astype(np.float32),
            "mean_log_probability_dropout_variance@5 must be float64",
        ),
        ("mean_label_rank_dropout_variance@5", lambda a: a[:-1], r"must be int32 of shape \(40,\)"),
        ("mean_label_rank_dropout_variance@7", lambda _: np.zeros(40, np.int32), "@7'. lack one"),
        ("uncertainty_dropout_variance@5", lambda a: a * np.nan, "must not hold NaN"),
        ("mean_of_something", lambda _: np.zeros(40), "unknown .'mean_of_something'"),
    ],
)
def test_columns_that_break_the_layout_are_refused(records, name, change, rule):
    arrays = records.to_arrays()
    arrays[name] = change(arrays.get(name))
    with pytest.raises(ValueError, match=rule):
        Records.from_arrays(arrays)

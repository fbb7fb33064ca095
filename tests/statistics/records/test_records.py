import numpy as np
import pytest

from howsure.statistics.records.build import build_records
from howsure.statistics.records.records import Records, concatenate

RNG = np.random.default_rng(9)
LOGITS = RNG.normal(scale=3, size=(40, 7))
LABELS = RNG.integers(0, 7, size=40)
KEYS = np.arange(40, dtype=np.uint32)


@pytest.fixture(scope="module")
def records():
    return build_records(LOGITS, LABELS, tie_keys=KEYS, top_k=(1, 5))


def same(one, other):
    assert one.to_arrays().keys() == other.to_arrays().keys()
    for name, array in one.to_arrays().items():
        np.testing.assert_array_equal(array, other.to_arrays()[name])
        assert array.dtype == other.to_arrays()[name].dtype


def test_a_record_is_a_few_hundred_bytes(records):
    size = sum(array.nbytes for array in records.to_arrays().values()) / records.n_samples
    assert size < 400


def test_taking_by_mask_and_by_position_agree(records):
    mask = records.hits(1)
    same(records.take(mask), records.take(np.flatnonzero(mask)))
    assert records.take(mask).hits(1).all()


def test_parts_with_other_measures_do_not_join(records):
    other = build_records(LOGITS, LABELS, tie_keys=KEYS, top_k=(1,))
    with pytest.raises(ValueError, match="same measures"):
        concatenate([records, other])
    with pytest.raises(ValueError, match="at least one"):
        concatenate([])


@pytest.mark.parametrize(
    ("name", "change", "rule"),
    [
        ("label", lambda a: a.astype(np.int64), "label must be int32"),
        ("log_sum_exp", lambda a: a[:, :-1], r"log_sum_exp must be float32 of shape \(40, 24\)"),
        ("sum_squares", lambda a: a * np.nan, "sum_squares must not hold NaN"),
        ("top_logits", lambda a: a[:, :3], r"top_logits must be float32 of shape \(40, 5\)"),
        ("uncertainty_entropy", lambda a: a * np.nan, "entropy must not hold NaN"),
        ("uncertainty_entropy", lambda a: a + np.float32(np.inf), "uncertainty must be finite"),
    ],
)
def test_arrays_that_break_the_layout_are_refused(records, name, change, rule):
    arrays = records.to_arrays()
    arrays[name] = change(arrays.get(name))
    with pytest.raises(ValueError, match=rule):
        Records.from_arrays(arrays)


def test_a_missing_array_is_named(records):
    arrays = records.to_arrays()
    del arrays["label"]
    with pytest.raises(ValueError, match=r"lack the arrays ..label"):
        Records.from_arrays(arrays)

import hashlib

import numpy as np
import pytest

from howsure.statistics.records.order import tie_keys

ROWS = np.random.default_rng(3).normal(size=(200, 3, 2)).astype(np.float32)


def test_a_key_is_the_keyed_hash_of_the_bytes_of_a_row():
    expected = hashlib.blake2b(ROWS[7].tobytes(), digest_size=4, key=(5).to_bytes(8, "little"))
    assert tie_keys(ROWS, 5)[7] == int.from_bytes(expected.digest(), "little")
    assert tie_keys(ROWS, 5).dtype == np.uint32


def test_keys_follow_their_samples_through_any_order_and_shard():
    order = np.random.default_rng(0).permutation(len(ROWS))
    np.testing.assert_array_equal(tie_keys(ROWS[order], 1), tie_keys(ROWS, 1)[order])
    np.testing.assert_array_equal(tie_keys(ROWS[50:60], 1), tie_keys(ROWS, 1)[50:60])


def test_layout_and_byte_order_do_not_show():
    np.testing.assert_array_equal(tie_keys(np.asfortranarray(ROWS), 1), tie_keys(ROWS, 1))
    np.testing.assert_array_equal(tie_keys(ROWS.astype(">f4"), 1), tie_keys(ROWS, 1))


def test_identical_samples_share_a_key_and_others_do_not():
    keys = tie_keys(np.concatenate([ROWS, ROWS[:1]]), 0)
    assert keys[-1] == keys[0]
    assert len(np.unique(keys)) == len(ROWS)


def test_no_rows_have_no_keys_and_scalar_rows_have_some():
    assert tie_keys(np.empty((0, 4)), 0).shape == (0,)
    assert len(np.unique(tie_keys(np.arange(9), 0))) == 9


@pytest.mark.parametrize("seed", [-1, 2**64])
def test_a_seed_out_of_range_is_refused(seed):
    with pytest.raises(ValueError, match="seed must lie"):
        tie_keys(ROWS, seed)


@pytest.mark.parametrize("rows", [np.array(1.0), np.array([None, "a"], dtype=object)])
def test_what_has_no_rows_of_numbers_is_refused(rows):
    with pytest.raises(ValueError, match="rows must be"):
        tie_keys(rows, 0)

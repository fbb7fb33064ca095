"""Damaged .npz archives: refused at their place, without the memory they ask for.

Archives that lie are in tests/hostile/data.
"""

import zipfile

import numpy as np
import pytest
from dataset_files import check_mutations, read_all, refusal, write_members, write_npz
from running_service import npy

LABELS = np.arange(20) % 4
INPUTS = np.arange(60, dtype=np.float32).reshape(20, 3)
GOOD = {"inputs.npy": npy(INPUTS), "labels.npy": npy(LABELS)}


OTHER_NAMES = [
    *("../inputs.npy", "/etc/inputs.npy", "a/../../b.npy", "a//b.npy", "./a.npy", ".npy"),
    *("..\\inputs.npy", "a\x1b[31m.npy", "a\n.npy", "inputs", "inner.npz", "readme.txt"),
    *("folder/", "x" * 300 + ".npy"),
]


@pytest.mark.parametrize("name", OTHER_NAMES)
def test_members_are_arrays_with_plain_names(path, name):
    error = refusal(write_members(path, GOOD | {name: npy(INPUTS)}))
    assert error.violations[0].location == "calibration"
    assert error.message.isprintable()
    assert len(error.message) < 400


def test_extended_archives_are_refused(path):
    data = write_npz(path, inputs=INPUTS, labels=LABELS).read_bytes()
    for longer in (data + b"\0", data[:4] + data, data + data[-22:], data + data):
        path.write_bytes(longer)
        assert refusal(path).violations[0].location.startswith("calibration")


def test_archives_beyond_four_gibibytes_are_read(path, monkeypatch):
    """Python writes the end records of such an archive when the limit says it is one."""
    monkeypatch.setattr(zipfile, "ZIP64_LIMIT", 300)
    write_npz(path, inputs=INPUTS, labels=LABELS)
    monkeypatch.undo()
    assert b"PK\x06\x06" in path.read_bytes()
    np.testing.assert_array_equal(read_all(path)[0]["inputs"], INPUTS)


@pytest.mark.parametrize("compressed", [False, True])
def test_what_is_read_of_a_changed_archive_is_what_was_written(path, *, compressed):
    """Checksums cover the arrays."""

    def check(arrays, labels):
        np.testing.assert_array_equal(labels, LABELS)
        np.testing.assert_array_equal(*arrays.values(), INPUTS)

    arrays = {"inputs": INPUTS, "labels": LABELS, "uncertainty_human": np.ones(20)}
    write_npz(path, compressed=compressed, **arrays)
    check_mutations(path, step=13, times=150, check=check)

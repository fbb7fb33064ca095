"""Damaged .npz archives: refused at their place, without the memory they ask for.

Archives that lie are in tests/hostile/data.
"""

import io
import tempfile
import zipfile
from pathlib import Path

import numpy as np
import pytest
from dataset_files import npy_bytes, read_all, refusal, write_members, write_npz
from hypothesis import given, settings
from hypothesis import strategies as st

from service.errors import InvalidInput

LABELS = np.arange(20) % 4
INPUTS = np.arange(60, dtype=np.float32).reshape(20, 3)
GOOD = {"inputs.npy": npy_bytes(INPUTS), "labels.npy": npy_bytes(LABELS)}


@pytest.mark.parametrize(
    "name",
    [
        *("../inputs.npy", "/etc/inputs.npy", "a/../../b.npy", "a//b.npy", "./a.npy", ".npy"),
        *("..\\inputs.npy", "a\x1b[31m.npy", "a\n.npy", "inputs", "inner.npz", "readme.txt"),
        *("folder/", "x" * 300 + ".npy"),
    ],
)
def test_members_are_arrays_with_plain_names(path, name):
    error = refusal(write_members(path, GOOD | {name: npy_bytes(INPUTS)}))
    assert error.violations[0].location == "calibration"
    assert error.message.isprintable()
    assert len(error.message) < 400


def test_a_flipped_bit_is_found_by_the_checksum(path):
    for compressed in (False, True):
        write_npz(path, compressed=compressed, inputs=INPUTS, labels=LABELS)
        with zipfile.ZipFile(path) as archive:
            info = archive.getinfo("inputs.npy")
        data = bytearray(path.read_bytes())
        data[info.header_offset + 50 + len("inputs.npy") + info.compress_size - 12] ^= 1
        path.write_bytes(data)
        assert refusal(path).violations[0].location == "calibration.inputs"


def test_truncated_and_extended_archives_are_refused(path):
    data = write_npz(path, inputs=INPUTS, labels=LABELS).read_bytes()
    more = [data + b"\0", data[:4] + data, data + data[-22:], data + data]
    for odd in [*(data[:size] for size in range(1, len(data), 13)), *more]:
        path.write_bytes(odd)
        assert refusal(path).violations[0].location.startswith("calibration")


def test_archives_beyond_four_gibibytes_are_read(path, monkeypatch):
    """Python writes the end records of such an archive when the limit says it is one."""
    monkeypatch.setattr(zipfile, "ZIP64_LIMIT", 300)
    write_npz(path, inputs=INPUTS, labels=LABELS)
    monkeypatch.undo()
    assert b"PK\x06\x06" in path.read_bytes()
    np.testing.assert_array_equal(read_all(path)[0]["inputs"], INPUTS)


def mutated(data: bytearray, edits: list[tuple[float, str, bytes]]) -> bytearray:
    for position, edit, value in edits:
        at = int(position * len(data))
        if edit == "set":
            data[at : at + len(value)] = value
        elif edit == "insert":
            data[at:at] = value
        elif edit == "delete":
            del data[at : at + len(value)]
        else:
            data[at:at] = data[: at // 2]
    return data


EDIT = st.tuples(
    st.floats(0, 1, exclude_max=True),
    st.sampled_from(["set", "insert", "delete", "copy"]),
    st.binary(min_size=1, max_size=8),
)


@settings(deadline=None, max_examples=300)
@given(compressed=st.booleans(), edits=st.lists(EDIT, min_size=1, max_size=4))
def test_a_mutated_archive_is_read_or_refused(*, compressed, edits):
    buffer = io.BytesIO()
    save = np.savez_compressed if compressed else np.savez
    save(buffer, inputs=INPUTS, labels=LABELS, uncertainty_human=np.ones(20))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "set.npz"
        path.write_bytes(mutated(bytearray(buffer.getvalue()), edits))
        try:
            arrays, labels = read_all(path)
        except InvalidInput:
            return
    # Checksums cover the arrays: what is read is what was written.
    np.testing.assert_array_equal(labels, LABELS)
    (found,) = arrays.values()
    np.testing.assert_array_equal(found, INPUTS)

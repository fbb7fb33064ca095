"""Archives made to harm: refused, quickly, without the memory they ask for."""

import io
import resource
import struct
import tempfile
import zipfile
from pathlib import Path

import numpy as np
import pytest
from dataset_files import npy_bytes, npy_claim, patched, read_all, refusal, write_members, write_npz
from hypothesis import given, settings
from hypothesis import strategies as st
from memory import peak_of

from service.child.reading.numpy_files import MAX_DIRECTORY_BYTES
from service.errors import InvalidInput, TooLarge

LABELS = np.arange(20) % 4
INPUTS = np.arange(60, dtype=np.float32).reshape(20, 3)
GOOD = {"inputs.npy": npy_bytes(INPUTS), "labels.npy": npy_bytes(LABELS)}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "set.npz"


@pytest.mark.parametrize(
    "name",
    [
        "../inputs.npy",
        "/etc/inputs.npy",
        "a/../../b.npy",
        "a//b.npy",
        "./a.npy",
        "..\\inputs.npy",
        "a\x1b[31m.npy",
        "a\n.npy",
        ".npy",
        "inputs",
        "inner.npz",
        "readme.txt",
        "folder/",
        "x" * 300 + ".npy",
    ],
)
def test_members_are_arrays_with_plain_names(path: Path, name: str) -> None:
    error = refusal(write_members(path, GOOD | {name: npy_bytes(INPUTS)}))
    assert error.violations[0].location == "calibration"
    assert error.message.isprintable()
    assert len(error.message) < 400


def test_a_name_is_not_cut_at_a_null(path: Path) -> None:
    write_members(path, {"inputs.npy~": npy_bytes(INPUTS), "labels.npy": npy_bytes(LABELS)})
    path.write_bytes(path.read_bytes().replace(b"inputs.npy~", b"inputs.npy\0"))
    assert refusal(path).violations[0].location == "calibration"


def test_a_member_stands_once(path: Path) -> None:
    with pytest.warns(UserWarning, match="Duplicate name"):
        write_members(path, [*GOOD.items(), ("labels.npy", npy_bytes(LABELS * 0))])
    error = refusal(path)
    assert error.violations[0].location == "calibration.labels"
    assert "twice" in error.message


@pytest.mark.parametrize("compression", [zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_other_compressions_are_refused(path: Path, compression: int) -> None:
    assert "deflated" in refusal(write_members(path, GOOD, compression)).message


@pytest.mark.parametrize("flag", [0x1, 0x20, 0x40])
def test_encrypted_members_are_refused(path: Path, flag: int) -> None:
    write_members(path, GOOD)
    data = bytearray(path.read_bytes())
    data[data.rindex(b"PK\x01\x02") + 8] |= flag
    path.write_bytes(data)
    error = refusal(path)
    assert error.violations[0].location == "calibration.labels"
    assert "encryption" in error.message


@pytest.mark.parametrize("compressed", [False, True])
def test_a_flipped_bit_is_found_by_the_checksum(path: Path, *, compressed: bool) -> None:
    write_npz(path, compressed=compressed, inputs=INPUTS, labels=LABELS)
    with zipfile.ZipFile(path) as archive:
        info = archive.getinfo("inputs.npy")
    data = bytearray(path.read_bytes())
    data[info.header_offset + 30 + len("inputs.npy") + 20 + info.compress_size - 12] ^= 1
    path.write_bytes(data)
    error = refusal(path)
    assert error.violations[0].location == "calibration.inputs"


def test_every_truncation_is_refused(path: Path) -> None:
    write_npz(path, inputs=INPUTS, labels=LABELS)
    data = path.read_bytes()
    for size in range(1, len(data), 13):
        path.write_bytes(data[:size])
        refusal(path)


def test_bytes_around_the_archive_are_refused(path: Path) -> None:
    write_npz(path, inputs=INPUTS, labels=LABELS)
    data = path.read_bytes()
    for odd in (data + b"\0", data[:4] + data, data + data[-22:], data + data):
        path.write_bytes(odd)
        error = refusal(path)
        assert error.violations[0].location == "calibration"


def test_members_that_share_bytes_are_refused(path: Path) -> None:
    """A bomb of overlapping members inflates the same bytes under many names."""
    write_members(path, GOOD | {"labels2.npy": GOOD["labels.npy"]})
    data = bytearray(path.read_bytes())
    last = data.rindex(b"PK\x01\x02")
    before = data.rindex(b"PK\x01\x02", 0, last)
    data[last + 42 : last + 46] = data[before + 42 : before + 46]
    path.write_bytes(data)
    error = refusal(path)
    assert error.violations[0].location.startswith("calibration.labels")
    assert "shares bytes" in error.message


def test_a_member_quoted_inside_another_is_refused(path: Path) -> None:
    inner = path.with_name("inner.zip")
    write_members(inner, {"labels.npy": GOOD["labels.npy"]})
    quoted = inner.read_bytes()
    # The directory entry of `labels` points into the stored bytes of `padding`.
    write_members(path, {"inputs.npy": GOOD["inputs.npy"], "padding.npy": quoted} | GOOD)
    data = bytearray(path.read_bytes())
    offset = data.index(quoted)
    entry = data.rindex(b"PK\x01\x02")
    data[entry + 42 : entry + 46] = struct.pack("<L", offset)
    path.write_bytes(data)
    assert "shares bytes" in refusal(path).message


def test_a_bomb_is_refused_by_what_it_claims(path: Path) -> None:
    zeros = npy_claim("<f4", (20, 3), values=bytes(50_000_000))
    write_members(path, GOOD | {"inputs.npy": zeros}, zipfile.ZIP_DEFLATED)
    error = refusal(path)
    assert error.violations[0].location == "calibration.inputs"


def test_a_bomb_that_lies_about_its_size_yields_no_more_than_it_claims(path: Path) -> None:
    """The directory claims 20 rows, the deflated stream goes on for 50 MB."""
    honest = npy_bytes(INPUTS)
    write_members(path, GOOD | {"inputs.npy": honest + bytes(50_000_000)}, zipfile.ZIP_DEFLATED)
    real = struct.pack("<L", len(honest) + 50_000_000)
    patched(path, real, struct.pack("<L", len(honest)), last=True)
    error = refusal(path)
    assert error.violations[0].location == "calibration.inputs"
    assert peak_of(lambda: refusal(path)) < 5_000_000


def test_a_directory_of_a_million_members_is_never_built(path: Path) -> None:
    entry = b"PK\x01\x02" + bytes(42)
    directory = entry * 1_000_000
    end = struct.pack("<4s4H2LH", b"PK\x05\x06", 0, 0, 0, 0, len(directory), 4, 0)
    path.write_bytes(b"PK\x03\x04" + directory + end)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    error = refusal(path)
    assert type(error) is TooLarge
    assert str(MAX_DIRECTORY_BYTES) in error.message
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 60_000


def test_archives_beyond_four_gibibytes_are_read(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Python writes the end records of such an archive when the limit says it is one."""
    monkeypatch.setattr(zipfile, "ZIP64_LIMIT", 300)
    write_npz(path, inputs=INPUTS, labels=LABELS)
    monkeypatch.undo()
    assert b"PK\x06\x06" in path.read_bytes()
    np.testing.assert_array_equal(read_all(path)[0]["inputs"], INPUTS)


def test_an_empty_archive_has_no_labels(path: Path) -> None:
    write_members(path, {})
    assert refusal(path).violations[0].location == "calibration.labels"


@settings(deadline=None, max_examples=300)
@given(
    compressed=st.booleans(),
    edits=st.lists(
        st.tuples(
            st.floats(0, 1, exclude_max=True),
            st.sampled_from(["set", "insert", "delete", "copy"]),
            st.binary(min_size=1, max_size=8),
        ),
        min_size=1,
        max_size=4,
    ),
)
def test_a_mutated_archive_is_read_or_refused(
    *, compressed: bool, edits: list[tuple[float, str, bytes]]
) -> None:
    buffer = io.BytesIO()
    save = np.savez_compressed if compressed else np.savez
    save(buffer, inputs=INPUTS, labels=LABELS, uncertainty_human=np.ones(20))
    data = bytearray(buffer.getvalue())
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
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "set.npz"
        path.write_bytes(data)
        try:
            arrays, labels = read_all(path)
        except InvalidInput:
            return
    # Checksums cover the arrays: what is read is what was written.
    np.testing.assert_array_equal(labels, LABELS)
    (found,) = arrays.values()
    np.testing.assert_array_equal(found, INPUTS)

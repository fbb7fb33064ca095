"""Array headers that claim what is not so: refused without the memory they ask for."""

import io
import pickle
import struct
from pathlib import Path

import numpy as np
import pytest
from dataset_files import npy_bytes, npy_claim, npy_header, refusal, write_members, write_npz
from memory import peak_of

from service.errors import InvalidDataset

LABELS = np.arange(20) % 4
INPUTS = np.arange(60, dtype=np.float32).reshape(20, 3)
GOOD = {"inputs.npy": npy_bytes(INPUTS), "labels.npy": npy_bytes(LABELS)}


class Trap:
    """Calls back when it is unpickled."""

    def __reduce__(self) -> tuple[object, ...]:
        return (pytest.fail, ("unpickled",))


PICKLED = pickle.dumps(Trap())
CLAIMS = {
    "2**50 rows": npy_claim("<f4", (2**50, 3)),
    "rows beyond 64 bits": npy_claim("<f4", (2**70, 3)),
    "bytes beyond 64 bits": npy_claim("<f8", (2**33, 2**33)),
    "more rows than it holds": npy_claim("<f4", (20, 3), values=b"\0" * 239),
    "fewer rows than it holds": npy_claim("<f4", (20, 3), values=b"\0" * 241),
    "2**60 rows of nothing": npy_claim("<f4", (2**60, 0)),
    "negative length": npy_claim("<f4", (-20, 3)),
    "boolean length": npy_claim("<f4", (True, 20)),
    "length as float": npy_claim("<f4", (20.0, 3)),
    "shape no tuple": npy_claim("<f4", [20, 3]),
    "200 axes": npy_claim("<f4", (20,) + (1,) * 200, values=b"\0" * 80),
    "object with a pickle": npy_claim("|O", (20,), values=PICKLED),
    "pickle for an array": PICKLED,
    "void of no bytes": npy_claim("|V0", (20, 2**58)),
    "wide text": npy_claim("<U1000000000", (20,)),
    "unknown dtype": npy_claim("<q9", (20, 3)),
    "dtype of no bytes": npy_claim("<f0", (20, 3)),
    "dtype list": npy_claim(["<f4"], (20, 3)),
    "dtype number": npy_claim(7, (20, 3)),
    "code for a header": npy_header(b"__import__('os').system('true')"),
    "call in a header": npy_header(b"{'descr': str(4), 'fortran_order': False, 'shape': (20, 3)}"),
    "9000 brackets": npy_header(b"[" * 9000),
    "9000 signs": npy_header(b"-" * 9000 + b"1"),
    "missing key": npy_header(b"{'descr': '<f4', 'shape': (20, 3)}"),
    "extra key": npy_header(b"{'descr': '<f4', 'fortran_order': False, 'shape': (20,), 'x': 1}"),
    "header no text": npy_header(b"\xff\0\xfe"),
    "header too long": npy_header(
        b"{'descr': '<f4', 'fortran_order': False, 'shape': (20, 3)}" + b" " * 20_000
    )
    + bytes(240),
    "header longer than the file": b"\x93NUMPY\x02\x00" + struct.pack("<L", 2**32 - 1) + b"{",
    "version 9": b"\x93NUMPY\x09\x00" + npy_bytes(INPUTS)[8:],
    "zip for an array": None,
    "empty": b"",
    "magic alone": b"\x93NUMPY",
}


@pytest.mark.parametrize("array", ["inputs", "labels"])
@pytest.mark.parametrize("case", CLAIMS)
def test_a_header_is_a_claim(tmp_path: Path, case: str, array: str) -> None:
    data = CLAIMS[case]
    if data is None:
        buffer = io.BytesIO()
        np.savez(buffer, x=INPUTS)
        data = buffer.getvalue()
    path = write_members(tmp_path / "set.npz", GOOD | {f"{array}.npy": data})
    error = refusal(path)
    assert type(error) is InvalidDataset
    assert error.violations[0].location == f"calibration.{array}"
    assert peak_of(lambda: refusal(path)) < 3_000_000


@pytest.mark.parametrize(
    ("inputs", "message"),
    [
        (np.asfortranarray(INPUTS), "np.ascontiguousarray"),
        (INPUTS.astype(str), "got text"),
        (INPUTS.astype(bytes), "got text"),
        (np.array([[object()] * 3] * 20), "never unpickled"),
        (INPUTS.astype(complex), "got complex numbers"),
        (np.zeros(20, [("a", "f4"), ("b", "i4")]), "got records"),
        (np.zeros((20, 1), "M8[s]"), "got dates"),
        (np.zeros((20, 1), "m8[s]"), "got dates"),
        (np.zeros((20, 1), "V2"), ".astype('float32')"),
        (INPUTS.astype(np.longdouble), "got long doubles"),
        (np.float32(1), "got a scalar"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_arrays_that_are_no_plain_numbers_are_refused(
    tmp_path: Path, inputs: np.ndarray, message: str
) -> None:
    error = refusal(write_npz(tmp_path / "set.npz", inputs=inputs, labels=LABELS))
    assert type(error) is InvalidDataset
    assert error.violations[0].location == "calibration.inputs"
    assert message in error.message

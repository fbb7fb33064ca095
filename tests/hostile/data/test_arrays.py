"""Arrays that are programs, and headers of arrays that claim what is not there."""

import pickle
import tempfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from dataset_files import npy_claim, npy_header, refusal
from hostile_archives import N_ROWS as ROWS
from hostile_archives import Member, array_archive, zip_file
from hostile_case import TOO_LARGE, UNREAD, HostileCase, body_case, set_case
from own_process import peak_of
from running_service import npy

WRITTEN = Path(tempfile.gettempdir(), "howsure-hostile-pickle")


class Command:
    """What a pickle of it does when it is loaded."""

    def __reduce__(self) -> tuple:
        return (open, (str(WRITTEN), "w"))


def objects() -> bytes:
    return npy(np.array([Command()] * ROWS, dtype=object))


def records() -> bytes:
    return npy(np.array([(1, Command())] * ROWS, dtype=[("number", "<i8"), ("anything", "O")]))


def torch_file() -> bytes:
    """Return what torch.save writes: a zip archive of a pickle and the bytes of its tensors."""
    members = {"archive/data.pkl": pickle.dumps(Command()), "archive/data/0": bytes(64)}
    return zip_file([Member(name, content) for name, content in members.items()])


def set_with(name: str, build: Callable[[], bytes]) -> Callable[[], bytes]:
    """Return an .npz archive of labels and of inputs, one of which is these bytes."""
    return lambda: array_archive(Member(f"{name}.npy", build()))


PROGRAMS = [
    # Text, as far as anybody can tell.
    set_case("pickle_protocol_0", lambda: pickle.dumps(Command(), protocol=0)),
    set_case("torch", torch_file, UNREAD, "PyTorch"),
    set_case("npy_of_objects", objects),
    set_case("records", set_with("inputs", records), says="calibration.inputs"),
    set_case("bare_pickle", set_with("inputs", lambda: pickle.dumps(Command()))),
    body_case("body_of_objects", objects, kind="application/x-npy"),
    body_case(
        "member_of_records", lambda: zip_file([Member("image.npy", records())]), says="body.image"
    ),
]
KEYS = b"'descr': '<f4', 'fortran_order': False, 'shape': "
LIES = {
    "of_2_to_the_50": lambda: npy_claim("<f4", (2**50,), values=bytes(64)),
    "of_rows_of_2_to_the_50": lambda: npy_claim("<f4", (ROWS, 2**50), values=bytes(64)),
    "that_overflow": lambda: npy_claim("<f8", (2**62, 2**62), values=bytes(64)),
    "beyond_64_bits": lambda: npy_claim("<f4", (2**70, 3)),
    "of_more_rows_than_it_holds": lambda: npy_claim("<f4", (ROWS, 3), values=bytes(ROWS * 12 - 1)),
    "of_fewer_rows_than_it_holds": lambda: npy_claim("<f4", (ROWS, 3), values=bytes(ROWS * 12 + 1)),
    "of_an_integer_of_4000_digits": lambda: npy_claim("<f4", (10**4000,)),
    "negative": lambda: npy_claim("<f4", (-1, 64), values=bytes(64)),
    "of_nothing_2_to_the_60_times": lambda: npy_claim("|V0", (2**60,)),
    "of_empty_rows_2_to_the_60_times": lambda: npy_claim("<f4", (2**60, 0)),
    "of_wide_text": lambda: npy_claim("<U536870911", (ROWS,)),
    "of_true": lambda: npy_claim("<f4", (True, 64), values=bytes(256)),
    "of_floats": lambda: npy_claim("<f4", (30.0, 64), values=bytes(256)),
    "of_a_list": lambda: npy_claim("<f4", [ROWS, 3]),
    "of_100_axes": lambda: npy_claim("<f4", (1,) * 100, values=bytes(4)),
    "of_an_unknown_dtype": lambda: npy_claim("<q9", (ROWS, 3)),
    "of_a_dtype_without_bytes": lambda: npy_claim("<f0", (ROWS, 3)),
    "of_9000_brackets": lambda: npy_header(b"(" * 9000),
    "of_9000_signs": lambda: npy_header(b"-" * 9000 + b"1"),
    "of_code": lambda: npy_header(b"__import__('os').system('id')"),
    "of_a_call": lambda: npy_header(b"{'descr': str(4), 'fortran_order': False, 'shape': (20, 3)}"),
    "of_a_nul": lambda: npy_header(b"{'descr': '<f4\0', 'fortran_order': False, 'shape': (1,)}"),
    "without_a_key": lambda: npy_header(b"{'descr': '<f4', 'shape': (20, 3)}"),
    "with_another_key": lambda: npy_header(b"{" + KEYS + b"(20,), 'x': 1}"),
    "of_20000_blanks": lambda: npy_header(b"{" + KEYS + b"(20, 3)}" + b" " * 20_000),
    "of_3_megabytes": lambda: b"\x93NUMPY\x02\x00" + (3 * 2**20).to_bytes(4, "little") + b" " * 99,
    "of_4_gigabytes": lambda: b"\x93NUMPY\x02\x00\xff\xff\xff\xff",
    "of_version_9": lambda: b"\x93NUMPY\x09\x00\x10\x00" + b" " * 16,
}
CLAIMS = [
    set_case(f"inputs_{name}", set_with("inputs", build), says="calibration.inputs")
    for name, build in LIES.items()
]
OTHERS = [
    *(
        set_case(f"labels_{name}", set_with("labels", LIES[name]), says="calibration.labels")
        for name in ("that_overflow", "of_more_rows_than_it_holds", "of_code")
    ),
    body_case("body_of_2_to_the_50", LIES["of_2_to_the_50"], *TOO_LARGE, kind="application/x-npy"),
    body_case("body_of_text", lambda: npy(np.array([["a"]])), kind="application/x-npy"),
    body_case("body_of_no_members", lambda: zip_file([])),
    body_case("body_of_code", LIES["of_code"], kind="application/x-npy"),
]


@pytest.mark.parametrize("case", PROGRAMS + CLAIMS + OTHERS, ids=str)
def test_it_is_refused(hostile, case: HostileCase) -> None:
    hostile(case)


def test_pickles_are_not_loaded(hostile) -> None:
    """Whoever loads a pickle of `Command` leaves a file."""
    WRITTEN.unlink(missing_ok=True)
    hostile(set_case("objects", set_with("inputs", objects), says="never unpickled"))
    assert not WRITTEN.exists()
    pickle.loads(pickle.dumps(Command())).close()  # noqa: S301 - our own; it does what it says
    assert WRITTEN.exists()
    WRITTEN.unlink()


@pytest.mark.process
def test_claims_cost_no_memory(tmp_path: Path) -> None:
    for name, build in LIES.items():
        path = tmp_path / name
        path.write_bytes(set_with("inputs", build)())
        assert peak_of(lambda path=path: refusal(path)) < 3_000_000

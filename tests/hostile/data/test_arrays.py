"""Arrays that are programs, and headers of arrays that claim what is not there."""

import io
import pickle
import tempfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from dataset_files import npy_bytes, npy_claim, npy_header
from hostile_archives import Member, zip_file
from hostile_case import HostileCase
from predict_bodies import npz

REFUSED, UNREAD, TOO_LARGE = 422, 415, 413
ROWS = 30
LABELS = np.arange(ROWS) % 10
WRITTEN = Path(tempfile.gettempdir(), "howsure-hostile-pickle")


class Command:
    """What a pickle of it does when it is loaded."""

    def __reduce__(self) -> tuple:
        return (open, (str(WRITTEN), "w"))


def pickled(array: np.ndarray) -> bytes:
    packed = io.BytesIO()
    np.save(packed, array, allow_pickle=True)
    return packed.getvalue()


def objects() -> np.ndarray:
    return np.array([Command()] * ROWS, dtype=object)


def records() -> np.ndarray:
    return np.array([(1, Command())] * ROWS, dtype=[("number", "<i8"), ("anything", "O")])


def torch_file() -> bytes:
    """Return what torch.save writes: a zip archive of a pickle and the bytes of its tensors."""
    members = {"archive/data.pkl": pickle.dumps(Command()), "archive/data/0": bytes(64)}
    return zip_file([Member(name, content) for name, content in members.items()])


def set_with(name: str, member: bytes) -> bytes:
    """Return an .npz archive of labels and of inputs, one of which is these bytes."""
    plain = {"inputs": npy_bytes(np.zeros((ROWS, 64), "<f4")), "labels": npy_bytes(LABELS)}
    return zip_file(
        [Member(f"{key}.npy", value) for key, value in (plain | {name: member}).items()]
    )


def as_set(name: str, build: Callable[[], bytes], **expected) -> HostileCase:
    """The array as the inputs of a calibration set."""
    return HostileCase(
        f"set_{name}",
        lambda attacker, built: attacker.calibrate(set_with("inputs", built), model=b"none"),
        build=build,
        **{"status": REFUSED, "code": "invalid-dataset", "says": "calibration.inputs"} | expected,
    )


def as_labels(name: str, build: Callable[[], bytes], **expected) -> HostileCase:
    """The array as the labels of a calibration set."""
    return HostileCase(
        f"labels_{name}",
        lambda attacker, built: attacker.calibrate(set_with("labels", built), model=b"none"),
        build=build,
        **{"status": REFUSED, "code": "invalid-dataset", "says": "calibration.labels"} | expected,
    )


def as_file(name: str, build: Callable[[], bytes], **expected) -> HostileCase:
    """The bytes as a calibration set."""
    return HostileCase(
        f"file_{name}",
        lambda attacker, built: attacker.calibrate(built, model=b"none"),
        build=build,
        **{"status": UNREAD, "code": "unsupported-format", "says": "calibration"} | expected,
    )


def as_body(name: str, build: Callable[[], bytes], **expected) -> HostileCase:
    """The array as the body of POST /predict."""
    return HostileCase(
        f"body_{name}",
        lambda attacker, built: attacker.predict(
            built, "application/x-npy", calibration=attacker.calibration
        ),
        build=build,
        **{"status": REFUSED, "code": "invalid-input", "says": "body"} | expected,
    )


def as_member(name: str, build: Callable[[], bytes], **expected) -> HostileCase:
    """The array in an archive that is the body of POST /predict."""
    return HostileCase(
        f"member_{name}",
        lambda attacker, built: attacker.predict(
            zip_file([Member("image.npy", built)]),
            "application/x-npz",
            calibration=attacker.calibration,
        ),
        build=build,
        **{"status": REFUSED, "code": "invalid-input", "says": "body.image"} | expected,
    )


PROGRAMS = [
    as_file("pickle", lambda: pickle.dumps(Command()), says="pickle"),
    # Text, as far as anybody can tell.
    as_file(
        "pickle_protocol_0",
        lambda: pickle.dumps(Command(), protocol=0),
        status=REFUSED,
        code="invalid-dataset",
    ),
    as_file("joblib", lambda: pickle.dumps({"data": Command()}, protocol=4), says="pickle"),
    as_file("torch", torch_file, says="PyTorch"),
    as_file("npy_of_objects", lambda: pickled(objects()), status=REFUSED, code="invalid-dataset"),
    as_set("of_objects", lambda: pickled(objects()), says="never unpickled"),
    as_set("of_records", lambda: pickled(records())),
    as_set("of_a_bare_pickle", lambda: pickle.dumps(Command())),
    as_labels("of_objects", lambda: pickled(objects())),
    as_body("of_objects", lambda: pickled(objects())),
    as_member("of_records", lambda: pickled(records())),
]

LIES = {
    "of_2_to_the_50": lambda: npy_claim("<f4", (2**50,), values=bytes(64)),
    "of_rows_of_2_to_the_50": lambda: npy_claim("<f4", (ROWS, 2**50), values=bytes(64)),
    "that_overflow": lambda: npy_claim("<f8", (2**62, 2**62), values=bytes(64)),
    "of_an_integer_of_4000_digits": lambda: npy_claim("<f4", (10**4000,)),
    "negative": lambda: npy_claim("<f4", (-1, 64), values=bytes(64)),
    "of_nothing_2_to_the_60_times": lambda: npy_claim("|V0", (2**60,)),
    "of_wide_text": lambda: npy_claim("<U536870911", (ROWS,)),
    "of_fortran_order": lambda: npy_bytes(np.asfortranarray(np.zeros((ROWS, 64), "<f4"))),
    "of_true": lambda: npy_claim("<f4", (True, 64), values=bytes(256)),
    "of_floats": lambda: npy_claim("<f4", (30.0, 64), values=bytes(256)),
    "of_100_axes": lambda: npy_claim("<f4", (1,) * 100, values=bytes(4)),
    "of_9000_brackets": lambda: npy_header(b"(" * 9000),
    "of_9000_signs": lambda: npy_header(b"-" * 9000 + b"1"),
    "of_code": lambda: npy_header(b"__import__('os').system('id')"),
    "of_a_nul": lambda: npy_header(b"{'descr': '<f4\0', 'fortran_order': False, 'shape': (1,)}"),
    "of_3_megabytes": lambda: b"\x93NUMPY\x02\x00" + (3 * 2**20).to_bytes(4, "little") + b" " * 99,
    "of_4_gigabytes": lambda: b"\x93NUMPY\x02\x00\xff\xff\xff\xff",
    "of_version_9": lambda: b"\x93NUMPY\x09\x00\x10\x00" + b" " * 16,
    "cut_off": lambda: npy_bytes(np.zeros((ROWS, 64), "<f4"))[:40],
}
OF_TOO_MANY_ROWS = {"of_2_to_the_50", "that_overflow"}
CLAIMS = [as_set(name, build) for name, build in LIES.items()] + [
    as_body(name, build, status=TOO_LARGE, code="too-large")
    if name in OF_TOO_MANY_ROWS
    else as_body(name, build)
    for name, build in LIES.items()
]


@pytest.mark.parametrize("case", PROGRAMS + CLAIMS, ids=str)
def test_it_is_refused(hostile, case: HostileCase) -> None:
    hostile(case)


def test_npz_is_read_otherwise(hostile) -> None:
    """The harness and its builders let through what is honest."""
    plain = {"inputs": np.zeros((1, 64), "<f4")}
    case = HostileCase(
        "honest",
        lambda attacker: attacker.predict(
            npz(**plain), "application/x-npz", calibration=attacker.calibration
        ),
        200,
    )
    hostile(case)


def test_none_of_the_programs_was_run(hostile) -> None:
    """Whoever loads a pickle of `Command` leaves a file."""
    WRITTEN.unlink(missing_ok=True)
    hostile(as_set("of_objects", lambda: pickled(objects())))
    assert not WRITTEN.exists()
    pickle.loads(pickle.dumps(Command())).close()  # noqa: S301 - our own; it does what it says
    assert WRITTEN.exists()
    WRITTEN.unlink()

"""Values that only the model's run or the whole upload can refuse.

The rules for values in files are in tests/child/reading.
"""

from collections.abc import Callable

import numpy as np
import pytest
from dataset_files import npy_bytes, npy_claim
from hostile_archives import DEFLATED, Member, deflated_zeros, zip_file
from hostile_case import INVALID, HostileCase
from running_service import digits, npz

ROWS, FEATURES = 60, 64
FAR = 45
# Behind the rows that a model is tried on: a set is read to its end before anything is kept of it.
FARTHER, MANY = 700, 800


def inputs(n_rows: int = ROWS) -> np.ndarray:
    return np.random.default_rng(3).uniform(0, 16, (n_rows, FEATURES)).astype(np.float32)


def labels(n_rows: int = ROWS) -> np.ndarray:
    return np.arange(n_rows) % 10


def with_cell(array: np.ndarray, row: int, value: float) -> np.ndarray:
    array[row, 5] = value
    return array


def table(row: int, cell: str, n_rows: int) -> bytes:
    """Return a table of features as CSV, with one cell as it is given."""
    lines = ["label," + ",".join(f"f{k}" for k in range(FEATURES))]
    for at, (label, values) in enumerate(zip(labels(n_rows), inputs(n_rows), strict=True)):
        cells = [str(label), *(f"{value:.3f}" for value in values)]
        if at == row:
            cells[9] = cell
        lines.append(",".join(cells))
    return "\n".join(lines).encode()


def as_inputs(name: str, build: Callable[[], bytes], says: str) -> HostileCase:
    return HostileCase(
        name,
        lambda attacker, built: attacker.calibrate(built, model=digits("model.onnx")),
        *INVALID,
        says=says,
        build=build,
    )


def rows_of_too_many_bytes() -> bytes:
    header = npy_claim("<f4", (1, 255 * 2**18))
    size = len(header) + 255 * 2**20
    rows = Member("inputs.npy", method=DEFLATED, packed=deflated_zeros(255, header), size=size)
    return zip_file([rows, Member("labels.npy", npy_bytes(labels()[:1]))])


CASES = [
    as_inputs(
        "infinity_far_down",
        lambda: npz(inputs=with_cell(inputs(MANY), FARTHER, np.inf), labels=labels(MANY)),
        f"calibration.inputs[{FARTHER}]",
    ),
    as_inputs(
        "cell_of_text_far_down",
        lambda: table(FARTHER, "high", MANY),
        f"calibration.f8[{FARTHER}]",
    ),
    as_inputs(
        "beyond_float32",
        lambda: npz(inputs=with_cell(inputs().astype(np.float64), FAR, 1e39), labels=labels()),
        f"calibration.inputs[{FAR}][5]",
    ),
    as_inputs("cell_1e39", lambda: table(FAR, "1e39", ROWS), f"calibration.inputs[{FAR}][8]"),
    as_inputs(
        "label_of_the_next_class",
        lambda: npz(inputs=inputs(), labels=np.where(np.arange(ROWS) == FAR, 10, labels())),
        "calibration.labels",
    ),
    as_inputs(
        "labels_counted_from_1",
        lambda: npz(inputs=inputs(), labels=labels() + 1),
        "calibration.labels",
    ),
    HostileCase(
        "rows_of_too_many_bytes",
        lambda attacker, built: attacker.calibrate(built),
        *INVALID,
        says="at least 20 samples",
        build=rows_of_too_many_bytes,
    ),
]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_it_is_refused(hostile, case: HostileCase) -> None:
    hostile(case)

"""Values that no score may rest on: each is refused with the row and the column it is in."""

from collections.abc import Callable

import numpy as np
import pytest
from dataset_files import npy_bytes, npy_claim
from hostile_archives import DEFLATED, Member, deflated_zeros, zip_file
from hostile_case import HostileCase
from keyed_service import logits_of
from predict_bodies import npz
from running_service import digits

INVALID, TOO_LARGE = (422, "invalid-dataset"), (413, "too-large")
ROWS, FEATURES = 60, 64
FAR = 45
# Behind the rows that a model is tried on: a set is read to its end before anything is kept of it.
FARTHER, MANY = 700, 800


def inputs(n_rows: int = ROWS) -> np.ndarray:
    return np.random.default_rng(3).uniform(0, 16, (n_rows, FEATURES)).astype(np.float32)


def labels(n_rows: int = ROWS) -> np.ndarray:
    return np.arange(n_rows) % 10


def outputs(n_rows: int = ROWS) -> np.ndarray:
    return np.random.default_rng(3).normal(size=(n_rows, 3)).astype(np.float32)


def with_cell(array: np.ndarray, row: int, column: int, value: float) -> np.ndarray:
    array[row, column] = value
    return array


def table(row: int, column: int, cell: str, n_rows: int = ROWS) -> bytes:
    """Return a table of features as CSV, with one cell as it is given."""
    lines = ["label," + ",".join(f"f{k}" for k in range(FEATURES))]
    for at, (label, values) in enumerate(zip(labels(n_rows), inputs(n_rows), strict=True)):
        cells = [str(label), *(f"{value:.3f}" for value in values)]
        if at == row:
            cells[column] = cell
        lines.append(",".join(cells))
    return "\n".join(lines).encode()


def as_inputs(
    name: str, build: Callable[[], bytes], expected: tuple[int, str] = INVALID, **more
) -> HostileCase:
    return HostileCase(
        name,
        lambda attacker, built: attacker.calibrate(built, model=digits("model.onnx")),
        *expected,
        build=build,
        **more,
    )


def as_outputs(
    name: str, build: Callable[[], bytes], expected: tuple[int, str] = INVALID, **more
) -> HostileCase:
    send = lambda attacker, built: attacker.calibrate(built)  # noqa: E731 - as everywhere here
    return HostileCase(name, send, *expected, build=build, **more)


def cell(name: str, row: int, text: str, column: int = 9) -> HostileCase:
    """A cell of a table, which is named whatever stands in it."""
    named = "label" if column == 0 else f"f{column - 1}"
    place = f"calibration.{named}[{row}]"
    return as_inputs(f"cell_{name}", lambda: table(row, column, text), says=place)


def labelled(name: str, values: Callable[[], np.ndarray], **more) -> HostileCase:
    """Labels of inputs as an array."""
    return as_inputs(
        f"labels_{name}",
        lambda: npz(inputs=inputs(), labels=values()),
        **{"says": "calibration.labels"} | more,
    )


def with_label(value: int, row: int = FAR) -> np.ndarray:
    found = labels()
    found[row] = value
    return found


def logits(name: str, value: float, row: int = FAR) -> HostileCase:
    return as_outputs(
        f"logits_{name}",
        lambda: npz(logits=with_cell(outputs(), row, 2, value), labels=labels() % 3),
        says=f"calibration.logits[{row}][2]",
    )


def probabilities(name: str, change: Callable[[np.ndarray], None], says: str) -> HostileCase:
    def build() -> bytes:
        found = np.full((ROWS, 4), 0.25)
        change(found)
        return npz(probabilities=found, labels=labels() % 4)

    return as_outputs(f"probabilities_{name}", build, says=says)


def set_at(row: int, column: int, value: float) -> Callable[[np.ndarray], None]:
    return lambda array: array.__setitem__((row, column), value)


CASES = [
    as_inputs(
        "inputs_of_nan",
        lambda: npz(inputs=with_cell(inputs(), 0, 5, np.nan), labels=labels()),
        says="calibration.inputs[0]",
    ),
    as_inputs(
        "inputs_of_infinity_far_down",
        lambda: npz(inputs=with_cell(inputs(MANY), FARTHER, 5, np.inf), labels=labels(MANY)),
        says=f"calibration.inputs[{FARTHER}]",
    ),
    as_inputs(
        "cell_of_text_far_down",
        lambda: table(FARTHER, 9, "high", MANY),
        says=f"calibration.f8[{FARTHER}]",
    ),
    as_outputs(
        "logits_of_nan_far_down",
        lambda: npz(logits=with_cell(outputs(MANY), FARTHER, 2, np.nan), labels=labels(MANY) % 3),
        says=f"calibration.logits[{FARTHER}][2]",
    ),
    as_inputs(
        "inputs_beyond_float32",
        lambda: npz(inputs=with_cell(inputs().astype(np.float64), FAR, 5, 1e39), labels=labels()),
        says=f"calibration.inputs[{FAR}][5]",
    ),
    as_inputs("cell_1e39", lambda: table(FAR, 9, "1e39"), says=f"calibration.inputs[{FAR}][8]"),
    cell("nan_at_first", 0, "nan"),
    cell("nan", FAR, "NaN"),
    cell("inf", FAR, "-inf"),
    cell("1e999", FAR, "1e999"),
    cell("empty", FAR, ""),
    cell("text", FAR, "high"),
    cell("true", FAR, "true"),
    cell("formula", FAR, "=1+1"),
    cell("formula_that_calls", FAR, "=HYPERLINK(1)"),
    cell("number_of_400_digits", FAR, "9" * 400),
    cell("label_minus_1", FAR, "-1", 0),
    cell("label_of_20_digits", FAR, "9" * 20, 0),
    cell("label_1.5", FAR, "1.5", 0),
    cell("label_empty", FAR, "", 0),
    labelled("minus_1", lambda: with_label(-1), says=f"calibration.labels[{FAR}]"),
    labelled("of_the_next_class", lambda: with_label(10)),
    labelled("counted_from_1", lambda: labels() + 1),
    labelled("of_2_to_the_62", lambda: with_label(2**62), says=f"calibration.labels[{FAR}]"),
    labelled("unsigned_of_2_to_the_64", lambda: np.full(ROWS, 2**64 - 1, np.uint64)),
    labelled("of_floats", lambda: labels() + 0.5),
    labelled("of_booleans", lambda: labels() > 5),
    labelled("of_text", lambda: np.array(["7"] * ROWS)),
    labelled("one_hot", lambda: np.eye(10, dtype=np.int64)[labels()]),
    labelled("too_few", lambda: labels()[:-1], says="calibration.inputs"),
    labelled("one_for_all", lambda: labels()[:1], says="calibration.inputs"),
    labelled("of_no_rows", lambda: labels()[:0]),
    logits("nan_at_first", np.nan, row=0),
    logits("nan", np.nan),
    logits("infinity", np.inf),
    logits("minus_infinity", -np.inf),
    probabilities("negative", set_at(FAR, 1, -0.25), f"calibration.probabilities[{FAR}][1]"),
    probabilities("above_1", set_at(FAR, 1, 1.5), f"calibration.probabilities[{FAR}][1]"),
    probabilities("of_nan", set_at(FAR, 1, np.nan), f"calibration.probabilities[{FAR}][1]"),
    probabilities("that_sum_to_2", set_at(FAR, slice(None), 0.5), f"probabilities[{FAR}]"),
    as_outputs(
        "logits_of_one_class",
        lambda: npz(logits=outputs()[:, :1], labels=labels() * 0),
        says="calibration.logits",
    ),
    as_outputs(
        "logits_of_too_many_classes",
        lambda: npz(logits=np.zeros((20, 10_001), np.float32), labels=np.zeros(20, np.int64)),
        TOO_LARGE,
        says="calibration.logits",
    ),
    as_outputs(
        "logits_of_integers",
        lambda: npz(logits=np.zeros((ROWS, 3), np.int64), labels=labels() % 3),
        says="calibration.logits",
    ),
    as_outputs(
        "rows_of_too_many_bytes",
        lambda: zip_file(
            [
                Member(
                    "inputs.npy",
                    method=DEFLATED,
                    packed=deflated_zeros(255, npy_claim("<f4", (1, 255 * 2**18))),
                    size=len(npy_claim("<f4", (1, 255 * 2**18))) + 255 * 2**20,
                ),
                Member("labels.npy", npy_bytes(labels()[:1])),
            ]
        ),
        says="at least 20 samples",
    ),
    as_outputs(
        "own_uncertainty_of_nan",
        lambda: npz(
            logits=outputs(),
            labels=labels() % 3,
            uncertainty_own=np.where(np.arange(ROWS) == FAR, np.nan, 1.0),
        ),
        says=f"calibration.uncertainty_own[{FAR}]",
    ),
    # By name, never by position: a column that is called otherwise is none.
    as_outputs(
        "columns_shuffled_and_one_lost",
        lambda: logits_of().replace(b"logit_1", b"logit_3", 1),
        says="logit_1",
    ),
    as_outputs(
        "column_twice",
        lambda: logits_of().replace(b"logit_1", b"logit_0", 1),
        says="logit_0",
    ),
]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_it_is_refused(hostile, case: HostileCase) -> None:
    hostile(case)

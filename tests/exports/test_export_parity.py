"""Comparison of a file's answers, which may be made up, with the service's."""

from types import SimpleNamespace

import numpy as np
import pytest
from plain_answers import plain_arrays

from howsure.statistics.bins.fit import fit_bin_table
from service.errors import Conflict
from service.exports.export import parity_rows
from service.exports.parity import compare_answers, require_parity
from service.predictions.lookup import EventAnswer, PredictionBatch
from service.predictions.served_calibration import ServedEvent
from service.runner.messages.frames import MAX_TENSOR_BYTES

N_ROWS = 3


def ours() -> PredictionBatch:
    values = np.ones(N_ROWS, np.float32)
    table = fit_bin_table(np.ones(10, np.float32), np.arange(10) < 5, n_bins=1)
    event = ServedEvent(1, "entropy", "entropy", table)
    return PredictionBatch(
        calibration=SimpleNamespace(class_names=("no", "yes")),
        classes=np.zeros((N_ROWS, 2), np.int64),
        scores=np.full((N_ROWS, 2), 0.5, np.float32),
        events=[EventAnswer(event, values, table.look_up(values).bin)],
        out_of_distribution=None,
        abstain={},
    )


def theirs(prefix: str = "") -> dict[str, np.ndarray]:
    return {prefix + name: array for name, array in plain_arrays(ours()).items()}


@pytest.mark.parametrize("prefix", ["", "howsure_"])
def test_equal_answers_are_equal(prefix):
    require_parity(compare_answers(ours(), theirs(prefix)))


CHANGES = {"more": lambda a: a + 1, "NaN": lambda a: a * np.float32(np.nan)}


@pytest.mark.parametrize("name", ["class", "top1_bin", "top1_probability", "top1_lower"])
@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_other_answers_are_refused(name, change):
    with pytest.raises(Conflict):
        require_parity(compare_answers(ours(), theirs() | {name: change(theirs()[name])}))


@pytest.mark.parametrize(
    ("name", "shape"),
    [(name, None) for name in ("class", "top1_bin", "top1_probability", "top1_lower", "top1_upper")]
    + [("class", shape) for shape in ((N_ROWS, 1), (N_ROWS, 2), (1,), (N_ROWS + 1,))],
)
def test_a_missing_output_and_one_of_another_shape_are_named(name, shape):
    outputs = theirs()
    del outputs[name]
    if shape is not None:
        outputs[name] = np.zeros(shape, np.int64)
    with pytest.raises(Conflict, match=f"output {name}"):
        compare_answers(ours(), outputs)


IMAGE = 4 * 3 * 1024 * 1024


@pytest.mark.parametrize(
    ("row_bytes", "least"), [(0, 1), (4, 1000), (3136, 1000), (IMAGE, 1), (MAX_TENSOR_BYTES, 1)]
)
def test_they_fit_one_request(row_bytes, least):
    assert least <= parity_rows(row_bytes) <= 1000
    assert parity_rows(row_bytes) * row_bytes <= MAX_TENSOR_BYTES

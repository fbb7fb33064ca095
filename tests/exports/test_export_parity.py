"""Comparison of a file's answers, which may be made up, with the service's."""

import numpy as np
import pytest

from howsure.statistics.bins.prior import BetaPrior
from howsure.statistics.bins.table import BinTable
from service.errors import Conflict
from service.exports.export import parity_rows
from service.exports.parity import compare_answers, require_parity
from service.predictions.lookup import EventAnswer, PredictionBatch
from service.predictions.served_calibration import ServedEvent
from service.runner.messages.frames import MAX_TENSOR_BYTES

N_ROWS = 3


def ours():
    share = np.array([0.5])
    table = BinTable(
        edges=[-np.inf, np.inf],
        counts=[10],
        hits=[5],
        prior=BetaPrior(0.5, 1.0),
        probability=share,
        lower=share - 0.1,
        upper=share + 0.1,
        mean_uncertainty=[1.0],
        requested_bins=1,
    )
    event = ServedEvent(1, "entropy", "entropy", table)
    answer = EventAnswer(event, np.ones(N_ROWS, np.float32), np.zeros(N_ROWS, np.int64))
    return PredictionBatch(
        calibration=None,
        classes=np.zeros((N_ROWS, 2), np.int64),
        scores=np.full((N_ROWS, 2), 0.5, np.float32),
        events=[answer],
        out_of_distribution=None,
        abstain={},
    )


def theirs(prefix=""):
    shares = np.full(N_ROWS, 0.5, np.float32)
    outputs = {
        "topk_class": np.zeros((N_ROWS, 2), np.int64),
        "class": np.zeros(N_ROWS, np.int64),
        "top1_bin": np.zeros(N_ROWS, np.int64),
        "top1_probability": shares,
        "top1_lower": shares - np.float32(0.1),
        "top1_upper": shares + np.float32(0.1),
    }
    return {prefix + name: array for name, array in outputs.items()}


@pytest.mark.parametrize("prefix", ["", "howsure_"])
def test_equal_answers_are_equal(prefix):
    require_parity(compare_answers(ours(), theirs(prefix)))


@pytest.mark.parametrize("name", ["class", "top1_bin", "top1_probability", "top1_lower"])
@pytest.mark.parametrize("change", [lambda a: a + 1, lambda a: a * np.float32(np.nan)])
def test_other_answers_are_refused(name, change):
    with pytest.raises(Conflict, match="differs from the service"):
        require_parity(compare_answers(ours(), theirs() | {name: change(theirs()[name])}))


@pytest.mark.parametrize("name", sorted(theirs().keys() - {"topk_class"}))
def test_a_missing_output_is_named(name):
    outputs = theirs()
    del outputs[name]
    with pytest.raises(Conflict, match=f"lacks the output {name}"):
        compare_answers(ours(), outputs)


@pytest.mark.parametrize("shape", [(N_ROWS, 1), (N_ROWS, 2), (1,), (N_ROWS + 1,)])
def test_an_output_of_another_shape_is_refused(shape):
    with pytest.raises(Conflict, match="lacks the output class"):
        compare_answers(ours(), theirs() | {"class": np.zeros(shape, np.int64)})


IMAGE = 4 * 3 * 1024 * 1024


@pytest.mark.parametrize(
    ("row_bytes", "least"), [(0, 1), (4, 1000), (3136, 1000), (IMAGE, 1), (MAX_TENSOR_BYTES, 1)]
)
def test_they_fit_one_request(row_bytes, least):
    assert least <= parity_rows(row_bytes) <= 1000
    assert parity_rows(row_bytes) * row_bytes <= MAX_TENSOR_BYTES

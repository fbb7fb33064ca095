"""Comparison of a file's answers, which may be made up, with the service's."""

from types import SimpleNamespace

import numpy as np
import pytest

from howsure.statistics.bins.fit import fit_bin_table
from service.errors import Conflict
from service.exports.parity import compare_answers, require_parity
from service.predictions.lookup import EventAnswer, PredictionBatch
from service.predictions.served_calibration import ServedEvent

VALUES = np.ones(3, np.float32)
CLASSES = np.zeros((3, 2), np.int64)
TABLE = fit_bin_table(np.ones(10, np.float32), np.arange(10) < 5, n_bins=1)
FOUND = TABLE.look_up(VALUES)
OURS = PredictionBatch(
    calibration=SimpleNamespace(class_names=("no", "yes")),
    classes=CLASSES,
    scores=np.full((3, 2), 0.5, np.float32),
    shares=np.ones((3, 2)),
    events=[EventAnswer(ServedEvent(1, "entropy", "entropy", TABLE), VALUES, FOUND.bin)],
    out_of_distribution=None,
    abstain={},
)
THEIRS = {"topk_class": CLASSES, "class": CLASSES[:, 0], "top1_bin": FOUND.bin}
THEIRS |= {f"top1_{part}": getattr(FOUND, part) for part in ("probability", "lower", "upper")}


@pytest.mark.parametrize("prefix", ["", "howsure_"])
def test_equal_answers_are_equal(prefix):
    require_parity(compare_answers(OURS, {prefix + name: THEIRS[name] for name in THEIRS}))


@pytest.mark.parametrize("name", ["class", "top1_bin", "top1_probability", "top1_lower"])
@pytest.mark.parametrize("factor", [2, np.nan])
def test_other_answers_are_refused(name, factor):
    other = 1 + THEIRS[name] * np.float32(factor)
    with pytest.raises(Conflict):
        require_parity(compare_answers(OURS, THEIRS | {name: other}))


@pytest.mark.parametrize(
    ("name", "value"),
    [(name, None) for name in THEIRS if name != "topk_class"]
    + [("class", CLASSES[:1, 0]), ("class", CLASSES[:, :1]), ("class", CLASSES)],
)
def test_a_missing_output_and_one_of_another_shape_are_named(name, value):
    outputs = {key: array for key, array in (THEIRS | {name: value}).items() if array is not None}
    with pytest.raises(Conflict, match=f"output {name}"):
        compare_answers(OURS, outputs)

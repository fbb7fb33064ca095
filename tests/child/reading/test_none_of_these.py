"""The label -1 of further sets: the sample's class is none of the model's."""

import numpy as np
import pytest
from dataset_files import (
    COLUMN_FORMATS,
    TABLE_FORMATS,
    check_read,
    refusal,
    write_columns,
    write_logits,
    write_npz,
    write_parquet,
)

from service.runner.messages.reading import Reading

AGE = np.arange(30.0)
INDICES = np.array([-1, 0, 1, 2, -1] * 6)
INPUTS = {"inputs": AGE[:, None]}
LOGITS = np.random.default_rng(0).normal(size=(30, 3))
ANIMALS = ("cat", "dog", "eel")
NAMES = [[*ANIMALS, "-1"][index] for index in INDICES]
CALLED = Reading(classes=ANIMALS, may_be_none_of_these=True)
TENS = Reading(class_map={"10": 0, "20": 1, "30": 2}, may_be_none_of_these=True)


@pytest.mark.parametrize("labels", [INDICES, np.full(30, -1)], ids=["some", "all"])
@pytest.mark.parametrize("file_format", COLUMN_FORMATS)
def test_integers_of_each_format(path, file_format, labels):
    write_logits(path, file_format, LOGITS, labels)
    check_read(path, {"logits": LOGITS}, labels, reading=Reading(may_be_none_of_these=True))
    assert "got -1" in refusal(path).message
    write_logits(path, file_format, LOGITS, np.where(AGE == 7, -2, labels))
    error = refusal(path, reading=Reading(may_be_none_of_these=True))
    assert error.violations[0].location.endswith("[7]")
    assert "from 0 to 2, got -2" in error.message


@pytest.mark.parametrize("file_format", TABLE_FORMATS)
def test_minus_one_among_names(path, file_format):
    """Not an empty name, and not where a class has this name."""
    write_columns(path, file_format, {"age": AGE, "label": NAMES})
    check_read(path, INPUTS, INDICES, reading=CALLED)
    write_columns(path, file_format, {"age": AGE, "label": NAMES[1:] + NAMES[:1]})
    four = Reading(classes=(*ANIMALS, "-1"), may_be_none_of_these=True)
    check_read(path, INPUTS, np.roll(INDICES, -1) % 4, reading=four)
    assert "'-1'" in refusal(path, reading=Reading(classes=ANIMALS)).message
    write_columns(path, file_format, {"age": AGE, "label": ["", *NAMES[1:]]})
    refusal(path, reading=CALLED)
    columns = {f"logit_{name}": LOGITS[:, at] for at, name in enumerate(ANIMALS)}
    write_columns(path, file_format, {"label": NAMES} | columns)
    check_read(path, {"logits": LOGITS}, INDICES, reading=CALLED)
    tens = np.where(INDICES < 0, -1, 10 * (INDICES + 1))
    write_columns(path, file_format, {"age": AGE, "label": tens})
    check_read(path, INPUTS, INDICES, reading=TENS)


def test_minus_one_among_names_of_arrays_and_of_class_labels(path):
    write_npz(path, inputs=INPUTS["inputs"], labels=np.array(NAMES))
    check_read(path, INPUTS, INDICES, reading=CALLED)
    label, age = {"names": ANIMALS, "_type": "ClassLabel"}, {"dtype": "float64", "_type": "Value"}
    features = {"age": age, "label": label}
    write_parquet(path, {"age": AGE, "label": INDICES}, features=features)
    backwards = Reading(class_map={"eel": 0, "dog": 1, "cat": 2}, may_be_none_of_these=True)
    check_read(path, INPUTS, np.where(INDICES < 0, -1, 2 - INDICES), reading=backwards)

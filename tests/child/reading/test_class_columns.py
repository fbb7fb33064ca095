"""Tables of outputs whose columns have the names of classes, and columns of one probability."""

import numpy as np
import pytest
from dataset_files import TABLE_FORMATS, check_read, check_refused, write_columns

from service.runner.messages.reading import Reading

N = 30
RNG = np.random.default_rng(3)
NAMES = ["sales", "billing", "other"]
CLASSES = {"sales": 0, "billing": 1, "other": 2}
OUTPUTS = RNG.dirichlet(np.ones(3), N)
INDICES = np.arange(N) % 3
BY_NAME = np.array(NAMES)[INDICES]
CHANCE = RNG.random(N)
CHANCES = np.stack([1 - CHANCE, CHANCE], axis=1)
FRAUD = INDICES % 2
OF_FRAUD = ["fine", "fraud"]
FRAUD_BY_NAME = np.array(OF_FRAUD)[FRAUD]


def columns(prefix="prob_", names=NAMES, **labels):
    outputs = np.log(OUTPUTS) if prefix == "logit_" else OUTPUTS
    return labels | {f"{prefix}{name}": outputs[:, at] for at, name in enumerate(names)}


@pytest.mark.parametrize("labels", [INDICES, BY_NAME], ids=["indices", "names"])
@pytest.mark.parametrize("prefix", ["prob_", "p_", "logit_"])
@pytest.mark.parametrize("file_format", TABLE_FORMATS)
def test_classes_have_the_names_of_their_columns(path, file_format, prefix, labels):
    write_columns(path, file_format, columns(prefix, label=labels))
    kind = "logits" if prefix == "logit_" else "probabilities"
    outputs = np.log(OUTPUTS) if kind == "logits" else OUTPUTS
    info = check_read(path, {kind: outputs}, INDICES, n_classes=3, class_map=CLASSES)
    assert all(f"`{name}`" in info.notes[0] for name in NAMES)


REVERSED = dict(reversed(columns(label=BY_NAME).items()))
TURNED = OUTPUTS[:, [1, 2, 0]]
# The columns, what the caller says of them, the outputs and labels that are read.
READ = {
    "listed classes": (REVERSED, {"classes": NAMES}, OUTPUTS, INDICES),
    "class map": (REVERSED, {"class_map": CLASSES}, OUTPUTS, INDICES),
    "integers as names": (columns("p_", "312", label=INDICES + 1), {}, TURNED, INDICES),
    "indices as names": (columns("p_", "201", label=INDICES), {}, TURNED, INDICES),
    "own label": (columns(intent=BY_NAME), {"columns": {"label": ["intent"]}}, OUTPUTS, INDICES),
    **{p: ({p: CHANCE, "label": FRAUD}, {}, CHANCES, FRAUD) for p in ("p", "prob", "probability")},
    "listed": ({"p": CHANCE, "label": FRAUD_BY_NAME}, {"classes": OF_FRAUD}, CHANCES, FRAUD),
}


@pytest.mark.parametrize("file_format", TABLE_FORMATS)
@pytest.mark.parametrize("case", READ)
def test_outputs_are_in_the_order_of_their_classes(path, case, file_format):
    table, reading, outputs, labels = READ[case]
    write_columns(path, file_format, table)
    arrays, n_classes = {"probabilities": outputs}, outputs.shape[1]
    check_read(path, arrays, labels, reading=Reading(**reading), n_classes=n_classes)


@pytest.mark.parametrize("file_format", TABLE_FORMATS)
def test_what_the_caller_knows_decides(path, file_format):
    write_columns(path, file_format, dict(reversed(columns().items())))
    check_read(path, {"probabilities": OUTPUTS}, None, reading=Reading(classes=NAMES))
    # Features of a model may have such names.
    write_columns(path, file_format, {"p_value": CHANCE, "p": CHANCE, "label": INDICES})
    inputs = np.stack([CHANCE, CHANCE], axis=1)
    check_read(path, {"inputs": inputs}, INDICES, reading=Reading(kind="inputs"))
    # Names beside one column are listed by the caller.
    write_columns(path, file_format, {"label": FRAUD_BY_NAME, "prob": CHANCE})
    place = ".label[0]" if file_format == "csv" else ".label"
    check_refused(path, place, "config.classes")

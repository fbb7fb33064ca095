"""An .npy array with its labels beside it: inputs, or outputs where the caller says so."""

from pathlib import Path

import numpy as np
import pytest
from dataset_files import check_read, check_refused, refusal
from running_service import npy, npz

from service.errors import InvalidDataset
from service.runner.messages.reading import Reading

N = 30
RNG = np.random.default_rng(0)
INPUTS = RNG.normal(size=(N, 3, 2)).astype(np.float32)
LOGITS = RNG.normal(size=(N, 4))
PROBABILITIES = RNG.dirichlet(np.ones(4), N)
LABELS = np.arange(N) % 4


def pair(folder: Path, array: np.ndarray | bytes, labels: np.ndarray | bytes) -> tuple[Path, Path]:
    paths = folder / "set", folder / "labels"
    for path, content in zip(paths, (array, labels), strict=True):
        path.write_bytes(content if isinstance(content, bytes) else npy(content))
    return paths


KINDS = [("logits", LOGITS), ("probabilities", PROBABILITIES)]


@pytest.mark.parametrize(("kind", "outputs"), KINDS)
def test_the_caller_says_what_an_array_holds(tmp_path, kind, outputs):
    path, labels = pair(tmp_path, outputs, LABELS)
    reading = Reading(labels=labels, kind=kind)
    check_read(path, {kind: outputs}, LABELS, reading=reading, kind=kind, n_classes=4)
    wrong = outputs.copy()
    wrong[17, 2] = np.nan
    pair(tmp_path, wrong, LABELS)
    check_refused(path, f".{kind}[17][2]", "nan", reading=reading)
    pair(tmp_path, outputs, np.append(LABELS[:-1], 4))
    check_refused(path, "_labels[29]", "got 4", reading=reading)


def test_labels_may_be_missing(tmp_path):
    path, _ = pair(tmp_path, INPUTS, LABELS)
    check_read(path, {"inputs": INPUTS}, None)
    error = refusal(path, location="evaluation")
    assert type(error) is InvalidDataset
    assert error.violations[0].location == "evaluation_labels"


@pytest.mark.parametrize("content", [b"age,label\n1,0\n", npz(inputs=INPUTS, labels=LABELS)])
def test_other_formats_have_labels_of_their_own(tmp_path, content):
    path, labels = pair(tmp_path, content, LABELS)
    check_refused(path, "_labels", "", reading=Reading(labels=labels))


# What a pair adds to the rules of arrays in archives.
CASES = {
    "no labels": (INPUTS, LABELS[:0], "_labels", "30"),
    "one label less": (INPUTS, LABELS[:-1], "_labels", "got 29"),
    "labels that are none": (INPUTS, b"label\n1\n", "_labels", ".npy"),
    "bytes behind labels": (INPUTS, npy(LABELS) + b"0", "_labels", "bytes"),
    "cut off": (npy(INPUTS)[:-1], LABELS, ".inputs", "bytes"),
}


@pytest.mark.parametrize("case", CASES)
def test_a_broken_rule_is_named_with_its_place(tmp_path, case):
    array, labels, location, named = CASES[case]
    path, beside = pair(tmp_path, array, labels)
    check_refused(path, location, named, reading=Reading(labels=beside))

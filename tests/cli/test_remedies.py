"""Remedies of all findings, as a golden text; each command, request and line can be followed."""

import ast
import json
import shlex
from pathlib import Path

import numpy as np
import pytest
from remedy_lines import followed

from howsure.remedies import remedy_for_further_set, remedy_of
from howsure.statistics.findings import FINDINGS
from service.cli import load_command

FIGURES = {"offset": -1, "classes": 10, "sent": [3, 5], "meant": [5, 3]}
CLASSES = [f"digit {k}" for k in range(10)]
CLASS_MAP = {"cat": 3, "dog": 5, "{it's}": 7}
MANY = {f"class {k}": k for k in range(21)}
PIXELS = {"scale": 1.0, "mean": [0.5] * 3, "std": [0.25] * 3, "channels_reversed": True}
GREY = {"mean": [0.5], "std": [0.25], "axis": 1, "factor": 1.0}
BGR = {"preprocessing": {"colour": "bgr", "scale": 1.0}}
FILES = {"files": {"calibration": "-my set.csv", "evaluation": "my eval.csv", "model": ["a", "b"]}}
OPTIONS = {"options": ["name", "folds", "preprocessing", "decision_threshold"]}
NAMED = {"class_map": CLASS_MAP}
# Cases beside all findings in all kinds of sets: finding, its figures, and the calibration.
CASES = [
    ("labels-shifted", {"shifted_accuracy": 0.69}, {}, {}),
    ("labels-shifted", {"shifted_accuracy": 0.7, "classes": 2}, {"kind": "probabilities"}, {}),
    ("labels-shifted", {}, {}, NAMED),
    ("labels-shifted", {"classes": 21}, {}, {"class_map": MANY}),
    ("labels-shifted", {}, {"labels_of_named_columns": "names"}, NAMED),
    ("labels-shifted", {}, {"labels_of_named_columns": "positions"}, NAMED),
    ("labels-shifted", {"of_evaluation": True}, {}, NAMED),
    ("labels-permuted", {}, {}, NAMED),
    ("duplicate-samples", {"times": 3}, {"kind": "pairs"}, {}),
    ("few-samples-for-bins", {"bins": 1}, {}, {}),
    ("inputs-not-scaled", GREY, {}, {}),
    ("inputs-not-scaled", GREY | {"axis": 3, "factor": 1 / 255}, {}, {}),
    ("wrong-preprocessing", PIXELS, FILES, BGR),
    ("wrong-preprocessing", {"axis": 3}, {}, {}),
    ("wrong-preprocessing", {"inverted": True, "largest": 255.0}, {}, BGR),
    ("wrong-preprocessing", {"inverted": True, "largest": 1.0}, {"format": "npz"}, {}),
    ("wrong-preprocessing", {"transposed": True}, {}, BGR),
    ("wrong-preprocessing", {"transposed": True}, {"format": "npz"}, BGR),
    ("classes-not-predicted", {"threshold": 0.03125}, OPTIONS, {"decision_threshold": 0.5}),
    ("label-output-differs", {"threshold": 0.25}, {}, {}),
    ("accuracy-differs", {}, FILES | OPTIONS, {"name": "digits", "folds": 2, "bins": 5}),
    ("unknown", {}, {}, {}),
]


def is_followed(remedy: str, service) -> None:
    """Check that options of commands exist, a request is answered, lines of Python parse."""
    words = shlex.split(remedy) if remedy.startswith(("howsure", "GET")) else [""]
    if words[0] == "howsure":
        assert load_command(words[1]).make_context(words[1], words[2:])
    elif words[0] == "GET":
        assert service.client.get(words[1]).is_success
    else:
        ast.parse(remedy)


def test_remedies(service, digits_calibration, golden, tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("model.onnx", "a", "b", "-my set.csv", "my eval.csv"):
        Path(name).touch()
    for name in ("calibration", "evaluation"):
        Path(f"{name}.csv").touch()
        Path(f"{name}.npz").touch()
    kinds = ("inputs", "logits", "pairs")
    cases = [(code, {}, {"kind": kind}, {}) for code in FINDINGS for kind in kinds]
    remedies = []
    for code, figures, data, config in cases + CASES:
        finding = {"code": code, "figures": FIGURES | figures}
        about = {"data": {"kind": "inputs", "format": "csv"} | data}
        about["config"] = {"classes": CLASSES} | config
        changes = [json.dumps(part) for part in (figures, data, config) if part]
        remedies.append(([code, *changes], remedy_of(finding, about, "digits@1")))
    for code in FINDINGS:
        finding = {"code": code, "figures": FIGURES}
        for config in ({}, NAMED):
            heading = [code, "further set", json.dumps(config)]
            remedies.append((heading, remedy_for_further_set(finding, config)))
    lines, previous = [], None
    for heading, remedy in remedies:
        is_followed(remedy.code, service)
        if remedy != previous:
            lines += [", ".join(heading), remedy.text, *remedy.code.splitlines(), ""]
        previous = remedy
    golden("remedies.txt", "\n".join(lines))


@pytest.mark.parametrize(("axis", "shape"), [(1, (1, 2, 2)), (3, (2, 2, 1))])
@pytest.mark.parametrize("factor", [1.0, 1 / 255])
def test_grey_arrays_are_normalised_as_it_is_printed(axis, shape, factor):
    finding = {"code": "inputs-not-scaled", "figures": GREY | {"axis": axis, "factor": factor}}
    about = {"data": {"kind": "inputs"}, "config": {}}
    changed = followed(remedy_of(finding, about).code, inputs=np.full((3, *shape), 0.75 / factor))
    assert changed["inputs"].shape == (3, *shape)
    np.testing.assert_allclose(changed["inputs"], 1.0, rtol=1e-6)

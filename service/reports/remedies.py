"""What mends a finding: a sentence, and a command, a configuration or a line of Python."""

import json
from collections.abc import Mapping
from typing import Any, NamedTuple


class Remedy(NamedTuple):
    """What to do about a finding; ``code`` is empty if no command helps."""

    text: str
    code: str = ""


# `{reference}` is the calibration, `{n_classes}` the number of its classes; other names are figures
# of the finding.
DATA = "Change the arrays of the set, then calibrate again:"
OTHERS = "Check this without storing anything:"
DRY_RUN = "howsure calibrate model.onnx calibration.npz --dry-run"
OUTPUT = "howsure calibrate model.onnx calibration.npz --config '{}'"
REMEDIES: Mapping[str, Remedy] = {
    "inputs-not-scaled": Remedy(DATA, 'inputs = inputs.astype("float32") / 255'),
    "inputs-scaled-twice": Remedy(DATA, 'inputs = inputs.astype("float32") * 255'),
    "labels-shifted": Remedy(DATA, "labels = (labels {offset:+d}) % {n_classes}"),
    "labels-permuted": Remedy(
        "Send the model's index of each class name in the set:",
        OUTPUT.format(json.dumps({"class_map": {"FIRST NAME": 0, "SECOND NAME": 1}})),
    ),
    "softmax-twice": Remedy(
        "Tell the service that the scores are probabilities, and calibrate again:",
        OUTPUT.format(json.dumps({"output": {"kind": "probabilities"}})),
    ),
    "not-probabilities": Remedy(
        "If the model has another output with scores, name it. Otherwise export the model's output "
        "before its argmax:",
        OUTPUT.format(json.dumps({"output": {"name": "NAME"}})),
    ),
    "accuracy-near-chance": Remedy(
        "Check that labels and inputs are in the same order, that the inputs are prepared as in "
        "training, and that this is the trained model. " + OTHERS,
        DRY_RUN,
    ),
    "accuracy-differs": Remedy(
        "Draw both sets at random from the data that will be predicted, and calibrate again:",
        "howsure calibrate model.onnx calibration.npz --evaluation evaluation.npz",
    ),
    "duplicate-samples": Remedy(
        "Keep one of each sample, and calibrate again:",
        "_, rows = numpy.unique(inputs, axis=0, return_index=True)\n"
        "inputs, labels = inputs[rows], labels[rows]",
    ),
    "conflicting-labels": Remedy(
        "Check how these samples were labelled. This lists wrong predictions in reliable bins:",
        "GET /calibrations/{reference}/samples?kind=mislabelled&format=csv",
    ),
    "classes-not-seen": Remedy(
        "Add samples of these classes, or check that the labels belong to this model. " + OTHERS,
        DRY_RUN,
    ),
    "classes-not-predicted": Remedy(
        "Compare the order and number of the model's classes with those of the labels. " + OTHERS,
        DRY_RUN,
    ),
    "few-samples-for-bins": Remedy(
        "Let the service choose the number of bins, or add labelled samples:",
        "howsure refit {reference} --bins auto",
    ),
}


def remedy_of(finding: Mapping[str, Any], report: Mapping[str, Any]) -> Remedy:
    """Return what mends a finding of a report; an empty text for a code that is not known."""
    found = REMEDIES.get(finding["code"], Remedy(""))
    if (
        finding["code"] == "few-samples-for-bins"
        and report["provenance"]["config"]["bins"] == "auto"
    ):
        return Remedy("Add labelled samples.")
    about = report["calibration"]
    values = {
        "{reference}": f"{about['name']}@{about['version']}",
        "{n_classes}": len(report["provenance"]["config"]["classes"]),
        "{offset:+d}": _signed(finding["figures"].get("offset", 0)),
    }
    code = found.code
    for name, value in values.items():
        code = code.replace(name, str(value))
    return found._replace(code=code)


def _signed(offset: int) -> str:
    return f"{'-' if offset < 0 else '+'} {abs(offset)}"

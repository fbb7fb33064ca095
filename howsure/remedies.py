"""What fixes a finding: a sentence, and a command, a request or a line of Python."""

from collections.abc import Mapping
from typing import Any, NamedTuple


class Remedy(NamedTuple):
    """What to do about a finding; ``code`` is empty if no command helps."""

    text: str
    code: str = ""


DATA = "Change the arrays of the set, then calibrate again:"
OTHERS = "Check this without storing anything:"
CALIBRATE = "howsure calibrate model.onnx calibration.npz"
# `{reference}` is the calibration; other names are figures of the finding.
REMEDIES: Mapping[str, Remedy] = {
    "inputs-not-scaled": Remedy(
        "Change the arrays of the set, or for pictures set --preprocessing to the model's scale, "
        "then calibrate again:",
        'inputs = inputs.astype("float32") / 255',
    ),
    "inputs-scaled-twice": Remedy(
        "Change the arrays of the set, or for pictures add --preprocessing none, then calibrate "
        "again:",
        'inputs = inputs.astype("float32") * 255',
    ),
    "labels-shifted": Remedy(DATA, "labels = (labels {sign} {distance}) % {classes}"),
    "labels-permuted": Remedy(
        "Convert the labels to the model's order of classes. If the set has class names, send the "
        "model's index of each:",
        f"""{CALIBRATE} --class-map '{{{{"FIRST NAME": 0, "SECOND NAME": 1}}}}'""",
    ),
    "softmax-twice": Remedy(
        "Export the model without its second softmax. If the service took probabilities for "
        "logits, tell it what they are:",
        f"{CALIBRATE} --output-kind probabilities",
    ),
    "not-probabilities": Remedy(
        "If the model has another output with scores, name it. Otherwise export the model's output "
        "before its argmax:",
        f"{CALIBRATE} --output NAME",
    ),
    "accuracy-near-chance": Remedy(
        "Check that labels and inputs are in the same order, that the inputs are prepared as in "
        f"training, and that this is the trained model. {OTHERS}",
        f"{CALIBRATE} --dry-run",
    ),
    "accuracy-differs": Remedy(
        "Draw both sets at random from the data that will be predicted, and calibrate again:",
        f"{CALIBRATE} --evaluation evaluation.npz",
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
        f"{CALIBRATE} --dry-run",
    ),
    "classes-not-predicted": Remedy(
        "Compare the order and number of the model's classes with those of the labels. " + OTHERS,
        f"{CALIBRATE} --dry-run",
    ),
    "few-samples-for-bins": Remedy(
        "Let the service choose the number of bins, or add labelled samples:",
        "howsure refit {reference} --bins auto",
    ),
}
ONE_BIN = Remedy("Add labelled samples.")  # fewer bins are impossible


def remedy_of(finding: Mapping[str, Any], reference: str = "NAME") -> Remedy:
    """Return what fixes a finding; ``reference`` is what commands call the calibration.

    The text is empty if the code is not known.
    """
    figures = finding["figures"]
    if finding["code"] == "few-samples-for-bins" and figures.get("bins") == 1:
        return ONE_BIN
    found = REMEDIES.get(finding["code"], Remedy(""))
    offset = figures.get("offset", 0)
    signed = {"sign": "-" if offset < 0 else "+", "distance": abs(offset)}
    names = {"classes": "n_classes"} | signed | figures
    return found._replace(code=found.code.format(reference=reference, **names))

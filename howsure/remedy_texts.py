"""What fixes each finding, by its code, for the sets that it may be about."""

from collections.abc import Mapping
from typing import NamedTuple


class Remedy(NamedTuple):
    """What to do about a finding; ``code`` is empty if no command helps."""

    text: str
    code: str = ""


CHANGE_ARRAYS = "Change the arrays of the set, then calibrate again:"
DRY_RUN = "Check this without storing anything:"
# `{reference}` is the calibration, `{calibrate}` the command that makes it, `{set}` and
# `{evaluation}` its sets, `{arrays}` the array of its set; other names are figures of the finding.
REMEDIES: Mapping[str, Remedy] = {
    "inputs-not-scaled": Remedy(CHANGE_ARRAYS, 'inputs = inputs.astype("float32") / 255'),
    "inputs-scaled-twice": Remedy(CHANGE_ARRAYS, 'inputs = inputs.astype("float32") * 255'),
    "wrong-preprocessing": Remedy("Prepare the inputs as in training."),
    "labels-shifted": Remedy(CHANGE_ARRAYS, "labels = (labels {sign} {distance}) % {classes}"),
    "labels-permuted": Remedy(
        "Give the labels the model's order of classes, then calibrate again:",
        "order = numpy.arange({classes})\norder[{sent}] = {meant}\nlabels = order[labels]",
    ),
    "softmax-twice": Remedy(
        "Export the model without its second softmax. If the service took probabilities for "
        "logits, tell it what they are:",
        "{calibrate} --output-kind probabilities",
    ),
    "not-probabilities": Remedy(
        "If the model has another output with scores, name it. Otherwise export the model's output "
        "before its argmax:",
        "{calibrate} --output NAME",
    ),
    "label-output-differs": Remedy(
        "Use the classes that predictions name, or export a model whose labels follow from its "
        "scores."
    ),
    "accuracy-near-chance": Remedy(
        "Check that each label is in the row of its own inputs, that the inputs are prepared as in "
        "training, with columns in the same order, and that this is the trained model. "
        f"{DRY_RUN}",
        "{calibrate} --dry-run",
    ),
    "score-reversed": Remedy(
        "Change the sign of the column in every set, and of the values in requests. An output of "
        "the graph needs its sign changed in the export. Then calibrate again:",
        "uncertainty = -uncertainty",
    ),
    "score-near-chance": Remedy(
        "Match each sample with its own value by an identifier, not by position, then calibrate "
        "again:",
        'rows = samples.merge(scores, on="id")',
    ),
    "inputs-out-of-range": Remedy(
        "Prepare both sets as in training, and calibrate again:",
        "{calibrate} --evaluation {evaluation}",
    ),
    "accuracy-differs": Remedy(
        "Draw both sets at random from the data that will be predicted, or send sampling weights, "
        "and calibrate again:",
        "{calibrate} --evaluation {evaluation}",
    ),
    "no-errors": Remedy("Calibrate with samples that the model was not trained on."),
    "samples-in-both-sets": Remedy("Give an evaluation set of other samples."),
    "duplicate-samples": Remedy(
        "Keep one of each sample, and calibrate again:",
        "_, rows = numpy.unique({arrays}, axis=0, return_index=True)\n"
        "{arrays}, labels = {arrays}[rows], labels[rows]",
    ),
    "conflicting-labels": Remedy(
        "Check how these samples were labelled. This lists wrong predictions in reliable bins:",
        "GET /calibrations/{reference}/samples?kind=mislabelled&format=csv",
    ),
    "surest-answers-denied": Remedy(
        "Look at the samples whose labels are most likely wrong. If the labels are right, the "
        "model is sure where it is wrong, and no threshold keeps these errors out. See:",
        "GET /calibrations/{reference}/samples?kind=mislabelled&format=csv",
    ),
    "classes-not-seen": Remedy(
        "Add samples of these classes, or check that the labels belong to this model. " + DRY_RUN,
        "{calibrate} --dry-run",
    ),
    "classes-not-predicted": Remedy(
        "Compare the order and number of the model's classes with those of the labels, and prepare "
        "the inputs as in training. Then compare a few predictions with their labels:",
        "howsure predict {reference} {set} --output predictions.csv",
    ),
    "few-samples-for-bins": Remedy(
        "Let the service choose the number of bins, or add labelled samples:",
        "howsure refit {reference} --bins auto",
    ),
}
REMEDIES_OF_PAIRS: Mapping[str, Remedy] = {
    "score-reversed": Remedy(
        "Change one of the two columns, not both, then calibrate again. Send scores with the same "
        "sign in requests:",
        "score = -score  # if larger means less certain, as a distance does\n"
        "correct = 1 - correct  # if 1 means wrong",
    ),
    "score-near-chance": Remedy(
        "Match each score with its own answer by an identifier, not by position, then calibrate "
        "again:",
        'pairs = scores.merge(answers, on="id")',
    ),
}
# Red and blue that are swapped look like classes that are.
SAME_INPUTS = "If the inputs are prepared as those of the calibration set"
# For further sets, which change no calibration.
REMEDIES_OF_FURTHER_SETS: Mapping[str, Remedy] = {
    "labels-shifted": Remedy(
        f"{SAME_INPUTS}, change the labels of the set:", REMEDIES["labels-shifted"].code
    ),
    "labels-permuted": Remedy(
        f"{SAME_INPUTS}, give the labels of the set the model's order of classes:",
        REMEDIES["labels-permuted"].code,
    ),
    "score-reversed": Remedy(
        "Change one of the two columns of the set, not both, so that they mean the same as in the "
        "calibration set:",
        REMEDIES_OF_PAIRS["score-reversed"].code,
    ),
    "accuracy-near-chance": Remedy(
        "Check that each label of the set is in the row of its own sample: match them by an "
        "identifier, not by position. If so, the model fails on this set, or its rare classes have "
        "too few samples to tell."
    ),
    "score-near-chance": Remedy(
        "Match each score of the set with its own answer by an identifier, not by position:",
        REMEDIES_OF_PAIRS["score-near-chance"].code,
    ),
    "inputs-out-of-range": Remedy("Prepare the set as the calibration set."),
    "samples-in-both-sets": Remedy("Take the samples of the calibration set out of the set."),
}
NAMED_LABELS = (
    f"{SAME_INPUTS}, rename labels of the set that are names, or change those that are numbers:"
)
ONE_PROBABILITY = "If the one column of probabilities is that of class 0, send 1 minus it instead."
ONE_BIN = Remedy("Add labelled samples.")  # fewer bins are impossible
# By a figure that only some findings of a code have.
REMEDIES_BY_FIGURE: Mapping[str, Mapping[str, Remedy]] = {
    # Equal rows of such a set may be different samples, so one of each is too few.
    "duplicate-samples": {
        "times": Remedy(
            "Undo what repeated the set, so that each sample is in it once; calibrate again."
        )
    },
    "label-output-differs": {
        "threshold": Remedy(
            "If the label output is what you use, have predictions follow it:",
            "{calibrate} --decision-threshold {threshold:g}",
        )
    },
    "classes-not-predicted": {
        "threshold": Remedy(
            "Use the probability of class 1, or set the threshold that the model was tuned for, or "
            "1 / (1 + c) where a missed event costs c false alarms. To begin with:",
            "{calibrate} --decision-threshold {threshold:.2g}",
        )
    },
}
# For calibrations of uploaded outputs: there is no model to export again.
REMEDIES_OF_OUTPUTS: Mapping[str, Remedy] = {
    "softmax-twice": Remedy(
        "If these scores are probabilities, name them so; if a softmax was applied to "
        "probabilities, leave it out. Then calibrate again:",
        'numpy.savez("calibration.npz", probabilities={arrays}, labels=labels)',
    ),
    "not-probabilities": Remedy("Send the model's scores before its argmax, then calibrate again."),
    "accuracy-near-chance": Remedy(
        f"Check that labels and scores are in the same order. {DRY_RUN}", "{calibrate} --dry-run"
    ),
}

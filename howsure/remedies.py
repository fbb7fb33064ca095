"""What fixes a finding: a sentence, and a command, a request or a line of Python."""

import json
import shlex
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from howsure.calibrate_command import TypedWords, calibrate_command, set_file


class Remedy(NamedTuple):
    """What to do about a finding; ``code`` is empty if no command helps."""

    text: str
    code: str = ""


CHANGE_ARRAYS = "Change the arrays of the set, then calibrate again:"
DRY_RUN = "Check this without storing anything:"
# Options that a remedy adds to the command, in place of those of the calibration.
REPLACED = ("preprocessing", "class_map", "classes", "evaluation")
MOST_NAMES = 20  # of classes that are written out
# The key, in the description of a set, of what labels are where columns have the classes' names.
LABELS_OF_NAMED_COLUMNS = "labels_of_named_columns"
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
    "accuracy-near-chance": Remedy(
        "Check that labels and inputs are in the same order, that the inputs are prepared as in "
        f"training, and that this is the trained model. {DRY_RUN}",
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
        "Draw both sets at random from the data that will be predicted, and calibrate again:",
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
# For further sets, which change no calibration.
REMEDIES_OF_FURTHER_SETS: Mapping[str, Remedy] = {
    "labels-shifted": Remedy("Change the labels of the set:", REMEDIES["labels-shifted"].code),
    "labels-permuted": Remedy(
        "Give the labels of the set the model's order of classes:", REMEDIES["labels-permuted"].code
    ),
    "score-reversed": Remedy(
        "Change one of the two columns of the set, not both, so that they mean the same as in the "
        "calibration set:",
        REMEDIES_OF_PAIRS["score-reversed"].code,
    ),
    "score-near-chance": Remedy(
        "Match each score of the set with its own answer by an identifier, not by position:",
        REMEDIES_OF_PAIRS["score-near-chance"].code,
    ),
    "inputs-out-of-range": Remedy("Prepare the set as the calibration set, and evaluate it again."),
    "samples-in-both-sets": Remedy("Take the samples of the calibration set out of the set."),
}
NAMED_LABELS = "If labels of the set are names, rename them; if they are numbers, change them:"
ONE_BIN = Remedy("Add labelled samples.")  # fewer bins are impossible
# Equal rows of such a set may be different samples, so one of each is too few.
REPEATED = Remedy("Undo what repeated the set, so that each sample is in it once; calibrate again.")
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


def remedy_of(
    finding: Mapping[str, Any],
    about: Mapping[str, Any],
    reference: str = "NAME",
    *,
    typed: TypedWords | None = None,
) -> Remedy:
    """Return what fixes a finding; ``reference`` is what commands call the calibration.

    ``about`` has ``config`` and ``data`` of the calibration, of its dry run or of its report's
    provenance. ``typed`` has the words of the command that made it, if they are known. The text is
    empty if the code is not known.
    """
    data, figures = about["data"], finding["figures"]
    found = _remedy(finding["code"], figures, about["config"], data)
    replaceable = REPLACED if typed is None else typed
    replaced = [key for key in replaceable if f"--{key.replace('_', '-')} " in f"{found.code} "]
    if "classes" in replaced:
        replaced.append("class_map")  # which would decide
    if typed is not None:
        replaced.append("dry_run")
    names = {
        "reference": reference,
        **_sets(about, typed or {}),
        "arrays": data["kind"],
        "calibrate": calibrate_command(about, without=replaced, typed=typed),
        **_offset(figures),
    }
    return found._replace(code=found.code.format_map(names | figures))


def _sets(about: Mapping[str, Any], typed: TypedWords) -> dict[str, str]:
    """Return the words for the two sets of a calibration."""
    further = f"evaluation.{about['data'].get('format', 'npz')}"
    found = {
        "set": typed.get("files", [set_file(about)])[-1],
        "evaluation": typed.get("evaluation", [further])[-1],
    }
    return {name: shlex.quote(word) for name, word in found.items()}


def remedy_for_further_set(finding: Mapping[str, Any], config: Mapping[str, Any]) -> Remedy:
    """Return what fixes a finding about a further set, before the set is evaluated again.

    ``config`` is that of the calibration. The text is empty if the code is not known.
    """
    code, figures = finding["code"], finding["figures"]
    found = REMEDIES_OF_FURTHER_SETS.get(code, Remedy(""))
    if code.startswith("labels-") and config.get("class_map"):
        found = Remedy(NAMED_LABELS, found.code)
    return found._replace(code=found.code.format_map({**figures, **_offset(figures)}))


def _offset(figures: Mapping[str, Any]) -> dict[str, Any]:
    offset = figures.get("offset", 0)
    return {"sign": "-" if offset < 0 else "+", "distance": abs(offset)}


def _remedy(
    code: str, figures: Mapping[str, Any], config: Mapping[str, Any], data: Mapping[str, Any]
) -> Remedy:
    if code == "few-samples-for-bins" and figures.get("bins") == 1:
        return ONE_BIN
    if code == "duplicate-samples" and "times" in figures:
        return REPEATED
    if code in ("inputs-not-scaled", "inputs-scaled-twice"):
        return _rescaled(code, figures)
    if code == "wrong-preprocessing":
        suffix = data.get("format", "npz")
        return _prepared(figures, config.get("preprocessing"), suffix=suffix)
    if code in ("labels-shifted", "labels-permuted") and config.get("class_map"):
        return _relabelled(code, figures, config, data.get(LABELS_OF_NAMED_COLUMNS))
    found = REMEDIES.get(code, Remedy(""))
    if data["kind"] == "pairs":
        found = REMEDIES_OF_PAIRS.get(code, found)
    return found if data["kind"] == "inputs" else REMEDIES_OF_OUTPUTS.get(code, found)


def _rescaled(code: str, figures: Mapping[str, Any]) -> Remedy:
    """Return the arrays that bring the inputs to the model's scale."""
    mean, std, factor = figures.get("mean"), figures.get("std"), figures.get("factor", 1.0)
    if not mean:
        return REMEDIES[code]
    shape = "(3, 1, 1)" if figures["axis"] == 1 else "(3,)"
    scaled = "inputs / 255" if factor < 1.0 else "inputs"
    return Remedy(
        "Normalise the arrays of the set, then calibrate again:",
        f"mean, std = numpy.reshape({mean}, {shape}), numpy.reshape({std}, {shape})\n"
        f'inputs = (({scaled} - mean) / std).astype("float32")',
    )


def _prepared(
    figures: Mapping[str, Any], preprocessing: Mapping[str, Any] | None, *, suffix: str
) -> Remedy:
    """Return the options, or the change of pictures or arrays, that the model was trained with."""
    if "scale" in figures and preprocessing:
        colour = preprocessing["colour"]
        if figures["channels_reversed"]:
            colour = "rgb" if colour == "bgr" else "bgr"
        values = {key: figures[key] for key in ("scale", "mean", "std")}
        changed = {**preprocessing, **values, "colour": colour}
        text = "Calibrate again with this preprocessing:"
        return Remedy(text, _option("--preprocessing", changed))
    text = "Change the pictures of the set, and those of every prediction, then calibrate again:"
    name, axis = "pixels" if preprocessing else "inputs", figures.get("axis", 1)
    of_files = preprocessing and suffix not in {"npz", "npy"}
    if figures.get("inverted"):
        if of_files:
            return Remedy(text, 'picture = PIL.ImageOps.invert(picture.convert("RGB"))')
        return Remedy(text, f"{name} = {figures['largest']:g} - {name}")
    if figures.get("transposed"):
        if of_files:
            return Remedy(text, "picture = picture.transpose(PIL.Image.Transpose.TRANSPOSE)")
        return Remedy(text, f"{name} = {name}.swapaxes({axis}, {axis + 1})")
    return Remedy(text, f"{name} = numpy.flip({name}, axis={axis})")


def _relabelled(
    code: str, figures: Mapping[str, Any], config: Mapping[str, Any], labels_are: str | None
) -> Remedy:
    """Return how labels of named classes get the model's order."""
    names = config["classes"]
    meant = {index: index for index in range(figures["classes"])}
    if code == "labels-shifted":
        meant = {index: (index + figures["offset"]) % len(meant) for index in meant}
    else:
        meant |= dict(zip(figures["sent"], figures["meant"], strict=True))
    if labels_are == "names":
        renamed = {names[index]: names[of] for index, of in meant.items() if index != of}
        return Remedy(
            "Columns and labels disagree about the names of classes. If the columns have wrong "
            "names, rename them; if the labels have, rename these. Then calibrate again:",
            _escaped(f"labels = labels.replace({renamed})"),
        )
    option, text = "class_map", "Send the model's index of each class name"
    order: Any = {name: meant[index] for name, index in config["class_map"].items()}
    if labels_are == "positions":
        option = "classes"
        text = "Labels and columns differ in order. Send the columns' names in the order of labels"
        order = [names[of] for of in meant.values()]
    if len(order) > MOST_NAMES:
        return Remedy(f"{text}, in config.{option}, then calibrate again.")
    return Remedy(f"{text}, then calibrate again:", _option(f"--{option.replace('_', '-')}", order))


def _option(name: str, value: Mapping[str, Any] | Sequence[str]) -> str:
    """Return the command with an option in JSON, for `str.format`."""
    text = shlex.quote(json.dumps(value, ensure_ascii=False))
    return f"{{calibrate}} {name} {_escaped(text)}"


def _escaped(text: str) -> str:
    return text.replace("{", "{{").replace("}", "}}")

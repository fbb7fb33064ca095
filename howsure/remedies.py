"""What fixes a finding: a sentence, and a command, a request or a line of Python."""

import json
import shlex
from collections.abc import Mapping, Sequence
from typing import Any

from howsure.calibrate_command import FILES, TypedWords, calibrate_command, path_word, set_file
from howsure.remedy_texts import (
    NAMED_LABELS,
    ONE_BIN,
    ONE_PROBABILITY,
    REMEDIES,
    REMEDIES_BY_FIGURE,
    REMEDIES_OF_FURTHER_SETS,
    REMEDIES_OF_OUTPUTS,
    REMEDIES_OF_PAIRS,
    Remedy,
)

# Options that a remedy adds to the command, in place of those of the calibration.
REPLACED = ("preprocessing", "class_map", "classes", "evaluation", "decision_threshold")
MOST_NAMES = 20  # of classes that are written out
# Below it the labels of a usable classifier are probably not all that is wrong.
LOW_ACCURACY = 0.7
# The key, in the description of a set, of what labels are where columns have the classes' names.
LABELS_OF_NAMED_COLUMNS = "labels_of_named_columns"
OF_EVALUATION = "of_evaluation"  # the figure of findings that are about the labels of that set
BINARY = 2  # classes
LABEL_CODES = ("labels-shifted", "labels-permuted")


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
    if OF_EVALUATION in figures:
        found = _of_other_set(finding["code"], about["config"])
    else:
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
    data = about["data"]
    sent = data.get(FILES, {}).get("evaluation")
    further = path_word(sent or f"evaluation.{data.get('format', 'npz')}")
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
    found = _of_other_set(code, config)
    return found._replace(code=found.code.format_map({**figures, **_offset(figures)}))


def _of_other_set(code: str, config: Mapping[str, Any]) -> Remedy:
    found = REMEDIES_OF_FURTHER_SETS.get(code, Remedy(""))
    if code in LABEL_CODES and config.get("class_map"):
        return Remedy(NAMED_LABELS, found.code)
    return found


def _offset(figures: Mapping[str, Any]) -> dict[str, Any]:
    offset = figures.get("offset", 0)
    return {"sign": "-" if offset < 0 else "+", "distance": abs(offset)}


def _remedy(
    code: str, figures: Mapping[str, Any], config: Mapping[str, Any], data: Mapping[str, Any]
) -> Remedy:
    if (code, figures.get("bins")) == ("few-samples-for-bins", 1):
        return ONE_BIN
    for figure, remedy in REMEDIES_BY_FIGURE.get(code, {}).items():
        if figure in figures:
            return remedy
    if code in ("inputs-not-scaled", "inputs-scaled-twice"):
        return _rescaled(code, figures)
    if code == "wrong-preprocessing":
        suffix = data.get("format", "npz")
        return _prepared(figures, config.get("preprocessing"), suffix=suffix)
    if code in LABEL_CODES:
        found = REMEDIES[code]
        if config.get("class_map"):
            found = _relabelled(code, figures, config, data.get(LABELS_OF_NAMED_COLUMNS))
        if data["kind"] == "probabilities" and figures["classes"] == BINARY:
            found = found._replace(text=f"{ONE_PROBABILITY} {found.text}")
        return _with_doubt(found, figures)
    found = REMEDIES.get(code, Remedy(""))
    if data["kind"] == "pairs":
        found = REMEDIES_OF_PAIRS.get(code, found)
    return found if data["kind"] == "inputs" else REMEDIES_OF_OUTPUTS.get(code, found)


def _rescaled(code: str, figures: Mapping[str, Any]) -> Remedy:
    """Return the arrays that bring the inputs to the model's scale."""
    mean, std, factor = figures.get("mean"), figures.get("std"), figures.get("factor", 1.0)
    if not mean:
        return REMEDIES[code]
    channels = len(mean)
    shape = f"({channels}, 1, 1)" if figures["axis"] == 1 else f"({channels},)"
    scaled = "inputs / 255" if factor < 1.0 else "inputs"
    return Remedy(
        "Normalise the arrays of the set, with another mean and std if training used others. Then "
        "calibrate again:",
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
        text = "Calibrate again with this preprocessing, or with the mean and std of training:"
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


def _with_doubt(found: Remedy, figures: Mapping[str, Any]) -> Remedy:
    """Say that inputs come first if the accuracy stays low with other labels."""
    accuracy = figures.get("shifted_accuracy", figures.get("matched_accuracy", 1.0))
    if accuracy >= LOW_ACCURACY:
        return found
    first = f"If the model should be right more often than {100 * accuracy:.1f} %, mend its inputs"
    return found._replace(text=f"{first} first. {found.text}")


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
            "names, rename them; only if the labels have, rename these. Then calibrate again:",
            _escaped(f"labels = labels.replace({renamed})  # if the columns are right"),
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

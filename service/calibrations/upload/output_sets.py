"""Sets of a model's outputs, or of pairs: what a model and a configuration beside them may say."""

from itertools import chain

from howsure.statistics.measures import SCORE
from howsure.statistics.records.pairs import CLASS_NAMES
from service.calibrations.config import CalibrationConfig, OutputConfig
from service.calibrations.upload.onnx_model import InspectedOnnxModel
from service.child.reading.columns import listed
from service.errors import InvalidConfig, InvalidInput
from service.runner.messages.dataset import PAIRS, DatasetInfo

TOP_1 = 1
# Keys that describe classes or a model.
NOT_OF_PAIRS = ("classes", "class_map", "columns", "decision_threshold", "output")


def pairs_config(config: CalibrationConfig) -> CalibrationConfig:
    """Return the configuration with the one event and the one measure of pairs.

    Raises
    ------
    InvalidConfig
        If it asks for another event or measure, or describes classes or a model.
    """
    if config.top_k not in (None, [TOP_1]):
        raise InvalidConfig.at(
            "config.top_k", "pairs have one event, 1, that the answer is correct; leave top_k out"
        )
    asked = config.model_fields_set
    for key in NOT_OF_PAIRS:
        if key in asked and getattr(config, key):
            raise InvalidConfig.at(
                f"config.{key}", f"calibration holds pairs, which have no {key}; leave it out"
            )
    if "measures" in asked and config.measures != [SCORE]:
        raise InvalidConfig.at(
            "config.measures", f'pairs have one measure, "{SCORE}"; leave measures out'
        )
    return config.model_copy(
        update={"top_k": [TOP_1], "measures": [SCORE], "serve": {str(TOP_1): SCORE}}
    )


def check_kind(config: CalibrationConfig, info: DatasetInfo, *, has_model: bool) -> None:
    """Refuse inputs without a model, and a model or preprocessing for a model's outputs.

    Raises
    ------
    InvalidInput
        If there is a model beside outputs, or none beside inputs.
    InvalidConfig
        If the configuration describes what such a set does not have.
    """
    kind = info.kind
    if kind == "inputs":
        if not has_model:
            raise InvalidInput.at(
                "model",
                "calibration holds inputs, so an ONNX model is needed; "
                f"without one, upload its `logits` or `probabilities`{_renaming(info)}, and say in "
                "config.output.kind which of them an .npy array holds, or upload pairs in columns "
                "`score` and `correct`",
            )
    elif has_model:
        raise InvalidInput.at(
            "model", f"calibration already holds {kind}; send a model or its outputs, not both"
        )
    elif config.preprocessing is not None:
        raise InvalidConfig.at(
            "config.preprocessing",
            f"calibration holds {kind}, and there is no model to prepare"
            " pictures for; leave it out",
        )
    elif kind != PAIRS:
        _check_output(config.output, info)


def _renaming(info: DatasetInfo) -> str:
    """Return what the columns of a table would be called if they were outputs."""
    names = list(chain.from_iterable(info.columns.values()))
    if not names:
        return ""
    first = names[-1]  # ids are usually in front
    if len(names) == 1:
        return (
            " in a column for each class, `logit_0`, `logit_1`, … or `prob_0`, `prob_1`, …: of two "
            f"classes, rename {listed([first])} to `prob` if it is the probability of class 1; if "
            "it is a logit z, write `logit_0` = 0 and `logit_1` = z"
        )
    return (
        " in columns `prob_<class>` or `logit_<class>` "
        f"(rename {listed([first])} to {listed([f'prob_{first}'])})"
    )


# The names of outputs in sets, for messages.
_NAMES_OF_OUTPUTS = {
    "logits": "`logits` in .npz, `logit_0`, `logit_1`, … in a table",
    "probabilities": "`probabilities` in .npz, `prob_0`, `prob_1`, … in a table",
}


def _check_output(output: OutputConfig, info: DatasetInfo) -> None:
    """Refuse options that contradict the names in a set of outputs, or describe a model."""
    if output.name is not None:
        raise InvalidConfig.at(
            "config.output.name",
            f"calibration holds {info.kind}, and there is no model with outputs; leave it out",
        )
    if output.kind not in (None, info.kind):
        raise InvalidConfig.at(
            "config.output.kind",
            f"says {output.kind}, but the scores of calibration are named {info.kind}; if they are "
            f"{output.kind}, rename them ({_NAMES_OF_OUTPUTS[output.kind]}), otherwise leave "
            "output.kind out",
        )


def classes_of_outputs(info: DatasetInfo) -> InspectedOnnxModel:
    """Return the number and the names of the classes of outputs, in place of a model's."""
    if info.kind == PAIRS:
        return InspectedOnnxModel(None, len(CLASS_NAMES), list(CLASS_NAMES), warnings=[])
    n_classes = info.n_classes or 0  # `check_kind` has refused inputs
    return InspectedOnnxModel(None, n_classes, [str(i) for i in range(n_classes)], warnings=[])

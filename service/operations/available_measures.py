"""The measures that were asked for against what the model and the sets give."""

from collections.abc import Mapping, Sequence
from typing import Any

from service.core.fit import FitOptions
from service.core.measures import (
    OUTPUT,
    SUPPLIED,
    check_measures,
    is_output,
    is_perturbation,
    is_supplied,
)
from service.errors import InvalidConfig
from service.graph.quote import quote, quote_all
from service.operations.config import CalibrationConfig

PLACE = "config.measures"


def checked_options(
    config: CalibrationConfig,
    top_k: tuple[int, ...],
    *,
    logits: bool,
    supplied: Sequence[str],
    outputs: Sequence[str] | None,
    passes: Sequence[str] | None,
) -> FitOptions:
    """Return the options of the fit, every measure of which there is.

    Parameters
    ----------
    logits
        Whether the scores of the classes are logits.
    supplied
        Names of the columns ``uncertainty_<name>`` that come with every set.
    outputs
        Scalar outputs that the model's answers hold; None where there is no model.
    passes
        Measures that run the model more than once and that the records hold; None where there is
        no model.

    Raises
    ------
    InvalidConfig
        If a measure needs logits where there are none, is supplied by no set or no output, was not
        run, or an event is left with nothing to serve it.
    """
    for measure in config.measures:
        if is_supplied(measure) and measure.removeprefix(SUPPLIED) not in supplied:
            name = measure.removeprefix(SUPPLIED)
            given = ", ".join(f"uncertainty_{found}" for found in supplied) or "none"
            raise InvalidConfig.at(
                PLACE,
                f"{measure} needs a column uncertainty_{name} in every set; they hold {given}",
            )
    for name in asked_outputs(config):
        _check_output(name, outputs)
    for measure in filter(is_perturbation, config.measures):
        _check_passes(measure, passes)
    try:
        check_measures(config.measures, logits=logits)
        return config.fit_options(top_k)
    except ValueError as error:
        raise InvalidConfig.at(PLACE, str(error)) from error


def asked_outputs(config: CalibrationConfig) -> list[str]:
    """Return the outputs of the model that are asked for as measures."""
    return [name.removeprefix(OUTPUT) for name in config.measures if is_output(name)]


def kept_outputs(onnx_model: Mapping[str, Any] | None) -> list[str] | None:
    """Return the scalar outputs that the records of a stored model hold; None without a model."""
    if onnx_model is None:
        return None
    # Models stored before there were any lack the key.
    return list(onnx_model["resolved"].get("scalar_outputs", []))


def kept_passes(onnx_model: Mapping[str, Any] | None) -> list[str] | None:
    """Return the measures that the records of a stored model hold passes of; None without one."""
    if onnx_model is None:
        return None
    return [plan["measure"] for plan in onnx_model["resolved"].get("passes", [])]


def gives_logits(onnx_model: Mapping[str, Any]) -> bool:
    """Tell whether what predicts are logits; a mean is one of probabilities."""
    resolved = onnx_model["resolved"]
    return onnx_model["output"]["kind"] == "logits" and not resolved.get("averaged")


def _check_output(name: str, outputs: Sequence[str] | None) -> None:
    if outputs is None:
        raise InvalidConfig.at(
            PLACE,
            f"{quote(OUTPUT + name)} needs an ONNX model; beside its uploaded outputs a measure "
            f"comes as a column uncertainty_<name>, and is called {SUPPLIED}<name>",
        )
    if name not in outputs:
        raise InvalidConfig.at(
            PLACE,
            f"the records hold no output {quote(name)} of the model, but "
            f"{quote_all(list(outputs)) or 'none'}; calibrate anew",
        )


def _check_passes(measure: str, passes: Sequence[str] | None) -> None:
    if passes is None:
        raise InvalidConfig.at(
            PLACE,
            f"{measure} needs an ONNX model, which it runs more than once; beside its uploaded "
            f"outputs it comes as a column uncertainty_<name>, and is called {SUPPLIED}<name>",
        )
    if measure not in passes:
        raise InvalidConfig.at(PLACE, f"the records hold no {measure}; calibrate anew")

"""Checks of an uploaded set against the model, the configuration and the other set."""

from collections.abc import Sequence

import numpy as np

from howsure.bins_document.pass_plan import ENSEMBLE
from howsure.outputs import are_distributions, are_percentages
from howsure.statistics.arrays import Labels
from howsure.statistics.bins.fit import CANDIDATES
from howsure.statistics.fit.options import FitOptions
from howsure.statistics.measures import (
    MULTI_PASS_MEASURES,
    OUTPUT,
    SCORE,
    SUPPLIED,
    check_measures,
    output_names,
    parse_measure,
    supplied_names,
)
from service.calibrations.config import CalibrationConfig
from service.calibrations.fit_config import MAX_TABLE_BINS
from service.child.reading.checks import counted_from_one
from service.child.reading.output_checks import AS_LOGITS
from service.errors import InvalidConfig, InvalidDataset, TooLarge, shown
from service.graph.description import quote, quote_all
from service.runner.messages.dataset import PAIRS, Batch, DatasetInfo, ScoreRange
from service.runner.model_description import ModelDescription


def check_class_map(info: DatasetInfo, config: CalibrationConfig, n_classes: int) -> None:
    """Refuse a class map with an index out of range, and a missing class in an order by name.

    Raises
    ------
    InvalidConfig
        Naming the first such key.
    InvalidDataset
        If classes are numbered by the order of their names and their number differs from the
        model's: the missing class is unknown.
    """
    for name, index in (config.class_map or {}).items():
        if index >= n_classes:
            raise InvalidConfig.at(
                f"config.class_map.{shown(name)[1:-1]}",
                f"expected a class from 0 to {n_classes - 1}, got {index}",
            )
    found = info.class_map or {}
    if info.is_numbered_by_name and len(found) != n_classes:
        raise InvalidDataset.at(
            "calibration",
            f"holds {len(found)} classes by name where the model has {n_classes}, so their order "
            "does not tell which is which; send config.class_map",
        )


def check_same_classes(calibration: DatasetInfo, evaluation: DatasetInfo) -> None:
    """Refuse an evaluation set in which a class name has another index.

    Raises
    ------
    InvalidDataset
        Naming the first such class.
    """
    ours = calibration.class_map or {}
    for name, index in (evaluation.class_map or {}).items():
        if ours.get(name, index) != index or (ours and name not in ours):
            raise InvalidDataset.at(
                "evaluation",
                f"its class {shown(name)} is number {index} by the order of names, and "
                f"{ours.get(name, 'none')} in calibration; send config.class_map",
            )


def class_names(info: DatasetInfo, n_classes: int) -> list[str] | None:
    """Return the class names of a set if it names each class once."""
    by_index = sorted((index, name) for name, index in (info.class_map or {}).items())
    is_each = [index for index, _ in by_index] == list(range(n_classes))
    return [name for _, name in by_index] if is_each else None


def check_label_range(labels: Labels, location: str, n_classes: int) -> None:
    """Refuse labels that are no class of the model.

    Raises
    ------
    InvalidDataset
        Naming the first such row.
    """
    bad = labels >= n_classes
    if bad.any():
        row = int(np.argmax(bad))
        raise InvalidDataset.at(
            f"{location}.labels[{row}]",
            f"expected a class from 0 to {n_classes - 1}, got {int(labels[row])}; "
            + (counted_from_one(labels, n_classes) or "count labels from 0")
            + ", or map them by class_map",
        )


def check_same_scores(given: Batch, *, place: str, may_be_probabilities: bool) -> None:
    """Refuse logits that are probabilities where those of the calibration set were none.

    Raises
    ------
    InvalidDataset
        Naming the array.
    """
    if not may_be_probabilities and are_distributions(given.arrays["logits"]):
        raise InvalidDataset.at(
            f"{place}.logits",
            "expected logits as in the calibration set, got numbers from 0 to 1 that sum to 1 in "
            "each row; send the model's logits, or the logarithms of these",
        )


def check_no_percentages(given: Batch, *, place: str) -> None:
    """Refuse logits that are percentages.

    Raises
    ------
    InvalidDataset
        Naming the array.
    """
    if are_percentages(given.arrays["logits"]):
        raise InvalidDataset.at(f"{place}.logits", AS_LOGITS)


def check_same_score_range(info: DatasetInfo, known: ScoreRange | None, *, place: str) -> None:
    """Refuse pairs whose scores all lie outside those of the calibration set.

    Raises
    ------
    InvalidDataset
        Naming both ranges.
    """
    found = info.score_range
    if found is None or known is None or info.n_samples < FEWEST_PAIRS:
        return
    if found[1] < known[0] or found[0] > known[1]:
        raise InvalidDataset.at(
            f"{place}.score",
            f"expected scores like those of the calibration set, from {known[0]:g} to "
            f"{known[1]:g}, got scores from {found[0]:g} to {found[1]:g}; send both on one scale",
        )


# So many different samples do not lie outside by chance.
FEWEST_PAIRS = 10


def check_same_layout(ours: DatasetInfo, theirs: DatasetInfo) -> None:
    """Refuse an evaluation set of another kind, with other arrays, shapes or columns.

    Raises
    ------
    InvalidDataset
        Naming what differs.
    """
    if ours.kind != theirs.kind:
        raise InvalidDataset.at(
            "evaluation", f"holds {theirs.kind} where calibration holds {ours.kind}"
        )
    if ours.arrays.keys() != theirs.arrays.keys():
        raise InvalidDataset.at(
            "evaluation",
            f"expected the arrays of calibration, {', '.join(ours.arrays)}, "
            f"got {', '.join(theirs.arrays)}",
        )
    if set(ours.supplied) - set(theirs.supplied):
        raise InvalidDataset.at(
            "evaluation",
            "expected the columns of calibration, "
            f"{', '.join(f'uncertainty_{name}' for name in ours.supplied)}",
        )
    for name, array in ours.arrays.items():
        if array.shape[1:] != theirs.arrays[name].shape[1:]:
            raise InvalidDataset.at(
                f"evaluation.{name}",
                f"expected rows of shape {list(array.shape[1:])} as in calibration, "
                f"got {list(theirs.arrays[name].shape[1:])}",
            )


MAX_MODELS = 100


def check_ensemble(n_models: int, config: CalibrationConfig) -> None:
    """Refuse too many models, and measures of a single model for several.

    Raises
    ------
    TooLarge, InvalidConfig
        Naming the part or the measure.
    """
    if n_models > MAX_MODELS:
        raise TooLarge.at("model", f"expected at most {MAX_MODELS} ONNX files, got {n_models}")
    if n_models > 1:
        for measure in config.measures:
            if parse_measure(measure).needs_model and measure != ENSEMBLE:
                raise InvalidConfig.at(
                    "config.measures",
                    f"{quote(measure)} needs one model, and {n_models} came, an ensemble; leave "
                    f"the measure out or send one of them ({ENSEMBLE} is what several models give)",
                )


PLACE = "config.measures"


def checked_options(
    config: CalibrationConfig,
    top_k: tuple[int, ...],
    *,
    kind: str,
    supplied: Sequence[str],
    model: ModelDescription | None,
) -> FitOptions:
    """Return the options of the fit, after a check that every measure is available.

    Parameters
    ----------
    kind
        What the calibration set holds: ``inputs``, ``logits``, ``probabilities`` or ``pairs``.
    supplied
        Names of the columns ``uncertainty_<name>`` that come with every set.
    model
        The model with the outputs and passes that the records hold; None where there is none.

    Raises
    ------
    InvalidConfig
        If a measure needs logits where there are none, is supplied by no set or no output, was not
        run, an event is left with nothing to serve it, or the tables have too many bins.
    """
    _check_bins(config, top_k)
    _check_score(config.measures, kind)
    for name in supplied_names(config.measures):
        if name not in supplied:
            given = ", ".join(f"uncertainty_{found}" for found in supplied) or "none"
            raise InvalidConfig.at(
                PLACE,
                f"{SUPPLIED}{name} needs a column uncertainty_{name} in every set; "
                f"they hold {given}",
            )
    for name in output_names(config.measures):
        _check_output(name, model)
    for measure in filter(MULTI_PASS_MEASURES.__contains__, config.measures):
        _check_passes(measure, model)
    try:
        logits = kind == "logits" if model is None else model.predicts_logits
        check_measures(config.measures, logits=logits)
        return config.fit_options(top_k)
    except ValueError as error:
        raise InvalidConfig.at(PLACE, str(error)) from error


def _check_bins(config: CalibrationConfig, top_k: tuple[int, ...]) -> None:
    each = CANDIDATES[-1] if config.bins == "auto" else config.bins
    if each * len(config.measures) * len(top_k) > MAX_TABLE_BINS:
        raise InvalidConfig.at(
            "config.bins",
            f"expected at most {MAX_TABLE_BINS} bins in all tables, got {each} for each of "
            f"{len(config.measures)} measures and {len(top_k)} events; use fewer of one of them",
        )


def _check_score(measures: Sequence[str], kind: str) -> None:
    """Refuse other measures for pairs, and the measure of pairs for other sets."""
    if kind == PAIRS and list(measures) != [SCORE]:
        raise InvalidConfig.at(PLACE, f'pairs have one measure, "{SCORE}"; leave measures out')
    if kind != PAIRS and SCORE in measures:
        raise InvalidConfig.at(
            PLACE,
            f'"{SCORE}" is the measure of pairs, a set with columns `score` and `correct`; a '
            f"number beside {kind} comes as a column uncertainty_<name>, and is called "
            f"{SUPPLIED}<name>",
        )


def _check_output(name: str, model: ModelDescription | None) -> None:
    if model is None:
        raise InvalidConfig.at(
            PLACE,
            f"{quote(OUTPUT + name)} needs an ONNX model; beside its uploaded outputs a measure "
            f"comes as a column uncertainty_<name>, and is called {SUPPLIED}<name>",
        )
    if name not in model.scalar_outputs:
        raise InvalidConfig.at(
            PLACE,
            f"the records hold no output {quote(name)} of the model, but "
            f"{quote_all(model.scalar_outputs) or 'none'}; calibrate anew",
        )


def _check_passes(measure: str, model: ModelDescription | None) -> None:
    if model is None:
        raise InvalidConfig.at(
            PLACE,
            f"{measure} needs an ONNX model, which it runs more than once; beside its uploaded "
            f"outputs it comes as a column uncertainty_<name>, and is called {SUPPLIED}<name>",
        )
    if measure not in model.pass_measures:
        raise InvalidConfig.at(PLACE, f"the records hold no {measure}; calibrate anew")

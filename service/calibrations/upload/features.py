"""The sets of an upload, opened, and the columns of tables that are features."""

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from uuid import UUID

import models
from service.calibrations.config import MAX_COLUMN_NAME, CalibrationConfig
from service.calibrations.upload.onnx_model import InspectedOnnxModel, inspect_onnx_model
from service.calibrations.upload.output_sets import classes_of_outputs
from service.calibrations.upload.set_checks import check_same_layout
from service.calibrations.upload.upload_form import CalibrationUpload
from service.child.reading.checks import SUPPLIED_PREFIX
from service.child.reading.columns import listed
from service.errors import InvalidConfig, InvalidInput
from service.http.uploads import SpooledFile
from service.runner.messages.dataset import DatasetInfo, DatasetKind, ScoreRange
from service.runner.messages.onnx_models import ANY_INPUT, names_each_input
from service.runner.messages.reading import LABEL, Reading
from service.runner.messages.set_messages import SetToRead
from service.runner.set_reader import UploadedSet
from service.workspace import Workspace

MIN_SAMPLES = 20


def reading_options(
    config: CalibrationConfig,
    labels: SpooledFile | None,
    *,
    kind: DatasetKind | None,
    takes_other_columns: bool = True,
    score_range: ScoreRange | None = None,
    known_texts: Mapping[str, Sequence[str]] | None = None,
    may_be_none_of_these: bool = False,
) -> Reading:
    """Return how to read a set; ``kind`` is its content, where it is known."""
    preprocessing = config.preprocessing
    return Reading(
        preprocessing=None if preprocessing is None else preprocessing.resolved(),
        class_map=config.class_map,
        classes=config.classes,
        columns=config.columns,
        takes_other_columns=takes_other_columns,
        labels=None if labels is None else labels.path,
        kind=kind,
        score_range=score_range,
        known_texts=known_texts,
        may_be_none_of_these=may_be_none_of_these,
    )


def table_columns(config: CalibrationConfig, info: DatasetInfo) -> dict[str, list[str]] | None:
    """Return the table columns of each input, by which later tables are read.

    None if there are none, or if a configuration would refuse one of the names.
    """
    of_inputs = {name: list(columns) for name, columns in info.columns.items()}
    names = [*of_inputs, *(column for columns in of_inputs.values() for column in columns)]
    if any(not 0 < len(name) <= MAX_COLUMN_NAME for name in names):
        of_inputs = {}
    return {**of_inputs, **(config.columns or {})} or None


def open_sets(
    workspace: Workspace, upload: CalibrationUpload, config: CalibrationConfig, stack: ExitStack
) -> dict[models.ArtifactRole, UploadedSet]:
    """Open the sets of an upload; they are closed with ``stack``."""
    kind: DatasetKind | None = "inputs" if upload.onnx_models else config.output.kind
    to_read = [
        SetToRead(
            file.path,
            location,
            reading_options(config, labels, kind=kind),
            least_samples=MIN_SAMPLES if location == "calibration" else 1,
        )
        for location, (file, labels) in upload.sets.items()
    ]
    opened = stack.enter_context(workspace.runners.reader.read(to_read, workspace.limits.datasets))
    sets = dict(zip(upload.sets, opened, strict=True))
    if "evaluation" in sets:
        check_same_layout(sets["calibration"].info, sets["evaluation"].info)
    return sets


def read_features(
    workspace: Workspace,
    tenant_id: UUID,
    upload: CalibrationUpload,
    config: CalibrationConfig,
    sets: dict[models.ArtifactRole, UploadedSet],
    stack: ExitStack,
) -> tuple[
    CalibrationConfig, dict[models.ArtifactRole, UploadedSet], InspectedOnnxModel, list[str]
]:
    """Inspect the model, whose inputs decide which columns of a table are features.

    Return the configuration and the sets by these columns, the model and notes.
    """
    chosen, notes = config.columns or {}, list[str]()
    info = sets["calibration"].info
    possible = () if ANY_INPUT in chosen else info.possible_features
    words = [name for name in possible if name not in info.columns[ANY_INPUT]]
    try:
        model = _inspect(workspace, tenant_id, upload, config, sets)
    except InvalidInput as error:
        if not possible:
            raise
        chosen = {**chosen, ANY_INPUT: list(possible)}
        config = config.model_copy(update={"columns": chosen})
        try:
            sets = open_sets(workspace, upload, config, stack)
            model = _inspect(workspace, tenant_id, upload, config, sets)
        except InvalidInput:
            raise error from None
        notes.append(f"Read as features, for the model needs them: {listed(words)}.")
    else:
        _refuse_two_readings(words, model)
    columns, names = sets["calibration"].info.columns, model.input_names
    if chosen.keys() <= {LABEL, ANY_INPUT} and names_each_input(columns, names):
        by_name = {name: [name] for name in names}
        by_name |= {name: of for name, of in chosen.items() if name == LABEL}
        config = config.model_copy(update={"columns": by_name})
        sets = open_sets(workspace, upload, config, stack)
        model = model.with_columns(by_name)
        if left_out := [name for name in columns[ANY_INPUT] if name not in names]:
            notes.append(
                f"Columns that are no input of the model are not read: {listed(left_out)}."
            )
    return config, sets, model, notes


def _inspect(
    workspace: Workspace,
    tenant_id: UUID,
    upload: CalibrationUpload,
    config: CalibrationConfig,
    sets: Mapping[models.ArtifactRole, UploadedSet],
) -> InspectedOnnxModel:
    """Return the model as it takes the first rows; without one, what is known of its outputs."""
    own = sets["calibration"]
    columns = table_columns(config, own.info)
    model = inspect_onnx_model(
        workspace,
        tenant_id,
        upload,
        config,
        own.trial,
        columns=columns,
        n_samples=own.info.n_samples,
    )
    return model or classes_of_outputs(own.info)


def _refuse_two_readings(words: Sequence[str], model: InspectedOnnxModel) -> None:
    """Ask what a column is where the model could also take it as a feature."""
    shapes = [tensor["shape"] for tensor in (model.description or {}).get("inputs", ())]
    is_free = len(shapes) == 1 and (shapes[0] is None or None in shapes[0][1:])
    for name in words:
        if is_free and not name.startswith(SUPPLIED_PREFIX):
            raise InvalidConfig.at(
                "config.columns",
                f"the column `{name}` may be a feature, for the model takes any number of columns, "
                f"or the {name} of each sample; name all features (--columns), with it or without "
                "it",
            )

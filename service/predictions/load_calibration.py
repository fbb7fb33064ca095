"""Loading of finished calibrations into memory for predictions."""

import uuid
import weakref
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from math import prod
from typing import NamedTuple

import numpy as np
from sqlalchemy.orm import Session

import models
from howsure.statistics.column_middles import ColumnMiddles
from howsure.statistics.findings import SOFTMAX_TWICE
from howsure.statistics.input_ranges import ColumnRanges, InputRange
from howsure.statistics.measures import parse_measure, supplied_names
from service.child.requests.predict_request import SCORES
from service.errors import NotFound
from service.predictions.provider_check import ProviderCheck
from service.predictions.served_calibration import (
    ServedCalibration,
    ServedEvent,
    ServedModel,
    ServedOnnxModel,
    ServedOperatingPoint,
    accept_thresholds,
    adversarial_threshold,
    needed_columns,
    ood_threshold,
)
from service.runner.messages.dataset import PAIRS
from service.runner.messages.onnx_models import NoFiles, serving
from service.runner.messages.reading import (
    COLUMN_MIDDLES,
    COLUMN_RANGES,
    INPUT_RANGES,
    LABEL,
    SCORE_RANGE,
    TAKES_OTHER_COLUMNS,
    TEXTS,
)
from service.runner.messages.scores_model import ScoredEvent, ScoresModelSpec
from service.runner.model_files import open_files
from service.runner.model_to_serve import ModelToServe
from service.storage.calibration_queries import CalibrationRef
from service.storage.calibrations import CalibrationRepository
from service.storage.fit_results import core_table, learned_formulas, read_fitted
from service.storage.operating_points import OperatingPointRepository
from service.workspace import Workspace

# Bytes of a score, a float32 in binary bodies.
SCORE_BYTES = 4
# In memory for each byte of a row's documents, and for each bin.
OBJECT_BYTES, BIN_BYTES = 8, 1024


def load_served(workspace: Workspace, tenant_id: uuid.UUID, reference: str) -> ServedCalibration:
    """Return the calibration that a reference means, from memory if it is loaded.

    The database is asked each time for the meaning of a name and the active operating point, so
    that a new version, promotion, decision or deletion takes effect at once. A fit never changes.
    A calibration that is deleted while it is loaded counts as deleted before.

    Raises
    ------
    NotFound, Conflict
        If there is no such calibration, or it has not succeeded.
    """
    while True:
        with workspace.database.reading(tenant_id) as session:
            ref = CalibrationRepository(session, tenant_id).resolve(reference)
            point = _operating_point(session, tenant_id, ref.id)
        try:
            held = workspace.served.get_or_load(ref.id, partial(_load, workspace, tenant_id, ref))
        except NotFound:
            continue  # deleted since: a name means another version now
        if held.operating_point != point:
            held = replace(held, operating_point=point)
            workspace.served.put(ref.id, held)
        return held


def _operating_point(
    session: Session, tenant_id: uuid.UUID, calibration_id: uuid.UUID
) -> ServedOperatingPoint | None:
    found = OperatingPointRepository(session, tenant_id).last(calibration_id)
    if found is None or found.name is None or found.threshold is None:
        return None
    return ServedOperatingPoint(found.name, found.threshold)


def _load(workspace: Workspace, tenant_id: uuid.UUID, ref: CalibrationRef) -> ServedCalibration:
    with workspace.database.reading(tenant_id) as session:
        fitted = read_fitted(session, tenant_id, str(ref.id))
    row, tables = fitted.row, fitted.served
    config = row.config
    formulas = learned_formulas(tables)
    events = tuple(
        ServedEvent(t.k, t.measure, t.column, core_table(t), formulas.get(t.k)) for t in tables
    )
    with ExitStack() as opened:
        served = ServedCalibration(
            ref=ref,
            model=_onnx_model(workspace, row, events, opened) or _scores_model(row, events),
            class_names=tuple(config["classes"]),
            top_k=tuple(config["top_k"]),
            ood_threshold=ood_threshold(tables, config["ood"]["level"]),
            adversarial_threshold=adversarial_threshold(tables),
            accept_thresholds=accept_thresholds(tables, config["selective"]),
            events=events,
            has_classes=row.data["kind"] != PAIRS,
            takes_other_columns=row.data.get(TAKES_OTHER_COLUMNS, True),
            score_range=row.data.get(SCORE_RANGE),
            texts=row.data.get(TEXTS, {}),
            input_ranges=input_ranges(row),
            column_ranges=column_ranges(row),
            n_bytes=OBJECT_BYTES * row.row_bytes + BIN_BYTES * sum(len(one.bins) for one in tables),
        )
        if served.onnx_model is not None:
            # The files stay open as long as the model may still be loaded from them.
            weakref.finalize(served.onnx_model, opened.pop_all().close)
    return served


def input_ranges(row: models.Calibration) -> dict[str, InputRange]:
    """Return the known ranges of the model's inputs of floats in a calibration set."""
    # The names of imported ranges may be those of another model's inputs.
    floats = _inputs_of(row, "float")
    found = row.data.get(INPUT_RANGES, {})
    return {name: InputRange(**own) for name, own in found.items() if name in floats}


def column_ranges(row: models.Calibration) -> dict[str, ColumnRanges]:
    """Return the known ranges of the columns of inputs."""
    names, found = _inputs_of(row), row.data.get(COLUMN_RANGES, {})
    return {
        name: ColumnRanges(tuple(own["least"]), tuple(own["most"]), tuple(own.get("missing", ())))
        for name, own in found.items()
        if name in names
    }


def column_middles(row: models.Calibration) -> dict[str, ColumnMiddles]:
    """Return the known middles of the columns of inputs."""
    found = row.data.get(COLUMN_MIDDLES, {})
    return {
        name: ColumnMiddles(tuple(own["low"]), tuple(own["high"])) for name, own in found.items()
    }


def _inputs_of(row: models.Calibration, dtype: str = "") -> set[str]:
    """Return the names of the model's inputs whose type begins so."""
    inputs = [] if row.onnx_model is None else row.onnx_model["inputs"]
    return {one["name"] for one in inputs if one["dtype"].startswith(dtype)}


def _onnx_model(
    workspace: Workspace, row: models.Calibration, events: Sequence[ServedEvent], opened: ExitStack
) -> ServedOnnxModel | None:
    """Return the model, configured to compute only the uncertainties of these tables."""
    if row.onnx_model is None:
        return None
    found = row.onnx_model
    rehearsal = ProviderCheck(workspace, row, events)
    to_serve = ModelToServe(
        files=open_files(workspace.artifacts, row.artifacts, opened, tenant=str(row.tenant_id)),
        resolved=serving(
            found["resolved"],
            [event.measure for event in events],
            needed_columns(events, input_ranges(row)),
            column_ranges(row),
        ),
        name=f"{row.name}@{row.version}",
        rehearse=rehearsal,
        apart=rehearsal.apart(workspace.runners),
    )
    return ServedOnnxModel(to_serve, row_bytes=sum(one.n_bytes for one in row_inputs(row)))


def _scores_model(row: models.Calibration, events: Sequence[ServedEvent]) -> ServedModel:
    """Return the model of a calibration that takes logits or probabilities."""
    config = row.config
    own = [event for event in events if parse_measure(event.measure).kind != "supplied"]
    names = tuple(config["classes"])
    is_named = row.data["kind"] != PAIRS and names != tuple(map(str, range(len(names))))
    is_named = is_named and len(set(names)) == len(names)
    spec = ScoresModelSpec(
        kind=row.data["kind"],
        n_classes=len(config["classes"]),
        top_k=tuple(config["top_k"]),
        events=tuple(
            ScoredEvent(
                event.k,
                event.measure,
                event.column,
                () if event.learned is None else event.learned.columns,
            )
            for event in own
        ),
        supplied=supplied_names(event.measure for event in events),
        score_range=row.data.get(SCORE_RANGE),
        class_names=names if is_named else (),
        has_named_columns=is_named and config["class_map"] is not None,
        decision_threshold=config.get("decision_threshold"),
        may_be_probabilities=any(found["code"] == SOFTMAX_TWICE for found in row.findings),
    )
    to_serve = ModelToServe(
        files=NoFiles(str(row.tenant_id)),
        resolved=spec.resolved(),
        name=f"{row.name}@{row.version}",
    )
    return ServedModel(to_serve, row_bytes=spec.n_classes * SCORE_BYTES)


class RowInput(NamedTuple):
    """An input of one row: its name and type, and its sizes; a free size is None."""

    name: str
    dtype: str
    shape: tuple[int | None, ...]

    @property
    def n_bytes(self) -> int:
        """Bytes of a row; free sizes count as 1."""
        return prod(size or 1 for size in self.shape) * np.dtype(self.dtype).itemsize


def row_inputs(row: models.Calibration) -> tuple[RowInput, ...]:
    """Return the inputs of a calibration's model; the scores, if outputs were uploaded."""
    if row.data["kind"] == PAIRS:
        return (RowInput(SCORES, "float32", ()),)
    if row.onnx_model is None:
        return (RowInput(row.data["kind"], "float32", (len(row.config["classes"]),)),)
    return tuple(
        # An input that declares no shape is only known to have rows.
        RowInput(found["name"], found["dtype"], tuple((found["shape"] or [None])[1:]))
        for found in row.onnx_model["inputs"]
    )


def row_columns(row: models.Calibration, n_numbers: int) -> Sequence[str]:
    """Return the names by which rows are read, if each of the numbers of a row has one."""
    config = row.config
    if row.onnx_model is None:
        # Classes that the set named; others are only shown.
        found = config["classes"] if config["class_map"] is not None else []
    else:
        columns = config["columns"] or {}
        found = [name for key, names in columns.items() if key != LABEL for name in names]
    return found if len(found) == n_numbers and row.data["kind"] != PAIRS else []

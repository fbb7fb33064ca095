"""What a calibration's file holds beside the model, and whether it can be one file at all."""

import json
from typing import Any, cast

import models
from service.core.measures import MEASURES, is_output
from service.errors import Conflict
from service.graph.export_spec import ExportEvent, ExportSpec
from service.operations.predict import SHOWN_CLASSES
from service.operations.served import ServedCalibration, ServedEvent, ServedOnnxModel
from service.runner.pass_plan import LAST_LAYER


def exportable_model(served: ServedCalibration) -> ServedOnnxModel:
    """Return the model of a calibration that can be one file.

    Raises
    ------
    Conflict
        If it has no model or several, or an event is served by a measure that one run of one
        graph does not give.
    """
    if served.onnx_model is None:
        raise Conflict(
            "This calibration has no ONNX model: it was made from uploaded outputs. Its bins can "
            "be had from /bins."
        )
    if served.onnx_model.files.members or served.onnx_model.resolved.get("averaged"):
        raise Conflict(
            "An ensemble, or a graph whose mean over passes predicts, is no single graph; "
            "calibrate one model to export it."
        )
    for event in served.events:
        if event.measure in MEASURES or is_output(event.measure) or event.measure == LAST_LAYER:
            continue
        raise Conflict(
            f"Top-{event.k} is served by {event.measure}, which one run of the graph does not "
            "give; refit it with another measure to serve, such as entropy or "
            f"{LAST_LAYER}."
        )
    return served.onnx_model


def export_spec(
    served: ServedCalibration, onnx_model: ServedOnnxModel, row: models.Calibration
) -> ExportSpec:
    """Return tables, thresholds and metadata of a calibration's file."""
    return ExportSpec(
        events=tuple(_event(event) for event in served.events),
        n_top=min(SHOWN_CLASSES, len(served.class_names)),
        ood_threshold=served.ood_threshold,
        accept_thresholds=tuple(served.accept_thresholds.items()),
        metadata=_metadata(served, row),
        # The events that the head is made for, of which a refit may serve fewer.
        top_k=tuple(onnx_model.resolved["top_k"]),
    )


def _event(event: ServedEvent) -> ExportEvent:
    table = event.table
    return ExportEvent(
        k=event.k,
        column=event.column,
        inner_edges=table.edges[1:-1],
        probability=table.probability,
        lower=table.lower,
        upper=table.upper,
        mean_uncertainty=table.mean_uncertainty,
        lookup=table.lookup,
    )


def _metadata(served: ServedCalibration, row: models.Calibration) -> dict[str, str]:
    config = cast("dict[str, Any]", row.config)
    data = cast("dict[str, Any]", row.data)
    onnx_model = cast("dict[str, Any]", row.onnx_model)
    thresholds = {
        "out_of_distribution": served.ood_threshold,
        "abstain": dict(served.accept_thresholds),
    }
    values = {
        "calibration": str(served.ref.id),
        "name": served.ref.name,
        "version": str(served.ref.version),
        "measures": json.dumps({str(event.k): event.measure for event in served.events}),
        "level": str(config["interval"]["level"]),
        "lookup": str(config["lookup"]),
        "data_sha256": str(data.get("sha256") or ""),
        "model_sha256": str(onnx_model["sha256"]),
        "classes": json.dumps(list(served.class_names)),
        "thresholds": json.dumps(thresholds),
        "versions": json.dumps(row.versions),
    }
    return {f"howsure.{name}": value for name, value in values.items()}

"""Search for a stored ONNX model that is run as a bins document requires."""

import uuid
from collections.abc import Iterator

from sqlalchemy.orm import Session

import models
from howsure.bins_document.document import BinsDocument, ModelRun
from howsure.statistics.measures import parse_measure
from service.bins.export import model_run
from service.errors import InvalidInput, NotFound, Violation, shown
from service.runner.model_description import ModelDescription
from service.storage.calibrations import calibrations_of_model

PLACE = "document"
RECALIBRATE_HINT = "calibrate that model so once, then import again"


def find_compatible_model(
    session: Session, tenant_id: uuid.UUID, document: BinsDocument
) -> uuid.UUID | None:
    """Return a calibration that runs the document's model in the same way; None without a model.

    Raises
    ------
    NotFound
        If no calibration has stored the model.
    InvalidInput
        If all of them run it in another way.
    """
    sha256 = document.model_sha256
    if sha256 is None:
        return None
    nearest: list[Violation] | None = None
    for row in calibrations_of_model(session, tenant_id, sha256):
        differences = list(_differences(row, document))
        if not differences:
            return row.id
        if nearest is None or len(differences) < len(nearest):
            nearest = differences
    if nearest is None:
        raise NotFound.at(
            f"{PLACE}.model_sha256",
            f"no calibration here has an ONNX model with the SHA-256 {sha256}; send that model to "
            "POST /calibrate once, then import again",
        )
    raise InvalidInput.at(nearest[0].location, nearest[0].message)


def _differences(row: models.Calibration, document: BinsDocument) -> Iterator[Violation]:
    """Yield the differences between the stored model's run and the document's."""
    served = [table for table in document.tables if table.served]
    ours, theirs = model_run(row, [table.measure for table in served]), document.model
    model = ModelDescription.of(row)
    if model is None or ours is None or theirs is None:
        raise RuntimeError(f"calibration {row.id} has a model's file and does not describe it")
    yield from _run_differences(ours, theirs)
    if row.config.get("decision_threshold") != document.decision_threshold:
        yield _violation(
            "decision_threshold", f"the model stored here has another one; {RECALIBRATE_HINT}"
        )
    n_classes = model.stored["classes"]
    if n_classes != len(document.classes):
        yield _violation("classes", f"expected {n_classes}, as the model has")
    events = list(model.top_k)
    if not set(document.top_k) <= set(events):
        yield _violation(
            "top_k", f"the model stored here was prepared for {events}; {RECALIBRATE_HINT}"
        )
    plans = {plan.measure: plan for plan in ours.passes}
    wanted = {plan.measure: plan for plan in theirs.passes}
    for k, measure in document.serve.items():
        reason = _unavailable(measure, model)
        if parse_measure(measure).kind == "multi_pass" and (
            measure not in wanted or plans.get(measure) != wanted[measure]
        ):
            reason = "the model stored here is not run for it as model.passes says"
        if reason is not None:
            yield _violation(f"serve.{k}", f"{shown(measure)}: {reason}; {RECALIBRATE_HINT}")


def _run_differences(ours: ModelRun, theirs: ModelRun) -> Iterator[Violation]:
    for name, what in (
        ("members", "is an ensemble of other members"),
        ("companions", "has other files with external weights"),
        ("outputs", "is read at another output, or otherwise"),
        ("averaged", "predicts with a mean where the other does not"),
        ("preprocessing", "is given pictures in another way"),
    ):
        if getattr(ours, name) != getattr(theirs, name):
            yield _violation(f"model.{name}", f"the model stored here {what}; {RECALIBRATE_HINT}")


def _unavailable(measure: str, model: ModelDescription) -> str | None:
    """Return the reason why the stored model does not give a measure."""
    parsed = parse_measure(measure)
    if parsed.kind == "output" and parsed.name not in model.scalar_outputs:
        return "the model stored here is not asked for this output"
    if parsed.needs_logits and not model.predicts_logits:
        return "it needs logits, and the model stored here gives probabilities"
    return None


def _violation(location: str, message: str) -> Violation:
    return Violation(f"{PLACE}.{location}", message)

"""Jobs: calibrations, refits and further sets, begun and waited for."""

import json
import uuid
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any

from numpy.typing import ArrayLike

from service.client.calibration import Calibration, Evaluation, reference_of
from service.client.errors import CalibrationFailed, EvaluationFailed
from service.client.following import Following, Resource, followed
from service.client.given import (
    Companions,
    LabelsGiven,
    Models,
    Samples,
    companion_parts,
    labels_part,
    model_parts,
    samples_part,
)
from service.client.request import FilePart, Request, address_of, json_request
from service.client.retrying import asked
from service.client.steps import Steps


@dataclass(frozen=True)
class Upload:
    """What POST /calibrate takes; None is what was not given.

    ``labels`` go with ``outputs``, logits or probabilities, or lie beside ``calibration``.
    """

    models: Models
    calibration: Samples | None
    labels: LabelsGiven | None
    outputs: Mapping[str, ArrayLike | None]
    evaluation: Samples | None
    evaluation_labels: LabelsGiven | None
    companions: Companions
    config: Mapping[str, Any]

    def request(self, files: ExitStack, **params: str) -> Request:
        """Return the request; ``files`` holds what is open until it was sent."""
        parts = model_parts(self.models, files)
        parts += companion_parts(self.companions, files)
        parts.append(samples_part("calibration", self._samples(), files))
        if self.evaluation is not None:
            parts.append(samples_part("evaluation", self.evaluation, files))
        if self.calibration is not None and self.labels is not None:
            parts.append(labels_part("calibration_labels", self.labels, files))
        if self.evaluation_labels is not None:
            parts.append(labels_part("evaluation_labels", self.evaluation_labels, files))
        parts.append(("config", (None, json.dumps(self.config, allow_nan=False).encode())))
        return Request(
            "POST", "/calibrate", params=params, headers=_key(), parts=parts, patient=True
        )

    def _samples(self) -> Samples:
        outputs = {name: array for name, array in self.outputs.items() if array is not None}
        if self.calibration is not None and not outputs:
            return self.calibration
        if self.calibration is not None or not outputs or self.labels is None:
            raise ValueError(
                "expected a calibration set, or logits or probabilities with labels in its place"
            )
        # What is no array is refused as one.
        return {**outputs, "labels": self.labels}  # type: ignore[dict-item]


@dataclass(frozen=True)
class FurtherSet:
    """What POST /calibrations/{id}/evaluations takes."""

    name: str
    samples: Samples
    labels: LabelsGiven | None

    def parts(self, files: ExitStack) -> list[FilePart]:
        """Return its parts; ``files`` holds what is open until it was sent."""
        parts: list[FilePart] = [("name", (None, self.name.encode()))]
        parts.append(samples_part("evaluation", self.samples, files))
        if self.labels is not None:
            parts.append(labels_part("evaluation_labels", self.labels, files))
        return parts


def calibrated(upload: Upload, how: Following | None, *, retries: int) -> Steps[Calibration]:
    """Upload and, unless ``how`` is None, wait until it has succeeded.

    Raises
    ------
    CalibrationFailed
        If it does not.
    """
    with ExitStack() as files:
        answer = yield from asked(upload.request(files), retries=retries)
    return (yield from _ended(answer.json(), how, retries))


def tried(upload: Upload, *, retries: int) -> Steps[Any]:
    """Have an upload checked, and return what is said of it; nothing is kept."""
    with ExitStack() as files:
        answer = yield from asked(upload.request(files, dry_run="true"), retries=retries)
    return answer.json()


def refitted(
    calibration: Calibration | str,
    changes: Mapping[str, Any],
    how: Following | None,
    *,
    retries: int,
) -> Steps[Calibration]:
    """Have the next version fitted and, unless ``how`` is None, wait until it has succeeded."""
    path = f"{address_of(reference_of(calibration))}/refit"
    answer = yield from asked(json_request(path, changes, headers=_key()), retries=retries)
    return (yield from _ended(answer.json(), how, retries))


def waited_for(
    calibration: Calibration | str, how: Following, *, retries: int
) -> Steps[Calibration]:
    """Wait until a calibration has succeeded."""
    path = address_of(reference_of(calibration))
    answer = yield from asked(Request("GET", path), retries=retries)
    return (yield from _ended(answer.json(), how, retries))


def evaluated(
    calibration: Calibration | str,
    what: FurtherSet,
    how: Following | None,
    *,
    retries: int,
) -> Steps[Evaluation]:
    """Have a further set judged and, unless ``how`` is None, wait until that has succeeded.

    Raises
    ------
    EvaluationFailed
        If it does not.
    """
    # The id, so that a version that becomes the newest meanwhile is not asked instead.
    found = yield from asked(Request("GET", address_of(reference_of(calibration))), retries=retries)
    calibration_id = found.json()["id"]
    with ExitStack() as files:
        request = Request(
            "POST",
            address_of(calibration_id, "evaluations"),
            parts=what.parts(files),
            repeatable=False,
            patient=True,
        )
        answer = yield from asked(request, retries=retries)
    resource: Resource = answer.json()
    if how is not None:
        address = address_of(calibration_id, "evaluations", what.name)
        resource = yield from followed(address, resource, how, retries=retries)
        if _went_wrong(resource):
            raise EvaluationFailed.of_resource(resource)
    return Evaluation.of(resource)


def _ended(resource: Resource, how: Following | None, retries: int) -> Steps[Calibration]:
    if how is not None:
        resource = yield from followed(address_of(resource["id"]), resource, how, retries=retries)
        if _went_wrong(resource):
            raise CalibrationFailed.of_resource(resource)
    return Calibration.of(resource)


def _went_wrong(resource: Resource) -> bool:
    return resource["status"] in {"failed", "cancelled"}


def _key() -> dict[str, str]:
    """Return a new key, with which the same request makes no second calibration."""
    return {"Idempotency-Key": f'"{uuid.uuid4()}"'}

"""Jobs: calibrations, refits and further sets, begun and waited for."""

import asyncio
import json
import time
import uuid
from collections.abc import Callable, Mapping
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any, TypeAlias

import httpx
from numpy.typing import ArrayLike

from howsure.client.errors import CalibrationFailed, EvaluationFailed, HowsureError
from howsure.client.request import FilePart, Request, address_of, json_request
from howsure.client.resources import FINISHED, Calibration, Evaluation, Progress, reference_of
from howsure.client.transport import Sender
from howsure.client.uploads import (
    Companions,
    LabelsGiven,
    Models,
    Samples,
    companion_parts,
    labels_part,
    model_parts,
    samples_part,
)

FIRST_SECONDS = 0.1
MOST_SECONDS = 2.0
# Three comments that did not come.
SILENCE_SECONDS = 45.0
INTERRUPTS = (KeyboardInterrupt, asyncio.CancelledError)

Resource: TypeAlias = Mapping[str, Any]
OnProgress: TypeAlias = Callable[[Progress], None] | None


@dataclass(frozen=True)
class WaitOptions:
    """How a job is waited for.

    Attributes
    ----------
    seconds
        At most so long, None for as long as it takes.
    on_progress
        Called whenever something has changed.
    cancel_on_interrupt
        Whether Ctrl-C, or the end of the task that waits, cancels the job.
    """

    seconds: float | None = None
    on_progress: OnProgress = None
    cancel_on_interrupt: bool = False


async def wait_for_job(
    sender: Sender, address: str, resource: Resource, options: WaitOptions
) -> Resource:
    """Wait until the job at ``address`` ends, or time is over, and return its resource."""
    try:
        return await _followed(sender, address, resource, options)
    except INTERRUPTS:
        if options.cancel_on_interrupt:
            await sender.send_once(Request("POST", f"{address}/cancel"))
        raise


async def _followed(
    sender: Sender, address: str, resource: Resource, options: WaitOptions
) -> Resource:
    tell = _Telling(options.on_progress)
    tell(resource)
    until = None if options.seconds is None else time.monotonic() + options.seconds
    # A stream cannot be left in the middle of its silence.
    streams, pause = until is None, FIRST_SECONDS
    while resource["status"] not in FINISHED:
        if streams:
            ended, streams = await _streamed(sender, address, tell)
            if ended is not None:
                return ended
        if until is not None and time.monotonic() >= until:
            return resource
        left = pause if until is None else min(pause, until - time.monotonic())
        await sender.transport.sleep(max(0.0, left))
        pause = min(2 * pause, MOST_SECONDS)
        resource = (await sender.send(Request("GET", address))).json()
        tell(resource)
    return resource


async def _streamed(sender: Sender, address: str, tell: "_Telling") -> tuple[Resource | None, bool]:
    """Read events; return the resource at the end, and whether a stream is worth another try."""
    request = Request("GET", f"{address}/events", headers={"Accept": "text/event-stream"})
    with suppress(httpx.TransportError, ValueError):
        async with sender.transport.stream(request.as_arguments(SILENCE_SECONDS)) as response:
            if response.status_code != HTTPStatus.OK:
                return None, False
            event: dict[str, str] = {}
            async for line in response.aiter_lines():
                if line:
                    name, _, value = line.partition(":")
                    event[name] = value.removeprefix(" ")
                    continue
                told = json.loads(event["data"]) if "data" in event else None
                if told is not None and event.get("event") == "end":
                    return _existing(told), True
                if told is not None:
                    tell(told)
                event = {}
    return None, True


def _existing(told: Resource) -> Resource:
    if told["status"] == "deleted":
        raise HowsureError("Not found", "it was deleted meanwhile", status=HTTPStatus.NOT_FOUND)
    return told


class _Telling:
    """Reports each change once."""

    def __init__(self, on_progress: OnProgress) -> None:
        self._on_progress = on_progress
        self._told: Progress | None = None

    def __call__(self, resource: Resource) -> None:
        found = Progress.of(resource)
        if self._on_progress is not None and found != self._told:
            self._on_progress(found)
        self._told = found


@dataclass(frozen=True)
class Upload:
    """The parameters of POST /calibrate; None leaves one out.

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
        # Anything else is refused like an invalid array.
        return {**outputs, "labels": self.labels}  # type: ignore[dict-item]


@dataclass(frozen=True)
class FurtherSet:
    """The parameters of POST /calibrations/{id}/evaluations."""

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


async def calibrate(sender: Sender, upload: Upload, options: WaitOptions | None) -> Calibration:
    """Upload and, unless ``options`` is None, wait until the calibration has succeeded.

    Raises
    ------
    CalibrationFailed
        If it does not succeed.
    """
    with ExitStack() as files:
        answer = await sender.send(upload.request(files))
    return await wait_for_calibration(sender, answer.json(), options)


async def dry_run(sender: Sender, upload: Upload) -> Any:  # noqa: ANN401 - whatever JSON says
    """Check an upload without storing it, and return the result."""
    with ExitStack() as files:
        return (await sender.send(upload.request(files, dry_run="true"))).json()


async def refit(
    sender: Sender,
    calibration: Calibration | str,
    changes: Mapping[str, Any],
    options: WaitOptions | None,
) -> Calibration:
    """Fit the next version and, unless ``options`` is None, wait until it has succeeded."""
    path = address_of(reference_of(calibration), "refit")
    answer = await sender.send(json_request(path, changes, headers=_key()))
    return await wait_for_calibration(sender, answer.json(), options)


async def evaluate(
    sender: Sender,
    calibration: Calibration | str,
    further: FurtherSet,
    options: WaitOptions | None,
) -> Evaluation:
    """Judge a further set and, unless ``options`` is None, wait until that has succeeded.

    Raises
    ------
    EvaluationFailed
        If it does not succeed.
    """
    # By id, so that a newer version is not used instead.
    found = await sender.send(Request("GET", address_of(reference_of(calibration))))
    calibration_id = found.json()["id"]
    with ExitStack() as files:
        request = Request(
            "POST",
            address_of(calibration_id, "evaluations"),
            parts=further.parts(files),
            repeatable=False,
            patient=True,
        )
        resource: Resource = (await sender.send(request)).json()
    if options is not None:
        address = address_of(calibration_id, "evaluations", further.name)
        resource = await wait_for_job(sender, address, resource, options)
        if _went_wrong(resource):
            raise EvaluationFailed.of_resource(resource)
    return Evaluation.of(resource)


async def wait_for_calibration(
    sender: Sender, resource: Resource, options: WaitOptions | None
) -> Calibration:
    """Return a calibration once it has succeeded, or as it is now if ``options`` is None."""
    if options is not None:
        resource = await wait_for_job(sender, address_of(resource["id"]), resource, options)
        if _went_wrong(resource):
            raise CalibrationFailed.of_resource(resource)
    return Calibration.of(resource)


def _went_wrong(resource: Resource) -> bool:
    return resource["status"] in {"failed", "cancelled"}


def _key() -> dict[str, str]:
    """Return a new key, with which the same request makes no second calibration."""
    return {"Idempotency-Key": f'"{uuid.uuid4()}"'}

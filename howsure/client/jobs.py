"""Jobs: uploads that start them, and waiting for their end."""

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

from howsure.client.errors import CalibrationFailed, HowsureError, JobFailed
from howsure.client.frames import INPUTS, PAIRS, SCORES, as_pandas, is_frame
from howsure.client.labels import class_indices_of, positions_of
from howsure.client.request import FilePart, Request, address_of, json_bytes
from howsure.client.resources import FINISHED, Calibration, Progress
from howsure.client.transport import Sender
from howsure.client.uploads import (
    Companions,
    LabelsGiven,
    Models,
    Samples,
    companion_parts,
    model_parts,
    set_parts,
)

FIRST_SECONDS = 0.1
MOST_SECONDS = 2.0
# The stream counts as broken after three missed heartbeats.
SILENCE_SECONDS = 45.0
MOST_EVENT_BYTES = 2**20
INTERRUPTS = (KeyboardInterrupt, asyncio.CancelledError)

Resource: TypeAlias = Mapping[str, Any]
OnProgress: TypeAlias = Callable[[Progress], None] | None
Wait: TypeAlias = bool | float


@dataclass(frozen=True)
class WaitOptions:
    """Options of waiting for a job.

    Attributes
    ----------
    seconds
        The longest time to wait. If it is None, there is no limit.
    on_progress
        Called after each change.
    cancel_on_interrupt
        Whether Ctrl-C, or the cancellation of the waiting task, cancels the job.
    """

    seconds: float | None = None
    on_progress: OnProgress = None
    cancel_on_interrupt: bool = False


def wait_options(wait: Wait, on_progress: OnProgress, *, cancels: bool) -> WaitOptions | None:
    """Return how to wait: until the end, for some seconds, or, as None, not at all."""
    if wait is False:
        return None
    return WaitOptions(None if wait is True else float(wait), on_progress, cancels)


async def wait_for_job(
    sender: Sender,
    address: str,
    resource: Resource,
    options: WaitOptions | None,
    failure: type[JobFailed],
) -> Resource:
    """Return the resource of the job at ``address`` once it has ended, or time is over.

    Return ``resource`` at once if ``options`` is None.

    Raises
    ------
    JobFailed
        An instance of ``failure``, if the job fails or is cancelled.
    """
    if options is None:
        return resource
    try:
        resource = await _followed(sender, address, resource, options)
    except INTERRUPTS:
        if options.cancel_on_interrupt:
            await sender.send_once(Request("POST", f"{address}/cancel"))
        raise
    if resource["status"] in {"failed", "cancelled"}:
        raise failure.of_resource(resource)
    return resource


async def _followed(
    sender: Sender, address: str, resource: Resource, options: WaitOptions
) -> Resource:
    tell = _Telling(options.on_progress)
    tell(resource)
    until = None if options.seconds is None else time.monotonic() + options.seconds
    # A blocking read of a stream cannot be interrupted, so a limited wait polls.
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
    """Read events; return the final resource, if it came, and whether to try a stream again."""
    request = Request("GET", f"{address}/events", headers={"Accept": "text/event-stream"})
    with suppress(httpx.TransportError, ValueError):
        async with sender.transport.stream(request.as_arguments(SILENCE_SECONDS)) as response:
            if response.status_code != HTTPStatus.OK:
                return None, False
            begun = b""
            async for chunk in response.aiter_bytes():
                *events, begun = (begun + chunk).split(b"\n\n")
                if len(begun) > MOST_EVENT_BYTES:
                    return None, False
                for event in events:
                    lines = (line.partition(": ") for line in event.decode().splitlines())
                    fields = {name: value for name, _, value in lines}
                    told = json.loads(fields["data"]) if "data" in fields else None
                    if told is not None and fields.get("event") == "end":
                        return _existing(told), True
                    if told is not None:
                        tell(told)
    return None, True


def _existing(told: Resource) -> Resource:
    if told["status"] == "deleted":
        raise HowsureError("Not found", "it was deleted meanwhile", status=HTTPStatus.NOT_FOUND)
    return told


class _Telling:
    """Reports each change of the progress once."""

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
    """The parameters of POST /calibrate. A parameter that is None is not sent.

    ``labels`` belong to ``outputs``, which are logits, probabilities or scores, or to
    ``calibration``.
    """

    models: Models
    calibration: Samples | None
    labels: LabelsGiven | None
    outputs: Mapping[str, ArrayLike | None]
    evaluation: Samples | None
    evaluation_labels: LabelsGiven | None
    companions: Companions | None
    config: Mapping[str, Any]

    def request(self, files: ExitStack, **params: str) -> Request:
        """Return the request; ``files`` closes the files once it was sent."""
        parts = model_parts(self.models, files)
        parts += companion_parts(self.companions, self.models, files)
        indices = class_indices_of(self.config)
        kind, samples, labels = self._calibration_set()
        parts += set_parts("calibration", samples, labels, files, indices, kind)
        if self.evaluation is not None:
            labels = self.evaluation_labels
            parts += set_parts("evaluation", self.evaluation, labels, files, indices, kind)
        elif self.evaluation_labels is not None:
            raise ValueError("expected evaluation beside evaluation_labels")
        parts.append(("config", (None, json_bytes(self.config))))
        return Request(
            "POST", "/calibrate", params=params, headers=new_key(), parts=parts, patient=True
        )

    def _calibration_set(self) -> tuple[str, Samples, LabelsGiven | None]:
        """Return the content of the set, its samples, and labels beside them."""
        sources = {INPUTS: self.calibration, **self.outputs}
        sent = [(kind, as_pandas(rows)) for kind, rows in sources.items() if rows is not None]
        kind, rows = sent[0] if len(sent) == 1 else ("", None)
        holds_correct = kind == SCORES and is_frame(rows) and self.labels is None
        if kind == INPUTS or holds_correct:
            return kind, rows, self.labels
        if kind and self.labels is not None:
            return kind, (rows, self.labels), None
        raise ValueError(
            "expected a calibration set, calibration=…, or in its place logits, probabilities "
            "or scores, one of them, with labels"
        )


def evaluation_parts(
    texts: Mapping[str, object],
    samples: Samples,
    labels: LabelsGiven | None,
    files: ExitStack,
    calibration: Calibration,
) -> list[FilePart]:
    """Return the parts of POST /calibrations/{id}/evaluations; ``files`` closes what it opens.

    ``texts`` that are None are left out.
    """
    indices, kind = positions_of(calibration.classes), calibration.resource["data"]["kind"]
    sent = {name: text for name, text in texts.items() if text is not None}
    parts: list[FilePart] = [(name, (None, str(text).encode())) for name, text in sent.items()]
    kind = SCORES if kind == PAIRS else kind
    return parts + set_parts("evaluation", samples, labels, files, indices, kind)


async def wait_for_calibration(
    sender: Sender, resource: Resource, options: WaitOptions | None
) -> Calibration:
    """Return a calibration once it has succeeded; see `wait_for_job`."""
    address = address_of(resource["id"])
    return Calibration.of(await wait_for_job(sender, address, resource, options, CalibrationFailed))


def new_key() -> dict[str, str]:
    """Return the header of a new key, with which a repeated request makes no second calibration."""
    return {"Idempotency-Key": f'"{uuid.uuid4()}"'}

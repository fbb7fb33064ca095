"""The methods of both clients, as coroutines."""

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, TypeAlias

from numpy.typing import ArrayLike

from howsure.client import jobs, predictions
from howsure.client.jobs import FurtherSet, OnProgress, Upload, WaitOptions
from howsure.client.predictions import (
    ONE_OF,
    ArrayRows,
    Picture,
    PictureRows,
    Predictions,
    Rows,
    rows_of,
)
from howsure.client.request import Answer, Request, address_of
from howsure.client.resources import Calibration, Evaluation, reference_of
from howsure.client.transport import Sender, Transport
from howsure.client.uploads import Companions, LabelsGiven, Models, Samples

Reference: TypeAlias = Calibration | str
Wait: TypeAlias = bool | float
Status: TypeAlias = Literal["queued", "running", "succeeded", "failed", "cancelled"]
TextFormat: TypeAlias = Literal["csv", "markdown", "model-card", "html"]
PAGE = 200


class Methods:
    """Requests to a service over either transport."""

    def __init__(self, transport: Transport, timeout: float | None, retries: int) -> None:
        if retries < 0:
            raise ValueError(f"retries must be 0 or more, not {retries}")
        self.sender = Sender(transport, timeout, retries)
        self._class_names: dict[str, tuple[str, ...]] = {}

    async def calibrate(  # noqa: PLR0913 - the parts of the form, and how to wait
        self,
        /,
        model: Models = None,
        calibration: Samples | None = None,
        *,
        evaluation: Samples | None = None,
        model_data: Companions = (),
        logits: ArrayLike | None = None,
        probabilities: ArrayLike | None = None,
        labels: LabelsGiven | None = None,
        evaluation_labels: LabelsGiven | None = None,
        config: Mapping[str, Any] | None = None,
        wait: Wait = True,
        on_progress: OnProgress = None,
        cancel_on_interrupt: bool = False,
        **options: Any,  # noqa: ANN401 - as many kinds as the configuration has keys
    ) -> Calibration:
        """Calibrate a classifier, and wait until that is done.

        Parameters
        ----------
        model
            An ONNX file as a path, bytes, an open file, or a model in memory; several are an
            ensemble; none where the model's outputs are sent.
        calibration, evaluation
            Labelled samples: a path (a folder is packed), bytes, an open file, a pair ``(inputs,
            labels)``, or arrays by name.
        logits, probabilities
            In the place of ``calibration``: outputs, shape (n, classes).
        labels, evaluation_labels
            Classes, shape (n,), or an .npy file of them: of ``logits`` and ``probabilities``, and
            of a set that holds none, an .npy file.
        model_data
            Companions with external weights: paths, or anything by the name the model knows it by.
        config, options
            The configuration of docs/http.md, and its keys as arguments: ``name="digits"``.
        wait
            Until it has ended; or not; or at most so many seconds.
        on_progress
            Called with a `Progress` whenever something has changed.
        cancel_on_interrupt
            Whether Ctrl-C while it waits cancels the calibration.

        Raises
        ------
        CalibrationFailed
            If it was waited for and did not succeed.
        HowsureError
            If it is refused.
        """
        outputs = {"logits": logits, "probabilities": probabilities}
        given = {**(config or {}), **options}
        upload = Upload(
            model, calibration, labels, outputs, evaluation, evaluation_labels, model_data, given
        )
        waiting = _wait_options(wait, on_progress, cancel_on_interrupt)
        return await jobs.calibrate(self.sender, upload, waiting)

    async def dry_run(
        self,
        /,
        model: Models = None,
        calibration: Samples | None = None,
        *,
        evaluation: Samples | None = None,
        model_data: Companions = (),
        labels: LabelsGiven | None = None,
        evaluation_labels: LabelsGiven | None = None,
        config: Mapping[str, Any] | None = None,
        **options: Any,  # noqa: ANN401 - as many kinds as the configuration has keys
    ) -> dict[str, Any]:
        """Check an upload as `calibrate` would, without storing it, and return the result."""
        given = {**(config or {}), **options}
        upload = Upload(
            model, calibration, labels, {}, evaluation, evaluation_labels, model_data, given
        )
        found: dict[str, Any] = await jobs.dry_run(self.sender, upload)
        return found

    async def wait(
        self,
        calibration: Reference,
        *,
        seconds: float | None = None,
        on_progress: OnProgress = None,
        cancel_on_interrupt: bool = False,
    ) -> Calibration:
        """Wait until a calibration has succeeded, or for so many seconds.

        Raises
        ------
        CalibrationFailed
            If it does not succeed.
        """
        waiting = WaitOptions(seconds, on_progress, cancel_on_interrupt)
        resource = (await self._get(address_of(reference_of(calibration)))).json()
        return await jobs.wait_for_calibration(self.sender, resource, waiting)

    async def predict(  # noqa: PLR0913 - the kinds of rows
        self,
        calibration: Reference,
        inputs: ArrayLike | Mapping[str, ArrayLike] | None = None,
        *,
        logits: ArrayLike | None = None,
        probabilities: ArrayLike | None = None,
        pixels: ArrayLike | None = None,
        pictures: Sequence[Picture] | None = None,
        supplied: Mapping[str, ArrayLike] | None = None,
        rows_per_request: int | None = None,
        timeout: float | None = None,  # noqa: ASYNC109 - the service's time, not the caller's
    ) -> Predictions:
        """Answer rows with their classes and calibrated probabilities.

        Many rows go in several requests, all of which the same version answers.

        Parameters
        ----------
        inputs
            Rows for the model's only input, or rows by input name.
        logits, probabilities
            In the place of ``inputs``, for a calibration of uploaded outputs: shape (n, classes).
        pixels
            In their place, for a calibration of pictures: uint8, shape (n, height, width,
            channels), resized already.
        pictures
            In their place, for the same: JPEG, PNG or WebP, as paths or bytes.
        supplied
            Uncertainties of your own by name, where one of them answers: shape (n,).
        timeout
            Seconds that the service may take for a request, from its arrival to its answer.

        Raises
        ------
        HowsureError
            If it is refused, or no answer came in time.
        """
        outputs = {"logits": logits, "probabilities": probabilities, "pixels": pixels}
        rows: Rows
        if pictures is None:
            rows = ArrayRows(rows_of(inputs, outputs, supplied), rows_per_request)
        elif inputs is None and not any(array is not None for array in outputs.values()):
            if not pictures:
                raise ValueError("expected at least one picture, got none")
            rows = PictureRows(pictures, rows_per_request)
        else:
            raise ValueError(ONE_OF)
        return await predictions.predict(self.sender, calibration, rows, self._class_names, timeout)

    async def get(self, calibration: Reference) -> Calibration:
        """Return a calibration as it is now, by id, name or ``name@version``."""
        answer = await self._get(address_of(reference_of(calibration)))
        return Calibration.of(answer.json())

    async def calibrations(
        self,
        *,
        name: str | None = None,
        status: Status | None = None,
        limit: int | None = None,
    ) -> list[Calibration]:
        """Return calibrations, the newest first: all of them, or ``limit``."""
        found: list[Calibration] = []
        cursor = None
        while limit is None or len(found) < limit:
            size = PAGE if limit is None else min(PAGE, limit - len(found))
            answer = await self._get(
                "/calibrations", name=name, status=status, cursor=cursor, limit=size
            )
            page = answer.json()
            found += [Calibration.of(resource) for resource in page["calibrations"]]
            cursor = page["next_cursor"]
            if cursor is None:
                break
        return found

    async def report(self, calibration: Reference) -> dict[str, Any]:
        """Return the scores of a calibration."""
        answer = await self._get("/report", calibration=reference_of(calibration))
        found: dict[str, Any] = answer.json()
        return found

    async def report_text(self, calibration: Reference, format_: TextFormat = "markdown") -> str:
        """Return the scores as text; as HTML a page that needs nothing beside it."""
        answer = await self._get("/report", calibration=reference_of(calibration), format=format_)
        return answer.content.decode()

    async def bins(self, calibration: Reference) -> dict[str, Any]:
        """Return the bin tables with all else that answers depend on."""
        answer = await self._get(address_of(reference_of(calibration), "bins"))
        found: dict[str, Any] = answer.json()
        return found

    async def export(self, calibration: Reference, to: str | os.PathLike[str]) -> Path:
        """Write the calibrated model as one ONNX file, and return its path."""
        address = address_of(reference_of(calibration), "model.onnx")
        path, _ = await self.sender.download(Request("GET", address, patient=True), Path(to))
        return path

    async def evaluate(
        self,
        calibration: Reference,
        evaluation: Samples,
        *,
        name: str,
        labels: LabelsGiven | None = None,
        wait: Wait = True,
        on_progress: OnProgress = None,
        cancel_on_interrupt: bool = False,
    ) -> Evaluation:
        """Judge a further set, labelled or not, by the tables of a calibration.

        Raises
        ------
        EvaluationFailed
            If it was waited for and did not succeed.
        """
        waiting = _wait_options(wait, on_progress, cancel_on_interrupt)
        further = FurtherSet(name, evaluation, labels)
        return await jobs.evaluate(self.sender, calibration, further, waiting)

    async def refit(
        self,
        /,
        calibration: Reference,
        *,
        config: Mapping[str, Any] | None = None,
        wait: Wait = True,
        on_progress: OnProgress = None,
        **options: Any,  # noqa: ANN401 - as many kinds as the configuration has keys
    ) -> Calibration:
        """Refit a calibration from its records as the next version, such as with ``bins=20``."""
        changes = {**(config or {}), **options}
        waiting = _wait_options(wait, on_progress, cancels=False)
        return await jobs.refit(self.sender, calibration, changes, waiting)

    async def promote(self, calibration: Reference) -> Calibration:
        """Let the name mean this version, until another is promoted."""
        path = address_of(reference_of(calibration), "promote")
        return Calibration.of((await self.sender.send(Request("POST", path))).json())

    async def cancel(self, calibration: Reference) -> Calibration:
        """Ask a calibration that is queued or running to stop."""
        path = address_of(reference_of(calibration), "cancel")
        request = Request("POST", path, repeatable=False)
        return Calibration.of((await self.sender.send(request)).json())

    async def delete(self, calibration: Reference) -> None:
        """Delete a calibration that has ended, and all it keeps."""
        path = address_of(reference_of(calibration))
        await self.sender.send(Request("DELETE", path, repeatable=False))

    async def _get(self, path: str, **params: str | int | None) -> Answer:
        return await self.sender.send(Request("GET", path, params))


def _wait_options(
    wait: Wait,
    on_progress: OnProgress,
    cancels: bool,  # noqa: FBT001 - private, and always named by its value
) -> WaitOptions | None:
    if wait is False:
        return None
    return WaitOptions(None if wait is True else float(wait), on_progress, cancels)

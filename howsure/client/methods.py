"""The methods of both clients, as coroutines."""

import os
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal, TypeAlias

from numpy.typing import ArrayLike

from howsure.client import jobs, predictions
from howsure.client.errors import EvaluationFailed
from howsure.client.exports import export_model
from howsure.client.frames import SCORES, index_of
from howsure.client.jobs import OnProgress, Upload, Wait, WaitOptions
from howsure.client.operating_point_methods import OperatingPointMethods
from howsure.client.predictions import Predictions
from howsure.client.request import Answer, Request, address_of, json_request
from howsure.client.resources import (
    Calibration,
    CalibrationList,
    Evaluation,
    Reference,
    SetRole,
    reference_of,
)
from howsure.client.rows import Inputs, Picture, requests_of
from howsure.client.transport import Sender, Transport
from howsure.client.uploads import Companions, LabelsGiven, Models, Samples

Status: TypeAlias = Literal["queued", "running", "succeeded", "failed", "cancelled"]
TextFormat: TypeAlias = Literal["csv", "markdown", "model-card", "html"]


class Methods(OperatingPointMethods):
    """Methods that send requests to a service, over either transport."""

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
        model_data: Companions | None = None,
        logits: ArrayLike | None = None,
        probabilities: ArrayLike | None = None,
        scores: ArrayLike | None = None,
        labels: LabelsGiven | None = None,
        evaluation_labels: LabelsGiven | None = None,
        config: Mapping[str, Any] | None = None,
        wait: Wait = True,
        on_progress: OnProgress = None,
        cancel_on_interrupt: bool = False,
        **options: Any,  # noqa: ANN401 - as many kinds as the configuration has keys
    ) -> Calibration:
        """Calibrate a classifier, and wait for the result.

        Parameters
        ----------
        model
            An ONNX file as a path, bytes, an open file, or a model in memory; a list of them is an
            ensemble. Omit it if you send the model's outputs.
        calibration, evaluation
            Labelled samples: a path (a folder is packed), bytes, an open file, a pair ``(inputs,
            labels)``, arrays by name, or a data frame with a column ``label``. The inputs of a pair
            may be a data frame, too.
        logits, probabilities
            Outputs of the model instead of ``calibration``: shape (n, classes), or a data frame
            with a column for each class, whose names become those of the classes. Probabilities
            of shape (n,) are those of class 1 of two.
        scores
            Instead, for pairs: a score of each answer, shape (n,), whose ``labels`` say whether it
            was right; or a data frame with the columns ``score`` and ``correct``.
        labels, evaluation_labels
            Classes, shape (n,): for ``logits``, ``probabilities``, or a set that is an .npy file,
            where they may be another one. Names of classes need ``classes``, their names in the
            order of the outputs.
        model_data
            Files with external weights: paths, or a mapping from the names in the model. By
            default, those that lie beside the model.
        config, options
            The configuration of docs/http.md, or its keys as arguments: ``name="digits"``.
        wait
            True waits until the end, False does not wait, a number is the maximum in seconds.
        on_progress
            Called with a `Progress` after each change.
        cancel_on_interrupt
            Whether Ctrl-C during the wait cancels the calibration.

        Raises
        ------
        CalibrationFailed
            If the calibration ends without success during the wait.
        HowsureError
            If the service refuses the upload.
        """
        outputs = {"logits": logits, "probabilities": probabilities, SCORES: scores}
        given = {**(config or {}), **options}
        upload = Upload(
            model, calibration, labels, outputs, evaluation, evaluation_labels, model_data, given
        )
        waiting = jobs.wait_options(wait, on_progress, cancels=cancel_on_interrupt)
        with ExitStack() as files:
            answer = await self.sender.send(upload.request(files))
        return await jobs.wait_for_calibration(self.sender, answer.json(), waiting)

    async def dry_run(  # noqa: PLR0913 - the parts of an upload
        self,
        /,
        model: Models = None,
        calibration: Samples | None = None,
        *,
        evaluation: Samples | None = None,
        logits: ArrayLike | None = None,
        probabilities: ArrayLike | None = None,
        scores: ArrayLike | None = None,
        model_data: Companions | None = None,
        labels: LabelsGiven | None = None,
        evaluation_labels: LabelsGiven | None = None,
        config: Mapping[str, Any] | None = None,
        **options: Any,  # noqa: ANN401 - as many kinds as the configuration has keys
    ) -> dict[str, Any]:
        """Check an upload like `calibrate`, but store nothing; return the result."""
        outputs = {"logits": logits, "probabilities": probabilities, SCORES: scores}
        given = {**(config or {}), **options}
        upload = Upload(
            model, calibration, labels, outputs, evaluation, evaluation_labels, model_data, given
        )
        with ExitStack() as files:
            answer = await self.sender.send(upload.request(files, dry_run="true"))
        return dict(answer.json())

    async def wait(
        self,
        calibration: Reference,
        *,
        seconds: float | None = None,
        on_progress: OnProgress = None,
        cancel_on_interrupt: bool = False,
    ) -> Calibration:
        """Wait until a calibration has succeeded, for at most ``seconds``.

        Raises
        ------
        CalibrationFailed
            If the calibration ends without success.
        """
        waiting = WaitOptions(seconds, on_progress, cancel_on_interrupt)
        resource = (await self._get(address_of(reference_of(calibration)))).json()
        return await jobs.wait_for_calibration(self.sender, resource, waiting)

    async def predict(  # noqa: PLR0913 - the kinds of rows
        self,
        calibration: Reference,
        inputs: Inputs = None,
        *,
        logits: ArrayLike | None = None,
        probabilities: ArrayLike | None = None,
        pixels: ArrayLike | None = None,
        pictures: Sequence[Picture] | Picture | None = None,
        scores: ArrayLike | None = None,
        supplied: Mapping[str, ArrayLike] | None = None,
        rows_per_request: int | None = None,
        timeout: float | None = None,  # noqa: ASYNC109 - the service's time, not the caller's
    ) -> Predictions:
        """Return classes and calibrated probabilities for rows.

        Many rows are split into several requests, which all use the same version.

        Parameters
        ----------
        inputs
            Rows for the model's only input, or rows by input name. With the names of the columns
            of the calibration table: a data frame of pandas, or a mapping for each row.
        logits, probabilities
            Instead of ``inputs``, for a calibration of uploaded outputs: shape (n, classes), or a
            data frame with a column for each class, found by name.
        pixels
            Instead, for a calibration of pictures: resized, uint8, shape (n, height, width,
            channels).
        pictures
            Instead, for a calibration of pictures: JPEG, PNG or WebP files, as paths or bytes.
        scores
            Instead, for a calibration of pairs: shape (n,).
        supplied
            Your own uncertainties by name, if one of them serves: shape (n,).
        timeout
            Maximum time that the service may take for a request, in seconds.

        Raises
        ------
        HowsureError
            If the service refuses the request or does not respond in time.
        """
        if rows_per_request is not None and rows_per_request < 1:
            raise ValueError(f"rows_per_request must be 1 or more, not {rows_per_request}")
        given = {
            "inputs": inputs,
            "logits": logits,
            "probabilities": probabilities,
            "pixels": pixels,
            SCORES: scores,
            "pictures": pictures,
        }
        requests = requests_of(given, supplied, rows_per_request)
        found = await predictions.predict(
            self.sender, calibration, requests, self._class_names, timeout
        )
        (rows,) = (sent for sent in given.values() if sent is not None)
        return replace(found, index=index_of(rows))

    async def get(self, calibration: Reference) -> Calibration:
        """Return the current state of a calibration, by id, name or ``name@version``."""
        answer = await self._get(address_of(reference_of(calibration)))
        return Calibration.of(answer.json())

    async def calibrations(
        self,
        *,
        name: str | None = None,
        status: Status | None = None,
        limit: int | None = None,
    ) -> CalibrationList:
        """Return calibrations, newest first: all, or at most ``limit``."""
        resources = await self.sender.listed(
            "/calibrations", "calibrations", limit, name=name, status=status
        )
        return CalibrationList(map(Calibration.of, resources))

    async def report(self, calibration: Reference) -> dict[str, Any]:
        """Return the scores of a calibration."""
        return dict((await self._get("/report", calibration=reference_of(calibration))).json())

    async def report_text(self, calibration: Reference, format_: TextFormat = "markdown") -> str:
        """Return the scores as text; HTML is one self-contained page."""
        answer = await self._get("/report", calibration=reference_of(calibration), format=format_)
        return answer.content.decode()

    async def bins(self, calibration: Reference) -> dict[str, Any]:
        """Return the bin tables and everything else that predictions depend on."""
        return dict((await self._get(address_of(reference_of(calibration), "bins"))).json())

    async def import_bins(self, document: bytes, *, name: str | None = None) -> Calibration:
        """Make a calibration from the JSON of bin tables, under their name or another one."""
        path, headers = "/calibrations/import", {"Content-Type": "application/json"}
        request = Request("POST", path, {"name": name}, headers, content=document, repeatable=False)
        return Calibration.of((await self.sender.send(request)).json())

    async def export(self, calibration: Reference, to: str | os.PathLike[str]) -> Path:
        """Write the calibrated model as an ONNX file, and return its path.

        Files with external weights are written beside it, under the names that it has for them.

        Raises
        ------
        ValueError
            If there is another file of such a name beside it.
        """
        found = await self.get(calibration)
        return (await export_model(self.sender, found, Path(to))).path

    async def evaluate(  # noqa: PLR0913 - what a further set is, and how to wait
        self,
        calibration: Reference,
        evaluation: Samples,
        *,
        name: str,
        labels: LabelsGiven | None = None,
        role: SetRole | None = None,
        type: str | None = None,  # noqa: A002 - as in the interface
        intensity: float | None = None,
        wait: Wait = True,
        on_progress: OnProgress = None,
        cancel_on_interrupt: bool = False,
    ) -> Evaluation:
        """Evaluate a further set, labelled or not, by the tables of a calibration.

        Parameters
        ----------
        role
            ``traffic``, the default: data that is to come. ``stress``: data that was made to see
            how far it may drift, and which does not change the verdict.
        type, intensity
            How the samples were changed, such as ``"rotation"``, and how much.

        Raises
        ------
        EvaluationFailed
            If the evaluation ends without success during the wait.
        """
        waiting = jobs.wait_options(wait, on_progress, cancels=cancel_on_interrupt)
        texts = {"name": name, "role": role, "type": type, "intensity": intensity}
        # By id, so that a newer version is not used instead.
        found = await self.get(calibration)
        with ExitStack() as files:
            request = Request(
                "POST",
                address_of(found.id, "evaluations"),
                parts=jobs.evaluation_parts(texts, evaluation, labels, files, found),
                repeatable=False,
                patient=True,
            )
            resource = (await self.sender.send(request)).json()
        address = address_of(found.id, "evaluations", name)
        return Evaluation.of(
            await jobs.wait_for_job(self.sender, address, resource, waiting, EvaluationFailed)
        )

    async def evaluations(self, calibration: Reference) -> list[Evaluation]:
        """Return the evaluations of a calibration on further sets, oldest first."""
        address = address_of(reference_of(calibration), "evaluations")
        return [
            Evaluation.of(one) for one in await self.sender.listed(address, "evaluations", None)
        ]

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
        """Fit the next version to the stored records, for example with ``bins=20``."""
        changes = {**(config or {}), **options}
        waiting = jobs.wait_options(wait, on_progress, cancels=False)
        path = address_of(reference_of(calibration), "refit")
        answer = await self.sender.send(json_request(path, changes, headers=jobs.new_key()))
        return await jobs.wait_for_calibration(self.sender, answer.json(), waiting)

    async def promote(self, calibration: Reference) -> Calibration:
        """Make this version the one that its name stands for, until another is promoted."""
        path = address_of(reference_of(calibration), "promote")
        return Calibration.of((await self.sender.send(Request("POST", path))).json())

    async def cancel(self, calibration: Reference) -> Calibration:
        """Cancel a queued or running calibration."""
        path = address_of(reference_of(calibration), "cancel")
        request = Request("POST", path, repeatable=False)
        return Calibration.of((await self.sender.send(request)).json())

    async def delete(self, calibration: Reference) -> None:
        """Delete a finished calibration with all its data."""
        path = address_of(reference_of(calibration))
        await self.sender.send(Request("DELETE", path, repeatable=False))

    async def _get(self, path: str, **params: str | int | None) -> Answer:
        return await self.sender.send(Request("GET", path, params))

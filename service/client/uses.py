"""Every use of the service, as steps: what both clients have as methods."""

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias

from numpy.typing import ArrayLike

from service.client import kept, predicting, starting
from service.client.calibration import Calibration, Evaluation, reference_of
from service.client.following import Following, OnProgress
from service.client.given import Companions, LabelsGiven, Models, Samples
from service.client.predicting import (
    ONE_OF,
    Asked,
    AskedArrays,
    AskedPictures,
    Picture,
    rows_of,
)
from service.client.predictions import Predictions
from service.client.request import address_of
from service.client.starting import FurtherSet, Upload
from service.client.steps import Steps

Reference: TypeAlias = Calibration | str
Wait: TypeAlias = bool | float


class Uses:
    """What can be asked of a service; ``retries`` is how often more a request may be sent."""

    def __init__(self, *, retries: int) -> None:
        if retries < 0:
            raise ValueError(f"retries must be 0 or more, not {retries}")
        self._retries = retries
        self._class_names: dict[str, tuple[str, ...]] = {}

    def calibrate(  # noqa: PLR0913 - the parts of the form, and how to wait
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
    ) -> Steps[Calibration]:
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
        how = _following(wait, on_progress, cancel_on_interrupt)
        return starting.calibrated(upload, how, retries=self._retries)

    def dry_run(
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
    ) -> Steps[dict[str, Any]]:
        """Have an upload checked as `calibrate` would, and told what was found; none is kept."""
        given = {**(config or {}), **options}
        upload = Upload(
            model, calibration, labels, {}, evaluation, evaluation_labels, model_data, given
        )
        return starting.tried(upload, retries=self._retries)

    def wait(
        self,
        calibration: Reference,
        *,
        seconds: float | None = None,
        on_progress: OnProgress = None,
        cancel_on_interrupt: bool = False,
    ) -> Steps[Calibration]:
        """Wait until a calibration has succeeded, or for so many seconds.

        Raises
        ------
        CalibrationFailed
            If it does not succeed.
        """
        how = Following(seconds, on_progress, cancel_on_interrupt)
        return starting.waited_for(calibration, how, retries=self._retries)

    def predict(  # noqa: PLR0913 - the kinds of rows
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
        timeout: float | None = None,
    ) -> Steps[Predictions]:
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
        what: Asked
        if pictures is None:
            what = AskedArrays(rows_of(inputs, outputs, supplied), rows_per_request)
        elif inputs is None and not any(array is not None for array in outputs.values()):
            if not pictures:
                raise ValueError("expected at least one picture, got none")
            what = AskedPictures(pictures, rows_per_request)
        else:
            raise ValueError(ONE_OF)
        return predicting.predicted(
            calibration, what, self._class_names, seconds=timeout, retries=self._retries
        )

    def get(self, calibration: Reference) -> Steps[Calibration]:
        """Return a calibration as it is now, by id, name or ``name@version``."""
        return kept.read(calibration, retries=self._retries)

    def calibrations(
        self,
        *,
        name: str | None = None,
        status: kept.Status | None = None,
        limit: int | None = None,
    ) -> Steps[list[Calibration]]:
        """Return calibrations, the newest first: all of them, or ``limit``."""
        return kept.listed(name=name, status=status, limit=limit, retries=self._retries)

    def report(self, calibration: Reference) -> Steps[dict[str, Any]]:
        """Return the scores of a calibration."""
        params = {"calibration": reference_of(calibration)}
        return kept.as_json("/report", params, retries=self._retries)

    def report_text(
        self, calibration: Reference, format_: kept.TextFormat = "markdown"
    ) -> Steps[str]:
        """Return them as text; as HTML a page that needs nothing beside it."""
        params = {"calibration": reference_of(calibration), "format": format_}
        return kept.as_text("/report", params, retries=self._retries)

    def bins(self, calibration: Reference) -> Steps[dict[str, Any]]:
        """Return the bin tables with all else that answers depend on."""
        path = address_of(reference_of(calibration), "bins")
        return kept.as_json(path, retries=self._retries)

    def export(self, calibration: Reference, to: str | os.PathLike[str]) -> Steps[Path]:
        """Write the calibrated model as one ONNX file, and return its path."""
        return kept.exported(calibration, to, retries=self._retries)

    def evaluate(
        self,
        calibration: Reference,
        evaluation: Samples,
        *,
        name: str,
        labels: LabelsGiven | None = None,
        wait: Wait = True,
        on_progress: OnProgress = None,
        cancel_on_interrupt: bool = False,
    ) -> Steps[Evaluation]:
        """Judge a further set, labelled or not, by the tables of a calibration.

        Raises
        ------
        EvaluationFailed
            If it was waited for and did not succeed.
        """
        how = _following(wait, on_progress, cancel_on_interrupt)
        what = FurtherSet(name, evaluation, labels)
        return starting.evaluated(calibration, what, how, retries=self._retries)

    def refit(
        self,
        /,
        calibration: Reference,
        *,
        config: Mapping[str, Any] | None = None,
        wait: Wait = True,
        on_progress: OnProgress = None,
        **options: Any,  # noqa: ANN401 - as many kinds as the configuration has keys
    ) -> Steps[Calibration]:
        """Fit a calibration anew from its records, as the next version: ``bins=20``, for one."""
        changes = {**(config or {}), **options}
        how = _following(wait, on_progress, cancels=False)
        return starting.refitted(calibration, changes, how, retries=self._retries)

    def promote(self, calibration: Reference) -> Steps[Calibration]:
        """Let the name mean this version, until another is promoted."""
        return kept.changed(calibration, "promote", retries=self._retries)

    def cancel(self, calibration: Reference) -> Steps[Calibration]:
        """Ask a calibration that is queued or running to stop."""
        return kept.changed(calibration, "cancel", retries=self._retries)

    def delete(self, calibration: Reference) -> Steps[None]:
        """Delete a calibration that has ended, and all it keeps."""
        return kept.deleted(calibration, retries=self._retries)


def _following(
    wait: Wait,
    on_progress: OnProgress,
    cancels: bool,  # noqa: FBT001 - private, and always named by its value
) -> Following | None:
    if wait is False:
        return None
    return Following(None if wait is True else float(wait), on_progress, cancels)

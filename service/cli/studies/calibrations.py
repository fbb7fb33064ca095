"""The calibrations of a study: made one after the other, and deleted at its end."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import Console

from howsure.client import Calibration, HowsureError, JobFailed
from howsure.client.request import Request
from service.cli.connection import ServiceClient
from service.cli.console import job_progress, say
from service.cli.failure import CommandFailed
from service.cli.studies.registry import ENSEMBLE, PREFIX, Run

if TYPE_CHECKING:
    from howsure.report.report import Report

MEASURES = "config.measures"  # where the service refuses a measure that a model cannot have


class RowsOmitted(CommandFailed):
    """Rows of a table cannot be made; the message says why."""


@dataclass(frozen=True)
class StudyData:
    """What is calibrated: models and a labelled set, or a set of outputs."""

    models: Sequence[Path]
    calibration: Path
    evaluation: Path | None = None
    labels: Path | None = None
    evaluation_labels: Path | None = None


@dataclass
class StudyCalibrations:
    """Calibrations under names of a study.

    Attributes
    ----------
    config : mapping
        The keys that the study does not set.
    made : list of Calibration
    """

    client: ServiceClient
    study: str
    config: Mapping[str, Any]
    made: list[Calibration] = field(default_factory=list)

    def reports(
        self, data: StudyData, run: Run, bins: Sequence[int]
    ) -> Iterator[tuple[int, "Report"]]:
        """Calibrate, and yield each number of bins with its report; the model runs once.

        Raises
        ------
        RowsOmitted
            If the models cannot have a measure of the run, or fail in it.
        """
        is_ensemble = ENSEMBLE in run.measures
        if run.is_of_passes and not data.models:
            raise RowsOmitted("it needs an ONNX model")
        if is_ensemble and len(data.models) < 2:  # noqa: PLR2004 - an ensemble
            raise RowsOmitted("it needs several ONNX models")
        first, *others = bins
        config = {**self.config, "measures": list(run.measures), "bins": first, "lookup": "step"}
        config["name"] = f"{PREFIX}-{self.study}-{run.name}"
        if run.dropout_rate is not None:
            config["dropout"] = {**self.config.get("dropout", {}), "rate": run.dropout_rate}
        try:
            queued = self.client.calibrate(
                [*(data.models if is_ensemble else data.models[:1])],
                data.calibration,
                evaluation=data.evaluation,
                labels=data.labels,
                evaluation_labels=data.evaluation_labels,
                config=config,
                wait=False,
            )
        except HowsureError as error:
            if [one["location"] for one in error.errors] != [MEASURES]:
                raise
            raise RowsOmitted(error.errors[0]["message"]) from error
        fitted = self._finished(queued)
        yield first, typed_report(self.client, fitted.id)
        for number in others:
            again = self.client.refit(fitted, config={"bins": number}, wait=False)
            yield number, typed_report(self.client, self._finished(again).id)

    def _finished(self, queued: Calibration) -> Calibration:
        self.made.append(queued)
        try:
            with job_progress() as show:
                return self.client.wait(queued, on_progress=show, cancel_on_interrupt=True)
        except JobFailed as error:
            if error.resource["status"] == "failed":
                raise RowsOmitted(str(error)) from error
            raise

    def delete(self) -> None:
        """Delete the calibrations, the newest first, and name those that cannot be deleted."""
        for one in reversed(self.made):
            try:
                self.client.delete(one)
            except HowsureError as error:  # such as of one that is running still
                say(f"{one.reference} was not deleted: {error}", Console(stderr=True))


@contextmanager
def study_calibrations(
    client: ServiceClient, study: str, config: Mapping[str, Any], *, keep: bool
) -> Iterator[StudyCalibrations]:
    """Yield the calibrations of a study; at the end delete them, or say what they are called."""
    calibrations = StudyCalibrations(client, study, config)
    try:
        yield calibrations
    finally:
        if not keep:
            calibrations.delete()
        elif calibrations.made:
            names = ", ".join(one.reference for one in calibrations.made)
            say(f"kept: {names}", Console(stderr=True))


def typed_report(client: ServiceClient, reference: str) -> "Report":
    """Return the report of a calibration with its types."""
    # Only now: a report imports the statistics.
    import msgspec

    from howsure.report.report import Report

    answer = client.send(Request("GET", "/report", {"calibration": reference}))
    return msgspec.json.decode(answer.content, type=Report)

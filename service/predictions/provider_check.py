"""Check of a loaded model on stored samples before it serves predictions."""

from collections.abc import Mapping, Sequence
from typing import Any

import structlog
from obstore.exceptions import BaseError

import models
from howsure.statistics.measures import parse_measure
from service.errors import ArtifactDamaged, InvalidInput, ProviderMismatch, ServiceError
from service.jobs.samples import KeptSamples
from service.predictions.provider_parity import ProviderDifferences, compare_providers
from service.predictions.served_calibration import ServedEvent
from service.runner.model_to_serve import NOT_NEEDED, UNCHECKED, ProviderParity, RunRows
from service.runner.pool import RunnerPool
from service.workspace import Workspace

WARM_UP_ROWS = 4
COMPARED_ROWS = 256

log = structlog.get_logger(__name__)


class ProviderCheck:
    """Warms a model up; on another execution provider it compares answers with the records.

    Parameters
    ----------
    row
        The calibration of an ONNX model, with its artifacts.
    events
        The events that it serves.
    """

    def __init__(
        self, workspace: Workspace, row: models.Calibration, events: Sequence[ServedEvent]
    ) -> None:
        found = row.onnx_model or {}
        self._name = f"{row.name}@{row.version}"
        self._provider, self._device = str(found["provider"]), str(found["device"])
        self._is_half = _is_half(found)
        self._threshold: float | None = row.config.get("decision_threshold")
        # Supplied uncertainties do not depend on the model.
        self._events = [
            event for event in events if parse_measure(event.measure).kind != "supplied"
        ]
        self._rows = KeptSamples.of(workspace.artifacts, row)
        self._has_warned = False

    def apart(self, runners: RunnerPool) -> str:
        """Return a key for checks with equal results; empty if nothing is compared."""
        try:
            if self._provider in {device.provider for device in runners.devices()}:
                return ""
        except ServiceError as error:
            # The provider is determined again when the model is loaded.
            log.debug("no_device", error=error.message)
        return f"{self._provider}/{'' if self._rows is None else self._rows.artifact.sha256}"

    def __call__(self, run: RunRows, provider: str) -> ProviderParity:
        """Run stored rows through a loaded model.

        Raises
        ------
        ProviderMismatch
            If its answers differ from the records, which another provider made.
        ServiceError
            If the model does not answer, or a stored file is damaged.
        """
        if provider != self._provider:
            return self._compare(run, provider)
        if self._rows is not None:
            self._warm_up(run, self._rows)
        return NOT_NEEDED

    def _warm_up(self, run: RunRows, stored: KeptSamples) -> None:
        """Run a few rows together, then one; unreadable samples do not prevent serving."""
        try:
            rows = stored.inputs(WARM_UP_ROWS)
            run(rows)
            run({name: array[:1] for name, array in rows.items()})
        except (InvalidInput, ArtifactDamaged, OSError, BaseError) as error:
            log.warning("model_not_warmed_up", calibration=self._name, error=str(error))

    def _compare(self, run: RunRows, provider: str) -> ProviderParity:
        providers = {"calibrated_with": self._provider, "runs_with": provider}
        if self._rows is None:
            if not self._has_warned:
                log.warning("provider_unchecked", calibration=self._name, **providers)
            self._has_warned = True
            return UNCHECKED
        rows = self._rows.inputs(COMPARED_ROWS)
        n_rows = len(next(iter(rows.values())))
        learned = {event.k: event.learned for event in self._events if event.learned is not None}
        recorded = self._rows.recorded(n_rows, [event.column for event in self._events], learned)
        try:
            answered = run(rows)
        except InvalidInput as error:
            raise self._mismatch(provider, error.message) from error
        found = compare_providers(
            answered,
            recorded,
            self._events,
            half_precision=self._is_half,
            threshold=self._threshold,
        )
        if found.differing:
            raise self._mismatch(provider, _told(found))
        log.info("provider_checked", calibration=self._name, rows=n_rows, **providers)
        return ProviderParity("checked", n_rows)

    def _mismatch(self, provider: str, found: str) -> ProviderMismatch:
        return ProviderMismatch(
            f"{self._name} is not served: its ONNX model runs with {provider} here and was "
            f"calibrated with {self._provider}, and the two do not agree: {found}. Calibrate it "
            f"anew on this device, or set HOWSURE_DEVICE={self._device} to run it where it was "
            "calibrated."
        )


def _told(found: ProviderDifferences) -> str:
    return (
        f"of {found.rows} stored samples {found.differing} are answered otherwise "
        f"({found.classes} with another class, {found.uncertainties} with another uncertainty, "
        f"{found.bins} in another bin)"
    )


def _is_half(onnx_model: Mapping[str, Any]) -> bool:
    """Tell whether the model's output is in half precision."""
    name = onnx_model["output"]["name"]
    return any(
        tensor["name"] == name and tensor["dtype"] == "float16" for tensor in onnx_model["outputs"]
    )

"""Calibrated probabilities for classifiers: a client of the Howsure service, and its statistics."""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from howsure.client import (
        AsyncClient,
        Calibration,
        CalibrationFailed,
        Client,
        Evaluation,
        EvaluationFailed,
        EventPredictions,
        Finding,
        HowsureError,
        JobFailed,
        OperatingPoint,
        OperatingPointPreview,
        Predictions,
        Progress,
        ServiceUnreachable,
    )

__all__ = [
    "AsyncClient",
    "Calibration",
    "CalibrationFailed",
    "Client",
    "Evaluation",
    "EvaluationFailed",
    "EventPredictions",
    "Finding",
    "HowsureError",
    "JobFailed",
    "OperatingPoint",
    "OperatingPointPreview",
    "Predictions",
    "Progress",
    "ServiceUnreachable",
]


def __getattr__(name: str) -> object:
    """Import the client at its first use: ``howsure.statistics`` needs no httpx."""
    if name in __all__:
        return getattr(import_module("howsure.client"), name)
    raise AttributeError(f"module 'howsure' has no attribute {name!r}")


def __dir__() -> list[str]:
    """Return what a program can use."""
    return [*__all__, "client", "statistics"]

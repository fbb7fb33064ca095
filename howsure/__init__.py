"""Calibrated probabilities for classifiers: a calibrator, and a client of the Howsure service."""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from howsure.calibrator import Calibrator
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
    from howsure.predictor import Answers

__all__ = [
    "Answers",
    "AsyncClient",
    "Calibration",
    "CalibrationFailed",
    "Calibrator",
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


_MODULES = {"Answers": "howsure.predictor", "Calibrator": "howsure.calibrator"}


def __getattr__(name: str) -> object:
    """Import what is used at its first use: ``howsure.statistics`` needs no httpx."""
    if name in __all__:
        return getattr(import_module(_MODULES.get(name, "howsure.client")), name)
    raise AttributeError(f"module 'howsure' has no attribute {name!r}")


def __dir__() -> list[str]:
    """Return what a program can use."""
    return [*__all__, "client", "statistics"]

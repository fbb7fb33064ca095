"""Calibrated probabilities for classifiers: a calibrator, and a client of the Howsure service."""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from howsure.calibrator import Answers, Calibrator
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


_OF_CALIBRATOR = frozenset({"Answers", "Calibrator"})


def __getattr__(name: str) -> object:
    """Import what is used at its first use: ``howsure.statistics`` needs no httpx."""
    if name in __all__:
        module = "howsure.calibrator" if name in _OF_CALIBRATOR else "howsure.client"
        return getattr(import_module(module), name)
    raise AttributeError(f"module 'howsure' has no attribute {name!r}")


def __dir__() -> list[str]:
    """Return what a program can use."""
    return [*__all__, "client", "statistics"]

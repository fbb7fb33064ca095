"""Python client of the Howsure service, imported as ``howsure``.

It uses the HTTP interface and needs only httpx and numpy.
"""

from howsure.client.clients import AsyncClient, Client
from howsure.client.errors import (
    CalibrationFailed,
    EvaluationFailed,
    HowsureError,
    JobFailed,
    ServiceUnreachable,
)
from howsure.client.operating_points import OperatingPoint, OperatingPointPreview
from howsure.client.predictions import EventPredictions, Predictions
from howsure.client.resources import Calibration, Evaluation, Finding, Progress

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

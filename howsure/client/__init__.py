"""A client of the service, for Python programs: imported as ``howsure``.

It speaks HTTP and knows nothing else of the service; httpx and numpy are all it needs.
"""

from howsure.client.clients import AsyncClient, Client
from howsure.client.errors import (
    CalibrationFailed,
    EvaluationFailed,
    HowsureError,
    JobFailed,
    ServiceUnreachable,
)
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
    "Predictions",
    "Progress",
    "ServiceUnreachable",
]

"""A client of the service, for Python programs: imported as ``howsure``.

It speaks HTTP and knows nothing else of the service; httpx and numpy are all it needs.
"""

from service.client.async_client import AsyncClient
from service.client.calibration import Calibration, Evaluation, Finding, Progress
from service.client.errors import (
    CalibrationFailed,
    EvaluationFailed,
    HowsureError,
    JobFailed,
    ServiceUnreachable,
)
from service.client.predictions import EventPredictions, Predictions
from service.client.sync_client import Client

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

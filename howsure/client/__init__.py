"""Python client of the Howsure service, imported as ``howsure``.

It uses the HTTP interface and needs only httpx and numpy.
"""

from howsure.client.clients import AsyncClient as AsyncClient
from howsure.client.clients import Client as Client
from howsure.client.errors import CalibrationFailed as CalibrationFailed
from howsure.client.errors import EvaluationFailed as EvaluationFailed
from howsure.client.errors import HowsureError as HowsureError
from howsure.client.errors import JobFailed as JobFailed
from howsure.client.errors import ServiceUnreachable as ServiceUnreachable
from howsure.client.operating_points import OperatingPoint as OperatingPoint
from howsure.client.operating_points import OperatingPointPreview as OperatingPointPreview
from howsure.client.predictions import EventPredictions as EventPredictions
from howsure.client.predictions import Predictions as Predictions
from howsure.client.resources import Calibration as Calibration
from howsure.client.resources import Evaluation as Evaluation
from howsure.client.resources import Finding as Finding
from howsure.client.resources import Progress as Progress

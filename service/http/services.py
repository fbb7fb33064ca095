"""The shared objects of a running service, as its routes receive them."""

from collections.abc import Callable
from dataclasses import dataclass

from fastapi import Response
from starlette.types import Scope

from howsure.report.report import Report
from service.access.authenticator import Authenticator
from service.http.job_watch import JobWatch
from service.http.uploads import UploadLimits
from service.http.worker_threads import Lanes
from service.predictions.prediction_app import PredictionApp
from service.runner.served_models import ServedModels
from service.shared_amounts import SharedAmount


@dataclass(frozen=True)
class Services:
    """Built once by the composition root, when the service starts.

    ``models`` is for the event loop only. ``saved_report`` renders a report as one HTML file; the
    rooms below the pages know it only by this field. ``uploading`` counts the bytes that each
    tenant is uploading to this process, ``dry_runs`` its dry runs in progress.
    """

    authenticator: Authenticator
    predictions: PredictionApp
    models: ServedModels
    lanes: Lanes
    job_watch: JobWatch
    saved_report: Callable[[Report], Response]
    upload_limits: UploadLimits
    uploading: SharedAmount
    dry_runs: SharedAmount

    def amounts(self) -> tuple[SharedAmount, ...]:
        """Return everything of which tenants hold shares in this process, besides connections."""
        lanes, queue = self.lanes, self.models.bounds
        places = (
            lanes.sets.places,
            lanes.answers.places,
            lanes.upload.places,
            lanes.documents.places,
        )
        waits = self.job_watch.waits
        return queue.rows, queue.bytes, waits, *places, self.uploading, self.dry_runs


def services_of(scope: Scope) -> Services:
    """Return the services of the app that received a request."""
    services: Services = scope["app"].state.services
    return services

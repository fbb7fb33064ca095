"""What routes ask for, as annotated aliases."""

import uuid
from collections.abc import Awaitable, Callable, Mapping
from typing import Annotated, Any

from fastapi import Depends, Path, Request, Response

from service.access.api_keys import CALLER, Caller
from service.access.audit_log import AuditEvent
from service.access.guard import audit_event_of
from service.access.rate_limits import TenantLimits
from service.http.job_events import JobWatch
from service.http.worker_threads import Lanes
from service.jobs.acceptance import CallContext
from service.predictions.prediction_app import PredictionApp
from service.runner.served_models import ServedModels
from service.workspace import Workspace


def _workspace(request: Request) -> Workspace:
    workspace = request.app.state.workspace
    assert isinstance(workspace, Workspace)  # noqa: S101 - set by the composition root
    return workspace


def _caller(request: Request) -> Caller:
    caller = request.scope[CALLER]
    assert isinstance(caller, Caller)  # noqa: S101 - set by the guard, for what is not open
    return caller


def _tenant_id(request: Request) -> uuid.UUID:
    return _caller(request).tenant_id


def _limits(request: Request) -> TenantLimits:
    return _caller(request).meter.limits


def _act(request: Request) -> AuditEvent:
    return audit_event_of(request.scope)


def _call(request: Request) -> CallContext:
    caller, workspace = _caller(request), _workspace(request)
    return CallContext(workspace, caller.tenant_id, caller.meter.limits, _act(request))


def _lanes(request: Request) -> Lanes:
    lanes = request.app.state.lanes
    assert isinstance(lanes, Lanes)  # noqa: S101 - set by the composition root
    return lanes


def _predictions(request: Request) -> PredictionApp:
    predictions = request.app.state.predictions
    assert isinstance(predictions, PredictionApp)  # noqa: S101 - set by the composition root
    return predictions


def _models(request: Request) -> ServedModels:
    models = request.app.state.models
    assert isinstance(models, ServedModels)  # noqa: S101 - set by the composition root
    return models


def _saved_report(request: Request) -> Callable[[Mapping[str, Any]], Awaitable[Response]]:
    write: Callable[[Mapping[str, Any]], Awaitable[Response]] = request.app.state.saved_report
    return write


def _job_watch(request: Request) -> JobWatch:
    watch = request.app.state.job_watch
    assert isinstance(watch, JobWatch)  # noqa: S101 - set by the composition root
    return watch


PredictionsDep = Annotated[PredictionApp, Depends(_predictions)]
ModelsDep = Annotated[ServedModels, Depends(_models)]  # to be asked on the event loop
JobWatchDep = Annotated[JobWatch, Depends(_job_watch)]
LanesDep = Annotated[Lanes, Depends(_lanes)]
WorkspaceDep = Annotated[Workspace, Depends(_workspace)]
LimitsDep = Annotated[TenantLimits, Depends(_limits)]  # of the tenant
CallerDep = Annotated[Caller, Depends(_caller)]
TenantDep = Annotated[uuid.UUID, Depends(_tenant_id)]
# Of a route that changes something, in the place of its tenant.
ActDep = Annotated[AuditEvent, Depends(_act)]
CallDep = Annotated[CallContext, Depends(_call)]
# Of pages, which this layer knows nothing of: what makes one file of a report.
SavedReportDep = Annotated[
    Callable[[Mapping[str, Any]], Awaitable[Response]], Depends(_saved_report)
]
CalibrationRef = Annotated[str, Path(description="An id, a name, or `name@version`.")]
EvaluationName = Annotated[str, Path(description="What the further set is called.")]

"""What routes ask for, as annotated aliases."""

import uuid
from collections.abc import Callable, Mapping
from typing import Annotated, Any

from fastapi import Depends, Path, Request, Response

from service.api.access.audit_trail import act_of
from service.api.access.bearer import CALLER
from service.api.hot.front import HotFront
from service.api.job_watch import JobWatch
from service.api.lane import Lanes
from service.operations.api_keys import Caller
from service.operations.audit import Act
from service.operations.tenants import TenantLimits
from service.operations.workspace import Workspace
from service.runner import ServedModels


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


def _act(request: Request) -> Act:
    return act_of(request.scope)


def _lanes(request: Request) -> Lanes:
    lanes = request.app.state.lanes
    assert isinstance(lanes, Lanes)  # noqa: S101 - set by the composition root
    return lanes


def _front(request: Request) -> HotFront:
    front = request.app.state.front
    assert isinstance(front, HotFront)  # noqa: S101 - set by the composition root
    return front


def _models(request: Request) -> ServedModels:
    models = request.app.state.models
    assert isinstance(models, ServedModels)  # noqa: S101 - set by the composition root
    return models


def _saved_report(request: Request) -> Callable[[Mapping[str, Any]], Response]:
    write: Callable[[Mapping[str, Any]], Response] = request.app.state.saved_report
    return write


def _job_watch(request: Request) -> JobWatch:
    watch = request.app.state.job_watch
    assert isinstance(watch, JobWatch)  # noqa: S101 - set by the composition root
    return watch


FrontDep = Annotated[HotFront, Depends(_front)]
ModelsDep = Annotated[ServedModels, Depends(_models)]  # to be asked on the event loop
JobWatchDep = Annotated[JobWatch, Depends(_job_watch)]
LanesDep = Annotated[Lanes, Depends(_lanes)]
WorkspaceDep = Annotated[Workspace, Depends(_workspace)]
LimitsDep = Annotated[TenantLimits, Depends(_limits)]  # of the tenant
CallerDep = Annotated[Caller, Depends(_caller)]
TenantDep = Annotated[uuid.UUID, Depends(_tenant_id)]
# Of a route that changes something, in the place of its tenant.
ActDep = Annotated[Act, Depends(_act)]
# Of pages, which this layer knows nothing of: what makes one file of a report.
SavedReportDep = Annotated[Callable[[Mapping[str, Any]], Response], Depends(_saved_report)]
CalibrationRef = Annotated[str, Path(description="An id, a name, or `name@version`.")]
EvaluationName = Annotated[str, Path(description="What the further set is called.")]

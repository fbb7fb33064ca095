"""FastAPI dependencies of routes, as annotated aliases."""

import uuid
from typing import Annotated

from fastapi import Depends, Path, Request

from service.access.api_keys import CALLER, Caller
from service.access.guard import ACTION, audit_event_of
from service.http.services import Services, services_of
from service.jobs.acceptance import CallContext
from service.workspace import Workspace


# They are asynchronous because FastAPI runs synchronous ones in a thread each.
async def _workspace(request: Request) -> Workspace:
    workspace: Workspace = request.app.state.workspace
    return workspace


async def _services(request: Request) -> Services:
    return services_of(request.scope)


async def _caller(request: Request) -> Caller:
    caller: Caller = request.scope[CALLER]
    return caller


async def _tenant_id(request: Request) -> uuid.UUID:
    return (await _caller(request)).tenant_id


async def _call(request: Request) -> CallContext:
    caller = await _caller(request)
    return CallContext(
        await _workspace(request),
        caller.tenant_id,
        caller.meter.limits,
        audit_event_of(request.scope) if ACTION in request.scope else None,
    )


WorkspaceDep = Annotated[Workspace, Depends(_workspace)]
ServicesDep = Annotated[Services, Depends(_services)]
CallerDep = Annotated[Caller, Depends(_caller)]
TenantDep = Annotated[uuid.UUID, Depends(_tenant_id)]
# Workspace, tenant and limits together; the audit event of a route that has one.
CallDep = Annotated[CallContext, Depends(_call)]
CalibrationRef = Annotated[str, Path(description="An id, a name, or `name@version`.")]
EvaluationName = Annotated[str, Path(description="Name of the further set.")]

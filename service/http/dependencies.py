"""FastAPI dependencies of routes, as annotated aliases."""

import inspect
import uuid
from collections.abc import Awaitable, Callable
from functools import partial, wraps
from typing import Annotated, TypeVar

from fastapi import Depends, Path, Query, Request

from service.access.api_keys import CALLER, Caller
from service.access.guard import ACTION, audit_event_of
from service.http.services import Services, services_of
from service.jobs.acceptance import CallContext
from service.readiness import ReadinessChecks
from service.workspace import Workspace

Result = TypeVar("Result")


# They are asynchronous because FastAPI runs synchronous ones in a thread each.
async def _workspace(request: Request) -> Workspace:
    workspace: Workspace = request.app.state.workspace
    return workspace


async def _readiness(request: Request) -> ReadinessChecks:
    checks: ReadinessChecks = request.app.state.readiness
    return checks


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
ReadinessDep = Annotated[ReadinessChecks, Depends(_readiness)]
ServicesDep = Annotated[Services, Depends(_services)]
CallerDep = Annotated[Caller, Depends(_caller)]
TenantDep = Annotated[uuid.UUID, Depends(_tenant_id)]
# Workspace, tenant and limits together; the audit event of a route that has one.
CallDep = Annotated[CallContext, Depends(_call)]
CalibrationRef = Annotated[str, Path(description="An id, a name, or `name@version`.")]
PageLimit = Annotated[int, Query(ge=1, le=200, description="Most of a page.")]
PageCursor = Annotated[str | None, Query(description="`next_cursor` of the page before.")]
EvaluationName = Annotated[str, Path(description="Name of the further set.")]


def in_documents_lane(route: Callable[..., Result]) -> Callable[..., Awaitable[Result]]:
    """Run a route in the lane of documents: it takes long, and tenants take turns."""

    async def run(*, of_lane: ServicesDep, by: TenantDep, **arguments: object) -> Result:
        return await of_lane.lanes.documents.run(by, partial(route, **arguments))

    keyword = inspect.Parameter.KEYWORD_ONLY
    own = [
        inspect.Parameter("of_lane", keyword, annotation=ServicesDep),
        inspect.Parameter("by", keyword, annotation=TenantDep),
    ]
    signature = inspect.signature(route)
    parameters = [*signature.parameters.values(), *own]
    run.__signature__ = signature.replace(parameters=parameters)  # type: ignore[attr-defined]  # read by FastAPI
    return wraps(route, assigned=("__module__", "__name__", "__doc__"), updated=())(run)

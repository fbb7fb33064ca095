"""Whether the process is alive, and whether it can do its work."""

import uuid
from http import HTTPStatus

from fastapi import APIRouter, Request, Response
from obstore.exceptions import BaseError
from pydantic import BaseModel, Field
from sqlalchemy.exc import SQLAlchemyError

from service.errors import ServiceError
from service.http.dependencies import WorkspaceDep
from service.runner.messages.sandbox_rules import Level, find_sandbox
from service.storage.schema import is_current
from service.workspace import Workspace


def readiness(workspace: Workspace, *, is_stopping: bool) -> tuple[bool, dict[str, str]]:
    """Check all that the service needs; return the verdict and each finding.

    A process that is stopping answers what it gets, and asks to be sent no more.
    """
    if is_stopping:
        return False, {"process": "stopping; another one is to be asked"}
    checks: dict[str, str] = {}
    try:
        current = is_current(workspace.database)
        checks["database"] = "ok"
        checks["schema"] = "ok" if current else "out of date: run `howsure db upgrade`"
    except SQLAlchemyError as error:
        checks["database"] = f"does not answer ({type(error).__name__})"
        checks["schema"] = "unknown"
    checks["artifacts"] = _artifacts(workspace)
    ready = all(found == "ok" for found in checks.values())
    is_fine, checks["sandbox"] = _sandbox(workspace)
    ready = ready and is_fine
    try:
        checks["device"] = ", ".join(device.name for device in workspace.runners.devices())
    except ServiceError as error:
        checks["device"] = error.message
        ready = False
    return ready, checks


def _sandbox(workspace: Workspace) -> tuple[bool, str]:
    """Say whether ONNX models run, and how their processes are locked in."""
    sandbox = find_sandbox()
    if not sandbox.missing:
        return True, sandbox.level
    lacking = f"{sandbox.level}: the kernel lacks {' and '.join(sandbox.missing)}"
    if workspace.runners.allows_unsandboxed:
        return True, lacking
    return False, f"{lacking}; ONNX models are refused, but for HOWSURE_ALLOW_UNSANDBOXED=true"


def _artifacts(workspace: Workspace) -> str:
    """Store, read and delete a few bytes: a full or read-only disk shows in nothing less."""
    key = f"calibrations/{uuid.uuid4()}/readiness"
    try:
        stored = workspace.artifacts.put_bytes(key, b"ready")
        workspace.artifacts.get_bytes(key, stored.sha256)
        workspace.artifacts.delete([key])
    except ServiceError as error:
        return error.message.replace(key, "")
    except (BaseError, OSError) as error:
        return f"cannot be written ({type(error).__name__})"
    return "ok"


router = APIRouter(tags=["health"])


class Health(BaseModel):
    """The process answers."""

    status: str = Field(examples=["alive"], description="Always `alive`.")
    sandbox: Level = Field(
        description="Whether the processes of ONNX models are locked in: `full` or `none`."
    )
    sandbox_missing: list[str] = Field(
        examples=[[]], description="What the kernel lacks for it: `Landlock`, `seccomp`."
    )


class Readiness(BaseModel):
    """What the service needs, and whether each works."""

    ready: bool = Field(description="Whether all of it works.")
    checks: dict[str, str] = Field(
        examples=[
            {
                "database": "ok",
                "schema": "ok",
                "artifacts": "ok",
                "sandbox": "full",
                "device": "cpu",
            }
        ],
        description="What was found of each; `sandbox` and `device` are those of models.",
    )


@router.get("/healthz", summary="Is the process alive?")
async def get_health() -> Health:
    """Answer as soon as the process can answer anything."""
    sandbox = find_sandbox()
    return Health(status="alive", sandbox=sandbox.level, sandbox_missing=list(sandbox.missing))


@router.get("/readyz", summary="Can it do its work?", responses={503: {"model": Readiness}})
def get_readiness(request: Request, workspace: WorkspaceDep, response: Response) -> Readiness:
    """Check database, schema, artifact store, sandbox and device; never while it stops."""
    ready, checks = readiness(workspace, is_stopping=request.app.state.stopping.is_set())
    if not ready:
        response.status_code = HTTPStatus.SERVICE_UNAVAILABLE
        response.headers["Retry-After"] = "5"
    return Readiness(ready=ready, checks=checks)

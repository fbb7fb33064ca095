"""Liveness and readiness of the process."""

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
    """Check everything that the service needs; return the verdict and the result of each check.

    A stopping process is never ready, so that new requests go to another one.
    """
    if is_stopping:
        return False, {"process": "stopping; use another one"}
    checks: dict[str, str] = {}
    try:
        current = is_current(workspace.database)
        checks["database"] = "ok"
        checks["schema"] = "ok" if current else "out of date: run `howsure db upgrade`"
    except SQLAlchemyError as error:
        checks["database"] = f"does not respond ({type(error).__name__})"
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
    """Return whether ONNX models can run, and the level of their sandbox."""
    sandbox = find_sandbox()
    if not sandbox.missing:
        return True, sandbox.level
    lacking = f"{sandbox.level}: the kernel lacks {' and '.join(sandbox.missing)}"
    if workspace.runners.allows_unsandboxed:
        return True, lacking
    return False, f"{lacking}; ONNX models are refused, but for HOWSURE_ALLOW_UNSANDBOXED=true"


def _artifacts(workspace: Workspace) -> str:
    """Store, read and delete a few bytes; nothing less detects a full or read-only disk."""
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
    """The process responds."""

    status: str = Field(examples=["alive"], description="Always `alive`.")
    sandbox: Level = Field(
        description="Sandbox of the processes that run ONNX models: `full` or `none`."
    )
    sandbox_missing: list[str] = Field(
        examples=[[]], description="Missing kernel features: `Landlock`, `seccomp`."
    )


class Readiness(BaseModel):
    """The checks of the service and their results."""

    ready: bool = Field(description="Whether all checks succeed.")
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
        description="Result of each check; `sandbox` and `device` are those of models.",
    )


@router.get("/healthz", summary="Is the process alive?")
async def get_health() -> Health:
    """Respond as soon as the process can respond at all."""
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

"""Whether the process is alive, and whether it can do its work."""

from http import HTTPStatus

from fastapi import APIRouter, Request, Response
from pydantic import BaseModel, Field

from service.api.dependencies import WorkspaceDep
from service.operations.readiness import readiness
from service.runner.sandbox import Level, find_sandbox

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

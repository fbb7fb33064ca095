"""Liveness and readiness of the process."""

from http import HTTPStatus

from fastapi import APIRouter, Response
from pydantic import BaseModel, Field

from service.http.dependencies import ReadinessDep
from service.runner.messages.sandbox_rules import Level, find_sandbox

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
async def get_readiness(readiness: ReadinessDep, response: Response) -> Readiness:
    """Check database, schema, artifact store, sandbox and device; never while it stops."""
    ready, checks = await readiness.results()
    if not ready:
        response.status_code = HTTPStatus.SERVICE_UNAVAILABLE
        response.headers["Retry-After"] = "5"
    return Readiness(ready=ready, checks=checks)

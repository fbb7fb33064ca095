"""``GET /usage``: what a tenant may use, and what it does use."""

from dataclasses import asdict

from fastapi import APIRouter
from pydantic import BaseModel, Field

from service.api.dependencies import CallerDep, WorkspaceDep
from service.api.problems import problems
from service.operations.tenants.usage import usage_of

router = APIRouter(tags=["usage"])


class Used(BaseModel):
    """A limit, and what is used of it."""

    limit: int | None = Field(examples=[1000], description="How much may be; null: any.")
    used: int | None = Field(examples=[3], description="How much is; null: it is not counted.")
    seconds: int | None = Field(
        examples=[1], description="In what time; null for what is counted at a time."
    )


class Usage(BaseModel):
    """All limits of the tenant whose key it is."""

    requests: Used = Field(description="Requests in a second, as this process counts them.")
    rows: Used = Field(description="Rows of predictions in a minute, as this process counts them.")
    stored_bytes: Used = Field(description="Bytes of models, data, records and exports.")
    jobs: Used = Field(description="Calibrations and evaluations that are queued or running.")


@router.get(
    "/usage", summary="See what may be used, and is", response_model=Usage, responses=problems()
)
def get_usage(workspace: WorkspaceDep, caller: CallerDep) -> dict[str, object]:
    """Tell the limits of the key's tenant and what is used of them now; see docs/limits.md."""
    return asdict(usage_of(workspace.database, caller.tenant_id, caller.meter))

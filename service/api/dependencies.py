"""What routes ask for, as annotated aliases."""

import uuid
from typing import Annotated

from fastapi import Depends, Path, Request

from service.api.lane import Lanes
from service.operations.workspace import Workspace


def _workspace(request: Request) -> Workspace:
    workspace = request.app.state.workspace
    assert isinstance(workspace, Workspace)  # noqa: S101 - set by the composition root
    return workspace


def _tenant_id(request: Request) -> uuid.UUID:
    tenant_id = request.app.state.tenant_id
    assert isinstance(tenant_id, uuid.UUID)  # noqa: S101 - set by the composition root
    return tenant_id


def _lanes(request: Request) -> Lanes:
    lanes = request.app.state.lanes
    assert isinstance(lanes, Lanes)  # noqa: S101 - set by the composition root
    return lanes


LanesDep = Annotated[Lanes, Depends(_lanes)]
WorkspaceDep = Annotated[Workspace, Depends(_workspace)]
TenantDep = Annotated[uuid.UUID, Depends(_tenant_id)]
CalibrationRef = Annotated[str, Path(description="An id, a name, or `name@version`.")]
EvaluationName = Annotated[str, Path(description="What the further set is called.")]

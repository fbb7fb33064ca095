"""``GET /usage`` and ``GET /audit``: the limits of a tenant and its audit log."""

import uuid
from datetime import datetime
from typing import Annotated

from fastapi import APIRouter, Query, Request
from pydantic import AwareDatetime, BaseModel, BeforeValidator, ConfigDict, Field

import models
from service.access.usage import Usage, usage_of
from service.http.connection_context import ConnectionContext
from service.http.dependencies import (
    CallerDep,
    PageCursor,
    ServicesDep,
    TenantDep,
    WorkspaceDep,
)
from service.http.problems import problems
from service.storage.audit_log import audit_page

router = APIRouter()


@router.get("/usage", tags=["usage"], summary="Show limits and their use", responses=problems())
def get_usage(
    request: Request, workspace: WorkspaceDep, caller: CallerDep, services: ServicesDep
) -> Usage:
    """Return the limits of the key's tenant and their current use; see docs/limits.md."""
    front: ConnectionContext = request.app.state.front
    amounts = (*services.amounts(), front.receiving, front.unread)
    return usage_of(workspace.database, caller, amounts)


def _no_number(value: object) -> object:
    """Refuse numbers, which pydantic would read as seconds since 1970."""
    if isinstance(value, str) and "-" not in value[1:]:
        raise ValueError("expected a date and time with its offset, as 2026-01-31T12:00:00Z")
    return value


Moment = Annotated[AwareDatetime, BeforeValidator(_no_number)]


class AuditEntry(BaseModel):
    """A requested change and its result."""

    model_config = ConfigDict(from_attributes=True)

    id: uuid.UUID = Field(description="Id of the entry.")
    created_at: datetime = Field(description="Time in UTC, by the database's clock.")
    via: models.AuditVia = Field(description="The interface: API, page or command.")
    key_id: str | None = Field(description="Id of the key; null for commands, or without keys.")
    action: str = Field(examples=["promote"], description="The requested change.")
    subject: str | None = Field(description="The changed object: an id, or a name.")
    result: models.AuditResult = Field(description="Whether it was made.")
    code: str | None = Field(examples=["forbidden"], description="Reason of a refusal.")
    request_id: str | None = Field(description="Id of the request; null for commands.")


class AuditPage(BaseModel):
    """A page of the audit log, newest first."""

    entries: list[AuditEntry] = Field(description="Entries, newest first.")
    next_cursor: str | None = Field(description="`cursor` of the next page; null at the end.")


@router.get("/audit", tags=["audit"], summary="Read the audit log", responses=problems(422))
def get_audit(  # noqa: PLR0913, PLR0917 - as many filters
    workspace: WorkspaceDep,
    tenant_id: TenantDep,
    limit: Annotated[int, Query(ge=1, le=1000, description="Entries per page.")] = 100,
    cursor: PageCursor = None,
    since: Annotated[Moment | None, Query(description="Only from this time on.")] = None,
    action: Annotated[str | None, Query(description="Only this action.")] = None,
    key_id: Annotated[str | None, Query(description="Only by this key.")] = None,
    result: Annotated[
        models.AuditResult | None, Query(description="Only with this result.")
    ] = None,
    subject: Annotated[str | None, Query(description="Only about this.")] = None,
) -> AuditPage:
    """Return changes and refused requests of the key's tenant, newest first."""
    filters = {"action": action, "key_id": key_id, "result": result, "subject": subject}
    only = {name: value for name, value in filters.items() if value is not None}
    with workspace.database.reading(tenant_id) as session:
        rows, next_cursor = audit_page(
            session, tenant_id, limit=limit, cursor=cursor, since=since, only=only
        )
    entries = [AuditEntry.model_validate(row) for row in rows]
    return AuditPage(entries=entries, next_cursor=next_cursor)

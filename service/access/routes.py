"""``GET /usage``: what a tenant may use, and what it does use."""

import uuid
from datetime import datetime
from typing import Annotated

from fastapi import APIRouter, Query
from pydantic import AwareDatetime, BaseModel, BeforeValidator, ConfigDict, Field

import models
from service.access.audit_log import list_audit
from service.access.rate_limits import Usage, usage_of
from service.http.dependencies import CallerDep, TenantDep, WorkspaceDep
from service.http.problems import problems

router = APIRouter()


@router.get("/usage", tags=["usage"], summary="See what may be used, and is", responses=problems())
def get_usage(workspace: WorkspaceDep, caller: CallerDep) -> Usage:
    """Tell the limits of the key's tenant and what is used of them now; see docs/limits.md."""
    return usage_of(workspace.database, caller.tenant_id, caller.meter)


def _no_number(value: object) -> object:
    """Refuse what counts seconds: nobody can tell from which day, nor whether it was meant."""
    if isinstance(value, str) and "-" not in value[1:]:
        raise ValueError("expected a date and time with its offset, as 2026-01-31T12:00:00Z")
    return value


Moment = Annotated[AwareDatetime, BeforeValidator(_no_number)]


class AuditEntry(BaseModel):
    """What somebody asked to be changed, and what came of it."""

    model_config = ConfigDict(from_attributes=True)

    id: uuid.UUID = Field(description="Of this row.")
    created_at: datetime = Field(description="When, in UTC, by the database's clock.")
    via: models.AuditVia = Field(description="The interface: this one, a page, or a command.")
    key_id: str | None = Field(description="Whose key; null of a command, or without keys.")
    action: str = Field(examples=["promote"], description="What was asked for.")
    subject: str | None = Field(description="What it was about: an id, or what the path named.")
    result: models.AuditResult = Field(description="Whether it was done.")
    code: str | None = Field(examples=["forbidden"], description="Why it was refused.")
    request_id: str | None = Field(description="Of the request; null of a command.")


class AuditPage(BaseModel):
    """A page of the audit table, newest first."""

    entries: list[AuditEntry] = Field(description="Of this page, newest first.")
    next_cursor: str | None = Field(description="Give it as `cursor` to read on; null at the end.")


@router.get("/audit", tags=["audit"], summary="Read the audit table", responses=problems(422))
def get_audit(  # noqa: PLR0913, PLR0917 - as many filters
    workspace: WorkspaceDep,
    tenant_id: TenantDep,
    limit: Annotated[int, Query(ge=1, le=1000, description="Most of a page.")] = 100,
    cursor: Annotated[str | None, Query(description="`next_cursor` of the page before.")] = None,
    since: Annotated[Moment | None, Query(description="Only from then on.")] = None,
    action: Annotated[str | None, Query(description="Only this action.")] = None,
    key_id: Annotated[str | None, Query(description="Only by this key.")] = None,
    result: Annotated[models.AuditResult | None, Query(description="Only with this end.")] = None,
    subject: Annotated[str | None, Query(description="Only about this.")] = None,
) -> AuditPage:
    """Tell who changed what of the key's own tenant, or was refused to, newest first."""
    asked = {"action": action, "key_id": key_id, "result": result, "subject": subject}
    rows, next_cursor = list_audit(
        workspace,
        tenant_id,
        limit=limit,
        cursor=cursor,
        since=since,
        only={name: value for name, value in asked.items() if value is not None},
    )
    entries = [AuditEntry.model_validate(row) for row in rows]
    return AuditPage(entries=entries, next_cursor=next_cursor)

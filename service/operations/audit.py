"""The audit table: what is written of an act, and read again."""

import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import event
from sqlalchemy.orm import Session

import models
from service.operations.workspace import Workspace
from service.storage.audit import add_entry, audit_page
from service.storage.database import Database


@dataclass(eq=False)
class Act:
    """What is asked to be changed, by whom; ``is_kept`` tells whether its row is committed.

    ``key_id`` is None where no key was asked for, and of commands.
    """

    tenant_id: uuid.UUID
    action: str
    via: models.AuditVia = "api"
    key_id: str | None = None
    request_id: str | None = None
    is_kept: bool = False

    def accepted(self, session: Session, subject: str) -> None:
        """Write that it was done, in the transaction that does it: both are kept, or neither."""
        self._add(session, subject, "accepted", None)

        def kept(_: Session) -> None:
            self.is_kept = True

        event.listen(session, "after_commit", kept, once=True)

    def refused(self, database: Database, subject: str | None, code: str) -> None:
        """Write that it was not done, and why."""
        with database.session(is_news=False) as session:
            self._add(session, subject, "refused", code)

    def _add(
        self, session: Session, subject: str | None, result: models.AuditResult, code: str | None
    ) -> None:
        add_entry(
            session,
            self.tenant_id,
            via=self.via,
            key_id=self.key_id,
            action=self.action,
            subject=subject,
            result=result,
            code=code,
            request_id=self.request_id,
        )


def accept(act: Act | None, session: Session, subject: object) -> None:
    """Write that an act was done; None is what the service does of itself, which is no act."""
    if act is not None:
        act.accepted(session, str(subject))


def evaluation_subject(calibration: object, name: str) -> str:
    """Return what an evaluation of a calibration is called in the table."""
    return f"{calibration}/evaluations/{name}"


def list_audit(
    workspace: Workspace,
    tenant_id: uuid.UUID,
    *,
    limit: int,
    cursor: str | None,
    since: datetime | None,
    only: Mapping[str, str],
) -> tuple[Sequence[models.AuditEntry], str | None]:
    """Return a page of a tenant's rows, newest first, and the cursor of the next page."""
    with workspace.database.reading() as session:
        return audit_page(session, tenant_id, cursor=cursor, limit=limit, since=since, only=only)

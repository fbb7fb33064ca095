"""The audit log: recording of changes and refusals."""

import uuid
from dataclasses import dataclass

from sqlalchemy import event
from sqlalchemy.orm import Session

import models
from service.storage.audit_log import add_entry
from service.storage.database import Database


@dataclass(eq=False)
class AuditEvent:
    """A requested change and its author; ``is_committed`` tells whether its row is committed.

    ``key_id`` is None for commands, and on a service without keys.
    """

    tenant_id: uuid.UUID
    action: str
    via: models.AuditVia = "api"
    key_id: str | None = None
    request_id: str | None = None
    is_committed: bool = False

    def accepted(self, session: Session, subject: str) -> None:
        """Record success in the transaction of the change: both are stored or neither."""
        self._add(session, subject, "accepted", None)

        def kept(_: Session) -> None:
            self.is_committed = True

        event.listen(session, "after_commit", kept, once=True)

    def refused(self, database: Database, subject: str | None, code: str) -> None:
        """Record that the change was refused, and why."""
        with database.session(self.tenant_id, invalidates_cache=False) as session:
            self._add(session, subject, "refused", code)

    def _add(
        self, session: Session, subject: str | None, result: models.AuditResult, code: str | None
    ) -> None:
        entry = models.AuditEntry(
            tenant_id=self.tenant_id,
            via=self.via,
            key_id=self.key_id,
            action=self.action,
            subject=subject,
            result=result,
            code=code,
            request_id=self.request_id,
        )
        add_entry(session, entry)


def record_success(act: AuditEvent | None, session: Session, subject: object) -> None:
    """Record a successful change; None stands for changes by the service itself: not recorded."""
    if act is not None:
        act.accepted(session, str(subject))


def evaluation_subject(calibration: object, name: str) -> str:
    """Return the name of an evaluation in the audit log."""
    return f"{calibration}/evaluations/{name}"

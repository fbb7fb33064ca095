"""Queries of one tenant's evaluations, except those of the queue."""

from collections.abc import Sequence
from uuid import UUID

from sqlalchemy import ColumnElement, Select, delete, false, func, select
from sqlalchemy.orm import Session, selectinload

from models import UNFINISHED, Calibration, Evaluation
from service.errors import Conflict, InvalidInput, NotFound, shown
from service.storage.artifact_rows import NewArtifact, delete_input_rows
from service.storage.audit_log import rows_of_page
from service.storage.calibration_queries import Reference
from service.storage.job_states import request_end, require_finished, require_succeeded

MAX_NAME_CHARACTERS = 100
EVENTS = "/events"


class EvaluationRepository:
    """The evaluations of one tenant, within one session."""

    def __init__(self, session: Session, tenant_id: UUID) -> None:
        self._session = session
        self._tenant_id = tenant_id

    def add(self, row: Evaluation, artifacts: Sequence[NewArtifact]) -> Evaluation:
        """Queue an evaluation of the calibration that it names.

        Raises
        ------
        InvalidInput
            If the name is empty, too long, or has characters that cannot be shown.
        NotFound
            If there is no such calibration.
        Conflict
            If the calibration has not succeeded, or has an evaluation of this name.
        """
        title = self._lock_calibration(row.calibration_id, must_have_succeeded=True)
        self.require_free(row.calibration_id, row.name, title)
        row.tenant_id = self._tenant_id
        row.artifacts += [
            artifact.row(self._tenant_id, row.calibration_id, row.id) for artifact in artifacts
        ]
        self._session.add(row)
        self._session.flush()
        self._session.refresh(row, ["created_at"])
        return row

    def require_free(self, calibration_id: UUID, name: str, title: str) -> None:
        """Refuse a name that a new evaluation of the calibration ``title`` cannot have.

        Raises
        ------
        InvalidInput
            If the name is empty, too long, or has characters that cannot be shown.
        Conflict
            If the calibration has an evaluation of this name.
        """
        if not _is_name(name):
            raise InvalidInput.at(
                "name",
                f"expected 1 to {MAX_NAME_CHARACTERS} printable characters, without {EVENTS} at "
                "the end",
            )
        taken = self._of(calibration_id, name).with_only_columns(Evaluation.id)
        if self._session.execute(taken).first() is not None:
            raise Conflict(
                f"{title} already has an evaluation {shown(name)}: choose another name, or delete "
                "that one."
            )

    def only_of_other_versions(self, row: Calibration) -> list[str]:
        """Return the names of labelled evaluations that only other versions of a name have.

        One that this version was evaluated on under another name, or as its evaluation set, is not.
        """
        digest = Evaluation.data["sha256"].as_string()
        own = self._session.execute(
            select(Evaluation.name, digest).where(
                Evaluation.tenant_id == self._tenant_id, Evaluation.calibration_id == row.id
            )
        ).all()
        names = {name for name, _ in own}
        digests = {found for _, found in own} | {row.data.get("evaluation_sha256")}
        found = self._session.execute(
            select(Evaluation.name, digest)
            .join(Calibration, Calibration.id == Evaluation.calibration_id)
            .where(
                Evaluation.tenant_id == self._tenant_id,
                Calibration.tenant_id == self._tenant_id,
                Calibration.name == row.name,
                Evaluation.status == "succeeded",
                Evaluation.labelled,
                is_traffic(),
            )
            .distinct()
            .order_by(Evaluation.name)
        ).all()
        names |= {name for name, of in found if of in digests}
        return list(dict.fromkeys(name for name, _ in found if name not in names))

    def get(self, calibration_id: UUID, name: str) -> Evaluation:
        """Return the evaluation of this name, whatever its status.

        Raises
        ------
        NotFound
            If the tenant has no such calibration, or that has no such evaluation.
        """
        query = self._of(calibration_id, name).options(selectinload(Evaluation.artifacts))
        return self._one(query, name)

    def of_calibration(self, calibration_id: UUID) -> Sequence[Evaluation]:
        """Return the evaluations of a calibration, oldest first; empty if it does not exist."""
        return self._session.scalars(
            self._of(calibration_id).order_by(Evaluation.created_at, Evaluation.id)
        ).all()

    def page(
        self, calibration_id: UUID, *, cursor: str | None, limit: int
    ) -> tuple[Sequence[Evaluation], str | None]:
        """Return a page of the same, and the cursor of the next one.

        Raises
        ------
        InvalidInput
            If the cursor is invalid.
        """
        query = self._of(calibration_id)
        return rows_of_page(
            self._session, query, Evaluation, cursor=cursor, limit=limit, oldest_first=True
        )

    def judged_ids(self, calibration_id: UUID) -> Sequence[UUID]:
        """Return the ids of the labelled evaluations that have succeeded, oldest first."""
        is_judged = Evaluation.labelled, Evaluation.status == "succeeded"
        query = self._of(calibration_id).where(*is_judged).with_only_columns(Evaluation.id)
        return self._session.scalars(query.order_by(Evaluation.created_at, Evaluation.id)).all()

    def by_id(self, evaluation_id: UUID) -> Evaluation:
        """Return the evaluation of this id.

        Raises
        ------
        NotFound
            If the tenant has none.
        """
        query = (
            select(Evaluation)
            .where(Evaluation.tenant_id == self._tenant_id, Evaluation.id == evaluation_id)
            .options(selectinload(Evaluation.artifacts))
        )
        return self._one(query, str(evaluation_id))

    def request_cancel(self, calibration_id: UUID, name: str) -> Evaluation:
        """Cancel a queued evaluation, or request a running one to stop.

        Raises
        ------
        NotFound
            If there is no such evaluation.
        Conflict
            If it has finished otherwise.
        """
        row = self._locked(calibration_id, name)
        request_end(self._session, row, _title(name))
        if row.status == "cancelled":
            delete_input_rows(self._session, self._tenant_id, calibration_id, row.id)
        return row

    def delete(self, calibration_id: UUID, name: str) -> None:
        """Delete a finished evaluation, whose name may be used again.

        The sweeper deletes its files later.

        Raises
        ------
        NotFound
            If there is no such evaluation.
        Conflict
            If it is queued or running.
        """
        # The calibration first, as in its deletion: another order could end in a deadlock.
        self._lock_calibration(calibration_id)
        row = self._locked(calibration_id, name)
        require_finished(row.status, _title(name))
        self._session.expunge(row)
        self._session.execute(delete(Evaluation).where(Evaluation.id == row.id))

    def _lock_calibration(self, calibration_id: UUID, *, must_have_succeeded: bool = False) -> str:
        """Lock the calibration and its list of evaluations; return its title.

        The lock does not block transactions that publish an evaluation: they refer to the
        calibration, and hold the evaluation that is locked next.
        """
        row = self._session.execute(
            select(Calibration.name, Calibration.version, Calibration.status)
            .where(Calibration.tenant_id == self._tenant_id, Calibration.id == calibration_id)
            .with_for_update(key_share=True)
        ).one_or_none()
        if row is None:
            raise Reference(str(calibration_id)).not_found()
        title = f"Calibration {row.name}@{row.version}"
        if must_have_succeeded:
            require_succeeded(row.status, title)
        return title

    def _locked(self, calibration_id: UUID, name: str) -> Evaluation:
        query = self._of(calibration_id, name).with_for_update()
        return self._one(query.execution_options(populate_existing=True), name)

    def _one(self, query: Select[Evaluation], name: str) -> Evaluation:
        row = self._session.scalars(query).one_or_none()
        if row is None:
            raise NotFound.at("evaluation", f"there is no evaluation {shown(name)}")
        return row

    def _of(self, calibration_id: UUID, name: str | None = None) -> Select[Evaluation]:
        query = select(Evaluation).where(
            Evaluation.tenant_id == self._tenant_id, Evaluation.calibration_id == calibration_id
        )
        if name is None:
            return query
        # Databases refuse some texts, which no name contains.
        return query.where(Evaluation.name == name if _is_name(name) else false())


def require_evaluations_finished(
    session: Session, tenant_id: UUID, calibration_id: UUID, title: str
) -> None:
    """Refuse a calibration, locked and called ``title``, of which an evaluation is unfinished.

    Raises
    ------
    Conflict
        If one is queued or running.
    """
    unfinished = session.execute(
        select(Evaluation.name, Evaluation.status)
        .where(
            Evaluation.tenant_id == tenant_id,
            Evaluation.calibration_id == calibration_id,
            Evaluation.status.in_(UNFINISHED),
        )
        .order_by(Evaluation.name)
    ).first()
    if unfinished is not None:
        raise Conflict(
            f"{title} has an evaluation that is {unfinished.status}: "
            f"cancel {shown(unfinished.name)} first."
        )


def is_traffic() -> ColumnElement[bool]:
    """Return the condition that a further set is like the traffic to come."""
    return func.coalesce(Evaluation.data["role"].as_string(), "traffic") == "traffic"


def _is_name(name: str) -> bool:
    # Clients resolve `.` and `..` in paths. A path that ends with EVENTS is another route.
    fits = 0 < len(name) <= MAX_NAME_CHARACTERS and name.isprintable()
    return fits and name not in (".", "..") and not name.endswith(EVENTS)


def _title(name: str) -> str:
    return f"Evaluation {shown(name)}"

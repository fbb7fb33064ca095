"""Orphans: files that nothing refers to and no job is about to."""

from datetime import timedelta
from uuid import UUID

from sqlalchemy import select, union_all

from models import UNFINISHED, Artifact, Calibration, Evaluation
from service.storage.artifacts import ArtifactStore
from service.storage.database import Database


def remove_orphans(
    database: Database, artifacts: ArtifactStore, *, older_than: timedelta = timedelta(days=1)
) -> list[str]:
    """Delete the files that no row of any tenant refers to; return their keys.

    A process that dies between storing files and writing their row leaves such files, and so does
    one that dies while it deletes, or a result that could not be published. A file is written
    before its row: young ones are left alone, and all of a calibration that may still publish,
    or of which an evaluation may.
    """
    candidates = artifacts.keys(older_than=older_than)
    with database.reading() as session:
        unfinished = set(
            session.scalars(
                union_all(
                    select(Calibration.id).where(Calibration.status.in_(UNFINISHED)),
                    select(Evaluation.calibration_id).where(Evaluation.status.in_(UNFINISHED)),
                )
            )
        )
        named = set(session.scalars(select(Artifact.key)))
    orphans = [
        key for key in candidates if key not in named and UUID(key.split("/")[1]) not in unfinished
    ]
    artifacts.delete(orphans)
    return orphans

"""When the connection breaks during a commit, the files of the job are kept."""

from collections.abc import Iterator

import pytest
from job_workspaces import calibrate, ended, evaluate, logits_set, wait_for, working, workspace_on
from severed_address import SeveredAddress
from sqlalchemy import make_url, select

import models
from service.errors import OutcomeUnknown
from service.storage.database import Database, open_database
from service.storage.tenants import ALL_TENANTS


@pytest.fixture
def between(migrated_schemas) -> Iterator[tuple[SeveredAddress, Database, Database]]:
    """What stands between a workspace and PostgreSQL, its database, and the same past all that."""
    with migrated_schemas.lend() as direct:
        url = make_url(direct)
        with SeveredAddress(url.host, url.port or 5432) as lost:
            through = url.set(host="127.0.0.1", port=lost.port)
            near = open_database(through.render_as_string(hide_password=False))
            far = open_database(direct)
            yield lost, near, far
            near.dispose()
            far.dispose()


STARTS = {
    "calibration": (lambda workspace, _: calibrate(workspace, logits_set()), models.Calibration),
    "evaluation": (lambda *job: evaluate(*job, logits_set(seed=1)), models.Evaluation),
}


@pytest.mark.parametrize("kind", STARTS)
def test_a_job_whose_commit_has_no_answer_keeps_its_files(between, tmp_path, kind) -> None:
    lost, near, far = between
    with workspace_on(near, tmp_path) as workspace:
        first = calibrate(workspace, logits_set())
        with working(workspace):
            first = wait_for(workspace, first, ended)
        lost.lose(b"INSERT INTO ", b"COMMIT")
        start, model = STARTS[kind]
        with pytest.raises(OutcomeUnknown):
            start(workspace, first)
        with far.reading(ALL_TENANTS) as session:
            rows = session.scalars(select(model).where(model.id != first.id)).all()
        assert len(rows) == 1
        with working(workspace):
            assert wait_for(workspace, rows[0], ended).status == "succeeded"

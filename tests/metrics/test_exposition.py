"""Metrics are served while the database is away."""

from dataclasses import replace

import pytest
from job_workspaces import calibrate, logits_set, workspace_on
from running_service import Scraped

from service.metrics.route import exposition
from service.storage.database import open_database

AWAY = ["postgresql+psycopg://nobody@127.0.0.1:1/none", "sqlite:///{folder}/empty.sqlite3"]


@pytest.mark.process
@pytest.mark.parametrize("url", AWAY)
def test_jobs_are_left_out_while_the_database_is_away(database, tmp_path, url) -> None:
    away = open_database(url.format(folder=tmp_path))
    with workspace_on(database, tmp_path) as workspace:
        calibrate(workspace, logits_set())
        for now, up in ((database, 1), (away, 0), (database, 1)):
            found = Scraped(exposition(replace(workspace, database=now)).decode())
            assert found("database_up") == up
            assert found("jobs", kind="calibration", status="queued") == up
            assert bool(found.labels("jobs")) == bool(up)
    away.dispose()

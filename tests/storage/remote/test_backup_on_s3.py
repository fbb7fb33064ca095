"""Backups of what lies on an S3 server, and restoring to one."""

import pytest
from stored_rows import StoredPlace, assert_files_are_those_of_the_rows, fill_with_files

from service.backups.back_up import back_up
from service.backups.restore import restore
from service.errors import ArtifactDamaged
from service.storage.artifact_store import open_artifact_store


@pytest.fixture
def dialect():
    return "sqlite"


def test_files_go_from_a_folder_to_s3_and_back(database, database_url, s3_location, tmp_path):
    place = StoredPlace(database_url, tmp_path / "artifacts")
    fill_with_files(place)
    back_up(database, place.artifacts, tmp_path / "of a folder")

    remote = open_artifact_store(s3_location)
    into = StoredPlace(f"sqlite:///{tmp_path / 'into.sqlite3'}", tmp_path / "nowhere")
    restore(into.url, remote, tmp_path / "of a folder")
    assert remote.keys() == place.artifacts.keys()
    with into.opened() as restored:
        back_up(restored, remote, tmp_path / "of S3")
        lost = next(row["key"] for row in into.rows()["artifact"] if row["role"] == "export")
        remote.delete([lost])
        with pytest.raises(ArtifactDamaged, match="export 0 of digits@1"):
            back_up(restored, remote, tmp_path / "incomplete")

    again = StoredPlace(f"sqlite:///{tmp_path / 'again.sqlite3'}", tmp_path / "back")
    restore(again.url, again.artifacts, tmp_path / "of S3")
    assert_files_are_those_of_the_rows(again)

"""A backup by the command, and the service that is restored from it."""

import json
import sqlite3
from contextlib import closing

import pytest
from howsure_command import howsure
from running_service import DIGITS


@pytest.fixture(scope="module")
def used(tmp_path_factory):
    """A folder in which a calibration was made, with its backup."""
    folder = tmp_path_factory.mktemp("used")
    logits = DIGITS / "calibration_logits.csv"
    made = howsure("calibrate", logits, "--name", "digits", folder=folder)
    assert made.returncode == 0, made.stderr
    done = howsure("db", "backup", "kept", folder=folder)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("1 calibrations, ")
    return folder


def report(folder):
    shown = howsure("report", "digits", "--format", "json", folder=folder)
    assert shown.returncode == 0, shown.stderr
    return json.loads(shown.stdout)


def test_a_restored_service_reports_the_same(used, tmp_path):
    done = howsure("db", "restore", used / "kept", folder=tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("restored 1 calibrations, ")
    assert report(tmp_path) == report(used)


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("backup", "kept"), "exists: choose another name"),
        (("restore", "kept"), "The database is not empty"),
        (("restore", "."), "expected the folder of a whole backup, with a manifest.json"),
        (("backup", "/dev/null/kept"), "/dev/null"),
    ],
)
def test_failures_are_one_sentence(used, arguments, says):
    failed = howsure("db", *arguments, folder=used)
    assert failed.returncode == 1
    assert says in " ".join(failed.stderr.split())
    assert "Traceback" not in failed.stderr


def test_a_backup_of_no_database_makes_none(tmp_path):
    failed = howsure("db", "backup", "kept", folder=tmp_path)
    assert failed.returncode == 1
    assert "there is no database" in failed.stderr
    assert list(tmp_path.iterdir()) == []


def test_a_database_of_a_newer_version_is_told(tmp_path):
    assert howsure("db", "upgrade", folder=tmp_path).returncode == 0
    with closing(sqlite3.connect(tmp_path / "data" / "howsure.sqlite3")) as connection:
        connection.execute("UPDATE alembic_version SET version_num = '9999'")
        connection.commit()
    for arguments in (("upgrade",), ("backup", "kept")):
        failed = howsure("db", *arguments, folder=tmp_path)
        assert failed.returncode == 1
        assert "newer version of howsure" in " ".join(failed.stderr.split())
        assert "Traceback" not in failed.stderr

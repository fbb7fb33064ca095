"""Backups while calibrations are made, published, refitted, promoted and deleted: each is a cut."""

from collections import defaultdict

import pytest
from calibrations_under_way import N_BINS, N_RECORDS, N_SHARDS, content, under_way
from stored_rows import StoredPlace, assert_files_are_those_of_the_rows

from service.backups.restore import restore

pytestmark = pytest.mark.slow


BACKUPS = 5


def test_each_backup_under_load_is_one_consistent_cut(
    database_url, dialect, other_dialect, empty_place, tmp_path
):
    place = StoredPlace(database_url, tmp_path / "artifacts")
    manifests = []
    with place.opened() as database, under_way(database, place.artifacts) as turned:

        def wait_for_a_turn(stage, done, total):
            """Let one pass between the rows and their files; it cannot where files are held."""
            if stage == "rows":
                waits.append(1)
            elif waits:
                turned.acquire(timeout=0.3 * waits.pop())

        for number in range(BACKUPS):
            waits = []
            while turned.acquire(blocking=False):
                pass
            assert turned.acquire(timeout=60)
            target = tmp_path / f"backup {number}"
            manifests.append(place.back_up(target, tell=wait_for_a_turn))
    for number, manifest in enumerate(manifests):
        into = empty_place(dialect if number % 2 else other_dialect, migrated=True)
        assert restore(into.url, into.artifacts, tmp_path / f"backup {number}") == manifest
        assert_files_are_those_of_the_rows(into)
        rows = into.rows()
        assert_consistent(rows, into.artifacts)
        assert {name: len(of) for name, of in rows.items()} == {
            table.name: table.part.lines for table in manifest.tables
        }


def assert_consistent(rows, artifacts):
    by_calibration = {
        name: group(rows[name], "calibration_id")
        for name in ("bin_table", "score", "artifact", "evaluation")
    }
    bins = group(rows["bin"], "bin_table_id")
    succeeded = set()
    for row in rows["calibration"]:
        of = {name: found[row["id"]] for name, found in by_calibration.items()}
        if row["status"] == "succeeded":
            succeeded.add((row["name"], row["version"]))
            assert_results(row, of, bins, artifacts)
        else:
            assert row["status"] == "queued"
            assert row["lease_owner"] is row["lease_until"] is row["accuracy"] is None
            role, count = ("records", N_RECORDS) if row["refit_of"] else ("calibration", N_SHARDS)
            assert places(of["artifact"]) == {(role, i) for i in range(count)}
            assert not of["bin_table"]
            assert not of["score"]
    assert succeeded
    for name in rows["calibration_name"]:
        versions = {row["version"] for row in rows["calibration"] if row["name"] == name["name"]}
        assert max(versions, default=0) <= name["last_version"]
        promoted = name["promoted_version"]
        assert promoted is None or (name["name"], promoted) in succeeded


def assert_results(row, of, bins, artifacts):
    version = row["version"]
    (table,), (score,) = of["bin_table"], of["score"]
    assert (table["n_samples"], score["value"]) == (version, version)
    assert [found["count"] for found in bins[table["id"]]] == [version] * N_BINS
    assert row["accuracy"] == {"1": version / 1e6}
    assert places(of["artifact"]) == {("records", i) for i in range(N_RECORDS)}
    for file in of["artifact"]:
        found = artifacts.get_bytes(file["key"], file["sha256"])
        first = int(found.split(b" ")[0].partition(b"@")[2])
        assert found == content(row["name"], first, file["position"])
        assert first < version if row["refit_of"] else first == version
    for evaluation in of["evaluation"]:
        if evaluation["status"] == "succeeded":
            assert evaluation["result"] == {"version": version}


def group(rows, key):
    groups = defaultdict(list)
    for row in rows:
        groups[row[key]].append(row)
    return groups


def places(files):
    return {(file["role"], file["position"]) for file in files}

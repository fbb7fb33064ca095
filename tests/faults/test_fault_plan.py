"""Short forms of the faults that `make faults` inflicts hundreds of times."""

import os
from collections.abc import Iterator

import pytest
from databases import NoServerError
from fault_plan.checker import Checker, check_files
from fault_plan.database_away import database_away
from fault_plan.delete_race import delete_race
from fault_plan.disk_full import disk_full
from fault_plan.figures import Figures
from fault_plan.framing import PROXIES, framing
from fault_plan.idle_connections import idle_connections
from fault_plan.kills import kill_server, kill_worker
from fault_plan.name_race import UPLOADS, name_race
from fault_plan.noisy_neighbour import noisy_neighbour
from fault_plan.published import run_undisturbed
from fault_plan.site import Site
from fault_plan.stop_server import stop_server
from fault_plan.stored_jobs import half_visible, stored_jobs
from fault_plan.traffic import Reader, Traffic, Uploader
from fault_plan.uploads import Ledger
from runner_children import wait_until
from running_service import service_on
from sqlalchemy import delete, update

import models
from service.storage.database import open_database
from service.storage.tenants import ALL_TENANTS

SEED = 5


@pytest.fixture
def shared_url(migrated_schemas) -> Iterator[str]:
    with migrated_schemas.lend() as url:
        yield url


@pytest.mark.process
def test_a_service_without_faults_breaks_no_rule_and_half_results_are_seen(tmp_path) -> None:
    """The clients and the checker, on a service in this process."""
    figures, site, ledger = Figures("none", SEED), Site(tmp_path), Ledger()
    with service_on(site.data, on_port=True) as client:
        site.port = client.base_url.port
        undisturbed = run_undisturbed(client, site.database_url, UPLOADS)
        reader = Reader(undisturbed)
        uploader = Uploader(ledger, UPLOADS, unfinished=2)
        with Traffic(site, figures, [uploader, reader]):
            assert wait_until(lambda: len(ledger.entries) >= len(UPLOADS) and reader.looked)
        Checker(site, ledger, undisturbed, figures).check(client)
    check_files(site, figures)
    assert figures.violations == []
    assert figures.jobs["succeeded"] == figures.jobs["accepted"] == len(ledger.entries)

    database = open_database(site.database_url)
    with database.session(ALL_TENANTS) as session:
        session.execute(delete(models.Score))
        session.execute(update(models.Artifact).values(key=models.Artifact.key + "-lost"))
    database.dispose()
    jobs = stored_jobs(site.database_url)
    assert len(half_visible(jobs, undisturbed.rows)) == len(jobs)
    check_files(site, figures)
    assert figures.violations


@pytest.mark.slow
def test_the_server_is_killed(tmp_path) -> None:
    # An upload of a process that died on another host; no file may be left at the end.
    stale = tmp_path / "data" / "spool" / "other-host-1" / "upload"
    stale.mkdir(parents=True)
    (stale / "part").write_bytes(b"half a model")
    found = holds(kill_server(tmp_path, times=3, seed=SEED, copies=10))
    assert found.struck.total() > found.struck["no job"], "no kill struck a job"


@pytest.mark.slow
def test_requests_come_through_proxies(tmp_path) -> None:
    found = holds(framing(tmp_path, times=3000, seed=SEED))
    if "CI" in os.environ:
        assert found.more["fronts"] == ["directly", *PROXIES], "nginx and HAProxy are required"


@pytest.mark.slow
def test_the_server_is_stopped(tmp_path) -> None:
    assert holds(stop_server(tmp_path, times=8, seed=SEED)).more["predictions"] > 0


@pytest.mark.slow
def test_a_worker_is_killed(tmp_path, shared_url) -> None:
    found = holds(kill_worker(tmp_path, times=2, seed=SEED, copies=10, database_url=shared_url))
    assert found.struck.total() > found.struck["no job"], "no kill struck a job"


@pytest.mark.slow
def test_the_database_goes_away(tmp_path) -> None:
    try:
        times = {"times": 1, "seconds": 3, "between": 2, "copies": 10}
        # Other tests keep this machine busy: much patience.
        found = database_away(tmp_path, seed=SEED, ways=("immediate",), patience=30, **times)
    except NoServerError as error:
        pytest.skip(f"PostgreSQL: {error}")
    assert holds(found).more["not_loaded"]["immediate"]["503"] > 0


@pytest.mark.slow
def test_the_disk_is_full(tmp_path) -> None:
    assert holds(disk_full(tmp_path, times=1, seed=SEED)).fired >= 2


@pytest.mark.slow
def test_a_name_is_raced_for(tmp_path, shared_url) -> None:
    found = holds(name_race(tmp_path, times=20, seed=SEED, database_url=shared_url))
    assert found.jobs["succeeded"] == 20


@pytest.mark.slow
def test_calibrations_are_deleted_while_they_answer(tmp_path) -> None:
    found = holds(delete_race(tmp_path, times=20, seed=SEED))
    assert found.struck["200 by name"] > 20
    assert found.struck["404 by version or id"] > 0


@pytest.mark.slow
def test_a_tenant_floods_beside_another(tmp_path) -> None:
    """Other tests keep this machine busy: a smaller flood, and no limit of response times."""
    holds(noisy_neighbour(tmp_path, times=1, seed=SEED, seconds=3, excess=10, ratio=None))


@pytest.mark.slow
def test_connections_say_nothing(tmp_path) -> None:
    """Hold more connections than the server accepts; the good client also opens new ones.

    Response times have no limit here, because other tests keep this machine busy.
    """
    sizes = {"times": 400, "most": 200, "opened_per_second": 100}
    found = holds(idle_connections(tmp_path, seed=SEED, seconds=3, slowest=None, **sizes))
    assert found.struck.total() >= 200
    assert found.more["answers"] == 150


def holds(found: Figures) -> Figures:
    assert found.violations == [], found.sentence()
    assert found.fired > 0
    return found

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
from fault_plan.framing import framing
from fault_plan.idle_connections import idle_connections
from fault_plan.kills import kill_server, kill_worker
from fault_plan.noisy_neighbour import noisy_neighbour
from fault_plan.published import run_undisturbed
from fault_plan.site import Site
from fault_plan.stop_server import stop_server
from fault_plan.traffic import Reader, Traffic, Uploader
from fault_plan.uploads import Ledger, Upload
from report_scenarios import outputs
from runner_children import wait_until
from running_service import npz, service_on

SEED = 5
CONFIG = {"bins": 1, "folds": 2, "measures": ["neg_log_pmax"], "top_k": [1]}
UPLOADS = [
    Upload("few", npz(**outputs(24, seed=0)), config=CONFIG),
    Upload("more", npz(**outputs(48, seed=1)), config=CONFIG),
]


@pytest.fixture
def shared_url(migrated_schemas) -> Iterator[str]:
    with migrated_schemas.lend() as url:
        yield url


@pytest.mark.process
def test_a_service_without_faults_breaks_no_rule(tmp_path) -> None:
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


def strikes_a_job(figures: Figures) -> bool:
    return figures.struck.total() > figures.struck["no job"]


def deletes_answers(figures: Figures) -> bool:
    return figures.struck["200 by name"] > 20 and figures.struck["404 by version or id"] > 0


# Short forms, and whether the fault has struck. Other tests keep this machine busy: much patience,
# smaller floods, and no limits of response times.
DATABASE = {"times": 1, "seconds": 3, "between": 2, "copies": 0, "patience": 30}
IDLE = {"times": 400, "most": 200, "opened_per_second": 100, "seconds": 3, "slowest": None}
FAULTS = [
    (kill_server, {"times": 1, "copies": 0}, strikes_a_job),
    (
        framing,
        {"times": 900},
        lambda figures: "CI" not in os.environ or len(figures.more["fronts"]) == 3,
    ),
    (stop_server, {"times": 4, "copies": 0}, lambda figures: figures.more["predictions"] > 0),
    (database_away, DATABASE, lambda figures: figures.more["not_loaded"]["immediate"]["503"] > 0),
    (disk_full, {"times": 1, "copies": 0}, lambda figures: figures.fired >= 2),
    (delete_race, {"times": 5}, deletes_answers),
    (noisy_neighbour, {"times": 1, "seconds": 2, "excess": 10, "ratio": None}, bool),
    (idle_connections, IDLE, lambda figures: figures.struck.total() >= 200),
    (kill_worker, {"times": 1, "copies": 0, "database_url": ""}, strikes_a_job),
]


@pytest.mark.slow
@pytest.mark.parametrize(("fault", "options", "has_struck"), FAULTS)
def test_a_fault(tmp_path, request, fault, options, has_struck) -> None:
    if fault is kill_server:
        # An upload of a process that died on another host; no file may be left at the end.
        stale = tmp_path / "data" / "spool" / "other-host-1" / "upload"
        stale.mkdir(parents=True)
        (stale / "part").write_bytes(b"half a model")
    if "database_url" in options:
        options = options | {"database_url": request.getfixturevalue("shared_url")}
    try:
        figures = fault(tmp_path, seed=SEED, **options)
    except NoServerError as error:
        pytest.skip(f"PostgreSQL: {error}")
    assert figures.violations == [], figures.sentence()
    assert figures.fired > 0
    assert has_struck(figures)

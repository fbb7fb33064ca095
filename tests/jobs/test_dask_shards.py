"""Shards on a Dask cluster: a real scheduler and real workers."""

import httpx
import numpy as np
import pytest
from dask_cluster import DaskCluster
from dataset_files import write_npz
from runner_models import linear, rows, weights
from running_service import calibrate, calibrated, quick_config, service_on

pytestmark = pytest.mark.slow


SHARDS = 6
N_ROWS = 4096 * (SHARDS - 1) + 100


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("dask")


@pytest.fixture(scope="module")
def cluster(folder):
    artifacts = str(folder / "artifacts")
    with DaskCluster(folder, artifacts_url=artifacts, device="cpu", threads="1") as made:
        yield made


@pytest.fixture(scope="module")
def client(cluster, folder):
    settings = {"scheduler": cluster.address, "shard_resources": "CORE=1"}
    with service_on(folder, lease_seconds=2.0, **settings) as made:
        yield made


@pytest.fixture(scope="module")
def parts(tmp_path_factory):
    inputs = rows(N_ROWS)
    labels = np.argmax(inputs @ weights() + rows(N_ROWS, seed=2)[:, :1], axis=1)
    path = write_npz(tmp_path_factory.mktemp("set") / "set.npz", x=inputs, labels=labels)
    return {"model": linear(weights()).SerializeToString(), "calibration": path.read_bytes()}


def tables(client: httpx.Client, resource: dict) -> object:
    return client.get(f"/calibrations/{resource['id']}/bins").json()["tables"]


def test_another_worker_runs_what_a_killed_one_held(cluster, client, parts, tmp_path) -> None:
    with service_on(tmp_path) as alone:  # it runs the shards itself
        expected = tables(alone, calibrated(alone, **parts))
    first, second = cluster.add_worker(), cluster.add_worker()
    pending = calibrate(client, config=quick_config(), **parts, wait=0).json()
    while not any(cluster.client.processing().values()):
        assert status(client, pending) in ("queued", "running")
    cluster.kill(first)
    assert ended(client, pending) == "succeeded"
    assert tables(client, pending) == expected
    assert not kept_by_the_scheduler(cluster)
    cluster.kill(second)


def kept_by_the_scheduler(cluster: DaskCluster) -> int:
    return cluster.client.run_on_scheduler(lambda dask_scheduler: len(dask_scheduler.tasks))


def status(client: httpx.Client, resource: dict) -> str:
    return client.get(f"/calibrations/{resource['id']}").json()["status"]


def ended(client: httpx.Client, resource: dict) -> str:
    while (found := status(client, resource)) in ("queued", "running"):
        pass
    return found


def test_a_job_waits_for_workers_and_can_be_cancelled(cluster, client, parts) -> None:
    pending = calibrate(client, config=quick_config(), **parts, wait=0).json()
    while not kept_by_the_scheduler(cluster):
        assert status(client, pending) in ("queued", "running")
    assert client.post(f"/calibrations/{pending['id']}/cancel").status_code == httpx.codes.ACCEPTED
    assert ended(client, pending) == "cancelled"
    while kept_by_the_scheduler(cluster):
        pass

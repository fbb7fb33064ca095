"""Shards on a Dask cluster: a real scheduler and real workers."""

import httpx
import numpy as np
import pytest
from dask_cluster import DaskCluster
from dataset_files import write_npz
from runner_models import linear, rows, weights
from running_service import calibrate, service_on

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
    return {
        "model": linear(weights()).SerializeToString(),
        "calibration": path.read_bytes(),
    }


@pytest.fixture(scope="module")
def undisturbed(parts, tmp_path_factory):
    """The tables of a service that runs the shards itself."""
    with service_on(tmp_path_factory.mktemp("alone")) as client:
        made = calibrate(client, **parts)
        assert made.status_code == httpx.codes.CREATED, made.text
        return tables(client, made.json())


def tables(client: httpx.Client, resource: dict) -> object:
    return client.get(f"/calibrations/{resource['id']}/bins").json()["tables"]


def test_a_cluster_finds_the_same_tables(cluster, client, parts, undisturbed) -> None:
    worker = cluster.add_worker()
    made = calibrate(client, **parts).json()
    assert made["status"] == "succeeded", made["error"]
    assert tables(client, made) == undisturbed
    assert not kept_by_the_scheduler(cluster)
    cluster.kill(worker)


def test_what_a_killed_worker_held_is_run_by_another(cluster, client, parts, undisturbed) -> None:
    first, second = cluster.add_worker(), cluster.add_worker()
    pending = calibrate(client, **parts, wait=0).json()
    while not any(cluster.client.processing().values()):
        assert status(client, pending) in ("queued", "running")
    cluster.kill(first)
    while (found := status(client, pending)) in ("queued", "running"):
        pass
    assert found == "succeeded"
    assert tables(client, pending) == undisturbed
    cluster.kill(second)


def kept_by_the_scheduler(cluster: DaskCluster) -> int:
    return cluster.client.run_on_scheduler(lambda dask_scheduler: len(dask_scheduler.tasks))


def status(client: httpx.Client, resource: dict) -> str:
    return client.get(f"/calibrations/{resource['id']}").json()["status"]


def test_a_job_waits_for_workers_and_can_be_cancelled(cluster, client, parts) -> None:
    pending = calibrate(client, **parts, wait=0).json()
    while not kept_by_the_scheduler(cluster):
        assert status(client, pending) in ("queued", "running")
    assert client.post(f"/calibrations/{pending['id']}/cancel").status_code == httpx.codes.ACCEPTED
    while (found := status(client, pending)) in ("queued", "running"):
        pass
    assert found == "cancelled"
    while kept_by_the_scheduler(cluster):
        pass

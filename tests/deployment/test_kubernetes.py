"""The Kubernetes manifests fit together."""

import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml
from deployment_files import (
    DEPLOYMENTS,
    FILES,
    KUBERNETES,
    KUSTOMIZATION,
    MANIFESTS,
    container,
)

from service.cli import server

NAMES = {(found["kind"], found["metadata"]["name"]) for found in MANIFESTS.values()}


@pytest.mark.parametrize("deployment", DEPLOYMENTS.values(), ids=DEPLOYMENTS)
def test_a_deployment_fits_together(deployment: dict[str, Any]) -> None:
    spec, runs = deployment["spec"], container(deployment)
    assert spec["selector"]["matchLabels"] == spec["template"]["metadata"]["labels"]

    ports = {port["name"] for port in runs["ports"]}
    probes = [probe for key, probe in runs.items() if key.endswith("Probe")]
    assert "livenessProbe" in runs
    assert {probe["httpGet"]["port"] for probe in probes} <= ports

    pod, sources = spec["template"]["spec"], runs.get("envFrom", [])
    assert {m["name"] for m in runs["volumeMounts"]} == {v["name"] for v in pod["volumes"]}
    for kind, key in (("ConfigMap", "configMapRef"), ("Secret", "secretRef")):
        assert {(kind, source[key]["name"]) for source in sources if key in source} <= NAMES

    assert pod["securityContext"]["runAsNonRoot"] is True
    # A Service called howsure would be HOWSURE_PORT=tcp://10.0.0.1:80.
    assert pod["enableServiceLinks"] is False
    assert pod["automountServiceAccountToken"] is False
    check_gpu(deployment)


def check_gpu(deployment: dict[str, Any]) -> None:
    """Check that the image for a GPU requests one."""
    runs = container(deployment)
    has_gpu = "nvidia.com/gpu" in runs["resources"]["limits"]
    assert has_gpu == (runs["image"] == "howsure:cuda")
    assert has_gpu == ({"name": "HOWSURE_DEVICE", "value": "cuda"} in runs.get("env", []))


def test_only_the_api_can_be_reached_and_dask_by_the_service() -> None:
    policies = {
        tuple(found["spec"]["podSelector"]["matchLabels"].items()): found["spec"].get("ingress")
        for found in MANIFESTS.values()
        if found["kind"] == "NetworkPolicy"
    }
    ours = ("app", "howsure")
    assert policies.pop((ours,)) is None, "all others are denied"
    assert policies.pop((ours, ("part", "api"))) == [{"ports": [{"port": 8000}]}]
    for part, ports in (("scheduler", [8786]), ("dask-worker", [8790, 8791])):
        (rule,) = policies.pop((ours, ("part", part)))
        (source,) = rule["from"]
        admitted = {
            one["key"]: set(one["values"]) for one in source["podSelector"]["matchExpressions"]
        }
        assert admitted["app"] == {"howsure"}
        assert admitted["part"] - {"scheduler"} == {"api", "worker", "dask-worker"}
        assert [one["port"] for one in rule["ports"]] == ports
    assert policies == {}
    runs = container(DEPLOYMENTS["dask.yaml:Deployment:howsure-dask-worker"])
    command = dict(zip(runs["command"], runs["command"][1:], strict=False))
    assert (command["--worker-port"], command["--nanny-port"]) == ("8790", "8791")
    assert runs["envFrom"] == [{"configMapRef": {"name": "howsure"}}]
    secrets = [one["valueFrom"]["secretKeyRef"]["key"] for one in runs["env"] if "valueFrom" in one]
    assert secrets == ["AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"]


def test_kustomize_applies_existing_files() -> None:
    resources = yaml.safe_load(KUSTOMIZATION.read_text(encoding="utf-8"))["resources"]

    assert {KUBERNETES / name for name in resources} <= set(FILES)


def test_the_grace_period_is_longer_than_a_stop() -> None:
    (drain,) = (
        float(found["data"]["HOWSURE_DRAIN_SECONDS"])
        for found in MANIFESTS.values()
        if "HOWSURE_DRAIN_SECONDS" in found.get("data", {})
    )
    stop = drain + server.LAST_DRAIN_SECONDS + server.FIRST_REQUEST_SECONDS + server.GRACE_SECONDS

    for deployment in DEPLOYMENTS.values():
        if "howsure" in container(deployment)["command"]:
            pod = deployment["spec"]["template"]["spec"]
            assert pod["terminationGracePeriodSeconds"] > stop


def rendered(folder: Path) -> dict[tuple[str, str], dict[str, Any]]:
    """Return what kustomize makes of a folder, by kind and name."""
    kubectl = shutil.which("kubectl")
    if kubectl is None:
        pytest.skip("kubectl is not installed")
    done = subprocess.run([kubectl, "kustomize", folder], capture_output=True, check=True)
    found = yaml.safe_load_all(done.stdout)
    return {(one["kind"], one["metadata"]["name"]): one for one in found}


@pytest.mark.process
def test_only_the_workers_of_the_gpu_overlay_have_a_gpu() -> None:
    base, overlay = rendered(KUBERNETES), rendered(KUBERNETES.with_name("kubernetes-gpu"))
    name = ("Deployment", "howsure-worker")
    worker = overlay.pop(name)
    found = container(worker)

    assert overlay == {key: one for key, one in base.items() if key != name}
    check_gpu(worker)
    assert found["image"] == "howsure:cuda"
    assert {"name": "HOWSURE_THREADS", "value": "4"} in found["env"]
    assert found["resources"]["limits"] == {"memory": "32Gi", "nvidia.com/gpu": 1}

"""The Kubernetes manifests are valid, and run what there is."""

from pathlib import Path
from typing import Any

import pytest
import yaml
from deployed_commands import check_command, check_settings
from deployment_schemas import violations_of_kubernetes

FOLDER = Path(__file__).parents[2] / "examples" / "kubernetes"
KUSTOMIZATION = FOLDER / "kustomization.yaml"
FILES = sorted(path for path in FOLDER.glob("*.yaml") if path != KUSTOMIZATION)
MANIFESTS = [
    pytest.param(manifest, id=f"{path.name}:{manifest['kind']}:{manifest['metadata']['name']}")
    for path in FILES
    for manifest in yaml.safe_load_all(path.read_text(encoding="utf-8"))
]
DEPLOYMENTS = [found for found in MANIFESTS if found.values[0]["kind"] == "Deployment"]
NAMES = {(found.values[0]["kind"], found.values[0]["metadata"]["name"]) for found in MANIFESTS}

every_deployment = pytest.mark.parametrize("deployment", DEPLOYMENTS)


@pytest.mark.parametrize("manifest", MANIFESTS)
def test_each_is_valid(manifest: dict[str, Any]) -> None:
    assert violations_of_kubernetes(manifest) == []


def test_the_schema_tells() -> None:
    wrong = {"apiVersion": "v1", "kind": "Service", "spec": {"selectors": {}}}

    (violation,) = violations_of_kubernetes(wrong)

    assert "selectors" in violation


@every_deployment
def test_each_command_is_one_that_there_is(deployment: dict[str, Any]) -> None:
    check_command(container(deployment)["command"])


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_settings_are_those_that_there_are(path: Path) -> None:
    check_settings(path.read_text(encoding="utf-8"))


@every_deployment
def test_pods_are_those_that_are_selected(deployment: dict[str, Any]) -> None:
    spec = deployment["spec"]

    assert spec["selector"]["matchLabels"] == spec["template"]["metadata"]["labels"]


@every_deployment
def test_probes_ask_ports_that_there_are(deployment: dict[str, Any]) -> None:
    found = container(deployment)
    ports = {port["name"]: port["containerPort"] for port in found["ports"]}
    probes = [probe for key, probe in found.items() if key.endswith("Probe")]

    assert "livenessProbe" in found
    assert {probe["httpGet"]["port"] for probe in probes} <= ports.keys()


@every_deployment
def test_what_is_mounted_is_there_and_what_is_named_too(deployment: dict[str, Any]) -> None:
    pod, found = deployment["spec"]["template"]["spec"], container(deployment)
    sources = found.get("envFrom", [])

    assert {m["name"] for m in found["volumeMounts"]} == {v["name"] for v in pod["volumes"]}
    assert {
        ("ConfigMap", s["configMapRef"]["name"]) for s in sources if "configMapRef" in s
    } <= NAMES
    assert {("Secret", s["secretRef"]["name"]) for s in sources if "secretRef" in s} <= NAMES


@every_deployment
def test_no_pod_is_root_or_told_of_services_as_if_they_were_settings(
    deployment: dict[str, Any],
) -> None:
    pod = deployment["spec"]["template"]["spec"]

    assert pod["securityContext"]["runAsNonRoot"] is True
    # A Service called howsure would be HOWSURE_PORT=tcp://10.0.0.1:80.
    assert pod["enableServiceLinks"] is False


@every_deployment
def test_a_gpu_is_asked_for_by_what_has_the_image_for_it(deployment: dict[str, Any]) -> None:
    found = container(deployment)

    asks = "nvidia.com/gpu" in found["resources"]["limits"]
    assert asks == (found["image"] == "howsure:cuda")
    assert asks == ({"name": "HOWSURE_DEVICE", "value": "cuda"} in found.get("env", []))


def test_kustomize_applies_files_that_there_are() -> None:
    resources = yaml.safe_load(KUSTOMIZATION.read_text(encoding="utf-8"))["resources"]

    assert {FOLDER / name for name in resources} <= set(FILES)


def container(deployment: dict[str, Any]) -> dict[str, Any]:
    (found,) = deployment["spec"]["template"]["spec"]["containers"]
    return found

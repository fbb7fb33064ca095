"""Files for deployments: Compose, the Dockerfile, Kubernetes manifests, and their page."""

from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).parents[3]
COMPOSE, DOCKERFILE, PAGE = (
    (ROOT / name).read_text(encoding="utf-8")
    for name in ("docker-compose.yml", "Dockerfile", "docs/scale.md")
)
SERVICES: dict[str, Any] = yaml.safe_load(COMPOSE)["services"]
KUBERNETES = ROOT / "examples" / "kubernetes"
KUSTOMIZATION = KUBERNETES / "kustomization.yaml"
FILES = sorted({*KUBERNETES.glob("*.yaml")} - {KUSTOMIZATION})
MANIFESTS: dict[str, dict[str, Any]] = {
    f"{path.name}:{manifest['kind']}:{manifest['metadata']['name']}": manifest
    for path in FILES
    for manifest in yaml.safe_load_all(path.read_text(encoding="utf-8"))
}
DEPLOYMENTS = {name: found for name, found in MANIFESTS.items() if found["kind"] == "Deployment"}


def container(deployment: dict[str, Any]) -> dict[str, Any]:
    """Return the only container of a deployment."""
    (found,) = deployment["spec"]["template"]["spec"]["containers"]
    return found

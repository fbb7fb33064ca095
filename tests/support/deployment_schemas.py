"""The schemas that files for deployments are held to."""

import json
from pathlib import Path
from typing import Any

from jsonschema import Draft202012Validator

SCHEMAS = Path(__file__).parents[1] / "deployment" / "schemas"
KUBERNETES = {
    ("apps/v1", "Deployment"): "io.k8s.api.apps.v1.Deployment",
    ("policy/v1", "PodDisruptionBudget"): "io.k8s.api.policy.v1.PodDisruptionBudget",
    ("v1", "ConfigMap"): "io.k8s.api.core.v1.ConfigMap",
    ("v1", "Secret"): "io.k8s.api.core.v1.Secret",
    ("v1", "Service"): "io.k8s.api.core.v1.Service",
}


def violations_of_compose(document: Any) -> list[str]:
    """Return what the Compose Specification says is wrong."""
    return _violations(_schema("compose-spec.json"), document)


def violations_of_kubernetes(document: Any) -> list[str]:
    """Return what Kubernetes would refuse of a manifest; what it does not know included."""
    definition = KUBERNETES[document["apiVersion"], document["kind"]]
    definitions = _schema("kubernetes-1.36.json")["$defs"]
    return _violations({"$ref": f"#/$defs/{definition}", "$defs": definitions}, document)


def _schema(name: str) -> dict[str, Any]:
    return json.loads((SCHEMAS / name).read_text(encoding="utf-8"))


def _violations(schema: dict[str, Any], document: Any) -> list[str]:
    found = Draft202012Validator(schema).iter_errors(document)
    return [f"{error.json_path}: {error.message[:300]}" for error in found]

"""Files for deployments keep to the schemas of those who read them."""

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from deployment_files import COMPOSE, MANIFESTS
from jsonschema import Draft202012Validator

SCHEMAS = Path(__file__).parent / "schemas"


DOCUMENTS = {"docker-compose.yml": yaml.safe_load(COMPOSE), **MANIFESTS}


def violations(document: Any) -> list[str]:
    """Return what Compose or Kubernetes would refuse; what they do not know included."""
    schema = json.loads((SCHEMAS / "compose-spec.json").read_text(encoding="utf-8"))
    if "kind" in document:
        group, _, version = document["apiVersion"].rpartition("/")
        group = (group or "core").partition(".")[0]  # of networking.k8s.io the first word
        definition = f"io.k8s.api.{group}.{version}.{document['kind']}"
        schema = json.loads((SCHEMAS / "kubernetes-1.36.json").read_text(encoding="utf-8"))
        schema = {"$ref": f"#/$defs/{definition}", "$defs": schema["$defs"]}
    found = Draft202012Validator(schema).iter_errors(document)
    return [f"{error.json_path}: {error.message[:300]}" for error in found]


@pytest.mark.parametrize("name", DOCUMENTS)
def test_each_is_valid(name: str) -> None:
    assert violations(DOCUMENTS[name]) == []

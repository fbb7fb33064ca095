"""Uploads of tests: files, quick configurations, and requests that must succeed."""

import json
from collections.abc import Mapping
from typing import Any

import httpx
from predict_bodies import npz
from running_service import calibrate

__all__ = ["QUICK", "calibrated", "evaluate", "npz", "quick_config", "refit"]

WAIT = {"Prefer": "wait=60"}
QUICK: dict[str, Any] = {"top_k": [1], "measures": ["margin"], "folds": 2, "bins": 5}


def quick_config(**config: Any) -> str:
    """Return a configuration that takes little time, with these changes."""
    return json.dumps(QUICK | config)


def calibrated(
    client: httpx.Client, config: Mapping[str, Any] | str = "{}", **parts: Any
) -> dict[str, Any]:
    """Calibrate and return the resource, which has succeeded."""
    text = config if isinstance(config, str) else json.dumps(dict(config))
    answer = calibrate(client, config=text, **parts)
    assert answer.status_code == httpx.codes.CREATED, answer.text
    found: dict[str, Any] = answer.json()
    assert found["status"] == "succeeded", found["error"]
    return found


def refit(client: httpx.Client, reference: str, **changes: Any) -> httpx.Response:
    """Refit a calibration and wait."""
    return client.post(f"/calibrations/{reference}/refit", json=changes, headers=WAIT)


def evaluate(
    client: httpx.Client, reference: str, name: str | None, data: bytes | None, **parts: bytes
) -> httpx.Response:
    """Send a further set and wait."""
    files: list[tuple[str, Any]] = [(part, (part, content)) for part, content in parts.items()]
    if data is not None:
        files.append(("evaluation", ("evaluation.npz", data)))
    if name is not None:
        files.append(("name", (None, name)))
    return client.post(f"/calibrations/{reference}/evaluations", files=files, headers=WAIT)

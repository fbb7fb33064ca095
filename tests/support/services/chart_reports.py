"""Reports with all that charts are drawn of, and names as strangers give them."""

import io
import json
from pathlib import Path
from typing import Any

import httpx
import numpy as np
from running_service import calibrate, digits, service_on

HOSTILE = (
    "<script>alert(1)</script>",
    "=1+1|' /C calc'!A0",
    "\u05d0\u05d1\u05d2 \u0627\u0644",
    "a\"'&amp;]]>",
    "x" * 90,
)
WAIT = {"Prefer": "wait=120"}


def chart_reports(folder: Path) -> dict[str, Any]:
    """Return what ``GET /report`` says of one calibration, of one without evaluation, of two."""
    names = [*HOSTILE, *(f"digit {digit}" for digit in range(len(HOSTILE), 10))]
    with service_on(folder) as client:
        _calibrate(client, {"name": "digits", "classes": names}, evaluation=True)
        _calibrate(client, {"name": "half", "classes": names}, evaluation=False)
        for name, shuffled in ((HOSTILE[0], False), ("shuffled", True)):
            sent = client.post(
                "/calibrations/digits/evaluations",
                files={"evaluation": ("set.npz", _further_set(shuffled=shuffled))},
                data={"name": name},
                headers=WAIT,
            )
            assert sent.status_code == httpx.codes.CREATED, sent.text
        refit = client.post(
            "/calibrations/digits/refit", json={"bins": 1, "measures": ["margin"]}, headers=WAIT
        )
        assert refit.status_code == httpx.codes.CREATED, refit.text
        asked = {"one": "digits@1", "half": "half", "two": ["digits@1", "digits@2"]}
        return {
            kind: client.get("/report", params={"calibration": found}).json()
            for kind, found in asked.items()
        }


def _calibrate(client: httpx.Client, config: dict[str, Any], *, evaluation: bool) -> None:
    answer = calibrate(
        client,
        model=digits("model.onnx"),
        calibration=digits("calibration.npz"),
        evaluation=digits("evaluation.npz") if evaluation else None,
        config=json.dumps(config),
    )
    assert answer.status_code == httpx.codes.CREATED, answer.text


def _further_set(*, shuffled: bool) -> bytes:
    arrays = dict(np.load(io.BytesIO(digits("evaluation.npz"))))
    if shuffled:
        arrays["labels"] = np.random.default_rng(0).permutation(arrays["labels"])
    else:
        del arrays["labels"]
    file = io.BytesIO()
    np.savez(file, **arrays)
    return file.getvalue()

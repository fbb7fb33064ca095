"""Reports with all that charts are drawn of, and names as strangers give them."""

import io
from pathlib import Path
from typing import Any

import httpx
import numpy as np
from running_service import calibrated, digits, evaluate, npz, refit, service_on

HOSTILE = (
    "<script>alert(1)</script>",
    "=1+1|' /C calc'!A0",
    "\u05d0\u05d1\u05d2 \u0627\u0644",
    "a\"'&amp;]]>",
    "x" * 90,
)


def chart_reports(folder: Path) -> dict[str, Any]:
    """Return what ``GET /report`` says of one calibration, of one without evaluation, of two."""
    names = [*HOSTILE, *(f"digit {digit}" for digit in range(len(HOSTILE), 10))]
    config = {"classes": names}
    files = {"model": digits("model.onnx"), "calibration": digits("calibration.npz")}
    further = dict(np.load(io.BytesIO(digits("evaluation.npz"))))
    shuffled = further | {"labels": np.random.default_rng(0).permutation(further["labels"])}
    sets = {HOSTILE[0]: npz(inputs=further["inputs"]), "shuffled": npz(**shuffled)}
    with service_on(folder) as client:
        evaluation = digits("evaluation.npz")
        calibrated(client, config | {"name": "digits"}, evaluation=evaluation, **files)
        calibrated(client, config | {"name": "half"}, **files)
        for name, content in sets.items():
            sent = evaluate(client, "digits", name, content)
            assert sent.status_code == httpx.codes.CREATED, sent.text
        fitted = refit(client, "digits", bins=1, measures=["margin"])
        assert fitted.status_code == httpx.codes.CREATED, fitted.text
        asked = {"one": "digits@1", "half": "half", "two": ["digits@1", "digits@2"]}
        return {
            kind: client.get("/report", params={"calibration": found}).json()
            for kind, found in asked.items()
        }

"""Calibrations of each kind that reports tell apart, for the shelf of a worker's service."""

from collections.abc import Callable
from typing import Any

import httpx
import numpy as np
from model_services import HOSTILE, calibrate_pictures, packed_set
from running_service import calibrated, evaluate, npz, refit

SCRIPT = "<script>alert(1)</script>"
# Names as strangers give them.
CLASSES = [
    *(SCRIPT, "=1+1", "abc &amp;", "\u05d0\u05d1\u05d2 \u0627\u0644"),
    *("a\"'&amp;]]>", "x" * 90, *"6789"),
]
DECISION = {"author": "<i>Ann", "reason": "agreed"}
Arrays = dict[str, np.ndarray]
Resource = dict[str, Any]


def outputs(
    n: int, *, seed: int, n_classes: int = 3, scale: float = 4.0, wrong: float = 0.0, shift: int = 0
) -> Arrays:
    """Return logits, and labels drawn from their softmax: stated probabilities are right.

    A share ``wrong`` of the answers is wrong in addition. ``shift`` is added to the labels, modulo
    the number of classes.
    """
    rng = np.random.default_rng(seed)
    # Few digits, so that they are the same on any machine.
    logits = np.round(scale * rng.normal(size=(n, n_classes)), 3)
    labels = (logits + rng.gumbel(size=logits.shape)).argmax(axis=1)
    answers = logits.argmax(axis=1)
    labels = np.where(rng.random(n) < wrong, (answers + 1) % n_classes, labels)
    return {"logits": logits, "labels": (labels + shift) % n_classes}


def send_set(client: httpx.Client, reference: str, name: str, arrays: Arrays) -> None:
    """Evaluate a calibration on a further set."""
    response = evaluate(client, reference, name, npz(**arrays))
    assert response.json()["status"] == "succeeded", response.text


def activate(client: httpx.Client, reference: str, **choice: Any) -> dict[str, Any]:
    """Activate an operating point."""
    address = f"/calibrations/{reference}/operating-points"
    response = client.post(address, json={"name": "automatic", **DECISION, **choice})
    assert response.status_code == httpx.codes.CREATED, response.text
    return response.json()


def withdraw(client: httpx.Client, reference: str) -> None:
    """Withdraw the active operating point."""
    address = f"/calibrations/{reference}/operating-points/withdraw"
    client.post(address, json=DECISION).raise_for_status()


def of_outputs(arrays: Arrays, evaluation: Arrays | None = None, **config: Any) -> Callable:
    """Return what calibrates on these outputs."""

    def calibrate(client: httpx.Client, name: str) -> Resource:
        judging = None if evaluation is None else npz(**evaluation)
        return calibrated(
            client, {"name": name} | config, calibration=npz(**arrays), evaluation=judging
        )

    return calibrate


def pictures(client: httpx.Client, name: str) -> Resource:
    """Version 1 has everything that a report shows, version 2 one bin."""
    made = calibrate_pictures(
        client,
        name=name,
        classes=CLASSES,
        measures=["entropy", "margin", "last_layer_dropout_variance", f"output:{HOSTILE}"],
        serve={"5": f"output:{HOSTILE}"},
        top_k=[1, 5],
        bins=6,
        folds=4,
        evaluation=packed_set("evaluation"),
    )
    for more in ({}, *({"role": "stress", "type": SCRIPT, "intensity": at} for at in "012")):
        further = f"{SCRIPT}{more.get('intensity', '')}"
        response = evaluate(client, name, further, packed_set("evaluation"), **more)
        assert response.json()["status"] == "succeeded", response.text
    assert refit(client, f"{name}@1", bins=1).json()["status"] == "succeeded"
    return made


def scores(client: httpx.Client, name: str) -> Resource:
    """More rows than a shard holds; every tenth label is random; an uncertainty of the client."""
    rng = np.random.default_rng(5)
    logits = (rng.normal(size=(9000, 3)) * 3).astype(np.float32)
    labels = np.where(rng.random(9000) < 0.1, rng.integers(0, 3, 9000), logits.argmax(axis=1))
    own = rng.random(9000) + 0.5 * (labels != logits.argmax(axis=1))
    content = npz(logits=logits, labels=labels, uncertainty_own=own)
    config = {"name": name, "classes": CLASSES[:3], "top_k": [1, 2], "bins": 10}
    config |= {"measures": ["entropy", "supplied:own"], "serve": {"1": "supplied:own"}}
    return calibrated(client, config, calibration=content)


def imported(client: httpx.Client, name: str) -> Resource:
    """Import tables with two events."""
    tables = {"measures": ["margin"], "top_k": [1, 2], "bins": 5}
    calibrated(client, {"name": f"{name}-from"} | tables, calibration=npz(**outputs(300, seed=9)))
    document = client.get(f"/calibrations/{name}-from/bins").json()
    response = client.post("/calibrations/import", params={"name": name}, json=document)
    assert response.status_code == httpx.codes.CREATED, response.text
    return response.json()


def pairs(client: httpx.Client, name: str) -> Resource:
    """Scores of another model, and whether it was right; an operating point by its score."""
    rows = [f"{0.5 + row / 800},{int(row % 7 > 0 or row % 3 == 0)}" for row in range(400)]
    content = "\n".join(["score,correct", *rows]).encode()
    made = calibrated(client, {"name": name, "folds": 2}, full=True, calibration=content)
    activate(client, made["id"], threshold=0.75)
    return made


def rare_class(n: int, wrong: float) -> Arrays:
    """Return outputs of a model that names a rare class; a share of these answers is wrong."""
    rng = np.random.default_rng(5)
    is_named = rng.random(n) < 0.06
    labels = np.where(is_named, rng.random(n) >= wrong, False).astype(int)
    margin = np.round(rng.uniform(3, 5, n), 3)
    logits = np.stack([np.where(is_named, 0, margin), np.where(is_named, margin, 0)], axis=1)
    return {"logits": logits, "labels": labels}


def weighted(client: httpx.Client, name: str) -> Resource:
    """Groups of two samples; each class has its weight."""
    arrays = outputs(400, seed=3, scale=6.0)
    labels = np.repeat(arrays["labels"], 2)
    noise = np.round(np.random.default_rng(3).normal(size=(800, 3)), 3)
    content = npz(
        logits=np.repeat(arrays["logits"], 2, axis=0) + noise,
        labels=labels,
        group=np.repeat(np.arange(400), 2),
        weight=np.array([2.0, 0.5, 0.5])[labels],
    )
    return calibrated(client, {"name": name, "selective": [{"max_risk": 0.1}]}, calibration=content)


def shifted(client: httpx.Client, name: str) -> Resource:
    """Further sets: one disproves it, one has labels that look wrong."""
    made = of_outputs(outputs(2000, seed=5), selective=[{"max_risk": 0.05}])(client, name)
    send_set(client, name, "other camera", outputs(1500, seed=7, wrong=1 / 6))
    send_set(client, name, "off by one", outputs(300, seed=8, scale=6.0, shift=1))
    return made


def unlabelled(client: httpx.Client, name: str) -> Resource:
    """A further set without labels, of inputs unlike those of the calibration set."""
    made = of_outputs(outputs(1000, seed=11))(client, name)
    send_set(client, name, "other objects", {"logits": outputs(400, seed=12, scale=0.5)["logits"]})
    return made


def versions(client: httpx.Client, name: str) -> Resource:
    """Two versions on sets of their own, both evaluated on a further set."""
    for seed, wrong in ((13, 0.0), (14, 0.2)):
        of_outputs(outputs(900, seed=seed, wrong=wrong))(client, name)
    for version in (1, 2):
        send_set(client, f"{name}@{version}", "december", outputs(900, seed=15))
    resource: Resource = client.get(f"/calibrations/{name}@1").json()
    return resource


def operating_point(client: httpx.Client, name: str) -> Resource:
    """One operating point was withdrawn, another is active, and does not hold on a further set."""
    arrays, evaluation = outputs(1000, seed=16), outputs(800, seed=17)
    made = of_outputs(arrays, evaluation, selective=[{"max_risk": 0.1}])(client, name)
    activate(client, made["id"], coverage=0.5)
    withdraw(client, made["id"])
    activate(client, made["id"], name="night-shift", max_risk=0.05)
    send_set(client, name, "later", outputs(1500, seed=18, wrong=0.02))
    return made


def earlier_point(client: httpx.Client, name: str) -> Resource:
    """The second version has no operating point, the first has an untested one."""
    for seed in (19, 20):
        of_outputs(outputs(600, seed=seed), selective=[])(client, name)
        if seed == 19:
            activate(client, f"{name}@1", coverage=0.8)
            send_set(client, name, "january", outputs(300, seed=21))
    resource: Resource = client.get(f"/calibrations/{name}@2").json()
    return resource


def contradicted(client: httpx.Client, name: str) -> Resource:
    """As accurate on the evaluation set, but certain answers are wrong more often."""
    arrays, rng = outputs(2000, seed=2), np.random.default_rng(2)
    known, new = ({key: value[half::2] for key, value in arrays.items()} for half in (0, 1))
    answers, sizes = new["logits"].argmax(axis=1), np.sort(new["logits"], axis=1)
    is_certain = sizes[:, 2] - sizes[:, 1] > 3
    labels = np.where(is_certain | (rng.random(1000) < 0.4), new["labels"], answers)
    new["labels"] = np.where(is_certain & (rng.random(1000) < 0.1), 2 - answers // 2, labels)
    return of_outputs(known, new, selective=[{"max_risk": 0.05}])(client, name)


SCENARIOS: dict[str, Callable[[httpx.Client, str], Resource]] = {
    "pictures": pictures,
    "scores": scores,
    "imported": imported,
    "pairs": pairs,
    "rare-class": of_outputs(rare_class(2500, 0.3), classes=["fine", "fraud"]),
    "weighted": weighted,
    "wrong-labels": of_outputs(outputs(300, seed=22, scale=6.0, shift=1)),
    "no-errors": of_outputs(outputs(200, seed=23, scale=40.0)),
    "rare-errors": of_outputs(outputs(1200, seed=24, scale=12.0), outputs(900, seed=25, scale=12)),
    "mostly-wrong": of_outputs(outputs(300, seed=26, scale=0.3), selective=[{"max_risk": 0.001}]),
    "contradicted": contradicted,
    "shifted": shifted,
    "unlabelled": unlabelled,
    "versions": versions,
    "operating-point": operating_point,
    "earlier-point": earlier_point,
}

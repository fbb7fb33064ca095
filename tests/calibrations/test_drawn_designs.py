"""Sets with drawn weights and groups, from upload to comparison: answered, or refused by name."""

import json
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any, NoReturn

import httpx
import numpy as np
import pandas as pd
import pytest
from databases import opened_database
from howsure_command import howsure
from running_service import QUICK, calibrate, evaluate, npz, refit, service_on
from sample_strategies import drawn_set
from scipy.special import softmax
from sqlalchemy import select

import models
from service.storage.tenants import ALL_TENANTS

pytestmark = pytest.mark.process

FORMATS = ("csv", "markdown", "model-card", "html")
PREFIXES = {"logits": "logit_", "probabilities": "prob_"}
CHOICES = ({"coverage": 0.7}, {"max_risk": 0.2, "delta": 0.2}, {"threshold": 0.3})
SIGNED = {"name": "automatic", "author": "somebody", "reason": "to see"}
SIZES = (9, 20, 40, 60, 150, 300, 300, 300)
PARTS = ("calibration", "evaluation", "config", "max_risk", "scores", "probabilities")


def unusual_weights(rng: np.random.Generator, n: int) -> np.ndarray:
    """Return weights with a heavy tail, of integers, one giant, many zeros, tiny or huge."""
    heavy, giant = rng.pareto(rng.choice([0.7, 2.0]), n) + 1e-3, np.ones(n)
    giant[0] = rng.choice([50.0, 1e9, 1e300])
    refused = [heavy * rng.integers(0, 2, n), heavy * 1e-300, heavy * 1e290]
    return [heavy, heavy, rng.integers(1, 99, n), giant, refused[rng.integers(3)]][rng.integers(5)]


def drawn_file(rng: np.random.Generator, kind: str, n_classes: int) -> bytes:
    """Return a set of this kind in any format."""
    arrays = drawn_set(rng, n_classes, SIZES)
    logits, labels = arrays.pop("logits"), arrays.pop("labels")
    if rng.random() < 0.1:
        logits *= rng.choice([1e-300, 1e-30, 1e30, 1e300])
    if rng.random() < 0.2:  # a rare class
        logits[:, 0] += 6.0
        labels = (rng.random(labels.size) < 0.03).astype(int)
    if rng.random() < 0.3:
        arrays["weight"] = unusual_weights(rng, labels.size)
    outputs = logits if kind == "logits" else softmax(logits, axis=1)
    if kind == "pairs":
        scores = (logits if rng.random() < 0.5 else outputs).max(axis=1)
        arrays |= {"score": scores, "correct": (logits.argmax(axis=1) == labels).astype(int)}
    else:
        arrays |= {kind: outputs, "labels": labels}
    if rng.random() < 0.3:
        return npz(**arrays)
    if "group" in arrays and rng.random() < 0.5:
        arrays["group"] = np.array([f"patient {group}" for group in arrays["group"]])
    if kind != "pairs":
        prefix, arrays["label"] = PREFIXES[kind], arrays.pop("labels")
        arrays |= {f"{prefix}{k}": column for k, column in enumerate(arrays.pop(kind).T)}
    table = pd.DataFrame(arrays)
    return table.to_parquet() if rng.random() < 0.5 else table.to_csv(index=False).encode()


def answered(response: httpx.Response) -> Any:
    """Return an answer that is no error of the service, without NaN; refusals name a part."""
    assert response.status_code < httpx.codes.INTERNAL_SERVER_ERROR, response.text

    def refuse(constant: str) -> NoReturn:
        raise AssertionError(f"{constant} is in the answer")

    resource = json.loads(response.content, parse_constant=refuse)
    if not response.is_success:
        assert response.headers["content-type"] == "application/problem+json"
        named = [error["location"] for error in resource.get("errors", [])]
        assert all(location.startswith(PARTS) for location in named), resource
        assert named or response.status_code == httpx.codes.CONFLICT, resource
    error = resource.get("error")
    assert error is None or error["title"] != "Internal error", error
    return resource


def drawn_config(rng: np.random.Generator, kind: str, name: str) -> str:
    """Return a configuration for this kind of set."""
    config = {
        "name": name,
        "folds": 2,
        "bins": [1, 4, "auto"][rng.integers(3)],
        "lookup": str(rng.choice(["smooth", "interpolated", "step"])),
        "monotone": bool(rng.random() < 0.3),
    }
    if kind != "pairs":
        measures = [["margin"], ["learned", "entropy"]][rng.integers(2)]
        config = QUICK | config | {"measures": measures}
    return json.dumps(config)


def use(client: httpx.Client, rng: np.random.Generator, kind: str, n: int, own: str) -> None:
    """Use a calibration in every way."""
    answered(evaluate(client, own, "further", drawn_file(rng, kind, n)))
    answered(refit(client, own, bins=int(rng.integers(1, 9))))
    at = f"/calibrations/{own}"
    answered(client.get(f"{at}/bins"))
    for choice in CHOICES:
        params = choice | {"volume": 1000}
        answered(client.get(f"{at}/operating-points/preview", params=params))
        answered(client.post(f"{at}/operating-points", json=SIGNED | choice))
    rows = rng.normal(size=(3, n)) * 3
    sent = rows.max(axis=1) if kind == "pairs" else rows if kind == "logits" else softmax(rows, 1)
    field = "scores" if kind == "pairs" else kind
    answer = answered(client.post("/predict", json={"calibration": own, field: sent.tolist()}))
    for event in (row["top1"] for row in answer.get("predictions", [])):
        lower, upper = event["interval"]
        ends = (0.0, lower, event["probability"], upper, 1.0)
        assert all(a <= b for a, b in pairwise(ends)), ends
    answered(client.get("/report", params={"calibration": own}))
    for report_format in FORMATS:
        report = client.get("/report", params={"calibration": own, "format": report_format})
        assert report.status_code == httpx.codes.OK, report.text


def check_command(*words: object, url: str) -> None:
    done = howsure(*words, HOWSURE_URL=url)
    assert done.returncode in (0, 1), done.stderr
    assert not [text for text in ("Traceback", "Internal error") if text in done.stderr]


def use_name(client: httpx.Client, seed: int, folder: Path) -> Iterator[str]:
    """Use two versions that are calibrated on drawn sets, if they are; yield their statuses."""
    rng, name, ready = np.random.default_rng([13, seed]), f"drawn-{seed}", []
    kind, n = str(rng.choice(["logits", "probabilities", "pairs"])), int(rng.choice([2, 3, 11]))
    for _ in range(2):
        parts = {"calibration": drawn_file(rng, kind, n)}
        if rng.random() < 0.3:
            parts["evaluation"] = drawn_file(rng, kind, n)
        made = answered(calibrate(client, config=drawn_config(rng, kind, name), **parts))
        yield str(made["status"])
        if made["status"] == "succeeded":
            use(client, rng, kind, n, made["id"])
            ready.append(made["id"])
    file = folder / f"{name}.bin"
    file.write_bytes(drawn_file(rng, kind, n))
    url, config = str(client.base_url), drawn_config(rng, kind, f"{name}-command")
    check_command("calibrate", file, "--config", config, url=url)
    if len(ready) > 1:
        both = {"calibration": ready}
        answered(client.get("/report", params=both))
        page = client.get("/report", params=both, headers={"Accept": "text/html"})
        assert page.status_code == httpx.codes.OK, page.text
        check_command("compare", *ready, url=url)


def check_stored(url: str) -> None:
    """Check that no column of any row has a number that is infinite or NaN."""
    with opened_database(url) as database, database.reading(ALL_TENANTS) as session:
        for table in models.Base.metadata.sorted_tables:
            for row in session.execute(select(table)):
                json.dumps(tuple(row), allow_nan=False, default=str)


def check_seeds(folder: Path, seeds: range) -> None:
    done: list[str] = []
    with service_on(folder / "data", on_port=True) as client:
        for seed in seeds:
            done += use_name(client, seed, folder)
    check_stored(f"sqlite:///{folder / 'data' / 'howsure.sqlite3'}")
    assert "succeeded" in done


def test_drawn_designs_are_answered_or_refused(tmp_path) -> None:
    """No error of the service, and nothing infinite in what it stores."""
    check_seeds(tmp_path, range(2))


FURTHER = [pytest.param(range(at, at + 13), marks=pytest.mark.further) for at in range(8, 260, 13)]


@pytest.mark.slow
@pytest.mark.parametrize("seeds", [range(2, 8), *FURTHER])
def test_more_drawn_designs(tmp_path, seeds: range) -> None:
    check_seeds(tmp_path, seeds)

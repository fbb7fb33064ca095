"""Sets with drawn weights and groups, from upload to comparison: answered, or refused by name."""

import json
from collections.abc import Iterator
from itertools import pairwise
from typing import Any, NoReturn

import httpx
import numpy as np
import pytest
from running_service import QUICK, Service, calibrate, evaluate, npz, refit
from sample_strategies import drawn_set

from howsure import Client

LONG = [pytest.param(range(at, at + 25), marks=pytest.mark.slow) for at in range(2, 502, 25)]
FORMATS = ("csv", "markdown", "model-card", "html")


def written(arrays: dict[str, np.ndarray], *, as_csv: bool) -> bytes:
    if not as_csv:
        return npz(**arrays)
    names = {"labels": "label"}
    logits = {f"logit_{k}": column for k, column in enumerate(arrays["logits"].T)}
    columns = logits | {names.get(k, k): v for k, v in arrays.items() if k != "logits"}
    rows = zip(*(column.tolist() for column in columns.values()), strict=True)
    return "\n".join([",".join(columns), *(",".join(map(repr, row)) for row in rows)]).encode()


def strict(content: str | bytes) -> Any:
    def refuse(constant: str) -> NoReturn:
        raise AssertionError(f"{constant} was stored")

    return json.loads(content, parse_constant=refuse)


def answered(response: httpx.Response) -> Any:
    """Return an answer that is neither an error of the service nor infinite."""
    assert response.status_code < httpx.codes.INTERNAL_SERVER_ERROR, response.text
    resource = strict(response.content)
    error = resource.get("error")
    assert error is None or error["title"] != "Internal error", error
    return resource


def calibrate_drawn(
    client: httpx.Client, rng: np.random.Generator, name: str, n_classes: int
) -> tuple[dict[str, Any], bool]:
    """Return a calibration on a drawn set, and whether it has succeeded."""
    config = QUICK | {
        "name": name,
        "bins": [1, 4, "auto"][rng.integers(3)],
        "lookup": str(rng.choice(["smooth", "interpolated", "step"])),
        "measures": [["margin"], ["learned", "entropy"]][rng.integers(2)],
    }
    parts = {"calibration": written(drawn_set(rng, n_classes), as_csv=rng.random() < 0.5)}
    if rng.random() < 0.5:
        parts["evaluation"] = written(drawn_set(rng, n_classes), as_csv=False)
    made = answered(calibrate(client, config=json.dumps(config), **parts))
    return made, made.get("status") == "succeeded"


def use(service: Service, users: Client, rng: np.random.Generator, place: int) -> Iterator[str]:
    """Use three versions that are calibrated on drawn sets, if they are; yield what ended how."""
    client, n_classes, ready = service.client, int(rng.integers(2, 4)), []
    for version in range(3):
        made, is_ready = calibrate_drawn(client, rng, f"drawn-{place}", n_classes)
        if not is_ready:
            continue
        own = made["id"]
        ready.append(own)
        further = written(drawn_set(rng, n_classes), as_csv=False)
        found = answered(evaluate(client, own, f"set {version}", further))
        yield f"evaluation {found.get('status')}"
        found = answered(refit(client, own, bins=int(rng.integers(1, 9))))
        yield f"refit {found.get('status')}"
        answered(client.get(f"/calibrations/{own}/bins"))
        rows = rng.normal(size=(3, n_classes)) * 3
        event = users.predict(own, logits=rows).events[1]
        ends = (0.0, event.lower, event.probability, event.upper, 1.0)
        assert all(np.all(a <= b) for a, b in pairwise(ends)), ends
        for kind in FORMATS:
            shown = client.get("/report", params={"calibration": own, "format": kind})
            assert shown.status_code == httpx.codes.OK, shown.text
    if len(ready) > 1:
        answered(client.get("/report", params={"calibration": ready}))
        yield "comparison"


@pytest.mark.parametrize("places", [range(2), *LONG])
def test_drawn_designs_are_answered_or_refused(service: Service, places: range) -> None:
    """No error of the service, and nothing infinite in what it stores."""
    done: list[str] = []
    with Client(service.url) as users:
        for place in places:
            done += use(service, users, np.random.default_rng([11, place]), place)
    assert {"evaluation succeeded", "refit succeeded", "comparison"} <= set(done)

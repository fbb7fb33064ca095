"""A file of another source is not judged by what one source measured."""

from typing import Any

import httpx
import numpy as np
import pandas as pd
import pytest
from bins_documents import exported
from refusals import assert_refused
from running_service import calibrated, dry_run, evaluate, send

RNG = np.random.default_rng(5)
ROWS = 300
SCORES = RNG.beta(4, 2, ROWS).round(3)
OF_PAIRS = {"score": SCORES, "correct": (RNG.random(ROWS) < SCORES).astype(int)}
OF_OUTPUTS = {"prob": SCORES, "label": (RNG.random(ROWS) < SCORES).astype(int)}
CONFIG = {"bins": 5, "folds": 2}
DEFAULTS = {"measures": None, "top_k": None}
KINDS = {"pairs": OF_PAIRS, "outputs": OF_OUTPUTS}
TYPES = {"csv": "text/csv", "parquet": "application/vnd.apache.parquet"}
SOURCES = np.array(["search", "mail"])[np.arange(ROWS) % 2]


def written(file_format: str, columns: dict[str, Any]) -> bytes:
    frame = pd.DataFrame(columns)
    if file_format == "csv":
        return frame.to_csv(index=False).encode()
    return bytes(frame.to_parquet(index=False))


@pytest.fixture(scope="module", params=KINDS)
def gate(client: httpx.Client, request) -> tuple[str, dict[str, Any]]:
    columns = KINDS[request.param]
    made = calibrated(
        client, CONFIG, full=True, calibration=written("csv", columns | {"source": SOURCES})
    )
    assert made["data"]["texts"] == {"source": ["mail", "search"]}
    return str(made["id"]), columns


EACH_ONCE = [*zip(KINDS, TYPES, strict=True)]


@pytest.mark.parametrize(("gate", "file_format"), EACH_ONCE, indirect=["gate"])
def test_another_source_is_refused_by_name(client, gate, file_format) -> None:
    reference, columns = gate
    imported = client.post("/calibrations/import", json=exported(client, reference)).json()["id"]
    for number, source in enumerate(["mail", "phone"]):
        texts = np.where(np.arange(ROWS) == 7, source, SOURCES)
        content = written(file_format, columns | {"source": texts})
        name = f"{file_format} {number}"
        responses = [
            evaluate(client, reference, name, content),
            *(
                send(client, one, content, {"Content-Type": TYPES[file_format]})
                for one in (reference, imported)
            ),
        ]
        for response in responses:
            if source == "mail":
                assert response.is_success, response.text
            else:
                assert ".source[7]: expected `mail`, `search`" in response.json()["detail"]
    without = written(file_format, columns)
    assert evaluate(client, reference, f"{file_format} without", without).is_success


def test_an_evaluation_set_of_another_source(client, gate) -> None:
    _, columns = gate
    sets = [written("csv", columns | {"source": source}) for source in (SOURCES, SOURCES[::-1])]
    assert dry_run(client, sets[0], evaluation=sets[1], **DEFAULTS).is_success
    other = written("csv", columns | {"source": "phone"})
    assert_refused(dry_run(client, sets[0], evaluation=other, **DEFAULTS), "evaluation.source[0]")


@pytest.mark.parametrize("first", ["", "3", "2026-01-01"])
def test_the_first_row_hides_no_source(client, gate, first) -> None:
    """It decides what a column of a calibration set holds; later sets are read by its texts."""
    reference, columns = gate
    texts = [first, *["phone"] * (ROWS - 1)]
    response = evaluate(client, reference, "first", written("csv", columns | {"source": texts}))
    assert response.status_code == httpx.codes.UNPROCESSABLE_ENTITY
    assert "source" in response.json()["detail"]


def test_texts_that_cannot_be_stored_are_no_sources(client) -> None:
    for source in ("a\0b", "x" * 201, "a\u202eb"):
        content = written("parquet", OF_PAIRS | {"source": source, f"{source[:3]}own": "a"})
        made = calibrated(client, CONFIG, full=True, calibration=content)
        assert set(made["data"].get("texts", ())) <= {"xxxown"}


OTHERS = {"ids": [f"answer {row}" for row in range(ROWS)], "numbers": np.arange(ROWS) % 3}


@pytest.mark.parametrize("values", OTHERS)
def test_other_columns_may_hold_anything(client, values) -> None:
    """Ids and numbers are no sources; nor is a column that the calibration set lacks."""
    columns = OF_PAIRS | {"own": OTHERS[values]}
    made = calibrated(client, CONFIG, full=True, calibration=written("csv", columns))
    assert "texts" not in made["data"]
    later = columns | {"own": [f"later {row}" for row in range(ROWS)], "source": "phone"}
    assert evaluate(client, made["id"], "later", written("csv", later)).is_success

"""Data of an earlier commit is served with the same probabilities."""

import json
import tarfile
from pathlib import Path

import pytest
from running_service import service_on

pytestmark = pytest.mark.process

ARCHIVE = Path(__file__).parents[1] / "data" / "earlier" / "data.tar.xz"


@pytest.fixture(scope="module")
def upgraded(tmp_path_factory):
    """A client of a service on the earlier data folder, and the answers of that time."""
    folder = tmp_path_factory.mktemp("earlier")
    with tarfile.open(ARCHIVE) as archive:
        # Before Python 3.11.4, extractall takes no filter.
        archive.extraction_filter = getattr(tarfile, "data_filter", None)
        archive.extractall(folder)  # noqa: S202 - an archive of this repository
    with service_on(folder / "data") as found:
        yield found, json.loads((folder / "answers.json").read_text())


def numbers(value, path=""):
    """Return all numbers of a JSON value by their paths."""
    if isinstance(value, dict):
        parts = [numbers(one, f"{path}/{key}") for key, one in value.items()]
    elif isinstance(value, list):
        parts = [numbers(one, f"{path}/{position}") for position, one in enumerate(value)]
    else:
        return {path: value} if isinstance(value, int | float) else {}
    return {key: one for part in parts for key, one in part.items()}


@pytest.mark.parametrize("name", ["default", "interpolated"])
def test_predictions_and_the_numbers_of_the_report_are_the_same(upgraded, name: str) -> None:
    client, earlier = upgraded
    answers, body = earlier["answers"][name], {"calibration": name, "inputs": earlier["inputs"]}
    predictions = client.post("/predict", json=body).raise_for_status().json()["predictions"]
    for row in predictions:
        for ranked in row["classes"]:
            ranked.pop("probability")  # newer than the answers
    assert predictions == answers["predictions"]
    report = client.get(f"/report?calibration={name}", headers={"Accept": "application/json"})
    for part in ("events", "model_scores"):
        before, after = numbers(answers["report"][part]), numbers(report.json()[part])
        assert {path: after.get(path) for path in before} == before

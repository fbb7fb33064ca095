"""The file that the service gives out answers in ONNX Runtime Web as the service does."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from running_service import DIGITS, DIGITS_PARTS, JSON, calibrated, digits, service_on
from web_files import predict_under_node, require_node

CONFIG = {"name": "digits", "selective": [{"max_risk": 0.05}, {"max_risk": 0.001}]}


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[httpx.Client]:
    with service_on(tmp_path_factory.mktemp("service")) as client:
        calibrated(client, CONFIG | {"top_k": [1, 5], "measures": ["learned"]}, **DIGITS_PARTS)
        yield client


@pytest.fixture(scope="module")
def model(client: httpx.Client, tmp_path_factory: pytest.TempPathFactory) -> Path:
    answer = client.get("/calibrations/digits/model.onnx").raise_for_status()
    path = tmp_path_factory.mktemp("exported") / "digits.onnx"
    path.write_bytes(answer.content)
    return path


@pytest.fixture(scope="module")
def predictions(client: httpx.Client) -> list[dict[str, Any]]:
    answer = client.post("/predict", content=digits("request.json"), headers=JSON)
    return answer.raise_for_status().json()["predictions"]


def check(answers: list[dict[str, Any]], predictions: list[dict[str, Any]]) -> None:
    for answer, prediction in zip(answers, predictions, strict=True):
        # Null, for want of a threshold: the file accepts nothing.
        lacking = {r: True for r, flag in prediction["abstain"].items() if flag is None}
        expected = prediction | {"abstain": prediction["abstain"] | lacking}
        assert answer.keys() == expected.keys()
        for key in answer.keys() - {"classes", "top1", "top5"}:
            assert answer[key] == expected[key]
        assert names(answer) == names(expected)
        for event in ("top1", "top5"):
            found, other = dict(answer[event]), dict(expected[event])
            assert found.pop("interval") == pytest.approx(other.pop("interval"), abs=1e-6)
            assert found.pop("probability") == pytest.approx(other.pop("probability"), abs=1e-6)
            assert found.pop("uncertainty") == pytest.approx(other.pop("uncertainty"), rel=1e-4)
            assert found == other


def names(answer: dict[str, Any]) -> list[tuple[int, str]]:
    return [(one["class"], one["label"]) for one in answer["classes"]]


@pytest.mark.slow
def test_node_answers_as_the_service(model: Path, predictions: list[dict[str, Any]]) -> None:
    require_node()

    check(predict_under_node(DIGITS / "request.json", [model]), predictions)

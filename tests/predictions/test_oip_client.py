"""The service answers Triton's own client."""

import io
import re
from collections.abc import Iterator
from contextlib import redirect_stdout

import httpx
import numpy as np
import pytest
import tritonclient.http as triton
from bins_documents import digits_set
from job_workspaces import inputs_set
from request_formats import LENGTH, infer, outputs_of, tensor
from runner_models import rows, undefined_below_zero, weights
from running_service import (
    DIGITS,
    DIGITS_PARTS,
    calibrate,
    calibrated,
    quick_config,
    service_on,
)
from tritonclient.utils import InferenceServerException, triton_to_np_dtype

PAGE = (DIGITS.parents[1] / "docs" / "oip.md").read_text(encoding="utf-8")
PIXELS = digits_set()["inputs"][:40].astype(np.float32)


@pytest.fixture(scope="module")
def client(tmp_path_factory) -> Iterator[httpx.Client]:
    with service_on(tmp_path_factory.mktemp("oip"), on_port=True) as client:
        for bins in (10, 4):
            config = {"name": "digits", "bins": bins, "top_k": [1, 5]}
            calibrated(client, config, **DIGITS_PARTS)
        client.post("/calibrations/digits@1/promote").raise_for_status()
        yield client


@pytest.fixture(scope="module")
def oip(client) -> Iterator[triton.InferenceServerClient]:
    address = client.base_url.netloc.decode()
    with triton.InferenceServerClient(address, concurrency=4, network_timeout=60) as opened:
        yield opened


def infer_pixels(oip, pixels: np.ndarray = PIXELS, **options) -> triton.InferResult:
    return oip.infer("digits", [tensor("inputs", pixels)], **options)


def names_of(result: triton.InferResult) -> list[str]:
    return [output["name"] for output in result.get_response()["outputs"]]


def test_server_and_models_are_ready(client, oip) -> None:
    assert oip.is_server_live()
    assert oip.is_server_ready()
    assert oip.get_server_metadata()["name"] == "howsure"
    assert oip.is_model_ready("digits")
    assert oip.is_model_ready("digits", "2")
    an_id = client.get("/calibrations/digits").json()["id"]
    for model, version in (("digits", "3"), ("nobody", ""), ("digits@1", ""), (an_id, "")):
        assert not oip.is_model_ready(model, version)


def test_metadata_are_those_of_the_answer_and_of_the_page(oip) -> None:
    metadata, answer = oip.get_model_metadata("digits"), infer_pixels(oip)
    assert (metadata["name"], metadata["platform"]) == ("digits", "onnxruntime_onnx")
    assert metadata["versions"] == ["1", "2"]
    assert metadata["inputs"] == [{"name": "inputs", "datatype": "FP32", "shape": [-1, 64]}]
    names = [output["name"] for output in metadata["outputs"]]
    assert names_of(answer) == names
    for output in metadata["outputs"]:
        array = answer.as_numpy(output["name"])
        assert array.dtype == triton_to_np_dtype(output["datatype"])
        assert output["shape"] == [-1, *array.shape[1:]]
    table = "".join(re.findall(r"^\| `.*?\|", PAGE, re.MULTILINE))
    documented = {n for n in re.findall(r"`(\w[\w.]*)`", table) if not n.startswith("top5")}
    assert {n for n in names if n[:4] != "top5" and n != "abstain_0.01"} == documented


def test_outputs_their_order_version_and_encoding_are_chosen(oip) -> None:
    output = triton.InferRequestedOutput
    wanted = [output("top5_bin", binary_data=False), output("abstain"), output("class")]
    answer = infer_pixels(oip, outputs=wanted, request_id='a "b"')
    assert names_of(answer) == ["top5_bin", "abstain", "class"]
    outputs = answer.get_response()["outputs"]
    assert ["data" in output for output in outputs] == [True, False, False]
    assert answer.get_response()["id"] == 'a "b"'
    assert answer.get_response()["model_version"] == "1"
    newest = infer_pixels(oip, model_version="2")
    assert newest.get_response().keys() == {"model_name", "model_version", "outputs"}
    assert newest.as_numpy("top1_bin").max() <= 3
    parts = ("request_compression_algorithm", "response_compression_algorithm")
    for encoding in ("gzip", "deflate"):
        packed = infer_pixels(oip, **dict.fromkeys(parts, encoding))
        for name in names_of(answer):
            assert np.array_equal(answer.as_numpy(name), packed.as_numpy(name))


def test_a_failed_calibration_is_unavailable(client, oip) -> None:
    model = undefined_below_zero(weights()).SerializeToString()
    # Only a run over all rows finds it.
    parts = {"model": model, "calibration": inputs_set(defined=False)}
    answer = calibrate(client, config=quick_config(name="broken"), **parts)
    assert answer.json()["status"] == "failed", answer.text
    index = oip.get_model_repository_index()
    failed = {"name": "broken", "version": "1", "state": "UNAVAILABLE", "reason": "failed"}
    ready = [
        {"name": "digits", "version": version, "state": "READY", "reason": ""} for version in "12"
    ]
    assert sorted(index, key=lambda one: one["state"]) == [*ready, failed]
    assert client.post("/v2/repository/index", json={"ready": True}).json() == ready
    assert not oip.is_model_ready("broken")
    with pytest.raises(InferenceServerException) as caught:
        oip.infer("broken", [tensor("x", rows(1))])
    assert caught.value.status() == "503"


def test_errors_are_read_by_the_client(oip) -> None:
    infer_pixels(oip, timeout=60_000_000)
    infer_pixels(oip, timeout=0, priority=1, sequence_id=4)
    for status, call in (
        ("404", lambda: oip.get_model_metadata("nobody")),
        ("400", lambda: infer_pixels(oip, PIXELS[:, :5].copy())),
        ("504", lambda: infer_pixels(oip, timeout=1)),
    ):
        with pytest.raises(InferenceServerException) as caught:
            call()
        assert caught.value.status() == status
        assert "decoding the response" not in caught.value.message()


def test_the_examples_run(client, monkeypatch) -> None:
    example = re.search(r"```python\n(.*?)```", PAGE, re.DOTALL)[1]
    monkeypatch.chdir(DIGITS)
    printed = io.StringIO()
    with redirect_stdout(printed):
        exec(example.replace("localhost:8000", client.base_url.netloc.decode()))  # noqa: S102 - our own page
    classes, probabilities, abstain = printed.getvalue().splitlines()
    raw = outputs_of(infer(client, "digits", PIXELS[0].tobytes(), **{LENGTH: "0"}))
    assert str(raw["class"][0]) in classes
    assert len(probabilities.split()) >= 3
    assert {"True", "False"} & set(re.findall(r"\w+", abstain))

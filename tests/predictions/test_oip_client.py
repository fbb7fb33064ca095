"""The service answers Triton's own client."""

import io
from collections.abc import Iterator

import httpx
import numpy as np
import pytest
import tritonclient.http as triton
from oip_service import oip_service_on, tensor
from predict_bodies import npz
from runner_models import rows, undefined_below_zero, weights
from running_service import calibrate, digits
from tritonclient.utils import InferenceServerException, triton_to_np_dtype
from uploads import calibrated

PIXELS = np.load(io.BytesIO(digits("evaluation.npz")))["inputs"][:40].astype(np.float32)


@pytest.fixture(scope="module")
def served(tmp_path_factory) -> Iterator[tuple[httpx.Client, str]]:
    with oip_service_on(tmp_path_factory.mktemp("oip")) as (client, address):
        parts = {"model": digits("model.onnx"), "calibration": digits("calibration.npz")}
        for config in ('{"name": "digits", "bins": 10}', '{"name": "digits", "bins": 4}'):
            calibrated(client, config, **parts)
        client.post("/calibrations/digits@1/promote").raise_for_status()
        yield client, address


@pytest.fixture(scope="module")
def oip(served) -> Iterator[triton.InferenceServerClient]:
    with triton.InferenceServerClient(served[1], concurrency=4, network_timeout=60) as client:
        yield client


@pytest.fixture(scope="module")
def predictions(served) -> list[dict]:
    body = {"calibration": "digits@1", "inputs": PIXELS.tolist()}
    return served[0].post("/predict", json=body).json()["predictions"]


def names_of(result: triton.InferResult) -> list[str]:
    return [output["name"] for output in result.get_response()["outputs"]]


def test_what_is_live_and_ready(oip) -> None:
    assert oip.is_server_live()
    assert oip.is_server_ready()
    assert oip.is_model_ready("digits")
    assert oip.is_model_ready("digits", "2")
    for model, version in (("digits", "3"), ("nobody", ""), ("digits@1", ""), ("digits", "0")):
        assert not oip.is_model_ready(model, version)


def test_an_id_is_no_name_of_a_model(served, oip) -> None:
    calibration_id = served[0].get("/calibrations/digits").json()["id"]

    assert not oip.is_model_ready(calibration_id)


def test_the_server(oip) -> None:
    metadata = oip.get_server_metadata()

    assert metadata["name"] == "howsure"
    assert {"binary_tensor_data", "statistics"} <= {*metadata["extensions"]}


def test_metadata_are_those_of_the_answer(oip) -> None:
    metadata = oip.get_model_metadata("digits")
    answer = oip.infer("digits", [tensor("inputs", PIXELS)])

    assert (metadata["name"], metadata["platform"]) == ("digits", "onnxruntime_onnx")
    assert metadata["versions"] == ["1", "2"]
    assert metadata["inputs"] == [{"name": "inputs", "datatype": "FP32", "shape": [-1, 64]}]
    assert names_of(answer) == [output["name"] for output in metadata["outputs"]]
    for output in metadata["outputs"]:
        array = answer.as_numpy(output["name"])
        assert array.dtype == triton_to_np_dtype(output["datatype"])
        assert [len(PIXELS), *output["shape"][1:]] == list(array.shape)
        assert output["shape"][0] == -1


def test_the_configuration_has_the_same_tensors(oip) -> None:
    metadata = oip.get_model_metadata("digits", "2")
    config = oip.get_model_config("digits", "2")

    assert config["name"] == "digits"
    assert config["max_batch_size"] == 10_000
    assert config["version_policy"] == {"specific": {"versions": [2]}}
    for ours, theirs in (("input", "inputs"), ("output", "outputs")):
        assert config[ours] == [
            {
                "name": found["name"],
                "data_type": f"TYPE_{found['datatype']}",
                "dims": found["shape"][1:],
            }
            for found in metadata[theirs]
        ]


def test_numbers_are_those_of_predict(oip, predictions) -> None:
    found = oip.infer("digits", [tensor("inputs", PIXELS)]).as_numpy

    for row, said in enumerate(predictions):
        assert found("class")[row] == said["class"]
        assert found("topk_class")[row].tolist() == [one["class"] for one in said["classes"]]
        scores = np.array([one["score"] for one in said["classes"]], np.float32)
        assert np.array_equal(found("topk_score")[row], scores)
        for event in ("top1", "top5"):
            answer = said[event]
            assert found(f"{event}_bin")[row] == answer["bin"]
            expected = [answer["probability"], *answer["interval"], answer["uncertainty"]]
            names = [f"{event}_{n}" for n in ("probability", "lower", "upper", "uncertainty")]
            ours = [found(name)[row] for name in names]
            assert np.array_equal(np.array(ours), np.array(expected, np.float32))
        assert found("out_of_distribution")[row] == said["out_of_distribution"]
        for risk, flag in said["abstain"].items():
            assert found(f"abstain_{risk}")[row] == (flag is not False)


@pytest.mark.parametrize("sent", [True, False])
@pytest.mark.parametrize("asked", [True, False])
def test_json_and_bytes_are_the_same_to_the_last_bit(oip, sent, asked) -> None:
    plain = oip.infer("digits", [tensor("inputs", PIXELS)])
    wanted = [triton.InferRequestedOutput(name, binary_data=asked) for name in names_of(plain)]

    answer = oip.infer("digits", [tensor("inputs", PIXELS, binary=sent)], outputs=wanted)

    for output in answer.get_response()["outputs"]:
        ours, theirs = answer.as_numpy(output["name"]), plain.as_numpy(output["name"])
        assert ("data" in output) is not asked
        assert ours.dtype == theirs.dtype
        assert np.array_equal(ours, theirs)


def test_only_what_is_asked_for_and_in_that_order(oip) -> None:
    wanted = [
        triton.InferRequestedOutput("top5_bin", binary_data=False),
        triton.InferRequestedOutput("abstain"),
        triton.InferRequestedOutput("class"),
    ]
    answer = oip.infer("digits", [tensor("inputs", PIXELS)], outputs=wanted, request_id="a b")

    assert names_of(answer) == ["top5_bin", "abstain", "class"]
    assert ["data" in output for output in answer.get_response()["outputs"]] == [True, False, False]
    assert answer.as_numpy("class").shape == (40,)
    assert answer.get_response()["id"] == "a b"


def test_a_name_means_what_it_was_promoted_to(served, oip) -> None:
    answer = oip.infer("digits", [tensor("inputs", PIXELS)])
    newest = oip.infer("digits", [tensor("inputs", PIXELS)], model_version="2")

    assert answer.get_response()["model_version"] == "1"
    assert newest.get_response()["model_version"] == "2"
    assert "id" not in newest.get_response()
    assert newest.as_numpy("top1_bin").max() <= 3 < answer.as_numpy("top1_bin").max()


@pytest.mark.parametrize("encoding", ["gzip", "deflate"])
@pytest.mark.parametrize("binary", [True, False])
def test_compressed_requests(oip, encoding, binary) -> None:
    plain = oip.infer("digits", [tensor("inputs", PIXELS)])
    answer = oip.infer(
        "digits",
        [tensor("inputs", PIXELS, binary=binary)],
        request_compression_algorithm=encoding,
        response_compression_algorithm=encoding,
    )
    assert np.array_equal(answer.as_numpy("top1_probability"), plain.as_numpy("top1_probability"))


def test_many_at_a_time(oip) -> None:
    alone = oip.infer("digits", [tensor("inputs", PIXELS)]).as_numpy("class")
    pending = [
        oip.async_infer("digits", [tensor("inputs", PIXELS[i : i + 1])]) for i in range(len(alone))
    ]
    for expected, request in zip(alone, pending, strict=True):
        assert request.get_result().as_numpy("class").tolist() == [expected]


def test_a_timeout_that_has_passed(oip) -> None:
    with pytest.raises(InferenceServerException) as caught:
        oip.infer("digits", [tensor("inputs", PIXELS)], timeout=1)
    assert caught.value.status() == "504"

    oip.infer("digits", [tensor("inputs", PIXELS)], timeout=60_000_000)
    oip.infer("digits", [tensor("inputs", PIXELS)], timeout=0, priority=1, sequence_id=4)


def test_requests_and_rows_are_counted(oip) -> None:
    def counts() -> dict:
        found = oip.get_inference_statistics("digits", "2")["model_stats"]
        assert [(one["name"], one["version"]) for one in found] == [("digits", "2")]
        return found[0]

    before = counts()
    for n_rows in (3, 5):
        oip.infer("digits", [tensor("inputs", PIXELS[:n_rows])], model_version="2")
    with pytest.raises(InferenceServerException):
        oip.infer("digits", [tensor("others", PIXELS)], model_version="2")
    oip.infer("digits", [tensor("inputs", PIXELS)], model_version="1")
    after = counts()

    def more(*keys: str) -> int:
        old, new = before, after
        for key in keys:
            old, new = old[key], new[key]
        return new - old

    assert more("inference_count") == 8
    assert more("execution_count") == 2
    assert more("inference_stats", "fail", "count") == 1
    stages = ("queue", "compute_input", "compute_infer", "compute_output")
    for stage in ("success", *stages):
        assert more("inference_stats", stage, "count") == 2
    assert more("inference_stats", "compute_infer", "ns") > 0
    spent = sum(more("inference_stats", stage, "ns") for stage in stages)
    assert spent == more("inference_stats", "success", "ns")
    everything = oip.get_inference_statistics()["model_stats"]
    assert [one["version"] for one in everything if one["name"] == "digits"] == ["1", "2"]


def test_what_has_not_succeeded_is_unavailable(served, oip) -> None:
    inputs = np.abs(rows(400))
    inputs[300] = -1  # what only a run over all rows finds
    answer = calibrate(
        served[0],
        model=undefined_below_zero(weights()).SerializeToString(),
        calibration=npz(inputs=inputs, labels=np.arange(400) % 10),
        config='{"name": "broken"}',
    )
    assert answer.json()["status"] == "failed", answer.text
    index = {(one["name"], one["version"]): one for one in oip.get_model_repository_index()}

    assert index["digits", "1"]["state"] == index["digits", "2"]["state"] == "READY"
    assert (index["broken", "1"]["state"], index["broken", "1"]["reason"]) == (
        "UNAVAILABLE",
        "failed",
    )
    ready = served[0].post("/v2/repository/index", json={"ready": True}).json()
    assert [(one["name"], one["version"], one["state"]) for one in ready] == [
        ("digits", "1", "READY"),
        ("digits", "2", "READY"),
    ]
    assert not oip.is_model_ready("broken")
    with pytest.raises(InferenceServerException) as caught:
        oip.infer("broken", [tensor("x", inputs)])
    assert caught.value.status() == "503"


def test_errors_are_read_by_the_client(oip) -> None:
    wrong = {
        "404": lambda: oip.get_model_metadata("nobody"),
        "400": lambda: oip.infer("digits", [tensor("inputs", PIXELS[:, :5].copy())]),
    }
    for status, call in wrong.items():
        with pytest.raises(InferenceServerException) as caught:
            call()
        assert caught.value.status() == status
        assert "decoding the response" not in caught.value.message()

"""JPEGs of many sizes through a residual network: each value is torchvision's, on every way.

500 of them; ``PICTURES=2000 pytest tests/acceptance/test_pictures.py`` takes more.
The network's output ``probe`` weighs every value of its input with a sign of its own, so that it
shows what the model was given, from outside.
"""

import io
import json
import os
import zipfile
from typing import Any

import httpx
import numpy as np
import onnxruntime
import pytest
from fashion_mnist import N_CLASSES, probed, residual_network
from picture_files import jpeg, reference_values
from request_formats import BOUNDARY, body, file_part
from running_service import NPZ, calibrate, npz, send

from service.child.pictures.values import model_values
from service.child.reading.open_set import open_dataset
from service.runner.messages.limits import DatasetLimits
from service.runner.messages.preprocessing import PRESETS
from service.runner.messages.reading import Reading

pytestmark = pytest.mark.slow


N = int(os.environ.get("PICTURES", "500"))
N_BINS = 8
MEAN, STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)
FORM = {"Content-Type": f"multipart/form-data; boundary={BOUNDARY.decode()}"}
JPEG = {"Content-Type": "image/jpeg"}


def reference(content: bytes) -> Any:
    return reference_values(content, shorter_side=256, side=224, mean=MEAN, std=STD)


@pytest.fixture(scope="module")
def jpegs() -> list[bytes]:
    sizes = np.random.default_rng(0).integers(24, 150, (N, 2))
    return [jpeg(int(width), int(height), seed=seed) for seed, (width, height) in enumerate(sizes)]


@pytest.fixture(scope="module")
def archive(jpegs: list[bytes]) -> bytes:
    labels = np.random.default_rng(1).integers(0, N_CLASSES, N)
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as folders:
        for number, (content, label) in enumerate(zip(jpegs, labels, strict=True)):
            folders.writestr(f"photos/{label}/{number:05}.jpg", content)
    return packed.getvalue()


@pytest.fixture(scope="module")
def probes(jpegs: list[bytes], archive: bytes, tmp_path_factory: pytest.TempPathFactory) -> Any:
    """Return what the probe is of each picture, having compared all values of the set."""
    path = tmp_path_factory.mktemp("pictures") / "set"
    path.write_bytes(archive)
    reading = Reading(preprocessing=PRESETS["imagenet"])
    found: list[float] = []
    with open_dataset(
        path, location="calibration", limits=DatasetLimits(), reading=reading
    ) as dataset:
        for batch in dataset.batches(64):
            values = model_values(batch.arrays["pixels"], PRESETS["imagenet"])
            for picture in values:
                expected = reference(jpegs[len(found)])
                assert np.abs(picture - expected).max() < 1 / 255
                found.append(probed(expected))
    assert len(found) == N
    return np.array(found)


@pytest.fixture(scope="module")
def calibration(client: httpx.Client, archive: bytes) -> dict[str, Any]:
    config = {
        "name": "photos",
        "preprocessing": "imagenet",
        "top_k": [1],
        "bins": N_BINS,
        "measures": ["output:probe"],
        "serve": {"1": "output:probe"},
        "output": {"name": "logits"},
        "folds": 2,
    }
    answer = calibrate(
        client, model=residual_network(), calibration=archive, config=json.dumps(config)
    )
    assert answer.status_code == httpx.codes.CREATED, answer.text
    assert answer.json()["status"] == "succeeded", answer.text
    return answer.json()


def shown(answer: httpx.Response) -> list[float]:
    """Return the probe of each row of an answer."""
    assert answer.status_code == httpx.codes.OK, answer.text
    return [row["top1"]["uncertainty"] for row in answer.json()["predictions"]]


def test_a_set_of_jpegs_is_binned_by_what_the_model_saw(client, calibration, probes):
    assert calibration["data"]["samples"] == N
    report = client.get("/report", params={"calibration": "photos"}).raise_for_status().json()
    bins = report["events"]["1"]["measures"]["output:probe"]["bins"]
    edges = np.array([found["upper"] for found in bins[:-1]])
    assert len(edges) == N_BINS - 1
    counts = np.bincount(np.searchsorted(edges, probes), minlength=N_BINS)
    np.testing.assert_array_equal([found["count"] for found in bins], counts)


def test_a_jpeg_is_answered_by_itself_and_among_others(client, calibration, jpegs, probes):
    alone = [shown(send(client, "photos", content, JPEG))[0] for content in jpegs[:20]]
    np.testing.assert_allclose(alone, probes[:20], atol=1e-4)
    parts = [file_part("p", f"{n}.jpg", content) for n, content in enumerate(jpegs[:200])]
    together = shown(send(client, "photos", body(*parts), FORM))
    np.testing.assert_allclose(together, probes[:200], atol=1e-4)


def test_values_made_by_the_caller_are_taken_as_they_are(client, calibration, jpegs, probes):
    values = np.stack([reference(content) for content in jpegs[:20]]).astype(np.float32)
    found = shown(send(client, "photos", npz(image=values), NPZ))
    np.testing.assert_allclose(found, probes[:20], atol=1e-4)


def test_the_exported_file_takes_values_and_answers_alike(client, calibration, jpegs, probes):
    answer = client.get("/calibrations/photos/model.onnx")
    assert answer.status_code == httpx.codes.OK, answer.text
    assert "classes=0; bins=0" in answer.headers["Howsure-Parity"]
    session = onnxruntime.InferenceSession(answer.content)
    values = np.stack([reference(content) for content in jpegs[:5]]).astype(np.float32)
    (found,) = session.run(["top1_uncertainty"], {"image": values})
    np.testing.assert_allclose(found, probes[:5], atol=1e-4)

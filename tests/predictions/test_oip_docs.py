"""The page on the Open Inference Protocol says what happens."""

import io
import re
from contextlib import redirect_stdout
from pathlib import Path

import numpy as np
from oip_service import LENGTH, oip_service_on, outputs_of
from running_service import DIGITS, calibrate, digits

PAGE = (Path(__file__).parents[2] / "docs" / "oip.md").read_text(encoding="utf-8")


def test_the_examples_run(tmp_path, monkeypatch) -> None:
    example = re.search(r"```python\n(.*?)```", PAGE, re.DOTALL)
    monkeypatch.chdir(DIGITS)
    row = np.load(DIGITS / "evaluation.npz")["inputs"][0].astype(np.float32)
    with oip_service_on(tmp_path) as (client, address):
        parts = {"model": digits("model.onnx"), "calibration": digits("calibration.npz")}
        calibrate(client, **parts, config='{"name": "digits"}').raise_for_status()
        said = io.StringIO()
        with redirect_stdout(said):
            exec(example[1].replace("localhost:8000", address))  # noqa: S102 - our own page
        raw = client.post("/v2/models/digits/infer", content=row.tobytes(), headers={LENGTH: "0"})
        names = [one["name"] for one in client.get("/v2/models/digits").json()["outputs"]]

    classes, probabilities, abstain = said.getvalue().splitlines()
    found = outputs_of(raw)
    assert str(found["class"][0]) in classes
    assert len(probabilities.split()) >= 3
    assert {"True", "False"} & set(re.findall(r"\w+", abstain))
    table = set(re.findall(r"`(\w[\w.]*)`", "".join(re.findall(r"^\| `.*?\|", PAGE, re.MULTILINE))))
    assert {n for n in names if n[:4] != "top5" and n != "abstain_0.01"} == table - {
        "top5_probability"
    }


def test_every_status_of_the_page_is_declared(client) -> None:
    listed = set(re.findall(r"^\| (\d{3}) \|", PAGE, re.MULTILINE))
    document = client.get("/openapi.json").json()

    declared = {
        status
        for path, operations in document["paths"].items()
        if path.startswith("/v2")
        for operation in operations.values()
        for status, found in operation["responses"].items()
        if "OipError" in str(found)
    }
    assert listed - {"405"} == declared

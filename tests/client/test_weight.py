"""The client is light: what it imports, and what it holds of a file that it sends."""

import json
import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
from hatchling.builders.wheel import WheelBuilder
from own_process import peak_of
from scripted_server import scripted

import howsure
from howsure import calibrator, client
from howsure.client import Client, HowsureError

ROOT = Path(__file__).parents[2]
HEAVY = {"onnx", "onnxruntime", "sqlalchemy", "fastapi", "starlette", "pydantic", "scipy", "typer"}
MEBIBYTE = 2**20


@pytest.mark.process
@pytest.mark.parametrize("kind", ["standard", "editable"])
def test_howsure_is_its_name_in_every_installation_and_brings_little(kind, tmp_path) -> None:
    (wheel,) = WheelBuilder(str(ROOT)).build(directory=str(tmp_path), versions=[kind])
    installed = tmp_path / "installed"
    with zipfile.ZipFile(wheel) as archive:
        names = [name for name in archive.namelist() if name.startswith("howsure/")]
        archive.extractall(installed, names)
    if kind == "standard":
        assert {"howsure/__init__.py", "howsure/py.typed"} <= set(names)
    program = "import howsure, json, sys; print(json.dumps([howsure.__all__, list(sys.modules)]))"
    done = subprocess.run(
        [sys.executable, "-c", program],
        env=os.environ | {"PYTHONPATH": os.pathsep.join([str(installed), str(ROOT)])},
        check=True,
        capture_output=True,
        text=True,
    )
    exported, modules = json.loads(done.stdout)
    assert {"Client", "AsyncClient", "HowsureError"} <= set(exported)
    assert not HEAVY & {name.partition(".")[0] for name in modules}
    assert not [name for name in modules if name.startswith(("service", "howsure.statistics"))]
    assert "howsure.client" not in modules


@pytest.mark.process
def test_a_file_is_read_as_it_is_sent(tmp_path) -> None:
    large = tmp_path / "large.npz"
    with large.open("wb") as file:
        file.truncate(64 * MEBIBYTE)
    with scripted((422, {}, b"")) as server:

        def send() -> None:
            with Client(server.url) as client, pytest.raises(HowsureError):
                client.calibrate(calibration=large)

        peak = peak_of(send)
    assert int(server.headers[0]["content-length"]) > 64 * MEBIBYTE
    assert peak < 8 * MEBIBYTE


def test_howsure_offers_its_client_and_its_calibrator() -> None:
    own = {"Answers": calibrator.Answers, "Calibrator": calibrator.Calibrator}
    offered = {name: getattr(howsure, name) for name in howsure.__all__}
    assert offered == own | {name: getattr(client, name) for name in client.__all__}

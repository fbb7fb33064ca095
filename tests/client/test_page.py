"""What docs/client.md says: every method is there, and its first example runs as it stands."""

import inspect
import re
import shutil
from pathlib import Path

import numpy as np
import pytest
from running_service import DIGITS, QUICK

import howsure
from howsure.client import AsyncClient, Client, Predictions

DOCS = Path(__file__).parents[2] / "docs"
PAGE = (DOCS / "client.md").read_text(encoding="utf-8")
METHODS = {name for name in dir(Client) if not name.startswith("_")}


def test_both_clients_have_the_methods_of_the_page() -> None:
    table = PAGE[PAGE.index("## Methods") : PAGE.index("### What is calibrated")]
    documented = set(re.findall(r"`(\w+)\(", table)) | {"close"}
    assert documented == METHODS
    assert {name for name in dir(AsyncClient) if not name.startswith("_")} == METHODS


def test_both_clients_have_the_same_arguments() -> None:
    for name in METHODS - {"close"}:
        found = inspect.signature(getattr(Client, name))
        assert found == inspect.signature(getattr(AsyncClient, name))
    assert inspect.signature(Client.predict).return_annotation is Predictions


def test_every_exported_name_and_attribute_is_documented() -> None:
    pages = PAGE + (DOCS / "calibrator.md").read_text(encoding="utf-8")
    for name in howsure.__all__:
        assert name == "EventPredictions" or re.search(rf"`{name}\b", pages), name
    for name in vars(Predictions):
        if not name.startswith("_") and name not in {"event", "joined"}:
            assert re.search(rf"`{name}\b", PAGE), name


def test_the_first_example_runs(url, tmp_path, monkeypatch: pytest.MonkeyPatch, capsys) -> None:
    (example, *_) = re.findall(r"^```python\n(.*?)^```$", PAGE, re.DOTALL | re.MULTILINE)
    assert example.startswith("import howsure\n")
    shutil.copy(DIGITS / "model.onnx", tmp_path)
    shutil.copy(DIGITS / "calibration.npz", tmp_path)
    monkeypatch.chdir(tmp_path)
    with np.load(DIGITS / "evaluation.npz") as archive:
        images = archive["inputs"][:2]

    code = example.replace("import howsure\n", "").replace("http://127.0.0.1:8000", url)
    # Not as a version of a name that others use.
    code = code.replace('name="digits"', 'name="page", **QUICK')
    names = {"howsure": howsure, "images": images, "QUICK": QUICK}
    exec(compile(code, "client.md", "exec"), names)  # noqa: S102 - our own page

    assert capsys.readouterr().out.startswith("['")
